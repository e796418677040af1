"""Divergences between rigorous bounds."""

from __future__ import annotations

import math

import flint
import numpy as np

from optmech.divergences.arguments import given
from optmech.exact.interval import Interval
from optmech.exact.numerators import integers
from optmech.ratios.enclosures import divergence_ball
from optmech.ratios.generators import generator
from optmech.spaces.prior import Distribution

_BITS = 256


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
        lower, upper = float(ball.lower()), float(ball.upper())
    return Interval(max(0.0, math.nextafter(lower, -math.inf)), math.nextafter(upper, math.inf))
