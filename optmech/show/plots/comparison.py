"""Several designs against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from optmech.analysis.measures import distortion
from optmech.errors import ProblemError
from optmech.show import words
from optmech.show.measured import choose_distance, measure_constraints
from optmech.show.plots.drawing import SERIES, SYMBOLS, new_figure, plain_text
from optmech.show.reports.figures import loss_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optmech.designs.design import Design

Across = Literal["promised", "attack"]


def frontier(
    designs: Iterable[Design],
    across: Across = "promised",
    *,
    constraint: int = 0,
    names: Sequence[str] | None = None,
) -> Figure:
    """Loss of several designs with their proved bounds as whiskers.

    Parameters
    ----------
    across:
        ``"promised"``: the number that ``constraint`` promises (ε, δ, a distortion or a loss);
        ``"attack"``: the error of the optimal attack.
    names:
        Texts beside the points.

    Raises
    ------
    ProblemError
        Without designs, where names do not fit, or a constraint promises no number.
        InfeasibleError where a design has no mechanism.
    """
    chosen = list(designs)
    if not chosen or (names is not None and len(names) != len(chosen)):
        raise ProblemError(
            f"{len(chosen)} designs" + (f" and {len(names)} names" if names is not None else ""),
            where="designs",
            remedy="Give at least one design, and a name for each or none",
        )
    if across not in ("promised", "attack"):
        raise ProblemError(
            f"{across!r} is unknown", where="across", remedy='Use "promised" or "attack"'
        )
    points = [_point(design, across, constraint) for design in chosen]
    order = sorted(range(len(chosen)), key=lambda k: points[k][0])
    figure = new_figure(6.4, 4.4)
    axes = figure.subplots()
    x = [points[k][0] for k in order]
    y = [chosen[k].loss for k in order]
    below = [max(0.0, chosen[k].loss - chosen[k].lower_bound) for k in order]
    axes.errorbar(x, y, yerr=[below, [0.0] * len(y)], color=SERIES[0], ecolor=SERIES[1],
                  marker="o", capsize=3)  # fmt: skip
    for name, (at, _), design in zip(names or (), points, chosen, strict=False):
        axes.annotate(plain_text(name), (at, design.loss), xytext=(6, 6),
                      textcoords="offset points", fontsize=8)  # fmt: skip
    problem = chosen[0].problem
    unit = words.unit_of(problem, loss_name(problem)).strip()
    which = "worst-case" if problem.objective == "worst_loss" else "expected"
    axes.set_xlabel(plain_text(points[0][1]))
    axes.set_ylabel(plain_text(f"{which} loss{words.in_brackets(unit)}"))
    axes.grid(alpha=0.3)
    return figure


def _point(design: Design, across: Across, constraint: int) -> tuple[float, str]:
    problem, m = design.problem, design.mechanism
    if across == "attack":
        name, distance = choose_distance(problem)
        unit = words.unit_of(problem, name).strip()
        error = distortion(m, problem.prior, distance)
        return error, f"error of the best attack{words.in_brackets(unit)}"
    for row in measure_constraints(problem, m):
        if row.constraint == constraint and row.quantity != "outside":
            symbol = SYMBOLS.get(row.quantity, row.quantity)
            return row.promised, f"{symbol} promised ({row.kind})"
    raise ProblemError(
        "promises no number", where=f"constraints[{constraint}]", remedy="Choose another constraint"
    )
