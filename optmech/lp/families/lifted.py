"""Ratios of pushed distributions: one local row for every pair."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.lp.assembly import Assembly
from optmech.lp.families.base import ColumnRows, PushedPart, Reader, excess_ratio
from optmech.lp.families.ratio import MAX_LOG_RATIO

NO_ROOM = 1e-8
"""Log ratios of distributions below this leave nothing to spare: release makes them equal."""


@dataclass(frozen=True, eq=False)
class LiftedPart(PushedPart):
    """left v <= exp(log_ratio) right v in every column."""

    number: int
    left: Floats
    right: Floats
    log_ratio: Floats

    def write(self, lp: Assembly) -> Reader:
        ratio = np.exp(np.minimum(self.log_ratio, MAX_LOG_RATIO))
        rows = lp.local(sp.coo_array(self.left - ratio[:, None] * self.right))

        return lambda point: {self.number: point.local[rows]}

    def violation(self, matrix: Floats, guard: float) -> float:
        over = excess_ratio(self.left @ matrix, self.right @ matrix, self.log_ratio)
        spare = np.where(self.log_ratio < NO_ROOM, -abs(guard), guard)
        return float((over.max(axis=1, initial=-1.0) + spare).max(initial=-1.0))

    def tightened(self, margin: float) -> LiftedPart:
        return replace(self, log_ratio=self.log_ratio * (1 - margin))

    def without_tiny(self, most: float = 0.0) -> LiftedPart:
        tiny = self.log_ratio < max(NO_ROOM, most)
        if not (tiny & (self.log_ratio > 0)).any():
            return self
        return replace(self, log_ratio=np.where(tiny, 0.0, self.log_ratio))

    def column_rows(self) -> ColumnRows:
        return ColumnRows(self.left, self.right, self.log_ratio)

    @property
    def nearly_equal(self) -> NDArray[np.bool_]:
        return np.asarray(self.log_ratio < NO_ROOM)
