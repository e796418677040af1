"""Reproduces DP19 section 7 in kind: Figs. 3, 5, 6 and Tables 2, 3, on open data of New York.

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
from given import add_files, settle

import optmech as om
from optmech.mechanisms import (
    planar_gaussian,
    planar_laplace,
    randomized_response,
    restricted_laplace,
    tupling,
)
from optmech.spaces.observables import Regions, attribute_distributions, quadrisect

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "distribution_privacy.json"
BOUNDS = (-74.02, 40.70, -73.93, 40.82)
FILES = ("fsq_nyc_semantic.csv", "citibike_nyc_201807_sample.csv")
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
CARRIED = (0.03, 0.1, 0.3, 1.0, 3.0)
"""eps per km whose promise is carried over to the attributes."""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class Setting:
    """Regions, and the two distributions of every attribute."""

    def __init__(self, data: Path, bounds: tuple[float, float, float, float]) -> None:
        self.data = data
        checkins = rows(data / "fsq_nyc_semantic.csv")
        places = np.array([[float(r["lon"]), float(r["lat"])] for r in checkins])
        self.bounds = bounds
        self.regions: Regions = quadrisect(om.Grid.geographic(11, 10, bounds), places, 276)
        home = np.array([r["type"].startswith("Home") for r in checkins])
        social = np.array([r["root"] in ("Food", "Nightlife Spot") for r in checkins])
        work = np.array([r["type"] == "Office" for r in checkins])
        clock = np.array([int(r["local_time"][11:13]) for r in checkins])
        rides = [r for r in rows(data / "citibike_nyc_201807_sample.csv") if r["gender"] in "12"]
        stations = np.array([[float(r["start_lon"]), float(r["start_lat"])] for r in rides])
        male = np.array([r["gender"] == "1" for r in rides])
        start = np.array([int(r["starttime"][9:11]) for r in rides])
        self.labelled = {
            "male/female": (stations, male, start),
            "social/less": (places, social, clock),
            "work/non-work": (places, work, clock),
            "home/out": (places, home, clock),
        }
        """Places, whether they have the attribute, and the hour of the day."""
        self.attributes = {
            name: self.pair(points, values) for name, (points, values, _) in self.labelled.items()
        }
        self.users = np.array([r["user"] for r in checkins])

    @property
    def pairs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The attributes, and where the users live."""
        return {**self.attributes, "north/south": self.north_south()}

    def pair(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The distributions of those with the attribute and of those without."""
        found = attribute_distributions(self.regions, points, values)
        return found["True"].weights, found["False"].weights

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Which places lie in the bounds."""
        low, high = np.array(self.bounds[:2]), np.array(self.bounds[2:])
        return ((points >= low) & (points <= high)).all(axis=1)

    def north_south(self) -> tuple[np.ndarray, np.ndarray]:
        """Check-ins of users whose homes lie in the northern or southern half of the homes here."""
        places, home, _ = self.labelled["home/out"]
        of = self.inside(places)
        latitude = {
            user: float(np.median(places[of & home & (self.users == user), 1]))
            for user in np.unique(self.users[of & home])
        }
        middle = float(np.median(list(latitude.values())))
        known = of & np.isin(self.users, list(latitude))
        return self.pair(
            places[known], np.array([latitude[user] > middle for user in self.users[known]])
        )

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
        for name, (a, b) in at.pairs.items()
    ]


def carried(at: Setting) -> list[dict[str, Any]]:
    """What metric privacy of eps per km promises: ln Lambda both ways, the larger one."""
    d = EUCLIDEAN(at.regions, at.regions)
    out = []
    for name, (a, b) in at.pairs.items():
        row: dict[str, Any] = {
            "attribute": name,
            "w_inf": om.transport.wasserstein(a, b, d, math.inf).value,
            "carried": [],
        }
        for epsilon in CARRIED:
            both = om.guarantees.carry_over_many(epsilon * d, [a, b], [b, a])
            lower, upper = (max(getattr(c, end) for c in both) for end in ("lower", "upper"))
            row["carried"].append({"epsilon": epsilon, "lower": lower, "upper": upper})
        out.append(row)
    return out


def pointwise(at: Setting) -> list[dict[str, Any]]:
    """Planar Laplace of eps 1 per km: the outputs themselves, transport between rows, and ε W_1 or
    W_inf; the larger of both directions."""
    d = EUCLIDEAN(at.regions, at.regions)
    m = planar_laplace(at.regions, 1.0)
    known = om.divergences
    rates = {name: known.point_epsilon(m, name, EUCLIDEAN) for name in ("tv", "kl")}
    measured = {"tv": known.total_variation, "kl": known.kl}
    out = []
    for name, (a, b) in at.pairs.items():
        row: dict[str, Any] = {"attribute": name}
        both = ((a, b), (b, a))
        for kind, rate in rates.items():
            row[kind] = {
                "exact": max(measured[kind](m.push(p), m.push(q)) for p, q in both),
                "rows": max(known.by_transport(m, p, q, divergence=kind).epsilon for p, q in both),
                "metric": rate * om.transport.wasserstein(a, b, d).value,
            }
        row["delta"] = {
            "exact": max(known.hockey_stick(m.push(p), m.push(q), 0.5) for p, q in both),
            "rows": max(known.by_transport(m, p, q, epsilon=0.5).delta for p, q in both),
        }
        out.append(row)
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
    "carried": carried,
    "pointwise": pointwise,
    "figure3": figure3,
    "figure5": lambda at: figure5(at, "male/female"),
    "figure6": lambda at: figure5(at, "home/out"),
    "figure6 social": lambda at: figure5(at, "social/less"),
    "figure6 work": lambda at: figure5(at, "work/non-work"),
    "table2": table2,
    "table3": table3,
}


def run(
    about: str, parts: dict[str, Callable[[Setting], list[dict[str, Any]]]], results: Path
) -> None:
    """The command line: parts of a study, stored one by one."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--part", choices=parts, action="append", help="default: all")
    add_files(parser, results)
    args = parser.parse_args()
    settle(args, *FILES)
    results = args.results
    at = Setting(args.data, BOUNDS)
    known = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    for part in args.part or parts:
        started = time.perf_counter()
        found = parts[part](at)
        known[part] = {
            "seconds": round(time.perf_counter() - started, 1),
            "machine": platform.processor() or platform.machine(),
            "versions": {name: version(name) for name in ("optmech", "numpy", "scipy", "highspy")},
            "rows": found,
        }
        results.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        print(f"{part}: {known[part]['seconds']} s", flush=True)
        for row in found:
            print("  ", row, flush=True)


if __name__ == "__main__":
    run(__doc__, PARTS, RESULTS)
