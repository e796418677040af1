"""Figures and tables of docs/everywhere.md, from results alone."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from privacy_games.pages import filled, table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "everywhere.md"
FIGURE = HERE.parent / "docs" / "figures" / "everywhere-convergence.svg"
Lines = list[dict[str, Any]]


def read(path: Path) -> Lines:
    """The results, one task a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(results: Path, *, check: bool) -> None:
    """Fill the page and draw the figure; with ``check`` compare the page instead.

    Raises
    ------
    SystemExit
        With ``check``, where the page says something else.
    """
    lines = read(results)
    text = PAGE.read_text(encoding="utf-8")
    made = filled(text, sections(lines))
    if check:
        if made != text:
            raise SystemExit(f"{PAGE.name} does not say what the results say")
        return
    PAGE.write_text(made, encoding="utf-8")
    draw(lines, FIGURE)


def sections(lines: Lines) -> dict[str, str]:
    """The generated parts of the page, by name."""
    return {
        "convergence": _convergence(lines),
        "adaptive": _adaptive(lines),
        "rome": _rome(lines),
        "others": _others(lines),
        "grids": _grids(lines),
        "limits": _limits(lines),
        "effort": _effort(lines),
    }


def best_bound(lines: Lines, prior: str) -> float:
    """The largest proved lower bound of the square."""
    return max(
        line["lower_bound"]
        for line in lines
        if line["task"]["part"] == "bound" and line["task"]["prior"] == prior
    )


def uniform(lines: Lines, prior: str) -> Lines:
    """Equal triangles, the widest first."""
    own = [
        line
        for line in lines
        if line["task"]["part"] == "uniform" and line["task"]["prior"] == prior
    ]
    return sorted(own, key=lambda line: -line["task"]["width"])


def adapted(lines: Lines, prior: str) -> list[list[float]]:
    """Vertices and loss of every adapted mesh."""
    return next(
        line["meshes"]
        for line in lines
        if line["task"]["part"] == "adapted" and line["task"]["prior"] == prior
    )


def _convergence(lines: Lines) -> str:
    from everywhere_square import EPSILON, PRIORS

    rows = []
    for prior in PRIORS:
        least = best_bound(lines, prior)
        for line in uniform(lines, prior):
            loss, width = line["loss"], line["task"]["width"]
            rows.append(
                (
                    prior,
                    f"{EPSILON * width:g}",
                    f"{line['vertices']:,}",
                    f"{loss:.5f}",
                    f"{least:.5f}",
                    f"{100 * (loss / least - 1):.1f} %",
                    f"{line['processor_seconds']:.1f}",
                )
            )
    head = ("prior", "ε·width", "vertices", "certified loss", "bound", "above it", "processor s")
    return table(head, rows)


def _adaptive(lines: Lines) -> str:
    from everywhere_square import PRIORS

    rows = []
    for prior in PRIORS:
        counts, losses = (np.array(part) for part in zip(*adapted(lines, prior), strict=True))
        for line in uniform(lines, prior):
            reached = bool(losses.min() <= line["loss"] <= losses.max())
            # between two adapted meshes, in proportion to logarithms
            about = np.exp(np.interp(-line["loss"], -losses, np.log(counts)))
            rows.append(
                (
                    prior,
                    f"{line['loss']:.5f}",
                    f"{line['vertices']:,}",
                    f"{about:.0f}" if reached else f"more than {counts.max():,}",
                )
            )
    return table(("prior", "loss", "vertices, equal", "vertices, adapted, about"), rows)


def city(lines: Lines, part: str) -> dict[float, dict[str, Any]]:
    """The results of one part of Rome by ε."""
    own = [line for line in lines if line["task"]["part"] == f"rome {part}"]
    return {
        line["task"]["epsilon"]: line for line in sorted(own, key=lambda x: x["task"]["epsilon"])
    }


def _rome(lines: Lines) -> str:
    least = city(lines, "lower")
    rows = []
    for epsilon, line in city(lines, "upper").items():
        if epsilon not in least:
            continue
        found = least[epsilon]
        seconds = line["processor_seconds"] + found["processor_seconds"]
        rows.append(
            (
                f"{epsilon:g}",
                f"{line['vertices']:,}",
                f"{line['loss']:.4f}",
                f"{found['cells']:,}",
                f"{found['lower_bound']:.4f}",
                f"{100 * (line['loss'] / found['lower_bound'] - 1):.1f} %",
                f"{seconds:.0f}",
            )
        )
    head = (
        "ε per km",
        "vertices",
        "certified loss",
        "cells",
        "lower bound",
        "above",
        "processor s",
    )
    return table(head, rows)


def _others(lines: Lines) -> str:
    exponential, laplace = city(lines, "exponential"), city(lines, "laplace")
    least = city(lines, "lower")
    rows = [
        (
            f"{epsilon:g}",
            _beside(line["loss"], least.get(epsilon)),
            _beside(laplace[epsilon]["loss"], least.get(epsilon)),
            f"± {laplace[epsilon]['half_width']:.3f}",
            f"{exponential[epsilon]['remapped']:.3f}",
            f"{exponential[epsilon]['loss']:.3f}",
        )
        for epsilon, line in city(lines, "upper").items()
        if epsilon in exponential and epsilon in laplace
    ]
    head = (
        "ε per km",
        "mesh, certified",
        "planar Laplace, best remap",
        "its interval",
        "exponential, best remap",
        "exponential",
    )
    return table(head, rows)


def _beside(loss: float, bound: dict[str, Any] | None) -> str:
    """A loss, and how far it is above the bound."""
    if bound is None:
        return f"{loss:.3f}"
    return f"{loss:.3f} (+{100 * (loss / bound['lower_bound'] - 1):.0f} %)"


def _grids(lines: Lines) -> str:
    rows = []
    for side in (12, 18):
        for epsilon, line in city(lines, f"grid {side}").items():
            rows.append(
                (
                    f"{side} × {side}",
                    f"{epsilon:g}",
                    f"{line['loss']:.3f}",
                    f"{line['slack']:.2f} km",
                    f"{line['step']:.2f}",
                    f"{line['epsilon_at_100_m']:.1f}",
                    f"{100 * line['violated'][0]:.1f} %",
                    f"{100 * line['violated_near'][0]:.1f} %",
                    f"{line['processor_seconds']:.1f}",
                )
            )
    head = (
        "cells",
        "ε per km",
        "loss",
        "slack",
        "log ratio at distance 0",
        "ε from 100 m on",
        "pairs violated",
        "of those within 500 m",
        "processor s",
    )
    return table(head, rows)


def _effort(lines: Lines) -> str:
    """Where the seconds of Rome go."""
    rows = []
    for epsilon, line in city(lines, "upper").items():
        found = city(lines, "lower").get(epsilon)
        if not found:
            continue
        first = found["aggregation"]
        rows.append(
            (
                f"{epsilon:g}",
                f"{line['processor_seconds']:.0f} ({line['seconds']:.0f})",
                f"{first['processor_seconds']:.0f} ({first['seconds']:.0f})",
                f"{found['processor_seconds'] - first['processor_seconds']:.0f} "
                f"({found['seconds'] - first['seconds']:.0f})",
                f"{100 * line['mesh_gap']:.2f} %",
                f"{100 * found['coarse_gap']:.2f} %",
                f"{max(line['memory'], found['memory']):,.0f} MiB",
            )
        )
    head = ("ε per km", "mesh", "aggregation", "coarse program", "gap of the mesh's program")
    return table((*head, "gap of the coarse program", "memory"), rows)


def _limits(lines: Lines) -> str:
    """Losses on two meshes, what they tend to in first order, and bounds."""
    meshes = [city(lines, part) for part in ("upper coarse", "upper")]
    bounds = city(lines, "lower")
    rows = []
    for epsilon in meshes[1]:
        coarse, usual = meshes[0].get(epsilon), meshes[1][epsilon]
        if coarse is None:
            continue
        # loss = limit + c / √V
        ratio = (usual["vertices"] / coarse["vertices"]) ** 0.5
        limit = usual["loss"] - (coarse["loss"] - usual["loss"]) / (ratio - 1)
        rows.append(
            (
                f"{epsilon:g}",
                *(_at(found.get(epsilon), "loss", "vertices") for found in meshes),
                f"{limit:.2f}",
                _at(bounds.get(epsilon), "lower_bound", "cells"),
            )
        )
    head = ("ε per km", "coarse mesh", "the table's", "extrapolated", "bound")
    return table(head, rows)


def _at(line: dict[str, Any] | None, value: str, size: str) -> str:
    return "" if line is None else f"{line[value]:.4f} ({line[size]:,})"


def draw(lines: Lines, path: Path) -> None:
    """The gap to the bound against ε times width, and the loss against vertices."""
    import matplotlib as mpl
    from everywhere_square import EPSILON, PRIORS
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for prior, colour in zip(PRIORS, ("#1f4e79", "#D55E00"), strict=True):
        least = best_bound(lines, prior)
        own = uniform(lines, prior)
        width = [EPSILON * line["task"]["width"] for line in own]
        gap = [100 * (line["loss"] / least - 1) for line in own]
        left.plot(width, gap, "o-", color=colour, label=f"{prior} prior")
        right.plot(
            [line["vertices"] for line in own], gap, "o-", color=colour, label=f"{prior}, equal"
        )
        counts, losses = zip(*adapted(lines, prior), strict=True)
        right.plot(
            counts,
            [100 * (loss / least - 1) for loss in losses],
            "^--",
            color=colour,
            mfc="white",
            label=f"{prior}, adapted",
        )
    left.set(xlabel="ε · width of the mesh", xscale="log", ylabel="% above the proved bound")
    left.set_xticks(width, [f"{value:g}" for value in width])
    left.xaxis.set_minor_locator(NullLocator())
    right.set(xlabel="vertices", xscale="log")
    for axes in (left, right):
        axes.set(yscale="log")
        axes.set_yticks(ticks := [2, 3, 5, 10, 20], [str(tick) for tick in ticks])
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize=8.5)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(buffer.getvalue())
