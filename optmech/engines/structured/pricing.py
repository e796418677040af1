"""Compiled pricing of blocks that are kept out of the program: is their column worth anything?

For reduced costs c of a block this solves  min c·v  over the pair rows and v <= box  by a
primal-dual interior point method. The box keeps it bounded; where v stays far below the box the
multipliers of the pairs prove that no column of the cone has a negative price.

Every kernel does the blocks ``t, t + nt, t + 2 nt, ...``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from optmech.engines.structured.compiling import jit
from optmech.engines.structured.factoring import assemble, cholesky, substitute

_MOST_ITERATIONS = 80
_BACK = 0.98


@jit
def price(t, nt, ad, ri, rj, re, p, b, K, size, c, target, v, s, z):
    """Move (v, s, z) of every block to complementarity ``target``.

    Rows are shared by all blocks. The last m of them are the box: i = m, e = -1, where v has the
    negative box at m. ``c`` is (blocks, m + 1).
    """
    m, rows = len(p), len(ri)
    A, d = np.empty(size), np.empty(m)
    panel, start = np.empty(m, np.int64), np.empty(m + 1, np.int64)
    code, x = np.zeros(1, np.int32), np.empty(m)
    g, dv = np.empty(m + 1), np.empty(m + 1)
    ds, dz = np.empty(rows), np.empty(rows)
    for o in range(t, len(c), nt):
        vo, so, zo = v[o], s[o], z[o]
        for _ in range(_MOST_ITERATIONS):
            g[:] = c[o]
            mu, size_g = 0.0, 0.0
            for k in range(rows):
                g[rj[k]] -= re[k] * zo[k]
                g[ri[k]] += zo[k]
                mu += so[k] * zo[k]
            mu /= rows
            g[m] = 0.0
            for q in range(m):
                size_g = max(size_g, abs(g[q]))
            if mu <= target and size_g <= target:
                break
            assemble(0, rows, ri, rj, re, so, zo, p, b, K, A, d, panel, start, 1e-15)
            if not cholesky(ad, b, K, A, start, code):
                break
            aim = 0.0
            for trial in range(2):
                for q in range(m + 1):
                    dv[q] = -g[q]
                for k in range(rows):
                    w = -zo[k] if trial == 0 else (aim - ds[k] * dz[k]) / so[k] - zo[k]
                    dz[k] = w
                    dv[rj[k]] += re[k] * w
                    dv[ri[k]] -= w
                substitute(ad, p, b, K, A, d, dv, x)
                dv[m] = 0.0
                a, e = 0.0, 0.0
                for k in range(rows):
                    ds[k] = re[k] * dv[rj[k]] - dv[ri[k]]
                    dz[k] -= zo[k] / so[k] * ds[k]
                    a = max(a, -ds[k] / so[k])
                    e = max(e, -dz[k] / zo[k])
                a, e = 1.0 / max(a, 1.0), 1.0 / max(e, 1.0)
                if trial == 0:
                    after = 0.0
                    for k in range(rows):
                        after += (so[k] + a * ds[k]) * (zo[k] + e * dz[k])
                    share = after / rows / mu
                    aim = mu * min(1.0, max(share**3, 0.1 * (1 - min(a, e)) ** 2, 1e-3))
                    aim = max(aim, 0.5 * min(target, mu))
            if a < 1.0:
                a *= _BACK
            if e < 1.0:
                e *= _BACK
            for q in range(m):
                vo[q] += a * dv[q]
            for k in range(rows):
                so[k] += a * ds[k]
                zo[k] += e * dz[k]
