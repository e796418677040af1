"""Mixing a nearly feasible matrix with an anchor that satisfies the convex constraints.

Every constraint beyond the ratio cone is g(P) <= 0 with g convex, so on the segment from P to a
feasible anchor A the feasible part is an interval that ends in A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.objective import objective_value
from optmech.ratios.generators import generator
from optmech.repair.lifted import NO_ROOM
from optmech.statement.statement import Statement

_STEPS = 60
_ROUNDING = 2e-15
"""Privacy ratios must hold with this to spare; sums may miss by it, as the check allows."""


def has_convex_constraints(statement: Statement) -> bool:
    """Whether there is anything beyond ratios, support and row sums."""
    return bool(
        statement.lifted
        or statement.approximate
        or statement.divergences
        or statement.distortion
        or statement.loss_limits
    )


def violation(statement: Statement, matrix: Floats) -> float:
    """Largest violation of the convex constraints, relative to their size; <= 0 is feasible."""
    return max(_violations(statement, matrix), default=-1.0)


def shortage(statement: Statement, matrix: Floats) -> float:
    """Largest relative shortfall of distortion; <= 0 where all distortion constraints hold."""
    return max(
        (part.minimum - part.error(matrix)) / max(part.minimum, 1e-300)
        for part in statement.distortion
    )


def _violations(statement: Statement, matrix: Floats) -> Iterator[float]:
    for lifted in statement.lifted:
        left, right = lifted.left @ matrix, lifted.right @ matrix
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            limit = np.where(right > 0, right * np.exp(lifted.log_ratio)[:, None], 0.0)
            over = np.where(left > 0, 1 - limit / left, -1.0).max(axis=1, initial=-1.0)
        spare = np.where(lifted.log_ratio < NO_ROOM, -_ROUNDING, _ROUNDING)
        yield float((over + spare).max(initial=-1.0))
    for approximate in statement.approximate:
        left, right = approximate.left @ matrix, approximate.right @ matrix
        ratio = np.exp(np.minimum(approximate.log_ratio, 700.0))[:, None]
        spent = np.maximum(left - ratio * right, 0.0).sum(axis=1)
        most = float(spent.max(initial=0.0))
        # a constant mechanism spends nothing, and must pass whatever δ is
        yield most - approximate.delta + (_ROUNDING if most > 0 else 0.0)
    for divergence in statement.divergences:
        spent = generator(divergence.kind).terms(
            divergence.left @ matrix, divergence.right @ matrix
        )
        # rounding of the matrix moves the root of a divergence by about as much
        root = (np.sqrt(spent.sum(axis=1)) + _ROUNDING) / np.sqrt(divergence.limit)
        yield float((root - 1).max())
    if statement.distortion:
        yield shortage(statement, matrix) - _ROUNDING
    for limits in statement.loss_limits:
        per_row = (limits.weighted * matrix).sum(axis=1)
        spent_ = float(per_row.max() if limits.per_secret else per_row.sum())
        yield (spent_ - limits.maximum) / max(limits.maximum, spent_, 1e-300) - _ROUNDING


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


def mix(statement: Statement, matrix: Floats, anchor: Floats) -> Floats | None:
    """The point nearest to ``matrix`` on the segment to ``anchor`` that is feasible, or None."""

    def at(theta: float) -> Floats:
        mixed = (1 - theta) * matrix + theta * anchor
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))

    if violation(statement, anchor) > 0:
        return None
    low, high = 0.0, 1.0
    # violations are tiny: find the scale first, then bisect
    for exponent in range(-15, 0):
        theta = 10.0**exponent
        if violation(statement, at(theta)) <= 0:
            high = theta
            break
        low = theta
    for _ in range(_STEPS):
        if high - low <= 1e-3 * high:
            break
        middle = (low + high) / 2
        if violation(statement, at(middle)) <= 0:
            high = middle
        else:
            low = middle
    return at(high)


def best_mixture(statement: Statement, matrix: Floats, anchors: Iterable[Floats]) -> Floats | None:
    """The cheapest feasible mixture of ``matrix`` with one of the anchors."""
    if violation(statement, matrix) <= 0:
        return matrix
    best, least = None, np.inf
    for anchor in anchors:
        mixed = mix(statement, matrix, anchor)
        if mixed is not None and (value := objective_value(statement, mixed)) < least:
            best, least = mixed, value
    return best


def tightened(statement: Statement, margin: float) -> Statement:
    """The statement with every convex constraint tightened by a relative margin."""
    return replace(
        statement,
        lifted=tuple(
            replace(part, log_ratio=part.log_ratio * (1 - margin)) for part in statement.lifted
        ),
        approximate=tuple(
            replace(part, delta=part.delta * (1 - margin)) for part in statement.approximate
        ),
        divergences=tuple(
            replace(part, limit=part.limit * (1 - margin)) for part in statement.divergences
        ),
        distortion=tuple(
            replace(part, minimum=min(part.minimum * (1 + margin), part.blind))
            for part in statement.distortion
        ),
        loss_limits=tuple(
            replace(part, maximum=part.maximum * (1 - margin)) for part in statement.loss_limits
        ),
    )
