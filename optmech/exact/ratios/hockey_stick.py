"""Likelihood ratios of two distributions, and their hockey-stick curve, exactly.

δ(ε) = Σ_o max(0, p_o - e^ε q_o) is what (ε, δ)-privacy bounds (Kawamoto and Murakami, ESORICS 2019,
Def. 1). In t = e^ε it is convex and piecewise linear with a breakpoint at every likelihood ratio
p_o / q_o, so that both δ(ε) and its inverse have closed forms. Pairs
of laws that an observer has to tell apart are held as likelihood ratios with probabilities.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import Shown
from optmech.exact.arguments import probability
from optmech.exact.number import Number, log_of_fraction, parse_exact
from optmech.exact.rounding import UNIT

_SHIFT = 100
"""p / (2^100 q) neither overflows nor loses digits, for every ratio above 1 of floats <= 1."""

_TINY = 2.0**-900
"""Terms of sums above this lose nothing to underflow that matters."""

_SHARP = 1e-14
"""What rounding of sums may change a logarithm by."""

_ALWAYS_ABOVE_ONE = 1400.0
"""e^1400 times the least positive float is above 1, and e^700 is finite."""


def log_ratio(p: Floats, q: Floats) -> Floats:
    """ln(p / q) elementwise to about one unit in the last place, denormals included.

    inf where only q is 0; -inf where p is 0, and then also where both are: an event that p
    excludes is never evidence for p.
    """
    p, q = np.broadcast_arrays(p, q)
    with np.errstate(all="ignore"):
        quotient = p / q
        out = np.log(quotient)
        # p - q is exact within a factor of two, so that nothing is lost for ratios close to 1
        near = (quotient >= 0.5) & (quotient <= 2)
        out[near] = np.log1p((p[near] - q[near]) / q[near])
        extreme = (quotient < 1e-300) | (quotient > 1e300)
        out[extreme] = np.log(p[extreme]) - np.log(q[extreme])
    out[p == 0] = -np.inf
    return out


def most_revealing(p: Floats, q: Floats) -> tuple[np.ndarray, Floats]:
    """For every row: the index of the largest p / q, and its logarithm.

    ``p`` and ``q`` broadcast to (k, m); both results have shape (k,).
    """
    with np.errstate(all="ignore"):
        ratio = p / np.ldexp(q, _SHIFT)
    ratio[np.isnan(ratio)] = 0.0
    best = ratio.argmax(axis=1)
    rows = np.arange(len(best))
    p, q = np.broadcast_arrays(p, q)
    return best, log_ratio(p[rows, best], q[rows, best])


def excess_mass(p: Floats, q: Floats, ratio: Floats) -> Floats:
    """Σ_o max(0, p_o - e^ratio q_o) for every row of (k, m) arrays; ``ratio`` has shape (k,)."""
    half = np.exp(np.minimum(ratio, _ALWAYS_ABOVE_ONE) / 2)[:, None]
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(p - (q * half) * half, 0.0).sum(axis=1))


def least_log_ratio(p: Floats, q: Floats, delta: float) -> Floats:
    """Least r >= 0 with Σ_o max(0, p_o - e^r q_o) <= delta, for every row of (k, m) arrays.

    With the terms in order of decreasing ratio t_1 >= t_2 >= …, the first k of them are active
    between t_k and t_{k+1}, and the sum rises there by (t_k - t_{k+1}) B_k, B_k the sum of their
    q: what has been spent at every breakpoint is a sum of terms >= 0, in which nothing cancels.
    Between two breakpoints r solves one linear equation. inf where p puts more than ``delta`` on
    what q excludes. Rows where rounding of the sums decides are solved in fractions.
    """
    p = np.broadcast_to(p, q.shape)
    if delta < _TINY:
        return np.array([_least_exactly(a, b, delta) for a, b in zip(p, q, strict=True)])
    covered = q > 0
    excluded = np.where(covered, 0.0, p).sum(axis=1)
    with np.errstate(all="ignore"):
        ratio = np.where(covered, p / np.ldexp(q, _SHIFT), 0.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    ratio = np.take_along_axis(ratio, order, axis=1)
    tails = np.cumsum(np.take_along_axis(q, order, axis=1), axis=1)
    lower = np.column_stack([ratio[:, 1:], np.zeros(len(ratio))])
    scaled = np.ldexp(tails, _SHIFT)
    # what is spent at the lower end of every piece
    spent = np.cumsum((ratio - lower) * scaled, axis=1)
    rows = np.arange(len(spent))

    def least(spare: Floats) -> Floats:
        above = spent > spare[:, None]
        piece = above.argmax(axis=1)
        left = lower[rows, piece] * scaled[rows, piece] + (spent[rows, piece] - spare)
        found = np.maximum(log_ratio(np.maximum(left, 0.0), tails[rows, piece]), 0.0)
        return np.where(spare < 0, np.inf, np.where(above.any(axis=1), found, 0.0))

    out = least(delta - excluded)
    rounding = 2 * (p.shape[1] + 4) * UNIT
    far = least(delta * (1 - rounding) - excluded * (1 + rounding))
    near = least(delta * (1 + rounding) - excluded * (1 - rounding))
    for k in np.flatnonzero(far > near + _SHARP * (1 + near)):
        out[k] = _least_exactly(p[k], q[k], delta)
    return out


def _least_exactly(p: Floats, q: Floats, delta: float) -> float:
    """The least for one row, in fractions: below ``_TINY`` terms would underflow."""
    spare = Fraction(delta)
    terms = []
    for a, b in zip(p.tolist(), q.tolist(), strict=True):
        if b:
            terms.append((Fraction(a), Fraction(b)))
        else:
            spare -= Fraction(a)
    if spare < 0:
        return math.inf
    terms.sort(key=lambda term: term[0] / term[1], reverse=True)
    head, tail = Fraction(0), Fraction(0)
    for a, b in terms:
        # at the ratio of this term the others have spent head - ratio · tail
        if head - a / b * tail > spare:
            break
        head, tail = head + a, tail + b
    if head - tail <= spare:
        return 0.0
    return log_of_fraction((head - spare) / tail)


Dot = tuple[Fraction, Fraction]


def atoms_of(corners: Sequence[Dot]) -> list[Dot]:
    """The atoms of a convex curve α ↦ Σ max(0, p - αq) that is level beyond its corners, (α, q) for
    every corner but the first, at 0: the law q has the change of slope there, and p = αq."""
    slopes = [*((hb - ha) / (b - a) for (a, ha), (b, hb) in pairwise(corners)), Fraction(0)]
    changes = (max(Fraction(0), after - before) for before, after in pairwise(slopes))
    return [(at, change) for (at, _), change in zip(corners[1:], changes, strict=True)]


@record
class HockeyStick(Shown):
    """δ(ε) = Σ_o max(0, p_o - e^ε q_o) for ε >= 0, one direction of one pair (Kawamoto and
    Murakami, ESORICS 2019, Def. 1).

    ``p`` and ``q`` are non-negative arrays of shape (m,).

    Examples
    --------
    >>> curve = om.measures.hockey_stick_curve([0.75, 0.25], [0.25, 0.75])
    >>> print(curve.delta(0), round(curve.epsilon(0.25), 4))
    0.5 0.6931
    """

    p: Floats
    q: Floats

    def delta(self, epsilon: Number) -> float:
        """δ at ``epsilon`` >= 0 (a number or an exact string)."""
        ratio = np.array([float(parse_exact(epsilon, where="epsilon"))])
        return min(1.0, float(excess_mass(self.p[None, :], self.q[None, :], ratio)[0]))

    def epsilon(self, delta: Number) -> float:
        """Least ε >= 0 with δ(ε) <= ``delta``; inf where there is none."""
        budget = float(probability(delta))
        return float(least_log_ratio(self.p[None, :], self.q[None, :], budget)[0])

    @property
    def residual(self) -> float:
        """δ as ε grows without bound: what p gives to events that q excludes."""
        return float(self.p[self.q == 0].sum())

    @cached_property
    def breakpoints(self) -> tuple[Floats, Floats]:
        """(ε, δ) at 0 and at every finite log-ratio above 0, in order of increasing ε.

        Between neighbours δ is linear in e^ε; from the last one on it is ``residual``.
        """
        ratios = log_ratio(self.p, self.q)
        kept = np.unique(ratios[np.isfinite(ratios) & (ratios > 0)])
        epsilons = np.concatenate([[0.0], kept])
        deltas = excess_mass(self.p[None, :], self.q[None, :], epsilons)
        return epsilons, deltas


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
