"""Products over (min, +) and (max, x), the large ones a few rows at a time, which stay in the
cache; shortest paths, and lengths under which every ball holds its mass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from optmech.base.arrays import Floats, slices
from optmech.base.machine import cores
from optmech.base.native import has_kernels, run, work

_CACHED = 2**15
"""Entries of a part that stays in the cache."""
MANY = 1_000
"""Points from which on detours are looked for near their first point only: looking everywhere
takes the third power of their number, minutes at 2,000."""
_NEAREST = 32
_LOOKED_AT = 8
"""Of these, how many are looked at where only rounding is to be told from a true detour."""
_CLOSED = 1e-12
_FEW = 64
"""Steps from a point up to which paths are looked for along them."""
_SPARSE = 256
"""Points from which on that pays."""


def shortest_detour(length: Floats) -> Floats:
    """min_k length_ik + length_kj over the k that are strictly closer to both ends than they are
    to each other; inf where there is none. Shape (m, m)."""
    if has_kernels():
        return _near_detour(length, len(length))
    best = np.empty_like(length)
    for part in slices(len(length), len(length), _CACHED):
        own = length[part]
        out = np.full_like(own, np.inf)
        total, longer = np.empty_like(own), np.empty_like(own)
        with np.errstate(over="ignore"):
            for k, second in enumerate(length):
                first = own[:, k, None]
                np.maximum(first, second, out=longer)
                np.add(first, second, out=total)
                np.copyto(total, np.inf, where=longer >= own)
                np.minimum(out, total, out=out)
        best[part] = out
    return best


def shortest_paths(length: Floats) -> Floats:
    """Lengths of the shortest paths between different points (Floyd and Warshall, or Dijkstra where
    steps are few), over steps of ``length`` >= 0, inf where there is none; what comes out on the
    diagonal means nothing. (m, m).
    Of ``MANY`` points and more, steps that no detour over near points shortens count as paths.
    """
    count = len(length)
    if count >= _SPARSE and np.count_nonzero(np.isfinite(length)) <= _FEW * count:
        return _along_few(length)
    if is_closed(length):
        return length.copy()
    path = length.copy()
    for k in range(len(path)):
        np.minimum(path, path[:, k, None] + path[k], out=path)
    return path


def _along_few(length: Floats) -> Floats:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    steps_from, to = np.nonzero(np.isfinite(length))
    graph = csr_array((length[steps_from, to], (steps_from, to)), shape=length.shape)
    return np.asarray(dijkstra(graph))


def is_closed(length: Floats) -> bool:
    """Whether there are ``MANY`` points and no detour over a near one, or over some others,
    shortens any step by more than rounding: as good as sure of distances, and no proof."""
    return bool(np.isfinite(open_by(length)))


def open_by(length: Floats) -> float:
    """What ``slackness`` says where ``is_closed``; inf elsewhere."""
    loose = slackness(length) if len(length) >= MANY else np.inf
    return loose if loose <= _CLOSED * _largest(length) else np.inf


def steps_are_shortest(length: Floats) -> bool:
    """Whether ``is_closed`` holds for the steps that there are, whatever paths lead where there is
    none."""
    return len(length) >= MANY and slackness(length, whole=False) <= _CLOSED * _largest(length)


def filled(length: Floats) -> Floats:
    """Paths where every step that there is is a shortest one: what is missing between different
    points is made of a step to a near point and what leads on from there. No path is shorter than
    the shortest; it is as long where that begins with such steps, or steps are few."""
    path, count = length.copy(), len(length)
    steps = int(np.isfinite(path).sum())
    if steps >= count * (count - 1):
        return path
    if steps <= _FEW * count:
        return _along_few(length)
    near = np.argpartition(length, min(_NEAREST, count - 1), axis=1)[:, :_NEAREST]
    if has_kernels():
        given, near = np.ascontiguousarray(length), np.ascontiguousarray(near)
        run("lead_on", count, near.shape[1], given, near, path)
        return path
    missing = [np.flatnonzero(~np.isfinite(own)) for own in length]
    order, changed = np.arange(count), True
    while changed:
        # rows in order and then backwards: a chain is whole after one of the two
        changed = False
        for i in order:
            first = near[i][np.isfinite(length[i, near[i]])]
            if len(missing[i]) and len(first):
                total = (length[i, first, None] + path[np.ix_(first, missing[i])]).min(axis=0)
                changed = changed or bool((total < path[i, missing[i]]).any())
                path[i, missing[i]] = np.minimum(path[i, missing[i]], total)
        order = order[::-1]
    return path


def slackness(length: Floats, *, whole: bool = True) -> float:
    """By how much a detour over a near point, or over some others, shortens a step at most: of
    distances, what they were rounded by. A step that is missing counts as one without end, or, not
    ``whole``, as none."""
    index = np.arange(len(length))
    counts = np.broadcast_to(True, length.shape) if whole else np.isfinite(length)
    chosen, bearable = index[:: max(1, len(index) // 16)], _CLOSED * _largest(length)
    most = 0.0
    for part in slices(len(length), len(length), _CACHED):
        own = length[part]
        for k in chosen:
            around = own[:, k, None] + length[k]
            around[np.arange(len(own)), index[part]] = np.inf
            with np.errstate(invalid="ignore"):
                most = max(most, float(np.nanmax(own - around, where=counts[part], initial=0.0)))
        if most > bearable:
            return most
    found = _near_detour(length, _LOOKED_AT)
    found[index, index] = np.inf
    with np.errstate(invalid="ignore"):
        shorter = np.where(np.isfinite(found), length - found, 0.0)
    return max(most, float(np.nanmax(shorter, where=counts, initial=0.0)))


def _largest(length: Floats) -> float:
    return float(length[np.isfinite(length)].max(initial=0.0))


def near_detour(length: Floats) -> Floats:
    """A detour as ``shortest_detour`` finds it; of ``MANY`` points and more only the k among the
    nearest of i are tried: what is found is a detour, if not always the shortest."""
    return shortest_detour(length) if len(length) < MANY else _near_detour(length)


def _near_detour(length: Floats, nearest: int = _NEAREST) -> Floats:
    count = len(length)
    best = np.full(length.shape, np.inf)
    if has_kernels():
        closest = np.argpartition(length, min(nearest, count - 1), axis=1)[:, :nearest]
        given, closest = np.ascontiguousarray(length), np.ascontiguousarray(closest)
        kernel, parts = work("shorten", count, closest.shape[1], given, closest, best), 4 * cores()
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(kernel, range(parts), [parts] * parts))
        return best
    for i, own in enumerate(length):
        near = np.argpartition(own, min(nearest, count - 1))[:nearest]
        near = near[(near != i) & np.isfinite(own[near])]
        second = length[near]
        first = own[near, None]
        total = first + second
        total[np.maximum(first, second) >= own] = np.inf
        best[i] = total.min(axis=0, initial=np.inf)
    return best


def max_times(lengths: Floats, matrix: Floats) -> Floats:
    """out[j, o] = max(matrix[j, o], max_i e^-lengths[i, j] matrix[i, o]), shape (m, O), for entries
    >= 0; columns of zeros stay as they are and cost nothing."""
    out = np.array(matrix)
    used = np.flatnonzero(matrix.any(axis=0))
    rows = np.ascontiguousarray(matrix[:, used])
    for part in slices(len(rows), len(used), _CACHED):
        own, factors = rows[part].copy(), np.exp(-lengths[:, part])
        product = np.empty_like(own)
        for column, row in zip(factors, rows, strict=True):
            np.multiply(column[:, None], row, out=product)
            np.maximum(own, product, out=own)
        out[part, used] = own
    return out


def elastic_lengths(apart: Floats, mass: Floats, unit: float, exponent: float) -> Floats:
    """Shortest paths over steps from x to y of length r with unit · r^exponent = the mass of all
    points that are closer to x than y is, x included; in either direction. Shape (n, n).

    For every x and r, the ball of radius r around x holds at least min(unit · r^exponent, all
    mass): of the points in the order of their distance from x, the first that is not in the ball
    has more than that before it.
    """
    step = np.empty_like(apart)
    for x, own in enumerate(apart):
        order = np.argsort(own, kind="stable")
        held = np.append(0.0, np.cumsum(mass[order]))
        # points that are equally far come in together
        first = np.searchsorted(own[order], own[order], side="left")
        step[x, order] = (np.maximum(held[first], mass[x]) / unit) ** (1 / exponent)
    step = np.minimum(step, step.T)
    np.fill_diagonal(step, 0.0)
    out = shortest_paths(step)
    np.fill_diagonal(out, 0.0)
    return out
