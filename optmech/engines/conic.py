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
from optmech.engines.tangents import TangentEngine, first_slopes, refine
from optmech.lp.blocks import BlockLP, Point

_SHARE = 1e-5
"""Clarabel's own tolerance, as a share of the gap that is to be certified."""
_TIGHTEST = 1e-12


class ConicEngine:
    """See the module's docstring."""

    name = "conic"

    def refusal(self, lp: BlockLP) -> str:
        return TangentEngine().refusal(lp)

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        watched = _Watched(monitor)
        tolerance = min(options.tolerance, max(_TIGHTEST, _SHARE * options.gap))
        conic = replace(options, solver="CLARABEL", parameters={}, tolerance=tolerance)
        result = CvxpyEngine().run(lp, conic, watched)
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
