"""Optimality in exact arithmetic: potentials of a tree as whole numbers, and what they refuse.

A plan on a tree is optimal if and only if (up to degeneracy) its potentials leave no reduced cost
c(i,j) - u(i) - v(j) negative. Costs are binary fractions, hence whole numbers of a common unit;
potentials are sums and differences of them. Floating point is used as a filter only: an entry
whose reduced cost it cannot tell from 0 is looked at exactly.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.transport.tree import Tree

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
