"""Which vectors are nowhere smaller than another one of theirs."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints


def dominators(features: Floats) -> Ints:
    """For every row of ``features`` (count, d) one that is nowhere larger and is not dominated
    itself: itself where no other is, else that with the largest sum, and of equal rows the first.

    Rows are compared as they are, without a tolerance.
    """
    count = len(features)
    varying = features[:, (features != features[:1]).any(axis=0)]
    if not varying.shape[1]:
        return np.zeros(count, dtype=np.int64)
    low, high = varying.min(axis=0), varying.max(axis=0)
    # where a row comes closest to the least of all, few others are as small
    telling = ((varying - low) / (high - low)).argmin(axis=1)
    below: list[Ints] = []
    for k, column in enumerate(telling.tolist()):
        few = np.flatnonzero(varying[:, column] <= varying[k, column])
        few = few[(varying[few] <= varying[k]).all(axis=1)]
        same = (varying[few] == varying[k]).all(axis=1)
        below.append(few[~same | (few < k)])
    kept = np.array([not len(few) for few in below])
    total = varying.sum(axis=1)
    chosen = np.arange(count)
    for k in np.flatnonzero(~kept).tolist():
        few = below[k][kept[below[k]]]
        chosen[k] = few[total[few].argmax()]
    return chosen
