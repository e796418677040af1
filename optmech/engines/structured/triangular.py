"""Inverses of lower triangular matrices, many at once, by NumPy's matrix products alone."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats

_LEAF = 8
"""Triangles of this size are inverted row by row, all of them together."""


def lower_inverse(lower: Floats) -> Floats:
    """Inverses of lower triangular matrices (k, m, m); above the diagonal nothing is read."""
    count, m, _ = lower.shape
    inverse = np.zeros(lower.shape)
    whole = m - m % _LEAF
    starts = np.arange(0, whole, _LEAF)
    index = starts[:, None] + np.arange(_LEAF)
    leaves = lower[:, index[:, :, None], index[:, None, :]]
    inverse[:, index[:, :, None], index[:, None, :]] = _rowwise(
        leaves.reshape(-1, _LEAF, _LEAF)
    ).reshape(count, len(starts), _LEAF, _LEAF)
    if whole < m:
        inverse[:, whole:, whole:] = _rowwise(lower[:, whole:, whole:])
    _merge(lower, inverse, 0, m)
    return inverse


def _merge(lower: Floats, inverse: Floats, start: int, stop: int) -> None:
    """Fill in what lies between the leaves of ``inverse``, by halves."""
    leaves = -(-(stop - start) // _LEAF)
    if leaves <= 1:
        return
    middle = start + leaves // 2 * _LEAF
    _merge(lower, inverse, start, middle)
    _merge(lower, inverse, middle, stop)
    between = np.matmul(inverse[:, middle:stop, middle:stop], lower[:, middle:stop, start:middle])
    inverse[:, middle:stop, start:middle] = -np.matmul(
        between, inverse[:, start:middle, start:middle]
    )


def _rowwise(lower: Floats) -> Floats:
    """The same for small matrices."""
    m = lower.shape[1]
    rows = np.ascontiguousarray(lower.transpose(1, 2, 0))
    inverse = np.zeros(rows.shape)
    for k in range(m):
        inverse[k, k] = 1.0
        inverse[k, :k] = -(rows[k, :k, None] * inverse[:k, :k]).sum(axis=0)
        inverse[k, : k + 1] /= rows[k, k]
    return inverse.transpose(2, 0, 1)
