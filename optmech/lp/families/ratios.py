"""Ratios of points: pairs of the cone. Those without a window make up one matrix of log ratios.
Ratios of pushed distributions, a local row for every pair, with a slack where δ allows some."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Indices, slices
from optmech.base.read_only import record
from optmech.certificate.families import (
    ApproximateMultipliers,
    LiftedRatio,
    PairMultipliers,
    Ratio,
)
from optmech.certificate.families.ratio import reported
from optmech.exact.rounding import UNIT
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import HeldColumns, PairCone, Point, entries
from optmech.lp.families.base import LARGEST_LOG, ColumnRows, Part, PushedPart, Reader, excess_ratio

MAX_LOG_RATIO = 40.0
"""Pairs with a larger log ratio are left to repair: they move p(o|s) by e^-40 of it, and their
coefficients would be outside what solvers take."""
JOINT = -1
"""Where the multipliers of all ratios without a window are read to, in the place of a family's."""
TINY = 1e-9
"""Log ratios of points up to this are taken for zero."""
_NORMAL = 1e-280
"""From here on quotients of probabilities neither overflow nor lose digits."""
_AT_A_TIME = 2**21
"""Pairs that are judged at a time: what is made for each takes memory."""
_CACHED = 2**15
"""Entries that stay in the cache between two passes."""
NO_ROOM = 1e-8
"""Log ratios of distributions below this leave nothing to spare: release makes them equal."""

_Limited = TypeVar("_Limited", "Ratios", "LiftedPart", "ApproximatePart")


def _with_ones(part: _Limited, tiny: Bools) -> _Limited:
    """The part with these of its ratios taken for one; itself where they are."""
    if not (tiny & (part.log_ratio > 0)).any():
        return part
    return replace(part, log_ratio=np.where(tiny, 0.0, part.log_ratio))


@record
class Ratios(Part):
    """P[i,o] <= exp(log_ratio[i,j]) P[j,o], of all families without a window together: the tightest
    log ratios, inf where there is no limit."""

    convex = False
    log_ratio: Floats
    number: int = JOINT
    window: Bools | None = None

    def write(self, lp: Assembly) -> Reader:
        i, j = pairs_where(self.log_ratio <= MAX_LOG_RATIO)
        active = None if self.window is None else self.window[i]
        if lp.held is not None:
            i, j, active = tightest_to_held(lp.held, (i, j), self.log_ratio, active)
        group = lp.pairs(PairCone(i, j, self.log_ratio[i, j], active))

        def read(point: Point) -> PairMultipliers:
            coo = point.cone.tocoo()
            pair, block = coo.coords
            own = (coo.data > 0) & (pair >= group.start) & (pair < group.stop)
            if not own.all():
                pair, block = pair[own], block[own]
            value = coo.data if own.all() else coo.data[own]
            first, second = (end[pair - group.start].astype(np.int64) for end in (i, j))
            return PairMultipliers(first, second, block, value)

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        """P[i,o] / (e^r P[j,o]) - 1, charged with the rounding of ε·d, exp, and up to three
        roundings: what is <= 0 holds, whatever ``guard`` is."""
        if not np.isfinite(self.log_ratio).any():
            return -1.0
        used = reported(matrix) if self.window is None else np.arange(matrix.shape[1])
        shown = matrix[:, used]
        plain = self.window is None and shown.min() >= _NORMAL
        most, inverse = 0.0, 1 / shown if plain else shown
        for own in slices(len(matrix), len(matrix), _AT_A_TIME):
            log_ratio = self.log_ratio[own]
            constrained = np.isfinite(log_ratio)
            bounded = np.where(constrained, log_ratio, 0)
            with np.errstate(over="ignore"):
                factor = np.exp(log_ratio) * (1 - UNIT * (10 + 4 * bounded))
            factor = np.maximum(factor, 1.0)
            if plain:
                found = _tightest(np.where(constrained, 1 / factor, 0.0), shown[own], inverse)
            else:
                window = None if self.window is None else self.window[own]
                found = _tightest_with_zeros(constrained, factor, shown[own], shown, window)
            most = max(most, found)
        return most - 1

    def tightened(self, margin: float) -> Ratios:
        """Itself: repair keeps ratios by a margin of its own."""
        return self

    def without_tiny(self, most: float = 0.0) -> Ratios:
        return _with_ones(self, self.log_ratio <= max(TINY, most))


@record
class Window(Ratios):
    """Ratios of one family, wherever window[i,o]."""

    window: Bools = field(kw_only=True)

    @classmethod
    def of(cls, number: int, family: Ratio) -> Window | None:
        """None without a window: ``Ratios`` has these."""
        if family.window is None:
            return None
        return cls(family.log_ratio, number, window=family.window)


def tightest_to_held(
    held: HeldColumns,
    pairs: tuple[Indices, Indices],
    log_ratio: Floats,
    active: Bools | None,
) -> tuple[Indices, Indices, Bools]:
    """The pairs with a variable, and the blocks where each counts: next to rows that are held, a
    variable has one tightest limit from above and one from below in every block."""
    i, j = pairs
    known = np.zeros(len(log_ratio), dtype=bool)
    known[held.secrets] = True
    row = np.zeros(len(log_ratio), dtype=np.int64)
    row[held.secrets] = np.arange(len(held.secrets))
    some = ~(known[i] & known[j])
    i, j = i[some], j[some]
    blocks = held.values.shape[1]
    out = np.ones((len(i), blocks), dtype=bool) if active is None else active[some]
    with np.errstate(divide="ignore"):
        logs = np.log(held.values)
    for inner, outer, sign in ((i, j, 1.0), (j, i, -1.0)):
        beside = known[outer] & ~known[inner]
        for s in np.unique(inner[beside]).tolist():
            own = np.flatnonzero(beside & (inner == s))
            # e^r v_j from above; e^-r v_j from below
            limit = sign * logs[row[outer[own]]] + log_ratio[i[own], j[own]][:, None]
            limit = np.where(out[own], limit, np.inf)
            best = np.zeros_like(out[own])
            best[limit.argmin(axis=0), np.arange(blocks)] = True
            out[own] &= best
    return i, j, out


def pairs_where(chosen: Bools) -> tuple[Indices, Indices]:
    """Ends of the pairs (S, S) that are chosen, row by row, as short numbers: of thousands of
    secrets they are most of a program."""
    count = chosen.sum(axis=1)
    i = np.repeat(np.arange(len(chosen), dtype=np.int32), count)
    j, end = np.empty(len(i), dtype=np.int32), np.cumsum(count)
    for own, first, last in zip(chosen, end - count, end, strict=True):
        j[first:last] = np.flatnonzero(own)
    return i, j


def _tightest(share: Floats, matrix: Floats, inverse: Floats) -> float:
    """The largest share_ij P[i,o] / Q[j,o] of rows P, where no quotient can overflow; ``inverse``
    is 1 / Q."""
    most: Floats = np.empty(share.shape)
    for own in slices(len(inverse), matrix.shape[1], _CACHED):
        part = inverse[own]
        product = np.empty_like(part)
        for i, row in enumerate(matrix):
            np.multiply(part, row, out=product)
            product.max(axis=1, out=most[i, own])
    most *= share
    return float(most.max())


def _tightest_with_zeros(
    constrained: Bools,
    factor: Floats,
    matrix: Floats,
    whole: Floats,
    window: Bools | None,
) -> float:
    """The same of rows of ``matrix`` over those of ``whole`` for any entries >= 0, where 0 <= 0
    holds."""
    worst = 0.0
    for i in range(len(matrix)):
        others = np.flatnonzero(constrained[i])
        columns = np.arange(matrix.shape[1]) if window is None else np.flatnonzero(window[i])
        if not len(others) or not len(columns):
            continue
        left = matrix[i, columns][None, :]
        right = whole[np.ix_(others, columns)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            allowed = np.where(right > 0, right * factor[i, others][:, None], 0.0)
            tightness = np.where(left > 0, left / allowed, 0.0)
        worst = max(worst, float(tightness.max()))
    return worst


@record
class LiftedPart(PushedPart):
    """left v <= exp(log_ratio) right v in every column."""

    limited_by = "log_ratio"
    number: int
    left: Floats
    right: Floats
    log_ratio: Floats
    window: Bools | None = None

    @classmethod
    def of(cls, number: int, family: LiftedRatio) -> LiftedPart:
        return cls(number, family.left, family.right, family.log_ratio, family.window)

    def write(self, lp: Assembly) -> Reader:
        ratio = np.exp(np.minimum(self.log_ratio, MAX_LOG_RATIO))
        body = self.left - ratio[:, None] * self.right
        if self.window is None:
            rows = lp.local(sp.coo_array(body))
            return lambda point: point.local[rows]
        pair, block = window = np.nonzero(self.window)
        row, s = np.nonzero(body[pair])
        shape = (len(pair), lp.secrets * lp.blocks)
        at = (row, s * lp.blocks + block[row])
        limit = lp.link(np.zeros(len(pair)), sp.coo_array((body[pair][row, s], at), shape=shape))

        def read(point: Point) -> Floats:
            out = np.zeros((len(body), lp.blocks))
            out[window] = point.links[limit]
            return out

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        left = self.left @ matrix
        if self.window is not None:
            left = np.where(self.window, left, 0.0)
        over = excess_ratio(left, self.right @ matrix, self.log_ratio)
        spare = np.where(self.log_ratio < NO_ROOM, -abs(guard), guard)
        return float((over.max(axis=1, initial=-1.0) + spare).max(initial=-1.0))

    def without_tiny(self, most: float = 0.0) -> LiftedPart:
        return _with_ones(self, self.log_ratio < max(NO_ROOM, most))

    def column_rows(self) -> ColumnRows | None:
        if self.window is not None:
            return None
        return ColumnRows(self.left, self.right, self.log_ratio)

    @property
    def nearly_equal(self) -> Bools:
        # within a window nothing is equal in all columns
        return (self.log_ratio < NO_ROOM) & (self.window is None)


@record
class ApproximatePart(PushedPart):
    """Σ_o max(0, left P - exp(log_ratio) right P) <= delta."""

    limited_by = "delta"
    number: int
    left: sp.csr_array
    right: sp.csr_array
    log_ratio: Floats
    delta: float

    def write(self, lp: Assembly) -> Reader:
        """a·v - e^r b·v <= w with a slack w >= 0 per inequality; Σ_o w_o <= δ."""
        count = len(self.log_ratio)
        columns = lp.auxiliary(count)
        ratio = np.exp(np.minimum(self.log_ratio, MAX_LOG_RATIO))
        row, s = (body := (self.left - sp.diags_array(ratio) @ self.right).tocoo()).coords
        shape = (count, int(columns[-1]) + 1)
        slack = (-np.ones(count), np.arange(count), columns)
        rows = lp.local(entries(shape, (body.data, row, s), slack))
        total = lp.over_blocks(np.ones(count), columns)
        limit = lp.link(np.full(count, self.delta), total)

        def read(point: Point) -> ApproximateMultipliers:
            weight = point.links[limit]
            safe = np.where(weight > 0, weight, 1.0)
            tests = np.clip(point.local[rows] / safe[:, None], 0.0, 1.0)
            return ApproximateMultipliers(weight, tests)

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        left, right = self.left @ matrix, self.right @ matrix
        ratio = np.exp(np.minimum(self.log_ratio, LARGEST_LOG))[:, None]
        most = float(np.maximum(left - ratio * right, 0.0).sum(axis=1).max(initial=0.0))
        # a constant mechanism spends nothing, and must pass whatever δ is
        return most - self.delta + (guard if most > 0 else 0.0)

    def without_tiny(self, most: float = 0.0) -> ApproximatePart:
        return _with_ones(self, self.log_ratio < most)
