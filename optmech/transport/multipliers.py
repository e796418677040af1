"""Multipliers of the joint program as whole numbers: the proof of a bound, without rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.numerators import integers

_PRECISION = 96
"""Bits of floats that are kept, counted from the largest of them."""


@dataclass(frozen=True, eq=False)
class Multipliers:
    """z >= 0 of the joint program: that of μ_t[y] <= e^ε μ_t'[y] is units[t][t'][y] / 2^shift."""

    units: tuple[tuple[tuple[int, ...], ...], ...]
    shift: int

    @classmethod
    def zero(cls, count: int, points: int) -> Multipliers:
        """No multipliers: the bound that asks for no privacy."""
        return cls((((0,) * points,) * count,) * count, 0)

    @classmethod
    def reduced(cls, units: Any, shift: int) -> Multipliers:
        """From an array of whole numbers >= 0, shape (T, T, m), with common powers of two divided
        out."""
        flat = units.ravel().tolist()
        spare = min(((value & -value).bit_length() - 1 for value in flat if value), default=shift)
        down = min(spare, shift)
        listed = (units >> down).tolist()
        return cls(tuple(tuple(map(tuple, table)) for table in listed), shift - down)

    @classmethod
    def of(cls, values: Floats) -> Multipliers:
        """From floats, shape (T, T, m): rounded down to 96 bits below the largest, negative ones
        to 0."""
        positive = np.maximum(values, 0.0)
        whole, exponent = integers(positive.reshape(len(values), -1))
        array = np.array(whole, dtype=object).reshape(values.shape)
        largest = max(array.ravel().tolist(), default=0)
        surplus = max(0, min(exponent, largest.bit_length() - _PRECISION))
        return cls.reduced(array >> surplus, exponent - surplus)

    def times(self, share: Fraction) -> Multipliers:
        """The same times a number of (0, 1], rounded down."""
        extra = 64 - (share.numerator.bit_length() - share.denominator.bit_length())
        scaled = (np.array(self.units, dtype=object) << extra) * share.numerator
        return Multipliers.reduced(scaled // share.denominator, self.shift + extra)
