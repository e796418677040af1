"""A basis of the transportation problem: a spanning tree with whole-number flows, made optimal in
exact arithmetic.

A plan on a tree is optimal if and only if (up to degeneracy) its potentials leave no reduced cost
c(i,j) - u(i) - v(j) negative. Costs are binary fractions, hence whole numbers of a common unit;
potentials are sums and differences of them. Floating point is used as a filter only: an entry
whose reduced cost it cannot tell from 0 is looked at exactly.
"""

from __future__ import annotations

from fractions import Fraction

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


_ROUNDING = 2.0**-50
"""Bounds the rounding of c - u - v with rounded potentials, relative to |c| + |u| + |v|."""

_RELIABLE = 2.0**-30
"""Reduced costs above this, relative, are known to 20 bits in floating point."""

_REFINEMENTS = 6
"""Passes that restart floating-point pivots from exact reduced costs, before single pivots."""


class ExactCost:
    """A float matrix as whole numbers of the unit 2**-shift."""

    def __init__(self, cost: Floats) -> None:
        self.cost = cost
        positive = cost[cost != 0]
        least = int(np.frexp(np.abs(positive).min())[1]) if positive.size else 0
        self.shift = max(0, 53 - least)

    def entry(self, i: int, j: int) -> int:
        """The cost (i, j) in units."""
        numerator, denominator = float(self.cost[i, j]).as_integer_ratio()
        return (numerator << self.shift) // denominator

    def plain(self, units: int) -> float:
        """Units as a float, correctly rounded."""
        return float(Fraction(units, 1 << self.shift))


def optimise(tree: Tree, cost: Floats) -> tuple[Fraction, Floats, Floats]:
    """Make the tree optimal for ``cost``, exactly; returns the value in units of flow times cost,
    and the potentials rounded to floats."""
    exact, potentials = settle(tree, cost)
    plain = np.array([exact.plain(value) for value in potentials])
    value = sum(flow * exact.entry(i, j) for i, j, flow in tree.moves())
    return Fraction(value, 1 << exact.shift), plain[: tree.sources], plain[tree.sources :]


def settle(tree: Tree, cost: Floats) -> tuple[ExactCost, list[int]]:
    """Make the tree optimal for ``cost``, exactly; returns the cost and the potentials of sources
    and sinks as whole numbers of its unit."""
    tree.solve(cost)
    exact = ExactCost(cost)
    for round_ in range(10**9):
        potentials = _potentials(tree, exact)
        reduced, worst = _reduced(exact, potentials, tree.sources, full=round_ < _REFINEMENTS)
        if worst is None:
            break
        if round_ < _REFINEMENTS:
            tree.solve(reduced)
        else:
            tree.enter(*worst)
    return exact, potentials


def _potentials(tree: Tree, exact: ExactCost) -> list[int]:
    value = [0] * len(tree.parent)
    for i, j, _ in tree.moves():
        sink = tree.sources + j
        if tree.parent[sink] == i:
            value[sink] = exact.entry(i, j) - value[i]
        else:
            value[i] = exact.entry(i, j) - value[sink]
    return value


def _reduced(
    exact: ExactCost, potentials: list[int], sources: int, *, full: bool
) -> tuple[Floats, tuple[int, int] | None]:
    """Reduced costs, and where the most negative is, decided exactly; None where none is.

    With ``full``, entries that floating point knows too roughly are replaced by exact ones.
    """
    plain = np.array([exact.plain(value) for value in potentials])
    u, v = plain[:sources, None], plain[None, sources:]
    reduced = exact.cost - u - v
    top = float(np.abs(exact.cost).max() + np.abs(u).max() + np.abs(v).max())
    rows, columns = np.nonzero(reduced <= _ROUNDING * top)
    scale = (
        np.abs(exact.cost[rows, columns]) + np.abs(plain[rows]) + np.abs(plain[sources + columns])
    )
    close = reduced[rows, columns] <= _ROUNDING * scale
    doubtful = np.column_stack([rows[close], columns[close]])
    least, worst = 0, None

    def decide(i: int, j: int) -> int:
        value = exact.entry(i, j) - potentials[i] - potentials[sources + j]
        reduced[i, j] = exact.plain(value)
        return value

    for i, j in doubtful.tolist():
        value = decide(i, j)
        if value < least:
            least, worst = value, (i, j)
    if worst is not None and full:
        everywhere = np.abs(exact.cost) + np.abs(u) + np.abs(v)
        for i, j in np.argwhere(np.abs(reduced) <= _RELIABLE * everywhere).tolist():
            decide(i, j)
    return reduced, worst
