"""Distributions and rows of probabilities as whole numbers over totals of any size.

Unlike ``numerators``, whose total is a power of two, these express any rational number: what is
needed where an output distribution has to be *equal* to a given one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, locked, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.exact.number import parse_fraction
from optmech.exact.numerators import MAX_BITS, Numerators, WholeRows
from optmech.spaces.prior import Prior


@record
class Shares(SameFields, ReadOnly):
    """A distribution: point k has probability ``units[k] / total`` exactly."""

    units: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, value: object, where: str) -> Shares:
        """Weights >= 0 of any positive sum, divided by their exact sum.

        Whole numbers, fractions and texts such as ``"1/3"`` count as what they are, floats (and
        priors) as the binary fractions that they are. Raises ProblemError on anything else: no
        weights, a negative one, NaN, a sum of 0.
        """
        if isinstance(value, Shares):
            return value
        listed: Any = value.weights if isinstance(value, Prior) else value
        try:
            entries = list(listed)
        except TypeError:
            entries = []
        if isinstance(listed, str) or not entries:
            raise ProblemError(
                "is not a list of weights", where=where, remedy="Give a weight for every point"
            )
        parts = [_rational(entry, f"{where}[{k}]") for k, entry in enumerate(entries)]
        if not any(parts):
            raise ProblemError("the weights sum to 0", where=where, remedy="Give a positive weight")
        scale = math.lcm(*(part.denominator for part in parts))
        return cls.reduced([part.numerator * (scale // part.denominator) for part in parts])

    @classmethod
    def reduced(cls, units: Sequence[int]) -> Shares:
        """Whole numbers >= 0 with a positive sum, divided by their greatest common divisor."""
        divisor = math.gcd(*units)
        return cls(tuple(unit // divisor for unit in units), sum(units) // divisor)

    def __repr__(self) -> str:
        shown = [f"{value:.4g}" for value in self.weights[:6].tolist()]
        return f"Shares({', '.join([*shown, '...'] if len(self) > 6 else shown)})"

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, k: int) -> Fraction:
        return Fraction(self.units[k], self.total)

    @property
    def fractions(self) -> list[Fraction]:
        """Every probability, exactly."""
        return [Fraction(unit, self.total) for unit in self.units]

    @property
    def support(self) -> list[int]:
        """Indices of the points with mass."""
        return [k for k, unit in enumerate(self.units) if unit]

    @cached_property
    def weights(self) -> Floats:
        """The nearest floats, shape (n,)."""
        out = np.array([unit / self.total for unit in self.units])
        return locked(out)


@record
class RationalRows(WholeRows):
    """A matrix of probabilities: row s gives observable o ``rows[s][o] / sum(rows[s])``."""

    rows: tuple[tuple[int, ...], ...]
    limbs: int = 1
    """Words that a draw takes at least: mechanisms that must not be told apart share them."""

    def __post_init__(self) -> None:
        for s, row in enumerate(self.rows):
            if len(row) != len(self.rows[0]) or min(row) < 0 or not any(row):
                raise ProblemError(
                    f"row {s} is not {len(self.rows[0])} numbers >= 0 with a positive sum",
                    where="mechanism",
                )

    def __repr__(self) -> str:
        return f"RationalRows({self.shape[0]} x {self.shape[1]})"

    def push(self, lam: Shares) -> Shares:
        """The exact distribution of the output when the secret is drawn from ``lam``."""
        drawn = [(row, unit) for row, unit in zip(self.rows, lam.units, strict=True) if unit]
        scale = math.lcm(*(sum(row) for row, _ in drawn))
        out = [0] * self.shape[1]
        for row, unit in drawn:
            factor = unit * (scale // sum(row))
            for o, value in enumerate(row):
                if value:
                    out[o] += factor * value
        return Shares.reduced(out)


def lowest_terms(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Rows of whole numbers without a common divisor."""
    return [list(Shares.reduced(row).units) for row in rows]


def composed(
    first: Numerators | RationalRows, second: Numerators | RationalRows
) -> Numerators | RationalRows:
    """Σ_o p(o|s) q(t|o), exactly: over a power of two where both are and 1074 bits suffice."""
    import flint

    sums = [sum(row) for row in second.rows]
    common = math.lcm(*sums)
    lifted = [
        [value * (common // total) for value in row]
        for row, total in zip(second.rows, sums, strict=True)
    ]
    product = flint.fmpz_mat([list(row) for row in first.rows]) * flint.fmpz_mat(lifted)
    rows = [Shares.reduced(list(map(int, row))).units for row in product.tolist()]
    bits = max(sum(row).bit_length() for row in rows) - 1
    powers = all(sum(row) & (sum(row) - 1) == 0 for row in rows)
    if not powers or bits > MAX_BITS:
        return RationalRows(tuple(rows))
    bits = max(bits, 1)
    shifts = [bits + 1 - sum(row).bit_length() for row in rows]
    return Numerators(
        bits, tuple(tuple(value << k for value in row) for row, k in zip(rows, shifts, strict=True))
    )


def _rational(value: object, where: str) -> Fraction:
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0:
        return Fraction(int(value))
    return parse_fraction(value, where=where)
