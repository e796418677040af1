"""Which rows a block holds: short pairs of the cone from the start, long ones when they bite; few
of those beyond pairs (distortion, lifted ratios, loss limits), more when nearly violated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Bools, Floats, Ints, begins
from optmech.base.minplus import filled, near_detour, shortest_paths, steps_are_shortest
from optmech.base.read_only import record
from optmech.engines.structured.model import Model
from optmech.engines.structured.tuning import TUNING

Short = NDArray[np.int32]
Pairs = tuple[Ints, Ints, Ints]
"""Blocks, i and j."""

_IMPLIED = 1 + 1e-12
_AT_A_TIME = 2**20
"""Pairs that are looked at together: what is made for each takes memory."""
_MANY = 1_200
"""Variables from which on an eigenvalue is found by iteration."""


@dataclass(eq=False)
class Rows:
    """The pair rows of all blocks, block after block: s = e v_j - v_i >= 0 with multiplier z.

    Index m stands for the constant zero: i = m, e = 1 is the row v_j >= 0. ``ds``, ``dz`` are the
    direction, ``ds2``, ``dz2`` the corrector under way.
    """

    offset: Ints
    i: Short
    j: Short
    e: Floats
    s: Floats
    z: Floats

    def __post_init__(self) -> None:
        self.ds, self.dz, self.ds2, self.dz2 = (np.empty(len(self.s)) for _ in range(4))

    def __len__(self) -> int:
        return len(self.s)

    @property
    def fields(self) -> tuple[Any, ...]:
        """i, j, e, s and z."""
        return self.i, self.j, self.e, self.s, self.z

    def pick(self, offset: Ints, own: Ints) -> Rows:
        """Some of the rows, those of every block together."""
        return Rows(offset, *(part[own] for part in self.fields))

    @property
    def block(self) -> Ints:
        """The block of every row."""
        return np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))

    def ends(self, P: Floats) -> tuple[Floats, Floats]:
        """v_i and v_j of every row, of columns P (blocks, m + 1)."""
        flat, first = P.ravel(), self.block * P.shape[1]
        return flat[first + self.i], flat[first + self.j]


@record
class Cone:
    """The common cone of all blocks."""

    ratio: Floats
    """(m, m): r; inf where there is no pair."""
    decay: Floats
    """(m, m): v_i >= decay_ij v_j; from the shortest path over pairs from j to i."""
    short: Bools
    later: NDArray[np.float32]
    """(m, m): e^-r of the pairs that may be added, 0 elsewhere: good enough to look for them."""

    def e(self, i: Ints, j: Ints) -> Floats:
        """e^r of pairs."""
        return np.exp(self.ratio[i, j])

    def least_constant(self, q: Floats) -> float:
        """The least t for which t - q, of q (m,) in the cone, is in the cone as far as pairs go."""
        least, step = 0.0, max(1, _AT_A_TIME // len(q))
        for begin in range(0, len(q), step):
            e = np.exp(self.ratio[begin : begin + step])
            with np.errstate(invalid="ignore"):
                needed = (e * q - q[begin : begin + step, None]) / (e - 1)
            least = max(least, float(needed[np.isfinite(e)].max(initial=0.0)))
        return least


def make_cone(model: Model) -> Cone:
    """Sort the pairs into short, implied and the rest."""
    ratio = model.ratio
    shorter = near_detour(ratio)
    present = np.isfinite(ratio)
    needed = present & (shorter > ratio * _IMPLIED)
    few = len(ratio) <= TUNING.most_neighbours
    short = needed if few else _limited(ratio, needed & (shorter > ratio * TUNING.stretch))
    del shorter, present
    path = filled(ratio) if steps_are_shortest(ratio) else shortest_paths(ratio)
    np.fill_diagonal(path, 0.0)
    decay = np.ascontiguousarray(path.T)
    del path
    np.negative(decay, out=decay)
    np.exp(decay, out=decay)
    later = np.zeros(ratio.shape, dtype=np.float32)
    for own, to, added in zip(ratio, later, needed & ~short, strict=True):
        to[added] = np.exp(-own[added])
    return Cone(ratio, decay, short, later)


def _limited(ratio: Floats, chosen: Bools) -> Bools:
    """At most ``most_neighbours`` of every variable, the closest (ties: those next in number)."""
    count = len(ratio)
    if chosen.sum(axis=1).max(initial=0) <= TUNING.most_neighbours:
        return chosen
    index = np.arange(count)
    away = np.abs(index[:, None] - index)
    order = np.lexsort((np.minimum(away, count - away), np.where(chosen, ratio, np.inf)), axis=1)
    kept = np.zeros_like(chosen)
    np.put_along_axis(kept, order[:, : TUNING.most_neighbours], True, axis=1)
    kept &= chosen
    return kept | (kept.T & np.isfinite(ratio))


def first_rows(model: Model, cone: Cone) -> Rows:
    """Short pairs in every block, and v >= 0 where no two pairs opposite to each other imply it."""
    i, j = np.nonzero(cone.short)
    m = model.variables
    single = bare(cone)
    i = np.concatenate([i, np.full(len(single), m)])
    j = np.concatenate([j, single])
    if model.allowed.all():
        count, blocks = len(i), model.blocks
        offset = np.arange(blocks + 1) * count
        i, j = np.tile(i, blocks), np.tile(j, blocks)
    else:
        offset, i, j = _with_zeros(model, i, j)
    e = np.ones(len(i))
    pairs = i < m
    e[pairs] = cone.e(i[pairs], j[pairs])
    return Rows(offset, i.astype(np.int32), j.astype(np.int32), e, np.ones(len(i)), np.ones(len(i)))


def bare(cone: Cone) -> Ints:
    """Variables that need their own row v >= 0. All of them where the short pairs form a
    bipartite graph, whose degree matrix, needed for the start, is singular."""
    both = cone.short & cone.short.T
    return np.flatnonzero(~both.any(axis=1)) if _regular(both) else np.arange(len(both))


def _regular(adjacent: Bools) -> bool:
    """Whether degree + adjacency is safely positive definite on the variables with neighbours."""
    degrees = adjacent.sum(axis=1)
    inside = degrees > 0
    if not inside.any():
        return True
    half = sp.diags_array(1 / np.sqrt(degrees[inside]))
    near = half @ sp.csr_array(adjacent[np.ix_(inside, inside)].astype(np.float64)) @ half
    if near.shape[0] > _MANY:
        from scipy.sparse.linalg import eigsh

        first = np.random.default_rng(0).standard_normal(near.shape[0])
        least = eigsh(near, k=1, which="SA", v0=first, tol=1e-4)[0]
    else:
        least = np.linalg.eigvalsh(near.toarray())
    return bool(least[0] > -1 + 1e-3)


def _with_zeros(model: Model, i: Ints, j: Ints) -> tuple[Ints, Ints, Ints]:
    """The rows of every block over its variables that are not fixed at zero."""
    m, parts = model.variables, []
    for allowed in model.allowed:
        free = np.append(allowed, False)
        # v_j >= 0 remains of a pair whose smaller side is fixed, and a fixed j leaves nothing
        kept = free[j] & (free[i] | (i == m))
        own = np.setdiff1d(j[free[j] & ~free[i]], j[kept & (i == m)])
        parts.append((np.append(i[kept], np.full(len(own), m)), np.append(j[kept], own)))
    all_i, all_j = map(np.concatenate, zip(*parts, strict=True))
    return begins([len(own) for own, _ in parts]), all_i, all_j


def add_rows(rows: Rows, cone: Cone, P: Floats, pairs: Pairs, mu: float | Floats) -> Rows:
    """``rows`` with ``pairs`` added, near the central path of ``mu`` (of each).

    A pair may enter violated: its slack starts at a tenth of v_i and the difference is carried
    as a residual.
    """
    block, i, j = pairs
    m = P.shape[1] - 1
    e = cone.e(i, j)
    smaller = P[block, i]
    s = np.maximum(e * P[block, j] - smaller, 0.1 * smaller)
    scale = _largest_at(rows, block * P.shape[1] + i, P.size)
    z = np.minimum(mu / s, np.where(scale > 0, scale, np.inf))
    assert (i < m).all()
    fresh = begins(np.bincount(block, minlength=len(P)))

    at = rows.offset[1:][block]
    more = zip(rows.fields, (i, j, e, s, z), strict=True)
    return Rows(rows.offset + fresh, *(np.insert(part, at, new) for part, new in more))


def _largest_at(rows: Rows, places: Ints, size: int) -> Floats:
    """The largest z among the rows whose smaller side is at each of the places, numbers in all
    blocks of m + 1 variables; 0 where there is none."""
    wanted = np.zeros(size, dtype=bool)
    wanted[places] = True
    own = rows.block * (size // (len(rows.offset) - 1)) + rows.i
    some = np.flatnonzero(wanted[own])
    largest = np.zeros(size)
    np.maximum.at(largest, own[some], rows.z[some])
    return largest[places]


def worst(by_i: Ints, by_j: Ints) -> Pairs:
    """The pairs that ``Backend.violations`` found, each once, sorted by block."""
    block, i = np.nonzero(by_i >= 0)
    other, j = np.nonzero(by_j >= 0)
    found = np.hstack([(block, i, by_i[block, i]), (other, by_j[other, j], j)])
    return distinct(by_i.shape[1], *found)


def distinct(width: int, block: Ints, i: Ints, j: Ints) -> Pairs:
    """The pairs, each once, sorted by block."""
    pair, j = np.divmod(np.unique((block * width + i) * width + j), width)
    return *np.divmod(pair, width), j


@dataclass(eq=False)
class DenseRows:
    """Rows Q v + B a - u = 0, u >= 0, with multipliers lam; empty places have ``live`` False,
    zeros in Q, B and lam, and u = 1.

    ``index`` (blocks, K) numbers the pool's rows; -1 - k is the k-th loss limit.
    """

    index: Ints
    live: Bools
    Q: Floats
    B: Floats
    u: Floats
    lam: Floats

    @property
    def count(self) -> int:
        """Number of live rows."""
        return int(self.live.sum())

    @property
    def divisor(self) -> Floats:
        """lam, and one in empty places."""
        return np.where(self.live, self.lam, 1.0)

    def values(self, P: Floats, a: Floats) -> Floats:
        """Q v + B a, (blocks, K)."""
        return (self.Q @ P[:, :, None] + self.B @ a[:, :, None])[:, :, 0]

    def on_variables(self) -> Floats:
        """Qᵀ lam, (blocks, m + 1)."""
        return (self.lam[:, None, :] @ self.Q)[:, 0]

    def on_auxiliaries(self) -> Floats:
        """Bᵀ lam, (blocks, p)."""
        return (self.lam[:, None, :] @ self.B)[:, 0]


def first_dense(model: Model, cone: Cone) -> DenseRows:
    """The loss limits, and of every auxiliary's rows those that a column concentrated where the
    block is cheap would meet first, and the one that a constant column meets first."""
    blocks, m = model.blocks, model.variables
    near = _slack_share(model, _typical(model, cone), np.zeros((blocks, model.sides.shape[1])))
    flat = model.pool @ np.ones(m + 1)
    chosen: list[Ints] = []
    # the rows of every auxiliary, and those without one
    groups = [*model.sides.T.astype(bool), ~model.sides.any(axis=1)]
    for group in filter(len, map(np.flatnonzero, groups)):
        few = len(group) if len(group) <= TUNING.dense_whole else TUNING.dense_at_first
        order = group[np.argsort(near[:, group], axis=1, kind="stable")[:, :few]]
        best = group[flat[group].argmin()]
        missing = ~(order == best).any(axis=1)
        order[missing, -1] = best
        chosen.append(order)
    limits = -1 - np.tile(np.arange(len(model.limits)), (blocks, 1))
    index = np.hstack([*chosen, limits]) if chosen else limits
    return make_dense(model, index.astype(np.int64))


def _typical(model: Model, cone: Cone) -> Floats:
    """A column per block that is largest where the block's loss is relatively least."""
    cost = model.cost[:, :-1] if model.cost.any() else model.limits[:, :, :-1].sum(axis=0)
    relative = cost / np.maximum(cost.max(axis=0), 1e-300)
    centre = relative.argmin(axis=1)
    column = np.zeros((model.blocks, model.variables + 1))
    column[:, :-1] = cone.decay[:, centre].T
    return column


def _slack_share(model: Model, P: Floats, a: Floats) -> Floats:
    """Slack of every pool row relative to its negative side, (blocks, R)."""
    negative = P @ np.maximum(-model.pool, 0).T + np.maximum(-a @ model.sides.T, 0)
    slack = P @ model.pool.T + a @ model.sides.T
    scale = np.where(negative > 0, negative, 1.0)
    return slack / scale


def make_dense(model: Model, index: Ints) -> DenseRows:
    """Coefficients for given row numbers (blocks, K)."""
    blocks, places = index.shape
    width = model.variables + 1
    pool = np.vstack([model.pool, np.zeros((1, width))])
    sides = np.vstack([model.sides, np.zeros((1, model.sides.shape[1]))])
    empty = len(model.pool)
    limits = len(model.limits)
    live = index != -1 - limits
    number = np.where(index >= 0, index, empty)
    Q, B = pool[number], sides[number]
    for k in range(limits):
        block, place = np.nonzero(index == -1 - k)
        Q[block, place] = -model.limits[k, block]
        B[block, place, model.lp.auxiliary + k] = 1.0
    zero = np.zeros((blocks, places))
    return DenseRows(index, live, Q, B, zero + 1.0, zero)


def add_dense(dense: DenseRows, model: Model, P: Floats, a: Floats, mu: float) -> DenseRows:
    """``dense`` with the worst nearly violated rows of every block; the same object if none."""
    if not len(model.pool):
        return dense
    share = _slack_share(model, P, a)
    block, place = np.nonzero(dense.index >= 0)
    share[block, dense.index[block, place]] = np.inf
    order = np.argsort(share, axis=1, kind="stable")[:, : TUNING.dense_at_a_time]
    wanted = np.take_along_axis(share, order, axis=1) < TUNING.dense_near
    if not wanted.any():
        return dense
    empty = -1 - len(model.limits)
    index = np.hstack([dense.index, np.where(wanted, order, empty)])
    index, u, lam = _packed(index, dense, empty)
    grown = make_dense(model, index)
    fresh = grown.live & np.isnan(u)
    slack = grown.values(P, a)
    floor = 0.01 * (np.maximum(-grown.Q, 0) @ P[:, :, None])[:, :, 0]
    floor += 0.01 * np.maximum(-(grown.B @ a[:, :, None])[:, :, 0], 0)
    grown.u = np.where(fresh, np.maximum(slack, np.maximum(floor, 1e-300)), u)
    grown.u[~grown.live] = 1.0
    largest = np.max(lam, axis=1, keepdims=True, initial=0.0, where=~np.isnan(lam))
    ceiling = np.where(largest > 0, largest, np.inf)
    grown.lam = np.where(fresh, np.minimum(mu / grown.u, ceiling), lam)
    grown.lam[~grown.live] = 0.0
    return grown


def _packed(index: Ints, dense: DenseRows, empty: int) -> tuple[Ints, Floats, Floats]:
    """Live places first and the columns that no block needs dropped; NaN where nothing is known."""
    unknown = np.full((len(index), index.shape[1] - dense.index.shape[1]), np.nan)
    u, lam = np.hstack([dense.u, unknown]), np.hstack([dense.lam, unknown])
    order = np.argsort(index == empty, axis=1, kind="stable")
    places = int((index != empty).sum(axis=1).max())
    index, u, lam = (np.take_along_axis(x, order, axis=1)[:, :places] for x in (index, u, lam))
    return index, u, lam
