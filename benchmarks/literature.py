"""Published numbers beside certified ones on the same instances: the tables of docs/literature.md.

python benchmarks/literature.py mind-the-gap --data FILE   # results/literature.jsonl
python benchmarks/literature.py dro --data FOLDER          # dro_L1.csv and dro_L2.csv
python benchmarks/literature.py cactus --data FOLDER       # cactus_L1_stds.csv, and so on
python benchmarks/literature.py ogpm                       # needs no data
python benchmarks/literature.py tables                     # these on the page

Without ``--data`` the published numbers are those that the committed results have.

``FOLDER`` has two files a norm, of numbers with commas between them: the bounds of the cost, and
the divergences that were reached. ``FILE`` is the paper's Table 1 as CSV: delta, epsilon,
reported_improvement_pct. What is in the results is not done again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from optmech_noise.baselines import gaussian_scale

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "literature.jsonl"
PAGE = HERE.parent / "docs" / "literature.md"
GAPS = (1e-3, 1e-4)
ROUNDED = 0.005
"""Per cent: published improvements have two digits after the point."""
DRO = {"paper": "dro", "epsilon": "3", "delta": "3/10", "published": [0.17045, 0.17055]}
"""A value of the supplement of "Differential privacy via distributionally robust optimization"."""
DRO_GAP = 2e-3
CACTUS = {"L1": "absolute", "L2": "square"}
EVERY = 5
"""Of the hundred values of a norm these are looked at: the fifth, the tenth, …"""
SEGMENTS = 20, 40
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


def truncated_laplace(epsilon: float, delta: float, power: int) -> float:
    """E|Z|^power of the truncated Laplace law at sensitivity 1 (Geng, Ding, Guo and Kumar 2020)."""
    end = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
    beyond = math.exp(-epsilon * end) / -math.expm1(-epsilon * end)
    if power == 1:
        return 1 / epsilon - end * beyond
    return 2 / epsilon**2 - (end**2 + 2 * end / epsilon) * beyond


def dro(data: Path) -> Iterator[Row]:
    """The optima that the per cents imply by which the truncated Laplace law is above them: of the
    optimum where that is above 1, and of 1 elsewhere; and the value of the supplement."""
    yield DRO
    for norm, power in (("L1", 1), ("L2", 2)):
        for line in csv.DictReader((data / f"dro_{norm}.csv").open(encoding="utf-8")):
            epsilon, delta = line["epsilon"], line["delta"]
            known = truncated_laplace(float(epsilon), float(delta), power)
            ends = []
            for side in (ROUNDED, -ROUNDED):
                share = (float(line["per_cent"]) + side) / 100
                ends.append(known / (1 + share) if known > 1 + share else known - share)
            yield {
                "paper": f"dro-{norm}",
                "epsilon": epsilon,
                "delta": str(Fraction(delta)),
                "published": ends,
                "per_cent": float(line["per_cent"]),
            }


def optimum(row: Row) -> Row:
    """The certified bracket at sensitivity 1, on as many cells as it takes."""
    start = time.process_time()
    loss = CACTUS[row["paper"][-2:]]
    cells = 2
    while True:
        design = om.noise.real(row["epsilon"], row["delta"], loss=loss, cells=cells, gap=DRO_GAP)
        if design.gap <= DRO_GAP or cells >= FINEST // 2:
            break
        cells *= 2
    seconds = time.process_time() - start
    low, high = design.lower_bound, design.loss
    return {"low": low, "high": high, "cells": cells, "seconds": seconds}


def ogpm() -> Iterator[Row]:
    """The worst mean error on [0, 1] of the piecewise mechanism, 1/(1 + e^{ε/2}), and lines of more
    and more segments."""
    for epsilon in ("1", "2", "4"):
        for segments in SEGMENTS:
            known = 1 / (1 + math.exp(float(epsilon) / 2))
            yield {
                "paper": "ogpm",
                "epsilon": epsilon,
                "delta": f"{segments} segments",
                "published": [known, known],
                "cells": segments,
            }


def on_line(row: Row) -> Row:
    """The least worst error of any mechanism that is private on [0, 1], from both sides."""
    start = time.process_time()
    line = om.Mesh.line(0, 1, row["cells"])
    private = om.DifferentialPrivacy(row["epsilon"], everywhere=line)
    problem = om.Problem(
        om.Prior.uniform(line.domain),
        om.distances.euclidean(),
        constraints=[private],
        objective="worst_loss",
    )
    design = om.solve(problem)
    seconds = time.process_time() - start
    return {"low": design.lower_bound, "high": design.loss, "seconds": seconds}


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
        design = om.noise.least_divergence(1, cost, loss=loss, cells=cells)
        low, high = design.least_divergence(cost), design.divergence
        wide = high > low * (1 + WIDEST)
        if not wide or cells >= FINEST:
            break
        cells *= 2
    seconds = time.process_time() - start
    return {"low": low, "high": high, "cells": cells, "seconds": seconds}


def published(paper: str) -> Iterator[Row]:
    """The numbers of a paper that the committed results have."""
    stated = (
        "paper",
        "epsilon",
        "delta",
        "published",
        "improvement",
        "gaussian",
        "per_cent",
        "digits",
    )
    for row in rows(RESULTS):
        if row["paper"].startswith(paper):
            yield {name: row[name] for name in stated if name in row}


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
            if task["paper"].startswith("dro-"):
                row = task | optimum(task)
                row["decided"] = decided(row)
            if task["paper"] == "ogpm":
                row = task | on_line(task)
                row["decided"] = decided(row)
            for gap in () if task["paper"] == "ogpm" or "-L" in task["paper"] else GAPS:
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


def implied_table(results: Path) -> Iterator[str]:
    """For each ε how far the implied optima are from the certified brackets, in per cent."""
    names = "norm", "ε", "cells", "bracket at δ = 0.05", "implied there", "beyond a bracket"
    yield f"| {' | '.join(names)} | widest gap |"
    yield "|---" * (len(names) + 1) + "|"
    found = [row for row in rows(results) if row["paper"].startswith("dro-")]
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        groups.setdefault((row["paper"][-2:], row["epsilon"]), []).append(row)
    for (norm, epsilon), group in groups.items():
        away = [apart(row) for row in group]
        one = next(row for row in group if row["delta"] == "1/20")
        gap = max(1 - row["low"] / row["high"] for row in group)
        shown = statistics.mean(one["published"])
        yield (
            f"| {norm} | {float(epsilon):g} | {len(group)} | [{one['low']:.6g}, {one['high']:.6g}] "
            f"| {shown:.5g} | {min(away):+.2f} % to {max(away):+.2f} % | {gap:.1g} |"
        )


def line_table(results: Path) -> Iterator[str]:
    """The piecewise mechanism beside lines of more and more segments."""
    names = "ε", "published", "attained for every number", "no mechanism below", "segments"
    yield f"| {' | '.join(names)} | published above |"
    yield "|---" * (len(names) + 1) + "|"
    for row in rows(results):
        if row["paper"] == "ogpm":
            known = row["published"][0]
            yield (
                f"| {row['epsilon']} | {known:.5f} | {row['high']:.5f} | {row['low']:.5f} | "
                f"{row['cells']} | {100 * (known / row['high'] - 1):.0f} % |"
            )


def apart(row: Row) -> float:
    """By how many per cent of the larger of it and 1 an implied optimum is beyond its bracket."""
    low, high = row["published"]
    most = max(row["low"], 1.0)
    if high < row["low"]:
        return float(100 * (high - row["low"]) / most)
    return float(100 * max(0.0, low - row["high"]) / most)


def implied(results: Path) -> str:
    """How many implied optima are within the per cent that the paper's bounds are apart."""
    found = [row for row in rows(results) if row["paper"].startswith("dro-")]
    near = sum(abs(apart(row)) <= 1 for row in found)
    return f"{near} of {len(found)} implied optima lie within 1 % of the certified bracket"


def supplement(results: Path) -> str:
    """The bracket beside the supplement's value."""
    row = next(row for row in rows(results) if row["paper"] == "dro")
    return f"[{row['low']:.6f}, {row['high']:.6f}], with {row['cells']} cells,"


def tables(results: Path) -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in (
        ("Mind the Gap", "\n".join(table(results))),
        ("means", means(results)),
        ("Cactus", "\n".join(divergence_table(results))),
        ("DRO", "\n".join(implied_table(results))),
        ("implied", implied(results)),
        ("DRO at (3, 0.3)", supplement(results)),
        ("OGPM", "\n".join(line_table(results))),
    ):
        begin, end = f"<!-- {name} of benchmarks/literature.py -->\n", f"\n<!-- end of {name} -->"
        start, stop = page.index(begin) + len(begin), page.index(end)
        page = page[:start] + text + page[stop:]
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=["mind-the-gap", "dro", "cactus", "ogpm", "tables"])
    parser.add_argument("--data", type=Path, help="the numbers of the paper, as CSV")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th number")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.paper == "tables":
        tables(args.results)
        return
    if args.data is not None and not args.data.exists():
        raise SystemExit(f"there is no {args.data}: docs/data.md says what it is")
    if args.paper == "ogpm":
        tasks = ogpm()
    elif args.data is None:
        tasks = published(args.paper)
    else:
        tasks = {"dro": dro, "cactus": cactus, "mind-the-gap": mind_the_gap}[args.paper](args.data)
    run(itertools.islice(tasks, 0, None, args.every), args.results)


if __name__ == "__main__":
    main()
