"""Small multiples of a mechanism and of posteriors, errors of the attack, slack of constraints; one
picture of a design as a file. Pictures of coupling mechanisms and
optimal targets.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.analysis.measures import distortion, posterior
from optmech.designs.sentences import figures_words, nearness
from optmech.errors import ProblemError
from optmech.exact.number import from_below
from optmech.problem.attack import choose_distance
from optmech.show import words
from optmech.show.backdrop import Source
from optmech.show.figures import adversary, largest_log_ratios, measure_constraints
from optmech.show.plots.drawing import (
    MARK,
    SERIES,
    SYMBOLS,
    draw_matrix,
    draw_values,
    in_plane,
    indices_of,
    label_name,
    mark,
    mark_place,
    new_figure,
    new_panels,
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
    from optmech.mechanisms.targets.design import TargetDesign

__all__ = ["target_picture"]
__dir__ = __all__.copy


_NAMES = {"epsilon": "ε", "delta": "δ", "distortion": "attack error"}


@checked_arguments
def mechanism(
    design: Design,
    secrets: Sequence[Hashable] | None = None,
    *,
    backdrop: Source | None = None,
) -> Figure:
    """Small multiples of p(o|s), one panel for each of the labels ``secrets``, on one scale.

    Default: the likeliest secret and those at the quartiles of the prior; a ring marks the secret.
    ``backdrop``, lines behind the maps, is as of ``om.report``.

    Raises
    ------
    ProblemError
        Without matplotlib, or on an unknown label. InfeasibleError without a mechanism.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> figure = om.plots.mechanism(design, secrets=[(0, 0), (1, 1)])
    >>> len(figure.axes) >= 2
    True
    """
    default = telling_secrets(design.problem.prior.weights)
    chosen = indices_of(design.mechanism.secrets, secrets, default)
    figure, panels = new_panels(len(chosen), 4.2, 3.6)
    draw_reports(panels, design, chosen, backdrop=backdrop)
    return figure


@checked_arguments
def posteriors(
    design: Design,
    observables: Sequence[Hashable] | None = None,
    *,
    backdrop: Source | None = None,
) -> Figure:
    """Small multiples of the posterior π(s|o), one panel for each of the labels ``observables``.

    Default: the likeliest observable and those at the quartiles of p(o). A cross marks the best
    guess, whose expected error is in the title. ``backdrop`` as of ``mechanism``.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> figure = om.plots.posteriors(design, observables=[(0, 0)])
    >>> len(figure.axes) >= 1
    True
    """
    m, problem = design.mechanism, design.problem
    name, distance = choose_distance(problem)
    unit = words.unit_of(problem, name)
    attack = adversary(m, problem.prior, distance)
    chosen = indices_of(m.observables, observables, telling_secrets(attack.marginal))
    belief = posterior(m, problem.prior)
    figure, panels = new_panels(len(chosen), 4.2, 3.6)
    top = float(belief[chosen].max())
    for axes, o in zip(panels, chosen, strict=True):
        report = words.label(m.observables.labels[o])[:40]
        title = (
            f"posterior after {report}  (p = {attack.marginal[o]:.2%}), "
            f"error {attack.error[o]:.3g}{unit}"
        )
        draw_values(axes, m.secrets, belief[o], plain_text(title), top, backdrop=backdrop)
        mark_place(axes, m.secrets, int(attack.guess[o]))
    return figure


@checked_arguments
def attack_error(design: Design, *, backdrop: Source | None = None) -> Figure:
    """What the optimal attack is left with: its error for every secret, drawn on the domain, and
    the share of the prior for which it is at most x, beside the error without seeing anything.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> len(om.plots.attack_error(design).axes) >= 2
    True
    """
    m, problem = design.mechanism, design.problem
    name, distance = choose_distance(problem)
    unit = problem.space.unit_of(name)
    attack = adversary(m, problem.prior, distance)
    figure = new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    draw_values(left, m.secrets, attack.per_secret, "error of the best attack, by secret",
         float(attack.per_secret.max()) or 1.0, linear=True, what=_axis("error", unit),
         backdrop=backdrop)  # fmt: skip
    order = np.argsort(attack.per_secret, kind="stable")
    share = np.cumsum(problem.prior.weights[order])
    right.step(attack.per_secret[order], share, where="post", color=SERIES[0])
    right.axvline(attack.total, color=SERIES[1], linestyle="--",
                  label=f"mean {attack.total:.4g}")  # fmt: skip
    right.set_xlabel(_axis(f"error of the best attack, {name}", unit))
    right.set_ylabel("share of secrets (prior)")
    right.set_ylim(0, 1.02)
    right.legend(frameon=False)
    return figure


@checked_arguments
def constraint_slack(design: Design) -> Figure:
    """How much of every promise is used, and how much of its log ratio every pair of secrets.

    Bars are measured divided by promised: 1 is tight; at least 1 for distortion.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> len(om.plots.constraint_slack(design).axes) >= 1
    True
    """
    m, problem = design.mechanism, design.problem
    rows = [row for row in measure_constraints(problem, m) if row.promised > 0]
    limits = problem.statement.log_ratio
    limited = np.isfinite(limits) & (limits > 0)
    if not rows and not limited.any():
        raise ProblemError(
            "no constraint has a number to compare with",
            where="constraint_slack",
            remedy="Draw a design with constraints",
        )
    figure = new_figure(10.5, 1.8 + 0.4 * max(len(rows), 4))
    left, right = figure.subplots(1, 2)
    used = [row.measured / row.promised for row in rows]
    names = [
        plain_text(f"{row.constraint} {row.kind}: {_NAMES.get(row.quantity, row.quantity)}")
        for row in rows
    ]
    left.barh(range(len(rows)), used, color=SERIES[0], height=0.6)
    left.axvline(1.0, color=SERIES[1], linestyle="--")
    left.set_yticks(range(len(rows)), names)
    left.set_ylim(max(len(rows), 3) - 0.5, -0.5)
    left.tick_params(labelsize=8)
    left.set_xlabel("measured / promised")
    _ratio_shares(right, m.matrix, limits, limited)
    return figure


def _ratio_shares(axes: Axes, matrix: np.ndarray, limits: np.ndarray, limited: np.ndarray) -> None:
    axes.set_xlabel("used share of the allowed log ratio")
    axes.set_ylabel("pairs of secrets")
    if not limited.any():
        axes.text(0.5, 0.5, "no pair is limited", ha="center", transform=axes.transAxes)
        return
    found = np.array(list(largest_log_ratios(matrix)))
    share = np.minimum(found[limited] / limits[limited], 1.0)
    axes.hist(share, bins=np.linspace(0, 1, 41).tolist(), color=SERIES[0])
    axes.set_xlim(0, 1)


def _axis(name: str, unit: str) -> str:
    return plain_text(f"{name}{words.in_brackets(unit)}")


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
        f"{figures_words(design)}: {nearness(design)}",
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


_MOVES = 60
"""Largest moves that are drawn as arrows."""


def target_picture(design: TargetDesign, path: str | Path, title: str) -> None:
    """Draw every input λ_t above its output μ_t, on one scale, with the largest moves between
    different points of the plane as arrows. Raises ProblemError without matplotlib, on a path that
    is not .png, .pdf or .svg, or cannot be written."""
    require_matplotlib(path)
    count = len(design.names)
    figure = new_figure(max(6.0, 4.2 * count), 8.2)
    axes = figure.subplots(2, count, squeeze=False)
    top = float(max(design.inputs.max(), design.outputs.max()))
    for t, name in enumerate(design.names):
        label = plain_text(name)
        draw_values(axes[0][t], design.secrets, design.inputs[t], f"input of {label}", top)
        text = f"output of {label}: loss {design.losses[t]:.4g}"
        draw_values(axes[1][t], design.observables, design.outputs[t], text, top)
        _arrows(axes[1][t], design, t)
    caption = f"loss {design.loss:.6g}, proved bound {from_below(design.lower_bound)}"
    privacy = (
        "outputs equal"
        if design.is_common
        else f"outputs ({float(design.epsilon):.4g}, {float(design.delta):.4g})-close"
    )
    lines = [plain_text(title), f"{caption} · {privacy}"]
    figure.suptitle("\n".join(line for line in lines if line), fontsize=10)
    save(figure, path)


def _arrows(axes: Axes, design: TargetDesign, t: int) -> None:
    start, end = in_plane(design.secrets), in_plane(design.observables)
    if start is None or end is None:
        return
    plan = design.plans[t]
    moves = [
        (flow / plan.total, x, y)
        for (x, y), flow in plan.flows.items()
        if not np.array_equal(start[x], end[y])
    ]
    moves.sort(reverse=True)
    for mass, x, y in moves[:_MOVES]:
        axes.annotate(
            "",
            xy=end[y].tolist(),
            xytext=start[x].tolist(),
            arrowprops={
                "arrowstyle": "->",
                "color": MARK,
                "linewidth": 0.4 + 2.6 * mass / moves[0][0],
                "alpha": 0.8,
            },
        )
