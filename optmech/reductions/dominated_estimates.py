"""Drop the adversary's estimates that another one is never worse than.

Source: a row x <= Σ_s w[t,s] v_s for every estimate t, in every block (PG 21b). Target: the rows
of estimates t for which no other t' has w[t',s] <= w[t,s] for all s. Equivalent, because v >= 0
makes the row of t' the stronger one. With w[t,s] = π(s) d(t,s) these are places farther from every
place that the prior visits than another one is. Duals: dropped rows get multiplier zero. Numbers
are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.lp.blocks import BlockLP, LocalRows, Point
from optmech.reductions.base import Reduced
from optmech.reductions.dominance import dominators

_ATTACKS = ("distortion", "target")


@dataclass(frozen=True)
class DominatedEstimates:
    """See the module's docstring."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        kept = tuple(_kept(rows) for rows in lp.local)
        counts = tuple(rows.matrix.shape[0] for rows in lp.local)
        if all(len(own) == count for own, count in zip(kept, counts, strict=True)):
            return (Reduced(lp),)
        local = tuple(
            replace(rows, matrix=rows.matrix[own]) for rows, own in zip(lp.local, kept, strict=True)
        )

        def recover(point: Point) -> Point:
            spread = zip(point.local, kept, counts, strict=True)
            return replace(point, local=tuple(_spread(*part) for part in spread))

        return (Reduced(replace(lp, local=local), recover),)


def _kept(rows: LocalRows) -> Ints:
    count = rows.matrix.shape[0]
    if rows.family not in _ATTACKS:
        return np.arange(count)
    # the row says x - w v <= 0: the smaller w, the stronger
    return np.flatnonzero(dominators(-rows.matrix.toarray()) == np.arange(count))


def _spread(multipliers: Floats, kept: Ints, count: int) -> Floats:
    whole = np.zeros((count, multipliers.shape[1]))
    whole[kept] = multipliers
    return whole
