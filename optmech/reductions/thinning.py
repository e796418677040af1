"""Fewer multipliers that prove the same: one forest of pairs for every observable.

Source: multipliers z_ij >= 0 of P[i,o] <= e^{r_ij} P[j,o], which enter the bound only through
L[s,o] = cost[s,o] + Σ_j z_sj - Σ_i e^{r_is} z_is. Target: multipliers of which those of one
observable contain no cycle, so at most S - 1 each, with L at least as large. Interior-point methods
end in the middle of the optimal multipliers and spread over ten times as many.

A cycle of pairs is emptied by moving weight around it so that L changes at one secret only. That
change has one sign in each of the two directions; in the one that does not lower L some weight
shrinks (all of them growing is possible only around a directed cycle, where e^{Σr} >= 1 makes L
fall), and it is moved until the first is zero. Proof: docs/theory.md, "Thin multipliers". The
certificate evaluates what comes out: nothing here is trusted.
"""

import numpy as np
from numba import njit

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import PairMultipliers


def thinned(pairs: PairMultipliers, log_ratio: Floats) -> PairMultipliers:
    """Multipliers without cycles. ``log_ratio`` (S, S) holds r >= 0, finite for these pairs."""
    used = pairs.take(pairs.value > 0)
    order = np.lexsort((-used.value, used.o))
    used = used.take(order)
    starts = np.flatnonzero(np.diff(used.o, prepend=-1))
    value = np.array(used.value)
    gain = np.exp(log_ratio[used.i, used.j])
    ends = np.append(starts, len(value)).astype(np.int64)
    _empty_cycles(used.i, used.j, gain, value, ends, len(log_ratio))
    out = PairMultipliers(used.i, used.j, used.o, value)
    return out.take(value > 0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _empty_cycles(
    i: Ints, j: Ints, gain: Floats, value: Floats, ends: Ints, secrets: int
) -> None:  # pragma: no cover - compiled
    parent = np.empty(secrets, np.int64)
    above = np.empty(secrets, np.int64)
    mark = np.full(secrets, -1, np.int64)
    cycle = np.empty(2 * secrets + 1, np.int64)
    change = np.empty(2 * secrets + 1, np.float64)
    for block in range(len(ends) - 1):
        parent[:] = -1
        for edge in range(ends[block], ends[block + 1]):
            a, b = i[edge], j[edge]
            if a == b:
                continue
            # the way from b up to the first secret that is above a as well
            at = a
            while at >= 0:
                mark[at] = edge
                at = parent[at]
            top = b
            while top >= 0 and mark[top] != edge:
                top = parent[top]
            if top >= 0:
                count = first = 0
                for end in (b, a):
                    first, at = count, end
                    while at != top:
                        cycle[count] = above[at]
                        count += 1
                        at = parent[at]
                cycle[first:count] = cycle[first:count][::-1].copy()
                # weight 1 on the new pair; what every other needs to leave L as it is
                at, effect = b, -gain[edge]
                for k in range(count):
                    other = cycle[k]
                    if i[other] == at:
                        change[k] = -effect
                        at, effect = j[other], -gain[other] * change[k]
                    else:
                        change[k] = effect / gain[other]
                        at, effect = i[other], change[k]
                sign = 1.0 if 1.0 + effect > 0 else -1.0
                step = np.inf
                least = -1
                if sign < 0:
                    step, least = value[edge], edge
                for k in range(count):
                    if sign * change[k] < 0 and value[cycle[k]] < -sign * change[k] * step:
                        step = value[cycle[k]] / (-sign * change[k])
                        least = cycle[k]
                if not np.isfinite(step) or not np.isfinite(effect):
                    continue
                value[edge] += sign * step
                for k in range(count):
                    value[cycle[k]] = max(0.0, value[cycle[k]] + sign * step * change[k])
                value[least] = 0.0
                if least == edge:
                    continue
                if parent[i[least]] == j[least] and above[i[least]] == least:
                    parent[i[least]] = -1
                else:
                    parent[j[least]] = -1
            # a becomes the root of its tree and hangs under b
            before, own, at = b, edge, a
            while at >= 0:
                following, next_edge = parent[at], above[at]
                parent[at], above[at] = before, own
                before, own, at = at, next_edge, following
