"""Distributions as whole numbers of one total, the basis of the transportation problem, a spanning
tree with whole-number flows, made optimal in exact arithmetic; couplings inside a relation, and
W_∞: the least distance within which all mass can be moved.

A plan on a tree is optimal if and only if (up to degeneracy) its potentials leave no reduced cost
c(i,j) - u(i) - v(j) negative. Costs are binary fractions, hence whole numbers of a common unit;
potentials are sums and differences of them. Floating point is used as a filter only: an entry
whose reduced cost it cannot tell from 0 is looked at exactly. With costs 0 inside a relation and 1
outside, the least cost of a coupling is the mass that has to move outside.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import SolverError
from optmech.exact.arguments import weights
from optmech.exact.number import rounded_up
from optmech.exact.numerators import integers
from optmech.spaces.prior import Distribution, weights_of
from optmech.spaces.rationals import Shares
from optmech.transport import pivots
from optmech.transport.pivots import Nodes

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
        parent, first, following, previous = np.full((4, size), -1, dtype=np.int64)
        depth, flow, stack = np.zeros((3, size), dtype=np.int64)
        value = np.zeros(size)
        self._nodes = Nodes(parent, depth, flow, first, following, previous, stack, value)
        self.parent, self.flow = parent, flow
        self._north_west(supply.tolist(), demand.tolist())

    def solve(self, cost: Floats) -> None:
        """Pivot to an optimum of ``cost``, shape (sources, sinks), up to rounding."""
        limit = 10_000 + 100 * len(self.parent)
        for _ in range(_ROUNDS):
            pivots.potentials(cost, self._nodes)
            if not pivots.improve(cost, _SLACK, limit, self._nodes):
                break

    def enter(self, i: int, j: int) -> None:
        """Bring the arc from source i to sink j into the tree."""
        pivots.pivot(i, self.sources + j, 0.0, self.sources, self._nodes)

    def arcs(self) -> tuple[Ints, Ints, Ints]:
        """Row, column and flow of every arc of the tree, parents before children."""
        order = np.argsort(self._nodes.depth, kind="stable")[1:]
        above = self.parent[order]
        rows = np.minimum(order, above)
        columns = np.maximum(order, above) - self.sources
        return rows, columns, self.flow[order]

    def moves(self) -> list[list[int]]:
        """Sources, sinks and flows, arc by arc."""
        arcs: list[list[int]] = np.column_stack(self.arcs()).tolist()
        return arcs

    def plan(self) -> Ints:
        """The flows, shape (sources, sinks)."""
        out = np.zeros((self.sources, self.sinks), dtype=np.int64)
        rows, columns, flow = self.arcs()
        out[rows, columns] = flow
        return out

    def _north_west(self, supply: list[int], demand: list[int]) -> None:
        def hang(node: int, above: int) -> int:
            pivots.attach(node, above, self._nodes)
            self._nodes.depth[node] = self._nodes.depth[above] + 1
            return node

        # where row and column run out together the next row comes in below the column, without
        # flow: that arc runs towards the root, as strong feasibility wants
        i = j = 0
        left, open_ = supply[0], demand[0]
        node = hang(self.sources, 0)
        while True:
            shipped = min(left, open_)
            self.flow[node] = shipped
            left, open_ = left - shipped, open_ - shipped
            if left == 0 and i + 1 < self.sources:
                i += 1
                left = supply[i]
                node = hang(i, self.sources + j)
            elif j + 1 < self.sinks:
                j += 1
                open_ = demand[j]
                node = hang(self.sources + j, i)
            else:
                break


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
        potentials = [0] * len(tree.parent)
        for i, j, _ in tree.moves():
            sink = tree.sources + j
            child, above = (sink, i) if tree.parent[sink] == i else (i, sink)
            potentials[child] = exact.entry(i, j) - potentials[above]
        reduced, worst = _reduced(exact, potentials, tree.sources, full=round_ < _REFINEMENTS)
        if worst is None:
            break
        if round_ < _REFINEMENTS:
            tree.solve(reduced)
        else:
            tree.enter(*worst)
    return exact, potentials


def _reduced(
    exact: ExactCost, potentials: list[int], sources: int, *, full: bool
) -> tuple[Floats, tuple[int, int] | None]:
    """Reduced costs, and where the most negative is, decided exactly; None where none is.

    With ``full``, entries that floating point knows too roughly are replaced by exact ones.
    """
    plain = np.array([exact.plain(value) for value in potentials])
    u, v = plain[:sources, None], plain[None, sources:]
    reduced = exact.cost - u - v
    size = np.abs(exact.cost) + np.abs(u) + np.abs(v)
    least, worst = 0, None

    def decide(i: int, j: int) -> int:
        value = exact.entry(i, j) - potentials[i] - potentials[sources + j]
        reduced[i, j] = exact.plain(value)
        return value

    for i, j in np.argwhere(reduced <= _ROUNDING * size).tolist():
        value = decide(i, j)
        if value < least:
            least, worst = value, (i, j)
    if worst is not None and full:
        for i, j in np.argwhere(np.abs(reduced) <= _RELIABLE * size).tolist():
            decide(i, j)
    return reduced, worst


@record
class Violation(Shown):
    """A set that breaks Hall's condition: it holds more mass than all that it may be moved to.

    No coupling of the two distributions stays inside the relation, since one would move the mass
    of ``sources`` into ``neighbours``.

    Examples
    --------
    >>> v = om.transport.lifted([0.25, 0.75], [0.5, 0.5], np.eye(2, dtype=bool))
    >>> print(v.sources, v.neighbours, v.mass, v.capacity)
    [1] [1] 0.75 0.5
    """

    sources: Ints
    """Indices of points of the first distribution."""
    neighbours: Ints
    """Every point with mass of the second distribution that some of them is related to."""
    mass: float
    """What the first distribution puts on ``sources``."""
    capacity: float
    """What the second puts on ``neighbours``, less than ``mass``."""
    missing: float
    """mass - capacity: the least mass that every coupling moves outside the relation."""

    def __str__(self) -> str:
        return (
            f"{len(self.sources)} points hold {self.mass:.6g}, and the {len(self.neighbours)} "
            f"points they may move to only {self.capacity:.6g}"
        )


@record
class Coupling(Shown):
    """A joint distribution of two given ones (Kawamoto and Murakami, ESORICS 2019, Def. 5), and
    what it attains.

    Examples
    --------
    >>> c = om.transport.wasserstein([1, 0], [0.5, 0.5], np.array([[0.0, 1], [1, 0]]))
    >>> print(c.plan, c.value)
    [[0.5 0.5]
     [0.  0. ]] 0.5
    """

    plan: Floats
    """γ, shape (n, m), entries >= 0 of sum one; rows sum to a and columns to b."""
    value: float
    """W_p of the distributions; 0 for a lifted relation."""
    potentials: tuple[Floats, Floats] | None = None
    """u (n,) and v (m,) with u_i + v_j <= cost_ij everywhere and equality where mass moves: they
    prove a plan of finite p optimal. Checked in exact arithmetic, rounded here."""
    missing: float = 0.0
    """Mass that the plan leaves out or misplaces for rounding: 0 for counts, else about 1e-15."""
    below: Violation | None = None
    """For p = inf: why no coupling stays below ``value``; None where the value is 0 or some point
    has no nearer partner at all."""


UNITS = 2**60
LARGEST_TOTAL = 2**30
"""Whole numbers of no larger sum are balanced exactly."""


@record
class Masses:
    """Two distributions, their points of mass 0 left out, in units of 1/``total``.

    What are small whole numbers in proportion, as counts are, is balanced exactly. Others are
    rounded to multiples of 2⁻⁶⁰, no positive mass to 0, and what floating point leaves open
    is ``slack``: (n + m) 2⁻⁵² of the total, within which distributions that are equal on paper
    but not in binary can differ (0.1 + 0.2 is not 0.3).
    """

    supply: Ints
    demand: Ints
    rows: Ints
    """Indices of the sources among the points of the first distribution."""
    columns: Ints
    shape: tuple[int, int]
    total: int
    slack: int
    rounding: int
    """Units by which rounding has moved mass altogether, at most."""

    @classmethod
    def balance(cls, a: Distribution, b: Distribution) -> Masses:
        """Read two weight vectors, shapes (n,) and (m,); raises ProblemError on unusable ones."""
        first, second = (
            Shares.reduced(integers(weights(weights_of(given), name)[None, :])[0][0])
            for name, given in (("a", a), ("b", b))
        )
        return cls.of(first, second)

    @classmethod
    def of(cls, first: Shares, second: Shares) -> Masses:
        """The masses of two distributions."""
        rows, columns = np.array(first.support), np.array(second.support)
        shape = (len(first), len(second))
        supply, demand, total = common_units(first, second)
        if max(first.total, second.total) <= LARGEST_TOTAL:
            return cls(np.array(supply), np.array(demand), rows, columns, shape, total, 0, 0)
        units, slack = (apportioned(supply), apportioned(demand)), sum(shape) * (UNITS >> 52)
        return cls(*units, rows, columns, shape, UNITS, slack, sum(shape))

    def missing(self, dropped: int = 0) -> float:
        """The share of the mass that rounding and ``dropped`` units amount to, rounded up."""
        return rounded_up(Fraction(dropped + self.rounding, self.total))

    def spread(self, sources: Ints, sinks: Ints, flow: Ints) -> Floats:
        """Flows from ``sources`` to ``sinks``, numbered among the points with mass, as a plan of
        shape ``shape`` and of sum one."""
        plan = np.zeros(self.shape)
        plan[self.rows[sources], self.columns[sinks]] = flow / self.total
        return plan


def common_units(first: Shares, second: Shares) -> tuple[list[int], list[int], int]:
    """What the points with mass of two distributions hold, in whole numbers, and of which total."""
    total = math.lcm(first.total, second.total)
    supply, demand = (
        [side.units[k] * (total // side.total) for k in side.support] for side in (first, second)
    )
    return supply, demand, total


def apportioned(masses: list[int]) -> Ints:
    """Positive whole numbers of sum ``UNITS``, in proportion to the masses: each within one of
    its share, but for the largest, which takes what the others leave."""
    total = sum(masses)
    near = [max(1, (2 * mass * UNITS + total) // (2 * total)) for mass in masses]
    units = np.array(near, dtype=np.int64)
    units[masses.index(max(masses))] += UNITS - int(units.sum())
    return units


Relation = Bools


def inside(masses: Masses, relation: Relation) -> Coupling | Violation:
    """A coupling inside ``relation`` (between points with mass), or why there is none."""
    tree = Tree(masses.supply, masses.demand)
    found = _violation(masses, tree, relation)
    return found or _coupling(masses, tree, relation, 0.0)


def bottleneck(masses: Masses, distance: Floats) -> Coupling:
    """W_∞ of the points with mass (Kawamoto and Murakami, ESORICS 2019, Def. 6), with a plan and
    the proof from below.

    A search among the distances that occur. A feasible threshold falls to the longest move of
    its plan; an infeasible one rises to the shortest way out of its violating set.
    """
    tree = Tree(masses.supply, masses.demand)
    # no point can do better than its nearest partner
    floor = float(max(distance.min(axis=1).max(), distance.min(axis=0).max()))
    relation = np.ones(distance.shape, dtype=bool)
    best = _coupling(masses, tree, relation, _longest(tree, relation, distance))
    candidates = np.unique(distance[(distance >= floor) & (distance <= best.value)])
    below: Violation | None = None
    while floor < best.value:
        between = candidates[(candidates >= floor) & (candidates < best.value)]
        threshold = float(between[(len(between) - 1) // 2])
        relation = distance <= threshold
        found = _violation(masses, tree, relation)
        if found is None:
            best = _coupling(masses, tree, relation, _longest(tree, relation, distance))
        else:
            below = found
            rows = np.isin(masses.rows, found.sources)
            outside = ~np.isin(masses.columns, found.neighbours)
            floor = float(distance[np.ix_(rows, outside)].min())
    return replace(best, below=below)


def _violation(masses: Masses, tree: Tree, relation: Relation) -> Violation | None:
    """Pivot to the least mass outside the relation; None where it is within the slack.

    The violating set is what can be reached from the sources that ship outside, along the relation
    and back along flows. No sink so reached receives mass from outside: the flow would not be
    least.
    """
    tree.solve(np.where(relation, 0.0, 1.0))
    flows = tree.plan()
    outside = np.where(relation, 0, flows)
    missing = int(outside.sum())
    if missing <= masses.slack:
        return None
    sources: Relation = np.zeros(len(flows), dtype=bool)
    grown: Relation = np.asarray(outside.any(axis=1))
    while (grown != sources).any():
        sources = grown
        sinks = relation[sources].any(axis=0)
        grown = sources | (flows[:, sinks] > 0).any(axis=1)
    mass, capacity = int(masses.supply[sources].sum()), int(masses.demand[sinks].sum())
    if mass - capacity != missing:
        raise SolverError("the violating set does not account for the missing mass")
    total = masses.total
    return Violation(
        masses.rows[sources],
        masses.columns[sinks],
        mass / total,
        capacity / total,
        missing / total,
    )


def _coupling(masses: Masses, tree: Tree, relation: Relation, value: float) -> Coupling:
    """The flows inside the relation; what is within the slack outside is dropped."""
    rows, columns, flow = tree.arcs()
    kept = relation[rows, columns]
    plan = masses.spread(rows[kept], columns[kept], flow[kept])
    return Coupling(plan, value, missing=masses.missing(int(flow[~kept].sum())))


def _longest(tree: Tree, relation: Relation, distance: Floats) -> float:
    rows, columns, flow = tree.arcs()
    used = (flow > 0) & relation[rows, columns]
    return float(distance[rows[used], columns[used]].max())
