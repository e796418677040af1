"""Divergence constraints as cones first, then by tangents where that did not suffice.

An interior-point method on exponential and second-order cones (Clarabel, through cvxpy) solves
programs of moderate size at once and to many digits, unless limits are tiny. Its point is offered,
and the planes at its likelihood ratios and slopes are the first ones of ``tangents``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.cvx import CvxpyEngine
from optmech.engines.lazy import nearest_pairs, separate
from optmech.engines.tangents import TangentEngine, first_slopes, refine
from optmech.lp.blocks import BlockLP, Point

_SHARE = 1e-5
"""Clarabel's own tolerance, as a share of the gap that is to be certified."""
_TIGHTEST = 1e-12
_ALL_PAIR_ROWS = 8_000
_NEIGHBOURS = 12
_ROUNDS = 8


class ConicEngine:
    """See the module's docstring."""

    name = "conic"

    def refusal(self, lp: BlockLP) -> str:
        return TangentEngine().refusal(lp)

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        watched = _Watched(monitor)
        tolerance = min(options.tolerance, max(_TIGHTEST, _SHARE * options.gap))
        conic = replace(options, solver="CLARABEL", parameters={}, tolerance=tolerance)
        result = _in_rounds(lp, conic, watched)
        if watched.gap <= options.gap or monitor.should_stop():
            return result
        slopes = first_slopes(lp)
        if watched.point is not None:
            refine(lp, slopes, watched.point)
        monitor.report(f"{result.message}; on with tangents")
        after = TangentEngine().improve(lp, options, monitor, slopes)
        if after.outcome is Outcome.FAILED and result.outcome is Outcome.INFEASIBLE:
            return result
        return after


def _in_rounds(lp: BlockLP, options: Options, watched: _Watched) -> EngineResult:
    """With all pairs where they are few, else with those of near secrets and then with what each
    point misses: few others bind, and rows are what an interior-point method pays for."""
    allowed = lp.cone.within(lp.blocks)
    active = allowed
    if lp.cone_rows > _ALL_PAIR_ROWS:
        active = allowed & nearest_pairs(lp.cone, lp.secrets, _NEIGHBOURS)[:, None]
    for k in range(_ROUNDS):
        here = lp if active is allowed else lp.with_cone(replace(lp.cone, active=active))
        result = CvxpyEngine().run(here, options, watched)
        watched.report(f"conic round {k + 1}: {here.cone_rows:,} pair rows, gap {watched.gap:.2g}")
        if watched.gap <= options.gap or watched.should_stop() or watched.point is None:
            break
        missed = separate(lp.cone, watched.point.z[: lp.secrets]) & allowed & ~active
        if not missed.any():
            break
        active = active | missed
    return result


class _Watched:
    """A monitor that passes everything on, and keeps the point."""

    def __init__(self, monitor: Monitor) -> None:
        self._propose, self.should_stop = monitor.propose, monitor.should_stop
        self.remaining, self.report = monitor.remaining, monitor.report
        self.point: Point | None = None
        self.gap = np.inf

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        self.point, self.gap = point, self._propose(point, primal=primal, dual=dual)
        return self.gap
