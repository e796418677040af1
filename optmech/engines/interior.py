"""A point as far inside a program as it goes, and the inequalities that leave no room at all.

Two linear programs on HiGHS: the first adds up the slacks of all inequalities, each counted up to
a hair, and shows which are equalities in disguise; the second makes the least of the other slacks
as large as it can be. Divergences are replaced by ratios near one, which imply them.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.engines.base import Monitor, Options
from optmech.engines.highs import HighsSession
from optmech.lp.blocks import BlockLP, LocalRows, entries
from optmech.lp.flatten import FlatLP, Interior, flatten

LARGEST = 100_000
"""Nonzeros of programs for which this is worth the while."""
_HAIR = 1e-5
_NONE = 1e-8
"""Slacks below this are none."""
_MOST = 0.5
"""The largest deviation of a ratio from one in the place of a divergence."""


def interior(lp: BlockLP, options: Options, monitor: Monitor) -> Interior | None:
    """None where the program is too large, or HiGHS finds nothing."""
    if lp.held is None and lp.nonzeros > LARGEST:
        return None
    flat = flatten(_near_one(lp))
    if flat.matrix.nnz > LARGEST:
        return None
    bounded = np.flatnonzero(np.isneginf(flat.lower) & np.isfinite(flat.upper))
    size = lp.blocks * lp.block_size
    index = np.arange(size)
    places = index[(index % lp.block_size < lp.secrets) & (flat.upper_x[:size] > 0)]
    found = _solved(_deepened(flat, bounded, places, True), options, monitor)
    if found is None:
        return None
    slack = found[len(flat.cost) :]
    tight, empty = slack[: len(bounded)] < _NONE, slack[len(bounded) :] < _NONE
    deeper = _solved(_deepened(flat, bounded[~tight], places[~empty], False), options, monitor)
    x = (found if deeper is None else deeper)[:size]
    zero = np.ones(size, dtype=bool)
    zero[places[~empty]] = False
    whole = np.where(zero, 0.0, x)
    # (S, O): the places of the matrix; then equations among these alone
    order = index.reshape(lp.blocks, lp.block_size)[:, : lp.secrets].T
    others = np.setdiff1d(np.arange(flat.matrix.shape[1]), order)
    equations = flat.matrix[bounded[tight]]
    alone = abs(equations[:, others]).sum(axis=1) == 0
    return Interior(
        whole[order],
        zero[order],
        sp.csr_array(equations[alone][:, order.ravel()]),
        flat.upper[bounded[tight]][alone],
    )


def _near_one(lp: BlockLP) -> BlockLP:
    """The program with p <= (1 + τ) q in the place of every perspective, τ so small that the
    divergence of both ways is below its limit: at most τ²."""
    local = list(lp.local)
    for part in lp.perspectives:
        most = np.minimum(0.5 * np.sqrt(part.unit), _MOST)
        k = np.arange(len(most))
        rows = entries(
            (len(k), lp.block_size), (np.ones(len(k)), k, part.p), (-(1 + most), k, part.q)
        )
        local.append(LocalRows(sp.csr_array(rows)))
    return replace(lp, local=tuple(local), perspectives=())


def _deepened(flat: FlatLP, bounded: Ints, places: Ints, together: bool) -> FlatLP:
    """Maximise t with matrix x + t <= upper and x >= t; ``together`` Σ t for a t of every row and
    place, each of at most a hair."""
    k, extra = np.arange(len(places)), len(bounded) + len(places) if together else 1
    row_slack = np.arange(len(bounded)) if together else np.zeros(len(bounded), int)
    place_slack = len(bounded) + k if together else np.zeros(len(k), int)
    own = sp.csr_array(
        (np.ones(len(bounded)), (bounded, row_slack)), shape=(len(flat.lower), extra)
    )
    columns = len(flat.cost)
    slack = (np.ones(len(k)), k, columns + place_slack)
    below = entries((len(k), columns + extra), (-np.ones(len(k)), k, places), slack)
    return replace(
        flat,
        cost=np.concatenate([np.zeros(len(flat.cost)), np.full(extra, -1.0)]),
        matrix=sp.csr_array(sp.vstack([sp.hstack([flat.matrix, own]), below])),
        lower=np.concatenate([flat.lower, np.full(len(k), -np.inf)]),
        upper=np.concatenate([flat.upper, np.zeros(len(k))]),
        upper_x=np.concatenate([flat.upper_x, np.full(extra, _HAIR if together else 1.0)]),
    )


def _solved(flat: FlatLP, options: Options, monitor: Monitor) -> Floats | None:
    session = HighsSession(flat, options)
    status = session.solve({"solver": "simplex"}, monitor)
    found = session.solution() if status == "Optimal" else None
    return found and found[0]
