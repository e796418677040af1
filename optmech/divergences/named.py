"""The divergences that have a name. Those of CM19 Table I, with two of its entries put right: the
reverse Kullback-Leibler divergence has f(t) = -ln t (printed: -t log t, which is not convex), and
functions f may be negative somewhere, as t ln t is."""

from __future__ import annotations

import numpy as np

from optmech.divergences.arguments import both
from optmech.exact.checked import probability
from optmech.exact.number import Number
from optmech.ratios.generators import generator
from optmech.ratios.hockey_stick import HockeyStick, least_log_ratio, most_revealing
from optmech.spaces.prior import Distribution


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


def _smooth(name: str, p: Distribution, q: Distribution) -> float:
    return float(generator(name).terms(*both(p, q)).sum())
