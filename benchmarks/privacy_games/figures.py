"""The paper's figures from the results, as SVG, and the generated parts of the document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments import approximations, scenario1, scenario2, scenario3
from pages import filled
from results import sections
from users import GRIDS

COLOURS = {"differential": "#0072b2", "distortion": "#d55e00", "joint": "#009e73"}
MARKS = {"differential": "o", "distortion": "s", "joint": "x"}
MANY = 300
"""Experiments, beyond which marks are drawn small and as a picture."""

Value = Callable[[Any], float]


def draw(docs: Path) -> None:
    """Write docs/figures/privacy-games-*.svg and fill in docs/reproduction.md."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"font.size": 9, "svg.hashsalt": "optmech", "axes.grid": True})
    mpl.rcParams.update({"savefig.dpi": 200})
    mpl.rcParams.update({"grid.alpha": 0.25, "axes.spines.top": False, "axes.spines.right": False})
    folder = docs / "figures"
    folder.mkdir(exist_ok=True)
    for grid in GRIDS:
        for name, make in _FIGURES.items():
            figure = make(grid)
            if figure is not None:
                path = folder / f"privacy-games-{grid}-{name}.svg"
                figure.savefig(path, metadata={"Date": None})
    page = docs / "reproduction.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), sections()), encoding="utf-8")


def _panels(count: int, width: float = 4.2) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    plt.close("all")
    return plt.subplots(1, count, figsize=(width * count, 3.6), layout="constrained")


def _scatter(
    axis: Any, found: list[Any], x: Value, y: Value, colour: str, marker: str = "o", **options: Any
) -> None:
    """A mark for every experiment; a picture of them where they are too many for vectors."""
    many = len(found) > MANY
    axis.scatter(
        [x(e) for e in found],
        [y(e) for e in found],
        s=3.0 if many else 14.0,
        c=colour,
        marker=marker,
        rasterized=many,
        alpha=0.5,
        linewidths=0.7,
        **options,
    )


def _of(kind: str, figure: str) -> Value:
    return lambda e: getattr(e, kind)[figure]


def _informed(kind: str, evidence: str) -> Value:
    return lambda e: getattr(e, kind)["informed"][evidence]


def _diagonal(axis: Any) -> None:
    top = max(axis.get_xlim()[1], axis.get_ylim()[1])
    axis.plot([0, top], [0, top], color="#777777", linewidth=0.8, zorder=0)


def figure2(grid: str) -> Any:
    found = scenario1(grid)
    if not found:
        return None
    figure, (left, right) = _panels(2)
    epsilons = sorted({e.epsilon for e in found})
    left.boxplot(
        [[e.differential["optimal"] for e in found if e.epsilon == x] for x in epsilons],
        tick_labels=[f"{x:g}" for x in epsilons],
        flierprops={"markersize": 2},
    )
    left.set_xlabel("ε (1/km)")
    left.set_ylabel("distortion privacy (km)")
    for kind in ("distortion", "joint", "differential"):
        x, y = _of(kind, "optimal"), _of(kind, "loss")
        _scatter(right, found, x, y, COLOURS[kind], MARKS[kind], label=kind)
    right.set_xlabel("distortion privacy (km)")
    right.set_ylabel("utility loss (Hamming)")
    right.legend()
    return figure


def figure3(grid: str) -> Any:
    found = scenario1(grid)
    if not found:
        return None
    figure, axis = _panels(1)
    x, y = _of("differential", "bayesian"), _of("distortion", "bayesian")
    _scatter(axis, found, x, y, COLOURS["differential"])
    _diagonal(axis)
    axis.set_xlabel("Bayesian attack on differential (km)")
    axis.set_ylabel("Bayesian attack on distortion (km)")
    return figure


def figure4(grid: str) -> Any:
    found = scenario1(grid)
    if not found:
        return None
    figure, axes = _panels(3, 3.4)
    for axis, kind in zip(axes, COLOURS, strict=True):
        x, y = _of(kind, "optimal"), _of(kind, "bayesian")
        _scatter(axis, found, x, y, COLOURS[kind], MARKS[kind])
        _diagonal(axis)
        axis.set_title(kind, fontsize=9)
        axis.set_xlabel("optimal attack (km)")
    axes[0].set_ylabel("Bayesian attack (km)")
    return figure


def figure5(grid: str) -> Any:
    found = scenario2(grid)
    if not found:
        return None
    figure, axes = _panels(2, 3.6)
    for axis, kind in zip(axes, ("differential", "distortion"), strict=True):
        x, y = _of(kind, "optimal"), _of("joint", "optimal")
        _scatter(axis, found, x, y, COLOURS[kind], MARKS[kind])
        _diagonal(axis)
        axis.set_xlabel(f"distortion privacy, {kind} (km)")
    axes[0].set_ylabel("distortion privacy, joint (km)")
    return figure


def figure6(grid: str) -> Any:
    found = scenario1(grid)
    if not found:
        return None
    figure, axis = _panels(1)
    for evidence, colour in (("0.75", "#56b4e9"), ("0.5", "#0072b2"), ("0.25", "#004060")):
        x, y = _informed("differential", evidence), _informed("distortion", evidence)
        _scatter(axis, found, x, y, colour, label=f"evidence {evidence}")
    x, y = _of("differential", "optimal"), _of("distortion", "optimal")
    _scatter(axis, found, x, y, "#d55e00", label="prior as assumed")
    _diagonal(axis)
    axis.set_xlabel("optimal attack on differential (km)")
    axis.set_ylabel("optimal attack on distortion (km)")
    axis.legend()
    return figure


def figure7(grid: str) -> Any:
    found = scenario3(grid)
    if not found:
        return None
    figure, axes = _panels(2, 5.0)
    for axis, field, name in zip(
        axes,
        ("optimal", "loss"),
        ("distortion privacy (km)", "utility loss (Hamming)"),
        strict=True,
    ):
        ordered = sorted(found, key=lambda e, field=field: e.joint[field])
        for kind in ("differential", "distortion", "joint"):
            values = [getattr(e, kind)[field] for e in ordered]
            axis.plot(
                np.arange(len(values)), values, ".", markersize=2, color=COLOURS[kind], label=kind,
                rasterized=len(found) > MANY,
            )  # fmt: skip
        axis.set_xlabel("experiment, sorted by the joint mechanism")
        axis.set_ylabel(name)
    axes[0].legend(markerscale=4)
    return figure


def figure8(grid: str) -> Any:
    records = [r for r in approximations(grid) if "failed" not in r]
    exact = {r["task"]["user"]: r for r in records if r["task"]["method"] == "joint"}
    cut = [r for r in records if r["task"]["method"] == "joint threshold"]
    if not cut:
        return None
    figure, axes = _panels(3, 3.8)
    far = sorted({r["task"]["parameter"] for r in cut})
    panels: tuple[tuple[str, Callable[[Any], float | None]], ...] = (
        ("privacy error (km)", lambda r: exact[r["task"]["user"]]["optimal"] - r["optimal"]),
        ("time (s)", lambda r: r["seconds"]),
        ("true ε (1/km); none: not drawn", lambda r: r["epsilon"]),
    )
    for axis, (name, value) in zip(axes, panels, strict=True):
        groups = [
            [v for r in cut if r["task"]["parameter"] == f and (v := value(r)) is not None]
            for f in far
        ]
        axis.boxplot(groups, tick_labels=[f"{f:g}" for f in far], flierprops={"markersize": 2})
        axis.set_xlabel("threshold (km)")
        axis.set_ylabel(name)
    axes[1].set_yscale("log")
    return figure


def tradeoff(grid: str) -> Any:
    """Loss over the optimum against time, medians over users, private methods only."""
    records = [
        r
        for r in approximations(grid)
        if "failed" not in r and r["exact_loss"] > 0 and "joint" not in r["task"]["method"]
    ]
    if not records:
        return None
    figure, axis = _panels(1, 6.4)
    marks = dict(zip(sorted({r["task"]["method"] for r in records}), "os^vDPX*<>", strict=False))
    for method, mark in marks.items():
        of = [r for r in records if r["task"]["method"] == method]
        points = []
        for parameter in sorted({r["task"]["parameter"] for r in of}, key=str):
            same = [r for r in of if r["task"]["parameter"] == parameter]
            loss = np.median(
                [(r.get("repaired_loss") or r["loss"]) / r["exact_loss"] for r in same]
            )
            points.append((np.median([r["seconds"] for r in same]), max(loss - 1, 1e-7), parameter))
        x, y, names = zip(*points, strict=True)
        axis.plot(x, y, marker=mark, linestyle=":", linewidth=0.7, markersize=5, label=method)
        for at, height, name in zip(x, y, names, strict=True):
            if name is not None:
                axis.annotate(f"{name}", (at, height), fontsize=6, alpha=0.7)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("time (s)")
    axis.set_ylabel("loss over the optimum, at the promised ε")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


_FIGURES = {
    "fig2": figure2,
    "fig3": figure3,
    "fig4": figure4,
    "fig5": figure5,
    "fig6": figure6,
    "fig7": figure7,
    "fig8": figure8,
    "tradeoff": tradeoff,
}
