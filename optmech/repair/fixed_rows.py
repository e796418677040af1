"""Mechanisms with rows that are held, near an approximate matrix, in whole numbers.

One free row after the other goes to where the ratios to the rows that are held, and to those before
it, leave room: between the largest lower and the least upper limit of every entry, in whole
numbers, with the right sum. What else is stated is met by mixing with a matrix far inside. Held
rows are copied digit by digit. Nothing is promised: the certificate decides the result. Proof:
docs/theory/families.md, "Rows held fixed".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import product, starmap

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.certificate.families import Ratio
from optmech.certificate.statement import Held
from optmech.errors import ProblemError
from optmech.exact.exponentials import exp_lower
from optmech.exact.numerators import MAX_BITS, Numerators, Wholes, enough_bits, wholes
from optmech.lp.inequalities import Inequalities
from optmech.repair.cone import Cone
from optmech.repair.release import Released, floored

_NEAR = 1e-12
"""Limits that floats do not tell apart are compared as fractions."""
_TINY = 1e-290
_SNAP = 1e-9
_FEW = 16
"""Free rows up to which several orders are tried."""
_FACTOR_BITS = 256
_SHARES = range(44, 0, -6)
"""2^-k of a matrix far inside are mixed in, until it passes."""
_SPARE = 16
"""Bits beyond those of the rows that are held."""


@record
class HeldRows:
    """Releases matrices whose rows ``held`` are given."""

    given: Inequalities
    held: Held
    bits: int | None = None
    """Of the result; None for as many as the least entries need."""

    @classmethod
    def of(cls, given: Inequalities, bits: int | None = None) -> HeldRows | None:
        """None where no rows are held."""
        held = given.statement.held
        return None if held is None else cls(given, held, bits)

    def near(self, matrix: Floats, anchors: Iterable[Floats] = ()) -> Released | None:
        """A mechanism that passes the exact check near ``matrix`` (S, O), or near a mixture of it
        and one of the ``anchors``; None where there was no such."""
        if not np.isfinite(matrix).all():
            return None
        found = starmap(self._released, self._variants(matrix, list(anchors)))
        return next(filter(None, found), None)

    def _variants(self, matrix: Floats, anchors: list[Floats]) -> Iterator[tuple[Floats, Ints]]:
        """The matrix, then with entries made equal to held ones; few free rows in several orders,
        as the first ones take room from the last. Then mixtures."""
        free = self._free
        turns = range(min(4, len(free))) if len(free) <= _FEW else range(1)
        orders = [*(np.roll(free, k * len(free) // 4) for k in turns), free[::-1]]
        for near in (matrix, self._snapped(matrix), self._levelled(matrix)):
            yield from ((near, order) for order in (orders if len(free) > 1 else orders[:1]))
        for shift, other in product(_SHARES, anchors):
            yield matrix + 2.0**-shift * (other - matrix), free

    def _released(self, matrix: Floats, order: Ints) -> Released | None:
        try:
            candidate = self.placed(matrix, order)
        except ProblemError:
            return None
        return None if candidate is None else Released.of(self.given.statement, candidate)

    @cached_property
    def _cone(self) -> Cone:
        return Cone.of(self.given)

    def _levelled(self, matrix: Floats) -> Floats:
        """The free rows in the cone of all ratios, with sums of at most one: every row then has its
        place among the others, and finds only a little to add."""
        secrets = len(matrix)
        known = np.zeros_like(matrix)
        known[self.held.secrets] = self.held.matrix
        low = self._cone.closure(known)
        out, free = np.array(known), self.held.free(secrets)
        with np.errstate(all="ignore"):
            for s in free.tolist():
                room = np.exp(self._cone.always[s, self.held.secrets])[:, None] * self.held.matrix
                high = np.where(np.isnan(room), np.inf, room).min(axis=0)
                out[s] = np.clip(matrix[s], low[s], np.maximum(high, low[s]))
        out = self._cone.closure(out)
        sums, least = out[free].sum(axis=1), low[free].sum(axis=1)
        over = sums > 1
        if over.any() and (least[over] < 1).all():
            share = ((sums - 1)[over] / (sums - least)[over]).max()
            out = (1 - share) * out + share * low
        out[self.held.secrets] = self.held.matrix
        return out

    def _snapped(self, matrix: Floats) -> Floats:
        """With entries that are next to one of a held row made equal to it: where no limit leaves
        them any room, that is where they have to be."""
        out = np.array(matrix)
        for s in self._free.tolist():
            apart = abs(self.held.matrix - out[s])
            nearest = self.held.matrix[apart.argmin(axis=0), np.arange(out.shape[1])]
            out[s] = np.where(apart.min(axis=0) <= _SNAP, nearest, out[s])
        return out

    @cached_property
    def _free(self) -> Ints:
        """Free secrets, those that are nearest to a row that is held first."""
        free = self.held.free(self.given.statement.secrets)
        near = self.given.log_ratio[np.ix_(free, self.held.secrets)].min(axis=1, initial=np.inf)
        return free[np.argsort(near, kind="stable")]

    def placed(self, matrix: Floats, order: Ints) -> Numerators | None:
        """Whole numbers near a matrix within all ratios, the free rows placed in this order; None
        where one of them has no room."""
        near = np.where(self.given.allowed, np.maximum(matrix, 0.0), 0.0)
        bits = self.bits
        if bits is None:
            # enough for the least entries of free rows, as far as floats show them
            some = [part[part > _TINY] for part in (near, self.held.matrix)]
            entries = np.concatenate(some)
            needed = enough_bits(entries[None, :]) if len(entries) else 0
            bits = min(MAX_BITS, max(self.held.exact.bits + _SPARE, needed))
        shift = bits - self.held.exact.bits
        if shift < 0:
            return None
        shown = np.zeros(near.shape)
        shown[self.held.secrets] = self.held.matrix
        rows = wholes(np.zeros(near.shape, dtype=np.int64))
        rows[self.held.secrets] = wholes(self.held.exact.rows) << shift
        for s in order.tolist():
            low, high = self._room(s, rows, shown, bits)
            row = _between(near[s], low, high, bits)
            if row is None:
                return None
            rows[s], shown[s] = row, row / (1 << bits)
        return Numerators.of(bits, rows)

    def _room(self, s: int, rows: Wholes, shown: Floats, bits: int) -> tuple[Wholes, Wholes]:
        """The least and the largest whole numbers that the ratios to those ``rows`` that have some
        leave row s."""
        high = wholes(self.given.allowed[s].astype(np.int64)) << bits
        low = 0 * high
        others = np.flatnonzero(shown.any(axis=1))
        for ratio in self.given.statement.of_kind(Ratio):
            for above, table in ((True, ratio.table), (False, ratio.table.T)):
                distance = table[s, others]
                beside = others[np.isfinite(distance)]
                logs = distance[np.isfinite(distance)] * float(ratio.epsilon)
                for o, j in self._tightest(ratio, s, beside, logs, shown, above):
                    factor = exp_lower(ratio.epsilon, float(table[s, j]), _FACTOR_BITS)
                    if above:
                        most = rows[j, o] * factor.numerator // factor.denominator
                        high[o] = min(high[o], most)
                    else:
                        least = -(-rows[j, o] * factor.denominator // factor.numerator)
                        low[o] = max(low[o], least)
        return low, high

    def _tightest(
        self, ratio: Ratio, s: int, beside: Ints, logs: Floats, shown: Floats, above: bool
    ) -> list[tuple[int, int]]:
        """Observables and the secrets ``beside`` whose limits may be the tightest there."""
        if not len(beside):
            return []
        with np.errstate(all="ignore"):
            limit = (1 if above else -1) * np.log(shown[beside]) + logs[:, None]
        inside = np.ones(limit.shape, dtype=bool)
        if ratio.window is not None:
            inside &= ratio.window[s] if above else ratio.window[beside]
        limit = np.where(inside, limit, np.inf)
        best = limit.min(axis=0)
        with np.errstate(invalid="ignore"):
            tight = limit <= best + _NEAR * (1 + abs(best))
        tight |= limit == best
        # logarithms of the least floats have lost digits
        tight |= (shown[beside] > 0) & (shown[beside] < _TINY)
        k, o = np.nonzero(tight & inside)
        return list(zip(o.tolist(), beside[k].tolist(), strict=True))


def _between(near: Floats, low: Wholes, high: Wholes, bits: int) -> Wholes | None:
    """Whole numbers of sum 2^bits between ``low`` and ``high``, nearest to a row of floats: what is
    missing or too much is shared out by the room that is left. None where there are none."""
    total = 1 << bits
    if low.sum() > total or high.sum() < total or (low > high).any():
        return None
    row = np.minimum(np.maximum(floored(near, bits), low), high)
    missing = total - row.sum()
    room = (high if missing > 0 else low) - row
    if missing and room.any():
        row += room * missing // room.sum()
    rest = total - row.sum()
    # roundings downwards: a unit each, where there is room
    for o in np.argsort(-abs(room), kind="stable").tolist():
        step = max(min(rest, high[o] - row[o]), low[o] - row[o])
        row[o] += step
        rest -= step
    return None if rest else row
