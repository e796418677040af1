"""Secrets without prior weight: the objective does not see their rows, and whoever has such a
secret is served all the same.

Among mechanisms with the released rows of all other secrets, their rows are moved towards the
least loss, one after the other, within the ratios to all other rows: first as if they were added
one by one, nearest to the seen ones first, then, in turn, from what there is. With the others
fixed, each row is a continuous knapsack. Nothing that the certificate says of the objective
changes: its value is that of the same rows. Proof: docs/theory/repair.md, "Secrets without prior
weight".
"""

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.statement import Statement
from optmech.designs.notes import weightless
from optmech.errors import ProblemError
from optmech.exact.numerators import MAX_BITS, Numerators, wholes
from optmech.lp.inequalities import Inequalities
from optmech.repair import Cone
from optmech.repair.release import Released, floored

_BITS = 64
"""Digits that new rows have beyond those of the released ones."""
_HAIR = 2.0**-46
"""Distance to what other rows leave, relative: rows are rounded, and a ratio of 1 has no margin."""
_SWEEPS = 3
_PROGRESS = 1e-3
"""A sweep that saves less than this share is the last one."""


def improved(given: Inequalities, cone: Cone, released: Released) -> Released | None:
    """The released numerators with less loss in rows without prior weight, if there are such
    rows and the result passes the exact check; else None."""
    statement = given.statement
    # limits on losses of single secrets are left to the check
    involved = np.zeros(statement.secrets)
    for part in given.parts:
        involved += part.weights()
    if statement.held is not None:
        involved[statement.held.secrets] = 1
    rows = weightless(statement)
    rows = rows[involved[rows] == 0]
    if not len(rows) or released.exact.bits + _BITS > MAX_BITS:
        return None
    before = released.exact.matrix
    loss = np.where(statement.allowed, statement.loss, np.inf)
    bounds = _Bounds(cone)
    after = bounds.swept(bounds.added(np.array(before), rows, loss), rows, loss)
    if not _cost(statement, after, rows) < _cost(statement, before, rows):
        return None
    # the released entries as they are, on a finer scale, and those that moved rounded: the largest
    # of these makes up for it
    bits, moved = released.exact.bits + _BITS, after != before
    out = wholes(released.exact.rows) << _BITS
    for s in np.flatnonzero(moved.any(axis=1)).tolist():
        entries = np.flatnonzero(moved[s])
        out[s, entries] = floored(after[s, entries], bits)
        out[s, entries[out[s, entries].argmax()]] += (1 << bits) - out[s].sum()
    try:
        return Released.of(statement, Numerators.of(bits, out))
    except ProblemError:
        return None


def _cost(statement: Statement, matrix: Floats, rows: Ints) -> float:
    return float((statement.loss[rows] * matrix[rows]).sum())


class _Bounds:
    """What the rows of a matrix leave to another row."""

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        self.factor = np.exp(-cone.always)
        self.windows = [(np.exp(-ratio), window) for ratio, window in cone.windows]

    def added(self, matrix: Floats, rows: Ints, loss: Floats) -> Floats:
        """The rows as if added one by one, nearest first; ``matrix`` where some cannot be."""
        present = ~np.isin(np.arange(len(matrix)), rows)
        out = np.array(matrix)
        near = self.cone.log_ratio[np.ix_(rows, np.flatnonzero(present))].min(
            axis=1, initial=np.inf
        )
        for s in rows[np.argsort(near, kind="stable")].tolist():
            best = self._best(out, s, present, loss[s])
            if best is None:
                return matrix
            out[s] = best
            present[s] = True
        return out

    def swept(self, matrix: Floats, rows: Ints, loss: Floats) -> Floats:
        """The rows one after the other, given all others, until that hardly helps."""
        out = np.array(matrix)
        present = np.ones(len(matrix), dtype=bool)
        finite = np.where(np.isfinite(loss), loss, 0.0)
        value = (finite[rows] * out[rows]).sum()
        for _ in range(_SWEEPS):
            for s in rows.tolist():
                best = self._best(out, s, present, loss[s])
                if best is not None and finite[s] @ best < finite[s] @ out[s]:
                    out[s] = best
            now = (finite[rows] * out[rows]).sum()
            if now >= value * (1 - _PROGRESS):
                break
            value = now
        return out

    def _best(self, matrix: Floats, s: int, present: np.ndarray, cost: Floats) -> Floats | None:
        """The cheapest row s within the ratios to the rows present: from its lower limits, filled
        up in the order of cost. None where there is no such row."""
        others = np.flatnonzero(present & (np.arange(len(present)) != s))
        low = np.zeros(matrix.shape[1])
        high = np.where(self.cone.allowed[s], 1.0, 0.0)
        rows = matrix[others]
        with np.errstate(all="ignore"):
            for factor, window in [(self.factor, None), *self.windows]:
                share = factor[s, others][:, None]
                above = np.where(share > 0, rows / share, 1.0)
                below = factor[others, s][:, None] * rows
                if window is not None:
                    above = np.where(window[s], above, 1.0)
                    below = np.where(window[others], below, 0.0)
                high = np.minimum(high, above.min(axis=0, initial=1.0))
                low = np.maximum(low, below.max(axis=0, initial=0.0))
        if (low > high).any():
            return None
        # entries that may not move at all stay as they are
        free = low * (1 + _HAIR) <= high * (1 - _HAIR)
        low = np.where(free, low * (1 + _HAIR), low)
        high = np.where(free & (high < 1), high * (1 - _HAIR), high)
        rest = 1.0 - low.sum()
        if rest < 0 or high.sum() < 1:
            return None
        order = np.argsort(np.where(high > 0, cost, np.inf), kind="stable")
        room = (high - low)[order]
        low[order] += np.minimum(room, np.maximum(rest - (np.cumsum(room) - room), 0.0))
        return low
