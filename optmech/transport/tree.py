"""A basis of the transportation problem: a spanning tree with whole-number flows."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints

_SLACK = 2.0**-49
"""Reduced costs above -SLACK relative are left alone by floating-point pivots."""

_ROUNDS = 8
"""Floating-point passes with fresh potentials before the exact phase takes over."""


class Tree:
    """A strongly feasible spanning tree that ships ``supply`` to ``demand``.

    Both are positive whole numbers of the same sum, in int64. The first tree is the north-west
    corner rule in the order given. ``solve`` may be called for one cost after another: the tree
    stays feasible.
    """

    def __init__(self, supply: Ints, demand: Ints) -> None:
        self.sources, self.sinks = len(supply), len(demand)
        size = self.sources + self.sinks
        self.parent, self._first, self._following, previous = np.full((4, size), -1, dtype=np.int64)
        self._depth, self.flow, stack = np.zeros((3, size), dtype=np.int64)
        self._previous = previous
        self._arrays = (
            self.parent, self._depth, self.flow, self._first,
            self._following, previous, stack, np.zeros(size),
        )  # fmt: skip
        self._north_west(supply.tolist(), demand.tolist())

    def solve(self, cost: Floats) -> None:
        """Pivot to an optimum of ``cost``, shape (sources, sinks), up to rounding."""
        # may load a compiler: not before it is needed
        from optmech.transport import pivots as kernels

        limit = 10_000 + 100 * len(self.parent)
        for _ in range(_ROUNDS):
            kernels.potentials(cost, self._arrays)
            if not kernels.improve(cost, _SLACK, limit, self._arrays):
                break

    def enter(self, i: int, j: int) -> None:
        """Bring the arc from source i to sink j into the tree."""
        from optmech.transport import pivots as kernels

        kernels.pivot(i, self.sources + j, 0.0, self.sources, self._arrays)

    def arcs(self) -> tuple[Ints, Ints, Ints]:
        """Row, column and flow of every arc of the tree, parents before children."""
        order = np.argsort(self._depth, kind="stable")[1:]
        above = self.parent[order]
        rows = np.minimum(order, above)
        columns = np.maximum(order, above) - self.sources
        return rows, columns, self.flow[order]

    def moves(self) -> list[list[int]]:
        """The same, arc by arc."""
        arcs: list[list[int]] = np.column_stack(self.arcs()).tolist()
        return arcs

    def plan(self) -> Ints:
        """The flows, shape (sources, sinks)."""
        out = np.zeros((self.sources, self.sinks), dtype=np.int64)
        rows, columns, flow = self.arcs()
        out[rows, columns] = flow
        return out

    def _north_west(self, supply: list[int], demand: list[int]) -> None:
        # where row and column run out together the next row comes in below the column, without
        # flow: that arc runs towards the root, as strong feasibility wants
        i = j = 0
        left, open_ = supply[0], demand[0]
        node = self._hang(self.sources, 0)
        while True:
            shipped = min(left, open_)
            self.flow[node] = shipped
            left, open_ = left - shipped, open_ - shipped
            if left == 0 and i + 1 < self.sources:
                i += 1
                left = supply[i]
                node = self._hang(i, self.sources + j)
            elif j + 1 < self.sinks:
                j += 1
                open_ = demand[j]
                node = self._hang(self.sources + j, i)
            else:
                break

    def _hang(self, node: int, above: int) -> int:
        head = self._first[above]
        self.parent[node] = above
        self._depth[node] = self._depth[above] + 1
        self._following[node] = head
        if head >= 0:
            self._previous[head] = node
        self._first[above] = node
        return node
