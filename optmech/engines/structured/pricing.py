"""Compiled pricing of blocks that are kept out of the program: is their column worth anything?

For reduced costs c of a block this solves  min c·v  over the pair rows and v <= box  by a
primal-dual interior point method. The box keeps it bounded; where v stays far below the box the
multipliers of the pairs prove that no column of the cone has a negative price.

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from optmech.engines.structured.blas import jit
from optmech.engines.structured.factoring import assemble, cholesky, laid_out, substitute
from optmech.engines.structured.packed import PairRows

_MOST_ITERATIONS = 80
_BACK = 0.98


@jit
def price(t, nt, lapack, rows, panels, c, target, v, s, z):
    """Move (v, s, z) of every block to complementarity ``target``.

    Rows are shared by all blocks, and so are the panels, which are block 0's. The last m rows are
    the box: i = m, e = -1, where v has the negative box at m. ``c`` is (blocks, m + 1).
    """
    i, j, e = rows.i, rows.j, rows.e
    place, count = panels.position[panels.order[0]], len(rows.i)
    m = len(place)
    panel_of, start = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    entries, scale = np.empty(panels.size[0]), np.empty(m)
    block = laid_out(entries, place, panels.ends[0], panels.number[0], start, scale)
    info, x = np.zeros(1, np.int32), np.empty(m)
    g, dv = np.empty(m + 1), np.empty(m + 1)
    ds, dz = np.empty(count), np.empty(count)
    for o in range(t, len(c), nt):
        vo, so, zo = v[o], s[o], z[o]
        own = PairRows(rows.offset, i, j, e, so, zo)
        for _ in range(_MOST_ITERATIONS):
            g[:] = c[o]
            mu, residual = 0.0, 0.0
            for k in range(count):
                g[j[k]] -= e[k] * zo[k]
                g[i[k]] += zo[k]
                mu += so[k] * zo[k]
            mu /= count
            g[m] = 0.0
            for q in range(m):
                residual = max(residual, abs(g[q]))
            if mu <= target and residual <= target:
                break
            assemble(0, count, own, block, panel_of, 1e-15)
            if not cholesky(lapack, block, info):
                break
            aim = 0.0
            for trial in range(2):
                for q in range(m + 1):
                    dv[q] = -g[q]
                for k in range(count):
                    w = -zo[k] if trial == 0 else (aim - ds[k] * dz[k]) / so[k] - zo[k]
                    dz[k] = w
                    dv[j[k]] += e[k] * w
                    dv[i[k]] -= w
                substitute(lapack, block, dv, x)
                dv[m] = 0.0
                primal, dual = 0.0, 0.0
                for k in range(count):
                    ds[k] = e[k] * dv[j[k]] - dv[i[k]]
                    dz[k] -= zo[k] / so[k] * ds[k]
                    primal = max(primal, -ds[k] / so[k])
                    dual = max(dual, -dz[k] / zo[k])
                primal, dual = 1.0 / max(primal, 1.0), 1.0 / max(dual, 1.0)
                if trial == 0:
                    after = 0.0
                    for k in range(count):
                        after += (so[k] + primal * ds[k]) * (zo[k] + dual * dz[k])
                    share = after / count / mu
                    aim = mu * min(1.0, max(share**3, 0.1 * (1 - min(primal, dual)) ** 2, 1e-3))
                    aim = max(aim, 0.5 * min(target, mu))
            if primal < 1.0:
                primal *= _BACK
            if dual < 1.0:
                dual *= _BACK
            for q in range(m):
                vo[q] += primal * dv[q]
            for k in range(count):
                so[k] += primal * ds[k]
                zo[k] += dual * dz[k]
