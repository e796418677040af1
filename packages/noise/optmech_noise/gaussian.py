"""Gaussian noise, rounded to whole numbers: for changes that are bounded in l2, of any dimension.

Rounding x + N for a whole x is what is done to x + N, and so as private (Dong, Roth and Su,
Gaussian differential privacy, 2022): for numbers that change by v the trade-off is that of N(0, 1)
and N(|v|/σ, 1), in any direction. Masses are made whole numbers, and what is lost by that is part
of δ (docs/theory/releases.md).
"""

import math
from fractions import Fraction
from typing import NamedTuple

import flint

from optmech.errors import TooLargeError
from optmech.exact.exponentials import ball_of, bracket, ends_of
from optmech.exact.number import Exact
from optmech_noise.additive.law import MOST_ENTRIES, Law
from optmech_noise.baselines import gaussian_scale

_BITS = 160
_WORK = 320
_FAR = 15.0
"""So many standard deviations are kept: what lies beyond has 2^-165."""
_GRAIN = 1 << 40
_MORE = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)


class Rounded(NamedTuple):
    """N(0, σ²) rounded to whole numbers, how far at most its law is from that in total variation,
    and σ."""

    law: Law
    away: Fraction
    sigma: Fraction

    def delta(self, epsilon: Exact, change: Fraction, numbers: int) -> Fraction:
        """At least δ(ε) of so many numbers that change by ``change`` at most in l2, together."""
        low, high = bracket(epsilon)
        exact = gaussian_delta(low, change / self.sigma)
        # either law may be that far away, for every number
        return exact + numbers * self.away * (1 + Fraction(math.ceil(math.exp(float(high) + 1))))


def gaussian_delta(rate: Fraction, mu: Fraction) -> Fraction:
    """At least Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ) (Balle and Wang, ICML 2018)."""
    with flint.ctx.workprec(_WORK):
        e, m = map(ball_of, (rate, mu))

        def normal(x: flint.arb) -> flint.arb:
            return (-x / flint.arb(2).sqrt()).erfc() / 2

        found = normal(m / 2 - e / m) - e.exp() * normal(-m / 2 - e / m)
        return max(Fraction(0), ends_of(found)[1])


def rounded_gaussian(sigma: Fraction) -> Rounded:
    """The law of rounded noise, in whole numbers; raises TooLargeError where it has too many."""
    last = math.ceil(_FAR * sigma) + 1
    if last >= MOST_ENTRIES // 2:
        raise TooLargeError(
            f"Gaussian noise of standard deviation {float(sigma):,.6g} spreads over {2 * last:,} "
            "places", where="epsilon", remedy="Count in coarser units, or allow more",
        )  # fmt: skip
    with flint.ctx.workprec(_WORK):
        scale = ball_of(sigma) * flint.arb(8).sqrt()
        tails = [((2 * k + 1) / scale).erfc() for k in range(last + 1)]
        balls = [tails[k - 1] - tails[k] for k in range(1, last + 1)]
        unit = flint.arb(1 << (_BITS - 1))
        window = [max(0, math.floor(ends_of(ball * unit)[0])) for ball in balls]
    centre = (1 << _BITS) - 2 * sum(window)
    # every other place lost less than two units and what is beyond, all of which the centre has
    away = Fraction(4 * last, 1 << _BITS) + ends_of(tails[last])[1]
    return Rounded(Law(_BITS, (centre, *window)), away, sigma)


def least_gaussian(epsilon: Exact, delta: Exact, change: Fraction, numbers: int) -> Rounded:
    """The least rounded Gaussian noise with which so many numbers that change by ``change`` at most
    in l2 keep (ε, δ) together, nearly."""
    limit = bracket(delta)[0]
    start = gaussian_scale(float(epsilon), float(delta), float(change))
    for more in _MORE:
        # known to about twelve digits: a little more noise is enough
        made = rounded_gaussian(_scale(start * (1 + more)))
        if made.delta(epsilon, change, numbers) <= limit:
            return made
    raise TooLargeError(
        "Gaussian noise could not be proved as private", where="delta", remedy="Allow a larger δ"
    )


def _scale(sigma: float) -> Fraction:
    return Fraction(math.ceil(sigma * _GRAIN), _GRAIN)
