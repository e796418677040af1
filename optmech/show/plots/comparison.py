"""Several designs against each other, and what two mechanisms leak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from optmech.analysis.measures import distortion
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of
from optmech.problem.attack import choose_distance
from optmech.show import words
from optmech.show.figures import loss_name, measure_constraints
from optmech.show.plots.drawing import SERIES, SYMBOLS, new_figure, plain_text, series_colour
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optmech.designs.design import Design


Across = Literal["promised", "attack"]
_LEAST_BANDED = 4
_MOST_NAMED = 10


@checked_arguments
def tradeoff(
    designs: Iterable[Design],
    across: Across = "promised",
    *,
    constraint: int = 0,
    names: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
) -> Figure:
    """Loss of several designs with their proved bounds as whiskers.

    Parameters
    ----------
    across:
        ``"promised"``: the number that ``constraint`` promises (ε, δ, a distortion or a loss);
        ``"attack"``: the error of the optimal attack.
    names:
        Texts beside the points.
    groups:
        What each design belongs to, such as a user: a line for each. Of four and more, the median
        and the middle half are drawn where at least half of them have a point.

    Raises
    ------
    ProblemError
        Without designs, where names do not fit, or a constraint promises no number.
        InfeasibleError where a design has no mechanism.

    Examples
    --------
    >>> coin, d = om.Domain(["yes", "no"]), om.distances.hamming()
    >>> uniform, promises = om.Prior.uniform(coin), [om.DifferentialPrivacy(e) for e in (1, 2)]
    >>> designs = [om.solve(om.Problem(uniform, d, constraints=[promise])) for promise in promises]
    >>> figure = om.plots.tradeoff(designs)
    >>> figure.axes[0].get_ylabel()
    'expected loss'
    """
    chosen = list(designs)
    if not chosen or (names is not None and len(names) != len(chosen)):
        raise ProblemError(
            f"{len(chosen)} designs" + (f" and {len(names)} names" if names is not None else ""),
            where="designs",
            remedy="Give at least one design, and a name for each or none",
        )
    one_of(across, ("promised", "attack"), "across")
    if groups is not None and len(groups) != len(chosen):
        raise ProblemError(
            f"{len(chosen)} designs and {len(groups)} groups",
            where="groups",
            remedy="Give a group for each design, or none",
        )
    points = [_point(design, across, constraint) for design in chosen]
    at = np.array([number for number, _ in points])
    losses = np.array([design.loss for design in chosen])
    below = np.maximum(0.0, losses - [design.lower_bound for design in chosen])
    figure = new_figure(6.4, 4.4)
    axes = figure.subplots()
    _draw_groups(axes, at, losses, below, groups or [""] * len(chosen))
    for name, place in zip(names or (), zip(at, losses, strict=True), strict=False):
        axes.annotate(plain_text(name), place, xytext=(6, 6),
                      textcoords="offset points", fontsize=8)  # fmt: skip
    problem = chosen[0].problem
    unit = problem.space.unit_of(loss_name(problem))
    which = "worst-case" if problem.objective == "worst_loss" else "expected"
    axes.set_xlabel(plain_text(points[0][1]))
    axes.set_ylabel(plain_text(f"{which} loss{words.in_brackets(unit)}"))
    axes.grid(alpha=0.3)
    return figure


def _draw_groups(
    axes: Axes, at: Floats, losses: Floats, below: Floats, groups: Sequence[str]
) -> None:
    """A line with whiskers for each group, and what most of many have in common."""
    known = list(dict.fromkeys(groups))
    alone, banded = len(known) == 1, len(known) >= _LEAST_BANDED
    for k, group in enumerate(known):
        own = [j for j in np.argsort(at, kind="stable").tolist() if groups[j] == group]
        colour = series_colour(k, len(known))
        axes.errorbar(at[own], losses[own], yerr=[below[own], np.zeros(len(own))], color=colour,
                      ecolor=SERIES[1] if alone else colour, marker="o", capsize=3,
                      markersize=6 if alone else 3.5, alpha=0.4 if banded else 1.0,
                      label=plain_text(group) if len(known) <= _MOST_NAMED else None)  # fmt: skip
    if banded:
        _draw_band(axes, at, losses, len(known))
    if not alone and axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8)


def _draw_band(axes: Axes, at: Floats, losses: Floats, groups: int) -> None:
    """Median and quartiles where at least half of the groups, and four of them, have a point."""
    columns = {place: losses[at == place] for place in np.unique(at).tolist()}
    least = max(_LEAST_BANDED, groups / 2)
    shared = [place for place, values in columns.items() if len(values) >= least]
    if len(shared) > 1:
        quartiles = [np.quantile(columns[place], (0.25, 0.5, 0.75)) for place in shared]
        low, median, high = np.transpose(quartiles)
        axes.fill_between(shared, low, high, color="#555555", alpha=0.2, label="middle half")
        axes.plot(shared, median, color="black", linewidth=2.5, label="median")


def _point(design: Design, across: Across, constraint: int) -> tuple[float, str]:
    problem, m = design.problem, design.mechanism
    if across == "attack":
        name, distance = choose_distance(problem)
        unit = problem.space.unit_of(name)
        error = distortion(m, problem.prior, distance)
        return error, f"error of the best attack{words.in_brackets(unit)}"
    for row in measure_constraints(problem, m):
        if row.constraint == constraint and row.quantity != "outside":
            symbol = SYMBOLS.get(row.quantity, row.quantity)
            unit = words.unit_of_promise(problem, constraint, row.quantity)
            return row.promised, f"{symbol} promised{words.in_brackets(unit)}, {row.kind}"
    raise ProblemError(
        "promises no number", where=f"constraints[{constraint}]", remedy="Choose another constraint"
    )
