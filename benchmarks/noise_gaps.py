"""Gaps and seconds of noise for counts, sums, curves, one side, the plane and several releases.

python benchmarks/noise_gaps.py run      # results/noise-gaps.jsonl; what is there is not done again
python benchmarks/noise_gaps.py tables   # the largest gap and the longest time of every group

Seconds are of the processor. A group is one kind of call; its target is what the gap is to be.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optmech as om

RESULTS = Path(__file__).resolve().parent / "results" / "noise-gaps.jsonl"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "noise.md"
MARK = "<!-- table of benchmarks/noise_gaps.py -->"
EPSILONS = (0.1, 0.5, 1, 2, 5)
DELTAS = (1e-9, 1e-6, 1e-2)
LOSSES = ("absolute", "square")
SIZES = (12, 200_000)
TARGETS = {
    "histogram": 1e-3,
    "sum": 1e-3,
    "curve": 0.01,
    "real curve": 0.01,
    "only adds": 0.01,
    "plane": 0.03,
    "ten releases": 0.1,
}
Row = dict[str, Any]


def tasks() -> Iterator[Row]:
    """Every call, by its group."""
    for epsilon, delta, loss in itertools.product(EPSILONS, DELTAS, LOSSES):
        stated = {"epsilon": epsilon, "delta": delta, "loss": loss}
        yield {"group": "histogram"} | stated
        for size in SIZES:
            yield {"group": "sum", "size": size} | stated
    for mu, loss in itertools.product((0.5, 1, 2), LOSSES):
        yield {"group": "curve", "mu": mu, "size": 1, "loss": loss}
        yield {"group": "curve", "mu": mu, "size": 4, "loss": loss}
        yield {"group": "real curve", "mu": mu, "loss": loss}
    for epsilon, delta, loss in itertools.product((0.3, 1, 3), (1e-6, 1e-3), LOSSES):
        for size in (1, 4):
            stated = {"epsilon": epsilon, "delta": delta, "loss": loss}
            yield {"group": "only adds", "size": size} | stated
    for epsilon in (1, 3, 5):
        yield {"group": "plane", "epsilon": epsilon, "delta": 1e-5, "loss": "square"}
    for loss in LOSSES:
        yield {"group": "ten releases", "epsilon": 1, "delta": 1e-6, "loss": loss}


def _curved(task: Row) -> list[tuple[float, float]]:
    return om.noise.curve(gdp=task["mu"])


def _promise(task: Row) -> tuple[float, float]:
    return task["epsilon"], task["delta"]


CALLS: dict[str, Callable[[Row], Any]] = {
    "histogram": lambda t: om.noise.histogram(*_promise(t), loss=t["loss"]),
    "sum": lambda t: om.noise.clipped_sum(0, t["size"], *_promise(t), loss=t["loss"]),
    "curve": lambda t: om.noise.optimal(
        curve=_curved(t), loss=t["loss"], sensitivity=t["size"], gap=0.01
    ),
    "real curve": lambda t: om.noise.real(curve=_curved(t), loss=t["loss"], cells="auto", gap=0.01),
    "only adds": lambda t: om.noise.optimal(
        *_promise(t), loss=t["loss"], sensitivity=t["size"], support=(0, None), gap=1e-3
    ),
    "plane": lambda t: om.noise.radial(*_promise(t), loss=t["loss"]),
    "ten releases": lambda t: om.noise.for_releases(*_promise(t), 10, loss=t["loss"]),
}


def solved(task: Row) -> Row:
    """Loss, bound, gap and seconds."""
    start = time.process_time()
    found = CALLS[task["group"]](task)
    seconds = round(time.process_time() - start, 2)
    loss, bound = found.loss, found.lower_bound
    return task | {"value": loss, "bound": bound, "gap": 1 - bound / loss, "seconds": seconds}


def rows(results: Path) -> list[Row]:
    """What was measured."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def run(results: Path, groups: list[str], most: float, every: int) -> None:
    """Measure what is missing, for so many seconds at most."""
    done = [{k: v for k, v in row.items() if k not in _MEASURED} for row in rows(results)]
    started = time.monotonic()
    for task in itertools.islice(tasks(), 0, None, every):
        if task in done or (groups and task["group"] not in groups):
            continue
        if time.monotonic() - started > most:
            break
        row = solved(task)
        with results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        late = " MISSED" if row["gap"] > TARGETS[row["group"]] or row["seconds"] > 10 else ""
        print(json.dumps(task), f"gap {row['gap']:.1e}, {row['seconds']} s{late}", flush=True)


_MEASURED = frozenset({"value", "bound", "gap", "seconds"})


def table(found: list[Row]) -> str:
    """The worst of every group."""
    lines = ["| call | how many | largest gap | wanted | longest, s |", "|---|---|---|---|---|"]
    for group, target in TARGETS.items():
        own = [row for row in found if row["group"] == group]
        if own:
            gap, seconds = (max(row[name] for row in own) for name in ("gap", "seconds"))
            lines.append(f"| {group} | {len(own)} | {gap:.1e} | {target:g} | {seconds:.1f} |")
    return "\n".join(lines)


def onto_the_page(lines: str) -> None:
    """The table between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    start = page.index("\n", page.index(MARK)) + 1
    filled = f"{page[:start]}{lines}\n{page[page.index('<!-- end', start) :]}"
    PAGE.write_text(filled, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("run", "tables"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--groups", nargs="*", default=[], choices=list(TARGETS))
    parser.add_argument("--seconds", type=float, default=1e9, help="run: stop after so many")
    parser.add_argument("--every", type=int, default=1, help="run: only each so-many-th call")
    given = parser.parse_args()
    if given.part == "run":
        run(given.results, given.groups, given.seconds, given.every)
    else:
        lines = table(rows(given.results))
        print(lines)
        onto_the_page(lines)


if __name__ == "__main__":
    main()
