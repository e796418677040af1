"""Leave out what another one is never worse than: estimates of the adversary, and observables.
Numbers are compared exactly."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.lp.blocks import BlockLP, LinkRows, LocalRows, Point, Start
from optmech.reductions.base import Reduced


def dominators(features: Floats) -> Ints:
    """For every row of ``features`` (count, d) one that is nowhere larger and is not dominated
    itself: itself where no other is, else that with the largest sum, and of equal rows the first.

    Rows are compared as they are, without a tolerance.
    """
    count = len(features)
    varying = features[:, (features != features[:1]).any(axis=0)]
    if not varying.shape[1]:
        return np.zeros(count, dtype=np.int64)
    low, high = varying.min(axis=0), varying.max(axis=0)
    # where a row comes closest to the least of all, few others are as small
    telling = ((varying - low) / (high - low)).argmin(axis=1)
    below: list[Ints] = []
    for k, column in enumerate(telling.tolist()):
        few = np.flatnonzero(varying[:, column] <= varying[k, column])
        few = few[(varying[few] <= varying[k]).all(axis=1)]
        same = (varying[few] == varying[k]).all(axis=1)
        below.append(few[~same | (few < k)])
    kept = np.array([not len(few) for few in below])
    total = varying.sum(axis=1)
    chosen = np.arange(count)
    for k in np.flatnonzero(~kept).tolist():
        few = below[k][kept[below[k]]]
        chosen[k] = few[total[few].argmax()]
    return chosen


@dataclass(frozen=True)
class DominatedEstimates:
    """Drop the adversary's estimates that another one is never worse than.

    Source: a row x <= Σ_s w[t,s] v_s for every estimate t, in every block (Shokri, PETS 2015, eq.
    21b). Target: the rows of estimates t for which no other t' has w[t',s] <= w[t,s] for all s.
    Equivalent, because v >= 0 makes the row of t' the stronger one. With w[t,s] = π(s) d(t,s) these
    are places farther from every place that the prior visits than another one is. Duals: dropped
    rows get multiplier zero."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        kept = tuple(_kept(rows, lp.secrets) for rows in lp.local)
        if all(own.all() for own in kept):
            return (Reduced(lp),)
        local = tuple(
            replace(rows, matrix=rows.matrix[own]) for rows, own in zip(lp.local, kept, strict=True)
        )

        def recover(point: Point) -> Point:
            return replace(point, local=tuple(map(_spread, point.local, kept)))

        return (Reduced(replace(lp, local=local), recover),)


def _kept(rows: LocalRows, secrets: int) -> Bools:
    count, coo = rows.matrix.shape[0], rows.matrix.tocoo()
    row, column = coo.coords
    own = column >= secrets
    x = column[own]
    # whether all rows limit the same auxiliary variable x by what is nowhere negative
    if (
        rows.equal
        or (np.bincount(row[own], minlength=count) != 1).any()
        or (x != x[:1]).any()
        or (coo.data[own] != 1).any()
        or (coo.data[~own] > 0).any()
    ):
        return np.ones(count, dtype=bool)
    # the row says x - w v <= 0: the smaller w, the stronger
    kept: Bools = dominators(-rows.matrix.toarray()) == np.arange(count)
    return kept


def _spread(multipliers: Floats, kept: Bools) -> Floats:
    whole = np.zeros((len(kept), multipliers.shape[1]))
    whole[kept] = multipliers
    return whole


@dataclass(frozen=True)
class DominatedObservables:
    """Leave out observables that another one can stand in for.

    Source: a block for every observable. Target: the blocks that are not dominated. Block b
    dominates block o where it costs no more in any variable, counts no more in any shared <= row
    and the same in any shared equation, allows what o allows, and is held to no pair that o is not
    held to. Equivalent: reporting b wherever a mechanism reports o is post-processing. What every
    block obeys is homogeneous and convex, so the sum of the two columns obeys it with the sum of
    the auxiliary variables, and neither the cost nor a shared row grows. Duals: o gets the
    multipliers of b, which leave its reduced costs nowhere below those of b. Proof:
    docs/theory/reductions.md, "Observables that others can stand in for".

    Rows that are held fixed report what they report: then all blocks stay. With Hamming loss,
    places that the prior never visits go; with Euclidean loss those that are farther than another
    one from every place it visits.
    """

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        if lp.held is not None:
            return (Reduced(lp),)
        chosen = dominators(_features(lp))
        kept = np.flatnonzero(chosen == np.arange(lp.blocks))
        if len(kept) == lp.blocks:
            return (Reduced(lp),)
        copies = _Copies(kept, np.searchsorted(kept, chosen))
        return (Reduced(lp.with_blocks(kept), copies.spread, enter=copies.gather),)


@record
class _Copies:
    """``kept`` (k,) blocks of the source; ``source`` (blocks,) numbers the one among them that a
    block takes its multipliers from, and hands its reports to."""

    kept: Ints
    source: Ints

    def spread(self, point: Point) -> Point:
        """A point of the target as one of the source."""
        z = np.zeros((len(point.z), len(self.source)))
        z[:, self.kept] = point.z
        local = tuple(part[:, self.source] for part in point.local)
        cone = point.cone.tocsc()[:, self.source].tocoo()
        return replace(point, z=z, cone=cone, local=local)

    def gather(self, start: Start) -> Start:
        """A neighbour's design for the target: reports handed on, multipliers of kept blocks."""
        if start.matrix.shape[1] != len(self.source):
            return start
        matrix = np.zeros((len(start.matrix), len(self.kept)))
        np.add.at(matrix.T, self.source, start.matrix.T)
        place = np.full(len(self.source), -1)
        place[self.kept] = np.arange(len(self.kept))
        own = place[start.block] >= 0
        return Start(
            matrix, start.log_ratio, start.i[own], start.j[own], place[start.block[own]],
            start.weight[own],
        )  # fmt: skip


def _features(lp: BlockLP) -> Floats:
    """(blocks, d): numbers that must not be larger in a block that stands in for another."""
    parts = [lp.cost.T, lp.fixed.T.astype(float)]
    if lp.cone.active is not None:
        # pairs with the same window say the same: one column for each window
        packed = np.packbits(lp.cone.active, axis=1)
        _, first = np.unique(packed, axis=0, return_index=True)
        parts.append(lp.cone.active[first].T.astype(float))
    for link in lp.links:
        given = _varying(lp, link)
        parts += [given, -given] if link.equal else [given]
    return np.hstack(parts)


def _varying(lp: BlockLP, link: LinkRows) -> Floats:
    """(blocks, d): entries of the linking rows, by row and local variable, that are not the same
    in every block; few are, and the others are never written out."""
    coo = link.matrix.tocoo()
    row, column = coo.coords
    block, index = np.divmod(column, lp.block_size)
    used, place = np.unique(row.astype(np.int64) * lp.block_size + index, return_inverse=True)
    by_place = sp.csr_array((coo.data, (place, block)), shape=(len(used), lp.blocks))
    differs = by_place.max(axis=1).toarray() != by_place.min(axis=1).toarray()
    given: Floats = by_place[np.flatnonzero(differs)].toarray().T
    return given
