"""What a draw of a packed mechanism is charged: plainly, by its row, and at a Rényi order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.errors import ProblemError, VerificationError
from optmech.exact.number import Number, parse_exact
from optmech.packed.charges import (
    UNIT,
    above,
    decimal,
    divergence,
    log_charge,
    short,
    units,
    within,
)
from optmech.packed.everywhere import PackedEverywhere
from optmech.packed.load import PackedMechanism
from optmech.packed.reach import Reach

Packed = PackedMechanism | PackedEverywhere
_ROUNDED = 1e-12
_NEARLY = 10**8
_AT_ONCE = 2**28
"""Quotients that are looked at before the first draw, at most; where there may be more, those of
the places that are drawn for."""
_BETWEEN_FLOATS = 2.0**-50


class Costs:
    """Charges of draws, in parts of 10^18.

    ``plain`` is that of any draw. A mechanism for every point has no rows of places: its draws are
    all charged alike, as those of its only place.
    """

    def __init__(self, mechanism: Packed, rate: float, radius: float, between: str) -> None:
        self._mechanism, self._radius = mechanism, radius
        self._reach = None
        if isinstance(mechanism, PackedMechanism):
            self._reach = Reach(mechanism, radius, between)
            self._reach.require_neighbours()
        self._rows: dict[int, int] = {}
        self._divergences: dict[tuple[int, float], int] = {}
        self.plain = self._of_any_draw(rate)

    @property
    def places(self) -> int:
        """How many places there are."""
        own = self._mechanism
        return len(own.secrets) if isinstance(own, PackedMechanism) else 1

    def number(self, secret: Any) -> int:
        """The number of the place of a secret."""
        own = self._mechanism
        return own.secrets.index(secret) if isinstance(own, PackedMechanism) else 0

    def rows(self, place: int) -> int:
        """What the log ratio of the row of a place to one near it is at most; looked for once.
        Raises VerificationError where that is more than a draw is charged."""
        if self._reach is None:
            return self.plain
        if place not in self._rows:
            over, under = _largest_ratio(*self._beside(place))
            found = log_charge(over, under) if under else math.inf
            if found > self.plain:
                raise VerificationError(
                    f"rows of places within {self._radius:g} differ by {found / UNIT:.6g} in their "
                    f"log probabilities, and {self.plain / UNIT:.6g} is charged for them",
                    where="epsilon",
                    remedy="Check the file against its design; where its distances are other "
                    "ones, charge as much",
                )
            self._rows[place] = int(found)
        return self._rows[place]

    def divergence(self, place: int, order: float) -> int:
        """The same of the Rényi divergences of an order, in both directions."""
        if self._reach is None:
            return within(self.plain, order)
        if (place, order) not in self._divergences:
            own, others = self._beside(place)
            used = own > 0
            row, found = own[used].tolist(), 0
            for other in others[:, used].tolist():
                both = divergence(row, other, order), divergence(other, row, order)
                found = max(found, *both)
            self._divergences[place, order] = min(found, self.rows(place))
        return self._divergences[place, order]

    def _of_any_draw(self, rate: float) -> int:
        """What a draw costs at most, wherever; all rows are looked at, where there are few."""
        own, each = self._mechanism, decimal(rate)
        if self._reach is None:
            assert isinstance(own, PackedEverywhere)
            apart = decimal(self._radius) + 2 * decimal(own.header.snap or 0.0)
            return above(each * (apart if _is_per_distance(own) else 1))
        stated = units(each * (decimal(self._reach.longest()) if _is_per_distance(own) else 1))
        if self.places**2 * len(own._parts.table.columns) > _AT_ONCE:
            return short(stated + 1)
        # the distances of a design are floats: what is above by their rounding is charged
        self.plain = stated + stated // _NEARLY
        return max([stated, *map(self.rows, range(self.places))])

    def _beside(self, place: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The row of a place, and the distinct ones of those near it."""
        assert isinstance(self._mechanism, PackedMechanism)
        assert self._reach is not None
        parts = self._mechanism._parts
        rows, row_of = parts.table.rows, parts.row_of
        return rows[row_of[place]], rows[np.unique(row_of[self._reach.near(place)])]


def charged(mechanism: Packed, epsilon: Number | None) -> float:
    """The rate that draws are charged with: what is given, and at least what the file states."""
    rates = [part["epsilon"] for part in mechanism.header.constraints]
    stated = max((rate for rate in rates if rate is not None), default=None)
    if epsilon is None:
        if not stated:
            raise ProblemError(
                "the packed file states no ε above 0",
                where="epsilon",
                remedy="Give the rate that its rows keep",
            )
        return float(stated)
    given = float(parse_exact(epsilon, where="epsilon", positive=True))
    if stated is None:
        return given
    # the file's is rounded up, and what is given may be irrational
    if given < stated * (1 - _ROUNDED):
        raise ProblemError(
            f"{given:g} is below the ε of {stated:g} that the packed file states",
            where="epsilon",
            remedy="Give None to charge the file's own, or more than that",
        )
    return max(given, float(stated))


def _is_per_distance(mechanism: Packed) -> bool:
    """Whether an ε of the file, or one that is given for it, is per unit of distance."""
    stated = [part for part in mechanism.header.constraints if part["epsilon"] is not None]
    return not stated or any(part["per"] for part in stated)


def _largest_ratio(own: NDArray[np.uint64], others: NDArray[np.uint64]) -> tuple[int, int]:
    """The largest ratio of two entries of one column, of a row and one of the others, either
    way; (1, 0) where only one of them is 0."""
    if ((own > 0) != (others > 0)).any():
        return 1, 0
    used = own > 0
    entries, beside = np.broadcast_to(own[used], others[:, used].shape), others[:, used]
    pairs = np.concatenate([[(1, 1)], *_most(entries, beside), *_most(beside, entries)])
    best = max(Fraction(int(a), int(b)) for a, b in np.unique(pairs, axis=0))
    return best.numerator, best.denominator


def _most(over: NDArray[np.uint64], under: NDArray[np.uint64]) -> list[NDArray[np.uint64]]:
    """The pairs whose quotients may be the largest, as floats have them."""
    quotients = over.astype(float) / under.astype(float)
    most = quotients >= max(1.0, quotients.max(initial=0.0)) * (1 - _BETWEEN_FLOATS)
    most &= over > under
    return [np.column_stack([over[most], under[most]])]
