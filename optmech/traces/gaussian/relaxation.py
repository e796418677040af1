"""Large boxes: a semidefinite relaxation by coordinate ascent, and local search over vertices.

Neither is believed: the first gives a diagonal that ``extremes`` turns into a proved bound, the
second a vertex whose value is evaluated there.
"""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats

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
        i, j = np.unravel_index(int(pair.argmax()), pair.shape)
        if pair[i, j] <= slack:
            return point
        point = point.copy()
        point[[i, j]] *= -1
