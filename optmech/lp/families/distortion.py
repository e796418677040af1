"""Distortion: the least error of an attack in every block, and its total (PG 21b)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.families import AttackMultipliers
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Sense
from optmech.lp.families.base import Part, Reader


@dataclass(frozen=True, eq=False)
class DistortionPart(Part):
    """Σ_o min_t Σ_s weighted[t,s] P[s,o] >= minimum; ``prior`` is the adversary's."""

    may_be_slack = True
    number: int
    weighted: Floats
    minimum: float
    prior: Floats

    def write(self, lp: Assembly) -> Reader:
        column, rows = lp.attack_rows(self.weighted, 0.0)
        total = lp.over_blocks(np.array([-1.0]), np.array([column]))
        limit = lp.link(Sense.AT_MOST, np.array([-float(self.minimum)]), total)

        return lambda point: {
            self.number: AttackMultipliers(float(point.links[limit][0]), point.local[rows].T)
        }

    def violation(self, matrix: Floats, guard: float) -> float:
        visited = np.flatnonzero(self.prior)
        error = float((self.weighted[:, visited] @ matrix[visited]).min(axis=0).sum())
        return (self.minimum - error) / max(self.minimum, 1e-300) - abs(guard)

    def tightened(self, margin: float) -> DistortionPart:
        """Up to the error of an adversary who sees nothing, which none exceeds."""
        blind = float(self.weighted.sum(axis=1).min())
        return replace(self, minimum=min(self.minimum * (1 + margin), blind))

    def weights(self) -> Floats:
        return np.asarray(self.weighted.sum(axis=0))
