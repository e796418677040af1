"""Figures and tables of docs/everywhere.md, from results alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from privacy_games.pages import filled, table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "everywhere.md"
FIGURE = HERE.parent / "docs" / "figures" / "everywhere-convergence.svg"
JOINT = FIGURE.with_name("everywhere-joint.svg")
Lines = list[dict[str, Any]]
DEGREES = (1, 2, 3)


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
    draw_joint(lines, JOINT)


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
        "joint": _joint(lines),
    }


def best_bound(lines: Lines, prior: str) -> float:
    """The largest proved lower bound of the square."""
    return max(
        line["lower_bound"]
        for line in lines
        if line["task"]["part"] == "bound" and line["task"]["prior"] == prior
    )


def uniform(lines: Lines, prior: str, degree: int = 1) -> Lines:
    """Equal triangles, the widest first."""
    own = [
        line
        for line in lines
        if line["task"]["part"] == "uniform"
        and line["task"]["prior"] == prior
        and line["task"].get("degree", 1) == degree
    ]
    return sorted(own, key=lambda line: -line["task"]["width"])


def rows_of(line: dict[str, Any]) -> int:
    """Control points of a mesh, which are the vertices in degree 1."""
    return int(line.get("rows", line["vertices"]))


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
        for degree in DEGREES:
            for line in uniform(lines, prior, degree):
                loss, width = line["loss"], line["task"]["width"]
                rows.append(
                    (
                        prior,
                        str(degree),
                        f"{EPSILON * width:g}",
                        f"{rows_of(line):,}",
                        f"{loss:.5f}",
                        f"{least:.5f}",
                        f"{100 * (loss / least - 1):.1f} %",
                        f"{line['processor_seconds']:.1f}",
                    )
                )
    head = ("prior", "degree", "ε·width", "rows", "certified loss", "bound", "above it")
    return table((*head, "processor s"), rows)


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


def bounds(lines: Lines) -> dict[float, dict[str, Any]]:
    """The largest lower bound of Rome that was found for each ε."""
    out = city(lines, "lower")
    for epsilon, line in city(lines, "bound").items():
        if epsilon not in out or line["lower_bound"] > out[epsilon]["lower_bound"]:
            out[epsilon] = line
    return out


def _rome(lines: Lines) -> str:
    least, linear = bounds(lines), city(lines, "upper")
    rows = []
    for epsilon, line in city(lines, "cubic").items():
        if epsilon not in least:
            continue
        found = least[epsilon]
        seconds = line["processor_seconds"] + found["processor_seconds"]
        rows.append(
            (
                f"{epsilon:g}",
                f"{rows_of(line):,} ({line['vertices']:,})",
                f"{line['loss']:.4f}",
                f"{found['cells']:,}",
                f"{found['lower_bound']:.4f}",
                _above(line, found),
                f"{linear[epsilon]['loss']:.4f}",
                f"{seconds:.0f}",
            )
        )
    head = ("ε per km", "rows (vertices)", "certified loss", "cells", "lower bound", "above")
    return table((*head, "linear, 1,200 rows", "processor s"), rows)


def _above(line: dict[str, Any], bound: dict[str, Any]) -> str:
    return f"{100 * (line['loss'] / bound['lower_bound'] - 1):.1f} %"


def _others(lines: Lines) -> str:
    exponential, laplace = city(lines, "exponential"), city(lines, "laplace")
    least = bounds(lines)
    rows = [
        (
            f"{epsilon:g}",
            _beside(line["loss"], least.get(epsilon)),
            _beside(laplace[epsilon]["loss"], least.get(epsilon)),
            f"± {laplace[epsilon]['half_width']:.3f}",
            f"{exponential[epsilon]['remapped']:.3f}",
            f"{exponential[epsilon]['loss']:.3f}",
        )
        for epsilon, line in city(lines, "cubic").items()
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
    for epsilon, line in city(lines, "cubic").items():
        found = bounds(lines).get(epsilon)
        if not found:
            continue
        first, second = found["aggregation"], line["solved"]
        rows.append(
            (
                f"{epsilon:g}",
                _seconds(second),
                _seconds(line, second),
                _seconds(first),
                _seconds(found, first),
                f"{100 * line['mesh_gap']:.2f} %",
                f"{100 * found['coarse_gap']:.2f} %",
                f"{max(line['memory'], found['memory']):,.0f} MiB",
            )
        )
    head = ("ε per km", "mesh", "its proof", "aggregation", "coarse program")
    return table((*head, "gap of the mesh's program", "gap of the coarse program", "memory"), rows)


def _seconds(line: dict[str, Any], before: dict[str, Any] | None = None) -> str:
    """Of the processor, and of the wall in parentheses, since another reading of the clock."""
    own, wall = (
        line[name] - (before[name] if before else 0.0) for name in ("processor_seconds", "seconds")
    )
    return f"{own:.0f} ({wall:.0f})"


def _limits(lines: Lines) -> str:
    """Losses on several meshes and bounds from several numbers of cells."""
    meshes = [city(lines, part) for part in ("upper", "cubic coarse", "cubic")]
    cells = [city(lines, part) for part in ("bound", "lower")]
    rows = [
        (
            f"{epsilon:g}",
            *(_at(found.get(epsilon), "loss", rows_of) for found in meshes),
            *(_at(found.get(epsilon), "lower_bound", _cells) for found in cells),
        )
        for epsilon in meshes[-1]
    ]
    head = ("ε per km", "linear", "cubic, coarse", "cubic", "bound", "bound, coarse")
    return table(head, rows)


def _cells(line: dict[str, Any]) -> int:
    return int(line["cells"])


def _at(line: dict[str, Any] | None, value: str, size: Callable[[dict[str, Any]], int]) -> str:
    return "" if line is None else f"{line[value]:.4f} ({size(line):,})"


def draw(lines: Lines, path: Path) -> None:
    """The gap to the bound against the number of rows, by degree."""
    import matplotlib as mpl
    from everywhere_square import PRIORS
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for axes, prior in zip((left, right), PRIORS, strict=True):
        least = best_bound(lines, prior)
        for degree, colour in zip(DEGREES, ("#1f4e79", "#D55E00", "#009E73"), strict=True):
            own = uniform(lines, prior, degree)
            gap = [100 * (line["loss"] / least - 1) for line in own]
            counts = [rows_of(line) for line in own]
            axes.plot(counts, gap, "o-", color=colour, label=f"degree {degree}")
        counts, losses = zip(*adapted(lines, prior), strict=True)
        gap = [100 * (loss / least - 1) for loss in losses]
        axes.plot(counts, gap, "^--", color="#1f4e79", mfc="white", label="degree 1, adapted")
        axes.set(title=f"{prior} prior", xlabel="rows of the mechanism", xscale="log", yscale="log")
        axes.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20], [str(tick) for tick in ticks])
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, fontsize=8.5)
    left.set(ylabel="% above the proved bound")
    _save(figure, path)


def draw_joint(lines: Lines, path: Path) -> None:
    """Loss and lower bound against how often an adversary is wrong."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (part, title) in zip(figure.subplots(1, 2), JOINT_PARTS.items(), strict=True):
        own = joint(lines, part)
        wrong = [line["wrong"] for line in own]
        axes.plot(wrong, [line["loss"] for line in own], "o-", color="#1f4e79", label="mesh")
        axes.plot(
            wrong, [line["lower_bound"] for line in own], "v--", color="#D55E00",
            label="no mechanism below",
        )  # fmt: skip
        axes.axvline(own[0]["blind"], color="0.5", ls=":", label="sees nothing")
        axes.set(title=title, xlabel="share of wrong guesses")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8.5)
    figure.axes[0].set(ylabel="expected loss")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(buffer.getvalue())


JOINT_PARTS = {"joint square": "square, 5 x 5 places", "joint city": "New York, check-ins"}


def joint(lines: Lines, part: str) -> Lines:
    """Those of one place, the fewest wrong guesses first."""
    own = [line for line in lines if line["task"]["part"] == part]
    return sorted(own, key=lambda line: line["task"]["share"])


def _joint(lines: Lines) -> str:
    rows = []
    for part in JOINT_PARTS:
        for line in joint(lines, part):
            share, loss, least = line["task"]["share"], line["loss"], line["lower_bound"]
            rows.append(
                (
                    part.removeprefix("joint "),
                    f"{share * line['blind']:.4f}" if share else "",
                    f"{line['wrong']:.4f}",
                    f"{loss:.4f}",
                    f"{least:.4f}",
                    f"{100 * (loss / least - 1):.1f} %",
                    f"{line['processor_seconds']:.0f}",
                )
            )
    head = ("", "wrong at least", "wrong", "loss", "no mechanism below", "above", "processor s")
    return table(head, rows)
