"""Couplings inside a relation, and W_∞: the least distance within which all mass can be moved.

With costs 0 inside a relation and 1 outside, the least cost of a coupling is the mass that has to
move outside. Costs, potentials and flows are small whole numbers: everything here is exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.errors import SolverError
from optmech.transport.couplings import Coupling, Violation
from optmech.transport.masses import Masses
from optmech.transport.tree import Tree

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
