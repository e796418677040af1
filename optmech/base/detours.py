"""Compiled loops of ``minplus``: detours over near points, for some thousand points."""

import numpy as np
from numba import njit

from optmech.base.arrays import Floats, Ints


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def shorten(
    begin: int, end: int, length: Floats, near: Ints, best: Floats
) -> None:  # pragma: no cover - compiled
    """best[i, j] = min(best[i, j], length_ik + length_kj) for rows begin <= i < end, over the k of
    near[i] that are strictly closer to both than they are to each other."""
    for i in range(begin, end):
        own, out = length[i], best[i]
        for k in near[i]:
            first, second = own[k], length[k]
            if k == i or not np.isfinite(first):
                continue
            for j in range(len(own)):
                total = first + second[j]
                shorter = max(first, second[j]) < own[j] and total < out[j]
                out[j] = total if shorter else out[j]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def lead_on(length: Floats, near: Ints, path: Floats) -> None:  # pragma: no cover - compiled
    """path_ij = min(path_ij, length_ik + path_kj) over the k of near[i], for the pairs without a
    length, until nothing changes."""
    count = len(length)
    changed, forth = True, True
    while changed:
        # rows in order and then backwards: a chain is whole after one of the two
        changed = False
        for turn in range(count):
            i = turn if forth else count - 1 - turn
            own, out = length[i], path[i]
            missing = np.flatnonzero(~np.isfinite(own))
            for k in near[i]:
                first, onward = own[k], path[k]
                if k == i or not np.isfinite(first):
                    continue
                for j in missing:
                    if first + onward[j] < out[j]:
                        out[j] = first + onward[j]
                        changed = True
        forth = not forth
