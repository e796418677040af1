"""Traces under Gaussian priors: TP19 figure 2, real GPS traces, ill-conditioned kernels, and the
claim that the largest length scale is the worst.

    python benchmarks/traces.py                    # every part, a few minutes
    python benchmarks/traces.py --part figure2     # one of them

GPS fixes are those of the data folder (see --data). Results go to results/traces.json, part by
part, with the versions; figures to docs/traces-figure2.png and docs/traces-figure2b.png.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from optmech_traces.chains.sequences import Fixes
from optmech_traces.gaussian.fitting import paths

import optmech as om
from optmech import traces

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "traces.json"
FIGURE = HERE.parent / "docs" / "traces-figure2.png"
FIGURE_B = HERE.parent / "docs" / "traces-figure2b.png"
FIXES = "geolife_beijing_11users.csv"
TEN = np.arange(10.0)
EVEN = list(range(0, 10, 2))
ORDER, RADIUS = 2.0, 1.0


def figure2(_: Path) -> dict[str, Any]:
    """Loss against σ_z² for several length scales and for Σ = I (ball, as in the paper; box)."""
    variances = np.geomspace(0.02, 20, 31).tolist()
    priors = {"independent": traces.GaussianPrior(TEN, traces.white(1.0))}
    for length in (0.5, 1.0, 2.0, 3.0):
        priors[f"l = {length:g}"] = traces.GaussianPrior(TEN, traces.rbf(length))
    loss = {
        kind: {
            name: [
                traces.privacy_loss(p, v, EVEN, RADIUS, ORDER, ball=kind == "ball").upper
                for v in variances
            ]
            for name, p in priors.items()
        }
        for kind in ("ball", "box")
    }
    _draw(variances, loss["ball"])
    asked = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0]
    excess = [
        {
            "variance": v,
            **{
                kind: [
                    traces.privacy_loss(p, v, EVEN, RADIUS, ORDER, ball=kind == "ball").upper
                    / traces.privacy_loss(
                        priors["independent"], v, EVEN, RADIUS, ORDER, ball=kind == "ball"
                    ).upper
                    - 1
                    for name, p in priors.items()
                    if name != "independent"
                ]
                for kind in ("ball", "box")
            },
        }
        for v in asked
    ]
    return {"variances": variances, "loss": loss, "excess": excess}


def _draw(variances: list[float], losses: dict[str, list[float]]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for name, values in losses.items():
        style = "--" if name == "independent" else "-"
        label = "independent (Σ = I)" if name == "independent" else name.replace("l", "ℓ", 1)
        axes.loglog(variances, values, style, label=label)
    axes.set_xlabel("variance of the noise on each position, σ_z²")
    axes.set_ylabel("worst Rényi loss (order 2, ball)")
    axes.set_title("Ten positions, every other one secret, r = 1", fontsize=10)
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3, which="both")
    figure.savefig(FIGURE)


def figure2b(_: Path) -> dict[str, Any]:
    """An example trace and the hypothesis about every other point that the release, σ_z² = 1, tells
    apart best from the truth: ten points, l = 2 (TP19 figure 2b)."""
    trace, variance = traces.GaussianPrior(TEN, traces.rbf(2.0)), 1.0
    path = np.asarray(trace.sample(seed=2019)).ravel()
    odd = [k for k in range(len(TEN)) if k not in EVEN]
    sigma = trace.covariance
    pull = sigma[np.ix_(odd, EVEN)] @ np.linalg.inv(sigma[np.ix_(EVEN, EVEN)])
    out: dict[str, Any] = {"path": path.tolist(), "variance": variance}
    for kind in ("ball", "box"):
        loss = traces.privacy_loss(trace, variance, EVEN, RADIUS, ORDER, ball=kind == "ball")
        step = np.asarray(loss.hypothesis).ravel()
        own = ORDER / 2 * float(step @ step) / variance
        out[kind] = {
            "hypothesis": step.tolist(),
            "others": (pull @ step).tolist(),
            "loss": loss.upper,
            "share_of_others": 1 - own / loss.upper,
            "expected_gain": loss.expected_gain[1],
        }
    _draw_hypothesis(path, odd, out)
    return out


def _draw_hypothesis(path: np.ndarray, odd: list[int], found: dict[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.4), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("ball", "box"), strict=True):
        other = path.copy()
        other[EVEN] += found[kind]["hypothesis"]
        other[odd] += found[kind]["others"]
        axes.plot(TEN, path, "-", color="#0072b2", label="the trace")
        axes.plot(TEN[EVEN], path[EVEN], "o", color="#0072b2", label="secret")
        axes.plot(TEN, other, "--", color="#d55e00", label="mean under the other hypothesis")
        axes.plot(TEN[EVEN], other[EVEN], "s", color="#d55e00", label="other hypothesis")
        axes.set_title(f"{kind}: loss {found[kind]['loss']:.2f}", fontsize=10)
        axes.set_xlabel("time")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("position")
    figure.axes[0].legend(fontsize=7)
    figure.savefig(FIGURE_B)


def choices(
    trace: traces.GaussianPrior, epsilon: float, secrets: list[int], radius: float
) -> dict[str, Any]:
    """Noise at the same promised loss, ball bound for all, as rms per coordinate."""
    size = len(trace.covariance)
    started = time.perf_counter()
    designs = {
        s: traces.optimal_noise(trace, epsilon, [secrets], radius, ORDER, structure=s)  # type: ignore[arg-type]
        for s in ("full", "diagonal", "isotropic")
    }
    naive = ORDER * radius**2 * len(secrets) * trace.dimensions / (2 * epsilon)
    return {
        "independent": math.sqrt(naive),
        "loss_independent": traces.privacy_loss(
            trace, naive, secrets, radius, ORDER, ball=True
        ).upper,
        **{name: math.sqrt(d.trace / size) for name, d in designs.items()},
        "gap": designs["full"].gap,
        "gap_diagonal": designs["diagonal"].gap,
        "loss": designs["full"].loss,
        "box": traces.calibrate(trace, epsilon, secrets, radius, ORDER),
        "loss_independent_box": traces.privacy_loss(trace, naive, secrets, radius, ORDER).upper,
        "seconds": time.perf_counter() - started,
    }


def gps(data: Path) -> list[dict[str, Any]]:
    """GeoLife: 40 fixes at least a minute apart, every other one secret within 100 m."""
    fixes = Fixes.from_csv(data / FIXES, user="user", time="utc", x="lon", y="lat")
    out = []
    seen: set[str] = set()
    for path in paths(fixes, max_gap=600, spacing=60, least=40):
        if path.user in seen:
            continue
        seen.add(path.user)
        times, positions = path.times[:40], path.positions[:40]
        families: dict[str, Callable[[float], traces.Kernel]] = {
            "rbf": traces.rbf,
            "matern 3/2": lambda length: traces.matern(length, 1.5),
            "matern 1/2": traces.ornstein_uhlenbeck,
        }
        fits = {name: traces.fit([(times, positions)], f) for name, f in families.items()}
        best = max(fits, key=lambda name: fits[name].log_likelihood)
        trace = traces.GaussianPrior(times, fits[best].kernel, dimensions=2)
        out.append(
            {
                "user": path.user,
                "minutes": float(times[-1]),
                "kernel": best,
                "length_scale": fits[best].length_scale,
                "deviation": math.sqrt(fits[best].variance),
                "errors": math.sqrt(fits[best].noise),
                "log_likelihood": {n: f.log_likelihood for n, f in fits.items()},
                **choices(trace, 1.0, list(range(0, 40, 2)), 0.1),
            }
        )
    return out


def smooth(_: Path) -> list[dict[str, Any]]:
    """Fifty points a unit apart under an RBF kernel with a length scale far above that."""
    out = []
    for length in (2.0, 5.0, 20.0, 100.0, 1000.0):
        for name, secrets in (
            ("five, spread", [0, 12, 25, 37, 49]),
            ("three, together", [24, 25, 26]),
            ("every other", list(range(0, 50, 2))),
        ):
            trace = traces.GaussianPrior(np.arange(50.0), traces.rbf(length))
            row: dict[str, Any] = {"length_scale": length, "secrets": name}
            started = time.perf_counter()
            try:
                design = traces.optimal_noise(trace, 1.0, [secrets], 1.0, ORDER)
                row |= {
                    "trace": design.trace,
                    "isotropic": design.isotropic,
                    "loss": design.loss,
                    "gap": design.gap,
                }
            except om.OptmechError as error:
                row["refused"] = str(error)
            out.append({**row, "seconds": time.perf_counter() - started})
    return out


def narrow(_: Path) -> list[dict[str, Any]]:
    """What noise that is designed for one set and one length scale does for others."""
    trace = traces.GaussianPrior(TEN, traces.rbf(1.0))
    pairs = [list(c) for k in (1, 2) for c in itertools.combinations(range(10), k)]
    out = []
    for name, sets, structure in (
        ("every other one", [EVEN], "full"),
        ("every other one", [EVEN], "diagonal"),
        ("every other one", [EVEN], "isotropic"),
        ("all singles and pairs", pairs, "full"),
        ("all singles and pairs", pairs, "diagonal"),
        ("all singles and pairs", pairs, "isotropic"),
        ("both", [EVEN, *pairs], "full"),
    ):
        started = time.perf_counter()
        design = traces.optimal_noise(trace, 1.0, sets, RADIUS, ORDER, structure=structure)  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        other = traces.worst_subset(trace, design.covariance, 2, RADIUS, ORDER)
        longer = traces.GaussianPrior(TEN, traces.rbf(1.5))
        out.append(
            {
                "promise": name,
                "structure": structure,
                "trace": design.trace,
                "gap": design.gap,
                "loss_every_other": traces.privacy_loss(
                    trace, design.covariance, EVEN, RADIUS, ORDER
                ).upper,
                "loss_pairs": other.upper,
                "worst_pair": list(other.secrets),
                "loss_longer": traces.privacy_loss(
                    longer, design.covariance, EVEN, RADIUS, ORDER
                ).upper,
                "seconds": seconds,
            }
        )
    return out


def robust(_: Path) -> dict[str, Any]:
    """Noise for every length scale of [0.5, 1.5]."""
    started = time.perf_counter()
    found = traces.robust_noise(
        TEN, traces.rbf, (0.5, 1.5), epsilon=1.0, secrets=EVEN, radius=RADIUS, order=ORDER
    )
    return {
        "trace": found.design.trace,
        "lower_bound": found.design.lower_bound,
        "isotropic": found.design.isotropic,
        "upper": found.interval.upper,
        "length_scales": list(found.length_scales),
        "seconds": time.perf_counter() - started,
    }


def monotone(_: Path) -> dict[str, Any]:
    """Random traces whose loss under independent noise falls as the length scale grows."""
    rng = np.random.default_rng(20261121)
    grid = np.geomspace(0.3, 6.0, 12).tolist()
    families: dict[str, Callable[[float], traces.Kernel]] = {
        "rbf": traces.rbf,
        "matern 3/2": lambda length: traces.matern(length, 1.5),
        "matern 1/2": traces.ornstein_uhlenbeck,
    }
    out: dict[str, Any] = {}
    for name, family in families.items():
        worst: dict[str, Any] = {"excess": 0.0}
        falls = 0
        for _trial in range(300):
            size = int(rng.integers(2, 7))
            times = np.cumsum(rng.uniform(0.2, 3.0, size)).round(3)
            count = int(rng.integers(1, size + 1))
            secrets = sorted(rng.choice(size, count, replace=False).tolist())
            variance = float(10 ** rng.uniform(-2, 2))
            losses = [
                traces.privacy_loss(
                    traces.GaussianPrior(times, family(length)), variance, secrets, 1.0, ORDER
                )
                for length in grid
            ]
            # proved on both sides: the lower bound before against the upper bound at the end
            excess = max(loss.lower for loss in losses) / losses[-1].upper - 1
            falls += excess > 1e-9
            if excess > worst["excess"]:
                worst = {
                    "excess": excess,
                    "times": times.tolist(),
                    "secrets": secrets,
                    "variance": variance,
                    "length_scale": grid[int(np.argmax([loss.lower for loss in losses]))],
                }
        out[name] = {"trials": 300, "falls": int(falls), "worst": worst}
    three = traces.worst_length_scale(
        [0.0, 1.0, 2.0],
        traces.rbf,
        (0.3, 6.0),
        noise_covariance=10.0,
        secrets=[0, 2],
        radius=1,
        order=2,
    )
    end = traces.privacy_loss(
        traces.GaussianPrior([0.0, 1.0, 2.0], traces.rbf(6.0)), 10.0, [0, 2], 1, 2
    )
    out["three points"] = {
        "length_scale": three.length_scale,
        "loss": three.lower,
        "upper": three.upper,
        "loss_at_6": end.upper,
    }
    return out


PARTS = {
    "figure2": figure2,
    "figure2b": figure2b,
    "gps": gps,
    "smooth": smooth,
    "narrow": narrow,
    "robust": robust,
    "monotone": monotone,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    settle(args, *((FIXES,) if "gps" in (args.part or PARTS) else ()))
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    results["versions"] = {
        "python": platform.python_version(),
        **{p: version(p) for p in ("numpy", "scipy", "cvxpy", "clarabel", "python-flint")},
    }
    for part in args.part or PARTS:
        started = time.perf_counter()
        results[part] = PARTS[part](args.data)
        print(f"{part}: {time.perf_counter() - started:.1f} s")
        args.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
