"""How domains and matrices are drawn: as images, maps or bars, colour-blind safe, with units."""

from __future__ import annotations

import io
from collections.abc import Hashable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.machine import installing
from optmech.base.storage import ending, write_atomically
from optmech.errors import ProblemError
from optmech.show import words
from optmech.show.backdrop import Source, backdrop_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.domain_arguments import Box
from optmech.spaces.layout import Plane, plane_of
from optmech.spaces.observables import Suppressible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, told apart by colour-blind readers too."""
SYMBOLS = {"epsilon": "ε", "delta": "δ"}
COLOURS = "Blues"
"""White means never; colour-blind readers see the same order of lightness."""
MARK = SERIES[1]
_COLUMNS = 3
_MAX_TICKS = 24
_MAX_NAMES = 16
_DECADES = 1e-4


def require_matplotlib(path: str | Path) -> None:
    """Refuse what could not be drawn, before any work is spent on it."""
    _require_installed(str(path))
    if ending(path, FORMATS[0]) not in FORMATS:
        raise ProblemError(
            "is not the name of a picture",
            where=path,
            remedy=f"Use a name that ends in {', '.join(FORMATS)}",
        )


def _require_installed(where: str) -> None:
    if find_spec("matplotlib") is None:
        raise ProblemError(
            "pictures need matplotlib, which is not installed",
            where=where,
            remedy=installing("plot"),
        )


def new_figure(width: float, height: float) -> Figure:
    """A figure that no global state knows of."""
    _require_installed("plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def new_panels(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of this size in rows."""
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure = new_figure(width * columns, height * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.set_axis_off()
    return figure, list(grid[:count])


@checked_arguments
def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png, .pdf or .svg, atomically, and as PNG to standard output; raises
    ProblemError where it cannot.

    Examples
    --------
    >>> coin, d = om.Domain(["yes", "no"]), om.distances.hamming()
    >>> promise = om.DifferentialPrivacy(1)
    >>> design = om.solve(om.Problem(om.Prior.uniform(coin), d, constraints=[promise]))
    >>> om.plots.save(om.plots.mechanism(design), "coin.svg")
    >>> open("coin.svg").readline()[:5]
    '<?xml'
    """
    require_matplotlib(path)
    if not hasattr(figure, "savefig"):
        raise ProblemError(
            f"{type(figure).__name__} is not a figure",
            where="figure",
            remedy="Give what a function of om.plots returns",
        )
    buffer = io.BytesIO()
    figure.savefig(buffer, format=ending(path, FORMATS[0])[1:])
    write_atomically(path, buffer.getvalue())


def draw_values(
    axes: Axes,
    domain: Domain,
    values: Floats,
    title: str,
    top: float,
    *,
    linear: bool = False,
    what: str = "probability",
    backdrop: Source | None = None,
) -> None:
    """One value for each element: an image of a grid, zones or points on a map, or bars."""
    from matplotlib.colors import Normalize, PowerNorm

    # square roots, so that rare reports can be seen beside frequent ones
    scale = Normalize(0.0, top) if linear else PowerNorm(0.5, vmin=0.0, vmax=top)
    shown, extra = domain, ""
    if isinstance(domain, Suppressible):
        shown = domain.inner
        extra = f"; {label_name(domain.labels[-1])}: {values[-1]:.2%}"
        values = values[:-1]
    if type(shown) is Grid:
        x, y, width, height = *shown.origin, *shown.cell
        picture = axes.imshow(
            values.reshape(shown.rows, shown.columns),
            origin="lower",
            extent=(x, x + shown.columns * width, y, y + shown.rows * height),
            cmap=COLOURS,
            norm=scale,
            interpolation="nearest",
        )
    elif shown.outlines is not None:
        picture = _zones(axes, shown, values, scale)
    elif shown.points is not None and shown.points.shape[1] == 2:
        picture = _scatter(axes, shown, values, scale)
    else:
        picture = None
        _bars(axes, shown, values, what)
    if picture is not None:
        assert shown.points is not None
        place_axes(axes, shown.coordinates, shown.points, shown.unit)
        plane = plane_of(shown)
        if shown.coordinates == "plane" and plane.degrees is not None:
            _degree_ticks(axes, plane.degrees)
        if backdrop is not None:
            draw_backdrop(axes, backdrop, plane, shown.coordinates)
        colour_bar(axes, picture, what)
    axes.set_title(title + extra, fontsize=9)


def draw_backdrop(axes: Axes, source: Source, plane: Plane, coordinates: str) -> None:
    """The lines of a backdrop over what is drawn, within the limits that the axes have; raises
    ProblemError where nothing is known of longitudes and latitudes."""
    from matplotlib.collections import LineCollection

    if plane.degrees is None:
        raise ProblemError(
            "the picture has no longitudes and latitudes",
            where="backdrop",
            remedy="Use it with points in degrees, or a grid over bounds in degrees",
        )
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    ends = np.array([(left, bottom), (right, top)])
    globe = coordinates == "lonlat"
    if not globe:
        ends = ends / np.array(plane.degrees[2:]) + np.array(plane.degrees[:2])
    found = backdrop_of(source, tuple(ends.ravel().tolist()))
    lines = [line if globe else plane.from_degrees(line) for line in found.lines]
    axes.add_collection(
        LineCollection(lines, colors="#333333", linewidths=0.6, alpha=0.6, capstyle="round"),
        autolim=False,
    )
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _degree_ticks(axes: Axes, degrees: Box) -> None:
    """Longitudes and latitudes along axes whose coordinates are kilometres."""
    from matplotlib.ticker import MaxNLocator

    limits = axes.get_xlim(), axes.get_ylim()
    for axis, (low, high), start, rate in zip(
        (axes.xaxis, axes.yaxis), limits, degrees[:2], degrees[2:], strict=True
    ):
        ends = start + low / rate, start + high / rate
        found = MaxNLocator(5).tick_values(*ends)
        inside = [value for value in found if ends[0] <= value <= ends[1]]
        step = inside[1] - inside[0] if len(inside) > 1 else ends[1] - ends[0]
        places = max(0, -int(np.floor(np.log10(step) + 1e-9)))
        axis.set_ticks([(value - start) * rate for value in inside],
                       [f"{value:.{places}f}" for value in inside])  # fmt: skip
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    _name_axes(axes, "longitude (°)", "latitude (°)")


def _zones(axes: Axes, domain: Domain, values: Floats, scale: Any) -> Any:
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    assert domain.outlines is not None
    paths = [
        Outline.make_compound_path(
            *(Outline(np.vstack([ring, ring[:1]]), closed=True) for ring in rings)
        )
        for rings in domain.outlines
    ]
    picture = PathCollection(paths, cmap=COLOURS, norm=scale, edgecolors="#777777", linewidths=0.4)
    picture.set_array(values)
    axes.add_collection(picture)
    axes.autoscale_view()
    return picture


def _scatter(axes: Axes, domain: Domain, values: Floats, scale: Any) -> Any:
    assert domain.points is not None
    x, y = domain.points.T
    picture = axes.scatter(
        x,
        y,
        c=values,
        s=14 + 110 * np.sqrt(values / (scale.vmax or 1.0)),
        cmap=COLOURS,
        norm=scale,
        edgecolors="#777777",
        linewidths=0.5,
    )
    if len(domain) <= _MAX_NAMES:
        for point, label in zip(domain.points, domain.labels, strict=True):
            name = label_name(label)[:16]
            axes.annotate(name, point, xytext=(5, 5), textcoords="offset points", fontsize=6)
    axes.margins(0.12)
    return picture


def _bars(axes: Axes, domain: Domain, values: Floats, what: str) -> None:
    numeric = domain.points is not None and domain.points.shape[1] == 1
    x = domain.points[:, 0] if numeric and domain.points is not None else np.arange(len(domain))
    spacing = float(np.diff(np.sort(x)).min()) if len(x) > 1 else 1.0
    axes.bar(x, values, width=0.85 * (spacing or 1.0), color=SERIES[0])
    axes.set_ylabel(what, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.margins(x=0.02)
    if numeric:
        axes.set_xlabel(plain_text(domain.unit), fontsize=8)
        return
    step = -(-len(domain) // _MAX_TICKS)
    ticks = range(0, len(domain), step)
    names = [label_name(domain.labels[k])[:16] for k in ticks]
    axes.set_xticks(list(ticks), names, rotation=60, ha="right")


def draw_matrix(axes: Axes, matrix: Floats) -> None:
    """p(o|s) as an image over the indices, logarithmic colours."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    top = float(matrix.max())
    picture = axes.imshow(
        np.maximum(matrix, _DECADES * top),
        cmap=COLOURS,
        norm=LogNorm(_DECADES * top, top),
        aspect="auto",
        interpolation="nearest",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("mechanism p(o|s), logarithmic colours", fontsize=9)
    _name_axes(axes, "observable o (index)", "secret s (index)")
    colour_bar(axes, picture, "probability")


def mark(axes: Axes, secrets: Domain, observables: Domain, secret: int) -> None:
    """The true secret, where both domains can be drawn on one map."""
    inner = observables.inner if isinstance(observables, Suppressible) else observables
    there, shown = in_plane(secrets), in_plane(inner)
    if there is not None and shown is not None and secrets.coordinates == inner.coordinates:
        axes.plot(*there[secret], "o", markersize=15, markeredgewidth=1.8,
                  markerfacecolor="none", color=MARK)  # fmt: skip


def mark_place(axes: Axes, domain: Domain, place: int) -> None:
    """A cross at one of the elements, such as the adversary's estimate, where these have places."""
    points = in_plane(domain)
    if points is not None:
        axes.plot(*points[place], "x", markersize=10, markeredgewidth=2.0, color=MARK)


def in_plane(domain: Domain) -> Floats | None:
    """Two coordinates for every element, where the domain has them."""
    points = domain.points
    return points if points is not None and points.shape[1] == 2 else None


def place_axes(axes: Axes, coordinates: str, points: Floats, unit: str) -> None:
    """Names, units and proportions for points (n, 2) in the plane or in degrees."""
    if coordinates == "lonlat":
        middle = float(np.cos(np.radians(points[:, 1].mean())))
        axes.set_aspect(1.0 / max(middle, 0.05))
        names = ("longitude (°)", "latitude (°)")
    else:
        axes.set_aspect("equal")
        unit = plain_text(words.in_brackets(unit))
        names = (f"x{unit}", f"y{unit}")
    axes.ticklabel_format(useOffset=False)
    _name_axes(axes, *names)


def _name_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7)


def colour_bar(axes: Axes, picture: Any, what: str) -> None:
    """A bar beside a picture that says what its colours mean."""
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(picture, ax=axes, shrink=0.85)
    bar.set_label(what, fontsize=7)
    bar.ax.tick_params(labelsize=7)


def plain_text(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")


def label_name(label: object) -> str:
    """A label as matplotlib may write it."""
    return plain_text(words.label(label))


def series_colour(k: int, count: int) -> str:
    """The colour of series k of ``count``: of few, those that colour-blind readers tell apart."""
    if count <= len(SERIES):
        return SERIES[k]
    _require_installed("plots")
    from matplotlib.colors import hsv_to_rgb, to_hex

    return str(to_hex(hsv_to_rgb((k / count, 0.75, 0.75))))


def indices_of(domain: Domain, labels: Sequence[Hashable] | None, default: list[int]) -> list[int]:
    """The elements that have these labels; where nothing is said, the default."""
    if labels is None:
        return default
    if not labels:
        raise ProblemError("no label is given", where="plots", remedy="Give at least one")
    return [domain.index(label) for label in labels]


def telling_secrets(weights: Floats) -> list[int]:
    """The likeliest element, and those at the quartiles of the distribution."""
    order = np.argsort(-weights, kind="stable")
    positive = max(1, int(np.count_nonzero(weights)))
    ranks = dict.fromkeys((0, positive // 4, positive // 2))
    return [int(order[rank]) for rank in ranks]
