"""Published numbers beside certified ones on the same instances: the tables of docs/literature.md.

python benchmarks/literature.py mind-the-gap --data FILE   # results/literature.jsonl
python benchmarks/literature.py dro                        # the same file
python benchmarks/literature.py cactus --data FOLDER       # cactus_L1_stds.csv, and so on
python benchmarks/literature.py tables                     # these on the page

``FOLDER`` has two files a norm, of numbers with commas between them: the bounds of the cost, and
the divergences that were reached. ``FILE`` is the paper's Table 1 as CSV: delta, epsilon,
reported_improvement_pct. What is in the results is not done again.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import optmech as om
from optmech.noise.known import gaussian_scale

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "literature.jsonl"
PAGE = HERE.parent / "docs" / "literature.md"
GAPS = (1e-3, 1e-4)
ROUNDED = 0.005
"""Per cent: published improvements have two digits after the point."""
DRO = {"paper": "dro", "epsilon": "3", "delta": "3/10", "published": [0.17045, 0.17055]}
"""A value of the supplement of "Differential privacy via distributionally robust optimization"."""
CACTUS = {"L1": "absolute", "L2": "square"}
EVERY = 5
"""Of the hundred values of a norm these are looked at: the fifth, the tenth, …"""
WIDEST = 0.02
FINEST = 64
Row = dict[str, Any]


def bracket(epsilon: str, delta: str, gap: float) -> Row:
    """The certified bracket of E|Z| at sensitivity 1."""
    start = time.process_time()
    design = om.noise.real(epsilon, delta, cells="auto", gap=gap)
    pure = om.noise.real(epsilon) if Fraction(epsilon) >= 8 else design
    loss = min(design.loss, pure.loss)
    return {
        "low": design.lower_bound,
        "high": loss,
        "cells": design.cells,
        "seconds": time.process_time() - start,
    }


def mind_the_gap(data: Path) -> Iterator[Row]:
    """Every cell of the table that has a number: an improvement on the analytic Gaussian's E|Z|."""
    for line in csv.DictReader(data.open(encoding="utf-8")):
        epsilon, delta, shown = (
            line[name] for name in ("epsilon", "delta", "reported_improvement_pct")
        )
        if shown in ("", "NA"):
            continue
        part = str(Fraction(delta))
        gauss = gaussian_scale(float(epsilon), float(delta), 1.0) * math.sqrt(2 / math.pi)
        ends = [gauss * (1 - (float(shown) + side) / 100) for side in (ROUNDED, -ROUNDED)]
        yield {
            "paper": "mind-the-gap",
            "epsilon": epsilon,
            "delta": part,
            "improvement": float(shown),
            "gaussian": gauss,
            "published": ends,
        }


def cactus(data: Path) -> Iterator[Row]:
    """Every fifth value of either norm: the divergence that was reached at sensitivity 1, as far as
    it was rounded, and the most that the noise costs on average."""
    for norm in CACTUS:
        costs, reached = (
            (data / f"cactus_{norm}_{name}.csv").read_text(encoding="utf-8").strip().split(",")
            for name in ("stds", "cactus")
        )
        for cost, shown in list(zip(costs, reached, strict=True))[EVERY - 1 :: EVERY]:
            digits = len(shown.partition(".")[2])
            half = Fraction(1, 2 * 10**digits)
            ends = [float(Fraction(shown) + side) for side in (-half, half)]
            yield {
                "paper": f"cactus-{norm}",
                "epsilon": cost,
                "delta": "0",
                "published": ends,
                "digits": digits,
            }


def divergences(row: Row) -> Row:
    """The certified bracket of the least divergence at this cost, on as many cells as it takes."""
    start = time.process_time()
    loss = CACTUS[row["paper"][-2:]]
    cost = Fraction(row["epsilon"]) ** (2 if loss == "square" else 1)
    cells = 16
    while True:
        design = om.noise.real(renyi=1, budget=cost, loss=loss, cells=cells)
        low, high = design.least_divergence(cost), design.divergence
        wide = high > low * (1 + WIDEST)
        if not wide or cells >= FINEST:
            break
        cells *= 2
    seconds = time.process_time() - start
    return {"low": low, "high": high, "cells": cells, "seconds": seconds}


def decided(row: Row) -> str:
    """What a bracket says of a published loss, known as far as it was rounded."""
    low, high = row["published"]
    if high < row["low"]:
        return "below"
    return "attained" if low >= row["high"] else "open"


def run(tasks: Iterator[Row], results: Path) -> None:
    """Add the rows that are not there, one after the other."""
    known = {(row["paper"], row["epsilon"], row["delta"]) for row in rows(results)}
    with results.open("a", encoding="utf-8") as out:
        for task in tasks:
            if (task["paper"], task["epsilon"], task["delta"]) in known:
                continue
            if task["paper"].startswith("cactus"):
                row = task | divergences(task)
                row["decided"] = decided(row)
            for gap in () if task["paper"].startswith("cactus") else GAPS:
                row = task | bracket(task["epsilon"], task["delta"], gap)
                row["decided"] = decided(row)
                if row["decided"] != "open":
                    break
            print(json.dumps(row), file=out, flush=True)
            print(
                row["epsilon"], row["delta"], row["decided"], f"{row['seconds']:.1f} s", flush=True
            )


def rows(results: Path) -> list[Row]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def table(results: Path) -> Iterator[str]:
    """One line for each ε of Mind the Gap's Table 1."""
    found = [row for row in rows(results) if row["paper"] == "mind-the-gap"]
    names = "ε", "cells", "below the certified minimum", "attained or more", "within the bracket"
    yield f"| {' | '.join(names)} | widest gap |"
    yield "|---" * (len(names) + 1) + "|"
    groups: dict[str, list[Row]] = {row["epsilon"]: [] for row in found}
    for row in found:
        groups[row["epsilon"]].append(row)
    for epsilon, group in [
        *sorted(groups.items(), key=lambda pair: float(pair[0])),
        ("all", found),
    ]:
        counts = [
            sum(row["decided"] == word for row in group) for word in ("below", "attained", "open")
        ]
        gap = max(1 - row["low"] / row["high"] for row in group)
        yield f"| {epsilon} | {len(group)} | {' | '.join(map(str, counts))} | {gap:.1g} |"


def means(results: Path) -> str:
    """Mean improvements on the analytic Gaussian: published, reached, and possible at most."""
    found = [row for row in rows(results) if row["paper"] == "mind-the-gap"]
    published = statistics.mean(row["improvement"] for row in found)
    reached, most = (
        statistics.mean(100 * (1 - row[end] / row["gaussian"]) for row in found)
        for end in ("high", "low")
    )
    return (
        f"published {published:.2f} %, reached here {reached:.2f} %, possible at most {most:.2f} %"
    )


def divergence_table(results: Path) -> Iterator[str]:
    """Every value of Cactus that was looked at, between the ends of its bracket."""
    yield "| norm | cost | published | certified bracket | width | published above the bound |"
    yield "|---|---|---|---|---|---|"
    for row in rows(results):
        if row["paper"].startswith("cactus"):
            low, high = row["low"], row["high"]
            shown = sum(row["published"]) / 2
            yield (
                f"| {row['paper'][-2:]} | {row['epsilon']} | {shown:.{row['digits']}f} | "
                f"[{low:.5g}, {high:.5g}] | {100 * (high / low - 1):.2f} % | "
                f"{100 * (shown / low - 1):.2f} % |"
            )


def tables(results: Path) -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in (
        ("Mind the Gap", "\n".join(table(results))),
        ("means", means(results)),
        ("Cactus", "\n".join(divergence_table(results))),
    ):
        begin, end = f"<!-- {name} of benchmarks/literature.py -->\n", f"\n<!-- end of {name} -->"
        start, stop = page.index(begin) + len(begin), page.index(end)
        page = page[:start] + text + page[stop:]
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=["mind-the-gap", "dro", "cactus", "tables"])
    parser.add_argument("--data", type=Path, help="the numbers of the paper, as CSV")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.paper == "tables":
        tables(args.results)
    elif args.paper == "dro":
        run(iter([DRO]), args.results)
    elif args.data is None or not args.data.exists():
        raise SystemExit("Give the paper's numbers with --data")
    elif args.paper == "cactus":
        run(cactus(args.data), args.results)
    else:
        run(mind_the_gap(args.data), args.results)


if __name__ == "__main__":
    main()
