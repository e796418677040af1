"""Limits on biases: two rows across blocks for every secret."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optmech.base.arrays import Floats
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Sense
from optmech.lp.families.base import Part, Reader


@dataclass(frozen=True, eq=False)
class BiasPart(Part):
    """|Σ_o (reported[o] - meant[s]) P[s,o]| <= maximum for every s, as rows sum to one."""

    number: int
    reported: Floats
    meant: Floats
    maximum: float

    def _apart(self) -> Floats:
        return np.asarray(self.reported - self.meant[:, None])

    def write(self, lp: Assembly) -> Reader:
        rows = lp.weighted_rows(self._apart(), per_secret=True)
        most = np.full(lp.secrets, float(self.maximum))
        above, below = (lp.link(Sense.AT_MOST, most, sign * rows) for sign in (1, -1))

        return lambda point: {self.number: np.array([point.links[above], point.links[below]])}

    def violation(self, matrix: Floats, guard: float) -> float:
        apart = self._apart()
        off = float(np.abs((apart * matrix).sum(axis=1)).max())
        size = max(self.maximum, float(np.abs(apart).max()), 1e-300)
        return (off - self.maximum) / size - abs(guard)

    def tightened(self, margin: float) -> BiasPart:
        return replace(self, maximum=self.maximum * (1 - margin))

    def weights(self) -> float:
        """Rows count one by one: none moves another's."""
        return 0.0
