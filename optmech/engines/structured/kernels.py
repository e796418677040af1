"""Compiled passes over the pair rows: residuals, right-hand sides, steps, bounds; and the pricing
of blocks that are kept out of the program: is their column worth anything?

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``. ``rows`` are ``factoring.PairRows``.

For reduced costs c of a block pricing solves

    min c·v  over the pair rows and Σ v = 1,      max t  so that  c - Gᵀz >= t everywhere,

by a primal-dual interior point method. Any multipliers z with a t that is not negative prove that
no column of the cone has a negative price, so it ends as soon as that is clear by a margin.
"""
# mypy: allow-untyped-defs, allow-untyped-calls

import numpy as np

from optmech.engines.structured.blas import jit, part
from optmech.engines.structured.factoring import assemble, cholesky, laid_out, substitute

_MOST_ITERATIONS = 60
_BACK = 0.95
_NEAR = 0.1
"""Share of the price up to which it is found where it is negative ..."""
_CLEAR = 0.5
"""... and that is proved where it is not: the same multipliers then prove that it stays so while
prices of the row sums move by less."""
_FEASIBLE = 1e-9


@part
def _slack(rows, k, v):
    """e v_j - v_i of row k."""
    return rows.e[k] * v[rows.j[k]] - v[rows.i[k]]


@part
def _add(rows, k, q, g):
    """Add Gᵀq of row k to g."""
    g[rows.j[k]] += rows.e[k] * q
    g[rows.i[k]] -= q


@jit
def affine_rhs(t, nt, rows, P, rd, B):
    """B = Gᵀ(-z - z·(slack residual)/s) - rd."""
    blocks, width = P.shape
    for o in range(t, blocks, nt):
        g = B[o]
        g[:] = -rd[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            s, z = rows.s[k], rows.z[k]
            _add(rows, k, -z - z * (_slack(rows, k, P[o]) - s) / s, g)
        g[width - 1] = 0.0


@jit
def corrector_rhs(t, nt, rows, first, wp, wd, mu, B):
    """B = Gᵀ(T/s) with T = mu - ds dz for the ``first`` corrector. Else the last one is taken into
    the direction with weights wp, wd, and T is Gondzio's, which pulls products that a full step
    would leave far from mu. T is kept in ds2."""
    blocks, width = B.shape
    for o in range(t, blocks, nt):
        g = B[o]
        g[:] = 0.0
        for k in range(rows.offset[o], rows.offset[o + 1]):
            if first:
                T = mu - rows.ds[k] * rows.dz[k]
            else:
                rows.ds[k] += wp * rows.ds2[k]
                rows.dz[k] += wd * rows.dz2[k]
                product = (rows.s[k] + rows.ds[k]) * (rows.z[k] + rows.dz[k])
                T = max(min(max(product, 0.1 * mu), 10 * mu) - product, -10 * mu)
            rows.ds2[k] = T
            if T != 0.0:
                _add(rows, k, T / rows.s[k], g)
        g[width - 1] = 0.0


@jit
def affine_step(t, nt, rows, P, dP, stats):
    """ds, dz from dP; stats[t] = largest -ds/s, -dz/z, and the sums s z, s dz, ds z, ds dz."""
    a, b, sz, sdz, dsz, dd = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for o in range(t, len(P), nt):
        p, x = P[o], dP[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            i, j = rows.i[k], rows.j[k]
            u = rows.e[k] * (x[j] + p[j]) - (x[i] + p[i]) - rows.s[k]
            v = -rows.z[k] - rows.z[k] * u / rows.s[k]
            rows.ds[k], rows.dz[k] = u, v
            sz += rows.s[k] * rows.z[k]
            sdz += rows.s[k] * v
            dsz += u * rows.z[k]
            dd += u * v
            a = max(a, -u / rows.s[k])
            b = max(b, -v / rows.z[k])
    stats[t] = a, b, sz, sdz, dsz, dd


@jit
def corrector_step(t, nt, rows, dP, weights, ap, ad):
    """ds2, dz2 from dP; ap[t, q], ad[t, q] = largest -(d + weight_q d2)/value."""
    count = len(weights)
    a, b = np.zeros(count), np.zeros(count)
    # with weights between the first and the last, what is below all maxima at both changes none
    low, high = weights[0], weights[count - 1]
    least_a, least_b = 0.0, 0.0
    for o in range(t, len(dP), nt):
        x = dP[o]
        for k in range(rows.offset[o], rows.offset[o + 1]):
            u = _slack(rows, k, x)
            v = (rows.ds2[k] - rows.z[k] * u) / rows.s[k]
            rows.ds2[k], rows.dz2[k] = u, v
            r = -1.0 / rows.s[k]
            d0, d1 = rows.ds[k] * r, u * r
            if not (d0 + low * d1 <= least_a and d0 + high * d1 <= least_a):
                for q in range(count):
                    a[q] = max(a[q], d0 + weights[q] * d1)
                least_a = a.min()
            r = -1.0 / rows.z[k]
            d0, d1 = rows.dz[k] * r, v * r
            if not (d0 + low * d1 <= least_b and d0 + high * d1 <= least_b):
                for q in range(count):
                    b[q] = max(b[q], d0 + weights[q] * d1)
                least_b = b.min()
    ap[t], ad[t] = a, b


@jit
def move(t, nt, rows, wp, wd, ap, ad):
    """A step along the direction with the last corrector's weights."""
    for k in range(t * len(rows.s) // nt, (t + 1) * len(rows.s) // nt):
        rows.s[k] += ap * (rows.ds[k] + wp * rows.ds2[k])
        rows.z[k] += ad * (rows.dz[k] + wd * rows.dz2[k])


@jit
def violations(t, nt, rows, later, P, level, by_i, by_j):
    """Find, of the pairs that a block does not hold, the one with the largest v_i e^-r / v_j above
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
            _add(rows, k, -z[k], g)
        g[width - 1] = 0.0


@jit
def shifted(t, nt, rows, base, x, out):
    """out = max(0, base + (z/s) G x)."""
    for o in range(t, len(x), nt):
        for k in range(rows.offset[o], rows.offset[o + 1]):
            out[k] = max(0.0, base[k] + rows.z[k] / rows.s[k] * _slack(rows, k, x[o]))


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
            if reduced[:m].min() > -1e-16:
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


@part
def _reduced(lo, hi, rows, cost, left):
    """left = cost - Gᵀz; the least of it."""
    m = len(left)
    left[:] = cost[:m]
    for k in range(lo, hi):
        _add(rows, k, -rows.z[k], left)
    return left.min()


@part
def _longest(values, changes):
    """The share of a change that keeps values positive."""
    most = 1.0
    for k in range(len(values)):
        most = max(most, -changes[k] / values[k])
    return 1.0 / most if most == 1.0 else _BACK / most


@jit
def price(t, nt, lapack, rows, panels, chosen, cost, goal, centre, v, left, value):
    """Move the columns v (blocks, m + 1) of the ``chosen`` blocks, and their slacks and multipliers
    in ``rows``, until multipliers leave c - Gᵀz >= -goal or the price ``value`` (blocks,) is known.
    ``cost`` is (blocks, m + 1), ``left`` (blocks, m) what multipliers leave of it. With a
    ``centre`` above zero, until all products of slacks and multipliers are near it."""
    m = left.shape[1]
    panel_of, start = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    scale, x, info = np.empty(m), np.empty(m), np.zeros(1, np.int32)
    own, even = np.empty(m + 1), np.empty(m + 1)
    for q in range(t, len(chosen), nt):
        o = chosen[q]
        lo, hi = rows.offset[o], rows.offset[o + 1]
        count, s, z = hi - lo, rows.s[lo:hi], rows.z[lo:hi]
        place = panels.position[panels.order[o]]
        entries = np.empty(panels.size[o])
        block = laid_out(entries, place, panels.ends[o], panels.number[o], start, scale)
        off, ds, dz = np.empty(count), np.empty(count), np.empty(count)
        p, best = v[o], left[o]
        level = _reduced(lo, hi, rows, cost[o], best)
        for _ in range(_MOST_ITERATIONS):
            least = _reduced(lo, hi, rows, cost[o], best)
            price, total, mu = (cost[o] * p).sum(), p[:m].sum(), (s * z).sum() / count
            for k in range(count):
                off[k] = _slack(rows, lo + k, p) - s[k]
            feasible = abs(total - 1.0) < _FEASIBLE and off.min() > -_FEASIBLE
            value[o] = price
            if centre > 0.0:
                near = mu < 1.5 * centre < 2.5 * mu
                done = near and best.max() - least < 0.1 * count * centre
            else:
                done = price - least <= max(0.5 * goal, _NEAR * abs(price))
            proved = centre == 0.0 and least >= -goal and least >= _CLEAR * price
            if proved or (feasible and done):
                break
            assemble(o, rows, block, panel_of, 1e-15)
            if not cholesky(lapack, block, info):
                break
            even[:m] = 1.0
            substitute(block, even, x)
            weight = even[:m].sum()
            aim = 0.0
            for trial in range(2):
                own[:m] = level - best
                for k in range(count):
                    w = (aim - ds[k] * dz[k]) / s[k] - z[k] if trial else -z[k]
                    dz[k] = w - z[k] / s[k] * off[k]
                    _add(rows, lo + k, dz[k], own)
                substitute(block, own, x)
                rise = (1.0 - total - own[:m].sum()) / weight
                own[:m] += rise * even[:m]
                for k in range(count):
                    move = _slack(rows, lo + k, own)
                    dz[k] -= z[k] / s[k] * move
                    ds[k] = move + off[k]
                primal, dual = _longest(s, ds), _longest(z, dz)
                if centre > 0.0:
                    aim = centre
                elif trial == 0:
                    after = ((s + primal * ds) * (z + dual * dz)).sum()
                    share = after / count / mu
                    aim = mu * min(1.0, max(share**3, 0.1 * (1 - min(primal, dual)) ** 2, 1e-3))
            level += dual * rise
            p[:m] += primal * own[:m]
            s += primal * ds
            z += dual * dz
