"""Which pair rows a block holds: short pairs of the cone from the start, long ones when they bite;
and what the Newton iteration asks of the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

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

RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
"""What is added to a unit diagonal, one after the other, until a block can be factored."""
Both = tuple[float, float]
"""A number for slacks, and one for multipliers."""
NOTHING: Bools = np.zeros((0, 0), dtype=bool)
"""``wanted`` of inverses where factors are all that is."""
Affine = tuple[float, float, tuple[float, ...]]
"""A predictor: largest -ds/s and -dz/z, and the sums of s z, s dz, ds z and ds dz."""

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


@record
class Schur:
    """Σ_o A_o H_o⁻¹ A_oᵀ: over row sums (m, m), coupling rows by row sums (N, m),
    coupling rows (N, N)."""

    sums: Floats
    mixed: Floats
    coupling: Floats


class Backend(Protocol):
    """Work on all blocks. Arrays over variables are (blocks, m + 1) with a last column of zeros."""

    correctors: tuple[int, float]
    """Most correctors in an iteration, and the gain in step length below which no more follow:
    they pay where solving costs far less than factoring."""
    parts: bool
    """Whether it makes parts of inverses, with which row sums are iterated on."""
    threads: int
    """How many work at once."""

    def structure(self, rows: Rows, changed: Ints) -> None:
        """Prepare for the rows, which what follows is about; ``changed`` are the blocks whose pairs
        are new."""

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        """Factor every H_o of the rows, or of the same pairs with other values, which what follows
        is about then; None when a block cannot be. Of the inverses the entries between ``wanted``
        variables (blocks, m) will do."""

    def solve(self, B: Floats) -> None:
        """B[o, q] <- H_o⁻¹ B[o, q] in place, B of shape (blocks, q, m + 1)."""

    def affine_rhs(self, P: Floats, rd: Floats, B: Floats) -> None:
        """B = Gᵀ((-s z - z·residual)/s) - rd."""

    def corrector_rhs(self, weights: Both | None, mu: float, B: Floats) -> None:
        """B = Gᵀ(T/s) with the ``target`` T of a corrector, which is kept in ds2: of the first one,
        or of one after the last was added to the direction with ``weights``."""

    def affine_step(self, P: Floats, dP: Floats) -> Affine:
        """ds, dz from dP."""

    def corrector_step(self, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """ds2, dz2 from dP; per weight w the largest -(ds + w ds2)/s and the same of z."""

    def move(self, weights: Both, step: Both) -> None:
        """s += step·(ds + weight·ds2), and the same for z."""

    def violations(self, P: Floats, level: float) -> tuple[Ints, Ints]:
        """Worst later pair above ``level`` that is not among the rows, for every (block, i) and
        every (block, j), or -1."""

    def majorant(self, P: Floats) -> Floats:
        """The least majorant of every block in the cone."""

    def charge(self, z: Floats, R: Floats) -> None:
        """Subtract Gᵀz from R."""

    def shifted(self, z: Floats, x: Floats) -> Floats:
        """max(0, z + (rows.z/rows.s) G x)."""

    def drain(self, z: Floats, rd: Floats, sweeps: int) -> Floats:
        """Multipliers <= z with which negative reduced costs have gone upstream."""


def target(
    at: tuple[Any, Any], change: tuple[Any, Any], mu: float, first: bool, xp: Any = np
) -> Any:
    """By how much a corrector is to move products s z, arrays of the namespace ``xp``, beside what
    s, z and their changes do to first order: the ``first`` one to mu, the others only towards
    [mu/10, 10 mu] where full steps would lead elsewhere (``gondzio``)."""
    if first:
        return mu - change[0] * change[1]
    return gondzio((at[0] + change[0]) * (at[1] + change[1]), mu, xp)


def gondzio(product: Any, mu: float, xp: Any = np) -> Any:
    """How far products s z, arrays of the namespace ``xp``, are to be moved towards
    [mu/10, 10 mu], and down by no more than 10 mu (Gondzio, 1996)."""
    return xp.clip(xp.clip(product, 0.1 * mu, 10 * mu) - product, -10 * mu, None)
