"""Compiled passes over the pair rows: residuals, right-hand sides, steps, bounds.

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``. ``rows`` are ``packed.PairRows`` and
``change`` is ``packed.Directions``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from optmech.engines.structured.blas import jit


@jit
def affine_rhs(t, nt, rows, P, rd, B):
    """B = Gᵀ(-z - z·(slack residual)/s) - rd."""
    blocks, width = P.shape
    for o in range(t, blocks, nt):
        g, p = B[o], P[o]
        g[:] = -rd[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            i, j, e, s, z = rows.i[k], rows.j[k], rows.e[k], rows.s[k], rows.z[k]
            q = -z - z * (e * p[j] - p[i] - s) / s
            g[j] += e * q
            g[i] -= q
        g[width - 1] = 0.0


@jit
def second_order_rhs(t, nt, rows, change, mu, B):
    """B = Gᵀ(T/s) with T = mu - ds dz, kept in ds2."""
    blocks, width = B.shape
    for o in range(t, blocks, nt):
        g = B[o]
        g[:] = 0.0
        for k in range(rows.offset[o], rows.offset[o + 1]):
            change.ds2[k] = mu - change.ds[k] * change.dz[k]
            q = change.ds2[k] / rows.s[k]
            g[rows.j[k]] += rows.e[k] * q
            g[rows.i[k]] -= q
        g[width - 1] = 0.0


@jit
def corrector_rhs(t, nt, rows, change, wp, wd, mu, B):
    """Take the last corrector into the direction with weights wp, wd; then B = Gᵀ(T/s) with
    Gondzio's T, which pulls products that a full step would leave far from mu."""
    blocks, width = B.shape
    for o in range(t, blocks, nt):
        g = B[o]
        g[:] = 0.0
        for k in range(rows.offset[o], rows.offset[o + 1]):
            change.ds[k] += wp * change.ds2[k]
            change.dz[k] += wd * change.dz2[k]
            product = (rows.s[k] + change.ds[k]) * (rows.z[k] + change.dz[k])
            T = 0.0
            if product < 0.1 * mu:
                T = 0.1 * mu - product
            elif product > 10 * mu:
                T = max(10 * mu - product, -10 * mu)
            change.ds2[k] = T
            if T != 0.0:
                q = T / rows.s[k]
                g[rows.j[k]] += rows.e[k] * q
                g[rows.i[k]] -= q
        g[width - 1] = 0.0


@jit
def affine_step(t, nt, rows, P, dP, change, stats):
    """ds, dz from dP; stats[t] = largest -ds/s, -dz/z, and the sums s z, s dz, ds z, ds dz."""
    a, b, sz, sdz, dsz, dd = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for o in range(t, len(P), nt):
        p, x = P[o], dP[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            i, j = rows.i[k], rows.j[k]
            u = rows.e[k] * (x[j] + p[j]) - (x[i] + p[i]) - rows.s[k]
            v = -rows.z[k] - rows.z[k] * u / rows.s[k]
            change.ds[k], change.dz[k] = u, v
            sz += rows.s[k] * rows.z[k]
            sdz += rows.s[k] * v
            dsz += u * rows.z[k]
            dd += u * v
            a = max(a, -u / rows.s[k])
            b = max(b, -v / rows.z[k])
    stats[t, 0], stats[t, 1] = a, b
    stats[t, 2], stats[t, 3], stats[t, 4], stats[t, 5] = sz, sdz, dsz, dd


@jit
def corrector_step(t, nt, rows, dP, change, weights, ap, ad):
    """ds2, dz2 from dP; ap[t, q], ad[t, q] = largest -(d + weight_q d2)/value."""
    count = len(weights)
    a, b = np.zeros(count), np.zeros(count)
    # with weights between the first and the last, what is below all maxima at both changes none
    low, high = weights[0], weights[count - 1]
    least_a, least_b = 0.0, 0.0
    for o in range(t, len(dP), nt):
        x = dP[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            u = rows.e[k] * x[rows.j[k]] - x[rows.i[k]]
            v = (change.ds2[k] - rows.z[k] * u) / rows.s[k]
            change.ds2[k], change.dz2[k] = u, v
            r = -1.0 / rows.s[k]
            d0, d1 = change.ds[k] * r, u * r
            if not (d0 + low * d1 <= least_a and d0 + high * d1 <= least_a):
                for q in range(count):
                    a[q] = max(a[q], d0 + weights[q] * d1)
                least_a = a.min()
            r = -1.0 / rows.z[k]
            d0, d1 = change.dz[k] * r, v * r
            if not (d0 + low * d1 <= least_b and d0 + high * d1 <= least_b):
                for q in range(count):
                    b[q] = max(b[q], d0 + weights[q] * d1)
                least_b = b.min()
    ap[t], ad[t] = a, b


@jit
def move(t, nt, rows, change, wp, wd, ap, ad):
    """A step along the direction with the last corrector's weights."""
    for k in range(t * len(rows.s) // nt, (t + 1) * len(rows.s) // nt):
        rows.s[k] += ap * (change.ds[k] + wp * change.ds2[k])
        rows.z[k] += ad * (change.dz[k] + wd * change.dz2[k])


@jit
def violations(t, nt, rows, later, P, level, by_i, by_j):
    """Of the pairs that a block does not hold the one with the largest v_i e^-r / v_j above
    ``level``, for every (block, i): by_i, and every (block, j): by_j; -1 where there is none."""
    blocks, width = P.shape
    m = width - 1
    high, q = np.empty(m), np.empty(m)
    held = np.zeros((m, width), np.uint8)
    for o in range(t, blocks, nt):
        p = P[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            if rows.i[k] < m:
                held[rows.i[k], rows.j[k]] = 1
        for j in range(m):
            high[j] = level
            by_j[o, j] = -1
        for i in range(m):
            row = later[i]
            by_i[o, i] = -1
            above = 0
            for j in range(m):  # counting is what compilers turn into vector instructions
                above += row[j] * p[i] > level * p[j]
            if above == 0:
                continue
            for j in range(m):
                q[j] = row[j] * p[i] / p[j] if p[j] > 0 else 0.0
            most = level
            for j in range(m):
                if q[j] > level and held[i, j] == 0:
                    if q[j] > most:
                        most = q[j]
                        by_i[o, i] = j
                    if q[j] > high[j]:
                        high[j] = q[j]
                        by_j[o, j] = i
        for k in range(rows.offset[o], rows.offset[o + 1]):
            if rows.i[k] < m:
                held[rows.i[k], rows.j[k]] = 0


@jit
def majorant(t, nt, decay, P, out):
    """out_i = max_j decay_ij v_j in every block."""
    blocks, width = P.shape
    m = width - 1
    for o in range(t, blocks, nt):
        v = P[o]
        for i in range(m):
            row = decay[i]
            above = 0
            for j in range(m):
                above += row[j] * v[j] > v[i]
            most = v[i]
            if above > 0:
                for j in range(m):
                    most = max(most, row[j] * v[j])
            out[o, i] = most
        out[o, m] = 0.0


@jit
def charge(t, nt, rows, z, R):
    """R -= Gᵀz."""
    blocks, width = R.shape
    for o in range(t, blocks, nt):
        g = R[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            g[rows.j[k]] -= rows.e[k] * z[k]
            g[rows.i[k]] += z[k]
        g[width - 1] = 0.0


@jit
def shifted(t, nt, rows, base, x, out):
    """out = max(0, base + (z/s) G x)."""
    for o in range(t, len(x), nt):
        v = x[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            slack = rows.e[k] * v[rows.j[k]] - v[rows.i[k]]
            out[k] = max(0.0, base[k] + rows.z[k] / rows.s[k] * slack)


@jit
def drain(t, nt, rows, z, rd, sweeps, out):
    """Lower multipliers where the reduced cost is negative: ``out`` are multipliers <= z.

    A row takes e z from j and gives z to i, so lowering it repairs j and costs i less.
    """
    blocks, width = rd.shape
    m = width - 1
    reduced, inflow, share = np.empty(width), np.empty(width), np.empty(width)
    for o in range(t, blocks, nt):
        lo, hi = rows.offset[o], rows.offset[o + 1]
        out[lo:hi] = z[lo:hi]
        reduced[:] = rd[o]
        for _ in range(sweeps):
            worst = 0.0
            for j in range(m):
                worst = min(worst, reduced[j])
            if worst > -1e-16:
                break
            inflow[:] = 0.0
            for k in range(lo, hi):
                inflow[rows.j[k]] += rows.e[k] * out[k]
            for j in range(m):
                share[j] = 0.0
                if reduced[j] < 0 and inflow[j] > 0:
                    share[j] = min(1.0, -reduced[j] / inflow[j] * (1 + 1e-12))
                    reduced[j] += share[j] * inflow[j]
            for k in range(lo, hi):
                less = share[rows.j[k]] * out[k]
                if less > 0:
                    out[k] -= less
                    reduced[rows.i[k]] -= less
