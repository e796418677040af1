"""The best Pufferfish mechanism beside the Wasserstein mechanism, and mutual information beside
Blahut's algorithm.

    python benchmarks/pufferfish.py --part pufferfish --figure docs/figures/pufferfish.svg
    python benchmarks/pufferfish.py --part information
    python benchmarks/pufferfish.py --part large
    python benchmarks/pufferfish.py --part notions

The Wasserstein mechanism (Song, Wang and Chaudhuri, SIGMOD 2017, Algorithm 1) adds Laplace noise of
scale W/ε to an answer, W the largest W_∞ between two conditional laws of the answer. Nothing is
sampled: losses are sums, optima are certified. Results go to results/pufferfish.json.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from distribution_privacy import BOUNDS, rows
from given import add_files, settle
from tables import table

import optmech as om

RESULTS = Path(__file__).resolve().parent / "results" / "pufferfish.json"
FILE = "fsq_nyc_semantic.csv"
E, H = om.distances.euclidean(), om.distances.hamming()
RATES = (0.2, 0.5, 1.0, 2.0, 5.0)
FLU = [0.1, 0.15, 0.5, 0.15, 0.1]


def household(law: list[float]) -> om.beliefs.Beliefs:
    """How many are ill, compared for a member who is and one who is not (Song et al., 3.1)."""
    size = len(law) - 1
    healthy = [p * (size - k) / size for k, p in enumerate(law)]
    ill = [p * k / size for k, p in enumerate(law)]
    return om.beliefs.tables([healthy, ill], prior=law, names=["healthy", "ill"])


def electricity() -> om.beliefs.Beliefs:
    """A day's use in six steps of four hours, at five levels that change slowly: in kind the
    chains of section 5.3, with two beliefs about how slowly."""
    levels = np.arange(5)
    chains = []
    for reach in (0.8, 1.5):
        moves = np.exp(-np.abs(levels[:, None] - levels) / reach)
        moves /= moves.sum(axis=1, keepdims=True)
        chains.append((stationary(moves), moves))
    return om.beliefs.chains(chains, 6, levels.tolist())


def activity() -> om.beliefs.Beliefs:
    """Minutes of activity in a dozen: active, standing still, standing moving, sedentary, in kind
    the chains of section 5.3; whoever is sedentary mostly stays so."""
    moves = np.array(
        [[0.85, 0.05, 0.07, 0.03], [0.06, 0.70, 0.14, 0.10], [0.10, 0.20, 0.60, 0.10],
         [0.01, 0.03, 0.02, 0.94]]
    )  # fmt: skip
    return om.beliefs.chains([(stationary(moves), moves)], 12, [1, 0, 0, 0])


def stationary(moves: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(moves.T)
    found = np.real(vectors[:, np.argmax(np.real(values))])
    return np.abs(found) / np.abs(found).sum()


CASES = {
    "flu in a household of 4": lambda: household(FLU),
    "electricity, 6 readings of 5 levels": electricity,
    "activity, 12 minutes": activity,
}


def wasserstein(known: om.beliefs.Beliefs) -> float:
    """W: the largest W_∞ between the laws of a pair."""
    domain = known.answers
    far = (
        om.transport.wasserstein(om.Prior(domain, a), om.Prior(domain, b), E, math.inf).value
        for a, b in known.pairs
    )
    return max(far)


def noisy(known: om.beliefs.Beliefs, scale: float) -> dict[str, float]:
    """Mean absolute errors with Laplace noise: as it is, rounded to an answer, and replaced by the
    best answer for every report in steps of 1/8, all of which are post-processing."""
    points = np.array(known.answers.points).ravel()
    prior = known.prior.weights

    def below(x: np.ndarray) -> np.ndarray:
        tail = np.exp(-np.abs(x) / scale) / 2
        return np.where(x < 0, tail, 1 - tail)

    def reports(edges: np.ndarray) -> np.ndarray:
        steps = below(edges - points[:, None])
        inner = np.diff(steps, axis=1)
        return np.hstack([steps[:, :1], inner, 1 - steps[:, -1:]])

    apart = np.abs(points[:, None] - points)
    rounded = reports((points[:-1] + points[1:]) / 2)
    fine = reports(np.arange(points[0] - 8 * scale, points[-1] + 8 * scale, 0.125))
    best = (apart.T @ (prior[:, None] * fine)).min(axis=0).sum()
    return {
        "laplace": scale,
        "rounded": float(prior @ (rounded * apart).sum(axis=1)),
        "remapped": float(best),
    }


def pufferfish() -> list[dict[str, Any]]:
    found = []
    for name, make in CASES.items():
        known = make()
        far, points = wasserstein(known), np.array(known.answers.points).ravel()
        blind = float((np.abs(points[:, None] - points) @ known.prior.weights).min())
        for epsilon in RATES:
            began = time.process_time()
            private = om.constraints.Pufferfish(epsilon, known.pairs)
            design = om.solve(om.Problem(known.prior, E, constraints=[private]))
            found.append(
                {
                    "case": name, "answers": len(points), "pairs": len(known.pairs),
                    "epsilon": epsilon, "w": far, "blind": blind, "loss": design.loss,
                    "bound": design.lower_bound, "gap": design.gap, "status": design.status,
                    **noisy(known, far / epsilon), "seconds": time.process_time() - began,
                }
            )  # fmt: skip
            print(found[-1], flush=True)
    return found


# ---------------------------------------------------------------- mutual information
def blahut(prior: np.ndarray, loss: np.ndarray, slope: float) -> dict[str, Any]:
    """Blahut's iteration at one slope (1972, Theorem 6): a mechanism, its loss and its rate in
    nats, and a bound of rate + slope · loss from below."""
    kernel = np.exp(-slope * loss)
    output = np.full(loss.shape[1], 1 / loss.shape[1])
    count = 0
    while count < 200_000:
        count += 1
        norm = kernel @ output
        ratio = (prior / norm) @ kernel
        moved = output * ratio
        # what is between rate + slope · loss and its bound
        if math.log(ratio.max()) - float(moved @ np.log(np.maximum(ratio, 1e-300))) < 1e-9:
            break
        output = moved
    mechanism = kernel * output / norm[:, None]
    used = prior > 0
    own, common = mechanism[used], prior @ mechanism
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(own > 1e-200, own * np.log(own / common), 0.0)
    bound = -float(prior @ np.log(norm)) - math.log(ratio.max())
    return {
        "mechanism": mechanism, "iterations": count, "bound": bound,
        "loss": float(prior @ (mechanism * loss).sum(axis=1)),
        "rate": float(prior[used] @ terms.sum(axis=1)),
    }  # fmt: skip


def cities(
    data: Path, zones: int = 12, shape: tuple[int, int] = (4, 3), name: str = "montreal-small"
) -> dict[str, om.Prior]:
    """Check-ins of New York on a grid, and the zones of Montreal of the gallery most visited."""
    whole = om.load_problem(name).prior
    busy = np.sort(np.argsort(-whole.weights)[:zones])
    assert whole.domain.points is not None
    places = om.Domain.geographic(range(len(busy)), whole.domain.points[busy])
    found = {"Montreal": om.Prior(places, whole.weights[busy])}
    grid = om.Grid.geographic(*shape, BOUNDS)
    places = np.array([[float(r["lon"]), float(r["lat"])] for r in rows(data / FILE)])
    cells = grid.locate(places)
    counts = np.bincount(cells[cells >= 0], minlength=len(grid))
    found["New York"] = om.Prior(grid, counts)
    return found


def information(data: Path) -> list[dict[str, Any]]:
    found = []
    for city, prior in cities(data).items():
        km = om.distances.haversine() if prior.domain.coordinates == "lonlat" else E
        loss = km(prior.domain, prior.domain)
        for slope in (0.5, 1.0, 2.0):
            began = time.process_time()
            mean = blahut(prior.weights, loss, slope)
            iterated = time.process_time() - began
            told = om.constraints.MutualInformation(mean["rate"])
            metric = om.MetricPrivacy(slope, km)
            began = time.process_time()
            alone = om.solve(om.Problem(prior, km, constraints=[told]), gap=1e-5)
            seconds = time.process_time() - began
            both = om.solve(om.Problem(prior, km, constraints=[told, metric]), gap=1e-4)
            own = om.Mechanism(prior.domain, prior.domain, mean["mechanism"])
            line = {
                "city": city, "secrets": len(prior.domain), "slope": slope, "rate": mean["rate"],
                "blahut": mean["loss"], "iterations": mean["iterations"],
                "blahut_bound": (mean["bound"] - mean["rate"]) / slope, "blahut_seconds": iterated,
                "loss": alone.loss, "bound": alone.lower_bound, "gap": alone.gap,
                "seconds": seconds, "both": both.loss, "both_bound": both.lower_bound,
            }  # fmt: skip
            for name, m in (("blahut", own), ("alone", alone.mechanism), ("both", both.mechanism)):
                line[f"epsilon_{name}"] = om.measures.epsilon(m, km)
                line[f"distortion_{name}"] = om.measures.distortion(m, prior, km)
            found.append(line)
            print(line, flush=True)
    return found


def large(data: Path) -> list[dict[str, Any]]:
    """Alone for hundreds of places, and together with metric privacy for dozens."""
    alone = cities(data, 249, (12, 10), "montreal")
    small = cities(data, 40, (7, 7))
    found = []
    for city, prior in alone.items():
        km = om.distances.haversine() if prior.domain.coordinates == "lonlat" else E
        loss = km(prior.domain, prior.domain)
        for rate in (0.2, 0.5, 1.0, 2.0):
            design, seconds = timed(prior, km, [om.constraints.MutualInformation(rate)], 1e-6)
            (price,) = om.prices.of_constraints(design)
            began = time.process_time()
            mean = blahut(prior.weights, loss, -1 / price.rate)
            line = {
                "city": city, "places": len(prior.domain), "rate": rate, "loss": design.loss,
                "bound": design.lower_bound, "gap": design.gap, "seconds": seconds,
                "engine": design.engine, "epsilon": om.measures.epsilon(design.mechanism, km),
                "distortion": om.measures.distortion(design.mechanism, prior, km),
                "blahut_seconds": time.process_time() - began, "iterations": mean["iterations"],
                "blahut_bound": (mean["bound"] - rate) * -price.rate,
            }  # fmt: skip
            found.append(line)
            print(line, flush=True)
    for city, prior in small.items():
        km = om.distances.haversine() if prior.domain.coordinates == "lonlat" else E
        for rate, epsilon in ((0.3, 0.5), (1.0, 1.0)):
            told = om.constraints.MutualInformation(rate)
            lone, _ = timed(prior, km, [told], 1e-6)
            private, _ = timed(prior, km, [om.MetricPrivacy(epsilon, km)], 1e-6)
            design, seconds = timed(prior, km, [told, om.MetricPrivacy(epsilon, km)], 1e-3)
            line = {
                "city": city, "places": len(prior.domain), "rate": rate, "loss": design.loss,
                "bound": design.lower_bound, "gap": design.gap, "seconds": seconds,
                "engine": design.engine, "epsilon": om.measures.epsilon(design.mechanism, km),
                "distortion": om.measures.distortion(design.mechanism, prior, km),
                "alone": lone.loss, "metric": private.loss,
                "metric_rate": om.leakage.shannon_leakage(private.mechanism, prior).upper,
            }  # fmt: skip
            found.append(line)
            print(line, flush=True)
    return found


def timed(prior: om.Prior, km: Any, stated: list[Any], gap: float) -> tuple[om.Design, float]:
    """A design, and its processor seconds."""
    began = time.process_time()
    design = om.solve(om.Problem(prior, km, constraints=stated), gap=gap)
    return design, time.process_time() - began


# ---------------------------------------------------------------- what every notion costs
def notions() -> list[dict[str, Any]]:
    """The least mean distance for each notion, such that all protect alike: each is given what the
    best metric-private mechanism at ε = 1 per km has of it."""
    prior = om.load_problem("paper-small").prior
    base = om.solve(om.Problem(prior, E, constraints=[om.MetricPrivacy(1, E)]))
    m, n = base.mechanism, len(prior.domain)
    space = base.problem.space
    spent = {
        "gain": om.constraints.GainLeakage(1).measured(m, space).measured,
        "maximal": om.constraints.MaximalLeakage(9).measured(m, space).measured,
        "additive": om.constraints.AdditiveCapacity(1).measured(m, space).measured,
        "information": om.constraints.MutualInformation(9).measured(m, space).measured,
        "distortion": om.measures.distortion(m, prior, E),
        "epsilon": om.measures.epsilon(m),
    }
    far, cells = E(prior.domain, prior.domain), list(prior.domain.labels)
    edges = [
        (cells[i], cells[j], float(far[i, j]))
        for i in range(n) for j in range(i)
        if abs(cells[i][0] - cells[j][0]) + abs(cells[i][1] - cells[j][1]) == 1
    ]  # fmt: skip
    stated = {
        "metric privacy": om.MetricPrivacy(1, E),
        "policy graph (grid)": om.constraints.PolicyGraph(1, edges),
        "differential privacy": om.DifferentialPrivacy(spent["epsilon"]),
        "distortion privacy": om.DistortionPrivacy(spent["distortion"] * (1 - 1e-9), E),
        "Bayes vulnerability": om.constraints.GainLeakage(spent["gain"] * (1 + 1e-9)),
        "maximal leakage": om.constraints.MaximalLeakage(spent["maximal"] + 1e-9),
        "additive capacity": om.constraints.AdditiveCapacity(spent["additive"] + 1e-9),
        "mutual information": om.constraints.MutualInformation(spent["information"] + 1e-9),
    }
    found = []
    for name, constraint in stated.items():
        design = om.solve(om.Problem(prior, E, constraints=[constraint]), gap=1e-5)
        kept = constraint.measured(design.mechanism, space)
        found.append(
            {
                "notion": name, "promised": kept.promised, "loss": design.loss, "gap": design.gap,
                "epsilon": om.measures.epsilon(design.mechanism, E),
                "distortion": om.measures.distortion(design.mechanism, prior, E),
                "bayes": om.measures.bayes_vulnerability(design.mechanism, prior),
                "seconds": design.seconds,
            }
        )  # fmt: skip
        print(found[-1], flush=True)
    return found


# ---------------------------------------------------------------- tables and figure
def tables_of(results: dict[str, Any]) -> str:
    """Markdown of all parts that were run."""
    out = []
    if "pufferfish" in results:
        heads = ["answer", "ε", "W/ε: Laplace", "rounded", "best remap", "optimum", "saved", "gap"]
        lines = [
            [
                x["case"], f"{x['epsilon']:g}", *(f"{x[k]:.3f}" for k in ("laplace", "rounded")),
                f"{x['remapped']:.3f}", f"**{x['loss']:.3f}**",
                f"{1 - x['loss'] / x['remapped']:.0%}", f"{x['gap']:.0e}",
            ]
            for x in results["pufferfish"]
        ]  # fmt: skip
        out.append(table(heads, lines))
    if "information" in results:
        heads = [
            "city",
            "nats",
            "Blahut: km",
            "optimum: km",
            "gap",
            "ε of the optimum",
            "with ε: km",
        ]
        lines = [
            [
                f"{x['city']} ({x['secrets']})", f"{x['rate']:.3f}", f"{x['blahut']:.5f}",
                f"{x['loss']:.5f}", f"{x['gap']:.0e}", f"{x['epsilon_alone']:.3g}",
                f"{x['both']:.4f} (ε = {x['slope']:g})",
            ]
            for x in results["information"]
        ]  # fmt: skip
        out.append(table(heads, lines))
    if "large" in results:
        alone = [x for x in results["large"] if "blahut_seconds" in x]
        both = [x for x in results["large"] if "metric" in x]
        heads = ["city", "nats", "optimum: km", "gap", "s", "Blahut: s", "its ε", "distortion: km"]
        lines = [
            [
                f"{x['city']} ({x['places']})", f"{x['rate']:g}", f"{x['loss']:.5f}",
                f"{x['gap']:.0e}", f"{x['seconds']:.1f}",
                f"{x['blahut_seconds']:.1f} ({x['iterations']:,} steps)",
                f"{x['epsilon']:.3g}", f"{x['distortion']:.4f}",
            ]
            for x in alone
        ]  # fmt: skip
        out.append(table(heads, lines))
        heads = ["city", "nats", "ε", "nats alone: km", "ε alone: km (nats)"]
        heads += ["both: km", "gap", "s", "distortion: km"]
        lines = [
            [
                f"{x['city']} ({x['places']})", f"{x['rate']:g}", f"{x['epsilon']:.3g}",
                f"{x['alone']:.4f}", f"{x['metric']:.4f} ({x['metric_rate']:.3f})",
                f"{x['loss']:.4f}", f"{x['gap']:.0e}", f"{x['seconds']:.1f}",
                f"{x['distortion']:.4f}",
            ]
            for x in both
        ]  # fmt: skip
        out.append(table(heads, lines))
    if "notions" in results:
        heads = [
            "notion",
            "promised",
            "loss: km",
            "its ε per km",
            "best attack errs: km",
            "right guess",
        ]
        lines = [
            [
                x["notion"], f"{x['promised']:.3g}", f"{x['loss']:.3f}",
                "∞" if math.isinf(x["epsilon"]) else f"{x['epsilon']:.2f}",
                f"{x['distortion']:.3f}", f"{x['bayes']:.1%}",
            ]
            for x in results["notions"]
        ]  # fmt: skip
        out.append(table(heads, lines))
    return "\n\n".join(out)


def draw(results: dict[str, Any], path: Path) -> None:
    """Loss against ε for every case."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "optmech"
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(CASES), figsize=(11, 3.4), layout="constrained")
    names = {"laplace": "Laplace, scale W/ε", "remapped": "with the best remap", "loss": "optimum"}
    for axes, case in zip(panels, CASES, strict=True):
        own = [x for x in results["pufferfish"] if x["case"] == case]
        for key, style in zip(names, ("s--", "o-.", "D-"), strict=True):
            rates, losses = [x["epsilon"] for x in own], [x[key] for x in own]
            axes.plot(rates, losses, style, label=names[key])
        axes.axhline(own[0]["blind"], color="0.6", linewidth=1, label="always one answer")
        axes.set(xscale="log", yscale="log", title=case, xlabel="ε")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("mean absolute error")
    panels[0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ("pufferfish", "information", "large", "notions")
    parser.add_argument("--part", choices=parts, action="append", default=None)
    add_files(parser, RESULTS)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    asked = args.part or parts
    settle(args, *((FILE,) if {"information", "large"} & set(asked) else ()))
    results = json.loads(args.results.read_text()) if args.results.is_file() else {}
    for part in asked:
        print(part)
        run = {"pufferfish": pufferfish, "notions": notions,
               "information": lambda: information(args.data),
               "large": lambda: large(args.data)}  # fmt: skip
        results[part] = run[part]()
        results["machine"] = {"python": platform.python_version(), "numpy": version("numpy")}
        args.results.write_text(json.dumps(results, indent=1) + "\n")
    print(tables_of(results))
    if args.figure is not None:
        draw(results, args.figure)


if __name__ == "__main__":
    main()
