"""W_1 and W_∞ beside POT's network simplex: processor seconds, and whether answers agree.

    python benchmarks/transport.py             # 300 to 2,000 points, some minutes on one core
    python benchmarks/transport.py --smoke     # small, into no file

Points are uniform in the unit square, weights Dirichlet(1), distances Euclidean. POT has no W_∞;
the value is confirmed by two of POT's plans: one moves no mass further than it, and none keeps all
mass within the next smaller distance.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from engines import ROOT, commit, processor, results
from tables import gap_text, table as markdown

RESULTS = ROOT / "benchmarks" / "results" / "transport.jsonl"
SIZES = (300, 500, 1000, 2000)
SEEDS = range(3)


def timed(function: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    """A result, and the processor seconds it took."""
    started = time.process_time()
    found = function(*arguments)
    return found, time.process_time() - started


def measure(size: int, seed: int) -> dict[str, object]:
    """One pair of distributions on ``size`` points each."""
    import ot

    import optmech as om

    rng = np.random.default_rng(seed)
    x, y = rng.random((2, size, 2))
    a, b = rng.dirichlet(np.ones(size), 2)
    d = np.hypot(*np.moveaxis(x[:, None] - y, 2, 0))
    one, ours = timed(om.transport.wasserstein, a, b, d)
    theirs, pot = timed(lambda: float(ot.emd2(a, b, d, numItermax=10**9)))
    far, bottleneck = timed(om.transport.wasserstein, a, b, d, "inf")
    next_smaller = d[d < far.value].max()
    too_far = [
        float(ot.emd2(a, b, (d > t) * 1.0, numItermax=10**9)) for t in (far.value, next_smaller)
    ]
    return {
        "size": size, "seed": seed, "w1": one.value, "w1_pot": theirs, "w1_seconds": ours,
        "w1_pot_seconds": pot, "winf": far.value, "winf_seconds": bottleneck,
        "mass_beyond": too_far[0], "mass_beyond_next_smaller": too_far[1],
    }  # fmt: skip


def agrees(line: dict[str, Any]) -> bool:
    """W_1 to rounding; W_∞ enough, and no smaller distance is."""
    same = abs(line["w1"] / line["w1_pot"] - 1) < 1e-12
    return same and line["mass_beyond"] < 1e-12 < line["mass_beyond_next_smaller"]


def about() -> dict[str, object]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "versions": {"optmech": commit(), "POT": version("pot"), "numpy": version("numpy")},
    }


def load(path: Path) -> list[dict]:
    return results(path)


def transport_table(rows: list[dict]) -> str:
    """Medians over the seeds, and the worst disagreement."""
    heads = [
        "points", "W_1: optmech s", "POT s", "relative difference",
        "W_∞: optmech s", "mass that must go further", "mass beyond the next smaller distance",
    ]  # fmt: skip
    lines = []
    for size in sorted({row["size"] for row in rows}):
        own = [row for row in rows if row["size"] == size]

        def median(name: str, own: list[dict] = own) -> str:
            return f"{np.median([row[name] for row in own]):.2f}"

        off = max(abs(row["w1"] / row["w1_pot"] - 1) for row in own)
        beyond = max(row["mass_beyond"] for row in own)
        least = min(row["mass_beyond_next_smaller"] for row in own)
        cells = [
            f"{size:,}", median("w1_seconds"), median("w1_pot_seconds"), gap_text(off),
            median("winf_seconds"), gap_text(beyond), gap_text(least),
        ]  # fmt: skip
        lines.append(cells)
    return markdown(heads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="50 points, printed only")
    parser.add_argument("--results", type=Path, default=RESULTS, help="a file of JSON lines")
    arguments = parser.parse_args()
    measure(20, 0)  # compiled code is in its cache, and loaded, from here on
    if arguments.smoke:
        line = measure(50, 0)
        print(json.dumps(line))
        if not agrees(line):
            raise SystemExit("answers differ")
        return
    done = {(row["size"], row["seed"]) for row in results(arguments.results)}
    for size in SIZES:
        for seed in SEEDS:
            if (size, seed) not in done:
                line = {**measure(size, seed), **about()}
                print(line, flush=True)
                with arguments.results.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
