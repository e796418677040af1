"""A design for every point of a region: p(o|x) as maps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.designs.sentences import figures_words, nearness
from optmech.show import words
from optmech.show.backdrop import Lattice, Source, border, lattice_of, plane_of_mesh
from optmech.show.plots.drawing import (
    COLOURS,
    colour_bar,
    draw_backdrop,
    indices_of,
    label_name,
    mark_place,
    new_panels,
    place_axes,
    plain_text,
    require_matplotlib,
    save,
    telling_secrets,
)
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optmech.designs.design import Design

_LEVELS = 10
_MOST_DOTS = 2000


@checked_arguments
def field(
    design: Design,
    reports: Sequence[Hashable] | None = None,
    *,
    backdrop: Source | None = None,
) -> Figure:
    """p(o|x) over the region of a design, a map for each of the labels ``reports``, on one scale.

    Default: the likeliest report and those at the quartiles of p(o). Lines are those of equal
    probability, dots the places of the prior, and a cross is the report, where it has a place.
    ``backdrop``, lines behind the maps, is as of ``om.report``.

    Raises
    ------
    ProblemError
        Without matplotlib, on an unknown label, or on a design over finitely many secrets.

    Examples
    --------
    >>> mesh, km = om.Mesh.grid((0, 0, 2, 2), width=1, unit="km"), om.distances.euclidean()
    >>> places = om.Domain(["west", "east"], points=[[0.5, 1.0], [1.5, 1.0]], unit="km")
    >>> promise = om.MetricPrivacy(1, km, everywhere=mesh)
    >>> design = om.solve(om.Problem(om.Prior.uniform(places), km, constraints=[promise]))
    >>> figure = om.plots.field(design, reports=["west"])
    >>> len(figure.axes) >= 1
    True
    """
    region = design.region
    problem, observables = design.problem, design.problem.observables
    chosen = indices_of(observables, reports, telling_secrets(region.push(problem.prior)))
    lattice = lattice_of(region)
    top = float(lattice.values[:, :, chosen].max())
    figure, panels = new_panels(len(chosen), 4.4, 3.8)
    for axes, o in zip(panels, chosen, strict=True):
        _draw(axes, design, lattice, o, top)
        if backdrop is not None:
            plane = plane_of_mesh(region.mesh, problem.prior)
            draw_backdrop(axes, backdrop, plane, region.mesh.coordinates)
    return figure


@checked_arguments
def region_picture(design: Design, path: str | Path, *, backdrop: Source | None = None) -> None:
    """Write ``field`` of a design with its loss and both bounds above it; raises ProblemError where
    it cannot.

    Examples
    --------
    >>> mesh, km = om.Mesh.grid((0, 0, 2, 2), width=1, unit="km"), om.distances.euclidean()
    >>> places = om.Domain(["west", "east"], points=[[0.5, 1.0], [1.5, 1.0]], unit="km")
    >>> promise = om.MetricPrivacy(1, km, everywhere=mesh)
    >>> design = om.solve(om.Problem(om.Prior.uniform(places), km, constraints=[promise]))
    >>> om.plots.region_picture(design, "region.png")
    >>> open("region.png", "rb").read(4)
    b'\x89PNG'
    """
    require_matplotlib(path)
    figure = field(design, backdrop=backdrop)
    near = nearness(design).replace("; ", "\n")
    caption = f"{design.problem.title}\n{figures_words(design)}\n{near}"
    figure.suptitle(plain_text(caption.strip()), fontsize=10)
    save(figure, path)


def _draw(axes: Axes, design: Design, lattice: Lattice, o: int, top: float) -> None:
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import Polygon

    problem, mesh = design.problem, design.region.mesh
    values = lattice.values[:, :, o]
    x, y = lattice.x, lattice.y
    picture = axes.imshow(
        values,
        origin="lower",
        extent=(x[0], x[-1], y[0], y[-1]),
        cmap=COLOURS,
        norm=PowerNorm(0.5, vmin=0.0, vmax=top),
        interpolation="bilinear",
    )
    outline = Polygon(border(mesh), closed=True, fill=False, edgecolor="#777777", linewidth=0.8)
    axes.add_patch(outline)
    picture.set_clip_path(outline)
    levels = np.linspace(0, top, _LEVELS + 1)[1:-1]
    if values.max() > levels[0]:
        lines = axes.contour(x, y, values, levels=levels, colors="white", linewidths=0.6)
        lines.set_clip_path(outline)
    places = problem.secrets.require_points("draw them")
    weights = problem.prior.weights
    heaviest = np.argsort(-weights, kind="stable")[:_MOST_DOTS]
    axes.scatter(
        places[heaviest, 0],
        places[heaviest, 1],
        s=1 + 12 * weights[heaviest] / weights.max(),
        c="#555555",
        linewidths=0,
    )
    reports = problem.observables
    if reports.coordinates == mesh.coordinates:
        mark_place(axes, reports, o)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    place_axes(axes, mesh.coordinates, mesh.vertices, mesh.unit)
    colour_bar(axes, picture, "probability")
    name = label_name(words.label(reports.labels[o]))[:40]
    axes.set_title(f"p({name} | x), at most {values[lattice.inside].max():.2%}", fontsize=9)
