"""What is to be said beside a design: secrets without prior weight, limits missed by rounding."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import known
from optmech.problem import Problem
from optmech.statement import Statement


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
    worst = problem.secrets.labels[int(rows[losses.argmax()])]
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
