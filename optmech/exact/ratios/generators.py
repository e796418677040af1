"""Smooth convex generators f of f-divergences D_f(p ‖ q) = Σ_o q_o f(p_o / q_o) (Kawamoto and
Murakami, Allerton 2019, Def. 6), in floating point and, rigorously, in ball arithmetic
(python-flint); among them the powers t^a of Rényi divergences, for rational orders a.

Every f here is normalised by a multiple of t - 1, which changes no divergence of distributions, to
f(1) = f'(1) = 0: all terms q f(p/q) are then >= 0, and sums of them cancel nothing.

q f(p/q) is sublinear in (p, q). Its supporting planes are the α p + β q with β <= -f*(α), where f*
is the convex conjugate: what linear programs and lower bounds know of a divergence.

For a > 1 the power is f(t) = t^a - 1 - a (t - 1); for a < 1 the negative of it. D_f(p ‖ q) is then
±(Σ_o p_o^a q_o^{1-a} - 1), and D_a <= r in nats says D_f <= ±(e^{(a-1) r} - 1) (Mironov, CSF 2017;
van Erven and Harremoës 2014).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.exponentials import ball_of, exp_bracket
from optmech.exact.number import Exact
from optmech.exact.rounding import UNIT, above, below

Ball = Any
"""A real number with an error bound: ``flint.arb``."""


@dataclass(frozen=True)
class Generator(ReadOnly):
    """One f, in floating point and in ball arithmetic."""

    name: str
    terms: Callable[[Floats, Floats], Floats]
    """q f(p/q) elementwise for p, q >= 0, to a few units in the last place; inf where due."""
    slope: Callable[[Floats], Floats]
    """f'(t) for t >= 0, not yet cut to ``lowest`` and ``highest``."""
    intercept: Callable[[Floats], Floats]
    """-f*(α) for slopes within the limits, in floating point."""
    intercept_ball: Callable[[Ball], Ball]
    """-f*(α), enclosed."""
    term_ball: Callable[[Ball, Ball], Ball]
    """An enclosure of a term for p, q > 0, up to a multiple of p - q."""
    at_zero: float
    """f(0) of the form that ``term_ball`` uses, inf included."""
    recession: float
    """lim f(t)/t of the same form, inf included."""
    lowest: float
    highest: float
    """Slopes beyond these are cut to them: those that remain are supporting planes too."""

    def cut(self, slopes: Floats) -> Floats:
        """Slopes within the limits."""
        return np.clip(np.nan_to_num(slopes), self.lowest, self.highest)

    def tangents(self, ratios: Floats) -> tuple[Floats, Floats]:
        """α and β of the planes that touch q f(p/q) where p/q is one of ``ratios`` (0 to inf)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slopes = self.cut(self.slope(ratios))
        return slopes, self.intercept(slopes)


def divergence_ball(generator: Generator, p: Sequence[int], q: Sequence[int]) -> Ball | None:
    """D_f of the distributions p / Σp and q / Σq of whole numbers >= 0, at the current precision;
    None where it is infinite."""
    total_p, total_q = sum(p), sum(q)
    out: Any = flint.arb(0)
    for a, b in zip(p, q, strict=True):
        if a == 0 and b == 0:
            continue
        left, right = flint.arb(a) / total_p, flint.arb(b) / total_q
        if a and b:
            out += generator.term_ball(left, right)
            continue
        # what is left of q f(p/q): q f(0), or p times the recession slope
        share, weight = (right, generator.at_zero) if b else (left, generator.recession)
        if weight == float("inf"):
            return None
        out += share * flint.arb(weight)
    return out


def intercepts_below(generator: Generator, slopes: Floats) -> Floats:
    """Floats <= -f*(α) for slopes α within the generator's limits, of the same shape."""
    distinct, back = np.unique(slopes, return_inverse=True)
    with flint.ctx.workprec(128):
        low = [below(generator.intercept_ball(flint.arb(a))) for a in distinct.tolist()]
    return np.array(low, dtype=np.float64)[back].reshape(slopes.shape)


def average_at_most(
    generator: Generator,
    parts: Sequence[tuple[Fraction, Sequence[int], Sequence[int]]],
    limit: Fraction,
) -> tuple[bool, float]:
    """Whether Σ share · D_f(p / Σp ‖ q / Σq), for parts (share, p, q), is at most ``limit``, and a
    float at least as large.

    False also where 8192 bits do not separate the two; inf where a divergence is.
    """
    bits = 192
    while True:
        with flint.ctx.workprec(bits):
            total: Any = flint.arb(0)
            for share, p, q in parts:
                ball = divergence_ball(generator, p, q)
                if ball is None:
                    return False, math.inf
                total += ball * ball_of(share)
            most = above(total)
            edge = ball_of(limit)
            if total <= edge:
                return True, most
            if total > edge or bits >= 8192:
                return False, most
        bits *= 4


PREFIX = "renyi:"
_ORDER = re.compile(f"{PREFIX}([0-9]{{1,2}})(?:/([1-9][0-9]?))?", re.ASCII)
MOST = 64
"""Orders are fractions of whole numbers up to this."""
LARGEST_RATE = 10.0
"""Limits in nats up to this: with the largest order e^{(a-1) r} is still a float."""
_SERIES = 40
_NEAR = 0.25


def order_of(name: str) -> Fraction | None:
    """The order that "renyi:3/2" names, in lowest terms and other than 1; None for other texts."""
    found = _ORDER.fullmatch(name)
    order = Fraction(int(found[1]), int(found[2] or 1)) if found else Fraction(0)
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
            close = np.abs(x) * max(a, 1.0) <= _NEAR
            out = np.where(close, sign * q * _excess(a, np.where(close, x, 0.0)), far)
        at_zero = sign * (a - 1) * q
        alone = np.where(p > 0, np.inf if order > 1 else a * p, 0.0)
        return np.where(q == 0, alone, np.where(p == 0, at_zero, out))

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


NAMES = ("max", "kl", "reverse_kl", "tv", "chi2", "hellinger")
_LONG = {"total_variation": "tv", "chi_squared": "chi2", "squared_hellinger": "hellinger"}


def divergence_name(value: object, where: str = "divergence", *, orders: bool = False) -> str:
    """The short name of a divergence: "max", "kl", "reverse_kl", "tv", "chi2" or "hellinger", with
    ``orders`` also "renyi:3/2" and the like; raises ProblemError on any other text or value."""
    short = _LONG.get(value, value) if isinstance(value, str) else ""
    if short not in NAMES and not (orders and order_of(short) is not None):
        more = ', or "renyi:α" with an order such as 2 or 3/2 up to 64' if orders else ""
        raise ProblemError(
            f"divergence {value!r} is unknown",
            where=where,
            remedy=f"Use one of {', '.join(NAMES)}{more}",
        )
    return short


def generator(name: str) -> Generator:
    """The generator of a divergence; raises ProblemError where it has no smooth one."""
    short = divergence_name(name, orders=True)
    order = order_of(short)
    if order is not None:
        return power_generator(order)
    if short not in GENERATORS:
        raise ProblemError(
            f"divergence {name!r} has no smooth generator",
            where="divergence",
            remedy=f"Use one of {', '.join(GENERATORS)}",
        )
    return GENERATORS[short]


def is_smooth(name: object) -> bool:
    """Whether a text names a divergence that has a generator."""
    return isinstance(name, str) and (name in GENERATORS or order_of(name) is not None)


def excess_log(x: Floats) -> Floats:
    """(1 + x) ln(1 + x) - x for x >= -1, accurate relatively; 1 at -1.

    With r = x / (2 + x): ln(1 + x) = 2 (r + r³/3 + r⁵/5 + …), whose first term is taken together
    with -x exactly.
    """
    x = np.asarray(x, dtype=np.float64)
    near = np.abs(x) <= 0.5
    small = np.where(near, x, 0.0)
    r = small / (2 + small)
    series, power = np.zeros_like(r), np.ones_like(r)
    for k in range(3, 39, 2):
        series += power / k
        power = power * (r * r)
    close = r * small + 2 * r**3 * series * (1 + small)
    far = np.where(near | (x <= -1), 0.0, x)
    with np.errstate(over="ignore"):
        away = (1 + far) * np.log1p(far) - far
    return np.where(near, close, np.where(x <= -1, 1.0, away))


def _kl(p: Floats, q: Floats) -> Floats:
    """p ln(p/q) - p + q."""
    with np.errstate(all="ignore"):
        ratio = p / q
        near = (ratio >= 0.5) & (ratio <= 2)
        close = q * excess_log(np.where(near, (p - q) / q, 0.0))
        logs = np.where((ratio > 1e-300) & (ratio < 1e300), np.log(ratio), np.log(p) - np.log(q))
        out = np.where(near, close, p * logs - p + q)
    out = np.where(q == 0, np.inf, out)
    return np.where(p == 0, q, out)


def _chi2(p: Floats, q: Floats) -> Floats:
    with np.errstate(all="ignore"):
        out = (p - q) * ((p - q) / q)
    return np.where(q == 0, np.where(p > 0, np.inf, 0.0), out)


def _hellinger(p: Floats, q: Floats) -> Floats:
    roots = np.sqrt(p) + np.sqrt(q)
    step = np.divide(p - q, roots, out=np.zeros_like(roots), where=roots > 0)
    return np.asarray(step * step / 2)


def _square(x: Ball) -> Ball:
    # ** takes logarithms, and has none of balls around zero
    return x * x


GENERATORS = {
    part.name: part
    for part in (
        # f = t ln t - t + 1,  f* = e^α - 1
        Generator(
            "kl",
            terms=_kl,
            slope=np.log,
            intercept=lambda a: -np.expm1(a),
            intercept_ball=lambda a: -a.expm1(),
            term_ball=lambda p, q: p * (p / q).log(),
            at_zero=0.0,
            recession=np.inf,
            lowest=-700.0,
            highest=700.0,
        ),
        # f = -ln t + t - 1,  f* = -ln(1 - α)
        Generator(
            "reverse_kl",
            terms=lambda p, q: _kl(q, p),
            slope=lambda t: 1 - 1 / t,
            intercept=lambda a: np.log1p(-a),
            intercept_ball=lambda a: (-a).log1p(),
            term_ball=lambda p, q: q * (q / p).log(),
            at_zero=np.inf,
            recession=0.0,
            lowest=-(2.0**50),
            highest=1 - UNIT,
        ),
        # f = (t - 1)²,  f* = α + α²/4 for α >= -2
        Generator(
            "chi2",
            terms=_chi2,
            slope=lambda t: 2 * (t - 1),
            intercept=lambda a: -(a + a * a / 4),
            intercept_ball=lambda a: -(a + a * a / 4),
            term_ball=lambda p, q: _square(p - q) / q,
            at_zero=1.0,
            recession=np.inf,
            lowest=-2.0,
            highest=2.0**50,
        ),
        # f = (√t - 1)² / 2,  f* = α / (1 - 2α)
        Generator(
            "hellinger",
            terms=_hellinger,
            slope=lambda t: 0.5 - 0.5 / np.sqrt(t),
            intercept=lambda a: -a / (1 - 2 * a),
            intercept_ball=lambda a: -a / (1 - 2 * a),
            term_ball=lambda p, q: _square(p.sqrt() - q.sqrt()) / 2,
            at_zero=0.5,
            recession=0.5,
            lowest=-(2.0**50),
            highest=0.5 - UNIT / 2,
        ),
    )
}
"""Total variation is not smooth: it is the hockey stick at ε = 0."""
