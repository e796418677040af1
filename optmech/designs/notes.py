"""What is to be said beside a design: secrets without prior weight, limits missed by rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import known
from optmech.certificate.objective import relative_gap
from optmech.certificate.statement import Statement
from optmech.problem import Problem
from optmech.problem.segments import is_known_between

if TYPE_CHECKING:
    from optmech.designs.design import Design


def weightless(statement: Statement) -> Ints:
    """Secrets whose loss the objective does not count."""
    if statement.objective != "expected_loss":
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(statement.prior == 0)


def weightless_notes(problem: Problem, matrix: Floats) -> tuple[str, ...]:
    """What secrets without prior weight lose, in words; nothing where there are none."""
    statement = problem.statement
    rows = weightless(statement)
    if not len(rows):
        return ()
    losses = (statement.loss[rows] * matrix[rows]).sum(axis=1)
    worst = problem.secrets.labels[rows[losses.argmax()]]
    return (
        f"{len(rows)} of {statement.secrets} secrets have no prior weight, and the expected loss "
        f"does not count them: theirs is {losses.mean():.4g} on average and {losses.max():.4g} at "
        f"worst, of {worst}",
    )


def design_notes(problem: Problem, matrix: Floats) -> tuple[str, ...]:
    """What is to be said of a problem and the matrix released for it."""
    statement = problem.statement
    limits = tuple(filter(None, (family.note(statement) for family in known(statement))))
    return problem.notes + limits + weightless_notes(problem, matrix)


_EVERY = "the worst loss is that of every point, between vertices too"
_STRAIGHT = (
    "the loss of a point between two neighbouring vertices counts as linear between theirs: the "
    "worst loss holds at every point where it is no larger, as convex ones are, and bounds of "
    "mechanisms on these segments are of the loss that counts"
)
_VERTICES = "the worst loss is that of the vertices, and of no point between them"
"""Of roads: distances along them may be larger between two crossings than at both."""


def _about_worst(problem: Problem) -> tuple[str, ...]:
    """Which points the worst loss of a line or network is about, in words."""
    if problem.objective != "worst_loss":
        return ()
    if problem.statement.segments is None:
        return (_VERTICES,)
    return (_EVERY if is_known_between(problem.space, problem.loss) else _STRAIGHT,)


def about_bounds(design: Design, loss: float | None = None) -> tuple[str, ...]:
    """What gap and lower bound of a design for a mesh are about, in words; nothing of others. With
    a ``loss`` those of its mechanism packed, which has this loss."""
    gradient, mesh = design.gradient, design.mesh
    if mesh is None or design.exact is None:
        return ()
    loss = design.loss if loss is None else loss
    above = relative_gap(loss, design.lower_bound)

    def beyond(how: str) -> str:
        return (
            f"the lower bound of {design.lower_bound:.6g} holds for every mechanism that is "
            f"private at every point{how}: the loss is at most {above:.2g} of itself above it"
        )

    form = "linear" if mesh.degree == 1 else f"such polynomials of degree {mesh.degree}"
    where = "on every segment" if gradient is None else "in every triangle of the mesh"
    first = (
        f"the gap of {relative_gap(loss, design.bound):.2g} is to {design.bound:.6g}, proved for "
        f"all mechanisms that are {form} {where}"
    )
    if gradient is None:
        lower = [beyond("")] if design.lower_bound else []
        return first, *lower, *_about_worst(design.problem)
    others = [f"constraints[{k}]" for k in range(len(design.problem.constraints))]
    others.pop(gradient.index)
    beside = f" and satisfies {', '.join(others)}" if others else ""
    if beside:
        first += " and satisfy the other constraints"
    outer = design.certificate.outer
    if outer is None:
        return first, "no lower bound was looked for that holds for every mechanism"
    what = "the places of the prior"
    if outer.cells is not None:
        what = f"{len(np.unique(outer.cells))} cells of the {len(outer.cells):,} {what[4:]}"
        beside = f", whether it satisfies {', '.join(others)} or not" if others else ""
    return first, beyond(f"{beside}, by {what}")
