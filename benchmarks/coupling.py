"""Loss at equal distribution privacy, with and without auxiliary input, on open data of New York.

    python benchmarks/coupling.py                    # every part, a few minutes
    python benchmarks/coupling.py --part frontier    # one of them

Secrets are 20 x 15 cells of Manhattan (lat 40.70-40.82, lon -74.02 to -73.93), attributes are
male/female (start of a bicycle ride) and home/out, social/less, work/non-work (category of a
check-in). Losses are in km, for equally likely attributes. Nothing is sampled, so that there are no
seeds: every privacy and loss is computed, and optima are certified. Results go to
results/coupling.json with machine and versions.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from distribution_privacy import BOUNDS, FILES, rows
from given import add_files, settle

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "coupling.json"
EUCLIDEAN = om.distances.euclidean()
DELTA = 0.001
LEVELS = {
    "male/female": (0.05, 0.1, 0.25),
    "social/less": (0.1, 0.5, 1.0),
    "work/non-work": (0.25, 1.0, 2.0),
    "home/out": (0.5, 1.0, 2.0),
}
DUMMIES = 10
RADIUS = 2.2


class Setting:
    """The cells, and the two samples of every attribute."""

    def __init__(self, data: Path) -> None:
        self.cells = om.Grid.geographic(20, 15, BOUNDS)
        self.distance = EUCLIDEAN(self.cells, self.cells)
        checkins = rows(data / "fsq_nyc_semantic.csv")
        places = np.array([[float(r["lon"]), float(r["lat"])] for r in checkins])
        rides = [r for r in rows(data / "citibike_nyc_201807_sample.csv") if r["gender"] in "12"]
        stations = np.array([[float(r["start_lon"]), float(r["start_lat"])] for r in rides])
        self.samples = {
            "male/female": (stations, np.array([r["gender"] == "1" for r in rides])),
            "social/less": (
                places,
                np.array([r["root"] in ("Food", "Nightlife Spot") for r in checkins]),
            ),
            "work/non-work": (places, np.array([r["type"] == "Office" for r in checkins])),
            "home/out": (places, np.array([r["type"].startswith("Home") for r in checkins])),
        }

    @cache  # noqa: B019
    def point(self, kind: str, rate: float) -> om.Mechanism:
        """A point mechanism of the list below."""
        return POINT[kind](self.cells, rate)

    def counts(self, name: str, chosen: np.ndarray | None = None) -> list[np.ndarray]:
        """How often each cell occurs with the attribute and without it, as whole numbers."""
        points, attribute = self.samples[name]
        found = self.cells.locate(points)
        kept = (found >= 0) & (True if chosen is None else chosen)
        return [
            np.bincount(found[kept & (attribute == value)], minlength=len(self.cells))
            for value in (True, False)
        ]


def geometric(cells: om.Grid, epsilon: float) -> om.Mechanism:
    """Geometric noise on row and column: epsilon per km of Manhattan distance."""
    width, height = cells.cell
    row = om.mechanisms.geometric(om.Domain(range(20), np.arange(20) * height), epsilon)
    column = om.mechanisms.geometric(om.Domain(range(15), np.arange(15) * width), epsilon)
    return om.Mechanism(cells, cells, np.kron(row.matrix, column.matrix))


POINT: dict[str, Callable[[om.Grid, float], om.Mechanism]] = {
    "randomised response": om.mechanisms.randomized_response,
    "geometric": geometric,
    "planar Laplace": om.mechanisms.planar_laplace,
    "exponential": om.mechanisms.exponential,
}


RATES = np.geomspace(0.1, 60, 101).tolist()
"""Parameters to choose from, 6.6 % apart: planar Laplace does not converge on cells for less."""


def largest(private: Callable[[float], bool]) -> float | None:
    """The largest of ``RATES`` that is private, by bisection; None where not even the least is."""
    low, high = 0, len(RATES)
    if not private(RATES[low]):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if private(RATES[middle]) else (low, middle)
    return RATES[low]


def table(at: Setting) -> Iterator[dict[str, Any]]:
    """Loss of every mechanism at (ε, 0.001)-distribution privacy; parameters are fitted to ε."""
    for name, levels in LEVELS.items():
        lams = at.counts(name)
        pair = tuple(lam / lam.sum() for lam in lams)
        prior = om.Prior(at.cells, pair[0] + pair[1])
        yield common(at, name, lams)
        for epsilon in levels:
            row: dict[str, Any] = {"attribute": name, "epsilon": epsilon, "delta": DELTA}
            row |= {kind: noisy(at, kind, pair, prior, epsilon) for kind in POINT}
            row |= tupled(at, pair, prior, epsilon)
            problem = om.Problem(
                prior=prior,
                loss=EUCLIDEAN,
                constraints=[om.DistributionPrivacy(epsilon, [pair], DELTA)],
            )
            design = om.solve(problem, gap=1e-4, time_limit=60)
            row["optimal, no auxiliary input"] = design.loss
            row["its bound"] = design.lower_bound
            row["its seconds"] = design.seconds
            family = om.mechanisms.optimal_target(lams, at.distance, epsilon, delta=DELTA)
            row["optimal target"] = family.loss
            row["optimal target's bound"] = family.lower_bound
            row["optimal target's seconds"] = family.seconds
            yield row


def common(at: Setting, name: str, lams: list[np.ndarray]) -> dict[str, Any]:
    """Coupling mechanisms, whose outputs reveal nothing: three targets, and the best."""
    mean = sum(lam / lam.sum() for lam in lams)
    towards = {
        "uniform": np.ones(len(at.cells), dtype=int),
        "the other attribute": lams[1],
        "the mean": mean,
    }
    out: dict[str, Any] = {"attribute": name, "epsilon": 0.0, "delta": 0.0}
    for target, weights in towards.items():
        design = om.mechanisms.coupling_design(lams, weights, at.distance)
        out[f"coupling to {target}"] = design.loss
        worst = om.mechanisms.coupling_design(lams, weights, at.distance, math.inf)
        out[f"coupling to {target}, W_inf"] = [worst.loss, max(worst.worst_moves)]
    best = om.mechanisms.optimal_target(lams, at.distance)
    out |= {"optimal target": best.loss, "optimal target's bound": best.lower_bound}
    return out


def noisy(
    at: Setting, kind: str, pair: tuple[np.ndarray, ...], prior: om.Prior, epsilon: float
) -> float | None:
    """The loss of a point mechanism at the largest rate that keeps (ε, 0.001)."""

    def private(rate: float) -> bool:
        return om.measures.distribution_delta(at.point(kind, rate), *pair, epsilon) <= DELTA

    rate = largest(private)
    if rate is None:
        return None
    return om.measures.expected_loss(at.point(kind, rate), prior, EUCLIDEAN)


def tupled(
    at: Setting, pair: tuple[np.ndarray, ...], prior: om.Prior, epsilon: float
) -> dict[str, Any]:
    """Tupling with 10 dummies at the largest rate that keeps (ε, 0.001)."""

    def made(rate: float) -> om.mechanisms.Tupling:
        base = om.mechanisms.restricted_laplace(at.cells, rate, RADIUS)
        return om.mechanisms.tupling(base, DUMMIES)

    def private(rate: float) -> bool:
        return made(rate).delta(*pair, epsilon).upper <= DELTA

    rate = largest(private)
    if rate is None:
        return {"tupling, nearest": None, "tupling, all": None}
    best = made(rate)
    return {
        "tupling, nearest": best.expected_loss(prior, EUCLIDEAN),
        "tupling, all": best.all_points_loss(prior, EUCLIDEAN),
    }


def frontier(at: Setting) -> Iterator[dict[str, Any]]:
    """loss(ε) with δ = 0 and with δ = 0.001."""
    grid = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    for name in LEVELS:
        lams = at.counts(name)
        end = om.mechanisms.no_obfuscation_epsilon(lams)
        for delta in (0.0, DELTA):
            found = om.mechanisms.target_frontier(lams, at.distance, grid, delta=delta)
            yield {
                "attribute": name,
                "delta": delta,
                "no obfuscation at": end if math.isfinite(end) else None,
                "epsilon": grid,
                "loss": [design.loss for design in found],
                "lower_bound": [design.lower_bound for design in found],
                "seconds": sum(design.seconds for design in found),
            }


def estimated(at: Setting) -> Iterator[dict[str, Any]]:
    """Mechanisms made from every second observation, used on the others."""
    for name in LEVELS:
        points, _ = at.samples[name]
        first = np.arange(len(points)) % 2 == 0
        guessed, actual = at.counts(name, first), at.counts(name, ~first)
        before = [lam / lam.sum() for lam in actual]
        for outside in ("target", "nearest"):
            design = om.mechanisms.optimal_target(guessed, at.distance, outside=outside)
            found = design.under(actual)
            yield {
                "attribute": name,
                "outside": outside,
                "epsilon at delta 0.001": _epsilon(found.outputs),
                "unprotected": _epsilon(before),
                "total variation": found.divergences["tv"],
                "total variation unprotected": om.divergences.total_variation(*before),
                "kl": _finite(found.divergences["kl"]),
                "D_inf": _finite(found.epsilon),
                "closeness": _finite(found.closeness),
                "loss": float(
                    np.mean(
                        [
                            lam @ (m.matrix * at.distance).sum(axis=1)
                            for lam, m in zip(before, design.mechanisms, strict=True)
                        ]
                    )
                ),
            }


def _epsilon(outputs: Any) -> float | None:
    both = ((outputs[0], outputs[1]), (outputs[1], outputs[0]))
    return _finite(max(om.measures.hockey_stick_curve(*pair).epsilon(DELTA) for pair in both))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


PARTS: dict[str, Callable[[Setting], Iterator[dict[str, Any]]]] = {
    "table": table,
    "frontier": frontier,
    "estimated": estimated,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    settle(args, *FILES)
    at = Setting(args.data)
    known = json.loads(args.results.read_text(encoding="utf-8")) if args.results.exists() else {}
    for part in args.part or PARTS:
        started = time.perf_counter()
        found = []
        for row in PARTS[part](at):
            found.append(row)
            print(part, json.dumps(row), flush=True)
        known[part] = {
            "seconds": round(time.perf_counter() - started, 1),
            "machine": platform.processor() or platform.machine(),
            "versions": {name: version(name) for name in ("optmech", "numpy", "scipy", "highspy")},
            "rows": found,
        }
        args.results.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
