"""Compiled factors of blocks whose pairs are few: sparse Cholesky factors, solves with them,
and entries of inverses.

A block of some thousand variables holds five to seven pairs of each, nearly a planar graph: in an
order of least degree its factor has ten to twenty entries a column (George and Liu 1981), where
panels of a band (``factoring``) hold hundreds. Column k of L lies at ``column[o, k]`` of what block
o has in ``row`` and ``value``, its diagonal first, rows rising.

Kernels do the blocks ``t, t + nt, ...``; ``lapack`` are the addresses that ``blas.fortran`` calls.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from typing import NamedTuple

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.blas import (
    LEFT,
    LOWER,
    NO,
    POTRF,
    SYRK,
    TRANSPOSED,
    TRSM,
    fortran,
    jit,
    part,
)
from optmech.engines.structured.factoring import scaled_entry, unit_scale
from optmech.engines.structured.rows import Short

ABREAST = 8
"""Blocks of one pattern that are solved for at once, entry by entry: a vector of numbers."""
_CHUNK = 64
"""Rows of the inverse factor that are multiplied with themselves at a time."""


class SparseFactors(NamedTuple):
    """The factors of all blocks as kernels have them."""

    position: Ints
    """(blocks, m): the place of every variable."""
    parent: Short
    """(blocks, m): the elimination tree, -1 at its roots."""
    column: Ints
    """(blocks, m + 1): where columns begin, from 0 on."""
    base: Ints
    """(blocks + 1,): where each block begins in ``row`` and ``value``."""
    row: Short
    value: Floats
    scale: Floats
    """(blocks, m), in places: what rows and columns were multiplied by, 0 without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""


class Room(NamedTuple):
    """What is worked with on a block of m variables: its pairs by a place, as ``_by_place`` leaves
    them, and columns of its factor by the row that they go on with."""

    start: Ints
    other: Short
    number: Ints
    first: Ints
    head: Short
    later: Short
    work: Floats


@part
def _room(rows, m):
    """Room for the block with the most rows."""
    most = np.diff(rows.offset).max()
    return Room(
        np.empty(m + 1, np.int64),
        np.empty(most, np.int32),
        np.empty(most, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int32),
        np.empty(m, np.int32),
        np.empty(m),
    )


@part
def _columns(o, sparse):
    """Where the columns of block o's factor begin, and their rows and values."""
    own = slice(sparse.base[o], sparse.base[o + 1])
    return sparse.column[o], sparse.row[own], sparse.value[own]


@part
def _by_place(o, rows, place, last, room):
    """A block's pairs by their later place, or else by their earlier one: their ``other`` places
    and their ``number``, those of place k from start[k] on."""
    m = len(place)
    start = room.start
    start[:] = 0
    lo, hi = rows.offset[o], rows.offset[o + 1]
    for k in range(lo, hi):
        if rows.i[k] < m:
            x, y = place[rows.i[k]], place[rows.j[k]]
            start[max(x, y) if last else min(x, y)] += 1
    for x in range(m):
        start[x + 1] += start[x]
    for k in range(hi - 1, lo - 1, -1):
        if rows.i[k] < m:
            x, y = place[rows.i[k]], place[rows.j[k]]
            own = max(x, y) if last else min(x, y)
            start[own] -= 1
            room.other[start[own]] = x + y - own
            room.number[start[own]] = k


@jit
def pattern(t, nt, blocks, rows, sparse, known):
    """The elimination trees and the sizes of columns of some blocks (Liu 1990), or, where these are
    ``known``, the rows of every column."""
    m = sparse.position.shape[1]
    room = _room(rows, m)
    seen, free = room.later, room.first
    for q in range(t, len(blocks), nt):
        o = blocks[q]
        _by_place(o, rows, sparse.position[o], True, room)
        parent = sparse.parent[o]
        column, index, _ = _columns(o, sparse)
        for k in range(m):
            free[k] = column[k] if known else 0
        for k in range(m):
            seen[k] = k
            if known:
                index[free[k]] = k
            else:
                parent[k] = -1
            free[k] += 1
            for p in range(room.start[k], room.start[k + 1]):
                x = room.other[p]
                while seen[x] != k:
                    seen[x] = k
                    if known:
                        index[free[x]] = k
                    elif parent[x] == -1:
                        parent[x] = k
                    free[x] += 1
                    x = parent[x]
        if not known:
            column[0] = 0
            column[1:] = np.cumsum(free)


@part
def _wait(j, p, end, index, room):
    """Let column j go on with its entry p, if it comes before ``end``: ``head`` has one column for
    every row, and ``later`` the next after each."""
    if p < end:
        row = index[p]
        room.first[j] = p
        room.later[j] = room.head[row]
        room.head[row] = j


@part
def _factored(o, rows, place, scale, ridge, L, room):
    """Factor a block's scaled matrix column after column; False where it is not positive
    definite."""
    unit_scale(o, rows, place, scale)
    _by_place(o, rows, place, False, room)
    m = len(place)
    start, head, later, work = room.start, room.head, room.later, room.work
    column, index, value = L
    head[:] = -1
    work[:] = 0.0
    for k in range(m):
        work[k] = 1.0 + ridge
        for p in range(start[k], start[k + 1]):
            work[room.other[p]] += scaled_entry(room.number[p], rows, place, scale)
        j = head[k]
        while j != -1:  # the columns whose next row is k
            after = later[j]
            p, end = room.first[j], column[j + 1]
            x = value[p]
            for q in range(p, end):
                work[index[q]] -= x * value[q]
            _wait(j, p + 1, end, index, room)
            j = after
        if not work[k] > 0.0:
            return False
        root = np.sqrt(work[k])
        begin, end = column[k], column[k + 1]
        value[begin] = root
        work[k] = 0.0
        for q in range(begin + 1, end):
            value[q] = work[index[q]] / root
            work[index[q]] = 0.0
        _wait(k, begin + 1, end, index, room)
    return True


@part
def _ranges(parent, wanted, low, high):
    """Among the wanted places, which of them lie below each place: from low[k] to high[k]."""
    m, found = len(parent), 0
    low[:] = m
    high[:] = 0
    for k in range(m):
        if wanted[k]:
            low[k], high[k] = min(low[k], found), found + 1
            found += 1
        up = parent[k]
        if up >= 0:
            low[up], high[up] = min(low[up], low[k]), max(high[up], high[k])
    return found


@part
def _inverse_rows(L, wanted, low, high, base, X, room):
    """Rows of L⁻¹ over the wanted places below each, one after the other in X."""
    column, index, value = L
    head, later = room.head, room.later
    head[:] = -1
    number = 0
    for k in range(len(head)):
        own = X[base[k] : base[k + 1]]
        own[:] = 0.0
        root = 1.0 / value[column[k]]
        if wanted[k]:
            own[number - low[k]] = root
            number += 1
        j = head[k]
        while j != -1:
            after = later[j]
            p, end = room.first[j], column[j + 1]
            if high[j] > low[j]:
                x, shift, from_ = value[p] * root, low[j] - low[k], base[j]
                for c in range(high[j] - low[j]):
                    own[shift + c] -= x * X[from_ + c]
            _wait(j, p + 1, end, index, room)
            j = after
        _wait(k, column[k] + 1, column[k + 1], index, room)


@part
def _squared(lapack, low, high, base, X, rows, inverse):
    """inverse = XᵀX in the lower triangle, column major, over all wanted places; ``rows`` is room
    for a chunk of rows of one width."""
    m, count = len(low), inverse.shape[0]
    inverse[:] = 0.0
    flat = inverse.ravel()
    k = 0
    while k < m:
        if high[k] <= low[k]:
            k += 1
            continue
        # rows whose ranges begin alike, filled up to the widest
        end, last = k, high[k]
        while end < m and end - k < _CHUNK and low[end] == low[k] and high[end] > low[end]:
            if end > k and max(last, high[end]) - low[k] > 1.25 * (high[k] - low[k]) + 8:
                break
            last = max(last, high[end])
            end += 1
        width, size = last - low[k], end - k
        for r in range(size):
            own, begin = high[k + r] - low[k], base[k + r]
            row = rows[r * width : (r + 1) * width]
            row[:own] = X[begin : begin + own]
            row[own:] = 0.0
        fortran(
            lapack[SYRK],
            (LOWER, NO, width, size, 1.0, rows, width, 1.0, flat[low[k] * (count + 1) :], count),
        )
        k = end


@jit
def factor(t, nt, lapack, rows, sparse, wanted, total, diagonal):
    """Factor every block; where ``wanted`` (blocks, m) is not empty, add the inverses' entries
    between the variables that a block has there to ``total[t // 2]``: to the lower triangle of even
    t and the upper one of odd t, and to ``diagonal[t]``."""
    blocks, m = sparse.parent.shape
    room = _room(rows, m)
    chosen, back = np.empty(m, np.bool_), np.empty(m, np.int64)
    lowest, highest, base = np.empty(m, np.int64), np.empty(m, np.int64), np.zeros(m + 1, np.int64)
    X, chunk, inverse = np.empty(0), np.empty(_CHUNK * len(total[0])), np.empty((0, 0))
    upper, own = t % 2 == 1, total[t // 2]
    for x in range(len(own)):
        if upper:
            own[x, x + 1 :] = 0.0
        else:
            own[x, :x] = 0.0
    diagonal[t] = 0.0
    for o in range(t, blocks, nt):
        place, scale, L = sparse.position[o], sparse.scale[o], _columns(o, sparse)
        sparse.failed[o] = not _factored(o, rows, place, scale, sparse.ridge[o], L, room)
        if sparse.failed[o] or not len(wanted) or not wanted[o].any():
            continue
        for x in range(m):
            chosen[place[x]] = wanted[o, x]
            back[place[x]] = x
        found = _ranges(sparse.parent[o], chosen, lowest, highest)
        base[1:] = np.cumsum(np.maximum(highest - lowest, 0))
        if base[m] > len(X):
            X = np.empty(base[m])
        if found != len(inverse):
            inverse = np.empty((found, found))
        _inverse_rows(L, chosen, lowest, highest, base, X, room)
        _squared(lapack, lowest, highest, base, X, chunk, inverse)
        variable = np.flatnonzero(chosen)
        for c in range(found):
            x = variable[c]
            for r in range(c, found):
                y = variable[r]
                entry = inverse[c, r] * scale[x] * scale[y]
                one, other = min(back[x], back[y]), max(back[x], back[y])
                if one == other:
                    diagonal[t, one] += entry
                elif upper:
                    own[one, other] += entry
                else:
                    own[other, one] += entry


@jit
def solve(t, nt, sparse, B):
    """B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries."""
    blocks, m = sparse.parent.shape
    x = np.empty(m)
    for o in range(t, blocks, nt):
        position, scale = sparse.position[o], sparse.scale[o]
        column, index, value = _columns(o, sparse)
        for q in range(B.shape[1]):
            v = B[o, q]
            for i in range(m):
                x[position[i]] = v[i] * scale[position[i]]
            for k in range(m):
                own = x[k] / value[column[k]]
                x[k] = own
                for p in range(column[k] + 1, column[k + 1]):
                    x[index[p]] -= value[p] * own
            for k in range(m - 1, -1, -1):
                own = x[k]
                for p in range(column[k] + 1, column[k + 1]):
                    own -= value[p] * x[index[p]]
                x[k] = own / value[column[k]]
            for i in range(m):
                v[i] = x[position[i]] * scale[position[i]]


@part
def _inverse(L, entries, sums, place):
    """The entries of (L Lᵀ)⁻¹ within the pattern of L (Takahashi, Fagan and Chin, 1973)."""
    column, index, value = L
    for k in range(len(place) - 1, -1, -1):
        begin, end = column[k], column[k + 1]
        count = end - begin - 1
        for p in range(count):
            place[index[begin + 1 + p]] = p
            sums[p] = 0.0
        for p in range(count):
            q = index[begin + 1 + p]
            own = value[begin + 1 + p]
            first = column[q]
            sums[p] += own * entries[first]
            for a in range(first + 1, column[q + 1]):
                r = place[index[a]]
                if r >= 0:
                    sums[r] += own * entries[a]
                    sums[p] += value[begin + 1 + r] * entries[a]
        root = 1.0 / value[begin]
        diagonal = root * root
        for p in range(count):
            entries[begin + 1 + p] = -sums[p] * root
            diagonal += value[begin + 1 + p] * sums[p] * root * root
            place[index[begin + 1 + p]] = -1
        entries[begin] = diagonal


@jit
def covariances(t, nt, rows, sparse, total):
    """Add the entries of every block's inverse within the pattern of its factor, which is the same
    for all, to ``total[t]``; nan where a block cannot be factored."""
    column, index, _ = _columns(0, sparse)
    blocks, m = sparse.parent.shape
    size = column[m]
    room, scale, place = _room(rows, m), np.empty(m), np.full(m, -1, np.int64)
    L, entries, sums = (
        (column, index, np.empty(size)),
        np.empty(size),
        np.empty(np.diff(column).max()),
    )
    total[t] = 0.0
    for o in range(t, blocks, nt):
        if not _factored(o, rows, sparse.position[o], scale, sparse.ridge[o], L, room):
            total[t] = np.nan
            return
        _inverse(L, entries, sums, place)
        for k in range(m):
            for a in range(column[k], column[k + 1]):
                total[t, a] += entries[a] * scale[k] * scale[index[a]]


@jit
def beside(t, nt, sparse, value, scale):
    """The factors and scales of all blocks, of one pattern, eight blocks next to each other: value
    (groups, size, 8) and scale (groups, m, 8), which are zero after the last block."""
    blocks, m = sparse.parent.shape
    for g in range(t, len(value), nt):
        for c in range(min(ABREAST, blocks - ABREAST * g)):
            o = ABREAST * g + c
            own = _columns(o, sparse)[2]
            value[g, :, c] = own
            scale[g, :, c] = sparse.scale[o]
            for a in sparse.column[0, :m]:
                value[g, a, c] = 1.0 / own[a]


@jit
def summed(t, nt, column, index, value, scale, y, total):
    """Add H_o⁻¹ y of every block to ``total[t]``, both (m,) in the order of one pattern; factors as
    ``beside`` lays them out."""
    m = len(column) - 1
    x, own = np.empty((m, ABREAST)), np.empty(ABREAST)
    total[t] = 0.0
    for g in range(t, len(value), nt):
        v, s = value[g], scale[g]
        for k in range(m):
            for c in range(ABREAST):
                x[k, c] = y[k] * s[k, c]
        for k in range(m):
            a = column[k]
            for c in range(ABREAST):
                own[c] = x[k, c] * v[a, c]
                x[k, c] = own[c]
            for p in range(a + 1, column[k + 1]):
                r = index[p]
                for c in range(ABREAST):
                    x[r, c] -= v[p, c] * own[c]
        for k in range(m - 1, -1, -1):
            a = column[k]
            for c in range(ABREAST):
                own[c] = x[k, c]
            for p in range(a + 1, column[k + 1]):
                r = index[p]
                for c in range(ABREAST):
                    own[c] -= v[p, c] * x[r, c]
            sum_ = 0.0
            for c in range(ABREAST):
                x[k, c] = own[c] * v[a, c]
                sum_ += x[k, c] * s[k, c]
            total[t, k] += sum_


@jit
def regressed(t, nt, lapack, column, index, covariance, weight, spread):
    """For every column k of a pattern the weights of its other rows that predict variable k best,
    of what has the covariances ``covariance`` within the pattern, and the spread that is left."""
    m = len(column) - 1
    place = np.full(m, -1, np.int64)
    most = np.diff(column).max()
    A, x, info = np.empty((most, most)), np.empty(most), np.zeros(1, np.int32)
    for k in range(t, m, nt):
        begin = column[k]
        count = column[k + 1] - begin - 1
        for p in range(count):
            place[index[begin + 1 + p]] = p
        for p in range(count):
            q = index[begin + 1 + p]
            x[p] = covariance[begin + 1 + p]
            A[p, p] = covariance[column[q]] * (1.0 + 1e-13)
            for a in range(column[q] + 1, column[q + 1]):
                r = place[index[a]]
                if r >= 0:
                    A[p, r] = covariance[a]
        for p in range(count):
            place[index[begin + 1 + p]] = -1
        # rows rise, so that r > p above: the lower triangle, column major
        fortran(lapack[POTRF], (LOWER, count, A, most, info))
        if info[0] != 0:
            x[:count] = 0.0  # of what cannot be told from each other nothing is predicted
        fortran(lapack[TRSM], (LEFT, LOWER, NO, NO, count, 1, 1.0, A, most, x, most))
        left = covariance[begin] - (x[:count] ** 2).sum()
        fortran(lapack[TRSM], (LEFT, LOWER, TRANSPOSED, NO, count, 1, 1.0, A, most, x, most))
        for p in range(count):
            weight[begin + 1 + p] = -x[p]
        weight[begin] = 1.0
        spread[k] = max(left, 1e-12 * covariance[begin])


@jit
def raised(t, nt, start, other, decay, P, out):
    """The least columns >= P with out_j >= decay out_i for all pairs i, j: ``other`` and ``decay``
    of the pairs of i are those from start[i] on."""
    blocks, width = P.shape
    m = width - 1
    queue, waits = np.empty(m + 1, np.int64), np.zeros(m, np.bool_)
    for o in range(t, blocks, nt):
        v = out[o]
        v[:] = P[o]
        first, count = 0, m
        for i in range(m):
            queue[i] = i
            waits[i] = True
        while count > 0:
            i = queue[first]
            first = (first + 1) % (m + 1)
            count -= 1
            waits[i] = False
            for a in range(start[i], start[i + 1]):
                least = decay[a] * v[i]
                j = other[a]
                if least > v[j]:
                    v[j] = least
                    if not waits[j]:
                        waits[j] = True
                        queue[(first + count) % (m + 1)] = j
                        count += 1
        v[m] = 0.0
