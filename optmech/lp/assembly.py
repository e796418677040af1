"""Collects the variables and rows of a BlockLP; auxiliary columns are numbered as they come.

What is added is known by the place that it gets, by which its multipliers are read again.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.lp.blocks import (
    BlockLP,
    HeldColumns,
    Informed,
    LinkRows,
    LocalRows,
    PairCone,
    Perspective,
    entries,
)


class Assembly:
    """See the module. ``cost`` (S, O) is that of the probabilities, and may be replaced."""

    def __init__(self, allowed: Bools, held: HeldColumns | None = None) -> None:
        self.allowed, self.held = allowed, held
        self.secrets, self.blocks = allowed.shape
        self.cost = np.zeros(allowed.shape)
        self.shared_cost: list[float] = []
        self.perspectives: list[Perspective] = []
        self.informed: list[Informed] = []
        self._aux_cost: list[float] = []
        self._local: list[tuple[sp.coo_array, bool]] = []
        self._links: list[tuple[bool, Floats, sp.coo_array, sp.coo_array]] = []
        self._pairs: list[PairCone] = []
        self._count = 0

    def pairs(self, cone: PairCone) -> slice:
        """Pairs of probabilities, and their numbers in the cone of all."""
        self._pairs.append(cone)
        self._count += len(cone)
        return slice(self._count - len(cone), self._count)

    def auxiliary(self, count: int, cost: float = 0.0) -> Ints:
        """Local indices of new variables in every block."""
        first = self.secrets + len(self._aux_cost)
        self._aux_cost.extend([cost] * count)
        return np.arange(first, first + count)

    def shared(self, cost: float) -> int:
        """The number of a new variable that all blocks share."""
        self.shared_cost.append(cost)
        return len(self.shared_cost) - 1

    def local(self, rows: sp.coo_array, *, equal: bool = False) -> int:
        """Rows over local indices: <= 0 in every block, or = 0 where ``equal``."""
        self._local.append((rows, equal))
        return len(self._local) - 1

    def link(
        self,
        rhs: Floats,
        rows: sp.coo_array,
        shared: sp.coo_array | None = None,
        *,
        equal: bool = False,
    ) -> int:
        """Rows across blocks, <= or = ``rhs``, over columns local index * blocks + block, and over
        shared ones."""
        none = sp.coo_array((len(rhs), 0))
        self._links.append((equal, rhs, rows, none if shared is None else shared))
        return len(self._links) - 1

    def over_blocks(self, values: Floats, local_index: Ints) -> sp.coo_array:
        """One row per value: value · Σ_o z_o[local index]."""
        row = np.repeat(np.arange(len(values)), self.blocks)
        column = (local_index[:, None] * self.blocks + np.arange(self.blocks)).ravel()
        return sp.coo_array((np.repeat(values, self.blocks), (row, column)))

    def weighted_rows(self, weighted: Floats, per_secret: bool) -> sp.coo_array:
        """Σ_so weighted[s,o] P[s,o], or that for every row s."""
        s, o = np.nonzero(weighted)
        row = s if per_secret else np.zeros(len(s), dtype=np.int64)
        shape = (self.secrets if per_secret else 1, self.secrets * self.blocks)
        return sp.coo_array((weighted[s, o], (row, s * self.blocks + o)), shape=shape)

    def mixed_rows(self, costs: Floats, pairs: Ints, shares: Floats) -> sp.coo_array:
        """Σ_o costs[k,o] ((1 - t) P[i,o] + t P[j,o]) for every pair i, j of (k, 2) with its share
        t."""
        k, o = np.nonzero(costs)
        parts = [
            (costs[k, o] * weight[k], k, own[k] * self.blocks + o)
            for own, weight in zip(pairs.T, (1.0 - shares, shares), strict=True)
        ]
        return entries((len(pairs), self.secrets * self.blocks), *parts)

    def extreme_rows(self, weighted: Floats, cost: float, sign: float = 1.0) -> tuple[int, int]:
        """x_o <= Σ_s weighted[t,s] v_s for every estimate t (Shokri, PETS 2015, eq. 21b), or >= for
        every guess where ``sign`` is -1: the local index of x, and the place of the rows."""
        (column,) = self.auxiliary(1, cost).tolist()
        count = len(weighted)
        t, s = np.nonzero(weighted)
        x = (np.full(count, sign), np.arange(count), np.full(count, column))
        rows = entries((count, column + 1), x, (-sign * weighted[t, s], t, s))
        return column, self.local(rows)

    @property
    def has_pairs(self) -> bool:
        """Whether the cone has any pairs so far."""
        return self._count > 0

    def add_elastic(self) -> None:
        """Multiply by 1 - e, with one shared e >= 0, every right side that zero misses, and the
        rows that are held."""
        column = self.shared(1.0)
        if self.held is not None:
            self.held = replace(self.held, elastic=column)
        for k, (equal, rhs, rows, _) in enumerate(self._links):
            missed = rhs != 0 if equal else rhs < 0
            if missed.any():
                value = np.where(missed, rhs, 0.0)
                places = (np.arange(len(rhs)), np.full(len(rhs), column))
                elastic = sp.coo_array((value, places), shape=(len(rhs), column + 1))
                self._links[k] = (equal, rhs, rows, elastic)

    def finish(self) -> BlockLP:
        """The program."""
        auxiliary = len(self._aux_cost)
        size = self.secrets + auxiliary
        cost = self.cost
        if auxiliary:
            cost = np.vstack([cost, np.tile(np.array(self._aux_cost)[:, None], self.blocks)])
        free = np.zeros((auxiliary, self.blocks), dtype=bool)
        shared = len(self.shared_cost)
        return BlockLP(
            secrets=self.secrets,
            blocks=self.blocks,
            auxiliary=auxiliary,
            cost=cost,
            shared_cost=np.array(self.shared_cost),
            fixed=np.vstack([~self.allowed, free]),
            cone=self._cone(),
            local=tuple(LocalRows(_resized(rows, size), equal) for rows, equal in self._local),
            links=tuple(
                LinkRows(equal, rhs, self._spread(rows, size), _resized(own, shared))
                for equal, rhs, rows, own in self._links
            ),
            perspectives=tuple(self.perspectives),
            informed=self.informed[0] if len(self.informed) == 1 else None,
            held=self.held,
        )

    def _cone(self) -> PairCone:
        if len(self._pairs) == 1:  # as they are: of thousands of secrets they are large
            return self._pairs[0]
        active = None
        if any(cone.active is not None for cone in self._pairs):
            active = np.vstack([cone.within(self.blocks) for cone in self._pairs])
        parts = [(cone.i, cone.j, cone.log_ratio) for cone in self._pairs]
        i, j, ratio = map(np.concatenate, zip(*parts, strict=True))
        return PairCone(i, j, ratio, active)

    def _spread(self, rows: sp.coo_array, size: int) -> sp.csr_array:
        """Columns (local index, block) -> block * size + local index."""
        row, column = rows.coords
        local, block = np.divmod(column, self.blocks)
        return sp.csr_array(
            (rows.data, (row, block * size + local)), shape=(rows.shape[0], self.blocks * size)
        )


def _resized(rows: sp.coo_array, columns: int) -> sp.csr_array:
    return sp.csr_array((rows.data, rows.coords), shape=(rows.shape[0], columns))
