"""Blocks that are kept out of the program, and what proves that their columns are of no use.

Each keeps a column, the pairs that matter to it, and their multipliers. What multipliers leave of
a block's costs changes with the prices of the row sums by as much as these do, so most blocks need
nothing but a comparison from one bound to the next, and the others start where they ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured import blas, factoring, kernels, pricing
from optmech.engines.structured.compiled import each, free_panels, packed
from optmech.engines.structured.model import Model
from optmech.engines.structured.ordering import candidates
from optmech.engines.structured.pairs import Cone, Rows, add_rows, distinct, first_rows
from optmech.engines.structured.tuning import TUNING

_MOST_ROUNDS = 12


@dataclass(eq=False)
class Outside:
    """Blocks with costs (blocks, m + 1), columns P of the same shape, whose sums are one, and rows
    of pairs. Nothing but pairs restricts them."""

    cone: Cone
    cost: Floats
    P: Floats
    rows: Rows
    threads: int
    left: Floats = field(init=False)
    """What multipliers leave of the costs before row sums are priced, (blocks, m)."""

    def __post_init__(self) -> None:
        blocks = len(self.cost)
        position, self._first = candidates(self.cone)
        self._panels = free_panels(position, blocks)
        self._address = blas.addresses()
        self._structure(np.arange(blocks))
        self.left = self._charged()

    @classmethod
    def fresh(cls, model: Model, cone: Cone, threads: int) -> Outside:
        """The blocks of a program, with short pairs and uniform columns."""
        rows, m = first_rows(model, cone), model.variables
        P = np.full((model.blocks, m + 1), 1 / m)
        P[:, -1] = 0.0
        rows.s = (rows.e - 1) / m
        rows.z = 0.25 / m * float(np.abs(model.cost).max(initial=1e-300)) / rows.s
        return cls(cone, model.cost, P, rows, threads)

    def _structure(self, changed: Ints) -> None:
        rows = packed(self.rows)
        each(self.threads, factoring.partition, changed, rows, self._first, self._panels)

    def _charged(self) -> Floats:
        left = self.cost.copy()
        each(self.threads, kernels.charge, packed(self.rows), self.rows.z, left)
        return left[:, :-1]

    def priced(self, prices: Floats, goal: float) -> Floats:
        """What multipliers leave of the costs at ``prices`` (m,), (blocks, m): nowhere below
        -goal where a block is of no use, else nearly as much as multipliers of all pairs can."""
        doubtful = np.flatnonzero((self.left - prices).min(axis=1, initial=0.0) < -goal)
        for _ in range(_MOST_ROUNDS):
            if not len(doubtful):
                break
            self._solve(doubtful, prices, goal)
            negative = (self.left - prices).min(axis=1, initial=0.0) < -goal
            doubtful = self._with_more_pairs(doubtful[negative[doubtful]])
        return np.asarray(self.left - prices)

    def values(self, prices: Floats, goal: float) -> Floats:
        """Prices of the best columns whose sums are one, over the pairs held."""
        return self._solve(np.arange(len(self.cost)), prices, goal)

    def centred(self, chosen: Ints, prices: Floats, centre: float) -> tuple[Floats, Rows]:
        """Columns of some blocks, and rows, whose products of slacks and multipliers are all near
        ``centre``."""
        self._solve(chosen, prices, 0.0, centre)
        return self.P[chosen], taken(self.rows, chosen)

    def without(self, chosen: Ints) -> tuple[Floats, Rows]:
        """Columns and rows of all blocks but some."""
        others = np.setdiff1d(np.arange(len(self.P)), chosen)
        return self.P[others], taken(self.rows, others)

    def _solve(self, chosen: Ints, prices: Floats, goal: float, centre: float = 0.0) -> Floats:
        cost = self.cost.copy()
        cost[:, :-1] -= prices
        left, value = self.left - prices, np.zeros(len(cost))
        each(
            self.threads, pricing.price, self._address, packed(self.rows), self._panels, chosen,
            cost, goal, centre, self.P, left, value,
        )  # fmt: skip
        self.left[chosen] = left[chosen] + prices
        return value

    def _with_more_pairs(self, doubtful: Ints) -> Ints:
        """Let pairs join that columns in doubt violate; those of them that do."""
        rows, P = self.rows, self.P
        by_i, by_j = self._violated(doubtful)
        block, i = np.nonzero(by_i >= 0)
        block2, j = np.nonzero(by_j >= 0)
        found = (
            doubtful[np.concatenate([block, block2])],
            np.concatenate([i, by_j[block2, j]]),
            np.concatenate([by_i[block, i], j]),
        )
        new = distinct(P.shape[1] - 1, found)
        if not len(new[0]):
            return new[0]
        mean = np.add.reduceat(rows.s * rows.z, rows.offset[:-1]) / np.diff(rows.offset)
        self.rows = add_rows(rows, self.cone, P, new, mean[new[0]])
        changed = np.unique(new[0])
        self._structure(changed)
        self.left[changed] = self._charged()[changed]
        return changed

    def _violated(self, chosen: Ints) -> tuple[Ints, Ints]:
        rows = taken(self.rows, chosen)
        by_i, by_j = np.empty((2, len(chosen), self.P.shape[1] - 1), dtype=np.int64)
        each(
            self.threads, kernels.violations, packed(rows), self.cone.later, self.P[chosen],
            TUNING.nearly_violated, by_i, by_j,
        )  # fmt: skip
        return by_i, by_j


def taken(rows: Rows, blocks: Ints) -> Rows:
    """The rows of some blocks, in the order in which these are given."""
    count = np.diff(rows.offset)[blocks]
    offset = np.concatenate([[0], np.cumsum(count)])
    own = np.repeat(rows.offset[blocks] - offset[:-1], count) + np.arange(offset[-1])
    return Rows(offset, rows.i[own], rows.j[own], rows.e[own], rows.s[own], rows.z[own])


def joined(first: Rows, second: Rows) -> Rows:
    """Rows of blocks, those of ``second`` after the others."""
    offset = np.concatenate([first.offset, second.offset[1:] + len(first)])
    fields = (np.concatenate([getattr(rows, name) for rows in (first, second)]) for name in "ijesz")
    return Rows(offset, *fields)
