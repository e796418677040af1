"""Compiled factorisation of the blocks, their inverses summed, and solves.

A block's matrix H = Gᵀ diag(z/s) G is scaled to unit diagonal and factored as block tridiagonal
in panels: with the variables in order, panel k + 1 ends where the neighbours of panel k end, so
nothing lies outside the three diagonals, long pairs included. Panels are column major.
Variables without rows (fixed at zero) have scale 0 and a unit diagonal.

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from optmech.engines.structured.blas import (
    GEMM,
    GEMV,
    LEFT,
    LOWER,
    NO,
    POTRF,
    POTRI,
    SYRK,
    TRANSPOSED,
    TRSM,
    TRSV,
    fortran,
)
from optmech.engines.structured.compiling import jit


@jit
def _panels(reach, first, ends, m):
    """Panel ends from the furthest neighbours; returns their number and the cost of factoring."""
    ends[0] = 0
    ends[1] = min(first, m)
    k = 1
    while ends[k] < m:
        after = max(reach[ends[k] - 1] + 1, ends[k] + 1)
        if m - after < first // 2:
            after = m
        ends[k + 1] = after
        k += 1
    cost = 0.0
    for q in range(k):
        a = float(ends[q + 1] - ends[q])
        cost += a * a * a + 2.0e3
        if q + 1 < k:
            b = float(ends[q + 2] - ends[q + 1])
            cost += 2.0 * a * b * (m - ends[q + 1]) + 4.0 * a * a * b + a * b * b
    return k, cost


@jit
def partition(t, nt, blocks, offset, ri, rj, position, first, ends, panels, order, size):
    """Pick every block's order and panels by the cost of factoring."""
    m = position.shape[1]
    reach = np.empty(m, np.int64)
    trial = np.empty(m + 2, np.int64)
    for q in range(t, len(blocks), nt):
        o = blocks[q]
        best = np.inf
        for r in range(len(position)):
            p = position[r]
            for x in range(m):
                reach[x] = x
            for k in range(offset[o], offset[o + 1]):
                if ri[k] < m:
                    a, b = p[ri[k]], p[rj[k]]
                    reach[min(a, b)] = max(reach[min(a, b)], a, b)
            for x in range(1, m):
                reach[x] = max(reach[x], reach[x - 1])
            for half in range(1, 3):
                count, cost = _panels(reach, max(1, first[r] * half // 2), trial, m)
                if cost < best:
                    best = cost
                    order[o] = r
                    panels[o] = count
                    for x in range(count + 1):
                        ends[o, x] = trial[x]
        total = 0
        for k in range(panels[o]):
            a = ends[o, k + 1] - ends[o, k]
            total += a * a
            if k + 1 < panels[o]:
                total += a * (ends[o, k + 2] - ends[o, k + 1])
        size[o] = total


@jit
def assemble(lo, hi, ri, rj, re, s, z, p, b, K, A, d, panel, start, ridge):
    """H into the panels A, scaled to unit diagonal by d."""
    m = len(p)
    A[:] = 0.0
    a = 0
    for k in range(K):
        start[k] = a
        width = b[k + 1] - b[k]
        a += width * width
        if k + 1 < K:
            a += width * (b[k + 2] - b[k + 1])
        panel[b[k] : b[k + 1]] = k
    d[:] = 0.0
    for k in range(lo, hi):
        w = z[k] / s[k]
        d[p[rj[k]]] += w * re[k] * re[k]
        if ri[k] < m:
            d[p[ri[k]]] += w
    for x in range(m):
        d[x] = 1.0 / np.sqrt(d[x]) if d[x] > 0 else 0.0
    for k in range(lo, hi):
        if ri[k] == m:
            continue
        x, y = p[ri[k]], p[rj[k]]
        w = -z[k] / s[k] * re[k] * d[x] * d[y]
        x, y = min(x, y), max(x, y)
        q = panel[x]
        width = b[q + 1] - b[q]
        if panel[y] == q:
            A[start[q] + (y - b[q]) + (x - b[q]) * width] += w
        else:
            A[start[q] + width * width + (x - b[q]) + (y - b[q + 1]) * width] += w
    for k in range(K):
        width = b[k + 1] - b[k]
        for x in range(width):
            A[start[k] + x * width + x] += 1.0 + ridge


@jit
def cholesky(ad, b, K, A, start, info):
    """In place: panel k becomes L_k, what couples it to the next becomes L_k^-1 B_k."""
    for k in range(K):
        n0 = b[k + 1] - b[k]
        L = A[start[k] :]
        fortran(ad[POTRF], (LOWER, n0, L, n0, info))
        if info[0] != 0:
            return False
        if k + 1 < K:
            n1 = b[k + 2] - b[k + 1]
            W = A[start[k] + n0 * n0 :]
            fortran(ad[TRSM], (LEFT, LOWER, NO, NO, n0, n1, 1.0, L, n0, W, n0))
            after = A[start[k + 1] :]
            fortran(ad[SYRK], (LOWER, TRANSPOSED, n1, n0, -1.0, W, n0, 1.0, after, n1))
    return True


@jit
def factor(
    t,
    nt,
    ad,
    offset,
    ri,
    rj,
    re,
    s,
    z,
    position,
    ends,
    panels,
    order,
    base,
    store,
    scale,
    schur,
    variable,
    value,
    coupled,
    linked,
    inverse,
    info,
    ridge,
):
    """Factor every block and add up its inverse: ``schur[t, order]`` in ordered positions, lower
    triangle; with links also their rows, ``coupled[t]`` (N, m) and ``linked[t]`` (N, N)."""
    blocks, m = scale.shape
    widest = 0
    for o in range(t, blocks, nt):
        for k in range(panels[o]):
            widest = max(widest, ends[o, k + 1] - ends[o, k])
    R, R1, G = np.empty(widest * m), np.empty(widest * m), np.empty(widest * m)
    panel, start = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    code = np.zeros(1, np.int32)
    links = len(variable)
    schur[t] = 0.0
    coupled[t] = 0.0
    linked[t] = 0.0
    for o in range(t, blocks, nt):
        A, p, b, K, d = (
            store[base[o] : base[o + 1]],
            position[order[o]],
            ends[o],
            panels[o],
            scale[o],
        )
        assemble(offset[o], offset[o + 1], ri, rj, re, s, z, p, b, K, A, d, panel, start, ridge[o])
        info[o] = 0 if cholesky(ad, b, K, A, start, code) else 1
        if info[o]:
            continue
        total = schur[t, order[o]]
        for k in range(K - 1, -1, -1):
            # rows b[k].. of the inverse, columns b[k]..m: R is n0 x (m - b[k])
            n0 = b[k + 1] - b[k]
            L = A[start[k] :]
            for c in range(n0):
                for r in range(c, n0):
                    R[c * n0 + r] = L[c * n0 + r]
            fortran(ad[POTRI], (LOWER, n0, R, n0, code))
            for c in range(n0):
                for r in range(c + 1, n0):
                    R[r * n0 + c] = R[c * n0 + r]
            if k + 1 < K:
                n1, rest = b[k + 2] - b[k + 1], m - b[k + 1]
                G[: n0 * n1] = A[start[k] + n0 * n0 : start[k] + n0 * n0 + n0 * n1]
                fortran(ad[TRSM], (LEFT, LOWER, TRANSPOSED, NO, n0, n1, 1.0, L, n0, G, n0))
                right = R[n0 * n0 :]
                fortran(ad[GEMM], (NO, NO, n0, rest, n1, -1.0, G, n0, R1, n1, 0.0, right, n0))
                fortran(ad[GEMM], (NO, TRANSPOSED, n0, n0, n1, -1.0, right, n0, G, n0, 1.0, R, n0))
            first = b[k]
            for c in range(m - first):
                dc = d[first + c]
                for r in range(n0):
                    total[first + c, first + r] += R[c * n0 + r] * dc * d[first + r]
            if links:
                for c in range(m - first):
                    for r in range(n0):
                        x = R[c * n0 + r] * d[first + c] * d[first + r]
                        inverse[t, first + c, first + r] = x
                        inverse[t, first + r, first + c] = x
            R, R1 = R1, R
        for q in range(links):
            v = value[q, o]
            if variable[q] == m or v == 0.0:
                continue
            row = inverse[t, p[variable[q]]]
            for x in range(m):
                coupled[t, q, x] += v * row[p[x]]
            for q2 in range(links):
                if variable[q2] < m:
                    linked[t, q, q2] += v * value[q2, o] * row[p[variable[q2]]]


@jit
def substitute(ad, p, b, K, A, d, v, x):
    """v <- H^-1 v over the first len(p) entries, with H's factor in A; x is room to work."""
    m = len(p)
    for i in range(m):
        x[p[i]] = v[i]
    for i in range(m):
        x[i] *= d[i]
    a = 0
    for k in range(K):
        n0 = b[k + 1] - b[k]
        part = x[b[k] :]
        fortran(ad[TRSV], (LOWER, NO, NO, n0, A[a:], n0, part, 1))
        a += n0 * n0
        if k + 1 < K:
            n1 = b[k + 2] - b[k + 1]
            after = x[b[k + 1] :]
            fortran(ad[GEMV], (TRANSPOSED, n0, n1, -1.0, A[a:], n0, part, 1, 1.0, after, 1))
            a += n0 * n1
    for k in range(K - 1, -1, -1):
        n0 = b[k + 1] - b[k]
        part = x[b[k] :]
        if k + 1 < K:
            n1 = b[k + 2] - b[k + 1]
            a -= n0 * n1
            fortran(ad[GEMV], (NO, n0, n1, -1.0, A[a:], n0, x[b[k + 1] :], 1, 1.0, part, 1))
        a -= n0 * n0
        fortran(ad[TRSV], (LOWER, TRANSPOSED, NO, n0, A[a:], n0, part, 1))
    for i in range(m):
        v[i] = x[p[i]] * d[p[i]]


@jit
def solve(t, nt, ad, position, ends, panels, order, base, store, scale, B):
    """B[o, q] <- H_o^-1 B[o, q] for all q, over the first m entries."""
    blocks, m = scale.shape
    x = np.empty(m)
    for o in range(t, blocks, nt):
        A, p, b, K, d = (
            store[base[o] : base[o + 1]],
            position[order[o]],
            ends[o],
            panels[o],
            scale[o],
        )
        for q in range(B.shape[1]):
            substitute(ad, p, b, K, A, d, B[o, q], x)
