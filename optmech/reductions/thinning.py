"""Fewer multipliers that prove the same: one forest of pairs for every observable.

Source: multipliers z_ij >= 0 of P[i,o] <= e^{r_ij} P[j,o], which enter the bound only through
L[s,o] = cost[s,o] + Σ_j z_sj - Σ_i e^{r_is} z_is. Target: multipliers of which those of one
observable contain no cycle, so at most S - 1 each, with L at least as large. Interior-point methods
end in the middle of the optimal multipliers and spread over ten times as many.

A cycle of pairs is emptied by moving weight around it so that L changes at one secret only. That
change has one sign in each of the two directions; in the one that does not lower L some weight
shrinks (all of them growing is possible only around a directed cycle, where e^{Σr} >= 1 makes L
fall), and it is moved until the first is zero. Proof: docs/theory/reductions.md, "Thin
multipliers". The certificate evaluates what comes out: nothing here is trusted.
"""

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.native import run
from optmech.certificate.families import PairMultipliers


def thinned(pairs: PairMultipliers, log_ratio: Floats) -> PairMultipliers:
    """Multipliers without cycles, by compiled kernels. ``log_ratio`` (S, S) holds r >= 0, finite
    for these pairs."""
    used = pairs.take(pairs.value > 0)
    order = np.lexsort((-used.value, used.o))
    used = used.take(order)
    starts = np.flatnonzero(np.diff(used.o, prepend=-1))
    value = np.array(used.value)
    gain = np.exp(log_ratio[used.i, used.j])
    ends = np.append(starts, len(value)).astype(np.int64)
    secrets = (np.ascontiguousarray(part, dtype=np.int64) for part in (used.i, used.j))
    run("empty_cycles", len(starts), len(log_ratio), *secrets, gain, ends, value)
    out = PairMultipliers(used.i, used.j, used.o, value)
    return out.take(value > 0)
