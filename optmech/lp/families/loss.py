"""Limits on losses: one row across blocks, or one for every secret."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optmech.base.arrays import Floats
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Sense
from optmech.lp.families.base import Part, Reader


@dataclass(frozen=True, eq=False)
class LossPart(Part):
    """Σ_so weighted[s,o] P[s,o] <= maximum, or that for every row s where ``per_secret``."""

    number: int
    weighted: Floats
    maximum: float
    per_secret: bool

    def write(self, lp: Assembly) -> Reader:
        rows = lp.weighted_rows(self.weighted, self.per_secret)
        limit = lp.link(Sense.AT_MOST, np.full(rows.shape[0], float(self.maximum)), rows)

        return lambda point: {self.number: point.links[limit]}

    def violation(self, matrix: Floats, guard: float) -> float:
        per_row = (self.weighted * matrix).sum(axis=1)
        spent = float(per_row.max() if self.per_secret else per_row.sum())
        return (spent - self.maximum) / max(self.maximum, spent, 1e-300) - abs(guard)

    def tightened(self, margin: float) -> LossPart:
        return replace(self, maximum=self.maximum * (1 - margin))

    def weights(self) -> float:
        """Rows count one by one, or by what the prior makes of them: none moves another's."""
        return 0.0
