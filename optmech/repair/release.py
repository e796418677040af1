"""From a repaired float matrix to integer numerators that satisfy every inequality exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import Check, check_exact
from optmech.certificate.statement import Statement
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators, integers
from optmech.lp.inequalities import Inequalities

_SHIFTS = tuple(range(48, 8, -4))
_TOWARDS_MEAN = 40


@dataclass(frozen=True, eq=False)
class Released:
    """A matrix that passed, and the verdicts."""

    exact: Numerators
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, statement: Statement, candidate: Numerators) -> Released | None:
        """The candidate, if it passes the exact check."""
        checks = check_exact(statement, candidate)
        return cls(candidate, checks) if all(check.passed for check in checks) else None


def release(
    given: Inequalities, matrix: Floats, anchors: Iterable[Floats], *, alone: bool = False
) -> Released | None:
    """Round to numerators and check exactly; None where no way was found.

    Sums can miss their limits by the last digits of floating point. Then 2^-48, 2^-44, ... of an
    anchor, a matrix that satisfies the constraints with room to spare, is mixed in (theory:
    "Release"); with ``alone``, at last an anchor by itself.
    """
    statement, rounded = given.statement, Numerators.rounded(matrix)
    found = Released.of(statement, rounded)
    if found is not None:
        return found
    others = [Numerators.rounded(anchor) for anchor in anchors]
    rounded = equalised(given, rounded) or rounded
    for shift in (*_SHIFTS, 0) if alone else _SHIFTS:
        for other in others:
            try:
                found = Released.of(statement, rounded.mixed(other, shift))
            except ProblemError:
                continue
            if found is not None:
                return found
    return None


def equalised(given: Inequalities, near: Numerators) -> Numerators | None:
    """A matrix near ``near`` with λP = λ'P exactly, for pairs that may hardly differ; else None.

    With pivot rows B and free rows F, den · P_B = -R P_F for the reduced echelon form R of the
    differences λ - λ'. The free rows become a common row plus multiples of den, so that the pivot
    rows are whole numbers too.
    """
    apart = differences(given)
    if not apart:
        return None
    reduced, denominator, rank = flint.fmpz_mat(apart).rref()
    table, den = [list(map(int, row)) for row in reduced.table()[:rank]], abs(int(denominator))
    if denominator < 0:
        table = [[-value for value in row] for row in table]
    pivots = [next(s for s, value in enumerate(row) if value) for row in table]
    # a little of the mean row keeps small entries positive
    count = len(near.rows)
    mean = [sum(column) // count for column in zip(*near.rows, strict=True)]
    mean[mean.index(max(mean))] += (1 << near.bits) - sum(mean)
    mixed = near.mixed(Numerators(near.bits, (tuple(mean),) * count), _TOWARDS_MEAN)
    shift = den.bit_length() + _TOWARDS_MEAN
    common = [value << (_TOWARDS_MEAN + shift) for value in mean]
    steps = [_steps(row, common, den, shift) for row in mixed.rows]
    rows = [tuple(c + den * m for c, m in zip(common, row, strict=True)) for row in steps]
    for row, pivot in zip(table, pivots, strict=True):
        used = [(value, steps[s]) for s, value in enumerate(row) if value and s not in pivots]
        rows[pivot] = tuple(
            c - sum(value * step[o] for value, step in used) for o, c in enumerate(common)
        )
    try:
        return Numerators(mixed.bits + shift, tuple(rows))
    except ProblemError:
        return None


def differences(given: Inequalities) -> list[list[int]]:
    """λ/Σλ - λ'/Σλ' in whole numbers, for pairs whose ratios are all but equal."""
    found = []
    for part in given.parts:
        for left, right in part.equal_pushes():
            whole, _ = integers(np.vstack([left, right]))
            half = len(whole) // 2
            for a, b in zip(whole[:half], whole[half:], strict=True):
                found.append([x * sum(b) - y * sum(a) for x, y in zip(a, b, strict=True)])
    return found


def _steps(row: tuple[int, ...], common: list[int], den: int, shift: int) -> list[int]:
    """(row - common) / den in whole numbers that sum to zero."""
    steps = [((value << shift) - c) // den for value, c in zip(row, common, strict=True)]
    steps[row.index(max(row))] -= sum(steps)
    return steps
