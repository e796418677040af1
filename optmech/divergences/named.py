"""The divergences that have a name. Those of CM19 Table I, with two of its entries put right: the
reverse Kullback-Leibler divergence has f(t) = -ln t (printed: -t log t, which is not convex), and
functions f may be negative somewhere, as t ln t is."""

from __future__ import annotations

import math
from collections.abc import Callable

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.checked import distribution, probability
from optmech.exact.number import Interval, Number
from optmech.exact.numerators import integers
from optmech.exact.ratios.enclosures import divergence_ball
from optmech.exact.ratios.generators import generator
from optmech.exact.ratios.hockey_stick import HockeyStick, least_log_ratio, most_revealing
from optmech.exact.rounding import above, below
from optmech.spaces.prior import Distribution, weights_of

_BITS = 256


def both(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), divided by their sums; see ``given``."""
    first, second = given(p, q)
    return first / math.fsum(first.tolist()), second / math.fsum(second.tolist())


def given(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), as they are; raises ProblemError on NaN, a negative
    entry, a sum that is not 1 (within 1e-9), or different lengths."""
    first, second = distribution(weights_of(p), "p"), distribution(weights_of(q), "q")
    if first.shape != second.shape:
        raise ProblemError(
            f"has {second.size} entries, and p has {first.size}",
            where="q",
            remedy="Give distributions over the same set",
        )
    return first, second


def kl(p: Distribution, q: Distribution) -> float:
    """Σ p ln(p/q), in nats; inf where p > 0 = q somewhere (CM19 Table I, f = t ln t)."""
    return _smooth("kl", p, q)


def reverse_kl(p: Distribution, q: Distribution) -> float:
    """Σ q ln(q/p), in nats: ``kl(q, p)`` (CM19 Table I, where f should read -ln t)."""
    return _smooth("reverse_kl", p, q)


def chi_squared(p: Distribution, q: Distribution) -> float:
    """Σ (p - q)²/q; inf where p > 0 = q somewhere (CM19 Table I, f = (t - 1)²)."""
    return _smooth("chi2", p, q)


def squared_hellinger(p: Distribution, q: Distribution) -> float:
    """½ Σ (√p - √q)² = 1 - Σ √(pq), between 0 and 1 (CM19 Table I, f = ½(√t - 1)²)."""
    return _smooth("hellinger", p, q)


def total_variation(p: Distribution, q: Distribution) -> float:
    """½ Σ |p - q| = max_R p(R) - q(R), between 0 and 1 (CM19 Table I, f = ½|t - 1|)."""
    first, second = both(p, q)
    return float(np.maximum(first - second, 0.0).sum())


def hockey_stick(p: Distribution, q: Distribution, epsilon: Number) -> float:
    """Σ max(0, p - e^ε q), ε >= 0 (or an exact string): the least δ for which p and q are (ε, δ)
    close in this direction; total variation at ε = 0 (CM19 Def. 1; f = max(0, t - e^ε))."""
    return HockeyStick(*both(p, q)).delta(epsilon)


def max_divergence(p: Distribution, q: Distribution, delta: Number = 0.0) -> float:
    """max over sets R with p(R) > δ of ln((p(R) - δ) / q(R)), and at least 0 (CM19 Def. 5).

    The least ε >= 0 with ``hockey_stick(p, q, ε) <= δ``, from the sorted likelihood ratios without
    iteration; inf where p gives more than δ to what q excludes. (The printed maximum is ln(1 - δ)
    < 0 for p = q; no divergence is negative.)
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
    """
    chosen = generator(divergence)
    (left, right), _ = integers(np.vstack(given(p, q)))
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
