"""Polynomials in Bernstein's form on the triangles of a mesh (theory: "Privacy at every point").

In a triangle with barycentric weights λ a polynomial of degree d is

    p(x) = Σ_{|α|=d} B_α(λ(x)) P[α],   B_α(λ) = d!/(α_0! α_1! α_2!) λ_0^α_0 λ_1^α_1 λ_2^α_2,

with a coefficient P[α] for every multi-index α: the *control point* at the weights α/d. The B_α are
non-negative and sum to one. Control points on an edge are shared by both of its triangles, which
makes p continuous. With a, b the rises of the coefficients along the edges from the first corner,

    a[α] = Σ_k α_k (P[α−e_k+e_1] − P[α−e_k+e_0]),   b[α] = Σ_k α_k (P[α−e_k+e_2] − P[α−e_k+e_0]),

a ∇λ_1 + b ∇λ_2 are the coefficients of ∇p, written in degree d. In degree 1 the control points are
the corners. This is trusted: what is decided of a matrix over control points rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import locked
from optmech.errors import ProblemError
from optmech.exact.arguments import whole

MOST_DEGREE = 6
"""Beyond this, coefficients say little of the values between them."""

Index = tuple[int, int, int]


def degree_of(value: object) -> int:
    """A degree, checked."""
    degree = whole(value, "degree", least=1)
    if degree > MOST_DEGREE:
        raise ProblemError(
            f"{degree} is above {MOST_DEGREE}", where="degree", remedy="Use 3, and a finer mesh"
        )
    return degree


@cache
def indices(degree: int) -> tuple[Index, ...]:
    """The multi-indices of a degree; the corners in their order where it is 1."""
    return tuple((degree - j - k, j, k) for k in range(degree + 1) for j in range(degree + 1 - k))


@cache
def rises(degree: int) -> Ints:
    """The coefficients of a and b as sums of those of p: (2, n, n), whole numbers, of which six in
    a row at most are not 0."""
    found = indices(degree)
    place = {index: i for i, index in enumerate(found)}
    out = np.zeros((2, len(found), len(found)), dtype=np.int64)
    for i, index in enumerate(found):
        for k in range(3):
            for j in range(3):
                moved = list(index)
                moved[k] -= 1
                moved[j] += 1
                if index[k]:
                    near = place[moved[0], moved[1], moved[2]]
                    for edge in (0, 1):
                        out[edge, i, near] += index[k] * ((j == edge + 1) - (j == 0))
    return locked(out)


@cache
def shares(degree: int) -> Ints:
    """d!/(α_0! α_1! α_2!) of every multi-index, (n,)."""
    top = math.factorial(degree)
    return np.array([top // math.prod(map(math.factorial, index)) for index in indices(degree)])


def basis(weights: Floats, degree: int) -> Floats:
    """B_α for barycentric weights (k, 3): (k, n), >= 0, rows with sum one up to rounding."""
    if degree == 1:
        return weights
    powers = weights[:, None, :] ** np.array(indices(degree))
    return np.asarray(shares(degree) * powers.prod(axis=2))


def whole_basis(weights: Sequence[int], degree: int) -> tuple[int, ...]:
    """B_α times the d-th power of the sum of ``weights``, which are whole numbers >= 0."""
    if degree == 1:
        return tuple(weights)
    powers = [[w**k for k in range(degree + 1)] for w in weights]
    return tuple(
        share * powers[0][a] * powers[1][b] * powers[2][c]
        for share, (a, b, c) in zip(shares(degree).tolist(), indices(degree), strict=True)
    )


def numbering(triangles: Ints, vertices: int, degree: int) -> tuple[Ints, int]:
    """The number of every triangle's control points in the order of ``indices``, (T, n), and how
    many there are.

    First come the vertices; then the points inside edges, these in the order of their lower vertex,
    then of their other one, and along each from the lower vertex; then those inside triangles.
    """
    if degree == 1:
        return triangles, vertices
    found = np.array(indices(degree))
    each, every = np.arange(len(triangles))[:, None], np.arange(len(found))
    order = np.argsort(triangles, axis=1)
    # the weights (T, n, 3) of the corners by their number, and the first and last that are not 0
    used = found.T[order].transpose(0, 2, 1)
    corners = (used > 0).sum(axis=2)
    first, last = (used > 0).argmax(axis=2), 2 - (used[..., ::-1] > 0).argmax(axis=2)
    low, high = (triangles[each, order[each, k]] for k in (first, last))
    along = used[each, every, last]
    # points inside a triangle are told apart by its number and theirs, others by their corners
    inner, size = corners == 3, max(vertices, len(triangles), len(found))
    low, high = np.where(inner, each, low), np.where(inner, every, high)
    keys = ((corners * size + low) * size + high) * (degree + 1) + np.where(inner, 0, along)
    distinct, numbers = np.unique(keys, return_inverse=True)
    return numbers.reshape(keys.shape), len(distinct)
