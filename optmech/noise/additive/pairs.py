"""The pair of laws that an observer of noise has to tell apart, as finitely many likelihood ratios.

For a shift s the observer sees Z or Z + s. Beyond the window the ratios repeat from period to
period of the tails, so that there are finitely many, with masses in closed form.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.errors import TooLargeError
from optmech.noise.additive.law import Law, Places

MOST_RATIOS = 400_000


@dataclass(frozen=True)
class Pair(ReadOnly):
    """Privacy losses and their probabilities under the first of two laws; ``lost`` is the
    probability of an infinite loss. Probabilities are off by at most ``error`` in all."""

    losses: Floats
    chances: Floats
    lost: float
    error: float


def masses(law: Law, shift: int) -> tuple[list[Places], int]:
    """Weights (P, Q) of all that is told apart, as whole numbers over the second."""
    near, far, bits = law.pairs(shift)
    rest = 1 / (1 - law.r)
    a, b = rest.numerator, rest.denominator
    return [(p * b, q * b) for p, q in near] + [(p * a, q * a) for p, q in far], b << bits


def single(law: Law, shift: int) -> Pair:
    """The pair of one shift."""
    pairs, unit = masses(law, shift)
    lost = sum(p for p, q in pairs if not q)
    # what is below all floats is within the error
    found = [(p, q) for p, q in pairs if q and p / unit > 0]
    losses = np.array([logarithm(p, q) for p, q in found])
    chances = np.array([p / unit for p, _ in found])
    return Pair(losses, chances, lost / unit, 4 * (1 + len(found)) * 2.0**-53)


def dominating(law: Law, sensitivity: int) -> Pair:
    """A pair that is at least as easy to tell apart as that of any shift up to ``sensitivity``.

    That of the largest shift where the noise falls from the centre on. Otherwise the curves
    α ↦ Σ max(0, P - αQ) of all shifts, which are convex and bend at the likelihood ratios, are
    taken at all of these, and the largest of them joined by straight lines: what lies above all of
    them, and is the curve of a pair again (Zhu, Dong and Wang, Optimal accounting of differential
    privacy via characteristic function, AISTATS 2022, Proposition 8).
    """
    if sensitivity == 1 or law.falls:
        return single(law, sensitivity)
    if 2 * sensitivity * law.n > MOST_RATIOS:
        raise TooLargeError(
            f"composing {sensitivity} shifts of noise on {2 * law.n:,} places",
            where="privacy",
            remedy="Count in coarser units",
        )
    return above_all(masses(law, shift) for shift in range(1, sensitivity + 1))


def above_all(pairs: Iterable[tuple[Iterable[Places], int]], more: int = 0) -> Pair:
    """A pair that is at least as easy to tell apart as each of these: weights (P, Q), as whole
    numbers over one.

    Curves cross between their bends: they are taken at so many ``more`` ratios between the least
    and the largest."""
    curves = [_Curve(found, unit) for found, unit in pairs]
    bends = {ratio for curve in curves for ratio in curve.ratios}
    between = np.geomspace(min(bends), max(bends), more + 2)[1:-1] if bends and more else ()
    knots = sorted(bends.union(map(float, between)))
    heights = [max(curve.at(knot) for curve in curves) for knot in knots]
    return _between(knots, heights)


class _Curve:
    """α ↦ Σ max(0, P - αQ) of one pair, at floats, from exact sums.

    Ratios are rounded up to floats, so that the curve is one of a pair that is easier to tell
    apart."""

    def __init__(self, pairs: Iterable[Places], unit: int) -> None:
        self.unit = unit
        found: Counter[float] = Counter()
        for p, q in pairs:
            if p:
                found[_quotient_up(p, q)] += p
        self.lost = found.pop(math.inf, 0)
        self.ratios = sorted(found)
        self.above = [0] * (len(self.ratios) + 1)
        self.under: list[Fraction] = [Fraction(0)] * (len(self.ratios) + 1)
        self.scale = 1 << 200
        # of the second law, rounded down: easier to tell apart
        under = 0
        for k in range(len(self.ratios) - 1, -1, -1):
            exact = Fraction(self.ratios[k])
            mass = found[self.ratios[k]]
            self.above[k] = self.above[k + 1] + mass
            under += mass * exact.denominator * self.scale // (exact.numerator * self.unit)
            self.under[k] = Fraction(under, self.scale)

    def at(self, alpha: float) -> Fraction:
        """The curve at α."""
        k = bisect.bisect_right(self.ratios, alpha)
        return Fraction(self.lost + self.above[k], self.unit) - Fraction(alpha) * self.under[k]


def _between(knots: Sequence[float], heights: Sequence[Fraction]) -> Pair:
    """The pair of the curve that joins heights at knots, 1 at 0, and is level beyond the last."""
    places = [Fraction(0), *map(Fraction, knots)]
    levels = [Fraction(1), *heights]
    slopes = [
        (b - a) / (y - x)
        for a, b, x, y in zip(levels, levels[1:], places, places[1:], strict=False)
    ]
    slopes.append(Fraction(0))
    second = [b - a for a, b in itertools.pairwise(slopes)]
    first = [max(0.0, float(x * q)) for x, q in zip(places[1:], second, strict=True)]
    kept = [(math.log(x), p) for x, p in zip(knots, first, strict=True) if p > 0]
    return Pair(
        np.array([loss for loss, _ in kept]),
        np.array([p for _, p in kept]),
        float(levels[-1]),
        4 * len(kept) * 2.0**-53,
    )


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
