"""City scale: Rome's crossings as secrets, all pairs stated, and grids too large for a program.

    python benchmarks/city.py rome 1000            # one size, to 1e-3, saved and checked
    python benchmarks/city.py grid 70              # cells a side, a bound from 256 cells
    python benchmarks/city.py table                # the tables of docs/city.md

Rome after PAnDA (CCS 2025): crossings drawn from a box of 10 km, the first 100 of them as reports,
haversine, ε = 5 per km, loss |road(task, s) - road(task, o)| for one task. Seconds are of the wall
clock, and those of the processor, over all threads. Results go to results/city.jsonl; what is there
is not done again.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from child import peak_memory
from everywhere_rome import FILES, Rome, read
from given import add_files, settle
from privacy_games.store import Store
from scipy.sparse.csgraph import dijkstra

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "city.jsonl"
CHECKINS = ("fsq_nyc_pois.csv", "fsq_nyc_checkins.csv")
REPORTS, SEED, BOX, EPSILON = 100, 7, 10.0, 5.0
EUCLIDEAN = om.distances.euclidean()
Found = dict[str, Any]


def rome(data: Path, count: int, reports: int = REPORTS) -> om.Problem:
    """``count`` crossings of the box as secrets, the first ``reports`` of them as reports."""
    place = Rome(data)
    inside = np.flatnonzero((np.abs(place.points) < BOX / 2).all(axis=1))
    rng = np.random.default_rng(SEED)
    chosen, task = rng.choice(inside, count, replace=False), rng.choice(inside)
    way = dijkstra(place.roads, indices=task, directed=False)
    chosen = chosen[np.isfinite(way[chosen])]
    reported = chosen[:reports]
    degrees = read(data / "rome_osm_nodes.csv.gz")[:, 1:3]
    secrets, observables = (
        om.Domain(map(str, some), points=degrees[some], unit="km", coordinates="lonlat")
        for some in (chosen, reported)
    )
    return om.Problem(
        om.Prior.uniform(secrets),
        np.abs(way[chosen][:, None] - way[reported]),
        observables,
        constraints=[om.MetricPrivacy(EPSILON, om.distances.haversine())],
    )


def grid(side: int, data: Path | None = None) -> om.Problem:
    """Unit cells, ε = 0.1 per cell, Euclidean loss; a uniform prior, or that of the check-ins of
    New York in ``data``, on as many cells between their 1st and 99th percentiles."""
    cells = om.Grid(side, side)
    prior = om.Prior.uniform(cells)
    if data is not None:
        with (data / "fsq_nyc_pois.csv").open() as stream:
            known = {r["poi"]: (float(r["lat"]), float(r["lon"])) for r in csv.DictReader(stream)}
        with (data / "fsq_nyc_checkins.csv").open() as stream:
            places = np.array([known[row["poi"]] for row in csv.DictReader(stream)])
        low, high = np.percentile(places, [1, 99], axis=0)
        at = np.floor((places - low) / (high - low) * side).astype(int)
        at = at[((at >= 0) & (at < side)).all(axis=1)]
        visits = np.bincount(at[:, 0] * side + at[:, 1], minlength=side**2)
        prior = om.Prior(cells, visits / visits.sum())
    return om.Problem(prior, EUCLIDEAN, constraints=[om.MetricPrivacy(0.1, EUCLIDEAN)])


def designed(problem: om.Problem, **how: Any) -> Found:
    """A design, its file, and the check of it."""
    begun, wall = time.process_time(), time.monotonic()
    reached: Found = {}

    def follow(text: str) -> None:
        # those of smaller problems are not called gaps
        if ", gap " in text:
            gap = float(text.rsplit(", gap ", 1)[1])
            for level in (0.1, 0.05, 0.01, 1e-3):
                if gap <= level:
                    now = (time.monotonic() - wall, time.process_time() - begun)
                    reached.setdefault(f"{level:g}", [round(seconds, 1) for seconds in now])

    design = om.solve(problem, progress=follow, **how)
    found = {
        "loss": design.loss, "bound": design.lower_bound, "gap": design.gap, "reached": reached,
        "seconds": round(time.process_time() - begun, 1), "memory": peak_memory("self"),
        "wall": round(time.monotonic() - wall, 1), "load": round(os.getloadavg()[0], 1),
        "engine": design.engine, "why": design.engine_reason,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.json"
        design.save(path)
        found["file_mib"] = round(path.stat().st_size / 2**20, 1)
        begun = time.process_time()
        report = om.check(path)
        found["check_seconds"] = round(time.process_time() - begun, 1)
    assert report.passed, report.faults
    return found


def table(store: Store) -> str:
    """The lines of the page's tables."""
    lines = []
    for record in store.records.values():
        task, reached = record["task"], record.get("reached", {})
        times = " | ".join(
            "{:.0f} ({:.0f})".format(*reached[level]) if level in reached else ""
            for level in ("0.1", "0.05", "0.01", "0.001")
        )
        lines.append(
            f"| {task['part']} {task['size']} | {times} | {record['gap']:.2g} | "
            f"{record['wall']:.0f} ({record['seconds']:.0f}) | {record['load']} | "
            f"{record['memory']:,} | {record['file_mib']} | {record['check_seconds']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rome", "grid", "table"))
    parser.add_argument("size", type=int, nargs="?", default=0)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of any one solve")
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--checkins", action="store_true", help="grid: their prior")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "table":
        print(table(Store(args.results)))
        return
    checkins = CHECKINS if args.checkins else ()
    settle(args, *(FILES if args.what == "rome" else checkins))
    store = Store(args.results)
    task = {"part": args.what, "size": args.size}
    if args.what == "grid":
        task |= {"cells": args.cells, "checkins": args.checkins}
    if store.find(task):
        return
    if args.what == "rome":
        problem = rome(args.data, args.size)
        found = designed(problem, gap=args.gap, time_limit=args.limit, resolution=0)
    else:
        problem = grid(args.size, args.data if args.checkins else None)
        found = designed(problem, resolution=args.cells, time_limit=args.limit)
    print(json.dumps(store.add(task, found)))


if __name__ == "__main__":
    main()
