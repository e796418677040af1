"""What is to be said beside a design: secrets without prior weight, limits missed by rounding, what
constraints with thresholds really keep.
"""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import known
from optmech.certificate.objective import relative_gap
from optmech.certificate.statement import Statement
from optmech.designs.design import Design
from optmech.designs.facts import facts_of
from optmech.designs.sentences import UNKNOWN, all_words
from optmech.exact.number import from_above, from_below
from optmech.problem import Problem
from optmech.problem.segments import is_known_between


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
    """What gap and lower bound of a design are about, in words, where the loss of all mechanisms is
    not meant. With a ``loss`` those of its mechanism packed, which has this loss."""
    if design.exact is None:
        return ()
    facts = facts_of(design.problem, design)
    if facts.aim.lower != "objective":
        said = f"; the lower bound is on the {facts.aim.lower}"
        if facts.aim.lower == "nothing":
            figures = f"{design.objective:.6g}, at least {from_below(design.bound)}"
            said = f": {figures}. Of the loss no bound is claimed"
        return (f"status, gap and bound are of {facts.aim.quantity}{said}",)
    if design.mesh is None:
        return ()
    loss = design.loss if loss is None else loss
    # losses between vertices that count as linear are no losses of points
    what, of = ("the loss that counts", " of it") if facts.aim.counted else ("the loss", "")
    first = (
        f"the gap of {from_above(relative_gap(loss, design.bound), 2)} is to "
        f"{from_below(design.bound)}, proved{of} for {all_words(facts.among)}"
    )
    every = facts.every
    worst = _about_worst(design.problem) if design.gradient is None else ()
    if every is None:
        return first, UNKNOWN, *worst
    own = {s.index for s in facts.promises if s.promised.scope == "every point"}
    others = [f"constraints[{k}]" for k in facts.among.keeps if k not in own]
    beside = f" and satisfies {', '.join(others)}" if others else ""
    if every.keeps != facts.among.keeps:
        beside = f", whether it satisfies {', '.join(others)} or not"
    by = "" if design.gradient is None else ", by the places of the prior"
    if facts.cells is not None:
        by = f", by {facts.cells} cells of the {len(design.problem.secrets):,} places of the prior"
    above = relative_gap(loss, design.lower_bound)
    beyond = (
        f"the lower bound of {from_below(design.lower_bound)} holds for every mechanism that is "
        f"private at every point{beside}{by}: {what} is at most {from_above(above, 2)} of itself "
        "above it"
    )
    return first, beyond, *worst


def threshold_notes(design: Design) -> tuple[str, ...]:
    """What constraints with thresholds really keep; nothing of others."""
    notes = []
    for part in design.approximations:
        repaired = "no repair was found that keeps the promise for all pairs"
        if not math.isnan(part.repaired_loss):
            repaired = (
                "repaired to keep the promise for all pairs its objective would be "
                f"{part.repaired_loss:.9g} and not {abs(design.objective):.9g}"
            )
        notes.append(
            f"constraints[{part.constraint}]: with its thresholds the design has "
            f"ε = {from_above(part.epsilon, 9)} and not {part.promised_epsilon:.9g}; {repaired}"
        )
    return tuple(notes)
