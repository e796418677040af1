"""(ε, δ) limits: a slack variable for every pair in every block, and its total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.certificate.families import ApproximateMultipliers
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point, Sense, entries
from optmech.lp.families.base import LARGEST_LOG, PushedPart, Reader
from optmech.lp.families.ratio import MAX_LOG_RATIO


@dataclass(frozen=True, eq=False)
class ApproximatePart(PushedPart):
    """Σ_o max(0, left P - exp(log_ratio) right P) <= delta."""

    number: int
    left: sp.csr_array
    right: sp.csr_array
    log_ratio: Floats
    delta: float

    def write(self, lp: Assembly) -> Reader:
        """a·v - e^r b·v <= w with a slack w >= 0 per inequality; Σ_o w_o <= δ."""
        count = len(self.log_ratio)
        columns = lp.auxiliary(count)
        ratio = np.exp(np.minimum(self.log_ratio, MAX_LOG_RATIO))
        row, s = (body := (self.left - sp.diags_array(ratio) @ self.right).tocoo()).coords
        shape = (count, int(columns[-1]) + 1)
        slack = (-np.ones(count), np.arange(count), columns)
        rows = lp.local(entries(shape, (body.data, row, s), slack))
        total = lp.over_blocks(np.ones(count), columns)
        limit = lp.link(Sense.AT_MOST, np.full(count, float(self.delta)), total)

        def read(point: Point) -> dict[int, Any]:
            weight = point.links[limit]
            safe = np.where(weight > 0, weight, 1.0)
            tests = np.clip(point.local[rows] / safe[:, None], 0.0, 1.0)
            return {self.number: ApproximateMultipliers(weight, tests)}

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        left, right = self.left @ matrix, self.right @ matrix
        ratio = np.exp(np.minimum(self.log_ratio, LARGEST_LOG))[:, None]
        most = float(np.maximum(left - ratio * right, 0.0).sum(axis=1).max(initial=0.0))
        # a constant mechanism spends nothing, and must pass whatever δ is
        return most - self.delta + (guard if most > 0 else 0.0)

    def without_tiny(self, most: float = 0.0) -> ApproximatePart:
        small = self.log_ratio < most
        if not (small & (self.log_ratio > 0)).any():
            return self
        return replace(self, log_ratio=np.where(small, 0.0, self.log_ratio))

    def tightened(self, margin: float) -> ApproximatePart:
        return replace(self, delta=self.delta * (1 - margin))
