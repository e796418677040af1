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


@dataclass(frozen=True)
class DominatedEstimates:
    """See the module's docstring."""

    def apply(self, lp: BlockLP) -> tuple[Reduced, ...]:
        kept = tuple(_kept(rows, lp.secrets) for rows in lp.local)
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


def _kept(rows: LocalRows, secrets: int) -> Ints:
    count = rows.matrix.shape[0]
    if not _bound_one(rows, secrets):
        return np.arange(count)
    # the row says x - w v <= 0: the smaller w, the stronger
    return np.flatnonzero(dominators(-rows.matrix.toarray()) == np.arange(count))


def _bound_one(rows: LocalRows, secrets: int) -> bool:
    """Whether all rows limit the same auxiliary variable x by what is nowhere negative."""
    coo = rows.matrix.tocoo()
    row, column = coo.coords
    own = column >= secrets
    x = column[own]
    return bool(
        not rows.equal
        and (np.bincount(row[own], minlength=rows.matrix.shape[0]) == 1).all()
        and (x == x[:1]).all()
        and (coo.data[own] == 1).all()
        and (coo.data[~own] <= 0).all()
    )


def _spread(multipliers: Floats, kept: Ints, count: int) -> Floats:
    whole = np.zeros((count, multipliers.shape[1]))
    whole[kept] = multipliers
    return whole
