"""Compiled pricing of blocks that are kept out of the program: is their column worth anything?

For reduced costs c of a block this solves

    min c·v  over the pair rows and Σ v = 1,      max t  so that  c - Gᵀz >= t everywhere,

by a primal-dual interior point method. Any multipliers z with a t that is not negative prove that
no column of the cone has a negative price, so it ends as soon as that is clear by a margin.

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

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
def _reduced(lo, hi, rows, cost, left):
    """left = cost - Gᵀz; the least of it."""
    m = len(left)
    left[:] = cost[:m]
    for k in range(lo, hi):
        left[rows.j[k]] -= rows.e[k] * rows.z[k]
        left[rows.i[k]] += rows.z[k]
    return left.min()


@part
def _longest(values, changes, lo, hi):
    """The share of a change that keeps values positive."""
    most = 1.0
    for k in range(lo, hi):
        most = max(most, -changes[k - lo] / values[k])
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
        count = hi - lo
        place = panels.position[panels.order[o]]
        entries = np.empty(panels.size[o])
        block = laid_out(entries, place, panels.ends[o], panels.number[o], start, scale)
        off, ds, dz = np.empty(count), np.empty(count), np.empty(count)
        p, best = v[o], left[o]
        level = _reduced(lo, hi, rows, cost[o], best)
        for _ in range(_MOST_ITERATIONS):
            least = _reduced(lo, hi, rows, cost[o], best)
            price, total, mu, worst = 0.0, 0.0, 0.0, 0.0
            for a in range(m):
                price += cost[o, a] * p[a]
                total += p[a]
            for k in range(lo, hi):
                off[k - lo] = rows.e[k] * p[rows.j[k]] - p[rows.i[k]] - rows.s[k]
                worst = max(worst, -off[k - lo])
                mu += rows.s[k] * rows.z[k]
            mu /= count
            feasible = abs(total - 1.0) < _FEASIBLE and worst < _FEASIBLE
            value[o] = price
            if centre > 0.0:
                near = mu < 1.5 * centre < 2.5 * mu
                done = near and best.max() - least < 0.1 * count * centre
            else:
                done = price - least <= max(0.5 * goal, _NEAR * abs(price))
            proved = centre == 0.0 and least >= -goal and least >= _CLEAR * price
            if proved or (feasible and done):
                break
            assemble(lo, hi, rows, block, panel_of, 1e-15)
            if not cholesky(lapack, block, info):
                break
            even[:m] = 1.0
            substitute(block, even, x)
            weight = even[:m].sum()
            aim = 0.0
            for trial in range(2):
                for a in range(m):
                    own[a] = level - best[a]
                for k in range(lo, hi):
                    s, z = rows.s[k], rows.z[k]
                    w = (aim - ds[k - lo] * dz[k - lo]) / s - z if trial else -z
                    w -= z / s * off[k - lo]
                    dz[k - lo] = w
                    own[rows.j[k]] += rows.e[k] * w
                    own[rows.i[k]] -= w
                substitute(block, own, x)
                rise = (1.0 - total - own[:m].sum()) / weight
                for a in range(m):
                    own[a] += rise * even[a]
                for k in range(lo, hi):
                    move = rows.e[k] * own[rows.j[k]] - own[rows.i[k]]
                    dz[k - lo] -= rows.z[k] / rows.s[k] * move
                    ds[k - lo] = move + off[k - lo]
                primal = _longest(rows.s, ds, lo, hi)
                dual = _longest(rows.z, dz, lo, hi)
                if centre > 0.0:
                    aim = centre
                elif trial == 0:
                    after = 0.0
                    for k in range(lo, hi):
                        moved = rows.s[k] + primal * ds[k - lo]
                        after += moved * (rows.z[k] + dual * dz[k - lo])
                    share = after / count / mu
                    aim = mu * min(1.0, max(share**3, 0.1 * (1 - min(primal, dual)) ** 2, 1e-3))
            level += dual * rise
            for a in range(m):
                p[a] += primal * own[a]
            for k in range(lo, hi):
                rows.s[k] += primal * ds[k - lo]
                rows.z[k] += dual * dz[k - lo]
