"""What compiled kernels are given: named tuples of arrays, which numba takes apart at no cost.

A block's matrix H = Gᵀ diag(z/s) G is scaled to unit diagonal and factored as block tridiagonal.
With the variables in a good order, panel k + 1 ends where the neighbours of panel k end, so nothing
lies outside the three diagonals, long pairs included. Of the symmetric matrix two parts per panel
are stored, and factored in place:

            ends[0]  ends[1]   ends[2] ends[3] = m
    ends[0]    +--------+---------+-------+
               |  D_0   |   B_0   |       |      D_k -> L_k            L_k L_kᵀ = D_k - W_k-1ᵀ W_k-1
    ends[1]    +--------+---------+-------+      B_k -> W_k = L_k⁻¹ B_k
               |        |   D_1   |  B_1  |
    ends[2]    +--------+---------+-------+      D_k and L_k are lower triangles in squares
               |        |         |  D_2  |
    ends[3]    +--------+---------+-------+

    entries    | D_0 | B_0 | D_1 | B_1 | D_2 |   every part column major
               ^           ^           ^
            start[0]    start[1]    start[2]
"""

from __future__ import annotations

from typing import NamedTuple

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.pairs import Indices


class PairRows(NamedTuple):
    """The pair rows s = e v_j - v_i with multipliers z; those of block o are offset[o] up to
    offset[o + 1] (see ``pairs.Rows``)."""

    offset: Ints
    i: Indices
    j: Indices
    e: Floats
    s: Floats
    z: Floats


class Directions(NamedTuple):
    """Changes of the rows' slacks and multipliers, and of the corrector under way."""

    ds: Floats
    dz: Floats
    ds2: Floats
    dz2: Floats


class Panels(NamedTuple):
    """How every block is ordered and cut into panels."""

    position: Ints
    """(orders, m): the place of every variable, in every order that may be chosen."""
    order: Ints
    """(blocks,): the order that the block has."""
    number: Ints
    """(blocks,): how many panels it has."""
    ends: Ints
    """(blocks, m + 2): where they end, from 0 on."""
    size: Ints
    """(blocks,): entries that they take."""


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


class SparseFactors(NamedTuple):
    """The factors of all blocks as ``sparse`` has them."""

    position: Ints
    """(blocks, m): the place of every variable."""
    parent: Indices
    """(blocks, m): the elimination tree, -1 at its roots."""
    column: Ints
    """(blocks, m + 1): where columns begin, from 0 on."""
    base: Ints
    """(blocks + 1,): where each block begins in ``row`` and ``value``."""
    row: Indices
    value: Floats
    scale: Floats
    """(blocks, m), in places: what rows and columns were multiplied by, 0 without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""


class CouplingEntries(NamedTuple):
    """Row l across blocks has value[l, o] at variable[l] of block o; variable m is none."""

    variable: Ints
    value: Floats


class Totals(NamedTuple):
    """What every thread adds up over its blocks (see ``backend.Schur``), the first dimension."""

    sums: Floats
    """(threads, orders, m, m): inverses, lower triangles, in the places of every order."""
    mixed: Floats
    """(threads, N, m)."""
    coupling: Floats
    """(threads, N, N)."""
    inverse: Floats
    """(threads, m, m): a block's whole inverse, where there are coupling rows."""


class Block(NamedTuple):
    """One block's matrix, as in the figure."""

    entries: Floats
    position: Ints
    ends: Ints
    panels: int
    start: Ints
    scale: Floats
