"""Matrices of balls (python-flint): definiteness that is proved, floats rounded outwards, and the
largest value of xᵀMx over a ball and over a box, from both sides, rigorously.

A ball holds every number that it might be; what is concluded from it holds for all of them.
Floats enter as the binary fractions that they are. For large boxes a semidefinite relaxation by
coordinate ascent gives a diagonal that becomes a proved bound, and local search a vertex whose
value is evaluated there; neither is believed.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeVar

import flint
import numpy as np

from optmech.base.arrays import Floats, Ints, largest_entry
from optmech.base.read_only import record
from optmech.errors import VerificationError
from optmech.exact.rounding import UNIT

Ball = Any
BallMatrix = Any
Result = TypeVar("Result")

PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)
"""Bits that are tried one after the other."""


@record
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
    return value if end == value else math.nextafter(value, towards)


EXACT_SIZE = 24
"""Coordinates up to which every vertex of the box is tried."""
_BITS = 128


@record
class Extreme:
    """Bounds of the maximum, and a point that attains the lower one."""

    lower: float
    upper: float
    point: Floats


def over_ball(matrix: Enclosure) -> Extreme:
    """The maximum over ‖x‖₂ ≤ 1: the top eigenvalue (Meehan and Chaudhuri 2019, eq. 4)."""
    values, vectors = np.linalg.eigh(matrix.mid)
    point = vectors[:, -1]
    with flint.ctx.workprec(_BITS):
        lower = below(_form(matrix, point) / sum(flint.arb(x) ** 2 for x in point.tolist()))
        spread = max(map(_sum, matrix.rad))
        top = _eigenvalue_bound(matrix.mid, float(values[-1]))
        return Extreme(max(lower, 0.0), above(flint.arb(top) + spread), point)


def over_box(matrix: Enclosure) -> Extreme:
    """The maximum over ‖x‖_∞ ≤ 1, for M positive semidefinite: attained at a vertex.

    Groups of coordinates without common entries are maximised one by one. A group of up to 24 is
    solved by trying every vertex, larger ones are bounded by local search from below and by a
    diagonal dual from above.
    """
    point = np.ones(len(matrix.mid))
    with flint.ctx.workprec(_BITS):
        upper = flint.arb(0)
        for group in components(matrix):
            places = np.ix_(group, group)
            inner = Enclosure(matrix.mid[places], matrix.rad[places])
            if len(group) <= EXACT_SIZE:
                point[group], value = best_vertex(inner.mid)
                # sums of n² terms, in whatever order, err by less than n² units of their moduli
                error = (inner.mid.size + 8) * flint.arb(UNIT) * _sum(np.abs(inner.mid))
                bound = flint.arb(value) + error
            else:
                point[group], bound = _wide(inner)
            upper += bound + _sum(inner.rad)
        return Extreme(max(below(_form(matrix, point)), 0.0), above(upper), point)


def components(matrix: Enclosure) -> list[Ints]:
    """Groups of coordinates that are linked by entries other than exact zeros."""
    from scipy.sparse.csgraph import connected_components

    linked = (matrix.mid != 0) | (matrix.rad != 0)
    count, label = connected_components(linked, directed=False)
    return [np.flatnonzero(label == k) for k in range(count)]


def best_vertex(matrix: Floats) -> tuple[Floats, float]:
    """The vertex of [−1, 1]^m with the largest xᵀMx, of all of them, and that value, rounded."""
    half = len(matrix) // 2
    left, right = signs(half), signs(len(matrix) - half)
    right = right[: (len(right) + 1) // 2]
    a, b, c = matrix[:half, :half], matrix[half:, half:], matrix[:half, half:]
    total = 2 * (left @ c) @ right.T
    total += np.einsum("ij,ij->i", left @ a, left)[:, None]
    total += np.einsum("ij,ij->i", right @ b, right)[None, :]
    i, j = largest_entry(total)
    return np.concatenate([left[i], right[j]]), float(total[i, j])


def signs(count: int) -> Floats:
    """All vertices of [−1, 1]^count, shape (2^count, count); x and −x in opposite halves."""
    return np.array(list(product((1.0, -1.0), repeat=count)))


def _sum(values: Floats) -> flint.arb:
    return sum(map(flint.arb, values.ravel().tolist()), flint.arb(0))


def _wide(matrix: Enclosure) -> tuple[Floats, flint.arb]:
    vectors, dual = diagonal_dual(matrix.mid)
    shifted = np.diag(dual) - matrix.mid
    shift = _eigenvalue_bound(-shifted, float(-np.linalg.eigvalsh(shifted)[0]))
    bound = _sum(dual) + len(dual) * flint.arb(shift)
    return local_maximum(matrix.mid, vectors), min(bound, _sum(np.abs(matrix.mid)), key=above)


def _eigenvalue_bound(matrix: Floats, estimate: float) -> float:
    """A number that no eigenvalue of a symmetric matrix exceeds, close to the estimate."""
    scale = float(np.abs(matrix).sum(axis=1).max())
    if scale == 0:
        return 0.0
    balls, size = of_floats(matrix), len(matrix)
    with flint.ctx.workprec(elimination_bits(size)):
        for margin in (1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-4, 3.0):
            bound = estimate + margin * scale
            if positive_definite(flint.arb_mat(size, size, bound) - balls):
                return bound
    raise VerificationError("no bound of the largest eigenvalue could be proved")


def _form(matrix: Enclosure, point: Floats) -> flint.arb:
    """xᵀMx for every matrix of the enclosure."""
    column = of_floats(point[:, None])
    middle = (column.transpose() * of_floats(matrix.mid) * column)[0, 0]
    weight = of_floats(np.abs(point)[:, None])
    spread = (weight.transpose() * of_floats(matrix.rad) * weight)[0, 0]
    total: flint.arb = middle + flint.arb(0, 1) * spread
    return total


_SWEEPS = 2000
_STARTS = 32
_SEED = 7


def diagonal_dual(matrix: Floats) -> tuple[Floats, Floats]:
    """Unit vectors V, shape (m, k), that maximise ⟨M, VVᵀ⟩, and the dual diagonal.

    The mixing method (Wang, Chang and Kolter, arXiv 1706.00476): every vector is set to the
    direction of its field in turn. At the optimum diag(dual) − M is positive semidefinite and the
    dual sums to the value.
    """
    size = len(matrix)
    rank = int(np.ceil(np.sqrt(2 * size))) + 1
    rng = np.random.default_rng(_SEED)
    vectors = rng.standard_normal((size, rank))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    field = matrix - np.diag(np.diag(matrix))
    before = -np.inf
    for _ in range(_SWEEPS):
        for i in range(size):
            pull = field[i] @ vectors
            length = float(np.linalg.norm(pull))
            if length > 0:
                vectors[i] = pull / length
        value = float(np.einsum("ij,ij->", field @ vectors, vectors))
        if value - before <= 1e-11 * abs(value):
            break
        before = value
    dual = np.diag(matrix) + np.linalg.norm(field @ vectors, axis=1)
    return vectors, dual


def local_maximum(matrix: Floats, vectors: Floats) -> Floats:
    """A vertex that no change of one or two signs improves, the best of several starts.

    Starts are the signs of ``vectors`` seen from random directions, and of the eigenvectors.
    """
    rng = np.random.default_rng(_SEED)
    directions = vectors @ rng.standard_normal((vectors.shape[1], _STARTS))
    starts = np.hstack([directions, np.linalg.eigh(matrix)[1][:, -4:]])
    best, point = -np.inf, np.ones(len(matrix))
    for start in starts.T:
        found = _climb(matrix, np.where(start >= 0, 1.0, -1.0))
        value = float(found @ matrix @ found)
        if value > best:
            best, point = value, found
    return point


def _climb(matrix: Floats, point: Floats) -> Floats:
    """Change the one or two signs that gain the most, until none does."""
    field = matrix - np.diag(np.diag(matrix))
    slack = 1e-12 * float(np.abs(matrix).sum())
    while True:
        single = -4 * point * (field @ point)
        # flipping i and j gains both and gives back what they lose to each other twice
        pair = single[:, None] + single[None, :] + 8 * np.outer(point, point) * field
        np.fill_diagonal(pair, single)
        i, j = largest_entry(pair)
        if pair[i, j] <= slack:
            return point
        point = point.copy()
        point[[i, j]] *= -1
