"""Optimal plans between rational distributions: marginals, value and optimality exact.

The transportation simplex works on int64 flows. Its optimal tree for masses rounded to that size
has exact potentials, which prove optimality for *all* masses that the tree can ship; the flows of
the exact masses on it are found from the leaves. Where such a flow is negative (by no more than
the rounding) it is set to 0 and what is then shipped too much is taken back along shortest paths
of the residual network, which keeps the potentials feasible and complementary.

``lifted`` and ``wasserstein`` leave room for distributions that agree on paper and not in binary.
Where no amount of mass may be forgotten, however small, ``outside`` and ``mean_move`` decide.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.memory import require
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import SameFields
from optmech.errors import SolverError
from optmech.spaces.rationals import Shares
from optmech.transport.couplings import (
    LARGEST_TOTAL,
    UNITS,
    ExactCost,
    Masses,
    Relation,
    Tree,
    apportioned,
    bottleneck,
    common_units,
    settle,
)

Flows = dict[tuple[int, int], int]
"""The flow of every arc, by its ends."""
Excess = list[tuple[int, int, int]]
"""Arcs that ship too much, and how much that is."""
_AUGMENTATIONS = 10**6


def _cancel(exact: ExactCost, potentials: list[int], flows: Flows, excess: Excess) -> None:
    """Let every source ship as much less as it ships too much, and its sink receive as much less,
    at least cost.

    Every step follows a shortest path, so that the potentials stay feasible, and complementary to
    the flows. Both are changed in place.
    """
    sources, sinks = exact.cost.shape
    units = [[exact.entry(i, j) for j in range(sinks)] for i in range(sources)]
    cost = np.array(units, dtype=object)
    for source, sink, amount in excess:
        left = amount
        for _ in range(_AUGMENTATIONS):
            if not left:
                break
            steps = list(pairwise(_shortest(cost, potentials, flows, sources + sink, source)))
            back = [(b, a - sources) for a, b in steps if a >= sources]
            forth = [(a, b - sources) for a, b in steps if a < sources]
            least = min(left, *(flows[arc] for arc in back))
            for arc in back:
                flows[arc] -= least
            for arc in forth:
                flows[arc] = flows.get(arc, 0) + least
            left -= least
        else:
            raise SolverError("the plan could not be made exact")


def _shortest(cost: Any, value: list[int], flows: Flows, start: int, goal: int) -> list[int]:
    """Dijkstra with reduced costs, forward along all arcs and back along those with flow;
    potentials move with the distances. Nodes are the sources, then the sinks."""
    sources = len(cost)
    shippers: dict[int, list[int]] = {}
    for (i, j), flow in flows.items():
        if flow:
            shippers.setdefault(sources + j, []).append(i)
    prices: Any = np.array(value[sources:], dtype=object)
    unknown = 1 << (max(map(abs, value)) + int(cost.max())).bit_length() + 64
    far: Any = np.full(len(value), unknown, dtype=object)
    far[start] = 0
    came: dict[int, int] = {}
    done: set[int] = set()
    queue = [(0, start)]
    while goal not in done:
        length, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if node >= sources:
            reached = [(i, length) for i in shippers.get(node, ()) if length < far[i]]
        else:
            lengths = cost[node] - prices + (length - value[node])
            closer = np.flatnonzero(lengths < far[sources:]).tolist()
            reached = [(sources + j, lengths[j]) for j in closer]
        for other, longer in reached:
            far[other], came[other] = longer, node
            heapq.heappush(queue, (longer, other))
    for node, length in enumerate(far.tolist()):
        moved = min(length, far[goal])
        value[node] += moved if node >= sources else -moved
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


@record
class RationalPlan(SameFields, ReadOnly):
    """A coupling in whole numbers: ``flows[(x, y)] / total`` is the mass moved from x to y."""

    first: Shares
    second: Shares
    flows: Mapping[tuple[int, int], int]
    total: int
    potentials: tuple[tuple[int, ...], tuple[int, ...]]
    """u, v in units of 2^-shift with u_x + v_y <= c(x,y) between points with mass, and equality
    where mass moves; 0 for points without mass."""
    shift: int

    def cost(self, distance: Floats) -> Fraction:
        """Σ γ d, exactly."""
        moved = (flow * Fraction(float(distance[arc])) for arc, flow in self.flows.items())
        return sum(moved, Fraction(0)) / self.total

    def longest(self, distance: Floats) -> float:
        """The longest move."""
        return max(float(distance[arc]) for arc in self.flows)

    @property
    def plan(self) -> Floats:
        """γ as floats, shape (n, m)."""
        out = np.zeros((len(self.first), len(self.second)))
        for arc, flow in self.flows.items():
            out[arc] = flow / self.total
        return out


@record
class WorstCasePlan:
    """A plan whose longest move is as short as possible, and why no shorter one will do."""

    plan: RationalPlan
    value: float
    """W_∞, one of the distances."""
    sources: tuple[int, ...]
    """Points that hold more mass than all that lies nearer to them than ``value``; empty for 0."""


def cheapest_plan(
    first: Shares, second: Shares, cost: Floats, *, optimal: bool = True
) -> RationalPlan:
    """A plan that minimises Σ γ c exactly; ``cost``, shape (n, m), is any array of floats >= 0.

    Without ``optimal`` the marginals are exact all the same, and the cost is above the least by
    no more than the masses' rounding to 2^-60 is worth: quicker where many sums of masses agree
    up to rounding, as with the outputs of a linear program.
    """
    require(
        8.0 * cost.nbytes,
        what=f"transport between {cost.shape[0]:,} x {cost.shape[1]:,} points",
        where="distance",
        remedy="Merge points",
    )
    rows, columns = first.support, second.support
    supply, demand, total = common_units(first, second)
    fits = total <= UNITS
    tree = Tree(
        *(np.array(m, dtype=np.int64) if fits else apportioned(m) for m in (supply, demand))
    )
    exact, potentials = settle(tree, _between(first, second, cost))
    flows, excess = _tree_flows(tree, supply, demand)
    if optimal and excess:
        _cancel(exact, potentials, flows, excess)
    else:
        _swap(flows, excess)
    u, v = [0] * len(first), [0] * len(second)
    for k, x in enumerate(rows):
        u[x] = potentials[k]
    for k, y in enumerate(columns):
        v[y] = potentials[len(rows) + k]
    moved = {(rows[i], columns[j]): flow for (i, j), flow in sorted(flows.items()) if flow}
    return RationalPlan(first, second, moved, total, (tuple(u), tuple(v)), exact.shift)


def worst_case_plan(first: Shares, second: Shares, distance: Floats) -> WorstCasePlan:
    """A plan whose longest move is W_∞ (Kawamoto and Murakami, ESORICS 2019, Def. 6, Kawamoto and
    Murakami, Allerton 2019, §VI-D), of least Σ γ d among those.

    Moves beyond a threshold cost more than any detour within it could (a cycle of the difference
    of two plans has at most n + m arcs), so that they are used only where no plan does without.
    What is then still beyond W_∞ of ``wasserstein`` is within its slack for rounding, and is taken
    from a point within reach instead: ``plan.first`` differs from ``first`` by that, and
    ``second`` is met exactly. Whole numbers of sum <= 2^30 have no slack.
    """
    dear = 2.0 * (sum(distance.shape) + 1) * (float(distance.max()) or 1.0)
    for _ in range(len(first) + 1):
        near = _between(first, second, distance)
        least = bottleneck(Masses.of(first, second), near)
        value = least.value
        found = cheapest_plan(first, second, np.where(distance <= value, distance, dear))
        if found.longest(distance) <= value:
            crowded: Sequence[int] = first.support
            if least.below is not None:
                crowded = least.below.sources.tolist()
            elif near.min(axis=1).max() == value:
                # else some point of the second distribution has no nearer partner
                crowded = [first.support[int(near.min(axis=1).argmax())]]
            if value > 0 and not is_crowded(first, second, crowded, distance < value):
                raise SolverError("the violating set does not account for the missing mass")
            return WorstCasePlan(found, value, tuple(crowded) if value > 0 else ())
        # points may lose what little they have, and with it what kept the value up
        first = _within(found, distance, value)
    raise SolverError(
        "masses range too far for a plan of least longest move",
        where="coupling",
        remedy="Leave out points of negligible mass, or give whole numbers",
    )


def outside(first: Shares, second: Shares, relation: Relation) -> Fraction:
    """The least mass that a coupling moves outside the relation, shape (n, m), exactly."""
    cost = np.where(relation, 0.0, 1.0)
    return cheapest_plan(first, second, cost).cost(cost)


def mean_move(first: Shares, second: Shares, distance: Floats) -> Fraction:
    """Σ γ d of a coupling of these two: at least W_1, and above it by what 2^-60 of mass per point
    is worth at most."""
    return cheapest_plan(first, second, distance, optimal=False).cost(distance)


def _between(first: Shares, second: Shares, distance: Floats) -> Floats:
    """The distances between points with mass."""
    return np.ascontiguousarray(distance[np.ix_(first.support, second.support)])


def readable(shares: Shares) -> Floats:
    """The weights: as whole numbers where these are small enough to be balanced exactly."""
    whole = shares.total <= LARGEST_TOTAL
    return np.array(shares.units, dtype=np.float64) if whole else shares.weights


def _within(plan: RationalPlan, distance: Floats, value: float) -> Shares:
    """The first distribution with the mass that moves beyond ``value`` taken from elsewhere."""
    units = [0] * len(plan.first)
    support = plan.first.support
    for (x, y), flow in plan.flows.items():
        if distance[x, y] > value:
            x = support[int(distance[support, y].argmin())]
        units[x] += flow
    return Shares.reduced(units)


def is_crowded(first: Shares, second: Shares, sources: Sequence[int], relation: Relation) -> bool:
    """Whether the points ``sources`` hold more mass than all that some of them is related to."""
    held = sum((first[x] for x in sources), Fraction(0))
    near = relation[list(sources)].any(axis=0)
    return held > sum((second[y] for y in np.flatnonzero(near).tolist()), Fraction(0))


def _tree_flows(tree: Tree, supply: list[int], demand: list[int]) -> tuple[Flows, Excess]:
    """The flows of the exact masses on the tree, negative ones set to 0; and those, as arcs that
    then ship too much, with the amount."""
    spare = supply + [-mass for mass in demand]
    flows: Flows = {}
    excess: Excess = []
    for i, j, _ in reversed(tree.moves()):
        sink = tree.sources + j
        below, above = (i, sink) if int(tree.parent[i]) == sink else (sink, i)
        flow = spare[below] if below == i else -spare[below]
        spare[above] += spare[below]
        flows[i, j] = max(0, flow)
        if flow < 0:
            excess.append((i, j, -flow))
    return flows, excess


def _swap(flows: Flows, excess: Excess) -> None:
    """Take excess back with the largest flows at hand: what i sends to another output, a helper
    that sends to j sends there instead."""
    for i, j, amount in excess:
        while amount:
            other = max((arc for arc in flows if arc[0] == i), key=lambda arc: flows[arc])[1]
            helper = max((arc for arc in flows if arc[1] == j), key=lambda arc: flows[arc])[0]
            step = min(amount, flows[i, other], flows[helper, j])
            flows[i, other] -= step
            flows[helper, j] -= step
            flows[helper, other] = flows.get((helper, other), 0) + step
            amount -= step
