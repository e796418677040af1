"""Pairs of laws that an observer has to tell apart, as likelihood ratios with probabilities."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.exact.ratios.hockey_stick import atoms_of
from optmech.exact.rounding import UNIT

_FINE = 200
"""Masses of the second of two laws are whole numbers over 2^200."""
Weights = tuple[int, int]
"""Of one place under both laws."""


@dataclass(frozen=True)
class Pair(ReadOnly):
    """Privacy losses and their probabilities under the first of two laws; ``lost`` is the
    probability of an infinite loss. Probabilities are off by at most ``error`` in all."""

    losses: Floats
    chances: Floats
    lost: float
    error: float


def above_all(pairs: Iterable[tuple[Iterable[Weights], int]], more: int = 0) -> Pair:
    """A pair that is at least as easy to tell apart as each of these: weights (P, Q), as whole
    numbers over one.

    Curves cross between their bends: they are taken at so many ``more`` ratios between the least
    and the largest."""
    curves = [_Curve(found, unit) for found, unit in pairs]
    bends = {ratio for curve in curves for ratio in curve.ratios}
    between = np.geomspace(min(bends), max(bends), more + 2)[1:-1] if bends and more else ()
    knots = sorted(bends.union(map(float, between)))
    highest = [(Fraction(knot), max(curve.at(knot) for curve in curves)) for knot in knots]
    # joined by straight lines from 1 at 0 on, and level beyond the last
    corners = [(Fraction(0), Fraction(1)), *highest]
    found = ((float(at), float(at * mass)) for at, mass in atoms_of(corners))
    kept = [(math.log(at), chance) for at, chance in found if chance > 0]
    losses, chances = (np.array([pair[i] for pair in kept]) for i in (0, 1))
    return Pair(losses, chances, float(corners[-1][1]), 4 * len(kept) * UNIT)


class _Curve:
    """α ↦ Σ max(0, P - αQ) of one pair, at floats, from exact sums.

    Ratios are rounded up to floats, so that the curve is one of a pair that is easier to tell
    apart."""

    def __init__(self, pairs: Iterable[Weights], unit: int) -> None:
        self.unit = unit
        found: Counter[float] = Counter()
        for p, q in pairs:
            if p:
                found[_quotient_up(p, q)] += p
        self.lost = found.pop(math.inf, 0)
        self.ratios = sorted(found)
        falling = self.ratios[::-1]
        masses = [found[ratio] for ratio in falling]
        self.above = [*accumulate(masses, initial=0)][::-1]
        # of the second law, rounded down: easier to tell apart
        unders = (
            (mass << _FINE) * ratio[1] // (ratio[0] * unit)
            for mass, ratio in zip(masses, map(float.as_integer_ratio, falling), strict=True)
        )
        self.under = [Fraction(under, 1 << _FINE) for under in accumulate(unders, initial=0)][::-1]

    def at(self, alpha: float) -> Fraction:
        """The curve at α."""
        k = bisect.bisect_right(self.ratios, alpha)
        return Fraction(self.lost + self.above[k], self.unit) - Fraction(alpha) * self.under[k]


def logarithm(p: int, q: int) -> float:
    """ln(p/q) to about a unit in the last place."""
    # quotients of whole numbers are rounded correctly
    if q < 2 * p < 4 * q:
        return math.log1p((p - q) / q)
    # what is no normal float has no accurate logarithm as one
    held = abs(p.bit_length() - q.bit_length()) < 1000
    return math.log(p / q) if held else math.log(p) - math.log(q)


def _quotient_up(p: int, q: int) -> float:
    """A float above p/q; infinite where there is none."""
    if not q or p >= q << 1023:
        return math.inf
    return math.nextafter(p / q, math.inf)
