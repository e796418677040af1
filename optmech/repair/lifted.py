"""Lifted rows a·v <= f b·v of every column: met by adding constants, and kept by completion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.lp.families.base import LARGEST_LOG
from optmech.lp.families.lifted import NO_ROOM
from optmech.lp.inequalities import Inequalities

_MARGIN = 1e-13
"""Taken off every factor, relatively, so that later roundings cannot break an inequality."""


@dataclass(frozen=True, eq=False)
class LiftedRows:
    """All lifted rows with room to spare: (m, S), (m, S) and (m,)."""

    left: Floats
    right: Floats
    factor: Floats

    @classmethod
    def of(cls, given: Inequalities) -> LiftedRows:
        """Those that are given; none where their ratios are all but equal."""
        none = np.zeros((0, given.statement.secrets))
        parts = [rows for part in given.parts if (rows := part.column_rows()) is not None]
        ratio = np.concatenate([np.zeros(0), *(part.log_ratio for part in parts)])
        used = (ratio >= NO_ROOM) & (ratio < LARGEST_LOG)
        left = np.vstack([none, *(part.left for part in parts)])[used]
        right = np.vstack([none, *(part.right for part in parts)])[used]
        return cls(left, right, np.exp(ratio[used]) * (1 - _MARGIN))

    def __len__(self) -> int:
        return len(self.factor)

    def _over(self, columns: Floats) -> Floats:
        """a·v - f b·v."""
        return np.asarray(self.left @ columns - self.factor[:, None] * (self.right @ columns))

    def _room(self) -> Floats:
        """What a constant of one leaves below the limit, > 0."""
        return -self._over(np.ones((self.left.shape[1], 1)))[:, 0]

    def raised(self, columns: Floats, usable: NDArray[np.bool_]) -> Floats:
        """The columns plus the least constants with which they meet all rows; only those that are
        ``usable`` are changed."""
        if not len(self):
            return columns
        short = (self._over(columns) / self._room()[:, None]).max(axis=0)
        return np.asarray(columns + np.where(usable, np.maximum(short, 0.0), 0.0))

    def least_total(self, sums: Floats) -> float:
        """The least t with which the vector t - ``sums`` meets all rows; 0 without rows."""
        return float((-self._over(sums[:, None])[:, 0] / self._room()).max(initial=0.0))
