"""Optimal transport between finite distributions: W_p, W_∞, lifted relations (DP19 §2.5, §5).

All of it rests on one transportation simplex with whole-number flows; optimality is settled in
exact arithmetic. Distributions are balanced as ``Masses`` says: counts exactly, weights up to
(n + m) 2⁻⁵² of their total. Points of mass 0 take no part.
``rational`` has plans whose marginals are exact whatever the numbers, ``barycenter`` the best
common target of several distributions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats
from optmech.base.labelled import refuse_unordered
from optmech.base.memory import require
from optmech.errors import ProblemError
from optmech.exact.checked import float_or_nan, nonnegative
from optmech.spaces.distances import DistanceLike, values_between
from optmech.spaces.prior import Distribution, domain_of
from optmech.transport.barycenters import Barycenter, barycenter
from optmech.transport.couplings import (
    Coupling,
    Masses,
    Tree,
    Violation,
    bottleneck,
    inside,
    optimise,
)

__all__ = [
    "Barycenter",
    "Coupling",
    "Violation",
    "barycenter",
    "diameter",
    "lifted",
    "wasserstein",
]


def __dir__() -> list[str]:
    return __all__


def wasserstein(
    a: Distribution, b: Distribution, distance: DistanceLike, p: float | str = 1
) -> Coupling:
    """W_p(a, b) with an optimal plan: (Σ γ d^p)^{1/p} for p >= 1, and for p = inf the least
    longest move (DP19 Def. 6).

    Parameters
    ----------
    a, b:
        Weights >= 0 of any positive sum, shapes (n,) and (m,), or priors.
    distance:
        d >= 0, not assumed to be a metric: an array of shape (n, m), or, between priors, a
        function of two domains or a table with their labels.
    p:
        At least 1, or ``math.inf`` (``"inf"``).

    The plan is optimal for the given distances, exactly, however far they range: for finite p by
    the potentials, for p = inf by a set that violates Hall's condition below the value, which is
    one of the distances. For p other than 1 and inf the d^p are rounded to floats first.

    Raises
    ------
    ProblemError
        On unusable weights, distances or p.
    """
    order = _order(p)
    masses = Masses.balance(a, b)
    everywhere = values_between(distance, domain_of(a), domain_of(b))
    values = _matrix(everywhere, masses)
    if math.isinf(order):
        return bottleneck(masses, values)
    top = float(values.max()) or 1.0
    cost = _powers(values, order, top)
    tree = Tree(masses.supply, masses.demand)
    value, u, v = optimise(tree, np.ascontiguousarray(cost))
    mean = float(value / masses.total)
    root = mean if order == 1 else mean ** (1 / order) * top
    potentials = _everywhere(_powers(everywhere, order, top), masses, u, v)
    return Coupling(masses.spread(*tree.arcs()), root, potentials, masses.missing())


def lifted(a: Distribution, b: Distribution, relation: ArrayLike) -> Coupling | Violation:
    """Decide (a, b) ∈ Φ# (DP19 Def. 7): a coupling inside Φ, or a set violating Hall's condition.

    ``relation`` is a boolean array of shape (n, m). By the max-flow min-cut theorem exactly one of
    the two exists.

    Raises
    ------
    ProblemError
        On unusable weights, or a relation that is not boolean or of the wrong shape.
    """
    masses = Masses.balance(a, b)
    refuse_unordered(relation, where="relation")
    phi = np.asarray(relation)
    if phi.dtype != np.bool_ or phi.shape != masses.shape:
        raise ProblemError(
            f"an array of {phi.dtype} of shape {phi.shape}",
            where="relation",
            remedy=f"Give a boolean array of shape {masses.shape}",
        )
    return inside(masses, phi[np.ix_(masses.rows, masses.columns)])


def diameter(a: Distribution, b: Distribution, distance: DistanceLike) -> float:
    """diam(a, b): the largest distance between points with mass (DP19 §5.2); at least W_∞."""
    masses = Masses.balance(a, b)
    return float(_matrix(values_between(distance, domain_of(a), domain_of(b)), masses).max())


def _order(p: float | str) -> float:
    order = float_or_nan(p)
    if not order >= 1:
        raise ProblemError(f"{p!r} is not a number >= 1", where="p", remedy="Use 1, 2 or math.inf")
    return order


def _matrix(array: Floats, masses: Masses) -> Floats:
    """The distances between the points with mass."""
    nonnegative(array, "distance", masses.shape)
    require(
        6.0 * array.nbytes,
        what=f"transport between {masses.shape[0]:,} x {masses.shape[1]:,} points",
        where="distance",
        remedy="Merge points",
    )
    if (len(masses.rows), len(masses.columns)) == masses.shape:
        return array
    return np.ascontiguousarray(array[np.ix_(masses.rows, masses.columns)])


def _powers(array: Floats, order: float, top: float) -> Floats:
    with np.errstate(over="ignore"):
        return array if order == 1 else np.asarray((array / top) ** order)


def _everywhere(cost: Floats, masses: Masses, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Potentials for all points: those without mass get the largest that is feasible."""
    first = (cost[:, masses.columns] - v).min(axis=1)
    first[masses.rows] = u
    second = (cost - first[:, None]).min(axis=0)
    second[masses.columns] = v
    return first, second
