"""A coarse problem whose optimum is a proved lower bound of a fine one.

The places are partitioned into cells. With a^C the prior within C and Q[C,o] = Σ_s a^C_s P[s,o],
every P that keeps the ratios r gives Q[C,o] <= Λ(a^C, a^C') Q[C',o], and its loss is at least
Σ_C π(C) Σ_o κ(C,o) Q[C,o] where κ(C,o) = 1 / Λ(a^C, c(·,o) a^C) is the least mean cost in C that a
column inside the cone can have. So the coarse problem with these ratios, these costs and all
observables has an optimum that no fine mechanism undercuts. Every number is rounded to the side
that keeps this true; far pairs of cells may have larger ratios than they need, or none (``inf``).
Thousands of observables need costs in closed form: the columns inside a cell lie in a box around a
level of their own, and the least mean cost over a box is found by sorting.
Proofs: docs/theory/populations.md, "Carrying a guarantee over to distributions", and
docs/theory/reductions.md, "Cells and landmarks".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, normalised, slices
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.number import rounded_down
from optmech.exact.rounding import UNIT, down, exp_down, exp_up, log_floats, up
from optmech.spaces.prior import Prior
from optmech.transport.gains import Logs, gains, normalised_logs, together

MEMBERS = 64
"""Of a cell, unless said otherwise: the time for a pair of cells grows with their square."""
_BOXED = 4_000_000
"""Entries that are worked on at a time."""
_LINKS = 8
"""Parts that each part is linked with at first."""
_PADDED = 8
"""Cells with as many members up to this multiple are worked on together."""
_SWEEPS = 40

Limits = Callable[[Ints, Ints], Floats]
"""Floats not below the log ratios r between places, for index arrays that broadcast."""


@record
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


def aggregated(members: Members, neighbours: int | None, *, boxes: bool) -> Coarse:
    """The coarse problem of cells and their members.

    Parameters
    ----------
    neighbours:
        For how many nearest cells of each the exact ratios are found, the others being reached by
        paths over them; all where it is None.
    boxes:
        Whether costs are those in closed form.
    """
    weights = members.prior.weights
    centres = np.array([group[weights[group].argmax()] for group in members.groups])
    near = near_pairs(members.limits(centres[:, None], centres[None, :]), neighbours)
    ratio = _ratios(members, near)
    if boxes:
        least = boxed_costs(members, box_radii(members))
    else:
        least = np.zeros((len(members.groups), members.cost.shape[1]))
        for _, index, own, a, b in members.within():
            least[index] = exp_down(-gains(own, a, b).upper)
    return assembled(members, least, ratio)


def partition(points: Floats, mass: Floats, count: int, members: int = MEMBERS) -> Ints:
    """Cells of ``points`` (n, 2) with weights ``mass``, shape (n,): ``count`` of them, or more
    where one would have more than ``members`` places. They are halved where mass times squared size
    is largest, which the error of the bound follows."""

    def error(group: Ints) -> float:
        size = (np.ptp(points[group], axis=0) ** 2).sum()
        return np.inf if len(group) > members and size > 0 else float(mass[group].sum()) * size

    groups = [np.arange(len(points))]
    errors = [error(groups[0])]
    while True:
        k = np.argmax(errors)
        if errors[k] <= 0 or (len(groups) >= count and errors[k] < np.inf):
            break
        group = groups[k]
        wide = np.argmax(np.ptp(points[group], axis=0))
        order = group[np.argsort(points[group, wide], kind="stable")]
        middle = 0.5 * (points[order[0], wide] + points[order[-1], wide])
        half = np.clip(np.searchsorted(points[order, wide], middle), 1, len(order) - 1)
        groups[k], later = order[:half], order[half:]
        groups.append(later)
        errors[k] = error(groups[k])
        errors.append(error(later))
    cells = np.empty(len(points), dtype=np.int64)
    for cell, group in enumerate(groups):
        cells[group] = cell
    return cells


def grouped(cells: Ints, some: Ints) -> tuple[list[Ints], Ints]:
    """Some places by the cells that they lie in, and these."""
    order = some[np.argsort(cells[some], kind="stable")]
    labels, starts = np.unique(cells[order], return_index=True)
    return np.split(order, starts[1:]), labels


@record
class Members:
    """The places with mass of every cell with mass, and what is known of all places."""

    prior: Prior
    cost: Floats
    """c >= 0, shape (n, O), in any unit."""
    limits: Limits
    """Floats not below what mechanisms keep (ε d rounded up)."""
    groups: list[Ints]
    labels: Ints

    @classmethod
    def of(cls, prior: Prior, cost: Floats, limits: Limits, cells: Ints) -> Members:
        """The members of ``cells``, whole numbers, shape (n,). Raises ProblemError on others."""
        if cells.shape != (len(cost),) or not np.issubdtype(cells.dtype, np.integer):
            raise ProblemError(
                f"{cells.dtype} of shape {cells.shape}",
                where="cells",
                remedy=f"Give {len(cost)} whole numbers",
            )
        return cls(prior, cost, limits, *grouped(cells, np.flatnonzero(prior.weights)))

    @property
    def counts(self) -> Ints:
        """Numbers of members."""
        return np.array([len(group) for group in self.groups], dtype=np.int64)

    @property
    def _sizes(self) -> Ints:
        """Padded numbers of members."""
        return -(-self.counts // _PADDED) * _PADDED

    def _table(self, cells: Ints) -> tuple[Ints, Logs]:
        """Indices of members and ln a^C, shape (k, n), for cells of one padded size; what is added
        has mass 0."""
        size = max(len(self.groups[c]) for c in cells)
        index = np.zeros((len(cells), size), dtype=np.int64)
        mass = np.zeros((len(cells), size))
        for k, c in enumerate(cells):
            group = self.groups[c]
            index[k, : len(group)], mass[k, : len(group)] = group, self.prior.weights[group]
        return index, normalised_logs(mass)

    def between(self, first: Ints, second: Ints) -> Iterator[tuple[Ints, Floats, Logs, Logs]]:
        """Pairs of cells that are worked on together: their numbers, ratios and distributions."""
        shapes = np.stack([self._sizes[first], self._sizes[second]], axis=1)
        for part in together(shapes.prod(axis=1), shapes):
            (i, a), (j, b) = self._table(first[part]), self._table(second[part])
            yield part, self.limits(i[:, :, None], j[:, None, :]), a, b

    def within(self) -> Iterator[tuple[Ints, tuple[Ints, int], Floats, Logs, Logs]]:
        """Cells and an observable that are worked on together, as numbers of plans and as indices
        of costs; ratios inside, the distribution, and the distribution times costs."""
        observables = self.cost.shape[1]
        for cells in together(self._sizes**2 * observables, self._sizes[:, None]):
            index, a = self._table(cells)
            ratio = np.maximum(self.limits(index[:, :, None], index[:, None, :]), 0.0)
            ratio[:, np.arange(index.shape[1]), np.arange(index.shape[1])] = 0.0
            for o in range(observables):
                low, high = log_floats(self.cost[index, o])
                b = Logs(down(a.low + low), up(a.up + high))
                yield cells * observables + o, (cells, o), ratio, a, b


def assembled(members: Members, least: Floats, ratio: Floats) -> Coarse:
    """The arrays for cells with ``least`` costs (K, O) and ``ratio`` (K, K), given as floats on the
    right sides."""
    weights = members.prior.weights
    exact = [sum(map(Fraction, weights[group].tolist())) for group in members.groups]
    mass = normalised(np.array([float(whole) for whole in exact]))
    factor = np.array(
        [rounded_down(whole / Fraction(p)) for whole, p in zip(exact, mass.tolist(), strict=True)]
    )
    cost = np.maximum(down(least * factor[:, None]), 0.0)
    # the masses are divided by their sum, which may be a little below one, and a loss is not
    total = math.nextafter(math.fsum(weights.tolist()), 0.0)
    cost = np.maximum(down(cost * min(total, 1.0)), 0.0)
    return Coarse(mass, cost, ratio, members.labels)


def near_pairs(apart: Floats, neighbours: int | None) -> Bools:
    """Pairs of cells to be looked at, (K, K): each with its nearest, both ways, and ``linked``."""
    count = len(apart)
    if neighbours is None or neighbours >= count - 1:
        return ~np.eye(count, dtype=bool)
    near = np.zeros((count, count), dtype=bool)
    nearest = np.argpartition(apart, neighbours, axis=1)[:, : neighbours + 1]
    np.put_along_axis(near, nearest, True, axis=1)
    near |= near.T
    np.fill_diagonal(near, False)
    return linked(near, apart)


def linked(near: Bools, apart: Floats) -> Bools:
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


def _ratios(members: Members, near: Bools) -> Floats:
    """Floats >= ln Λ: of near pairs the best, of others along paths of them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    first, second = np.nonzero(near)
    found = np.empty(len(first))
    for part, ratio, a, b in members.between(first, second):
        found[part] = np.maximum(gains(ratio, a, b).upper, 2.0**-60)
    out = np.full(near.shape, np.inf)
    out[first, second] = found
    if not (near | np.eye(len(near), dtype=bool)).all():
        finite = np.isfinite(found)
        edges = (found[finite], (first[finite], second[finite]))
        paths = dijkstra(csr_array(edges, shape=near.shape))
        out = np.minimum(out, up(paths * (1 + 2 * len(near) * UNIT)))
    np.fill_diagonal(out, 0.0)
    return out


def radii(ratio: Floats) -> Floats:
    """f >= 0 with f_s + f_t >= r_st for all s, t, small ones: (k,). Every column of the cone is
    then within factors e^{±f_s} of one level."""
    both = np.maximum(ratio, ratio.T)
    np.fill_diagonal(both, 0.0)
    f = np.full(len(both), 0.5 * both.max(initial=0.0))
    for _ in range(_SWEEPS):
        f = np.maximum(0.5 * (f + (both - f).max(axis=1)), 0.0)
    missing = (both - f[:, None] - f).max(initial=0.0)
    # two roundings in the sums above, and two in whoever adds these, of such numbers
    return up(f + 0.5 * missing + 16 * UNIT * both.max(initial=0.0))


def box_radii(members: Members) -> list[Floats]:
    """``radii`` of the members of every cell."""
    return [radii(members.limits(group[:, None], group[None, :])) for group in members.groups]


def boxed_costs(members: Members, boxes: list[Floats]) -> Floats:
    """Floats below the least mean cost of every observable over the columns of every cell, which
    have ``boxes`` f (``radii``).

    Σ a c v / Σ a v over v between e^{-f} and e^f is least where v is e^f for the cheapest and
    e^{-f} for the others: one of as many candidates as there are members. Each is a quotient of
    sums of numbers >= 0, whose rounding is charged. Shape (K, O).
    """
    cost = members.cost
    out = np.empty((len(members.groups), cost.shape[1]))
    for k, group in enumerate(members.groups):
        f = boxes[k]
        weight = members.prior.weights[group]
        high, low = weight * exp_up(f), weight * exp_down(-f)
        for part in slices(cost.shape[1], len(group), _BOXED):
            own = cost[group, part]
            order = np.argsort(own, axis=0)
            own = np.take_along_axis(own, order, axis=0)
            with np.errstate(all="ignore"):
                over = _cheapest_high(own * high[order], own * low[order])
                under = _cheapest_high(high[order], low[order])
                found = over / under
            # where a sum overflows or vanishes the cheapest member still is below every mean
            out[k, part] = np.where(np.isfinite(found), found, own[0]).min(axis=0)
        out[k] *= 1 - (4 * len(group) + 64) * UNIT
    return np.maximum(out, 0.0)


def _cheapest_high(high: Floats, low: Floats) -> Floats:
    """Σ of the first q ``high`` and of the other ``low``, q = 0 to k, (k + 1, O)."""
    none = np.zeros((1, high.shape[1]))
    before = np.vstack([none, np.cumsum(high, axis=0)])
    after = np.vstack([np.cumsum(low[::-1], axis=0)[::-1], none])
    return before + after


def above(rate: float, first: Floats, second: Floats) -> Floats:
    """Floats >= ``rate`` times the Euclidean distance of points (..., 2); two differences, two
    squares, a sum and a root lose less than four units, the product another."""
    apart = np.sqrt(((first - second) ** 2).sum(axis=-1))
    return up(rate * apart * (1 + 16 * UNIT) + 2.0**-500)
