"""One picture of a design: its prior, its matrix, and what three secrets report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optmech.analysis.measures import distortion
from optmech.problem.attacked import choose_distance
from optmech.show import words
from optmech.show.backdrop import Source
from optmech.show.figures import measure_constraints
from optmech.show.plots.drawing import (
    SYMBOLS,
    draw_matrix,
    draw_values,
    label_name,
    mark,
    new_figure,
    plain_text,
    require_matplotlib,
    save,
    telling_secrets,
)
from optmech.show.words import nearness
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech.designs.design import Design


@checked_arguments
def mechanism_picture(design: Design, path: str | Path, *, backdrop: Source | None = None) -> None:
    """Draw a design: the prior, the matrix p(o|s), and what three of the secrets report.

    The secrets are the likeliest one, and those at the quartiles of the prior. Grids are drawn
    as images, points as a map, everything else as bars. ``backdrop`` as of ``report``.

    Raises
    ------
    ProblemError
        Without matplotlib, on a path that is not .png, .pdf or .svg, or cannot be written.
    InfeasibleError
        Where the design has no mechanism.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> om.plots.mechanism_picture(design, "cells.png")
    >>> open("cells.png", "rb").read(4)
    b'\x89PNG'
    """
    require_matplotlib(path)
    if design.gradient is not None:
        from optmech.show.plots.region import region_picture

        region_picture(design, path, backdrop=backdrop)
        return
    mechanism, problem = design.mechanism, design.problem
    figure = new_figure(12.5, 8.2)
    axes: dict[str, Axes] = figure.subplot_mosaic([["prior"] * 3 + ["matrix"] * 3, list("aabbcc")])
    prior, matrix = problem.prior.weights, mechanism.matrix
    draw_values(axes["prior"], problem.secrets, prior, "prior π(s)", float(prior.max()),
                backdrop=backdrop)  # fmt: skip
    draw_matrix(axes["matrix"], matrix)
    chosen = telling_secrets(prior)
    draw_reports([axes[name] for name in "abc"[: len(chosen)]], design, chosen, "secret ", backdrop)
    for name in "abc"[len(chosen) :]:
        axes[name].set_axis_off()
    figure.suptitle(_caption(design), fontsize=10)
    save(figure, path)


def draw_reports(
    panels: list[Axes],
    design: Design,
    chosen: list[int],
    what: str = "",
    backdrop: Source | None = None,
) -> None:
    """p(o|s) of the chosen secrets, a panel each, on one scale; a ring marks the secret."""
    m, prior = design.mechanism, design.problem.prior.weights
    top = float(m.matrix[chosen].max())
    for axes, s in zip(panels, chosen, strict=True):
        name = label_name(m.secrets.labels[s])[:40]
        title = f"reports for {what}{name}  (π = {prior[s]:.2%})"
        draw_values(axes, m.observables, m.matrix[s], title, top, backdrop=backdrop)
        mark(axes, m.secrets, m.observables, s)


def _caption(design: Design) -> str:
    problem, mechanism = design.problem, design.mechanism
    name, distance = choose_distance(problem)
    unit = words.unit_of(problem, name)
    error = distortion(mechanism, problem.prior, distance)
    parts = [
        f"loss {design.loss:.6g}, proved bound {design.lower_bound:.6g}: {nearness(design)}",
        f"best attack errs by {error:.4g}{unit} ({name})",
    ]
    parts += [
        f"{row.kind}: {SYMBOLS.get(row.quantity, row.quantity)} = {row.measured:.6g} "
        f"({row.sense} {row.promised:.6g})"
        for row in measure_constraints(problem, mechanism)
        if row.quantity != "outside"
    ]
    lines = [problem.title, " · ".join(parts[:2]), " · ".join(parts[2:5])]
    return "\n".join(plain_text(line) for line in lines if line)
