"""What the compiled work on blocks takes. Called with t and nt, kernels do the blocks ``t, t + nt,
...``; ``native/`` has them in C and says what each does and how factors lie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Floats, Ints
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


def partition(blocks: Ints, rows: PairRows, first: Ints, panels: Panels) -> Work:
    """Pick the order and the panels of some blocks; ``first`` (orders,) are sizes of first ones."""
    return work("partition", len(blocks), blocks, rows, first, panels.struct)


def pattern(blocks: Ints, rows: PairRows, sparse: SparseFactors, *, known: bool = False) -> Work:
    """The elimination trees and the sizes of columns of some blocks, or, where these are
    ``known``, the rows of every column."""
    return work("pattern", len(blocks), blocks, rows, sparse.struct, known)
