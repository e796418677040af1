"""A month of reports about real traces, attacked: fresh draws against sticky ones (docs/sticky.md).

    python benchmarks/sticky.py                      # ../shared/data, results/sticky.json
    python benchmarks/sticky.py --table              # the table of the page, from the results

Eleven users of GeoLife in Beijing, with five to nine recorded days each, live through 30 days: the
recorded days one after the other, again and again, staying where they were last seen. They report
five times an hour through one packed mechanism (64 cells, ln 2 per km, 24 bits) whose prior is the
other users'. Two adversaries know the prior, the mechanism and that reports stick, but no key:

* one who wants the place of the nights, and takes all reports from 0 to 6 o'clock to be of one;
* one who follows the user with a Markov chain estimated from the other users, forward and backward.
  For fresh draws that is the optimal attack under this chain. Where reports stick, one that repeats
  within an epoch is free at the same place, and at another a new draw; returning to a place is
  taken for a new draw too, as keeping all draws in mind is beyond computing.

Both answer with the point of least expected distance under their posterior; what is measured is
the distance to where the user was, in km. Everything is drawn from one seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from optmech_traces import Fixes, MarkovPrior

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "sticky.json"
FIXES = "geolife_beijing_11users.csv"
BOX = (116.26, 39.94, 116.38, 40.03)
SIDE, DAYS, HOURLY, SEED = 8, 30, 5, 20261122
DAY = 86_400
STEPS = 24 * HOURLY
EPSILON, RADIUS, DELTA = "ln 2", 1.5, 1e-6
PERIODS = {
    "fresh": None,
    "hour": 3600,
    "day": DAY,
    "month": DAYS * DAY,
}
ORDERS = {"fresh": 1.125, "hour": 1.125, "day": 1.5, "month": 9.0}
"""The Rényi order of each line, fixed for about as many draws as it has."""
EUCLIDEAN = om.distances.euclidean()
Floats = np.ndarray[Any, np.dtype[np.float64]]


def months(fixes: Fixes, grid: om.Grid) -> dict[str, np.ndarray]:
    """Cells of every user, every twelve minutes of 30 days, shape (DAYS * STEPS,); -1 outside."""
    out = {}
    users = np.array(fixes.users)
    for user in sorted(set(fixes.users)):
        own = users == user
        seconds, xy = fixes.times[own], fixes.xy[own]
        day = seconds // DAY
        days = []
        for one in np.unique(day):
            here = day == one
            clock = np.arange(STEPS) * (DAY / STEPS)
            # the last fix before, or the first of the day
            last = np.searchsorted(seconds[here] % DAY, clock, side="right") - 1
            days.append(grid.locate(xy[here][np.maximum(last, 0)]))
        out[user] = np.concatenate([days[k % len(days)] for k in range(DAYS)])
    return out


def estimate(posterior: Floats, apart: Floats) -> np.ndarray:
    """Cells of least expected distance, for posteriors (T, n)."""
    return np.asarray((posterior @ apart).argmin(axis=1))


def smoothed(chain: Floats, start: Floats, factor: Any, first: Floats, steps: int) -> Floats:
    """Posteriors (T, n) of a path with weights chain(x, y) factor(t)(x, y)."""
    forward, backward = np.zeros((2, steps, len(start)))
    forward[0] = start * first
    forward[0] /= forward[0].sum()
    weights = [None, *(chain * factor(t) for t in range(1, steps))]
    for t in range(1, steps):
        forward[t] = forward[t - 1] @ weights[t]
        forward[t] /= forward[t].sum()
    backward[-1] = 1.0
    for t in range(steps - 2, -1, -1):
        backward[t] = weights[t + 1] @ backward[t + 1]
        backward[t] /= backward[t].sum()
    found = forward * backward
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def attack(
    reports: np.ndarray, epochs: np.ndarray, sticky: bool, matrix: Floats, chain: MarkovPrior
) -> Floats:
    """Posteriors of the adversary who follows, for the reports of one user."""
    table = np.asarray(chain.transition(0))
    diagonal = np.arange(len(table))

    def factor(t: int) -> Floats:
        out = np.tile(matrix[:, reports[t]], (len(table), 1))
        if sticky and epochs[t] == epochs[t - 1]:
            out[diagonal, diagonal] = float(reports[t] == reports[t - 1])
        return out

    return smoothed(table, np.asarray(chain.initial), factor, matrix[:, reports[0]], len(reports))


def agrees_with_the_library(reports: np.ndarray, matrix: Floats, chain: MarkovPrior) -> None:
    """For fresh draws the posteriors are those of ``MarkovPrior.given``."""
    mine = attack(reports, np.zeros(len(reports)), False, matrix, chain)
    theirs = chain.given({t: matrix[:, o] for t, o in enumerate(reports)})
    assert np.allclose(mine, theirs.marginals(len(reports)), rtol=1e-9, atol=1e-12)


def night(
    reports: np.ndarray, epochs: np.ndarray, sticky: bool, log: Floats, prior: Floats
) -> Floats:
    """Posterior of the place of the nights: reports that stick count once an epoch."""
    pairs = np.unique(np.column_stack([epochs, reports]), axis=0) if sticky else None
    used = reports if pairs is None else pairs[:, 1]
    score = np.log(prior) + log[:, used].sum(axis=1)
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum())


def run(data: Path, users: int | None = None) -> dict[str, Any]:
    """All figures, of the first users or of all."""
    began = time.process_time()
    fixes = Fixes.from_csv(data / FIXES, user="user", time="utc", x="lon", y="lat")
    grid = om.Grid.geographic(SIDE, SIDE, BOX)
    apart = EUCLIDEAN(grid, grid)
    lives = months(fixes, grid)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in PERIODS}
    for number, (user, cells) in enumerate(list(lives.items())[:users]):
        others = [path for name, path in lives.items() if name != user]
        counts = np.bincount(
            np.concatenate(others)[np.concatenate(others) >= 0], minlength=len(grid)
        )
        prior = om.Prior(grid, (counts + 1.0) / (counts + 1.0).sum())
        base = MarkovPrior.random_walk(grid, EUCLIDEAN, 0.5)
        chain = MarkovPrior.from_sequences(grid, others, smoothing=1.0, base=base)
        design = om.solve(
            om.Problem(prior, EUCLIDEAN, constraints=[om.MetricPrivacy(EPSILON, EUCLIDEAN)])
        )
        with tempfile.TemporaryDirectory() as folder:
            packed = om.pack(design, Path(folder) / "city.omm", bits=24)
        log = np.log(np.maximum(packed.matrix, 1e-300))
        seen = np.flatnonzero(cells >= 0)
        path, when = cells[seen], seen * (DAY / STEPS)
        at_night = (when % DAY) < 6 * 3600
        home = int(np.bincount(path[at_night], minlength=len(grid)).argmax())
        rng = np.random.default_rng([SEED, number])
        key = hashlib.sha256(f"{SEED} {user}".encode()).digest()
        for name, period in PERIODS.items():
            ledger = om.devices.Ledger(packed, EPSILON, RADIUS, delta=DELTA, order=ORDERS[name])
            labels = grid.labels
            if period is None:
                reports = np.zeros(len(path), dtype=int)
                for cell in np.unique(path):
                    here = np.flatnonzero(path == cell)
                    entropy = rng.integers(0, 256, (len(here), packed.draw_bytes), dtype=np.uint8)
                    reports[here] = [grid.index(o) for o in packed.reports(labels[cell], entropy)]
                for cell, count in zip(*np.unique(path, return_counts=True), strict=True):
                    ledger.enter(labels[int(cell)], times=int(count))
            else:
                sticky = om.devices.StickyReports(packed, key, period=period, ledger=ledger)
                reports = np.array(
                    [
                        grid.index(sticky.report(labels[c], t))
                        for c, t in zip(path, when, strict=True)
                    ]
                )
            epochs = (when // (period or 1)).astype(int)
            posterior = attack(reports, epochs, period is not None, packed.matrix, chain)
            if period is None and number == 0:
                agrees_with_the_library(reports[:60], packed.matrix, chain)
            guess = estimate(posterior, apart)
            place = night(
                reports[at_night], epochs[at_night], period is not None, log, prior.weights
            )
            home_guess = int(estimate(place[None], apart)[0])
            blind = int(estimate(prior.weights[None], apart)[0])
            single = estimate(prior.weights[:, None].T * packed.matrix[:, reports].T, apart)
            rows[name].append(
                {
                    "reports": len(path),
                    "draws": sum(ledger.draws.values()),
                    "blind": float(apart[path, blind].mean()),
                    "single": float(apart[path, single].mean()),
                    "following": float(apart[path, guess].mean()),
                    "night": float(apart[home, home_guess]),
                    "night blind": float(apart[home, blind]),
                    "plain": ledger.plain,
                    "rows": ledger.rows,
                    "composed": ledger.composed,
                    "loss": float(apart[path, reports].mean()),
                }
            )
        print(f"{user}: {len(path):,} reports, {time.process_time() - began:.0f} s", flush=True)
    mean = {
        name: {field: float(np.mean([row[field] for row in own])) for field in own[0]}
        for name, own in rows.items()
    }
    return {
        "users": len(lives),
        "mean": mean,
        "by user": rows,
        "seconds": time.process_time() - began,
        "machine": platform.machine(),
        "numpy": version("numpy"),
    }


def table(results: dict[str, Any]) -> str:
    """The page's table."""
    lines = [
        "| reports | draws | loss | one report | all reports, following | the place of the nights "
        "| plainly, 1.5 km | rows used | composed, δ = 10⁻⁶ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    names = {
        "fresh": "a fresh draw each time",
        "hour": "sticky for an hour",
        "day": "sticky for a day",
        "month": "sticky for the month",
    }
    for name, words in names.items():
        row = results["mean"][name]
        lines.append(
            f"| {words} | {row['draws']:,.0f} | {row['loss']:.2f} | {row['single']:.2f} "
            f"| {row['following']:.2f} | {row['night']:.2f} | {row['plain']:,.0f} "
            f"| {row['rows']:,.0f} | {row['composed']:,.0f} |"
        )
    row = results["mean"]["fresh"]
    lines.append(
        f"| none (the prior alone) | 0 | | {row['blind']:.2f} | {row['blind']:.2f} "
        f"| {row['night blind']:.2f} | 0 | 0 | 0 |"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--users", type=int, help="the first so many; default: all")
    add_files(parser, RESULTS)
    parser.add_argument("--table", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    if not args.table:
        settle(args, FIXES)
        args.results.write_text(
            json.dumps(run(args.data, args.users), indent=1) + "\n", encoding="utf-8"
        )
    print(table(json.loads(args.results.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
