"""Primal repair: an iterate's columns, moved until they are a mechanism or nearly one.

The cone of the pairs is closed under maxima, so every column has a least *majorant* in it, over
all pairs and not only those held. Taking it spoils row sums and whatever else couples the blocks;
the least change in the norm of the barrier restores these, and majorants of what comes out leave a
smaller difference. Without rows beyond the pairs, what is left can be *completed* exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Floats
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.model import Model
from optmech.engines.structured.newton import BreakdownError, factored
from optmech.engines.structured.pairs import Cone
from optmech.engines.structured.state import State
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING

_ROUNDING = 4e-15
"""Sums that differ by no more are as good as equal."""
_ROUGH = 1e-9
"""Row sums as near to one as this can be completed at no cost."""
_SPOILED = 1e-8
_LEAST_SLACK = 1e-6


def majorants(model: Model, backend: Backend, state: State, mu: float, system: System) -> Floats:
    """Columns in the cone, near the state's, with row sums close to one and the other rows hardly
    worse. The backend's factors must be those of ``state``, and are so afterwards.

    Where row sums stay far from one, pairs joined late and the state's slack of theirs is fiction:
    then the slacks of the majorants make the norm.
    """
    columns = backend.majorant(np.maximum(state.P, 0.0))
    nearer, error = _with_sums(backend, columns, system)
    if error <= _SPOILED:
        return nearer
    try:
        tight = factored(model, backend, _tightened(state, columns, mu))
        nearest, left = _with_sums(backend, columns, tight)
    except BreakdownError:
        left = np.inf
    # as it was, of which no inverses are needed
    backend.factor(state.rows, np.zeros((model.blocks, model.variables), dtype=np.bool_))
    return nearest if left < error else nearer


def mechanism(
    model: Model, backend: Backend, cone: Cone, state: State, mu: float, system: System
) -> tuple[Floats, float]:
    """A mechanism near the state's and its cost, for programs without rows beyond the pairs."""
    plain = _completed(model, cone, backend.majorant(np.maximum(state.P, 0.0)))
    better = _completed(model, cone, majorants(model, backend, state, mu, system))
    return min(plain, better, key=lambda pair: pair[1])


def _tightened(state: State, columns: Floats, mu: float) -> State:
    """The state with the slacks that ``columns`` have, and multipliers to match."""
    rows, width = state.rows, columns.shape[1]
    flat, block = columns.ravel(), state.rows.block
    larger = rows.e * flat[block * width + rows.j]
    s = np.maximum(larger - flat[block * width + rows.i], _LEAST_SLACK * larger)
    return replace(state, rows=replace(rows, s=s, z=mu / s))


def _with_sums(backend: Backend, columns: Floats, system: System) -> tuple[Floats, float]:
    """Columns in the cone with better row sums, and how far these are from one."""
    error = _sum_error(columns)
    for _ in range(TUNING.most_majorants):
        nearer = backend.majorant(np.maximum(columns + system.restoring(columns), 0.0))
        before, left = error, _sum_error(nearer)
        if not left < before:
            break
        columns, error = nearer, left
        if not _ROUGH < error < 0.5 * before:
            break
    return columns, error


def _sum_error(columns: Floats) -> float:
    return float(np.abs(columns[:, :-1].sum(axis=0) - 1.0).max())


def _completed(model: Model, cone: Cone, columns: Floats) -> tuple[Floats, float]:
    """Columns of the cone with row sums q made a mechanism: w = t - q is in the cone for t large
    enough, so the cheapest column takes it up before everything is divided by t."""
    q = columns[:, :-1].sum(axis=0)
    if np.ptp(q) <= _ROUNDING * q.max():
        columns[:, :-1] /= q
        return columns, float((model.cost * columns).sum())
    with np.errstate(invalid="ignore"):
        needed = (cone.e * q[None, :] - q[:, None]) / (cone.e - 1)
    t = max(float(q.max()), float(needed[np.isfinite(cone.e)].max(initial=0.0))) * (1 + 1e-15)
    missing = t - q
    price = model.cost[:, :-1] @ missing
    cheapest = int(np.where(model.allowed.all(axis=1), price, np.inf).argmin())
    columns[cheapest, :-1] += missing
    columns /= t
    return columns, float((model.cost * columns).sum())
