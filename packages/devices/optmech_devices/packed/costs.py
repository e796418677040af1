"""What a draw of a packed mechanism is charged: plainly, by its row, and at a Rényi order; and what
the numbers of a file keep between positions, whatever its header says: decided from the file alone
(docs/theory/budgets.md, "What many reports cost").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, slices
from optmech.errors import ProblemError, VerificationError
from optmech.exact.number import Number, parse_exact
from optmech.exact.numerators import steepest
from optmech.spaces.mesh.elements import rises
from optmech_devices.packed.charges import (
    UNIT,
    above,
    decimal,
    divergence,
    log_charge,
    short,
    units,
    within,
)
from optmech_devices.packed.earth import Earth
from optmech_devices.packed.mechanism import PackedMechanism, PackedPlaces
from optmech_devices.packed.meshes import Areas, Weights
from optmech_devices.packed.reach import Reach
from optmech_devices.packed.regions import PackedRegion

_UNSURE = 2.0**-48
"""More than floats are off, beside the square of a triangle's longest edge over twice its area."""
_ON_THE_GLOBE = 1 + 2.0**-40
"""More than what a degree counts for differs between readers."""
_AT_ONCE = 2**20


def kept_rate(weights: Weights, rows: NDArray[np.uint64], row_of: Ints) -> float:
    """The least ε per unit of distance, rounded up, for which ``rows`` (whole numbers, ``row_of``
    every control point) meet the condition of Theorem 6, or along segments the one that is
    necessary: then log ratios of reports are at most ε times the distance, at all points. Infinite
    where there is none."""
    mesh, most = weights.mesh, 0.0
    for part in slices(len(mesh.control), mesh.control.shape[1] * rows.shape[1], _AT_ONCE):
        values = rows[row_of[mesh.control[part]]].astype(np.float64)
        if isinstance(weights, Areas):
            found = _gradients(weights, part, values)
        else:
            found = _slopes(mesh.widths[part], values) * (1 + _UNSURE)
        most = max(most, float(found.max(initial=0.0)))
    return most


def _slopes(widths: Floats, values: Floats) -> Floats:
    """|P[a,o] - P[b,o]| over the least of both and the length, (E, O); ``values`` (E, 2, O)."""
    least = values.min(axis=1)
    return _quotients(values.max(axis=1) - least, least * widths[:, None])


def _gradients(areas: Areas, part: slice, values: Floats) -> Floats:
    """‖G_o[α]‖ over P[α,o], (t, n, O), with all that floats may be off."""
    mesh = areas.mesh
    a, b, c = areas.corners[part].transpose(1, 0, 2)
    first, second = (b - a) * mesh.units[part], (c - a) * mesh.units[part]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    along = rises(mesh.degree).astype(np.float64) @ values[:, None]
    one, two = along.transpose(1, 0, 2, 3)
    x, y = (
        (one * second[:, k, None, None] - two * first[:, k, None, None]) / area[:, None, None]
        for k in (0, 1)
    )
    third = second - first
    longest = np.max([(edge * edge).sum(axis=1) for edge in (first, second, third)], axis=0)
    more = 1 + _UNSURE * (longest / area)
    if mesh.coordinates == "lonlat":
        more = more * _ON_THE_GLOBE
    return np.asarray(_quotients(np.sqrt(x * x + y * y), values) * more[:, None, None])


def _quotients(over: Floats, under: Floats) -> Floats:
    """Quotients of numbers from 0; 0 over 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(over == 0, 0.0, over / under))


_ROUNDED = 1e-12
_NEARLY = 10**8
_AT_ONCE = 2**28
"""Quotients that are looked at before the first draw, at most; where there may be more, those of
the places that are drawn for."""
_BETWEEN_FLOATS = 2.0**-50
_MORE_SNAP = 1 + Fraction(1, 2**40)
"""What floats of the readers that prove a law of the earth may be off."""
_REMEDY = "Check the file against its design; where its distances are other ones, charge as much"


class Costs:
    """Charges of draws, in parts of 10^18.

    ``plain`` is that of any draw. A mechanism for every point, or for the whole earth, has no rows
    of places: its draws are all charged alike, as those of its only place.
    """

    def __init__(
        self, mechanism: PackedMechanism | Earth, rate: float, radius: float, between: str
    ) -> None:
        self._mechanism, self._radius = mechanism, radius
        self._reach = None
        if isinstance(mechanism, PackedPlaces):
            self._reach, self._own = Reach(mechanism, radius, between), mechanism._parts
            self._reach.require_neighbours()
        # looked for once
        self.rows: Callable[[int], int] = cache(self._of_row)
        self.divergence: Callable[[int, float], int] = cache(self._divergence_of_row)
        self.plain = self._of_any_draw(rate)

    @property
    def places(self) -> int:
        """How many places there are."""
        return 1 if self._reach is None else self._mechanism.numbers

    def number(self, secret: Any) -> int:
        """The number of the place of a secret."""
        return 0 if self._reach is None else self._mechanism.secrets.index(secret)

    def _of_row(self, place: int) -> int:
        """What the log ratio of the row of a place to one near it is at most. Raises
        VerificationError where that is more than a draw is charged."""
        if self._reach is None:
            return self.plain
        found = _charge(*self._beside(place, self._reach))
        if found > self.plain:
            raise _differ(f"places within {self._reach.words}", found, self.plain)
        return int(found)

    def _divergence_of_row(self, place: int, order: float) -> int:
        """What the Rényi divergences of an order of the row of a place and one near it are at most,
        in both directions."""
        if self._reach is None:
            return within(self.plain, order)
        own, others = self._beside(place, self._reach)
        used = own > 0
        row, found = own[used].tolist(), 0
        for other in others[:, used].tolist():
            found = max(found, divergence(row, other, order), divergence(other, row, order))
        return min(found, self.rows(place))

    def _of_any_draw(self, rate: float) -> int:
        """What a draw costs at most, wherever; all rows are looked at, where there are few."""
        own, reach = self._mechanism, self._reach
        if reach is None:
            return self._of_any_point(rate)
        stated = units(decimal(rate) * (decimal(reach.longest()) if _is_per_distance(own) else 1))
        if self.places**2 * len(self._own.table.columns) > _AT_ONCE:
            return short(stated + 1)
        # the distances of a design are floats: what is above by their rounding is charged
        self.plain = stated + stated // _NEARLY
        return max([stated, *map(self.rows, range(self.places))])

    def _of_any_point(self, rate: float) -> int:
        """What a draw costs at any point: the rows of the file have to keep the rate, whatever its
        header says."""
        own, far = self._mechanism, decimal(self._radius)
        if isinstance(own, Earth):
            # proved when it was read
            return above(decimal(rate) * (far + 2 * decimal(own.header.snap or 0.0)) * _MORE_SNAP)
        assert isinstance(own, PackedRegion)
        table, row_of = own._parts.table, own._parts.row_of
        if not _is_per_distance(own):
            stated = above(decimal(rate))
            found = _charge(table.rows.max(axis=0), table.rows.min(axis=0)[None])
            if found > stated + stated // _NEARLY:
                raise _differ("any two points", found, stated)
            return max(stated, int(found))
        kept = kept_rate(own._positions, table.rows, row_of)
        if kept > rate * (1 + 1 / _NEARLY):
            raise VerificationError(
                f"the rows of the file keep {kept:.9g} per unit of distance, and {rate:.9g} is "
                "charged for them",
                where="epsilon",
                remedy=_REMEDY,
            )
        snap = max(own.header.snap or 0.0, own._positions.snap)
        return above(decimal(max(rate, kept)) * (far + 2 * decimal(snap)))

    def _beside(self, place: int, reach: Reach) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The row of a place, and the distinct ones of those near it."""
        rows, row_of = self._own.table.rows, self._own.row_of
        return rows[row_of[place]], rows[np.unique(row_of[reach.near(place)])]


def charged(mechanism: PackedMechanism | Earth, epsilon: Number | None) -> float:
    """The rate that draws are charged with: what is given, and at least what the file states."""
    stated = mechanism.header.rate
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


def _is_per_distance(mechanism: PackedMechanism | Earth) -> bool:
    """Whether an ε of the file, or one that is given for it, is per unit of distance."""
    stated = [part for part in mechanism.header.promises if part.epsilon is not None]
    return not stated or any(part.is_per_distance for part in stated)


def _charge(own: NDArray[np.uint64], others: NDArray[np.uint64]) -> float | int:
    """What the log ratios of a row and others are at most, as a charge; infinite where only one of
    two entries is 0."""
    over, under = _largest_ratio(own, others)
    return log_charge(over, under) if under else math.inf


def _differ(what: str, found: float, charged: int) -> VerificationError:
    return VerificationError(
        f"rows of {what} differ by {found / UNIT:.6g} in their log probabilities, and "
        f"{charged / UNIT:.6g} is charged for them",
        where="epsilon",
        remedy=_REMEDY,
    )


def _largest_ratio(own: NDArray[np.uint64], others: NDArray[np.uint64]) -> tuple[int, int]:
    """The largest ratio of two entries of one column, of a row and one of the others, either
    way; (1, 0) where only one of them is 0."""
    if ((own > 0) != (others > 0)).any():
        return 1, 0
    used = own > 0
    entries, beside = np.broadcast_to(own[used], others[:, used].shape), others[:, used]
    pairs = np.concatenate([_most(entries, beside), _most(beside, entries)])
    return steepest(np.unique(pairs, axis=0).tolist())


def _most(over: NDArray[np.uint64], under: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The pairs whose quotients may be the largest, as floats have them."""
    quotients = over.astype(float) / under.astype(float)
    most = quotients >= max(1.0, quotients.max(initial=0.0)) * (1 - _BETWEEN_FLOATS)
    most &= over > under
    return np.column_stack([over[most], under[most]])
