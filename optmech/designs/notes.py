"""What is to be said beside a design: secrets without prior weight, limits missed by rounding."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.factors import Factors
from optmech.exact.exponentials import bracket
from optmech.problem.problem import Problem
from optmech.statement.statement import Statement


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
    limits = limit_notes(problem.statement)
    return problem.notes + limits + weightless_notes(problem, matrix)


def limit_notes(statement: Statement) -> tuple[str, ...]:
    """Where a stated limit misses what is attainable by rounding, and the attainable is meant."""
    factors = Factors.of(statement)
    found = []
    for part, (least, _) in zip(statement.distortion, factors.minima, strict=True):
        if least < bracket(part.minimum)[0]:
            found.append(
                f"constraints[{part.index}]: the minimum exceeds d_max by rounding only; d_max "
                "itself is meant"
            )
    for limit, (most, _) in zip(statement.loss_limits, factors.maxima, strict=True):
        if most > bracket(limit.maximum)[1]:
            found.append(
                f"constraints[{limit.index}]: the maximum falls short of the least possible loss "
                "by rounding only; the least possible loss is meant"
            )
    return tuple(found)
