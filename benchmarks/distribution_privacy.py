"""Reproduces DP19 section 7 in kind: Figs. 2 to 6 and Tables 2, 3, on open data of New York.

    python benchmarks/distribution_privacy.py                   # every part, a few minutes
    python benchmarks/distribution_privacy.py --part table2     # one of them

The paper's check-ins are not public; these are the ones of the data folder (see --data), binned
into at most 276 population-balanced regions of Manhattan. Distances are in km, where the paper has
degrees:
r = 0.020 degrees is 2.2 km, eps_A = 100 per degree is 0.9 per km. Results go to
results/distribution_privacy.json, part by part, with the machine and the versions.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import optmech as om
from optmech.mechanisms import (
    planar_gaussian,
    planar_laplace,
    randomized_response,
    restricted_laplace,
    tupling,
)
from optmech.regions import Regions, attribute_distributions, quadrisect

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "distribution_privacy.json"
BOUNDS = (-74.02, 40.70, -73.93, 40.82)
AREAS = {
    "Manhattan": BOUNDS,
    "its south": (-74.02, 40.70, -73.93, 40.76),
    "its north": (-74.02, 40.76, -73.93, 40.82),
    "Brooklyn": (-74.02, 40.60, -73.90, 40.70),
}
KM_PER_DEGREE = 111.2
RADIUS = 0.020 * KM_PER_DEGREE
EUCLIDEAN = om.distances.euclidean()
DELTA = 0.001


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class Setting:
    """Regions, and the two distributions of every attribute."""

    def __init__(self, data: Path, bounds: tuple[float, float, float, float]) -> None:
        self.data = data
        checkins = rows(data / "fsq_nyc_semantic.csv")
        places = np.array([[float(r["lon"]), float(r["lat"])] for r in checkins])
        grid = om.Grid.geographic(11, 10, bounds)
        self.regions: Regions = quadrisect(grid, places, 276)
        home = np.array([r["type"].startswith("Home") for r in checkins])
        social = np.array([r["root"] in ("Food", "Nightlife Spot") for r in checkins])
        work = np.array([r["type"] == "Office" for r in checkins])
        rides = [r for r in rows(data / "citibike_nyc_201807_sample.csv") if r["gender"] in "12"]
        stations = np.array([[float(r["start_lon"]), float(r["start_lat"])] for r in rides])
        male = np.array([r["gender"] == "1" for r in rides])
        self.attributes = {
            name: self._pair(points, values)
            for name, points, values in (
                ("male/female", stations, male),
                ("social/less", places, social),
                ("work/non-work", places, work),
                ("home/out", places, home),
            )
        }

    def _pair(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = attribute_distributions(self.regions, points, values)
        return found["True"].weights, found["False"].weights

    def prior(self, name: str) -> om.Prior:
        lam0, lam1 = self.attributes[name]
        return om.Prior(self.regions, (lam0 + lam1) / 2)

    def base(self, per_degree: float, radius: float = RADIUS) -> om.Mechanism:
        return restricted_laplace(self.regions, per_degree / KM_PER_DEGREE, radius)


def overview(at: Setting) -> list[dict[str, Any]]:
    d = EUCLIDEAN(at.regions, at.regions)
    return [
        {
            "attribute": name,
            "regions": len(at.regions),
            "total_variation": float(np.abs(a - b).sum() / 2),
            "w_1": om.transport.wasserstein(a, b, d).value,
            "w_inf": om.transport.wasserstein(a, b, d, math.inf).value,
            "diameter": om.transport.diameter(a, b, d),
        }
        for name, (a, b) in at.attributes.items()
    ]


def figure2(at: Setting) -> list[dict[str, Any]]:
    """eps at delta = 0.001 and the loss, over k, eps_A and r, one at a time."""
    name = "male/female"
    out = []
    for k, per_degree, radius in (
        *((k, 100.0, RADIUS) for k in (1, 2, 5, 10, 20)),
        *((10, e, RADIUS) for e in (10.0, 50.0, 200.0, 500.0)),
        *((10, 100.0, r * KM_PER_DEGREE) for r in (0.005, 0.01, 0.03, 0.04)),
    ):
        made = tupling(at.base(per_degree, radius), k)
        found = made.epsilon(*at.attributes[name], DELTA)
        out.append(
            {
                "k": k,
                "eps_A_per_degree": per_degree,
                "radius_km": radius,
                "epsilon": [found.lower, found.upper],
                "loss_nearest_km": made.expected_loss(at.prior(name), EUCLIDEAN),
                "loss_all_km": made.all_points_loss(at.prior(name), EUCLIDEAN),
            }
        )
    return out


def figure3(at: Setting) -> list[dict[str, Any]]:
    """eps over k in different parts of the city, male/female, eps_A = 100 per degree."""
    out = []
    for area, bounds in AREAS.items():
        there = Setting(at.data, bounds)
        for k in (1, 2, 5, 10, 20):
            made = tupling(there.base(100.0), k)
            found = made.epsilon(*there.attributes["male/female"], DELTA)
            out.append(
                {
                    "area": area,
                    "regions": len(there.regions),
                    "k": k,
                    "epsilon": [found.lower, found.upper],
                }
            )
    return out


def figure4(at: Setting) -> list[dict[str, Any]]:
    """eps against the success of the Bayes rule, (1 + delta(0)) / 2 exactly, home/out, k = 10."""
    pair = at.attributes["home/out"]
    out = []
    for per_degree in (1.0, 30.0, 100.0, 300.0, 1000.0):
        made = tupling(at.base(per_degree), 10)
        found, success = made.epsilon(*pair, DELTA), made.delta(*pair, 0.0)
        out.append(
            {
                "eps_A_per_degree": per_degree,
                "epsilon": found.upper,
                "success": (1 + success.upper) / 2,
            }
        )
    return out


def figure5(at: Setting, name: str) -> list[dict[str, Any]]:
    """(eps, 0.001)-DistP against the loss: RR, PL, PG, TM, and the optimum at the eps of each."""
    lam0, lam1 = at.attributes[name]
    prior = at.prior(name)
    single: list[tuple[str, float, Callable[[float], om.Mechanism]]] = [
        *(("RR", e, lambda e: randomized_response(at.regions, e)) for e in (2.0, 5.0, 8.0)),
        *(("PL", e, lambda e: planar_laplace(at.regions, e)) for e in (0.3, 1.0, 3.0)),
        *(("PG", s, lambda s: planar_gaussian(at.regions, s)) for s in (4.0, 1.5, 0.6)),
    ]
    out = []
    for kind, parameter, make in single:
        m = make(parameter)
        epsilon = om.measures.distribution_epsilon(m, lam0, lam1, DELTA)
        loss = om.measures.expected_loss(m, prior, EUCLIDEAN)
        out.append({"mechanism": kind, "parameter": parameter, "epsilon": epsilon, "loss_km": loss})
    for per_degree in (10.0, 100.0, 1000.0):
        made = tupling(at.base(per_degree), 10)
        out.append(
            {
                "mechanism": "TM",
                "parameter": per_degree,
                "epsilon": made.epsilon(lam0, lam1, DELTA).upper,
                "loss_km": made.expected_loss(prior, EUCLIDEAN),
                "loss_all_km": made.all_points_loss(prior, EUCLIDEAN),
            }
        )
    for row in out:
        problem = om.Problem(
            prior=prior,
            loss=EUCLIDEAN,
            constraints=[om.DistributionPrivacy(row["epsilon"], [(lam0, lam1)], DELTA)],
        )
        started = time.perf_counter()
        design = om.solve(problem, gap=1e-4, time_limit=100)
        row["optimum_km"] = design.loss
        row["optimum_bound_km"] = design.lower_bound
        row["optimum_verified"] = design.verified
        row["optimum_seconds"] = time.perf_counter() - started
    return out


def table2(at: Setting) -> list[dict[str, Any]]:
    """Theorem 3 against the exact number, k = 10, eps_A = 10 per degree, r = 0.020 degrees."""
    out = []
    for name, pair in at.attributes.items():
        for k in (10, 100):
            made = tupling(at.base(10.0), k)
            for delta in (0.001, 0.01, 0.1):
                found = made.epsilon(*pair, delta)
                bound = made.theorem3(*pair, delta)
                out.append(
                    {
                        "attribute": name,
                        "k": k,
                        "delta": delta,
                        "theorem_3": bound if math.isfinite(bound) else None,
                        "exact": [found.lower, found.upper],
                    }
                )
    return out


def table3(at: Setting) -> list[dict[str, Any]]:
    """The least k for the paper's levels, eps_A = 100 per degree, r = 0.020 degrees."""
    out = []
    levels = {"male/female": 0.25, "social/less": 0.5, "work/non-work": 1.0, "home/out": 1.5}
    for name, epsilon in levels.items():
        least = None
        for k in range(1, 101):
            if tupling(at.base(100.0), k).delta(*at.attributes[name], epsilon).upper <= DELTA:
                least = k
                break
        out.append({"attribute": name, "epsilon": epsilon, "delta": DELTA, "k": least})
    return out


PARTS: dict[str, Callable[[Setting], list[dict[str, Any]]]] = {
    "overview": overview,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "figure5": lambda at: figure5(at, "male/female"),
    "figure6": lambda at: figure5(at, "home/out"),
    "figure6 social": lambda at: figure5(at, "social/less"),
    "figure6 work": lambda at: figure5(at, "work/non-work"),
    "table2": table2,
    "table3": table3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    args = parser.parse_args()
    if not args.data.is_dir():
        raise SystemExit(f"there is no data folder {args.data}: name it with --data")
    at = Setting(args.data, BOUNDS)
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for part in args.part or PARTS:
        started = time.perf_counter()
        found = PARTS[part](at)
        known[part] = {
            "seconds": round(time.perf_counter() - started, 1),
            "machine": platform.processor() or platform.machine(),
            "versions": {name: version(name) for name in ("optmech", "numpy", "scipy", "highspy")},
            "rows": found,
        }
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        print(f"{part}: {known[part]['seconds']} s", flush=True)
        for row in found:
            print("  ", row, flush=True)


if __name__ == "__main__":
    main()
