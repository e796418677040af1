"""Distributions as whole numbers of one total, so that flows are exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.exact.number import rounded_up
from optmech.exact.numerators import integers
from optmech.spaces.prior import Distribution, weights_of

UNITS = 2**60
LARGEST_TOTAL = 2**30
"""Counts of no larger sum are balanced exactly."""


@dataclass(frozen=True, eq=False)
class Masses:
    """Two distributions, their points of mass 0 left out, in units of 1/``total``.

    Whole numbers (counts) are balanced exactly, by multiplying each with the other's sum. Others
    are rounded to multiples of 2⁻⁶⁰, no positive mass to 0, and what floating point leaves open
    is ``slack``: (n + m) 2⁻⁵² of the total, within which distributions that are equal on paper
    but not in binary can differ (0.1 + 0.2 is not 0.3).
    """

    supply: Ints
    demand: Ints
    rows: Ints
    """Indices of the sources among the points of the first distribution."""
    columns: Ints
    shape: tuple[int, int]
    total: int
    slack: int
    rounding: int
    """Units by which rounding has moved mass altogether, at most."""

    @classmethod
    def balance(cls, a: Distribution, b: Distribution) -> Masses:
        """Read two weight vectors, shapes (n,) and (m,); raises ProblemError on unusable ones."""
        first, second = _weights(a, "a"), _weights(b, "b")
        rows, columns = np.flatnonzero(first), np.flatnonzero(second)
        shape = (len(first), len(second))
        first, second = first[rows], second[columns]
        if _countable(first) and _countable(second):
            one, two = int(first.sum()), int(second.sum())
            divisor = int(np.gcd(one, two))
            supply = first.astype(np.int64) * (two // divisor)
            demand = second.astype(np.int64) * (one // divisor)
            return cls(supply, demand, rows, columns, shape, one * two // divisor, 0, 0)
        supply, demand = (apportioned(integers(w[None, :])[0][0]) for w in (first, second))
        slack = sum(shape) * (UNITS >> 52)
        return cls(supply, demand, rows, columns, shape, UNITS, slack, sum(shape))

    def missing(self, dropped: int = 0) -> float:
        """The share of the mass that rounding and ``dropped`` units amount to, rounded up."""
        return rounded_up(Fraction(dropped + self.rounding, self.total))

    def spread(self, sources: Ints, sinks: Ints, flow: Ints) -> Floats:
        """Flows from ``sources`` to ``sinks``, numbered among the points with mass, as a plan of
        shape ``shape`` and of sum one."""
        plan = np.zeros(self.shape)
        plan[self.rows[sources], self.columns[sinks]] = flow / self.total
        return plan


def _weights(value: Distribution, where: str) -> Floats:
    weights = finite_array(weights_of(value), where=where)
    if weights.ndim != 1 or not weights.size:
        raise ProblemError("is not a list of weights", where=where, remedy="Give a 1-d array")
    if (weights < 0).any():
        k = int(np.flatnonzero(weights < 0)[0])
        raise ProblemError(f"weight {weights[k]:g} is negative", where=f"{where}[{k}]")
    if not weights.any():
        raise ProblemError("the weights sum to 0", where=where, remedy="Give a positive weight")
    return weights


def _countable(weights: Floats) -> bool:
    return bool((weights == np.rint(weights)).all() and weights.sum() <= LARGEST_TOTAL)


def apportioned(masses: list[int]) -> Ints:
    """Positive whole numbers of sum ``UNITS``, in proportion to the masses: each within one of
    its share, but for the largest, which takes what the others leave."""
    total = sum(masses)
    near = [max(1, (2 * mass * UNITS + total) // (2 * total)) for mass in masses]
    units = np.array(near, dtype=np.int64)
    units[masses.index(max(masses))] += UNITS - int(units.sum())
    return units
