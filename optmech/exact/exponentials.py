"""Rational enclosures of e^{εd}, from ball arithmetic (python-flint); never from ``math.exp``.

ε is the rational, or rational multiple of a logarithm, that was written; d is the binary fraction
that its float64 is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats, slices
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.exact.rounding import above, below, down, exp_down, exp_up, up

_OVERFLOW = 709.0
"""e^709 is the last power of e that is a float64, and above 2^1022."""
_BITS = 448
_ROOT = 64
_POWER_BITS = 100_000
_MANY, _SORTED = 100_000, 3_000_000
"""Exponents that ball arithmetic takes a second for; those that no equal ones are sought among."""
_AT_A_TIME = 2**18


def bracket(value: float) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of a stated number; equal where it is rational."""
    if not isinstance(value, Exact) or value.log_of is None:
        exact = value.factor if isinstance(value, Exact) else Fraction(value)
        return exact, exact
    with flint.ctx.workprec(256):
        return ends_of(log_ball(value, 1.0))


def stated_up(value: float) -> float:
    """A float >= a stated number, and equal to it where it is a float."""
    return rounded_up(bracket(value)[1])


def stated_down(value: float) -> float:
    """A float <= a stated number, and equal to it where it is a float."""
    return rounded_down(bracket(value)[0])


def exp_range(epsilon: Exact, distance: Floats) -> tuple[Floats, Floats]:
    """Floats that enclose e^{ε d} for an array of d >= 0: lower bounds and upper bounds.

    Upper bounds are inf above e^709, and where d is inf; lower bounds are 1 where d is inf. Within
    two units in the last place, or of large arrays within 2^-48.
    """
    if distance.size > _SORTED:
        return _many_ends(epsilon, distance)
    distinct, back = np.unique(distance, return_inverse=True)
    if len(distinct) > _MANY:
        return _many_ends(epsilon, distance)
    low, high = np.ones(len(distinct)), np.full(len(distinct), np.inf)
    with flint.ctx.workprec(128):
        for k, d in enumerate(distinct.tolist()):
            if not math.isfinite(d):
                continue
            if exact_exp(epsilon, d) == 1:
                high[k] = 1.0
            elif float(epsilon) * d > _OVERFLOW:
                low[k] = 2.0**1022
            else:
                ball = log_ball(epsilon, d).exp()
                low[k], high[k] = max(1.0, below(ball)), above(ball)
    shape = distance.shape
    return low[back].reshape(shape), high[back].reshape(shape)


def _many_ends(epsilon: Exact, distance: Floats) -> tuple[Floats, Floats]:
    """``exp_range`` by operations that IEEE arithmetic rounds correctly, a part at a time."""
    low, high = np.empty(distance.shape), np.empty(distance.shape)
    given = np.ascontiguousarray(distance).ravel()
    for own in slices(given.size, 1, _AT_A_TIME):
        low.ravel()[own] = exp_below(epsilon, given[own])
        high.ravel()[own] = exp_above(epsilon, given[own])
    return low, high


def exp_above(epsilon: Exact, distance: Floats) -> Floats:
    """The upper bounds of ``exp_range`` of a large array: those of a part of it, by themselves."""
    finite = np.isfinite(distance)
    high = exp_up(up(stated_up(epsilon) * np.where(finite, distance, 0.0)))
    high[~finite] = np.inf
    high[distance == 0] = 1.0
    return high


def exp_below(epsilon: Exact, distance: Floats) -> Floats:
    """The lower bounds of ``exp_range`` of a large array, or of a part of it."""
    known = np.where(np.isfinite(distance), distance, 0.0)
    return np.maximum(exp_down(down(stated_down(epsilon) * known)), 1.0)


def exp_lower(epsilon: Exact, d: float, bits: int) -> Fraction:
    """A lower bound of e^{ε d} within 2^-bits of it, relatively; exact where it is rational.

    Above 2^(2·bits) it is a lower bound and no more.
    """
    return _exp_lower(epsilon.factor, epsilon.log_of, d, bits)


@lru_cache(maxsize=4096)
def _exp_lower(factor: Fraction, log_of: Fraction | None, d: float, bits: int) -> Fraction:
    epsilon = Exact(factor, log_of)
    known = exact_exp(epsilon, d)
    if known is not None:
        return known
    if float(epsilon) * d > 2 * bits:
        return Fraction(1 << (2 * bits))
    with flint.ctx.workprec(3 * bits + 64):
        return ends_of(log_ball(epsilon, d).exp())[0]


def exact_exp(epsilon: Exact, d: float) -> Fraction | None:
    """e^{ε d} where it is rational, such as 9 for ε = ln 3 and d = 2; None where it is not.

    e^x is irrational for rational x other than 0 (Lindemann), and b^{p/q} in lowest terms is
    rational only where b is a q-th power. Roots beyond the 64th are not looked for.
    """
    if d == 0 or epsilon.factor == 0 or epsilon.log_of == 1:
        return Fraction(1)
    if epsilon.log_of is None:
        return None
    power = epsilon.factor * Fraction(d)
    base = _root(epsilon.log_of, power.denominator)
    if base is None:
        return None
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    return base**power.numerator if power.numerator * size <= _POWER_BITS else None


def exp_bracket(epsilon: Exact) -> tuple[Fraction, Fraction | None]:
    """Lower and upper bound of e^ε; equal where it is known to be rational. Beyond the floats
    there is a lower bound only."""
    if float(epsilon) > _OVERFLOW and exact_exp(epsilon, 1.0) is None:
        return Fraction(1 << 1022), None
    return exp_bounds(epsilon, _BITS)


def exp_bounds(epsilon: Exact, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of e^ε, within 2^-bits of each other relatively; equal where it is rational."""
    known = exact_exp(epsilon, 1.0)
    if known is not None:
        return known, known
    with flint.ctx.workprec(bits + 64):
        return ends_of(log_ball(epsilon, 1.0).exp())


def at_most(left: int, right: int, epsilon: Exact, d: float) -> bool:
    """Whether left <= e^{ε d} right, decided exactly; both >= 0.

    False also where 65536 bits do not separate the two sides, which are then closer than any
    numbers that occur.
    """
    if left <= right or right == 0:
        return left <= right
    known = exact_exp(epsilon, d)
    if known is not None:
        return left * known.denominator <= right * known.numerator
    size = left.bit_length()
    if float(epsilon) * d > size:
        return True
    a, b = flint.fmpz(left), flint.fmpz(right)
    precision = size + 128
    while precision <= 65536:
        with flint.ctx.workprec(precision):
            difference = log_ball(epsilon, d).exp() * b - a
            if difference > 0:
                return True
            if difference < 0:
                return False
        precision *= 4
    return False


def log_ball(epsilon: Exact, d: float) -> Any:
    """ε d as a ball of the current precision."""
    out = ball_of(epsilon.factor)
    if epsilon.log_of is not None:
        out *= ball_of(epsilon.log_of).log()
    return out * flint.arb(d)


def ball_of(value: Fraction) -> Any:
    """A fraction as a ball of the current precision."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def ends_of(ball: Any) -> tuple[Fraction, Fraction]:
    """The ends of a ball, exactly."""
    low, high = map(_exactly, (ball.lower(), ball.upper()))
    return low, high


def _exactly(end: Any) -> Fraction:
    mantissa, exponent = map(int, end.man_exp())
    return Fraction(mantissa << exponent) if exponent > 0 else Fraction(mantissa, 1 << -exponent)


def _root(value: Fraction, q: int) -> Fraction | None:
    if q == 1:
        return value
    if q > _ROOT:
        return None
    parts = [int(flint.fmpz(part).root(q)) for part in (value.numerator, value.denominator)]
    found = Fraction(parts[0], parts[1])
    return found if found**q == value else None
