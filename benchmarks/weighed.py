"""The heuristics, weighed: loss over the certified optimum, true ε over all pairs, seconds, memory.

    python benchmarks/weighed.py rome 300          # one place, every method in a process of its own
    python benchmarks/weighed.py new-york 300      # check-ins on about so many cells of Manhattan
    python benchmarks/weighed.py montreal          # car sharing in 249 zones, which optmech ships
    python benchmarks/weighed.py rome 300 --write FILE.npz   # prior, loss and log ratios as arrays
    python benchmarks/weighed.py table             # the tables of docs/city.md
    python benchmarks/weighed.py figure --write docs/figures/weighed.svg

Seconds are those of the processor, over all threads. Results go to results/weighed.jsonl; what is
there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from child import peak_memory, violation
from city import CHECKINS, rome
from everywhere_rome import FILES
from given import add_files, settle
from privacy_games.store import Store

import optmech as om
from optmech.problem import Constraint

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "weighed.jsonl"
SEED, DRAWS = 7, 4_000
HAVERSINE = om.distances.haversine()
NEAR = {"rome": 0.8, "new-york": 0.8, "montreal": 2.0}
"""km up to which pairs are stated by the method that states near ones only: PAnDA's 0.8, and more
where zones are wide."""
EPSILON = {"rome": 5.0, "new-york": 2.0, "montreal": 1.0}
Matrix = np.ndarray
Made = tuple[np.ndarray, float | None]
"""A mechanism, and the lower bound that its method proved."""


def new_york(data: Path, count: int) -> om.Problem:
    """Check-ins in the part of Manhattan below Central Park's north, in square cells."""
    with (data / "fsq_nyc_pois.csv").open() as stream:
        known = {r["poi"]: (float(r["lon"]), float(r["lat"])) for r in csv.DictReader(stream)}
    with (data / "fsq_nyc_checkins.csv").open() as stream:
        places = np.array([known[row["poi"]] for row in csv.DictReader(stream)])
    low, high = np.array([-74.02, 40.70]), np.array([-73.93, 40.80])
    places = places[((places > low) & (places < high)).all(axis=1)]
    wide, tall = (high - low) * [111.32 * np.cos(np.radians(40.75)), 110.57]
    side = np.sqrt(wide * tall / count)
    columns, rows = round(wide / side), round(tall / side)
    at = np.floor((places - low) / (high - low) * [columns, rows]).astype(int)
    visits = np.bincount(at[:, 1] * columns + at[:, 0], minlength=rows * columns)
    some = np.flatnonzero(visits)
    middle = low + (np.column_stack([some % columns, some // columns]) + 0.5) * (high - low) / [
        columns,
        rows,
    ]
    cells = om.Domain(map(str, some), points=middle, unit="km", coordinates="lonlat")
    return _stated(om.Prior(cells, visits[some] / visits[some].sum()), EPSILON["new-york"])


def montreal() -> om.Problem:
    """The gallery's zones at a larger ε."""
    return _stated(om.load_problem("montreal").prior, EPSILON["montreal"])


def _stated(prior: om.Prior, epsilon: float) -> om.Problem:
    return om.Problem(prior, HAVERSINE, constraints=[om.MetricPrivacy(epsilon, HAVERSINE)])


def problem_of(place: str, size: int, data: Path) -> om.Problem:
    """The problem of a place's name."""
    if place == "rome":
        return rome(data, size)
    return new_york(data, size) if place == "new-york" else montreal()


def apart(problem: om.Problem) -> np.ndarray:
    """km between all secrets."""
    return np.asarray(HAVERSINE(problem.secrets, problem.secrets))


def exponential(problem: om.Problem, epsilon: float) -> Matrix:
    weights = np.exp(-epsilon / 2 * np.asarray(HAVERSINE(problem.secrets, problem.observables)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def laplace(problem: om.Problem, epsilon: float) -> Matrix:
    """Planar Laplace noise and the nearest report, from equally likely radii and angles: an
    estimate of a mechanism, whose ε is that of the noise."""
    scale = [
        111.32 * np.cos(np.radians(problem.secrets.require_points("draw")[:, 1].mean())),
        110.57,
    ]
    places = problem.observables.require_points("draw") * scale
    rng = np.random.default_rng(SEED)
    angle, radius = rng.uniform(0, 2 * np.pi, DRAWS), rng.gamma(2, 1 / epsilon, DRAWS)
    noise = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    out = np.zeros((len(problem.secrets), len(places)))
    for row, at in zip(out, problem.secrets.require_points("draw") * scale, strict=True):
        noisy = at + noise
        square = (noisy**2).sum(axis=1)[:, None] - 2 * noisy @ places.T + (places**2).sum(axis=1)
        row[:] = np.bincount(square.argmin(axis=1), minlength=len(places)) / DRAWS
    return out


def with_pairs(problem: om.Problem, constraint: Constraint, **how: Any) -> Matrix:
    """The optimum of the same problem under another constraint."""
    other = om.Problem(problem.prior, problem.loss, problem.observables, constraints=[constraint])
    return np.asarray(om.solve(other, **how).matrix)


def neighbours(problem: om.Problem, epsilon: float, count: int, **how: Any) -> Matrix:
    """Only the pairs of every secret and its nearest ones, both ways, are stated, and what follows
    from them along paths."""
    distance, labels = apart(problem), problem.secrets.labels
    edges = [
        (labels[i], labels[j], float(distance[i, j]))
        for i, near in enumerate(np.argsort(distance, axis=1)[:, 1 : count + 1])
        for j in near
    ]
    return with_pairs(problem, om.constraints.PolicyGraph(epsilon, edges), **how)


METHODS: dict[str, Callable[[om.Problem, str, float], Matrix | Made]] = {
    "exponential": lambda p, place, limit: exponential(p, EPSILON[place]),
    "planar Laplace": lambda p, place, limit: laplace(p, EPSILON[place]),
    "6 nearest": lambda p, place, limit: neighbours(
        p, EPSILON[place], 6, gap=1e-2, time_limit=limit
    ),
    "near pairs": lambda p, place, limit: with_pairs(
        p,
        om.MetricPrivacy(EPSILON[place], HAVERSINE, threshold=NEAR[place]),
        gap=1e-2,
        time_limit=limit,
    ),
    "spanner 1.1": lambda p, place, limit: spanned(p, 1.1, limit),
    "spanner 1.5": lambda p, place, limit: spanned(p, 1.5, limit),
    "spanner 2": lambda p, place, limit: spanned(p, 2.0, limit),
    "50 cells": lambda p, place, limit: coarse(p, 50, limit),
    "ours to 0.1": lambda p, place, limit: ours(p, 0.1, limit),
    "ours to 0.01": lambda p, place, limit: ours(p, 0.01, limit),
    "ours to 0.0001": lambda p, place, limit: ours(p, 1e-4, limit),
}


def ours(problem: om.Problem, gap: float, limit: float) -> Made:
    design = om.solve(problem, gap=gap, time_limit=limit, resolution=0)
    return np.asarray(design.matrix), design.lower_bound


def spanned(problem: om.Problem, stretch: float, limit: float) -> Matrix:
    profile = om.Profile(reductions=(f"spanner:{stretch:g}",))
    return np.asarray(om.solve(problem, profile, gap=1e-2, time_limit=limit).matrix)


def coarse(problem: om.Problem, cells: int, limit: float) -> Matrix:
    return np.asarray(om.solve(problem, resolution=cells, time_limit=limit).matrix)


def one(place: str, size: int, data: Path, method: str, limit: float) -> dict[str, Any]:
    """What a method's mechanism is worth."""
    problem = problem_of(place, size, data)
    statement = problem.statement
    begun = time.process_time()
    made = METHODS[method](problem, place, limit)
    matrix, bound = made if isinstance(made, tuple) else (made, None)
    seconds = round(time.process_time() - begun, 2)
    joint = statement.prior[:, None] * matrix
    return {
        "loss": float((joint * statement.loss).sum()),
        "remapped": float((joint.T @ statement.loss).min(axis=1).sum()),
        "epsilon": violation(matrix, np.array(statement.log_ratio))[0],
        "seconds": seconds,
        "memory": peak_memory("self"),
        "bound": bound,
    }


def table(store: Store) -> str:
    """Markdown, a table for every place."""
    lines: list[str] = []
    for record in store.records.values():
        task, found = record["task"], record["found"]
        best = found["ours to 0.0001"]["bound"]
        lines += ["", f"{task['place']} {task['size'] or ''}".strip() + f": bound {best:.5g}", ""]
        lines += [
            "| mechanism | over the bound | remapped | ε | seconds | MiB |",
            "|---|" + "---|" * 5,
        ]
        for name, values in found.items():
            lines.append(
                f"| {name} | {values['loss'] / best:.3f} | {values['remapped'] / best:.3f} | "
                f"{values['epsilon']:.4g} | {values['seconds']:.1f} | {values['memory']:,} |"
            )
    return "\n".join(lines)


def figure(store: Store, path: Path) -> None:
    """Loss over the certified bound against the true ε, a panel for every place."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    records = list(store.records.values())
    drawing, panels = plt.subplots(1, len(records), figsize=(11, 4.2), sharey=True)
    for panel, record in zip(panels, records, strict=True):
        found = record["found"]
        best = found["ours to 0.0001"]["bound"]
        panel.axvline(1, color="0.6", linewidth=0.8)
        panel.axhline(1, color="0.6", linewidth=0.8)
        for number, (name, values) in enumerate(found.items()):
            true = values["epsilon"] if np.isfinite(values["epsilon"]) else 1.0
            panel.plot(values["loss"] / best, true, "oovvvvv^sss"[number], label=name)
        panel.set_title(f"{record['task']['place']} ({best:.3g})")
        panel.set_xlabel("expected loss over the certified bound")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xticks([1, 1.5, 2, 3], ["1", "1.5", "2", "3"])
        panel.set_xticks([], minor=True)
        panel.set_yticks([1, 2, 4, 7], ["1", "2", "4", "7"])
        panel.set_yticks([], minor=True)
    panels[0].set_ylabel("true ε over the stated one")
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="lower center", ncols=6, frameon=False, fontsize=8)
    drawing.tight_layout(rect=(0, 0.12, 1, 1))
    drawing.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("place", choices=(*EPSILON, "table", "figure"))
    parser.add_argument("size", type=int, nargs="?", default=0)
    parser.add_argument("--method", choices=METHODS, help="only this one, printed")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of any one solve")
    add_files(parser, RESULTS)
    parser.add_argument("--write", type=Path, help="write the problem as arrays, and stop")
    args = parser.parse_args()
    if args.place == "table":
        print(table(Store(args.results)))
        return
    if args.place == "figure":
        figure(Store(args.results), args.write)
        return
    settle(args, *{"rome": FILES, "new-york": CHECKINS}.get(args.place, ()))
    store = Store(args.results)
    if args.write:
        given = problem_of(args.place, args.size, args.data).statement
        np.savez(
            args.write, prior=given.prior, loss=given.loss, log_ratio=np.array(given.log_ratio)
        )
        return
    if args.method:
        print(json.dumps(one(args.place, args.size, args.data, args.method, args.limit)))
        return
    task = {"place": args.place, "size": args.size}
    if store.find(task):
        return
    found = {}
    for method in METHODS:
        command = [sys.executable, __file__, *sys.argv[1:], "--method", method]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        found[method] = json.loads(done.stdout)
        print(method, done.stdout.strip(), flush=True)
    store.add(task, {"found": found})


if __name__ == "__main__":
    main()
