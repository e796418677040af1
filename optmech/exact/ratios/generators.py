"""Smooth convex generators f of f-divergences D_f(p ‖ q) = Σ_o q_o f(p_o / q_o) (Kawamoto and
Murakami, Allerton 2019, Def. 6).

Every f here is normalised by a multiple of t - 1, which changes no divergence of distributions, to
f(1) = f'(1) = 0: all terms q f(p/q) are then >= 0, and sums of them cancel nothing.

q f(p/q) is sublinear in (p, q). Its supporting planes are the α p + β q with β <= -f*(α), where f*
is the convex conjugate: what linear programs and lower bounds know of a divergence.
"""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.ratios.enclosures import Ball, Generator
from optmech.exact.ratios.powers import order_of, power_generator
from optmech.exact.rounding import UNIT

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
