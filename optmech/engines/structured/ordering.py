"""Orders of the variables in which a block's matrix is nearly block tridiagonal."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.pairs import Cone

_MANY = 1_200
"""Variables from which on there is one order, and its axes are found by iteration."""

_KNOWN = 0.8
"""Share of the pairs with a path from which on the others are taken for as long as the longest."""


def candidates(cone: Cone) -> tuple[Ints, Ints]:
    """Orders to try, as positions (k, m) of the variables, and a first panel size for each.

    The given order, reverse Cuthill-McKee, and sweeps along the main axes of the metric (its
    principal coordinates, which on a grid are its rows and columns).
    """
    count = len(cone.short)
    orders = [np.arange(count)]
    if count > 2:
        graph = sp.csr_array((cone.short | cone.short.T).astype(np.int8))
        orders.append(np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64))
        orders += _sweeps(cone)
    position = np.array([np.argsort(order) for order in orders])
    first = np.array([_bandwidth(cone.short, p) for p in position])
    if count > _MANY:  # sums of inverses are kept for every order
        best = [int(first.argmin())]
        return position[best], first[best]
    return position, first


def _sweeps(cone: Cone) -> list[Ints]:
    """Sort by each of two principal coordinates of the path metric, where it is mostly known."""
    known = cone.decay > 0
    if not known.all() and known.mean() < _KNOWN:
        return []
    count = len(cone.decay)
    path = -np.log(np.where(known, cone.decay, cone.decay[known].min()))
    squared = (np.minimum(path, path.T)) ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    if count > _MANY:
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(0).standard_normal(count)
        vectors = eigsh(-centred, k=2, which="LA", v0=start, tol=1e-4)[1]
    else:
        vectors = np.linalg.eigh(-centred)[1]
    return [
        _rounded_order(vectors[:, -1], vectors[:, -2]),
        _rounded_order(vectors[:, -2], vectors[:, -1]),
    ]


def _rounded_order(main: Floats, other: Floats) -> Ints:
    """By ``main``; values that differ by rounding only are ordered by ``other``."""
    steps = np.round(main / max(float(np.ptp(main)), 1e-300) * 1e6)
    return np.lexsort((other, steps)).astype(np.int64)


def _bandwidth(short: NDArray[np.bool_], position: Ints) -> int:
    """The median distance from a variable to its last neighbour in this order."""
    i, j = np.nonzero(short | short.T)
    last = position.copy()
    np.maximum.at(last, i, position[j])
    return max(4, int(np.median(last - position)))
