"""Leakage: what the best guess gains in every block, and its total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.families import AttackMultipliers, Leakage
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point, Sense
from optmech.lp.families.base import LARGEST_LOG, Part, Reader


@dataclass(frozen=True, eq=False)
class LeakagePart(Part):
    """Σ_o max_w Σ_s weighted[w,s] P[s,o] <= maximum."""

    may_be_slack = True
    number: int
    weighted: Floats
    maximum: float

    @classmethod
    def of(cls, number: int, family: Leakage) -> LeakagePart:
        most = float(family.maximum)
        if family.natural:
            most = math.exp(min(most, LARGEST_LOG))
        # what knows the secret gains at most this: a limit beyond it says nothing
        known = float(family.weighted.max(axis=0).sum())
        return cls(number, family.weighted, min(most, 2 * abs(known) + 1))

    def write(self, lp: Assembly) -> Reader:
        """As regrets: x <= Σ_s (max_w' weighted[w',s] - weighted[w,s]) v_s for every guess w, and
        Σ_o x_o at least what knowing the secret gains beyond the limit; rows sum to one. Where no
        pairs ask for an engine that wants this form, the gains themselves have fewer entries."""
        sparse = lp.gains_rows(self.weighted) if not lp.has_pairs else None
        if sparse is not None:
            column, rows = sparse
            sign, right = 1.0, self.maximum
        else:
            best = self.weighted.max(axis=0)
            column, rows = lp.attack_rows(best - self.weighted, 0.0)
            sign, right = -1.0, self.maximum - float(best.sum())
        total = lp.over_blocks(np.array([sign]), np.array([column]))
        limit = lp.link(Sense.AT_MOST, np.array([right]), total)

        def read(point: Point) -> dict[int, Any]:
            weight = float(point.links[limit][0])
            played = (
                point.local[rows].T if sparse is None else self.whole(weight, point.local[rows])
            )
            return {self.number: AttackMultipliers(weight, played)}

        return read

    def whole(self, weight: float, rows: Floats) -> Floats:
        """Strategies (O, W) from multipliers of the gains: what the bound x >= 0 took belongs to
        the guess that gains nowhere less than 0."""
        played = np.array(rows.T)
        usable = np.where((self.weighted >= 0).all(axis=1), self.weighted.sum(axis=1), np.inf)
        played[:, int(usable.argmin())] += np.maximum(weight - played.sum(axis=1), 0.0)
        return played

    def violation(self, matrix: Floats, guard: float) -> float:
        used = np.flatnonzero(np.any(self.weighted, axis=0))
        gain = float((self.weighted[:, used] @ matrix[used]).max(axis=0).sum())
        size = max(abs(self.maximum), float(np.abs(self.weighted).max(axis=0).sum()), 1e-300)
        return (gain - self.maximum) / size - abs(guard)

    def tightened(self, margin: float) -> LeakagePart:
        """Down to what an adversary gains who sees nothing, the least possible."""
        blind = float(self.weighted.sum(axis=1).max())
        return replace(self, maximum=max(self.maximum - abs(self.maximum) * margin, blind))

    def weights(self) -> Floats:
        return np.asarray(np.abs(self.weighted).sum(axis=0))
