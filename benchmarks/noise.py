"""Noise that people use, beside the certified optimum: the table and the figure of docs/noise.md.

python benchmarks/noise.py run        # results/noise.jsonl; what is there is not done again
python benchmarks/noise.py figures    # docs/figures/noise.png, and the table on the page
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "noise.jsonl"
PAGE = HERE.parent / "docs" / "noise.md"
FIGURE = HERE.parent / "docs" / "figures" / "noise.png"
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
DELTAS = (1e-6, 1e-3)
STEPS = (1, 5)
LOSSES: dict[str, dict[str, Any]] = {
    "absolute": {"loss": "absolute"},
    "square": {"loss": "square"},
    "threshold": {"loss": "threshold", "width": 5},
}
MARKS = ("<!-- table of benchmarks/noise.py -->", "<!-- end -->")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
Row = dict[str, Any]


def tasks() -> Iterator[Row]:
    """Every problem."""
    for steps in STEPS:
        for delta in DELTAS:
            for epsilon in EPSILONS:
                for name in LOSSES:
                    yield {"steps": steps, "delta": delta, "epsilon": epsilon, "loss": name}


def solved(task: Row) -> Row:
    """The optimum, its bound, and the losses of known noise."""
    start = time.process_time()
    design = om.noise.optimal(
        task["epsilon"], task["delta"], sensitivity=task["steps"], **LOSSES[task["loss"]]
    )
    seconds = time.process_time() - start
    known = om.noise.peers(task["epsilon"], task["delta"], sensitivity=task["steps"])
    return task | {
        "value": design.loss,
        "bound": design.lower_bound,
        "gap": design.gap,
        "seconds": round(seconds, 3),
        "peers": {name: peer.loss(design.measure) for name, peer in known.items()},
    }


def rows() -> list[Row]:
    """What was measured."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def run() -> None:
    """Measure what is missing."""
    done = [{name: row[name] for name in ("steps", "delta", "epsilon", "loss")} for row in rows()]
    for task in tasks():
        if task not in done:
            with RESULTS.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(solved(task)) + "\n")


def table(found: list[Row]) -> str:
    """Loss over the certified lower bound of all noise, at δ = 1e-6."""
    names = list(found[0]["peers"])
    head = f"| Δ | loss | ε | optimum | gap | {' | '.join(names)} |"
    lines = [head, "|" + "---|" * (5 + len(names))]
    for row in found:
        if row["delta"] != 1e-6 or row["epsilon"] not in (0.1, 1.0, 4.0):
            continue
        ratios = (row["peers"][name] / row["bound"] if row["bound"] else None for name in names)
        shown = ("–" if r is None else f"{r:.3f}" if r < 1000 else f"{r:.0e}" for r in ratios)
        lines.append(
            f"| {row['steps']} | {row['loss']} | {row['epsilon']:g} | {row['value']:.6g} | "
            f"{row['gap']:.0e} | {' | '.join(shown)} |"
        )
    return "\n".join(lines)


def figures() -> None:
    """The figure, and the table between its marks on the page."""
    from matplotlib.figure import Figure

    found = rows()
    figure = Figure(figsize=(11, 9.2))
    panels = figure.subplots(len(LOSSES), len(DELTAS) * len(STEPS), sharex=True)
    for across, (steps, delta) in enumerate((s, d) for s in STEPS for d in DELTAS):
        for down, loss in enumerate(LOSSES):
            axes = panels[down][across]
            chosen = [
                row for row in found
                if (row["steps"], row["delta"], row["loss"]) == (steps, delta, loss)
                and row["bound"] > 0
            ]  # fmt: skip
            for name, colour in zip(found[0]["peers"], COLOURS, strict=True):
                axes.plot(
                    [row["epsilon"] for row in chosen],
                    [row["peers"][name] / row["bound"] for row in chosen],
                    "o-", ms=3, lw=1, color=colour, label=name,
                )  # fmt: skip
            axes.set(xscale="log", yscale="log", ylim=(0.9, 30))
            axes.axhline(1, color="#999999", lw=0.8)
            if down == 0:
                axes.set_title(f"Δ = {steps}, δ = {delta:g}", fontsize=10)
            if across == 0:
                axes.set_ylabel(f"{loss} loss / lower bound")
            if down == len(LOSSES) - 1:
                axes.set_xlabel("ε")
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)
    page = PAGE.read_text(encoding="utf-8")
    start, end = (page.index(mark) for mark in MARKS)
    filled = f"{page[: start + len(MARKS[0])]}\n{table(found)}\n{page[end:]}"
    PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("run", "figures"))
    {"run": run, "figures": figures}[parser.parse_args().part]()
