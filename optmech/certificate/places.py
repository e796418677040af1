"""A mechanism at the places that its control points are spread over (theory: "Privacy at every
point", "Joint constraints of mechanisms on a mesh").

At a place x it is Q[x,o] = Σ_α B_α(x) P[α,o], a rational number. Ratios of
places, and means at one of them, are decided exactly. For sums over many places Q is enclosed
between whole numbers over a power of two, and families are decided on the side that is harder to
keep; where that leaves it open, exactly.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate import values
from optmech.exact.numerators import Numerators, integers
from optmech.statement import Spread

_FINER = 64
"""Bits that numbers at the places have more than the released ones."""
_LONGEST = 2**16
"""Bits of a denominator that all places share, at most."""
_SHARE_BITS = 320


@dataclass(frozen=True, eq=False)
class Enclosed(ReadOnly):
    """Whole numbers over 2^bits, at most or at least those that ``shares`` has exactly."""

    bits: int
    rows: tuple[tuple[int, ...], ...]
    shares: tuple[values.WholeRow, ...]
    exact_bits: int

    def exact(self, s: int) -> values.WholeRow:
        """Row s in whole numbers, and what they are over, but for 2^exact_bits of all rows."""
        return self.shares[s]

    @cached_property
    def common(self) -> tuple[values.Scaled, int] | None:
        """All rows in whole numbers over one, times 2^exact_bits; none where it is too long."""
        over = math.lcm(*(total for _, total in self.shares))
        if over.bit_length() > _LONGEST:
            return None
        rows = tuple(tuple(v * (over // total) for v in row) for row, total in self.shares)
        return Enclosed(self.exact_bits, rows, self.shares, self.exact_bits), over

    @cached_property
    def matrix(self) -> Floats:
        """The nearest floats, (places, O)."""
        unit = 1 << self.bits
        return np.array([[value / unit for value in row] for row in self.rows])


def at_places(spread: Spread, released: Numerators) -> tuple[Enclosed, Enclosed]:
    """Lower and upper bounds of Q (places, O), equal or one unit apart.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    low, high, shares = [], [], []
    for control, own in spread.weights:
        rows, total = [released.rows[k] for k in control], sum(own)
        share = [sum(map(operator.mul, own, column)) for column in zip(*rows, strict=True)]
        parts = [divmod(value << _FINER, total) for value in share]
        low.append(tuple(whole for whole, _ in parts))
        high.append(tuple(whole + (rest > 0) for whole, rest in parts))
        common = math.gcd(total, *share)
        shares.append((tuple(value // common for value in share), total // common))
    bits, exact = released.bits + _FINER, tuple(shares)
    below, above = (Enclosed(bits, tuple(rows), exact, released.bits) for rows in (low, high))
    return below, above


def expected_loss(
    spread: Spread, weights: Floats, costs: Floats, released: Numerators
) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of Σ_x w_x Σ_o Q[x,o] c(x,o), which differ by less than 2^-319 a place.

    ``weights`` (n,) and ``costs`` (n, O) are numbers >= 0, as the binary fractions that they are.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    (mass,), mass_bits = integers(weights[None, :])
    cost, cost_bits = integers(costs)
    low = high = 0
    for (control, own), unit, paid in zip(spread.weights, mass, cost, strict=True):
        # Σ_α B_α Σ_o c_o N[α, o], the values B_α over their sum
        terms = [sum(map(operator.mul, paid, released.rows[k])) for k in control]
        top = unit * sum(map(operator.mul, own, terms)) << _SHARE_BITS
        share, rest = divmod(top, sum(own))
        low, high = low + share, high + share + (rest > 0)
    total = 1 << (released.bits + mass_bits + cost_bits + _SHARE_BITS)
    return Fraction(low, total), Fraction(high, total)
