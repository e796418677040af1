"""Whether A x = b has a solution x >= 0, decided in rationals, with a witness either way.

A solution, or y with yA <= 0 < yb (Farkas). Where a float solution is at hand its support is tried
first; what it leaves open is decided by the simplex method in whole numbers (Edmonds), with Bland's
rule, which ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optmech.errors import TooLargeError

Matrix = Sequence[Sequence[Fraction]]
_MOST_ENTRIES = 60_000
"""Entries of a tableau in whole numbers: seconds, not minutes."""
_MOST_SUPPORT = 400
"""Unknowns of an exact elimination."""


@dataclass(frozen=True)
class Decided:
    """Exactly one of the two is there."""

    solution: list[Fraction] | None
    farkas: list[Fraction] | None


def nonnegative_solution(
    matrix: Matrix,
    wanted: Sequence[Fraction],
    likely: Sequence[int],
    *,
    where: str,
) -> Decided:
    """Decide A x = b, x >= 0 for a matrix of shape (m, n); ``likely`` are indices of x that a float
    solution has positive.

    Raises
    ------
    TooLargeError
        When the support that is likely does not do it, and the program is too large for the rest.
    """
    if likely and len(likely) <= _MOST_SUPPORT:
        found = solved(matrix, wanted, likely)
        if found is not None and min(found) >= 0:
            return Decided(found, None)
    size = len(matrix) * (len(matrix[0]) + 1)
    if size > _MOST_ENTRIES:
        raise TooLargeError(
            f"floats do not decide it, and {size:,} numbers are too many to decide it exactly",
            where=where,
            remedy="Give a tolerance above 0, or mechanisms with fewer observables",
        )
    return _simplex(matrix, wanted, likely)


def rational(value: Any) -> Fraction:
    """A ``flint.fmpq`` as a fraction."""
    return Fraction(int(value.p), int(value.q))


def eliminated(rows: Matrix) -> tuple[Any, list[int]]:
    """The reduced echelon form of rows of fractions, and where its rows that are not 0 begin."""
    import flint

    exact = [[flint.fmpq(v.numerator, v.denominator) for v in row] for row in rows]
    found, rank = flint.fmpq_mat(exact).rref()
    columns = range(len(rows[0]))
    return found, [next(k for k in columns if found[i, k] != 0) for i in range(rank)]


def solved(
    matrix: Matrix, wanted: Sequence[Fraction], support: Sequence[int]
) -> list[Fraction] | None:
    """Some x with A x = b that is 0 off the support, of any signs; None where there is none."""
    rows = [[*(row[k] for k in support), b] for row, b in zip(matrix, wanted, strict=True)]
    reduced, pivots = eliminated([row for row in rows if any(row)] or [rows[0]])
    if len(support) in pivots:
        return None
    found = [Fraction(0)] * len(matrix[0])
    for i, pivot in enumerate(pivots):
        found[support[pivot]] = rational(reduced[i, len(support)])
    return found


def _simplex(matrix: Matrix, wanted: Sequence[Fraction], likely: Sequence[int]) -> Decided:
    """The least Σ of artificial variables t in A x + t = b; 0 where there is a solution."""
    scales = [
        math.lcm(b.denominator, *(v.denominator for v in row)) * (-1 if b < 0 else 1)
        for row, b in zip(matrix, wanted, strict=True)
    ]
    scaled = [
        [int(v * scale) for v in (*row, b)]
        for row, b, scale in zip(matrix, wanted, scales, strict=True)
    ]
    m, n = len(scaled), len(scaled[0]) - 1
    first = set(likely)
    rank = {k: at for at, k in enumerate([*likely, *(k for k in range(n) if k not in first)])}
    table = np.array([*scaled, [sum(column) for column in zip(*scaled, strict=True)]], dtype=object)
    basis = [n + i for i in range(m)]
    others: list[int] = list(range(n))
    last = 1
    while True:
        open_ = [(rank[others[j]], j) for j in range(n) if others[j] < n and table[-1, j] > 0]
        if not open_:
            break
        j = min(open_)[1]
        ratios = [
            (Fraction(int(table[i, -1]), int(table[i, j])), rank.get(basis[i], basis[i]), i)
            for i in range(m)
            if table[i, j] > 0
        ]
        i = min(ratios)[2]
        pivot, row, column = table[i, j], table[i].copy(), table[:, j].copy()
        table = (table * pivot - np.outer(column, row)) // last
        table[i], table[:, j] = row, -column
        table[i, j] = last
        basis[i], others[j] = others[j], basis[i]
        last = pivot
    if table[-1, -1] == 0:
        found = [Fraction(0)] * n
        for i, k in enumerate(basis):
            if k < n:
                found[k] = Fraction(int(table[i, -1]), int(last))
        return Decided(found, None)
    # of an artificial variable the reduced cost is y - 1, and 0 in the basis
    prices = [Fraction(1)] * m
    for j, k in enumerate(others):
        if k >= n:
            prices[k - n] += Fraction(int(table[-1, j]), int(last))
    return Decided(None, [y * scale for y, scale in zip(prices, scales, strict=True)])
