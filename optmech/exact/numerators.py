"""Integer probability matrices: row s gives observable o the probability rows[s][o] / 2^bits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import compress, starmap
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, locked, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.exact.codec import Plain, placed
from optmech.exact.sampler import Table

MAX_BITS = 1074
"""2^-1074 is the least positive float64: no released probability rounds to zero."""
_ROUNDED_BITS = 1020
"""Leaves room for mixing."""
_PRECISION = 64
"""Bits that the least positive entry keeps."""


_HEX = re.compile(rf"[1-9a-f][0-9a-f]{{0,{MAX_BITS // 4}}}", re.ASCII)


def encode_rows(rows: Iterable[Sequence[int]]) -> Plain:
    """``[[[o, ...], ["1f", ...]], ...]``: where each row is not 0, and what it is there."""
    used = (([o for o, value in enumerate(row) if value], row) for row in rows)
    return [[places, [f"{row[o]:x}" for o in places]] for places, row in used]


def decode_rows(plain: Plain, count: int, where: str) -> tuple[tuple[int, ...], ...]:
    """Read ``encode_rows``, rows of ``count``; raises ProblemError on anything else."""

    def numerator(text: str) -> int | None:
        return int(text, 16) if type(text) is str and _HEX.fullmatch(text) else None

    empty = [0] * count
    return tuple(placed(row, empty, numerator, where, "is not a numerator") for row in plain)


class WholeRows(SameFields, ReadOnly):
    """A matrix of probabilities: row s gives observable o ``rows[s][o] / sum(rows[s])``."""

    rows: tuple[tuple[int, ...], ...]
    limbs: int = 1
    """Words that a draw takes at least."""

    @cached_property
    def table(self) -> Table:
        """The rows as the sampler needs them."""
        return Table.of(self.rows, self.limbs)

    @property
    def shape(self) -> tuple[int, int]:
        """Secrets and observables."""
        return len(self.rows), len(self.rows[0])

    @cached_property
    def matrix(self) -> Floats:
        """The nearest float64 numbers, shape (S, O)."""
        out = np.empty(self.shape)
        out[:] = 0.0
        every = range(out.shape[1])
        for row, values in zip(out, self.rows, strict=True):
            # of thousands of observables few are reported
            used = list(compress(every, values))
            total = sum(values)
            row[used] = [values[o] / total for o in used]
        return locked(out)


@record
class Numerators(WholeRows):
    """A released matrix, exactly. Raises ProblemError unless every row has entries >= 0 that sum
    to 2^bits, with 1 <= bits <= 1074."""

    bits: int
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MAX_BITS:
            raise ProblemError(f"{self.bits} bits; 1 to {MAX_BITS} are possible", where="mechanism")
        for s, row in enumerate(self.rows):
            if len(row) != len(self.rows[0]) or min(row) < 0 or sum(row) != 1 << self.bits:
                raise ProblemError(
                    f"row {s} is not {len(self.rows[0])} numbers >= 0 with sum 2^{self.bits}",
                    where="mechanism",
                )

    def exact(self, s: int) -> tuple[tuple[int, ...], int]:
        """Row s in whole numbers, and what they are over, but for 2^exact_bits of all rows."""
        return self.rows[s], 1

    @property
    def exact_bits(self) -> int:
        return self.bits

    @property
    def common(self) -> tuple[Numerators, int]:
        """All rows in whole numbers over one, times 2^exact_bits."""
        return self, 1

    def __repr__(self) -> str:
        return f"Numerators({self.shape[0]} x {self.shape[1]}, over 2^{self.bits})"

    @classmethod
    def of(cls, bits: int, rows: NDArray[Any]) -> Numerators:
        """Those in an array of whole numbers, (S, O)."""
        return cls(bits, tuple(map(tuple, rows.tolist())))

    @classmethod
    def rounded(cls, matrix: Floats) -> Numerators:
        """A float matrix divided by its exact row sums and rounded down to multiples of 2^-bits.

        What is left of each row goes to its largest entry: zeros stay zero and equal rows stay
        equal. The least positive entry keeps 64 bits, as far as 1020 bits suffice.
        """
        used = np.flatnonzero(matrix.any(axis=0))
        return cls.placed(matrix[:, used], used, matrix.shape[1])

    @classmethod
    def placed(cls, columns: Floats, places: Ints, count: int) -> Numerators:
        """Numerators of a matrix of ``count`` columns, of which those at ``places`` are given and
        the others zero."""
        bits, rows = enough_bits(columns, count), []
        for given in integers(columns)[0]:
            row = [0] * count
            for place, value in zip(places.tolist(), apportioned(given, bits), strict=True):
                row[place] = value
            rows.append(tuple(row))
        return cls(bits, tuple(rows))

    def mixed(self, other: Numerators, shift: int) -> Numerators:
        """(1 - 2^-shift) of this matrix and 2^-shift of the other, exactly."""
        bits = max(self.bits, other.bits)
        mine, theirs = bits - self.bits, bits - other.bits
        keep = (1 << shift) - 1
        return Numerators(
            bits + shift,
            tuple(
                tuple((a << mine) * keep + (b << theirs) for a, b in zip(p, q, strict=True))
                for p, q in zip(self.rows, other.rows, strict=True)
            ),
        )


Wholes = NDArray[np.object_]


def wholes(values: Any) -> Wholes:
    """Rows of whole numbers of any size as an array, whose arithmetic is exact."""
    return np.array(values, dtype=object)


def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    """Σ a b of whole numbers or fractions, of as many of the one as of the other."""
    return sum(starmap(mul, zip(a, b, strict=True)))


def steepest(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Of pairs of whole numbers >= 0 the one whose first is most times its second, (k, 0) where
    that is infinitely often; (1, 1) where none is more than once."""
    top, bottom = 1, 1
    for a, b in pairs:
        if a * bottom > top * b:
            top, bottom = a, b
    return top, bottom


def integers(values: Floats) -> tuple[list[list[int]], int]:
    """Whole numbers w and the least e >= 0 with values = w / 2^e, exactly; two-dimensional."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    shift = exponent.astype(np.int64) - 53
    used = shift[whole != 0]
    lowest = min(0, int(used.min())) if len(used) else 0
    shift = np.where(whole != 0, shift - lowest, 0)
    rows = zip(whole.tolist(), shift.tolist(), strict=True)
    return [[w << k for w, k in zip(*row, strict=True)] for row in rows], -lowest


def enough_bits(matrix: Floats, count: int | None = None) -> int:
    """Bits with which the least positive entry of rows of ``count`` entries, or of as many as there
    are columns, keeps 64, as far as there are so many."""
    least = float(matrix[matrix > 0].min())
    count = matrix.shape[1] if count is None else count
    needed = _PRECISION + count.bit_length() - math.frexp(least)[1] + 1
    return int(min(_ROUNDED_BITS, needed))


def apportioned(row: Sequence[int], bits: int) -> tuple[int, ...]:
    """Whole numbers of sum 2^bits in proportion; rounding goes to the largest."""
    total = sum(row)
    out = [(value << bits) // total for value in row]
    out[out.index(max(out))] += (1 << bits) - sum(out)
    return tuple(out)
