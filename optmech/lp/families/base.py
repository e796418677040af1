"""What search and repair ask of the inequalities of a family.

A part holds a family's inequalities in floats, may be tightened, and is never believed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from optmech.base.arrays import Bools, Floats
from optmech.base.read_only import record
from optmech.exact.number import Exact
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point

ROUNDING = 2e-15
"""What repair leaves to the rounding of sums: the ``guard`` of its violations."""
LARGEST_LOG = 700.0
"""Log ratios are cut to this before they are raised to powers of e."""

Reader = Callable[[Point], Any]
"""From a point to the multipliers of a family."""


class Part(Protocol):
    """Inequalities of one family, or of some that share their rows."""

    convex: ClassVar[bool] = True
    """Whether it limits a convex function, kept by mixing; else it is kept by the cone."""
    limited_by: ClassVar[str] = "maximum"
    """The field with its limits."""
    may_be_slack: ClassVar[bool] = False
    """Whether large programs are worth a try without it first."""
    number: int
    """The place of the family in its statement."""

    @classmethod
    def of(cls, number: int, family: Any) -> Self | None:
        """The part of a family at this place of its statement, whose first field that is and whose
        others are the family's, rounded; None where others have its rows."""
        given = (getattr(family, field.name) for field in fields(cls)[1:])  # type: ignore[arg-type]
        rounded = (float(value) if isinstance(value, Exact) else value for value in given)
        return cls(number, *rounded)  # type: ignore[call-arg]

    @abstractmethod
    def write(self, lp: Assembly) -> Reader:
        """Add rows to a program, and say how to read the multipliers of its points."""

    @abstractmethod
    def violation(self, matrix: Floats, guard: float) -> float:
        """How far a matrix (S, O) is beyond the limits, relative to their size; <= 0 is feasible.

        Limits of privacy must hold with ``guard`` to spare (where it is negative, they may miss by
        it); totals of losses and distortions may miss by its size.
        """

    def tightened(self, margin: float) -> Self:
        """With limits that are stricter by a relative margin."""
        limit = getattr(self, self.limited_by) * (1 - margin)
        return replace(self, **{self.limited_by: limit})  # type: ignore[type-var]

    def weights(self) -> Floats | float:
        """(S,): positive where the row of a secret moves a sum with others' rows; zero where rows
        count one by one, or by what the prior makes of them."""
        return 0.0

    def without_tiny(self, most: float = 0.0) -> Self:
        """With ratios that leave no more than rounding, or than ``most``, taken for one; itself if
        there are none."""
        return self

    def column_rows(self) -> ColumnRows | None:
        """Rows that every column satisfies by itself, where it has such."""
        return None

    def equal_pushes(self) -> Sequence[tuple[Floats, Floats]]:
        """Arrays λ and λ' (m, S) whose pushes λP and λ'P may hardly differ."""
        return ()


class PushedPart(Part):
    """The part of a family over two pushed distributions, λ in the rows of ``left`` and λ' in
    those of ``right``."""

    left: Any
    right: Any

    @property
    def nearly_equal(self) -> Bools:
        """Which pairs (m,) may hardly differ."""
        return np.zeros(self.left.shape[0], dtype=bool)

    def weights(self) -> Floats:
        return np.asarray(self.left.sum(axis=0) + self.right.sum(axis=0))

    def equal_pushes(self) -> Sequence[tuple[Floats, Floats]]:
        tight = self.nearly_equal
        return [(self.left[tight], self.right[tight])] if tight.any() else ()


@record
class ColumnRows:
    """left v <= exp(log_ratio) right v for every column v: (m, S), (m, S) and (m,)."""

    left: Floats
    right: Floats
    log_ratio: Floats


def excess_ratio(left: Floats, right: Floats, log_ratio: Floats) -> Floats:
    """1 - e^r right / left, (m, O): what the left side is beyond its limit, as a share of itself;
    -1 where it is zero."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        limit = np.where(right > 0, right * np.exp(log_ratio)[:, None], 0.0)
        return np.where(left > 0, 1 - limit / left, -1.0)
