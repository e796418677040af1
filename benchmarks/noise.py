"""Noise that people use, beside the certified optimum: the table and the figure of docs/noise.md.

python benchmarks/noise.py run        # results/noise.jsonl; what is there is not done again
python benchmarks/noise.py more       # results/noise-more.jsonl: Rényi, pairs, extremes
python benchmarks/noise.py tables     # these on the page
python benchmarks/noise.py figures    # docs/figures/noise.png, and the tables on the page
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "noise.jsonl"
OTHERS = HERE / "results" / "noise-more.jsonl"
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


def rows(results: Path = RESULTS) -> list[Row]:
    """What was measured."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def run(results: Path, every: int) -> None:
    """Measure what is missing."""
    names = ("steps", "delta", "epsilon", "loss")
    done = [{name: row[name] for name in names} for row in rows(results)]
    for task in itertools.islice(tasks(), 0, None, every):
        if task not in done:
            row = solved(task)
            with results.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
            print(task, row["value"], f"gap {row['gap']:.0e}", flush=True)


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


EXTREMES: tuple[Row, ...] = (
    *(
        {"steps": 20, "delta": delta, "epsilon": epsilon, "loss": loss}
        for epsilon in (0.05, 0.1)
        for delta in (0, 1e-6, 1e-2)
        for loss in ("absolute", "square")
    ),
    {"steps": 1, "delta": 0, "epsilon": 8, "loss": "threshold", "width": 3},
    {"steps": 20, "delta": 0, "epsilon": 8, "loss": "absolute"},
    {"steps": 20, "delta": 1e-2, "epsilon": 8, "loss": "square"},
)
RENYI: tuple[Row, ...] = tuple(
    {"order": order, "epsilon": epsilon, "steps": steps, "loss": loss}
    for order in (2, 8)
    for steps in (1, 5)
    for epsilon in (0.1, 1)
    for loss in ("absolute", "square")
)
PAIRS: tuple[Row, ...] = tuple(
    {"norm": norm, "steps": steps, "epsilon": epsilon, "delta": delta, "loss": loss}
    for norm, steps in (("l1", 1), ("l1", 3), ("l2", 2), ("linf", 1))
    for epsilon in (0.5, 1, 4)
    for delta, loss in ((0, "absolute"), (1e-3, "square"))
    if epsilon > 0.5 or steps == 1
)


def extreme(task: Row) -> Row:
    """The ends of what is searched."""
    asked = {name: task[name] for name in ("loss", "width") if name in task}
    return measured(
        task,
        lambda: om.noise.optimal(
            task["epsilon"], task["delta"], sensitivity=task["steps"], **asked
        ),
    )


def renyi(task: Row) -> Row:
    """The optimum, and the discrete Gaussian of the same divergence."""
    found = measured(
        task,
        lambda: om.noise.rdp(
            (task["order"], task["epsilon"]), sensitivity=task["steps"], loss=task["loss"]
        ),
    )
    variance = task["order"] * task["steps"] ** 2 / (2 * task["epsilon"])
    k = np.arange(-int(40 * variance**0.5), int(40 * variance**0.5) + 1)
    law = np.exp(-(k**2) / (2 * variance))
    power = 1 if task["loss"] == "absolute" else 2
    return found | {"gaussian": float(law @ np.abs(k) ** power / law.sum())}


def pairs(task: Row) -> Row:
    """The optimum in the norm of the change, and independent geometric noise."""
    found = measured(
        task,
        lambda: om.noise.for_pairs(
            task["epsilon"], task["delta"], norm=task["norm"],
            sensitivity=task["steps"], loss=task["loss"],
        ),
    )  # fmt: skip
    # a change of both numbers by (a, b) costs rate (a + b): the largest l1 norm of a change
    widest = {"l1": 1, "l2": 2**0.5, "linf": 2}[task["norm"]] * task["steps"]
    b = float(np.exp(-task["epsilon"] / np.floor(widest + 1e-9)))
    k = np.arange(-int(45 / -np.log(b)), int(45 / -np.log(b)) + 1)
    one = (1 - b) / (1 + b) * b ** np.abs(k)
    x, y = np.abs(np.meshgrid(k, k))
    size = {"l1": x + y, "l2": np.hypot(x, y), "linf": np.maximum(x, y)}[task["norm"]]
    cost = size if task["loss"] == "absolute" else size**2
    return found | {"independent": float(one @ cost @ one)}


def measured(task: Row, make: Callable[[], Any]) -> Row:
    """Loss, bound, gap and seconds of a design."""
    start = time.process_time()
    design = make()
    seconds = round(time.process_time() - start, 2)
    loss, bound = design.loss, design.lower_bound
    return task | {"value": loss, "bound": bound, "gap": design.gap, "seconds": seconds}


def more() -> None:
    """Measure what is missing of the other tables."""
    known = others()
    for part, tasks_, solve in (
        ("extremes", EXTREMES, extreme), ("renyi", RENYI, renyi), ("pairs", PAIRS, pairs)
    ):  # fmt: skip
        for task in tasks_:
            if not any(row["part"] == part and task.items() <= row.items() for row in known):
                with OTHERS.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({"part": part} | solve(task)) + "\n")


def others() -> list[Row]:
    """What was measured of them."""
    if not OTHERS.exists():
        return []
    return [json.loads(line) for line in OTHERS.read_text(encoding="utf-8").splitlines()]


def small_tables() -> dict[str, str]:
    """The tables of Rényi promises, pairs and extremes, by the marks that they stand after."""
    made: dict[str, list[str]] = {
        "Rényi table": [
            "| order | Δ | ε | loss | optimum | gap | discrete Gaussian | s |",
            "|---|---|---|---|---|---|---|---|",
        ],
        "table of pairs": [
            "| norm | Δ | ε | δ | loss | optimum | gap | independent geometric | s |",
            "|---|---|---|---|---|---|---|---|---|",
        ],
        "table of extremes": [
            "| Δ | ε | δ | loss | optimum | gap | s |",
            "|---|---|---|---|---|---|---|",
        ],
    }
    for row in others():
        end = f"{row['gap']:.0e}"
        value = f"{row['value']:.6g}"
        if row["part"] == "renyi":
            made["Rényi table"].append(
                f"| {row['order']} | {row['steps']} | {row['epsilon']} | {row['loss']} | {value} | "
                f"{end} | {row['gaussian'] / row['bound']:.3f} | {row['seconds']} |"
            )
        elif row["part"] == "pairs":
            made["table of pairs"].append(
                f"| {row['norm']} | {row['steps']} | {row['epsilon']} | {row['delta']:g} | "
                f"{row['loss']} | {value} | {end} | {row['independent'] / row['bound']:.3f} | "
                f"{row['seconds']} |"
            )
        else:
            made["table of extremes"].append(
                f"| {row['steps']} | {row['epsilon']} | {row['delta']:g} | {row['loss']} | "
                f"{value} | {end} | {row['seconds']} |"
            )
    return {name: "\n".join(lines) for name, lines in made.items()}


def small() -> None:
    """These tables onto the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in small_tables().items():
        start = page.index(f"<!-- {name} of benchmarks/noise.py -->")
        start = page.index("\n", start) + 1
        page = f"{page[:start]}{lines}\n{page[page.index('<!-- end', start) :]}"
    PAGE.write_text(page, encoding="utf-8")


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
    small()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("run", "more", "tables", "figures"))
    parser.add_argument("--every", type=int, default=1, help="run: only each so-many-th problem")
    parser.add_argument("--results", type=Path, default=RESULTS, help="run: where they go")
    args = parser.parse_args()
    if args.part == "run":
        run(args.results, args.every)
    else:
        {"more": more, "tables": small, "figures": figures}[args.part]()
