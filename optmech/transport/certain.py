"""What couplings of rational distributions can do, with every last unit of mass accounted for.

``lifted`` and ``wasserstein`` leave room for distributions that agree on paper and not in binary.
Where no amount of mass may be forgotten, however small, these decide.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.spaces.rationals import Shares
from optmech.transport.bottleneck import Relation, bottleneck
from optmech.transport.masses import Masses
from optmech.transport.rational import cheapest_plan


def outside(first: Shares, second: Shares, relation: Relation) -> Fraction:
    """The mass that a coupling moves outside the relation, shape (n, m): 0 where there is a
    coupling inside it, and else the least, up to 2^-60 per point."""
    cost = np.where(relation, 0.0, 1.0)
    plan = cheapest_plan(first, second, cost, optimal=False)
    moved = plan.cost(cost)
    # what was too little for the first attempt may still be avoidable
    return cheapest_plan(first, second, cost).cost(cost) if moved else moved


def mean_move(first: Shares, second: Shares, distance: Floats) -> Fraction:
    """Σ γ d of a coupling of these two: at least W_1, and above it by what 2^-60 of mass per point
    is worth at most."""
    return cheapest_plan(first, second, distance, optimal=False).cost(distance)


def longest_move(first: Shares, second: Shares, distance: Floats) -> float:
    """W_∞, exactly: the least of the distances within which all mass can be moved."""
    near = np.ascontiguousarray(distance[np.ix_(first.support, second.support)])
    start = bottleneck(Masses.balance(first.weights, second.weights), near).value
    candidates = np.unique(near[near >= start])
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = 0 if low == 0 and high == len(candidates) - 1 else (low + high) // 2
        if outside(first, second, distance <= candidates[middle]):
            low = middle + 1
        else:
            high = middle
    return float(candidates[low])
