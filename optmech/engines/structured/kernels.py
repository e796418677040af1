"""The compiled work on blocks: what kernels take, and what each of them does.

Every function returns a kernel with its arguments, for ``Workers``: called with t and nt it does
the blocks ``t, t + nt, ...``. ``native/`` has them in C; ``panels.h`` and ``sparse.h`` there say
how factors lie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.native import Struct, Work, work
from optmech.engines.structured.rows import Rows, Short

ABREAST = 8
"""Blocks of one pattern that are solved for at once, entry by entry: a vector of numbers."""


class PairRows(Struct):
    """The rows as kernels are given them."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(vars(rows).values(), len(rows.offset) - 1)
        self.count = len(rows)


class Panels(NamedTuple):
    """How every block is ordered and cut into panels."""

    position: Ints
    """(orders, m): the place of every variable, in every order that may be chosen."""
    order: Ints
    """(blocks,): the order that the block has."""
    number: Ints
    """(blocks,): how many panels it has."""
    ends: Ints
    """(blocks, m + 2): where they end, from 0 on; the last end stands twice."""
    size: Ints
    """(blocks,): entries that they take."""

    @classmethod
    def free(cls, position: Ints, blocks: int) -> Panels:
        """Room for the panels of some blocks."""
        ends = np.zeros((blocks, position.shape[1] + 2), dtype=np.int64)
        order, number, size = (np.zeros(blocks, dtype=np.int64) for _ in range(3))
        return cls(position, order, number, ends, size)

    @property
    def struct(self) -> Struct:
        """As kernels are given it."""
        return Struct(self, *self.position.shape)


class Factors(NamedTuple):
    """The packed matrices of all blocks, one after the other."""

    base: Ints
    """(blocks + 1,): where each begins in ``store``."""
    store: Floats
    scale: Floats
    """(blocks, m): what rows and columns were multiplied by, 0 for variables without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""

    @property
    def struct(self) -> Struct:
        """As kernels are given it."""
        return Struct(self, len(self.ridge))


class Totals(NamedTuple):
    """What every part adds up over its blocks (see ``rows.Schur``), the first dimension; and the
    coupling rows: row l has value[l, o] at variable[l] of block o, variable m is none."""

    sums: Floats
    """(parts, orders, m, m): inverses, lower triangles, in the places of every order."""
    mixed: Floats
    """(parts, N, m)."""
    coupling: Floats
    """(parts, N, N)."""
    inverse: Floats
    """(parts, m, m): a block's whole inverse, where there are coupling rows."""
    variable: Ints
    value: Floats

    @property
    def struct(self) -> Struct:
        """As kernels are given it."""
        return Struct(self, len(self.variable))


class SparseFactors(NamedTuple):
    """The sparse factors of all blocks."""

    position: Ints
    """(blocks, m): the place of every variable."""
    parent: Short
    """(blocks, m): the elimination tree, -1 at its roots."""
    column: Ints
    """(blocks, m + 1): where columns begin, from 0 on."""
    base: Ints
    """(blocks + 1,): where each block begins in ``row`` and ``value``."""
    row: Short
    value: Floats
    scale: Floats
    """(blocks, m), in places: what rows and columns were multiplied by, 0 without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""

    @property
    def struct(self) -> Struct:
        """As kernels are given it."""
        return Struct(self, *self.parent.shape)


def affine_rhs(rows: PairRows, P: Floats, rd: Floats, B: Floats) -> Work:
    """B = Gᵀ(-z - z·(slack residual)/s) - rd."""
    return work("affine_rhs", rows, P.shape[1], P, rd, B)


def corrector_rhs(
    rows: PairRows, weights: tuple[float, float] | None, mu: float, B: Floats
) -> Work:
    """B = Gᵀ(T/s) with T = mu - ds dz for the first corrector, that without ``weights``. Else the
    last one is taken into the direction with these, and T is Gondzio's. T is kept in ds2."""
    wp, wd = weights or (0.0, 0.0)
    return work("corrector_rhs", rows, B.shape[1], weights is None, wp, wd, mu, B)


def affine_step(rows: PairRows, P: Floats, dP: Floats, stats: Floats) -> Work:
    """ds, dz from dP; stats[t] = largest -ds/s, -dz/z, and the sums s z, s dz, ds z, ds dz."""
    return work("affine_step", rows, P.shape[1], P, dP, stats)


def corrector_step(
    rows: PairRows, dP: Floats, weights: Floats, primal: Floats, dual: Floats
) -> Work:
    """ds2, dz2 from dP; primal[t, q], dual[t, q] = largest -(d + weight_q d2)/value."""
    return work("corrector_step", rows, dP.shape[1], dP, len(weights), weights, primal, dual)


def move(rows: PairRows, weights: tuple[float, float], step: tuple[float, float]) -> Work:
    """A step along the direction with the last corrector's weights."""
    return work("move", rows, *weights, *step)


def violations(
    rows: PairRows, decay: NDArray[np.float32], P: Floats, level: float, by_i: Ints, by_j: Ints
) -> Work:
    """Of the pairs that a block does not hold, the one with the largest v_i e^-r / v_j above
    ``level``, for every (block, i): by_i, and every (block, j): by_j; -1 where there is none."""
    return work("violations", rows, P.shape[1], decay, P, level, by_i, by_j)


def majorant(decay: Floats, P: Floats, out: Floats) -> Work:
    """out_i = max_j decay_ij v_j in every block."""
    return work("majorant", *P.shape, decay, P, out)


def raised(start: Ints, other: Ints, decay: Floats, P: Floats, out: Floats) -> Work:
    """The least columns >= P with out_j >= decay out_i for all pairs i, j: ``other`` and ``decay``
    of the pairs of i are those from start[i] on."""
    return work("raised", *P.shape, start, other, decay, P, out)


def charge(rows: PairRows, z: Floats, R: Floats) -> Work:
    """R -= Gᵀz."""
    return work("charge", rows, R.shape[1], z, R)


def shifted(rows: PairRows, base: Floats, x: Floats, out: Floats) -> Work:
    """out = max(0, base + (z/s) G x)."""
    return work("shifted", rows, x.shape[1], base, x, out)


def drain(rows: PairRows, z: Floats, rd: Floats, sweeps: int, out: Floats) -> Work:
    """Lower multipliers where the reduced cost is negative: ``out`` are multipliers <= z."""
    return work("drain", rows, rd.shape[1], z, rd, sweeps, out)


def partition(blocks: Ints, rows: PairRows, first: Ints, panels: Panels) -> Work:
    """Pick the order and the panels of some blocks by the cost of factoring; ``first`` (orders,)
    are sizes of first panels."""
    return work("partition", len(blocks), blocks, rows, first, panels.struct)


def factor(rows: PairRows, panels: Panels, factors: Factors, alone: bool, totals: Totals) -> Work:
    """Factor every block and, unless ``alone``, add up its inverse in ``totals``."""
    return work("factor", rows, panels.struct, factors.struct, alone, totals.struct)


def solve(panels: Panels, factors: Factors, B: Floats) -> Work:
    """B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries."""
    return work("solve", panels.struct, factors.struct, B.shape[1], B)


def price(
    rows: PairRows, panels: Panels, chosen: Ints, cost: Floats, goal: float, centre: float,
    v: Floats, left: Floats, value: Floats,
) -> Work:  # fmt: skip
    """Move the columns v (blocks, m + 1) of the ``chosen`` blocks, and their slacks and multipliers
    in ``rows``, until multipliers leave c - Gᵀz >= -goal or the price ``value`` (blocks,) is known.
    ``cost`` is (blocks, m + 1), ``left`` (blocks, m) what multipliers leave of it. With a
    ``centre`` above zero, until all products of slacks and multipliers are near it."""
    given = len(chosen), chosen, cost, goal, centre, v, left, value
    return work("price", rows, panels.struct, *given)


def pattern(blocks: Ints, rows: PairRows, sparse: SparseFactors, known: bool) -> Work:
    """The elimination trees and the sizes of columns of some blocks (Liu 1990), or, where these are
    ``known``, the rows of every column."""
    return work("pattern", len(blocks), blocks, rows, sparse.struct, known)


def sparse_factor(
    rows: PairRows, sparse: SparseFactors, wanted: Bools, total: Floats, diagonal: Floats
) -> Work:
    """Factor every block; where ``total`` is not empty, add the inverses' entries between the
    variables that a block has in ``wanted`` (blocks, m) to ``total[t // 2]``: to the lower triangle
    of even t and the upper one of odd t, and to ``diagonal[t]``."""
    return work("sparse_factor", rows, sparse.struct, wanted, diagonal.shape[1], total, diagonal)


def sparse_solve(sparse: SparseFactors, B: Floats) -> Work:
    """B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries."""
    return work("sparse_solve", sparse.struct, B.shape[1], B)


def covariances(rows: PairRows, sparse: SparseFactors, entries: Floats) -> Work:
    """Add the entries of every block's inverse within the pattern of its factor, which is the first
    one's for all, to ``entries[t]``; nan where a block cannot be factored."""
    return work("covariances", rows, sparse.struct, entries)


def regressed(column: Ints, row: Short, covariance: Floats, weight: Floats, spread: Floats) -> Work:
    """For every column k of a pattern the weights of its other rows that predict variable k best,
    of what has the covariances ``covariance`` within the pattern, and the spread that is left."""
    return work("regressed", len(spread), column, row, covariance, weight, spread)


Numbers = NDArray[np.float32] | Floats


def _label(value: Numbers) -> str:
    return "double" if value.dtype == np.float64 else "float"


def beside(sparse: SparseFactors, value: Numbers, scale: Floats) -> Work:
    """The factors and scales of all blocks, of one pattern, eight blocks next to each other: value
    (groups, size, 8) and scale (groups, m, 8), which stay as they are after the last block.
    Diagonals are inverted."""
    return work(f"beside_{_label(value)}", sparse.struct, *value.shape[:2], value, scale)


def summed(
    column: Ints, row: Short, value: Numbers, scale: Floats, y: Floats, sums: Floats
) -> Work:
    """Add H_o⁻¹ y of every block to ``sums[t]``, both (m,) in the order of one pattern; factors as
    ``beside`` lays them out."""
    given = len(y), column, row, *value.shape[:2], value, scale, y, sums
    return work(f"summed_{_label(value)}", *given)
