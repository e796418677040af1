"""Compiled factorisation of the blocks, their inverses summed, and solves; and what kernels are
given: named tuples of arrays, which numba takes apart at no cost.

A block's matrix H = Gᵀ diag(z/s) G is scaled to unit diagonal and factored as block tridiagonal.
With the variables in a good order, panel k + 1 ends where the neighbours of panel k end, so nothing
lies outside the three diagonals, long pairs included. Of the symmetric matrix two parts per panel
are stored, and factored in place:

            ends[0]  ends[1]   ends[2] ends[3] = m
    ends[0]    +--------+---------+-------+
               |  D_0   |   B_0   |       |      D_k -> L_k            L_k L_kᵀ = D_k - W_k-1ᵀ W_k-1
    ends[1]    +--------+---------+-------+      B_k -> W_k = L_k⁻¹ B_k
               |        |   D_1   |  B_1  |
    ends[2]    +--------+---------+-------+      D_k and L_k are lower triangles in squares
               |        |         |  D_2  |
    ends[3]    +--------+---------+-------+

    entries    | D_0 | B_0 | D_1 | B_1 | D_2 |   every part column major
               ^           ^           ^
            start[0]    start[1]    start[2]

Variables without rows (fixed at zero) have scale 0 and a unit diagonal.

Kernels with ``t`` and ``nt`` do the blocks ``t, t + nt, t + 2 nt, ...``; ``lapack`` are the
addresses that ``blas.fortran`` calls.
"""
# mypy: allow-untyped-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.blas import (
    GEMM,
    LEFT,
    LOWER,
    NO,
    POTRF,
    POTRI,
    SYRK,
    TRANSPOSED,
    TRSM,
    fortran,
    jit,
    part,
    sums,
)
from optmech.engines.structured.rows import Short


class PairRows(NamedTuple):
    """The pair rows s = e v_j - v_i with multipliers z; those of block o are offset[o] up to
    offset[o + 1] (see ``rows.Rows``)."""

    offset: Ints
    i: Short
    j: Short
    e: Floats
    s: Floats
    z: Floats
    ds: Floats
    dz: Floats
    ds2: Floats
    dz2: Floats


class Panels(NamedTuple):
    """How every block is ordered and cut into panels."""

    position: Ints
    """(orders, m): the place of every variable, in every order that may be chosen."""
    order: Ints
    """(blocks,): the order that the block has."""
    number: Ints
    """(blocks,): how many panels it has."""
    ends: Ints
    """(blocks, m + 2): where they end, from 0 on; the last end stands twice."""
    size: Ints
    """(blocks,): entries that they take."""


class Factors(NamedTuple):
    """The packed matrices of all blocks, one after the other."""

    base: Ints
    """(blocks + 1,): where each begins in ``store``."""
    store: Floats
    scale: Floats
    """(blocks, m): what rows and columns were multiplied by, 0 for variables without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""


class Totals(NamedTuple):
    """What every part adds up over its blocks (see ``backend.Schur``), the first dimension."""

    sums: Floats
    """(parts, orders, m, m): inverses, lower triangles, in the places of every order."""
    mixed: Floats
    """(parts, N, m)."""
    coupling: Floats
    """(parts, N, N)."""
    inverse: Floats
    """(parts, m, m): a block's whole inverse, where there are coupling rows."""


class Block(NamedTuple):
    """One block's matrix, as in the figure."""

    entries: Floats
    position: Ints
    ends: Ints
    panels: int
    start: Ints
    scale: Floats


@part
def _cut(reach, first, ends, m):
    """Panel ends from the furthest neighbours; returns their number and the cost of factoring."""
    ends[0] = 0
    ends[1] = min(first, m)
    count = 1
    while ends[count] < m:
        after = max(reach[ends[count] - 1] + 1, ends[count] + 1)
        if m - after < first // 2:
            after = m
        ends[count + 1] = after
        count += 1
    ends[count + 1] = m
    cost = 0.0
    for k in range(count):
        a, b = float(ends[k + 1] - ends[k]), float(ends[k + 2] - ends[k + 1])
        cost += a * a * a + 2.0e3
        cost += 2.0 * a * b * (m - ends[k + 1]) + 4.0 * a * a * b + a * b * b
    return count, cost


@jit
def partition(t, nt, blocks, rows, first, panels):
    """Pick the order and the panels of some blocks by the cost of factoring; ``first`` (orders,)
    are sizes of first panels."""
    m = panels.position.shape[1]
    reach = np.empty(m, np.int64)
    trial = np.empty(m + 2, np.int64)
    for q in range(t, len(blocks), nt):
        o = blocks[q]
        best = np.inf
        for r in range(len(panels.position)):
            place = panels.position[r]
            for x in range(m):
                reach[x] = x
            for k in range(rows.offset[o], rows.offset[o + 1]):
                if rows.i[k] < m:
                    a, b = place[rows.i[k]], place[rows.j[k]]
                    reach[min(a, b)] = max(reach[min(a, b)], a, b)
            for x in range(1, m):
                reach[x] = max(reach[x], reach[x - 1])
            for half in range(1, 3):
                count, cost = _cut(reach, max(1, first[r] * half // 2), trial, m)
                if cost < best:
                    best = cost
                    panels.order[o] = r
                    panels.number[o] = count
                    panels.ends[o] = trial
        panels.size[o] = 0
        for k in range(panels.number[o]):
            panels.size[o] += _entries(panels.ends[o], k)


@part
def _entries(ends, k):
    """How many entries panel k has, in and beside the diagonal."""
    return (ends[k + 1] - ends[k]) * (ends[k + 2] - ends[k])


@part
def laid_out(entries, position, ends, panels, start, scale):
    """A ``Block``; fills in ``start``."""
    place = 0
    for k in range(panels):
        start[k] = place
        place += _entries(ends, k)
    return Block(entries, position, ends, panels, start, scale)


@part
def _block(o, panels, factors, start):
    """Block o, with room for ``start``."""
    return laid_out(
        factors.store[factors.base[o] : factors.base[o + 1]],
        panels.position[panels.order[o]],
        panels.ends[o],
        panels.number[o],
        start,
        factors.scale[o],
    )


@part
def _panel(block, k):
    """The number of rows of panel k, and its parts in and beside the diagonal."""
    size = block.ends[k + 1] - block.ends[k]
    diagonal = block.entries[block.start[k] :]
    return size, diagonal, diagonal[size * size :]


@part
def unit_scale(o, rows, place, scale):
    """What rows and columns of block o's H are multiplied by, in places, for a unit diagonal."""
    m = len(place)
    scale[:] = 0.0
    for k in range(rows.offset[o], rows.offset[o + 1]):
        w = rows.z[k] / rows.s[k]
        scale[place[rows.j[k]]] += w * rows.e[k] * rows.e[k]
        if rows.i[k] < m:
            scale[place[rows.i[k]]] += w
    for x in range(m):
        scale[x] = 1.0 / np.sqrt(scale[x]) if scale[x] > 0 else 0.0


@part
def scaled_entry(k, rows, place, scale):
    """What pair k adds beside that diagonal."""
    w = -rows.z[k] / rows.s[k] * rows.e[k]
    return w * scale[place[rows.i[k]]] * scale[place[rows.j[k]]]


@part
def assemble(o, rows, block, panel_of, ridge):
    """H of block o's rows, scaled to unit diagonal; ``panel_of`` (m,) is room to work."""
    A, place, ends, scale = block.entries, block.position, block.ends, block.scale
    m = len(place)
    A[:] = 0.0
    for k in range(block.panels):
        panel_of[ends[k] : ends[k + 1]] = k
    unit_scale(o, rows, place, scale)
    for k in range(rows.offset[o], rows.offset[o + 1]):
        if rows.i[k] == m:
            continue
        w = scaled_entry(k, rows, place, scale)
        x, y = place[rows.i[k]], place[rows.j[k]]
        x, y = min(x, y), max(x, y)
        q = panel_of[x]
        size = ends[q + 1] - ends[q]
        if panel_of[y] == q:
            A[block.start[q] + (y - ends[q]) + (x - ends[q]) * size] += w
        else:
            A[block.start[q] + size * size + (x - ends[q]) + (y - ends[q + 1]) * size] += w
    for k in range(block.panels):
        size, diagonal, _ = _panel(block, k)
        for x in range(size):
            diagonal[x * size + x] += 1.0 + ridge


@part
def cholesky(lapack, block, info):
    """Factor a block in place; False where it is not positive definite."""
    for k in range(block.panels):
        size, L, W = _panel(block, k)
        fortran(lapack[POTRF], (LOWER, size, L, size, info))
        if info[0] != 0:
            return False
        if k + 1 < block.panels:
            width, after, _ = _panel(block, k + 1)
            fortran(lapack[TRSM], (LEFT, LOWER, NO, NO, size, width, 1.0, L, size, W, size))
            fortran(
                lapack[SYRK], (LOWER, TRANSPOSED, width, size, -1.0, W, size, 1.0, after, width)
            )
    return True


@part
def _inverse_rows(lapack, block, k, later, R, below, G, info):
    """Rows of panel k of the inverse in R, (size, size + later) by columns: of its own variables,
    and of ``later`` ones whose columns in the rows of panel k + 1 are ``below``. The size."""
    size, L, W = _panel(block, k)
    for c in range(size):
        for r in range(c, size):
            R[c * size + r] = L[c * size + r]
    fortran(lapack[POTRI], (LOWER, size, R, size, info))
    for c in range(size):
        for r in range(c + 1, size):
            R[r * size + c] = R[c * size + r]
    if k + 1 < block.panels:
        width = block.ends[k + 2] - block.ends[k + 1]
        G[: size * width] = W[: size * width]
        fortran(lapack[TRSM], (LEFT, LOWER, TRANSPOSED, NO, size, width, 1.0, L, size, G, size))
        right = R[size * size :]
        fortran(
            lapack[GEMM],
            (NO, NO, size, later, width, -1.0, G, size, below, width, 0.0, right, size),
        )
        fortran(
            lapack[GEMM],
            (NO, TRANSPOSED, size, size, width, -1.0, right, size, G, size, 1.0, R, size),
        )
    return size


@part
def _add_inverse(lapack, block, R, below, G, total, inverse, whole, info):
    """Add H⁻¹ to the lower triangle of ``total``, in ordered places; with ``whole`` also put it
    into ``inverse``. R, below and G are room for a panel of rows each."""
    ends, scale = block.ends, block.scale
    m = len(scale)
    for k in range(block.panels - 1, -1, -1):
        first = ends[k]
        size = _inverse_rows(lapack, block, k, m - ends[k + 1], R, below, G, info)
        for c in range(m - first):
            own = scale[first + c]
            for r in range(size):
                x = R[c * size + r] * own * scale[first + r]
                total[first + c, first + r] += x
                if whole:
                    inverse[first + c, first + r] = x
                    inverse[first + r, first + c] = x
        R, below = below, R


@part
def _add_coupling(o, place, variable, value, inverse, mixed, squared):
    """Add what the coupling rows make of block o's ``inverse``: their products with it, and with
    each other through it."""
    m = len(place)
    for q in range(len(variable)):
        v = value[q, o]
        if variable[q] == m or v == 0.0:
            continue
        row = v * inverse[place[variable[q]]][place]
        mixed[q] += row
        for q2 in range(len(variable)):
            if variable[q2] < m:
                squared[q, q2] += value[q2, o] * row[variable[q2]]


@jit
def factor(t, nt, lapack, rows, panels, factors, variable, value, alone, totals):
    """Factor every block and, unless ``alone``, add up its inverse in ``totals``. Row l across
    blocks has value[l, o] at variable[l] of block o; variable m is none."""
    blocks, m = factors.scale.shape
    widest = 0
    for o in range(t, blocks, nt):
        widest = max(widest, np.diff(panels.ends[o, : panels.number[o] + 1]).max())
    R, below, G = np.empty(widest * m), np.empty(widest * m), np.empty(widest * m)
    panel_of, start = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    info = np.zeros(1, np.int32)
    whole = len(variable) > 0
    totals.sums[t] = 0.0
    totals.mixed[t] = 0.0
    totals.coupling[t] = 0.0
    for o in range(t, blocks, nt):
        block = _block(o, panels, factors, start)
        assemble(o, rows, block, panel_of, factors.ridge[o])
        factors.failed[o] = 0 if cholesky(lapack, block, info) else 1
        if factors.failed[o] or alone:
            continue
        total, inverse = totals.sums[t, panels.order[o]], totals.inverse[t]
        _add_inverse(lapack, block, R, below, G, total, inverse, whole, info)
        mixed, coupling = totals.mixed[t], totals.coupling[t]
        _add_coupling(o, block.position, variable, value, inverse, mixed, coupling)


@sums
def _lower(L, x, size):
    """x <- L⁻¹x."""
    for c in range(size):
        below, rest = L[c * size + c + 1 :], x[c + 1 :]
        x[c] /= L[c * size + c]
        value = x[c]
        for r in range(size - c - 1):
            rest[r] -= value * below[r]


@sums
def _lower_transposed(L, x, size):
    """x <- L⁻ᵀx."""
    for c in range(size - 1, -1, -1):
        below, rest = L[c * size + c + 1 :], x[c + 1 :]
        total = 0.0
        for r in range(size - c - 1):
            total += below[r] * rest[r]
        x[c] = (x[c] - total) / L[c * size + c]


@sums
def _push(W, own, after, size, width):
    """after <- after - Wᵀown."""
    for y in range(width):
        column = W[y * size :]
        total = 0.0
        for r in range(size):
            total += column[r] * own[r]
        after[y] -= total


@sums
def _pull(W, own, after, size, width):
    """own <- own - W after."""
    for y in range(width):
        column, value = W[y * size :], after[y]
        for r in range(size):
            own[r] -= value * column[r]


@part
def substitute(block, v, x):
    """v <- H⁻¹ v over the first m entries, H being factored; x (m,) is room to work. Loops, as the
    panels are small and BLAS is called with a lock, for which threads would queue."""
    place, scale = block.position, block.scale
    m = len(place)
    for i in range(m):
        x[place[i]] = v[i] * scale[place[i]]
    for k in range(block.panels):
        size, L, W = _panel(block, k)
        own = x[block.ends[k] :]
        _lower(L, own, size)
        width, after = block.ends[k + 2] - block.ends[k + 1], x[block.ends[k + 1] :]
        _push(W, own, after, size, width)
    for k in range(block.panels - 1, -1, -1):
        size, L, W = _panel(block, k)
        own = x[block.ends[k] :]
        width, after = block.ends[k + 2] - block.ends[k + 1], x[block.ends[k + 1] :]
        _pull(W, own, after, size, width)
        _lower_transposed(L, own, size)
    for i in range(m):
        v[i] = x[place[i]] * scale[place[i]]


@jit
def solve(t, nt, panels, factors, B):
    """B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries."""
    blocks, m = factors.scale.shape
    x, start = np.empty(m), np.empty(m + 1, np.int64)
    for o in range(t, blocks, nt):
        block = _block(o, panels, factors, start)
        for q in range(B.shape[1]):
            substitute(block, B[o, q], x)
