"""The pair of laws that an observer of noise has to tell apart, as finitely many likelihood ratios.

For a shift s the observer sees Z or Z + s. Beyond the window the ratios repeat from period to
period of the tails, so that there are finitely many, with masses in closed form.

A proved δ of k releases in whole numbers: privacy losses on a lattice, rounded upwards only.

The losses of one release are spread over the multiples of h = 2^-m so that the masses of both laws
stay, where several shifts compete under the largest of their curves; sums of losses are products
of polynomials with whole coefficients. Whatever is rounded, merged or left out is counted as a
larger loss, so that the result is an upper bound (docs/theory/real-noise.md; Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi, Connect the dots: tighter discrete approximations of privacy loss
distributions, PETS 2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import flint
import numpy as np

from optmech.errors import TooLargeError
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact
from optmech.exact.ratios.hockey_stick import Pair, above_all, logarithm
from optmech.exact.rounding import UNIT
from optmech_noise.additive.law import Law, Places
from optmech_noise.additive.shaped_law import ShapedLaw

MOST_RATIOS = 400_000


def masses(law: Law | ShapedLaw, shift: int) -> tuple[list[Places], int]:
    """Weights (P, Q) of all that is told apart, as whole numbers over the second."""
    near, far, bits = law.pairs(shift)
    rest = 1 / (1 - law.r)
    a, b = rest.numerator, rest.denominator
    return [(p * b, q * b) for p, q in near] + [(p * a, q * a) for p, q in far], b << bits


def single(law: Law | ShapedLaw, shift: int) -> Pair:
    """The pair of one shift."""
    pairs, unit = masses(law, shift)
    lost = sum(p for p, q in pairs if not q)
    # what is below all floats is within the error
    found = [(p, q) for p, q in pairs if q and p / unit > 0]
    losses = np.array([logarithm(p, q) for p, q in found])
    chances = np.array([p / unit for p, _ in found])
    return Pair(losses, chances, lost / unit, 4 * (1 + len(found)) * UNIT)


def dominating(law: Law | ShapedLaw, sensitivity: int) -> Pair:
    """A pair that is at least as easy to tell apart as that of any shift up to ``sensitivity``.

    That of the largest shift where the noise falls from the centre on. Otherwise the curves
    α ↦ Σ max(0, P - αQ) of all shifts, which are convex and bend at the likelihood ratios, are
    taken at all of these, and the largest of them joined by straight lines: what lies above all of
    them, and is the curve of a pair again (Zhu, Dong and Wang, Optimal accounting of differential
    privacy via characteristic function, AISTATS 2022, Proposition 8).
    """
    shifts = law.shifts(sensitivity)
    if len(shifts) == 1:
        return single(law, sensitivity)
    if 2 * len(shifts) * law.n > MOST_RATIOS:
        raise TooLargeError(
            f"composing {sensitivity} shifts of noise on {2 * law.n:,} places",
            where="privacy",
            remedy="Count in coarser units",
        )
    return above_all(masses(law, shift) for shift in shifts)


MOST_NODES = 1 << 16
"""Places of sums of losses."""
MOST_REACH = 1 << 17
"""Of the losses of one release."""
MOST_EXPONENT = 24
"""Of the lattice: its step is 2^-24 at least."""
BITS = 160
"""Masses are whole numbers over 2^160."""
_WIDE = 320
"""Bits of powers of e."""
_SHARE = 20
"""A side may lose 2^-20 of δ."""


class Powers:
    """Numbers at most e^{jh} times 2^320, for h = 2^-``exponent`` and |j| <= ``reach``; bounds of
    e^h and e^-h times the same."""

    def __init__(self, exponent: int, reach: int) -> None:
        low, high = exp_bounds(Exact(Fraction(1, 1 << exponent)), _WIDE + 32)
        self.reach = reach
        self.one_up = math.floor(low * 2**_WIDE), math.ceil(high * 2**_WIDE)
        self.one_down = math.floor(2**_WIDE / high), math.ceil(2**_WIDE / low)
        above, below = (self._multiples(one[0]) for one in (self.one_up, self.one_down))
        self._lower = [*below[:0:-1], *above]

    def _multiples(self, factor: int) -> list[int]:
        """Powers of a factor, each rounded down."""
        return list(
            accumulate(range(self.reach), lambda a, _: a * factor >> _WIDE, initial=1 << _WIDE)
        )

    def low(self, j: int) -> int:
        """At most e^{jh}."""
        return self._lower[j + self.reach]


@dataclass(frozen=True)
class Losses:
    """At least the probability of every sum of losses, or at most where it is no ``upper`` end: of
    (``first`` + i) h, and of more than all of them, or none, in ``lost``; over 2^160."""

    first: int
    masses: Sequence[int]
    lost: int
    upper: bool = True

    def plus(self, other: Losses, spare: int) -> Losses:
        """Of the sum of two independent losses, trimmed."""
        one = flint.fmpz_poly(list(self.masses))
        # a square takes two thirds of a product
        product = one * (one if other is self else flint.fmpz_poly(list(other.masses)))
        up = ((1 << BITS) - 1) * self.upper
        sums = [int(value) + up >> BITS for value in product.coeffs()]
        a, b = min(self.lost, 1 << BITS), min(other.lost, 1 << BITS)
        both = a * b + ((1 << BITS) - 1) * (not self.upper) >> BITS
        return Losses(self.first + other.first, sums, a + b - both, self.upper).trimmed(spare)

    def times(self, count: int, spare: int) -> Losses:
        """Of the sum of so many, by squares."""
        total = one = self.trimmed(spare)
        for digit in bin(count)[3:]:
            total = total.plus(total, spare)
            if digit == "1":
                total = total.plus(one, spare)
        return total

    def trimmed(self, spare: int) -> Losses:
        """Without the ends, which hold at most ``spare`` each: the lower is put on what is left,
        the upper lost, where it is an upper end."""
        start, below = 0, 0
        while start < len(self.masses) - 1 and below + self.masses[start] <= spare:
            below += self.masses[start]
            start += 1
        end, above = len(self.masses), 0
        while end > start + 1 and above + self.masses[end - 1] <= spare:
            above += self.masses[end - 1]
            end -= 1
        kept = list(self.masses[start:end])
        if kept:
            kept[0] += below * self.upper
        if len(kept) > MOST_NODES:
            raise TooLargeError(f"{len(kept):,} places of losses", where="lattice")
        return Losses(self.first + start, kept, self.lost + above * self.upper, self.upper)


def composed_delta(
    law: Law, sensitivity: int, releases: int, *, epsilon: Exact, delta: Exact, exponent: int
) -> Fraction:
    """At least δ(ε) of ``releases`` numbers, each with noise of its own and changed by at most
    ``sensitivity``, decided on losses that are multiples of 2^-``exponent``. ``delta`` sets what
    may be left out. Raises TooLargeError where the lattice is too long."""
    one = _single(law, sensitivity, exponent)
    spare = int(bracket(delta)[0] * (1 << BITS)) // releases >> _SHARE
    return delta_at(one.times(releases, spare), epsilon, exponent)


def delta_at(total: Losses, epsilon: Exact, exponent: int) -> Fraction:
    """At least P(lost) + E max(0, 1 - e^{ε - S})."""
    low = bracket(epsilon)[0]
    start = max(total.first, math.floor(low * (1 << exponent)))
    last = total.first + len(total.masses) - 1
    if last < start:
        return Fraction(min(total.lost, 1 << BITS), 1 << BITS)
    # 1 - e^{ε - jh} for j from the start on, e^{-h} at a time
    x = low - Fraction(start, 1 << exponent)
    first = exp_bounds(Exact(x), _WIDE)[0] if x >= 0 else 1 / exp_bounds(Exact(-x), _WIDE)[1]
    factor = Powers(exponent, 0).one_down[0]
    power = math.floor(first * (1 << _WIDE))
    value = total.lost << _WIDE
    for j in range(start, last + 1):
        value += total.masses[j - total.first] * max(0, (1 << _WIDE) - power)
        power = power * factor >> _WIDE
    return min(Fraction(value, 1 << (_WIDE + BITS)), Fraction(1))


def _single(law: Law, sensitivity: int, exponent: int) -> Losses:
    """The losses of one release, of a pair that dominates all shifts."""
    return of_pairs([masses(law, shift) for shift in law.shifts(sensitivity)], exponent)


def of_pairs(laws: Sequence[tuple[list[Places], int]], exponent: int) -> Losses:
    """The losses of one release, of a pair that dominates all of these, as ``masses`` gives
    them."""
    far = max(
        (places(p, q, exponent) for pairs, _ in laws for p, q in pairs if p and q),
        key=abs, default=0,
    )  # fmt: skip
    reach = abs(far) + 3
    if reach > MOST_REACH or (len(laws) > 1 and reach * len(laws) > 4 * MOST_REACH):
        raise TooLargeError(f"{reach:,} places of losses", where="lattice")
    powers = Powers(exponent, reach)
    found = [_spread(pairs, unit, powers, exponent) for pairs, unit in laws]
    return found[0] if len(found) == 1 else _largest(found, powers)


def places(p: int, q: int, exponent: int) -> int:
    """About ln(p/q) in steps."""
    return math.floor(logarithm(p, q) * (1 << exponent))


def _spread(pairs: Sequence[Places], unit: int, powers: Powers, exponent: int) -> Losses:
    """Every atom on the two multiples of the step around its loss: the share
    (p - e^{jh} q)/(1 - e^-h) on the upper one keeps both masses."""
    reach = powers.reach
    found = [0] * (2 * reach + 1)
    lost = 0
    step = (1 << _WIDE) - powers.one_down[1]
    for p, q in pairs:
        if not q:
            lost += p
        elif p:
            j = places(p, q, exponent)
            while p << _WIDE > powers.low(j + 1) * q:
                j += 1
            upper = -(-(((p << _WIDE) - powers.low(j) * q) << BITS) // step)
            upper = min(p << BITS, max(0, upper))
            found[j + 1 + reach] += upper
            found[j + reach] += (p << BITS) - upper
    scaled = [-(-value // unit) for value in found]
    return Losses(-reach, scaled, -(-(lost << BITS) // unit))


def _largest(found: Sequence[Losses], powers: Powers) -> Losses:
    """Of the pair whose curve joins, at the multiples of the step, the largest of several curves
    M_j = Σ_{i > j} P_i (1 - e^{(j - i)h}) + P_∞: P_j = (M_{j+1} - M_j + e^h (M_{j-1} - M_j)) /
    (e^h - 1)."""
    count = len(found[0].masses)
    lows, highs = [0] * (count + 1), [0] * (count + 1)
    (down_low, down_high), (up_low, up_high) = powers.one_down, powers.one_up
    for part in found:
        above = part.lost << _WIDE
        low = high = 0
        # index j + 1 holds M_j, from the last place down to one below the first
        for j in range(count - 1, -2, -1):
            if j < count - 1:
                mass = part.masses[j + 1] << _WIDE
                above += mass
                low, high = (low + mass) * down_low >> _WIDE, -(-(high + mass) * down_high >> _WIDE)
            lows[j + 1] = max(lows[j + 1], above - high)
            highs[j + 1] = max(highs[j + 1], above - low)
    lost = max(part.lost for part in found)
    out = []
    for j in range(count):
        following = highs[j + 2] if j + 2 <= count else lost << _WIDE
        value = (following - lows[j + 1]) << _WIDE
        value += up_high * highs[j] - up_low * lows[j + 1]
        out.append(max(0, -(-value // (up_low - (1 << _WIDE))) + (1 << _WIDE) - 1 >> _WIDE))
    return Losses(found[0].first, out, lost)
