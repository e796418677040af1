"""Generators of Rényi divergences: powers t^a of likelihood ratios, for rational orders a.

For a > 1, f(t) = t^a - 1 - a (t - 1); for a < 1 the negative of it. D_f(p ‖ q) is then
±(Σ_o p_o^a q_o^{1-a} - 1), and D_a <= r in nats says D_f <= ±(e^{(a-1) r} - 1) (Mironov, CSF 2017;
van Erven and Harremoës 2014).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.exponentials import ball_of, exp_bracket
from optmech.exact.number import Exact
from optmech.exact.ratios.enclosures import Generator
from optmech.exact.rounding import UNIT

PREFIX = "renyi:"
MOST = 64
"""Orders are fractions of whole numbers up to this."""
LARGEST_RATE = 10.0
"""Limits in nats up to this: with the largest order e^{(a-1) r} is still a float."""
_SERIES = 40
_NEAR = 0.25


def order_of(name: str) -> Fraction | None:
    """The order that "renyi:3/2" names, in lowest terms and other than 1; None for other texts."""
    if not name.startswith(PREFIX) or len(name) > 20:
        return None
    top, slash, bottom = name.removeprefix(PREFIX).partition("/")
    plain = all(part.isascii() and part.isdigit() for part in ((top, bottom) if slash else (top,)))
    if not plain or (slash and int(bottom) == 0):
        return None
    order = Fraction(int(top), int(bottom or 1))
    fits = 0 < order != 1 and max(order.numerator, order.denominator) <= MOST
    return order if fits and name == name_of(order) else None


def name_of(order: Fraction) -> str:
    """The name of the divergence of an order."""
    return f"{PREFIX}{order}"


def limit_of(order: Fraction, rate: Exact) -> tuple[Fraction, Fraction]:
    """Bounds of the limit on D_f that D_a <= rate is, for rates up to ``LARGEST_RATE``."""
    low, high = exp_bracket(rate.times(abs(order - 1)))
    assert high is not None
    return (low - 1, high - 1) if order > 1 else (1 - 1 / low, 1 - 1 / high)


def growth_of(order: Fraction, rate: float) -> float:
    """The derivative of that limit in the rate."""
    return float(abs(order - 1)) * math.exp(float(order - 1) * rate)


@lru_cache(maxsize=256)
def power_generator(order: Fraction) -> Generator:
    """The generator of an order."""
    a = float(order)
    sign = 1.0 if order > 1 else -1.0

    def terms(p: Floats, q: Floats) -> Floats:
        with np.errstate(all="ignore"):
            x = (p - q) / q
            logs = a * np.log(p) + (1 - a) * np.log(q)
            far = sign * (np.exp(logs) - q - a * (p - q))
            near = sign * q * _excess(a, np.where(np.abs(x) * max(a, 1.0) <= _NEAR, x, 0.0))
            out = np.where(np.abs(x) * max(a, 1.0) <= _NEAR, near, far)
        at_zero = sign * (a - 1) * q
        alone = np.where(p > 0, np.inf if order > 1 else a * p, 0.0)
        return np.asarray(np.where(q == 0, alone, np.where(p == 0, at_zero, out)))

    def slope(t: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(sign * a * (np.power(t, a - 1) - 1))

    def intercept(alpha: Floats) -> Floats:
        with np.errstate(all="ignore"):
            base = np.maximum(1 + sign * alpha / a, 0.0)
            return np.asarray(abs(a - 1) * (1 - np.power(base, a / (a - 1))))

    def intercept_ball(alpha: Any) -> Any:
        ball = ball_of(order)
        base = 1 + int(sign) * alpha / ball
        if not base > 0:
            # the slope is at its limit, where t^a is 0 for a > 1, and has no bound for a < 1
            base = base.upper()
            if order < 1 or not base > 0:
                return abs(ball - 1) * (1 if order > 1 and base == 0 else flint.arb("-inf"))
        return abs(ball - 1) * (1 - base ** (ball / (ball - 1)))

    def term_ball(p: Any, q: Any) -> Any:
        return int(sign) * q * ((p / q) ** ball_of(order) - 1)

    lowest, highest = -(2.0**50), 2.0**50
    if order > 1:
        lowest = math.nextafter(-a, 0.0)
        highest = min(highest, a * math.expm1(min(600.0 * (a - 1) / a, 600.0)))
    else:
        highest = a * (1 - max(2 * UNIT, math.exp(-600.0 * (1 - a) / a)))
    return Generator(
        name_of(order),
        terms=terms,
        slope=slope,
        intercept=intercept,
        intercept_ball=intercept_ball,
        term_ball=term_ball,
        at_zero=-sign,
        recession=math.inf if order > 1 else 0.0,
        lowest=lowest,
        highest=highest,
    )


def _excess(a: float, x: Floats) -> Floats:
    """(1 + x)^a - 1 - a x by its binomial series, for small a x."""
    out, term = np.zeros_like(x), a * x
    for k in range(2, _SERIES):
        term = term * x * ((a - k + 1) / k)
        out += term
    return out
