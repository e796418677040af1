"""Inequalities left <= factor · right, in floating point as far as that decides them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.certificate.check import Check
from optmech.certificate.lagrangian import UNIT

SAFE = 1 - 8 * UNIT
"""Covers the roundings of two probabilities, of the factor, and of up to three operations."""
_NORMAL = 2.0**-960
"""Below this, products could lose digits to underflow: decided in whole numbers."""

Place = tuple[int, int, int]


class Scan:
    """Inequalities left <= factor · right in floating point: the tightest, and the undecided.
    ``columns`` are the observables that the columns stand for."""

    def __init__(
        self, left: Floats, right: Floats | None = None, columns: NDArray[np.int64] | None = None
    ) -> None:
        self.left, self.right = left, left if right is None else right
        self.columns = np.arange(left.shape[1]) if columns is None else columns
        self.tiny_left, self.tiny_right = ((p > 0) & (p < _NORMAL) for p in (left, self.right))
        normal = self.right.min(initial=1.0) >= _NORMAL and not self.tiny_left.any()
        self.inverse = 1 / self.right if normal else None
        self._product = np.empty_like(self.right)
        self.count = 0
        self.worst, self.where = 0.0, (0, 0, 0)
        self.open: list[Place] = []

    def row(
        self, i: int, others: NDArray[np.int64], factor: Floats, window: NDArray[np.int64] | None
    ) -> None:
        """left[i, o] <= factor[j] right[j, o] for j in ``others``, o in ``window``."""
        if window is None and self.inverse is not None:
            self._whole_row(self.inverse, i, others, factor)
            return
        columns = slice(None) if window is None else window
        left, right = self.left[i, columns], self.right[others][:, columns]
        self.count += right.size
        if not right.size:
            return
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            tightness = np.where(left > 0, left / (right * factor[:, None]), 0.0)
        place = self.columns if window is None else self.columns[window]
        k, o = divmod(int(tightness.argmax()), len(place))
        if tightness[k, o] > self.worst:
            self.worst, self.where = float(tightness[k, o]), (i, int(others[k]), int(place[o]))
        undecided = (tightness > 1) | self.tiny_left[i, columns]
        if self.tiny_right.any():
            undecided |= self.tiny_right[others][:, columns]
        if undecided.any():
            self.open += [(i, int(others[k]), int(place[o])) for k, o in np.argwhere(undecided)]

    def _whole_row(
        self, inverse: Floats, i: int, others: NDArray[np.int64], factor: Floats
    ) -> None:
        """``row`` in all columns where no product or quotient loses digits."""
        self.count += len(others) * inverse.shape[1]
        if not len(others):
            return
        np.multiply(inverse, self.left[i], out=self._product)
        tightness = self._product.max(axis=1)[others] / factor
        k = int(tightness.argmax())
        if tightness[k] > self.worst:
            place = int(self.columns[self._product[others[k]].argmax()])
            self.worst, self.where = float(tightness[k]), (i, int(others[k]), place)
        for k in np.flatnonzero(tightness > 1).tolist():
            undecided = self.columns[self._product[others[k]] / factor[k] > 1]
            self.open += [(i, int(others[k]), o) for o in undecided.tolist()]

    def verdict(self, name: str, index: int, failed: Place | None, words: str) -> Check:
        """The check; ``failed`` is an inequality that does not hold, ``words`` has the places."""
        worst = self.worst * SAFE
        detail = words.format(worst, *(self.where if failed is None else failed))
        if not self.count:
            detail = "constrains nothing"
        elif failed is not None:
            detail += ": too large"
        elif self.open:
            detail += f"; {len(self.open)} decided in whole numbers"
        return Check(name, index, self.count, failed is None, worst, detail, ratios=True)


def first_failed(verdicts: Iterator[tuple[bool, Place]]) -> Place | None:
    """The first place whose inequality does not hold."""
    return next((where for holds, where in verdicts if not holds), None)
