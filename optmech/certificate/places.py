"""A mechanism at the places that its control points are spread over (theory: "Privacy at every
point", "Joint constraints of mechanisms on a mesh").

At a place x it is Q[x,o] = Σ_α B_α(x) P[α,o], a rational number. Q is enclosed between whole
numbers over a power of two, and families are decided on the side that is harder to keep.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.exact.numerators import Numerators, integers
from optmech.statement import Spread

_FINER = 64
"""Bits that numbers at the places have more than the released ones."""
_SHARE_BITS = 320


@dataclass(frozen=True, eq=False)
class Enclosed(ReadOnly):
    """Whole numbers over 2^bits."""

    bits: int
    rows: tuple[tuple[int, ...], ...]

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
    low, high = [], []
    for control, own in spread.weights:
        rows, total = [released.rows[k] for k in control], sum(own)
        parts = [
            divmod(sum(map(operator.mul, own, column)) << _FINER, total)
            for column in zip(*rows, strict=True)
        ]
        low.append(tuple(whole for whole, _ in parts))
        high.append(tuple(whole + (rest > 0) for whole, rest in parts))
    bits = released.bits + _FINER
    return Enclosed(bits, tuple(low)), Enclosed(bits, tuple(high))


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
