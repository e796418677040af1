"""Mixing a nearly feasible matrix with an anchor that satisfies the convex constraints.

Every constraint beyond the ratio cone is g(P) <= 0 with g convex, so on the segment from P to a
feasible anchor A the feasible part is an interval that ends in A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.objective import objective_value
from optmech.certificate.statement import Statement
from optmech.lp.inequalities import Inequalities

_STEPS = 60


def constant_anchors(statement: Statement, matrix: Floats) -> Iterator[Floats]:
    """Mechanisms that ignore the secret: they satisfy every privacy constraint.

    The output marginal of ``matrix``, the single cheapest observable, and the uniform row; those
    that the support allows.
    """
    usable = statement.allowed.all(axis=0)
    if not usable.any():
        return
    costs = np.where(usable, statement.prior @ statement.loss, np.inf)
    cheapest = np.zeros(statement.observables)
    cheapest[int(costs.argmin())] = 1.0
    marginal = np.where(usable, matrix.mean(axis=0), 0.0)
    uniform = usable / usable.sum()
    for row in (marginal, cheapest, uniform):
        total = row.sum()
        if total > 0:
            yield np.tile(row / total, (statement.secrets, 1))


def mix(given: Inequalities, matrix: Floats, anchor: Floats) -> Floats | None:
    """The point nearest to ``matrix`` on the segment to ``anchor`` that is feasible, or None."""

    def at(theta: float) -> Floats:
        mixed = (1 - theta) * matrix + theta * anchor
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))

    if given.violation(anchor) > 0:
        return None
    low, high = 0.0, 1.0
    # violations are tiny: find the scale first, then bisect
    for exponent in range(-15, 0):
        theta = 10.0**exponent
        if given.violation(at(theta)) <= 0:
            high = theta
            break
        low = theta
    for _ in range(_STEPS):
        if high - low <= 1e-3 * high:
            break
        middle = (low + high) / 2
        if given.violation(at(middle)) <= 0:
            high = middle
        else:
            low = middle
    return at(high)


def best_mixture(given: Inequalities, matrix: Floats, anchors: Iterable[Floats]) -> Floats | None:
    """The cheapest feasible mixture of ``matrix`` with one of the anchors."""
    if given.violation(matrix) <= 0:
        return matrix
    best, least = None, np.inf
    for anchor in anchors:
        mixed = mix(given, matrix, anchor)
        if mixed is not None and (value := objective_value(given.statement, mixed)) < least:
            best, least = mixed, value
    return best
