"""Products over (min, +) and (max, x), the large ones a few rows at a time, which stay in the
cache."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats

_CACHED = 2**15
"""Entries of a part that stays in the cache."""


def shortest_detour(length: Floats) -> Floats:
    """min_k length_ik + length_kj over the k that are strictly closer to both ends than they are
    to each other; inf where there is none. Shape (m, m)."""
    best = np.empty_like(length)
    for part in _parts(len(length), len(length)):
        own = length[part]
        out = np.full_like(own, np.inf)
        total, longer = np.empty_like(own), np.empty_like(own)
        for k, second in enumerate(length):
            first = own[:, k, None]
            np.maximum(first, second, out=longer)
            np.add(first, second, out=total)
            np.copyto(total, np.inf, where=longer >= own)
            np.minimum(out, total, out=out)
        best[part] = out
    return best


def shortest_paths(length: Floats) -> Floats:
    """Lengths of the shortest paths between different points (Floyd and Warshall), over steps of
    ``length`` >= 0, inf where there is none; what comes out on the diagonal means nothing. (m, m).
    """
    path = length.copy()
    for k in range(len(path)):
        np.minimum(path, path[:, k, None] + path[k], out=path)
    return path


def max_times(factor: Floats, matrix: Floats) -> Floats:
    """out[j, o] = max(matrix[j, o], max_i factor[i, j] matrix[i, o]), shape (m, O), for entries
    >= 0; columns of zeros stay as they are and cost nothing."""
    out = np.array(matrix)
    used = np.flatnonzero(matrix.any(axis=0))
    rows = np.ascontiguousarray(matrix[:, used])
    for part in _parts(*rows.shape):
        own, factors = rows[part].copy(), np.ascontiguousarray(factor[:, part])
        product = np.empty_like(own)
        for column, row in zip(factors, rows, strict=True):
            np.multiply(column[:, None], row, out=product)
            np.maximum(own, product, out=own)
        out[part, used] = own
    return out


def _parts(rows: int, columns: int) -> list[slice]:
    step = max(1, _CACHED // max(1, columns))
    return [slice(begin, begin + step) for begin in range(0, rows, step)]
