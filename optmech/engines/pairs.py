"""Metric privacy between places of the plane, with few reports: by ``engines.cones``, whose
elements are the pairs that no path over other places implies. A ratio is a cone without slopes.

It bounds the loss of many thousands of places through some thousand cells of them, where the Schur
complement over all row sums would be the most work by far. Nothing here is believed.
"""

from collections.abc import Callable

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families.ratio import PairMultipliers
from optmech.engines import cones
from optmech.reductions.aggregation import linked

_NEAREST = 24
"""Pairs of each place that are looked at."""
_REDUNDANT = 1e-9
_CLOSE, _FAR = 1e-6, 60.0
"""Log ratios between which floating point tells a pair from equal places, and from no limit."""


def near_pairs(log_ratio: Floats) -> Ints:
    """Pairs (i, j), i < j, shape (E, 2): of each place's 24 with the least ``log_ratio`` (K, K)
    those that no path over a third of these implies, and what links the parts that these leave.
    What is left out makes the bound smaller."""
    count = len(log_ratio)
    if count < 2:
        return np.zeros((0, 2), dtype=np.int64)
    most = min(_NEAREST, count - 1)
    own = np.array(log_ratio)
    np.fill_diagonal(own, np.inf)
    nearest = np.argpartition(own, most - 1, axis=1)[:, :most]
    first = np.take_along_axis(own, nearest, axis=1)
    kept = np.zeros((count, count), dtype=bool)
    for i, (near, length) in enumerate(zip(nearest, first, strict=True)):
        over = length[:, None] + own[near[:, None], near]
        needed = length < (1 - _REDUNDANT) * over.min(axis=0)
        kept[i, near[needed & np.isfinite(length)]] = True
    found = np.argwhere(np.triu(linked(kept | kept.T, own)))
    return found[log_ratio[found[:, 0], found[:, 1]] < _FAR]


def solve(
    log_ratio: Floats,
    places: Floats,
    costs: Floats,
    gap: float,
    should_stop: Callable[[cones.ConePoint], bool] = lambda _: False,
    threads: int | None = None,
) -> PairMultipliers:
    """Multipliers of P[i,o] <= e^{r_ij} P[j,o] for ``log_ratio`` r (K, K), closed under paths, and
    ``costs`` (K, O), to a relative ``gap`` of their bound; ``places`` (K, 2) are where the K are.
    ``should_stop`` and ``threads`` as of ``cones.solve``."""
    some, pairs = np.unique(near_pairs(log_ratio), return_inverse=True)
    if not len(some):
        return PairMultipliers.none()
    # a place without pairs has a row of its own
    log_ratio = np.clip(log_ratio[np.ix_(some, some)], _CLOSE, _FAR)
    places, costs, pairs = places[some], costs[some], pairs.reshape(-1, 2)
    one, other = pairs.T
    half = np.stack([log_ratio[one, other], log_ratio[other, one]]) / 2
    rows = np.zeros((len(pairs), 2, 3, 2))
    # e^{r/2} p_j − e^{−r/2} p_i, both ways
    for way, (i, j) in enumerate(((0, 1), (1, 0))):
        rows[:, way, 0, i], rows[:, way, 0, j] = -np.exp(-half[way]), np.exp(half[way])
    middles = places[pairs].mean(axis=1)
    program = cones.ConeProgram(pairs, rows, middles, len(log_ratio))
    found = cones.solve(program, costs, gap, should_stop, threads)
    # (way, E, O)
    value = found.multipliers[..., 0].transpose(2, 1, 0) * np.exp(-half)[..., None]
    # what both ways have in common takes from the bound, and most of near places' is
    value = value - value.min(axis=0)
    both, edge, report = np.nonzero(value)
    first, second = some[np.stack([pairs, pairs[:, ::-1]])][both, edge].T
    return PairMultipliers(first, second, report, value[both, edge, report])
