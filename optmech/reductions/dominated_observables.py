"""Leave out observables that another one can stand in for.

Source: a block for every observable. Target: the blocks that are not dominated. Block b dominates
block o where it costs no more in any variable, counts no more in any shared <= row and the same in
any shared equation, allows what o allows, and is held to no pair that o is not held to.
Equivalent: reporting b wherever a mechanism reports o is post-processing. What every block obeys
is homogeneous and convex, so the sum of the two columns obeys it with the sum of the auxiliary
variables, and neither the cost nor a shared row grows. Duals: o gets the multipliers of b, which
leave its reduced costs nowhere below those of b. Proof: docs/theory.md, "Observables that others
can stand in for".

Rows that are held fixed report what they report: then all blocks stay.

With Hamming loss, places that the prior never visits go; with Euclidean loss those that are
farther than another one from every place it visits. Numbers are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.lp.blocks import BlockLP, LinkRows, Point, Sense, Start
from optmech.reductions.base import Reduced
from optmech.reductions.dominance import dominators


@dataclass(frozen=True)
class DominatedObservables:
    """See the module's docstring."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        if lp.held is not None:
            return (Reduced(lp),)
        chosen = dominators(_features(lp))
        kept = np.flatnonzero(chosen == np.arange(lp.blocks))
        if len(kept) == lp.blocks:
            return (Reduced(lp),)
        copies = _Copies(kept, np.searchsorted(kept, chosen))
        return (Reduced(lp.with_blocks(kept), copies.spread, enter=copies.gather),)


@dataclass(frozen=True, eq=False)
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
        return replace(point, z=z, cone=self._cone(point.cone), local=local)

    def _cone(self, cone: sp.csr_array | sp.coo_array) -> sp.coo_array:
        coo = cone.tocoo()
        pair, block = coo.coords
        order = np.argsort(block, kind="stable")
        count = np.bincount(block, minlength=len(self.kept))
        first = np.concatenate([[0], np.cumsum(count)])[self.source]
        times = count[self.source]
        target = np.repeat(np.arange(len(self.source)), times)
        within = np.arange(len(target)) - np.repeat(np.cumsum(times) - times, times)
        entry = order[np.repeat(first, times) + within]
        shape = (cone.shape[0], len(self.source))
        return sp.coo_array((coo.data[entry], (pair[entry], target)), shape=shape)

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
        parts += [given, -given] if link.sense is Sense.EQUAL else [given]
    return np.hstack(parts)


def _varying(lp: BlockLP, link: LinkRows) -> Floats:
    """(blocks, d): entries of the linking rows, by row and local variable, that are not the same
    in every block; few are, and the others are never written out."""
    coo = link.matrix.tocoo()
    row, column = coo.coords
    block, index = np.divmod(column, lp.block_size)
    place = row.astype(np.int64) * lp.block_size + index
    order = np.argsort(place, kind="stable")
    place, block, data = place[order], block[order], coo.data[order]
    first = np.flatnonzero(np.diff(place, prepend=-1))
    count = np.diff(np.append(first, len(place)))
    differs = count < lp.blocks
    if len(first):
        differs |= np.minimum.reduceat(data, first) < np.maximum.reduceat(data, first)
    number = np.repeat(np.cumsum(differs) - 1, count)
    own = np.repeat(differs, count)
    given = np.zeros((lp.blocks, int(differs.sum())))
    given[block[own], number[own]] = data[own]
    return given
