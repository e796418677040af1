"""What a matrix is worth under a statement's objective, in minimised form; and the figures of a
released one, exact and then rounded to the safe side."""

import math
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.certificate.bound import Multipliers
from optmech.certificate.families import LossLimit
from optmech.certificate.lagrangian import Bound
from optmech.certificate.segments import coefficients, shares, values_at
from optmech.certificate.statement import Statement
from optmech.certificate.variance import spread_value, variance
from optmech.exact.exponentials import bracket
from optmech.exact.numerators import Numerators


def objective_value(statement: Statement, matrix: Floats) -> float:
    """Expected loss (Shokri, PETS 2015, eq. 3), worst loss (Shokri, PETS 2015, eq. 4), minus the
    distortion (Shokri, PETS 2015, eq. 21), or the gain.
    """
    if statement.survey is not None:
        return spread_value(statement.survey, matrix)
    if statement.target is not None:
        return -float((-statement.sign * (statement.target @ matrix)).min(axis=0).sum())
    per_secret = (statement.loss * matrix).sum(axis=1)
    if statement.objective == "worst_loss":
        worst = float(per_secret.max())
        if statement.segments is not None:
            parts = coefficients(statement.segments, statement.loss, matrix)
            inside = values_at(*parts, shares(*parts))
            worst = max(worst, float(np.nan_to_num(inside, nan=worst).max()))
        return worst
    return float(statement.prior @ per_secret)


OPTIMAL_GAP = 1e-6
"""Up to this certified relative gap a mechanism is called optimal, whatever gap was asked for."""


def is_optimal(gap: float) -> bool:
    """Whether a certified relative gap is small enough for the word; never where it is unknown."""
    return gap <= OPTIMAL_GAP


def status_of(gap: float) -> Literal["optimal", "feasible"]:
    """What a mechanism with this certified relative gap is called."""
    return "optimal" if is_optimal(gap) else "feasible"


def relative_gap(value: float, bound: float) -> float:
    """(value - bound) / |value|, and 0 where they agree to rounding."""
    difference = max(0.0, value - bound)
    if difference == 0:
        return 0.0
    return difference / abs(value) if value != 0 else np.inf


_CLAIMED = 1e-9
"""Share of a bound that is not claimed, so that another machine's roundings prove it as well."""


def claimable(bound: float) -> float:
    """What is claimed of a proved lower bound of a coarser problem."""
    if not math.isfinite(bound) or bound <= 0:
        return 0.0
    return math.nextafter(bound * (1 - _CLAIMED), 0.0)


def trivial_bound(statement: Statement) -> float:
    """What holds for every mechanism: losses are >= 0, distortion is at most that of silence, and
    gains at least that."""
    if statement.regrets is None:
        return 0.0
    return values.rounded_down(-values.blind(*statement.regrets))


class Figures(NamedTuple):
    """What a design reports, in its order: see ``Design``."""

    objective: float
    bound: float
    loss: float
    lower_bound: float
    gap: float


def figures_of(
    statement: Statement, released: Numerators, bound: Bound, multipliers: Multipliers
) -> Figures:
    """Loss rounded up, distortion rounded down; ``bound`` is what these multipliers prove."""
    if statement.survey is not None:
        return _of_variance(statement, released, bound, multipliers)
    value = values.objective(statement, released)[1]
    top = values.rounded_up(value)
    best = max(bound.value, trivial_bound(statement))
    gap = relative_gap(top, best)
    if statement.target_factors is None:
        return Figures(top, best, top, best, gap)
    loss = values.expected(statement.prior, values.losses(statement.loss, released))
    lower = _least_loss(statement, value, bound, multipliers)
    sign = statement.sign
    return Figures(sign * top, sign * best, values.rounded_up(loss), lower, gap)


def _of_variance(
    statement: Statement, released: Numerators, bound: Bound, multipliers: Multipliers
) -> Figures:
    survey, proof = statement.survey, multipliers.variance
    assert survey is not None
    top = math.inf if proof is None else variance(survey, released, proof)
    best = max(bound.value, 0.0)
    loss = values.expected(statement.prior, values.losses(statement.loss, released))
    return Figures(top, best, values.rounded_up(loss), 0.0, relative_gap(top, best))


def _least_loss(
    statement: Statement, value: Fraction, bound: Bound, multipliers: Multipliers
) -> float:
    """With D <= U + μ (loss - q) for every mechanism that keeps the other constraints, distortion
    D costs at least q - (U - D) / μ; a gain is a distortion with the other sign. Known where one
    expected-loss bound on the problem's own loss is stated; 0 otherwise."""
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
