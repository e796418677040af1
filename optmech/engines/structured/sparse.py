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
from optmech.engines.structured.blas import LOWER, NO, SYRK, fortran, jit, part
from optmech.engines.structured.rows import Indices

ABREAST = 8
"""Blocks of one pattern that are solved for at once, entry by entry: a vector of numbers."""
_CHUNK = 64
"""Rows of the inverse factor that are multiplied with themselves at a time."""


class SparseFactors(NamedTuple):
    """The factors of all blocks as kernels have them."""

    position: Ints
    """(blocks, m): the place of every variable."""
    parent: Indices
    """(blocks, m): the elimination tree, -1 at its roots."""
    column: Ints
    """(blocks, m + 1): where columns begin, from 0 on."""
    base: Ints
    """(blocks + 1,): where each block begins in ``row`` and ``value``."""
    row: Indices
    value: Floats
    scale: Floats
    """(blocks, m), in places: what rows and columns were multiplied by, 0 without rows."""
    ridge: Floats
    """(blocks,): added to the unit diagonals."""
    failed: Ints
    """(blocks,): 1 where a matrix was not positive definite."""


@part
def _below(lo, hi, rows, place, start, low):
    """The pairs from ``lo`` to ``hi`` by their later place: their earlier places in ``low``, those
    of place k from start[k] on."""
    m = len(place)
    start[:] = 0
    for k in range(lo, hi):
        if rows.i[k] < m:
            start[max(place[rows.i[k]], place[rows.j[k]]) + 1] += 1
    for x in range(m):
        start[x + 1] += start[x]
    for k in range(lo, hi):
        if rows.i[k] < m:
            x, y = place[rows.i[k]], place[rows.j[k]]
            low[start[max(x, y)]] = min(x, y)
            start[max(x, y)] += 1
    for x in range(m, 0, -1):
        start[x] = start[x - 1]
    start[0] = 0


@jit
def count(t, nt, blocks, rows, sparse):
    """The elimination tree and the sizes of columns of some blocks (Liu 1990)."""
    m = sparse.position.shape[1]
    start, low = np.empty(m + 1, np.int64), np.empty(0, np.int32)
    above, seen = np.empty(m, np.int32), np.empty(m, np.int32)
    for q in range(t, len(blocks), nt):
        o = blocks[q]
        lo, hi = rows.offset[o], rows.offset[o + 1]
        if hi - lo > len(low):
            low = np.empty(hi - lo, np.int32)
        _below(lo, hi, rows, sparse.position[o], start, low)
        parent, column = sparse.parent[o], sparse.column[o]
        for k in range(m):
            parent[k], above[k] = -1, -1
            for p in range(start[k], start[k + 1]):
                x = low[p]
                while x != -1 and x < k:
                    after = above[x]
                    above[x] = k
                    if after == -1:
                        parent[x] = k
                    x = after
        column[:] = 0
        for k in range(m):
            seen[k] = k
            column[k + 1] += 1
            for p in range(start[k], start[k + 1]):
                x = low[p]
                while seen[x] != k:
                    seen[x] = k
                    column[x + 1] += 1
                    x = parent[x]
        for k in range(m):
            column[k + 1] += column[k]


@jit
def fill(t, nt, rows, sparse):
    """The rows of every column."""
    blocks, m = sparse.parent.shape
    start, low = np.empty(m + 1, np.int64), np.empty(0, np.int32)
    seen, free = np.empty(m, np.int32), np.empty(m, np.int64)
    for o in range(t, blocks, nt):
        lo, hi = rows.offset[o], rows.offset[o + 1]
        if hi - lo > len(low):
            low = np.empty(hi - lo, np.int32)
        _below(lo, hi, rows, sparse.position[o], start, low)
        parent, index = sparse.parent[o], sparse.row[sparse.base[o] : sparse.base[o + 1]]
        free[:] = sparse.column[o, :m]
        for k in range(m):
            seen[k] = k
            index[free[k]] = k
            free[k] += 1
            for p in range(start[k], start[k + 1]):
                x = low[p]
                while seen[x] != k:
                    seen[x] = k
                    index[free[x]] = k
                    free[x] += 1
                    x = parent[x]


@part
def _assembled(lo, hi, rows, place, scale, start, high, weight):
    """What is beside the unit diagonal of a block's scaled matrix, by the earlier place of every
    pair: later places in ``high`` and entries in ``weight``."""
    m = len(place)
    scale[:] = 0.0
    start[:] = 0
    for k in range(lo, hi):
        w = rows.z[k] / rows.s[k]
        scale[place[rows.j[k]]] += w * rows.e[k] * rows.e[k]
        if rows.i[k] < m:
            scale[place[rows.i[k]]] += w
            start[min(place[rows.i[k]], place[rows.j[k]]) + 1] += 1
    for x in range(m):
        scale[x] = 1.0 / np.sqrt(scale[x]) if scale[x] > 0 else 0.0
        start[x + 1] += start[x]
    for k in range(lo, hi):
        if rows.i[k] < m:
            x, y = place[rows.i[k]], place[rows.j[k]]
            p = start[min(x, y)]
            high[p] = max(x, y)
            weight[p] = -rows.z[k] / rows.s[k] * rows.e[k] * scale[x] * scale[y]
            start[min(x, y)] += 1
    for x in range(m, 0, -1):
        start[x] = start[x - 1]
    start[0] = 0


@part
def _cholesky(column, index, value, start, high, weight, ridge, first, head, later, work):
    """Factor column after column; False where the matrix is not positive definite."""
    m = len(head)
    head[:] = -1
    work[:] = 0.0
    for k in range(m):
        work[k] = 1.0 + ridge
        for p in range(start[k], start[k + 1]):
            work[high[p]] += weight[p]
        j = head[k]
        while j != -1:  # the columns whose next row is k
            after = later[j]
            p, end = first[j], column[j + 1]
            x = value[p]
            for q in range(p, end):
                work[index[q]] -= x * value[q]
            if p + 1 < end:
                first[j] = p + 1
                row = index[p + 1]
                later[j] = head[row]
                head[row] = j
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
        if begin + 1 < end:
            first[k] = begin + 1
            row = index[begin + 1]
            later[k] = head[row]
            head[row] = k
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
def _inverse_rows(column, index, value, wanted, low, high, first, head, later, base, X):
    """Rows of L⁻¹ over the wanted places below each, one after the other in X."""
    m = len(head)
    head[:] = -1
    number = 0
    for k in range(m):
        begin, width = base[k], high[k] - low[k]
        own = X[begin : begin + max(width, 0)]
        own[:] = 0.0
        root = 1.0 / value[column[k]]
        if wanted[k]:
            own[number - low[k]] = root
            number += 1
        j = head[k]
        while j != -1:
            after = later[j]
            p, end = first[j], column[j + 1]
            if high[j] > low[j]:
                x, shift, from_ = value[p] * root, low[j] - low[k], base[j]
                for c in range(high[j] - low[j]):
                    own[shift + c] -= x * X[from_ + c]
            if p + 1 < end:
                first[j] = p + 1
                row = index[p + 1]
                later[j] = head[row]
                head[row] = j
            j = after
        if column[k] + 1 < column[k + 1]:
            first[k] = column[k] + 1
            row = index[first[k]]
            later[k] = head[row]
            head[row] = k


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
            for c in range(own):
                rows[r * width + c] = X[begin + c]
            for c in range(own, width):
                rows[r * width + c] = 0.0
        fortran(
            lapack[SYRK],
            (LOWER, NO, width, size, 1.0, rows, width, 1.0, flat[low[k] * (count + 1) :], count),
        )
        k = end


@jit
def factor(t, nt, lapack, rows, sparse, wanted, total):
    """Factor every block; where ``wanted`` (blocks, m) is not empty, add the inverses' entries
    between the variables that a block has there to ``total[t]``, in its lower triangle."""
    blocks, m = sparse.parent.shape
    start = np.empty(m + 1, np.int64)
    high, weight = np.empty(0, np.int32), np.empty(0)
    first, head, later = np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int32)
    work, chosen = np.empty(m), np.empty(m, np.bool_)
    lowest, highest, base = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m + 1, np.int64)
    back, variable = np.empty(m, np.int64), np.empty(m, np.int64)
    X, chunk, inverse = np.empty(0), np.empty(0), np.empty((0, 0))
    total[t] = 0.0
    for o in range(t, blocks, nt):
        lo, hi = rows.offset[o], rows.offset[o + 1]
        if hi - lo > len(high):
            high, weight = np.empty(hi - lo, np.int32), np.empty(hi - lo)
        scale, column = sparse.scale[o], sparse.column[o]
        index = sparse.row[sparse.base[o] : sparse.base[o + 1]]
        value = sparse.value[sparse.base[o] : sparse.base[o + 1]]
        _assembled(lo, hi, rows, sparse.position[o], scale, start, high, weight)
        sparse.failed[o] = not _cholesky(
            column, index, value, start, high, weight, sparse.ridge[o], first, head, later, work
        )
        if sparse.failed[o] or not len(wanted) or not wanted[o].any():
            continue
        for x in range(m):
            chosen[sparse.position[o, x]] = wanted[o, x]
            back[sparse.position[o, x]] = x
        found = _ranges(sparse.parent[o], chosen, lowest, highest)
        base[0] = 0
        for k in range(m):
            base[k + 1] = base[k] + max(0, highest[k] - lowest[k])
        if base[m] > len(X):
            X = np.empty(base[m])
        if found * _CHUNK > len(chunk):
            chunk = np.empty(found * _CHUNK)
        if found != len(inverse):
            inverse = np.empty((found, found))
        _inverse_rows(column, index, value, chosen, lowest, highest, first, head, later, base, X)
        _squared(lapack, lowest, highest, base, X, chunk, inverse)
        number = 0
        for k in range(m):
            if chosen[k]:
                variable[number] = k
                number += 1
        for c in range(found):
            x = variable[c]
            for r in range(c, found):
                y = variable[r]
                entry = inverse[c, r] * scale[x] * scale[y]
                total[t, max(back[x], back[y]), min(back[x], back[y])] += entry


@jit
def solve(t, nt, sparse, B):
    """B[o, q] <- H_o⁻¹ B[o, q] for all q, over the first m entries."""
    blocks, m = sparse.parent.shape
    x = np.empty(m)
    for o in range(t, blocks, nt):
        position = sparse.position[o]
        scale, column = sparse.scale[o], sparse.column[o]
        index = sparse.row[sparse.base[o] : sparse.base[o + 1]]
        value = sparse.value[sparse.base[o] : sparse.base[o + 1]]
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
def _inverse(column, index, value, entries, sums, place):
    """The entries of (L Lᵀ)⁻¹ within the pattern of L (Takahashi, Fagan and Chin, 1973)."""
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
def covariances(t, nt, rows, pattern, ridge, total):
    """Add the entries of every block's inverse within one pattern to ``total[t]``, with ``ridge``
    (blocks,) on unit diagonals; nan where a block cannot be factored."""
    position, column, index = pattern.position[0], pattern.column[0], pattern.row
    m, size = len(position), column[-1]
    start = np.empty(m + 1, np.int64)
    high, weight = np.empty(0, np.int32), np.empty(0)
    first, head, later = np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int32)
    work, scale, place = np.empty(m), np.empty(m), np.full(m, -1, np.int64)
    value, entries, most = np.empty(size), np.empty(size), 0
    for k in range(m):
        most = max(most, column[k + 1] - column[k])
    sums = np.empty(most)
    total[t] = 0.0
    for o in range(t, len(ridge), nt):
        lo, hi = rows.offset[o], rows.offset[o + 1]
        if hi - lo > len(high):
            high, weight = np.empty(hi - lo, np.int32), np.empty(hi - lo)
        _assembled(lo, hi, rows, position, scale, start, high, weight)
        if not _cholesky(
            column, index, value, start, high, weight, ridge[o], first, head, later, work
        ):
            total[t] = np.nan
            return
        _inverse(column, index, value, entries, sums, place)
        for k in range(m):
            for a in range(column[k], column[k + 1]):
                total[t, a] += entries[a] * scale[k] * scale[index[a]]


@jit
def beside(t, nt, sparse, value, scale):
    """The factors and scales of all blocks, of one pattern, eight blocks next to each other: value
    (groups, size, 8) and scale (groups, m, 8), the last ones filled up with ones and zeros."""
    blocks, m = sparse.parent.shape
    for g in range(t, len(value), nt):
        for c in range(ABREAST):
            o = ABREAST * g + c
            if o < blocks:
                own = sparse.value[sparse.base[o] : sparse.base[o + 1]]
                for a in range(len(own)):
                    value[g, a, c] = own[a]
                for k in range(m):
                    a = sparse.column[0, k]
                    value[g, a, c] = 1.0 / own[a]
                    scale[g, k, c] = sparse.scale[o, k]
            else:
                value[g, :, c] = 0.0
                scale[g, :, c] = 0.0


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
def regressed(t, nt, column, index, covariance, weight, spread):
    """For every column k of a pattern the weights of its other rows that predict variable k best,
    of what has the covariances ``covariance`` within the pattern, and the spread that is left."""
    m = len(column) - 1
    place = np.full(m, -1, np.int64)
    most = 0
    for k in range(m):
        most = max(most, column[k + 1] - column[k])
    A, x = np.empty((most, most)), np.empty(most)
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
                    A[r, p] = covariance[a]
        for p in range(count):
            place[index[begin + 1 + p]] = -1
        # rows rise, so that r > p above: Cholesky in the lower triangle
        for p in range(count):
            own = A[p, p]
            for r in range(p):
                own -= A[p, r] * A[p, r]
            own = np.sqrt(max(own, 1e-13 * A[p, p]))
            A[p, p] = own
            for q in range(p + 1, count):
                s = A[q, p]
                for r in range(p):
                    s -= A[q, r] * A[p, r]
                A[q, p] = s / own
        left = covariance[begin]
        for p in range(count):
            s = x[p]
            for r in range(p):
                s -= A[p, r] * x[r]
            x[p] = s / A[p, p]
            left -= x[p] * x[p]
        for p in range(count - 1, -1, -1):
            s = x[p]
            for r in range(p + 1, count):
                s -= A[r, p] * x[r]
            x[p] = s / A[p, p]
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
