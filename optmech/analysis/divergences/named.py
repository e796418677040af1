"""The divergences that have a name, and Rényi divergences of every order. Those of Kawamoto and
Murakami, Allerton 2019, Table I, with two of its entries put right: the reverse Kullback-Leibler
divergence has f(t) = -ln t (printed: -t log t, which is not convex), and functions f may be
negative somewhere, as t ln t is."""

from __future__ import annotations

import math
from collections.abc import Callable

import flint
import numpy as np

from optmech.analysis.measures import distributions
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.arguments import float_or_nan, probability
from optmech.exact.number import Interval, Number
from optmech.exact.numerators import integers
from optmech.exact.ratios.generators import divergence_ball, excess_log, generator
from optmech.exact.ratios.hockey_stick import (
    HockeyStick,
    least_log_ratio,
    log_ratio,
    most_revealing,
)
from optmech.exact.rounding import above, below
from optmech.spaces.prior import Distribution

_BITS = 256


def both(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), divided by their sums."""
    first, second = distributions(p, q)
    return first / math.fsum(first.tolist()), second / math.fsum(second.tolist())


def kl(p: Distribution, q: Distribution) -> float:
    """Σ p ln(p/q), in nats; inf where p > 0 = q somewhere (Kawamoto and Murakami, Allerton 2019,
    Table I, f = t ln t).

    Examples
    --------
    >>> print(round(om.divergences.kl([0.75, 0.25], [0.25, 0.75]), 4))  # ½ ln 3
    0.5493
    """
    return _smooth("kl", p, q)


def reverse_kl(p: Distribution, q: Distribution) -> float:
    """Σ q ln(q/p), in nats: ``kl(q, p)`` (Kawamoto and Murakami, Allerton 2019, Table I, where f
    should read -ln t).

    Examples
    --------
    >>> print(round(om.divergences.reverse_kl([0.5, 0.5], [0.75, 0.25]), 4))
    0.1308
    >>> print(round(om.divergences.kl([0.75, 0.25], [0.5, 0.5]), 4))
    0.1308
    """
    return _smooth("reverse_kl", p, q)


def chi_squared(p: Distribution, q: Distribution) -> float:
    """Σ (p - q)²/q; inf where p > 0 = q somewhere (Kawamoto and Murakami, Allerton 2019, Table I, f
    = (t - 1)²).

    Examples
    --------
    >>> print(om.divergences.chi_squared([0.75, 0.25], [0.5, 0.5]))
    0.25
    """
    return _smooth("chi2", p, q)


def squared_hellinger(p: Distribution, q: Distribution) -> float:
    """½ Σ (√p - √q)² = 1 - Σ √(pq), between 0 and 1 (Kawamoto and Murakami, Allerton 2019, Table I,
    f = ½(√t - 1)²).

    Examples
    --------
    >>> print(om.divergences.squared_hellinger([1, 0], [0, 1]))
    1.0
    >>> print(round(om.divergences.squared_hellinger([0.5, 0.5], [0.9, 0.1]), 4))
    0.1056
    """
    return _smooth("hellinger", p, q)


def total_variation(p: Distribution, q: Distribution) -> float:
    """½ Σ |p - q| = max_R p(R) - q(R), between 0 and 1 (Kawamoto and Murakami, Allerton 2019, Table
    I, f = ½|t - 1|).

    Examples
    --------
    >>> om.divergences.total_variation([0.75, 0.25], [0.25, 0.75])
    0.5
    """
    first, second = both(p, q)
    return float(np.maximum(first - second, 0.0).sum())


def hockey_stick(p: Distribution, q: Distribution, epsilon: Number) -> float:
    """Σ max(0, p - e^ε q), ε >= 0 (or an exact string): the least δ for which p and q are (ε, δ)
    close in this direction; total variation at ε = 0 (Kawamoto and Murakami, Allerton 2019, Def. 1;
    f = max(0, t - e^ε)).

    Examples
    --------
    >>> p, q = [0.75, 0.25], [0.25, 0.75]
    >>> print(round(om.divergences.hockey_stick(p, q, "ln 2"), 4))  # 3/4 - 2/4
    0.25
    """
    return HockeyStick(*both(p, q)).delta(epsilon)


def max_divergence(p: Distribution, q: Distribution, delta: Number = 0.0) -> float:
    """max over sets R with p(R) > δ of ln((p(R) - δ) / q(R)), and at least 0 (Kawamoto and
    Murakami, Allerton 2019, Def. 5).

    The least ε >= 0 with ``hockey_stick(p, q, ε) <= δ``, from the sorted likelihood ratios without
    iteration; inf where p gives more than δ to what q excludes. (The printed maximum is ln(1 - δ)
    < 0 for p = q; no divergence is negative.)

    Examples
    --------
    >>> p, q = [0.75, 0.25], [0.25, 0.75]
    >>> print(round(om.divergences.max_divergence(p, q), 4))  # ln 3
    1.0986
    >>> print(round(om.divergences.max_divergence(p, q, delta=0.25), 4))  # ln 2
    0.6931
    """
    first, second = both(p, q)
    budget = float(probability(delta))
    if budget == 0:
        return float(most_revealing(first[None, :], second[None, :])[1].max(initial=0.0))
    return float(least_log_ratio(first[None, :], second[None, :], budget)[0])


def enclosure(p: Distribution, q: Distribution, divergence: str) -> Interval:
    """Rigorous bounds of an f-divergence: "kl", "reverse_kl", "chi2" or "hellinger".

    p and q stand for the binary fractions that their floats are, divided by their exact sums. The
    bounds differ by a few units in the last place; [inf, inf] where the divergence is infinite.

    Examples
    --------
    >>> bounds = om.divergences.enclosure([0.75, 0.25], [0.5, 0.5], "kl")
    >>> print(round(bounds.lower, 6), bounds.upper - bounds.lower < 1e-15)
    0.130812 True
    """
    chosen = generator(divergence)
    (left, right), _ = integers(np.vstack(distributions(p, q)))
    with flint.ctx.workprec(_BITS):
        ball = divergence_ball(chosen, left, right)
        if ball is None:
            return Interval(math.inf, math.inf)
        return Interval(max(0.0, below(ball)), above(ball))


def _smooth(name: str, p: Distribution, q: Distribution) -> float:
    return float(generator(name).terms(*both(p, q)).sum())


FUNCTIONS: dict[str, Callable[[Floats, Floats], float]] = {
    "max": max_divergence,
    "kl": kl,
    "reverse_kl": reverse_kl,
    "tv": total_variation,
    "chi2": chi_squared,
    "hellinger": squared_hellinger,
}
"""The divergences by their short names."""


_LARGE = 500.0
"""Powers of e up to this leave room for products and sums."""
_HUGE = 1e10
"""Orders beyond this, with log ratios of up to 1500, would leave logarithms few digits."""


def renyi(p: Distribution, q: Distribution, order: float) -> float:
    """ln(Σ p^α q^(1-α)) / (α - 1), in nats, for ``order`` α from 0 to ``math.inf``.

    By its limits: Kullback-Leibler at 1, -ln q(p > 0) at 0, max divergence at infinity. inf where p
    > 0 = q somewhere (α >= 1), or everywhere on p's support (α < 1). It grows with α. (Kawamoto and
    Murakami, Allerton 2019, §VII points to it; Mironov, CSF 2017; van Erven and Harremoës 2014.)

    Raises
    ------
    ProblemError
        On an order that is negative or not a number.

    Examples
    --------
    >>> p, q = [0.75, 0.25], [0.25, 0.75]
    >>> print(round(om.divergences.renyi(p, q, order=2), 4))  # ln(9/4 + 1/12)
    0.8473
    >>> print(round(om.divergences.renyi(p, q, order=np.inf), 4))
    1.0986
    """
    alpha = math.nan if isinstance(order, bool | str) else float_or_nan(order)
    if not alpha >= 0:
        raise ProblemError(
            f"{order!r} is not an order", where="order", remedy="Give a number >= 0, or math.inf"
        )
    first, second = both(p, q)
    if alpha == 1:
        return kl(first, second)
    if alpha == math.inf:
        return max_divergence(first, second)
    joint = (first > 0) & (second > 0)
    if not joint.any() or (alpha > 1 and (first[~joint] > 0).any()):
        return math.inf
    if alpha == 0:
        kept, lost = float(second[first > 0].sum()), float(second[first == 0].sum())
        return -math.log(kept) if kept < 0.5 else -math.log1p(-lost)
    if alpha < 0.5:
        # skew symmetry keeps away from the cancellation near 0
        return alpha / (1 - alpha) * _of_order(second, first, 1 - alpha)
    return _of_order(first, second, alpha)


def _of_order(p: Floats, q: Floats, alpha: float) -> float:
    """For α >= ½, α ≠ 1, with c = α - 1: ln(1 + c M) / c, where c M = Σ q (t^α - 1 - α(t - 1)).

    M = Σ q (t ln t - t + 1) + p ln t (E - 1), E = (e^{c ln t} - 1) / (c ln t): no term loses digits
    where p and q nearly agree. Where they hardly overlap, or powers overflow, the plain sum.
    """
    c = alpha - 1
    joint = (p > 0) & (q > 0)
    logs = log_ratio(p[joint], q[joint])
    if np.abs(logs).max() <= _LARGE / abs(c):
        near = (logs > -0.69) & (logs < 0.69)
        with np.errstate(all="ignore"):
            entropy = np.where(
                near,
                q[joint] * excess_log((p[joint] - q[joint]) / q[joint]),
                p[joint] * logs - p[joint] + q[joint],
            )
        rest = p[joint] * logs * _mean_growth(c * logs)
        # lone masses of q give q, those of p (only where α < 1) p α / (1 - α)
        lone = float(q[p == 0].sum()) - float(p[q == 0].sum()) * alpha / c
        grown = c * (float((entropy + rest).sum()) + lone)
        if grown > -0.5:
            return max(0.0, math.log1p(grown) / c)
    if alpha > _HUGE:
        # the powers are no floats: all in terms of their αth roots
        roots = np.log(p[joint]) / c + logs
        top = float(roots.max())
        with np.errstate(over="ignore"):
            return max(0.0, top + math.log(float(np.exp(c * (roots - top)).sum())) / c)
    exponents = np.log(p[joint]) + c * logs
    top = float(exponents.max())
    return max(0.0, (top + math.log(float(np.exp(exponents - top).sum()))) / c)


def _mean_growth(z: Floats) -> Floats:
    """(e^z - 1)/z - 1, accurate relatively."""
    near = np.abs(z) <= 0.5
    small = np.where(near, z, 0.0)
    series, power = np.zeros_like(z), np.ones_like(z)
    for k in range(2, 18):
        power = power * small / k
        series += power
    far = np.where(near, 1.0, z)
    return np.where(near, series, np.expm1(far) / far - 1)
