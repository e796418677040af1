"""Matrices of balls (python-flint): definiteness that is proved, floats rounded outwards.

A ball holds every number that it might be; what is concluded from it holds for all of them.
Floats enter as the binary fractions that they are.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import flint
import numpy as np

from optmech.base.arrays import Floats

Ball = Any
BallMatrix = Any
Result = TypeVar("Result")

PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)
"""Bits that are tried one after the other."""


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A symmetric matrix of floats, and how far the true entries may be from them."""

    mid: Floats
    rad: Floats

    @property
    def narrow(self) -> bool:
        """Whether the radii are no larger than the rounding of a float64."""
        return bool(self.rad.max() <= 2.0**-50 * np.abs(self.mid).max())


def at_first_precision(
    attempt: Callable[[], Result | None],
    least: int = PRECISIONS[0],
    most: int = PRECISIONS[-1],
) -> Result | None:
    """What ``attempt`` returns at the first precision at which it neither divides by a ball
    that holds 0 nor returns None; None where there is no such precision."""
    for bits in PRECISIONS:
        if least <= bits <= most:
            with flint.ctx.workprec(bits), contextlib.suppress(ZeroDivisionError):
                found = attempt()
                if found is not None:
                    return found
    return None


def of_floats(values: Floats) -> BallMatrix:
    """Exact balls of floats, shape (m, n)."""
    return flint.arb_mat(values.shape[0], values.shape[1], values.ravel().tolist())


def part(matrix: BallMatrix, rows: Sequence[int], columns: Sequence[int]) -> BallMatrix:
    """The rows and columns of the given indices."""
    entries = [matrix[int(i), int(j)] for i in rows for j in columns]
    return flint.arb_mat(len(rows), len(columns), entries)


def identity(size: int, scale: Ball = 1) -> BallMatrix:
    """``scale`` times the identity."""
    out = flint.arb_mat(size, size)
    for k in range(size):
        out[k, k] = scale
    return out


def positive_definite(matrix: BallMatrix) -> bool:
    """Whether every symmetric matrix in the balls is proved to be positive definite.

    A matrix is positive definite when a leading block and its Schur complement are.
    """
    size = matrix.nrows()
    if size == 1:
        return bool(matrix[0, 0] > 0)
    head, tail = range(size // 2), range(size // 2, size)
    lead, side = part(matrix, head, head), part(matrix, head, tail)
    if not positive_definite(lead):
        return False
    try:
        rest = part(matrix, tail, tail) - side.transpose() * lead.solve(side)
    except ZeroDivisionError:
        return False
    return positive_definite(rest)


def is_definite(values: Floats) -> bool:
    """Whether a symmetric matrix of floats is proved to be positive definite."""
    with flint.ctx.workprec(elimination_bits(len(values))):
        return positive_definite(of_floats(values))


def elimination_bits(size: int) -> int:
    """A precision at which eliminating a matrix of balls this large leaves many bits: every step
    may lose a few."""
    return PRECISIONS[0] + 16 * size


def enclose(matrix: BallMatrix) -> Enclosure | None:
    """Floats in the middle of a square matrix of balls, made symmetric, with radii; None where
    an entry is unbounded or beyond the range of floats."""
    size = matrix.nrows()
    mid, rad = np.zeros((size, size)), np.zeros((size, size))
    for i in range(size):
        for j in range(i, size):
            entry = matrix[i, j]
            if not entry.is_finite():
                return None
            middle = float(entry.mid())
            mid[i, j] = mid[j, i] = middle
            rad[i, j] = rad[j, i] = above((entry - middle).abs_upper())
    return Enclosure(mid, rad) if np.isfinite(mid).all() and np.isfinite(rad).all() else None


def above(ball: Ball) -> float:
    """A float that no number in the ball exceeds."""
    return _float(ball.upper(), math.inf)


def below(ball: Ball) -> float:
    """A float that no number in the ball falls short of."""
    return _float(ball.lower(), -math.inf)


def _float(end: Ball, towards: float) -> float:
    """The float next to a point, on the side of ``towards``, or the point if it is a float."""
    value = float(end)
    if math.isinf(value):
        return value if value == towards else math.copysign(1.7976931348623157e308, value)
    return value if end == value else math.nextafter(value, towards)
