"""A coarse problem whose optimum is a proved lower bound of a fine one.

The places are partitioned into cells. With a^C the prior within C and Q[C,o] = Σ_s a^C_s P[s,o],
every P that keeps the ratios r gives Q[C,o] <= Λ(a^C, a^C') Q[C',o], and its loss is at least
Σ_C π(C) Σ_o κ(C,o) Q[C,o] where κ(C,o) = 1 / Λ(a^C, c(·,o) a^C) is the least mean cost in C that a
column inside the cone can have. So the coarse problem with these ratios, these costs and all
observables has an optimum that no fine mechanism undercuts. Every number is rounded to the side
that keeps this true; far pairs of cells may have larger ratios than they need, or none (``inf``).
Proof: docs/theory.md, "Carrying a guarantee over to distributions".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.arrays import Floats, Ints, normalised
from optmech.errors import ProblemError
from optmech.exact.checked import nonnegative, weights, whole
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, rounded_down
from optmech.exact.rounding import down, exp_down, log_floats, up
from optmech.spaces.prior import Prior
from optmech.transport.carry import closed, normalised_logs
from optmech.transport.gains import Logs, gains

MEMBERS = 64
"""Of a cell, unless said otherwise: the time for a pair of cells grows with their square."""
_ENTRIES = 1_000_000
"""Of the arrays that are worked on at a time."""
_LINKS = 8
"""Parts that each part is linked with at first."""
_PADDED = 8
"""Cells with as many members up to this multiple are worked on together."""
_UNIT = 2.0**-53

Blocks = Callable[[Ints, Ints], Floats]
"""Upper bounds of r between members, shapes (k, n) and (k, m) → (k, n, m)."""


@dataclass(frozen=True, eq=False)
class Coarse:
    """The arrays of a coarse problem: a lower bound of it is one of the fine problem."""

    prior: Floats
    """Shape (K,): of the cells with mass, in the order of ``labels``."""
    cost: Floats
    """Shape (K, O): at most κ, by as much as ``prior`` exceeds the exact masses of cells."""
    log_ratio: Floats
    """Shape (K, K): at least ln Λ."""
    labels: Ints
    """The cells that have mass, as they were numbered."""

    def undivided(self, prior: Prior) -> Coarse:
        """With costs for the weights of ``prior`` as they are: the aggregation divides them by
        their sum, which may be a little below one, and a loss does not."""
        total = math.nextafter(math.fsum(prior.weights.tolist()), 0.0)
        least = np.maximum(down(self.cost * min(total, 1.0)), 0.0)
        return Coarse(self.prior, least, self.log_ratio, self.labels)


def aggregated(
    prior: ArrayLike | Prior,
    cost: ArrayLike,
    log_ratio: ArrayLike,
    cells: ArrayLike,
    neighbours: int | None = None,
) -> Coarse:
    """Aggregate a problem with ratios in a matrix.

    Parameters
    ----------
    prior:
        Weights of the n places; normalised, and then as their floats are.
    cost:
        c >= 0, shape (n, O), in any unit.
    log_ratio:
        r >= 0, shape (n, n), floats not below what mechanisms keep (ε d rounded up).
    cells:
        The cell of every place, whole numbers, shape (n,).
    neighbours:
        For how many nearest cells of each the exact ratios are found, the others being reached by
        paths over them; all unless given.

    Raises
    ------
    ProblemError
        On arrays that do not fit.
    """
    ratio = closed(log_ratio)[1]
    costs = nonnegative(cost, "cost", (len(ratio), np.shape(cost)[-1]))
    return aggregated_by(prior, costs, lambda i, j: ratio[i, j], cells, neighbours)


def aggregated_places(
    prior: ArrayLike | Prior,
    cost: ArrayLike,
    places: ArrayLike,
    epsilon: Number,
    cells: ArrayLike,
    neighbours: int = 24,
) -> Coarse:
    """Aggregate tens of thousands of places in the plane, ε per unit of the Euclidean distance.

    ``places`` has shape (n, 2), in any unit; everything else is as in ``aggregated``. The bound
    holds for mechanisms that are private at these places, hence for those that are at all points.
    Raises ProblemError on arrays that do not fit.
    """
    points = np.asarray(places, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ProblemError(f"shape {points.shape} is not (n, 2)", where="places")
    rate = stated_up(parse_exact(epsilon, where="epsilon"))
    costs = nonnegative(cost, "cost", (len(points), np.shape(cost)[-1]))
    return aggregated_by(
        prior, costs, lambda i, j: above(rate, points[i], points[j]), cells, neighbours
    )


def aggregated_by(
    prior: ArrayLike | Prior,
    cost: ArrayLike,
    limits: Blocks,
    cells: ArrayLike,
    neighbours: int | None = 24,
) -> Coarse:
    """The same with ``limits``, floats not below r between places, for index arrays that
    broadcast."""
    costs = np.asarray(cost, dtype=np.float64)
    members = Members.of(prior, cells, len(costs))
    centres = members.representatives
    return _coarse(
        members,
        nonnegative(costs, "cost", costs.shape),
        lambda i, j: limits(i[:, :, None], j[:, None, :]),
        limits(centres[:, None], centres[None, :]),
        neighbours,
    )


def partition(
    places: ArrayLike, prior: ArrayLike | Prior, count: int, members: int = MEMBERS
) -> Ints:
    """Cells for ``aggregated_places``, shape (n,): ``count`` of them, or more where one would have
    more than ``members`` places. They are halved where mass times squared size is largest, which
    the error of the bound follows."""
    points = np.asarray(places, dtype=np.float64)
    mass = _weights(prior, len(points))
    groups = [np.arange(len(points))]
    wanted, most = whole(count, "count", least=1), whole(members, "members", least=1)
    errors = [_error(points, mass, groups[0], most)]
    while True:
        k = int(np.argmax(errors))
        if errors[k] <= 0 or (len(groups) >= wanted and errors[k] < np.inf):
            break
        group = groups[k]
        wide = int(np.argmax(np.ptp(points[group], axis=0)))
        order = group[np.argsort(points[group, wide], kind="stable")]
        middle = 0.5 * (points[order[0], wide] + points[order[-1], wide])
        half = int(np.clip(np.searchsorted(points[order, wide], middle), 1, len(order) - 1))
        groups[k], later = order[:half], order[half:]
        groups.append(later)
        errors[k] = _error(points, mass, groups[k], most)
        errors.append(_error(points, mass, later, most))
    cells = np.empty(len(points), dtype=np.int64)
    for k, group in enumerate(groups):
        cells[group] = k
    return cells


def _error(points: Floats, mass: Floats, group: Ints, most: int) -> float:
    size = float((np.ptp(points[group], axis=0) ** 2).sum())
    return np.inf if len(group) > most and size > 0 else float(mass[group].sum()) * size


@dataclass(frozen=True, eq=False)
class Members:
    """The places with mass of every cell with mass."""

    mass: Floats
    groups: list[Ints]
    labels: Ints

    @classmethod
    def of(cls, prior: ArrayLike | Prior, cells: ArrayLike, count: int) -> Members:
        mass = _weights(prior, count)
        own = np.asarray(cells)
        if own.shape != (count,) or not np.issubdtype(own.dtype, np.integer):
            raise ProblemError(
                f"{own.dtype} of shape {own.shape}",
                where="cells",
                remedy=f"Give {count} whole numbers",
            )
        some = np.flatnonzero(mass)
        order = some[np.argsort(own[some], kind="stable")]
        labels, starts = np.unique(own[order], return_index=True)
        return cls(mass, np.split(order, starts[1:]), labels)

    @property
    def representatives(self) -> Ints:
        """The heaviest member of every cell."""
        return np.array([group[self.mass[group].argmax()] for group in self.groups])

    @property
    def counts(self) -> Ints:
        """Numbers of members."""
        return np.array([len(group) for group in self.groups], dtype=np.int64)

    @property
    def sizes(self) -> Ints:
        """Padded numbers of members."""
        return np.array([-(-len(group) // _PADDED) * _PADDED for group in self.groups])

    def table(self, cells: Ints) -> tuple[Ints, Logs]:
        """Indices of members and ln a^C, shape (k, n), for cells of one padded size; what is added
        has mass 0."""
        size = max(len(self.groups[c]) for c in cells)
        index = np.zeros((len(cells), size), dtype=np.int64)
        mass = np.zeros((len(cells), size))
        for k, c in enumerate(cells):
            group = self.groups[c]
            index[k, : len(group)], mass[k, : len(group)] = group, self.mass[group]
        return index, normalised_logs(mass)


def _coarse(
    members: Members, cost: Floats, blocks: Blocks, apart: Floats, neighbours: int | None
) -> Coarse:
    ratio = ratios_between(members, blocks, near_pairs(apart, neighbours))
    return assembled(members, _costs(members, cost, blocks), ratio)


def assembled(members: Members, least: Floats, ratio: Floats) -> Coarse:
    """The arrays for cells with ``least`` costs (K, O) and ``ratio`` (K, K), given as floats on the
    right sides."""
    exact = [sum(map(Fraction, members.mass[group].tolist())) for group in members.groups]
    prior = normalised(np.array([float(mass) for mass in exact]))
    factor = np.array(
        [rounded_down(mass / Fraction(p)) for mass, p in zip(exact, prior.tolist(), strict=True)]
    )
    return Coarse(prior, np.maximum(down(least * factor[:, None]), 0.0), ratio, members.labels)


def _costs(members: Members, cost: Floats, blocks: Blocks) -> Floats:
    """Floats <= κ(C, o) = 1 / Λ(a, c a), shape (K, O)."""
    out = np.zeros((len(members.groups), cost.shape[1]))
    for cells in together(members.sizes**2 * cost.shape[1], members.sizes[:, None]):
        index, a = members.table(cells)
        ratio = np.maximum(blocks(index, index), 0.0)
        ratio[:, np.arange(index.shape[1]), np.arange(index.shape[1])] = 0.0
        for o in range(cost.shape[1]):
            low, high = log_floats(cost[index, o])
            b = Logs(down(a.low + low), up(a.up + high))
            out[cells, o] = exp_down(-gains(ratio, a, b).upper)
    return out


def near_pairs(apart: Floats, neighbours: int | None) -> NDArray[np.bool_]:
    """Pairs of cells to be looked at, (K, K): each with its nearest, both ways, and ``linked``."""
    count = len(apart)
    if neighbours is None or neighbours >= count - 1:
        return ~np.eye(count, dtype=bool)
    near = np.zeros((count, count), dtype=bool)
    most = whole(neighbours, "neighbours", least=1)
    np.put_along_axis(near, np.argpartition(apart, most, axis=1)[:, : most + 1], True, axis=1)
    near |= near.T
    np.fill_diagonal(near, False)
    return linked(near, apart)


def linked(near: NDArray[np.bool_], apart: Floats) -> NDArray[np.bool_]:
    """``near`` (K, K), both ways, and, where paths over it leave parts, every place with the
    nearest one of each of some parts near its own; places infinitely far ``apart`` (K, K) stay
    so."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    out, before = np.array(near), 0
    parts, part = connected_components(csr_array(out), directed=False)
    while 1 < parts != before:
        order = np.argsort(part, kind="stable")
        starts = np.searchsorted(part[order], np.arange(parts))
        least = np.minimum.reduceat(apart[np.ix_(order, order)], starts, axis=0)
        least = np.minimum.reduceat(least, starts, axis=1)
        np.fill_diagonal(least, np.inf)
        most = min(_LINKS, parts - 1)
        for other in np.argpartition(least, most - 1, axis=1)[part, :most].T:
            away = np.where(part == other[:, None], apart, np.inf)
            own = np.flatnonzero(np.isfinite(away).any(axis=1))
            ends = own, away[own].argmin(axis=1)
            out[ends] = out[ends[::-1]] = True
        before = parts
        parts, part = connected_components(csr_array(out), directed=False)
    return out


def ratios_between(members: Members, blocks: Blocks, near: NDArray[np.bool_]) -> Floats:
    """Floats >= ln Λ: of near pairs the best, of others along paths of them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    first, second = np.nonzero(near)
    found = np.empty(len(first))
    sizes = members.sizes
    shapes = np.stack([sizes[first], sizes[second]], axis=1)
    for part in together(shapes.prod(axis=1), shapes):
        (i, a), (j, b) = members.table(first[part]), members.table(second[part])
        found[part] = np.maximum(gains(blocks(i, j), a, b).upper, 2.0**-60)
    out = np.full(near.shape, np.inf)
    out[first, second] = found
    if not (near | np.eye(len(near), dtype=bool)).all():
        finite = np.isfinite(found)
        edges = (found[finite], (first[finite], second[finite]))
        paths = dijkstra(csr_array(edges, shape=near.shape))
        out = np.minimum(out, up(paths * (1 + 2 * len(near) * _UNIT)))
    np.fill_diagonal(out, 0.0)
    return out


def together(entries: Ints, shapes: Ints) -> Iterator[Ints]:
    """Indices of equal rows of ``shapes``, in parts of not too many ``entries``."""
    for shape in np.unique(shapes, axis=0):
        alike = np.flatnonzero((shapes == shape).all(axis=1))
        step = max(1, _ENTRIES // int(entries[alike[0]]))
        for begin in range(0, len(alike), step):
            yield alike[begin : begin + step]


def _weights(prior: ArrayLike | Prior, count: int) -> Floats:
    if isinstance(prior, Prior):
        return weights(prior.weights, "prior", count)
    return normalised(weights(prior, "prior", count))


def above(rate: float, first: Floats, second: Floats) -> Floats:
    """Floats >= ``rate`` times the Euclidean distance of points (..., 2); two differences, two
    squares, a sum and a root lose less than four units, the product another."""
    apart = np.sqrt(((first - second) ** 2).sum(axis=-1))
    return np.asarray(up(rate * apart * (1 + 16 * _UNIT) + 2.0**-500))
