"""Smooth convex generators f of f-divergences D_f(p ‖ q) = Σ_o q_o f(p_o / q_o) (CM19 Def. 6).

Every f here is normalised by a multiple of t - 1, which changes no divergence of distributions, to
f(1) = f'(1) = 0: all terms q f(p/q) are then >= 0, and sums of them cancel nothing.

q f(p/q) is sublinear in (p, q). Its supporting planes are the α p + β q with β <= -f*(α), where f*
is the convex conjugate: what linear programs and lower bounds know of a divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError

Ball = Any
"""A real number with an error bound: ``flint.arb``."""


@dataclass(frozen=True)
class Generator:
    """One f, in floating point and in ball arithmetic."""

    name: str
    title: str
    """For people."""
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
        return np.asarray(np.clip(np.nan_to_num(slopes), self.lowest, self.highest))

    def tangents(self, ratios: Floats) -> tuple[Floats, Floats]:
        """α and β of the planes that touch q f(p/q) where p/q is one of ``ratios`` (0 to inf)."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            slopes = self.cut(self.slope(ratios))
        return slopes, self.intercept(slopes)


_NAMES = {
    "max": "max",
    "kl": "kl",
    "reverse_kl": "reverse_kl",
    "tv": "tv",
    "total_variation": "tv",
    "chi2": "chi2",
    "chi_squared": "chi2",
    "hellinger": "hellinger",
    "squared_hellinger": "hellinger",
}


def divergence_name(value: object, where: str = "divergence") -> str:
    """The short name of a divergence: "max", "kl", "reverse_kl", "tv", "chi2" or "hellinger".

    Raises
    ------
    ProblemError
        On any other text or value.
    """
    if not isinstance(value, str) or value not in _NAMES:
        raise ProblemError(
            f"divergence {value!r} is unknown",
            where=where,
            remedy=f"Use one of {', '.join(dict.fromkeys(_NAMES.values()))}",
        )
    return _NAMES[value]


def generator(name: str) -> Generator:
    """The generator of a divergence; raises ProblemError where it has no smooth one."""
    short = divergence_name(name)
    if short not in GENERATORS:
        raise ProblemError(
            f"divergence {name!r} has no smooth generator",
            where="divergence",
            remedy=f"Use one of {', '.join(GENERATORS)}",
        )
    return GENERATORS[short]


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
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    with np.errstate(all="ignore"):
        ratio = p / q
        near = (ratio >= 0.5) & (ratio <= 2)
        close = q * excess_log(np.where(near, (p - q) / q, 0.0))
        logs = np.where((ratio > 1e-300) & (ratio < 1e300), np.log(ratio), np.log(p) - np.log(q))
        out = np.where(near, close, p * logs - p + q)
    out = np.where(q == 0, np.inf, out)
    return np.where(p == 0, q, out)


def _chi2(p: Floats, q: Floats) -> Floats:
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    with np.errstate(all="ignore"):
        out = (p - q) * ((p - q) / q)
    return np.where(q == 0, np.where(p > 0, np.inf, 0.0), out)


def _hellinger(p: Floats, q: Floats) -> Floats:
    p, q = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64))
    roots = np.sqrt(p) + np.sqrt(q)
    step = np.divide(p - q, roots, out=np.zeros_like(roots), where=roots > 0)
    return np.asarray(step * step / 2)


def _square(x: Ball) -> Ball:
    # ** takes logarithms, and has none of balls around zero
    return x * x


def _chi2_intercept(alpha: Floats) -> Floats:
    return -(alpha + alpha * alpha / 4)


GENERATORS = {
    part.name: part
    for part in (
        # f = t ln t - t + 1,  f* = e^α - 1
        Generator(
            "kl",
            "Kullback-Leibler divergence",
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
            "reverse Kullback-Leibler divergence",
            terms=lambda p, q: _kl(q, p),
            slope=lambda t: 1 - 1 / t,
            intercept=lambda a: np.log1p(-a),
            intercept_ball=lambda a: (-a).log1p(),
            term_ball=lambda p, q: q * (q / p).log(),
            at_zero=np.inf,
            recession=0.0,
            lowest=-(2.0**50),
            highest=1 - 2.0**-53,
        ),
        # f = (t - 1)²,  f* = α + α²/4 for α >= -2
        Generator(
            "chi2",
            "χ² divergence",
            terms=_chi2,
            slope=lambda t: 2 * (t - 1),
            intercept=_chi2_intercept,
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
            "squared Hellinger distance",
            terms=_hellinger,
            slope=lambda t: 0.5 - 0.5 / np.sqrt(t),
            intercept=lambda a: -a / (1 - 2 * a),
            intercept_ball=lambda a: -a / (1 - 2 * a),
            term_ball=lambda p, q: _square(p.sqrt() - q.sqrt()) / 2,
            at_zero=0.5,
            recession=0.5,
            lowest=-(2.0**50),
            highest=0.5 - 2.0**-54,
        ),
    )
}
"""Total variation is not smooth: it is the hockey stick at ε = 0."""
