"""Pictures of mechanisms. Needs matplotlib, and draws without a display."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.cli import words
from optmech.cli.measured import choose_distance, measure_constraints
from optmech.domain import Domain, Floats, Grid
from optmech.errors import ProblemError
from optmech.measures import distortion
from optmech.observables import Suppressible
from optmech.storage import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech.design import Design

__all__ = ["mechanism_picture", "require_matplotlib"]

FORMATS = (".png", ".pdf", ".svg")
_COLOURS = "Blues"
"""White means never; colour-blind readers see the same order of lightness."""
_MARK = "#d55e00"
_MAX_TICKS = 24
_MAX_NAMES = 16
_DECADES = 1e-4


def mechanism_picture(design: Design, path: str | Path) -> None:
    """Draw a design: the prior, the matrix p(o|s), and what three of the secrets report.

    The secrets are the likeliest one, and those at the quartiles of the prior. Grids are drawn
    as images, points as a map, everything else as bars.

    Raises
    ------
    ProblemError
        Without matplotlib, on a path that is not .png, .pdf or .svg, or cannot be written.
    InfeasibleError
        Where the design has no mechanism.
    """
    require_matplotlib(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mechanism, problem = design.mechanism, design.problem
    figure = Figure(figsize=(12.5, 8.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes: dict[str, Axes] = figure.subplot_mosaic([["prior"] * 3 + ["matrix"] * 3, list("aabbcc")])
    prior, matrix = problem.prior.weights, mechanism.matrix
    draw_values(axes["prior"], problem.secrets, prior, "prior π(s)", float(prior.max()))
    _matrix(axes["matrix"], matrix)
    chosen = _telling_secrets(prior)
    top = float(matrix[chosen].max())
    for name, secret in zip("abc", chosen, strict=False):
        label = plain_text(words.label(problem.secrets.labels[secret]))
        title = f"reports for secret {label}  (π = {prior[secret]:.2%})"
        draw_values(axes[name], mechanism.observables, matrix[secret], title, top)
        _mark(axes[name], problem.secrets, mechanism.observables, secret)
    for name in "abc"[len(chosen) :]:
        axes[name].set_axis_off()
    figure.suptitle(_caption(design), fontsize=10)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=Path(path).suffix.lower()[1:])
    write_atomically(path, buffer.getvalue())


def require_matplotlib(path: str | Path) -> None:
    """Refuse what could not be drawn, before any work is spent on it."""
    if find_spec("matplotlib") is None:
        raise ProblemError(
            "pictures need matplotlib, which is not installed",
            where=str(path),
            remedy="Run: pip install optmech[plot]",
        )
    if Path(path).suffix.lower() not in FORMATS:
        raise ProblemError(
            "is not the name of a picture",
            where=str(path),
            remedy=f"Use a name that ends in {', '.join(FORMATS)}",
        )


def _telling_secrets(weights: Floats) -> list[int]:
    order = np.argsort(-weights, kind="stable")
    positive = max(1, int(np.count_nonzero(weights)))
    ranks = dict.fromkeys((0, positive // 4, positive // 2))
    return [int(order[rank]) for rank in ranks]


def draw_values(axes: Axes, domain: Domain, values: Floats, title: str, top: float) -> None:
    """Weights over a domain: an image of a grid, a map of points, or bars; ``top`` is darkest."""
    shown, extra = domain, ""
    if isinstance(domain, Suppressible):
        shown = domain.inner
        extra = f"; {plain_text(words.label(domain.labels[-1]))}: {values[-1]:.2%}"
        values = values[:-1]
    if type(shown) is Grid:
        _image(axes, shown, values, top)
    elif shown.points is not None and shown.points.shape[1] == 2:
        _scatter(axes, shown, values, top)
    else:
        _bars(axes, shown, values)
    axes.set_title(title + extra, fontsize=9)


def _image(axes: Axes, grid: Grid, values: Floats, top: float) -> None:
    (x, y), (width, height) = grid.origin, grid.cell
    picture = axes.imshow(
        values.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=(x, x + grid.columns * width, y, y + grid.rows * height),
        cmap=_COLOURS,
        norm=_root_scale(top),
        interpolation="nearest",
    )
    _place_axes(axes, grid)
    _bar(axes, picture)


def _scatter(axes: Axes, domain: Domain, values: Floats, top: float) -> None:
    assert domain.points is not None
    x, y = domain.points.T
    picture = axes.scatter(
        x,
        y,
        c=values,
        s=14 + 110 * np.sqrt(values / top),
        cmap=_COLOURS,
        norm=_root_scale(top),
        edgecolors="#777777",
        linewidths=0.5,
    )
    if len(domain) <= _MAX_NAMES:
        for point, label in zip(domain.points, domain.labels, strict=True):
            name = plain_text(words.label(label))[:16]
            axes.annotate(name, point, xytext=(5, 5), textcoords="offset points", fontsize=6)
    axes.margins(0.12)
    _place_axes(axes, domain)
    _bar(axes, picture)


def _root_scale(top: float) -> Any:
    """Square-root colours, so that rare reports can be seen beside frequent ones."""
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0.0, vmax=top)


def _bars(axes: Axes, domain: Domain, values: Floats) -> None:
    numeric = domain.points is not None and domain.points.shape[1] == 1
    x = domain.points[:, 0] if numeric and domain.points is not None else np.arange(len(domain))
    spacing = float(np.diff(np.sort(x)).min()) if len(x) > 1 else 1.0
    axes.bar(x, values, width=0.85 * (spacing or 1.0), color="#0072b2")
    axes.set_ylabel("probability", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.margins(x=0.02)
    if numeric:
        axes.set_xlabel(plain_text(domain.unit), fontsize=8)
        return
    step = -(-len(domain) // _MAX_TICKS)
    ticks = range(0, len(domain), step)
    names = [plain_text(words.label(domain.labels[k]))[:16] for k in ticks]
    axes.set_xticks(list(ticks), names, rotation=60, ha="right")


def _matrix(axes: Axes, matrix: Floats) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    top = float(matrix.max())
    picture = axes.imshow(
        np.maximum(matrix, _DECADES * top),
        cmap=_COLOURS,
        norm=LogNorm(_DECADES * top, top),
        aspect="auto",
        interpolation="nearest",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("mechanism p(o|s), logarithmic colours", fontsize=9)
    axes.set_xlabel("observable o (index)", fontsize=8)
    axes.set_ylabel("secret s (index)", fontsize=8)
    axes.tick_params(labelsize=7)
    _bar(axes, picture)


def _mark(axes: Axes, secrets: Domain, observables: Domain, secret: int) -> None:
    """The true secret, where both domains can be drawn on one map."""
    inner = observables.inner if isinstance(observables, Suppressible) else observables
    flat = [d.points is not None and d.points.shape[1] == 2 for d in (secrets, inner)]
    if all(flat) and secrets.points is not None and secrets.coordinates == inner.coordinates:
        x, y = secrets.points[secret]
        axes.plot(
            x, y, "o", markersize=15, markeredgewidth=1.8, markerfacecolor="none", color=_MARK
        )


def _place_axes(axes: Axes, domain: Domain) -> None:
    if domain.coordinates == "lonlat":
        assert domain.points is not None
        middle = float(np.cos(np.radians(domain.points[:, 1].mean())))
        axes.set_aspect(1.0 / max(middle, 0.05))
        names = ("longitude (°)", "latitude (°)")
    else:
        axes.set_aspect("equal")
        unit = f" ({plain_text(domain.unit)})" if domain.unit else ""
        names = (f"x{unit}", f"y{unit}")
    axes.set_xlabel(names[0], fontsize=8)
    axes.set_ylabel(names[1], fontsize=8)
    axes.tick_params(labelsize=7)


def _bar(axes: Axes, picture: Any) -> None:
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(picture, ax=axes, shrink=0.85)
    bar.ax.tick_params(labelsize=7)


def _caption(design: Design) -> str:
    problem, mechanism = design.problem, design.mechanism
    name, distance = choose_distance(problem)
    unit = words.unit_of(problem, name)
    error = distortion(mechanism, problem.prior, distance)
    parts = [
        f"loss {design.loss:.6g}, proved bound {design.lower_bound:.6g}, gap {design.gap:.1g}",
        f"best attack errs by {error:.4g}{unit} ({name})",
    ]
    symbols = {"epsilon": "ε", "delta": "δ"}
    parts += [
        f"{row.kind}: {symbols.get(row.quantity, row.quantity)} = {row.measured:.6g} "
        f"({row.sense} {row.promised:.6g})"
        for row in measure_constraints(problem, mechanism)
        if row.quantity != "outside"
    ]
    lines = [problem.title, " · ".join(parts[:2]), " · ".join(parts[2:5])]
    return "\n".join(plain_text(line) for line in lines if line)


def plain_text(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")
