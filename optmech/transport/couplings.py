"""Distributions as whole numbers of one total, couplings of them inside a relation, and W_∞: the
least distance within which all mass can be moved.

With costs 0 inside a relation and 1 outside, the least cost of a coupling is the mass that has to
move outside. Costs, potentials and flows are small whole numbers: everything here is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.shown import Shown
from optmech.errors import ProblemError, SolverError
from optmech.exact.number import rounded_up
from optmech.exact.numerators import integers
from optmech.spaces.prior import Distribution, weights_of
from optmech.transport.tree import Tree


@dataclass(frozen=True, eq=False, repr=False)
class Violation(Shown):
    """A set that breaks Hall's condition: it holds more mass than all that it may be moved to.

    No coupling of the two distributions stays inside the relation, since one would move the mass
    of ``sources`` into ``neighbours``.
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


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Shown):
    """A joint distribution of two given ones (DP19 Def. 5), and what it attains."""

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
"""Counts of no larger sum are balanced exactly."""


@dataclass(frozen=True, eq=False)
class Masses:
    """Two distributions, their points of mass 0 left out, in units of 1/``total``.

    Whole numbers (counts) are balanced exactly, by multiplying each with the other's sum. Others
    are rounded to multiples of 2⁻⁶⁰, no positive mass to 0, and what floating point leaves open
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
        first, second = _weights(a, "a"), _weights(b, "b")
        rows, columns = np.flatnonzero(first), np.flatnonzero(second)
        shape = (len(first), len(second))
        first, second = first[rows], second[columns]
        if _countable(first) and _countable(second):
            one, two = int(first.sum()), int(second.sum())
            divisor = int(np.gcd(one, two))
            supply = first.astype(np.int64) * (two // divisor)
            demand = second.astype(np.int64) * (one // divisor)
            return cls(supply, demand, rows, columns, shape, one * two // divisor, 0, 0)
        supply, demand = (apportioned(integers(w[None, :])[0][0]) for w in (first, second))
        slack = sum(shape) * (UNITS >> 52)
        return cls(supply, demand, rows, columns, shape, UNITS, slack, sum(shape))

    def missing(self, dropped: int = 0) -> float:
        """The share of the mass that rounding and ``dropped`` units amount to, rounded up."""
        return rounded_up(Fraction(dropped + self.rounding, self.total))

    def spread(self, sources: Ints, sinks: Ints, flow: Ints) -> Floats:
        """Flows from ``sources`` to ``sinks``, numbered among the points with mass, as a plan of
        shape ``shape`` and of sum one."""
        plan = np.zeros(self.shape)
        plan[self.rows[sources], self.columns[sinks]] = flow / self.total
        return plan


def _weights(value: Distribution, where: str) -> Floats:
    weights = finite_array(weights_of(value), where=where)
    if weights.ndim != 1 or not weights.size:
        raise ProblemError("is not a list of weights", where=where, remedy="Give a 1-d array")
    if (weights < 0).any():
        k = int(np.flatnonzero(weights < 0)[0])
        raise ProblemError(f"weight {weights[k]:g} is negative", where=f"{where}[{k}]")
    if not weights.any():
        raise ProblemError("the weights sum to 0", where=where, remedy="Give a positive weight")
    return weights


def _countable(weights: Floats) -> bool:
    return bool((weights == np.rint(weights)).all() and weights.sum() <= LARGEST_TOTAL)


def apportioned(masses: list[int]) -> Ints:
    """Positive whole numbers of sum ``UNITS``, in proportion to the masses: each within one of
    its share, but for the largest, which takes what the others leave."""
    total = sum(masses)
    near = [max(1, (2 * mass * UNITS + total) // (2 * total)) for mass in masses]
    units = np.array(near, dtype=np.int64)
    units[masses.index(max(masses))] += UNITS - int(units.sum())
    return units


Relation = NDArray[np.bool_]


def inside(masses: Masses, relation: Relation) -> Coupling | Violation:
    """A coupling inside ``relation`` (between points with mass), or why there is none."""
    tree = Tree(masses.supply, masses.demand)
    found = _violation(masses, tree, relation)
    return found or _coupling(masses, tree, relation, 0.0)


def bottleneck(masses: Masses, distance: Floats) -> Coupling:
    """W_∞ of the points with mass (DP19 Def. 6), with a plan and the proof from below.

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
    sources, sinks = reached(np.asarray(outside.any(axis=1)), relation, flows > 0)
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


def reached(sources: Relation, relation: Relation, moved: Relation) -> tuple[Relation, Relation]:
    """The sources and sinks that can be reached from some sources, along the relation and back to
    where mass is ``moved`` from."""
    while True:
        sinks = np.asarray(relation[sources].any(axis=0))
        grown = np.asarray(sources | moved[:, sinks].any(axis=1))
        if (grown == sources).all():
            return sources, sinks
        sources = grown


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
