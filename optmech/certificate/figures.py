"""The figures of a released matrix, exact and then rounded to the safe side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.certificate import values
from optmech.certificate.families import LossLimit
from optmech.certificate.lagrangian import Bound
from optmech.certificate.multipliers import Multipliers
from optmech.certificate.objective import relative_gap, trivial_bound
from optmech.exact.exponentials import bracket
from optmech.exact.numerators import Numerators
from optmech.statement import Statement


@dataclass(frozen=True)
class Figures:
    """What a design reports: see ``Design``."""

    objective: float
    bound: float
    loss: float
    lower_bound: float
    gap: float


def figures_of(
    statement: Statement, released: Numerators, bound: Bound, multipliers: Multipliers
) -> Figures:
    """Loss rounded up, distortion rounded down; ``bound`` is what these multipliers prove."""
    value = values.objective(statement, released)
    top = values.rounded_up(value)
    best = max(bound.value, trivial_bound(statement))
    gap = relative_gap(top, best)
    if statement.target_factors is None:
        return Figures(top, best, top, best, gap)
    loss = values.expected(statement.prior, values.losses(statement.loss, released))
    lower = _least_loss(statement, value, bound, multipliers)
    return Figures(-top, -best, values.rounded_up(loss), lower, gap)


def _least_loss(
    statement: Statement, value: Fraction, bound: Bound, multipliers: Multipliers
) -> float:
    """With D <= U + μ (loss - q) for every mechanism that keeps the other constraints, distortion
    D costs at least q - (U - D) / μ. Known where one expected-loss bound on the problem's own
    loss is stated; 0 otherwise."""
    limits = [pair for pair in multipliers.of(statement) if isinstance(pair[0], LossLimit)]
    if len(limits) != 1 or limits[0][1] is None or not np.isfinite(bound.value):
        return 0.0
    ((limit, given),) = limits
    assert isinstance(limit, LossLimit)
    price = float(np.atleast_1d(given)[0])
    if (
        limit.per_secret
        or not np.array_equal(limit.loss, statement.loss)
        or not 0 < price <= 2.0**100
    ):
        return 0.0
    slack = (value - Fraction(bound.value)) / Fraction(price)
    return max(0.0, values.rounded_down(bracket(limit.maximum)[0] - slack))
