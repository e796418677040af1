"""One solve in progress: iterates of the interior-point method, rows that join them, and when
bounds are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.structured.iterative import Earlier
from optmech.engines.structured.model import Model
from optmech.engines.structured.newton import BreakdownError, factored, iterate
from optmech.engines.structured.points import Duals, majorants, mechanism, point, restored
from optmech.engines.structured.rows import Backend, Cone, Rows, add_rows, worst
from optmech.engines.structured.state import Residuals, State, add_dense, residuals
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING


@dataclass(eq=False)
class Bounds:
    """Turns iterates of a run into points for the monitor; here where the program's blocks are all
    there."""

    figures = "value {:.9g}, bound {:.9g}"

    model: Model
    cone: Cone
    backend: Backend
    state: State
    options: Options
    monitor: Monitor
    gap = np.inf
    """The best relative gap so far, as the monitor says."""
    upper, lower = np.inf, -np.inf
    """The best bounds of this run, in float64."""
    offered = -1
    """The iteration of the last offer."""
    last_due, gap_then = 0, np.inf
    """When bounds were due last, and the objectives' gap at that time."""
    given_up = ""
    """Why the run cannot lead to the optimum; empty while it can."""

    def __post_init__(self) -> None:
        model = self.model
        self._has_pairs = bool(np.isfinite(model.ratio).any()) and bool(model.allowed.all())
        self.gap_then = 1.0 if self.quick else np.inf
        self._own_gap = np.inf

    @property
    def quick(self) -> bool:
        """Whether iterations take next to nothing."""
        return self.model.blocks * self.model.variables**2 <= TUNING.quick

    def due(self, iteration: int, now: Residuals) -> bool:
        """Whether this iteration's bounds are worth their time: when the gap has fallen a lot, and
        often once it is as small as asked."""
        since, latest = iteration - self.last_due, TUNING.bounds_at_latest
        far, long = (TUNING.far_large, 2) if self.backend.parts else (TUNING.far, 1)
        if self.model.pairs_only and now.gap >= far and since < long * latest:
            return False  # the bound is below zero still, where losses start, or hardly above
        share = TUNING.fallen_quick if self.quick else TUNING.fallen
        early = iteration in (1, 4) and self.backend.parts
        closed = now.gap < TUNING.closed * self.options.gap
        first = self.gap_then >= TUNING.closed * self.options.gap
        if closed:
            due = self.quick or first or since >= 2
        elif not self.quick and now.gap < self.options.gap / TUNING.fallen:
            # the next iterations will get there
            times = 1 if now.gap > TUNING.nearly_closed * self.options.gap else 2
            due = since >= times * (TUNING.rarely if self.backend.parts else 1) * latest
        else:
            fallen = now.gap < share * self.gap_then
            due = fallen or since >= long * latest or early
        if due:
            self.last_due, self.gap_then = iteration, now.gap
        return due

    def offer(self, iteration: int, now: Residuals, system: System, last: bool = False) -> None:
        """Offer the present bounds where they are better by enough, the ``last`` ones however
        little better they are."""
        model, state = self.model, self.state
        duals = restored(model, self.backend, state)
        self.lower = max(self.lower, duals.bound)
        P, upper, rough = state.P, np.inf, False
        if model.pairs_only:
            far = now.gap > TUNING.rough_bounds * self.options.gap
            rough = far and self.backend.parts and not last
            used = None if rough else system
            P, upper = mechanism(model, self.backend, self.cone, state, now.mu, used)
            gap = (min(self.upper, upper) - self.lower) / max(abs(upper), 1e-300)
            if not last and gap > 0.5 * self._own_gap and gap > self.options.gap:
                return
            self._own_gap = gap
        elif self._has_pairs:
            P = majorants(model, self.backend, state, now.mu, system)
        if not rough:
            self.offered = iteration
        self.gap = self._propose(P, duals, not model.pairs_only or upper < self.upper)
        self.upper = min(self.upper, upper)
        figures = self.figures.format(now.primal, now.bound)
        self.monitor.report(f"iteration {iteration}: {figures}, gap {self.gap:.2e}")

    def _propose(self, P: Floats, duals: Duals, better: bool) -> float:
        """Offer multipliers, and columns where they are better than before; the best gap so far."""
        offered = point(self.model, P, self.state, duals)
        return self.monitor.propose(offered, primal=better)


Narrowing = Callable[[Bounds, Residuals], Bounds | None]
"""Bounds of the columns to go on with; None to go on as it is."""


class Run:
    """One solve in progress, from the state of ``bounds`` on, which say when it is at its end."""

    def __init__(self, bounds: Bounds, narrowing: Narrowing | None = None) -> None:
        self._take(bounds)
        self._narrowing = narrowing
        self._iteration, self._stalled = 0, 0
        self._earlier: Earlier | None = None
        model = self._model
        plain_cost = not (len(model.shared_cost) or model.auxiliary_cost.any() or model.folded)
        self._ceiling = float(model.lp.cost.max(axis=1).sum()) if plain_cost else np.inf

    def _take(self, bounds: Bounds) -> None:
        self.bounds, self._model, self._cone = bounds, bounds.model, bounds.cone
        self._backend, self._state = bounds.backend, bounds.state
        self._options, self._monitor = bounds.options, bounds.monitor
        self._backend.structure(self._state.rows, np.arange(self._model.blocks))

    def finish(self, most_iterations: int = TUNING.most_iterations) -> EngineResult:
        """Iterate to the end."""
        for self._iteration in range(most_iterations):
            now = residuals(self._model, self._backend, self._state)
            if self._narrowing and (other := self._narrowing(self.bounds, now)):
                self._take(other)
                now = residuals(self._model, self._backend, self._state)
            bounds = self.bounds
            if not np.isfinite(now.mu) or now.mu <= 0:
                return self._result(Outcome.FAILED, "the iterates left float64")
            if not self._iteration and self._monitor.remaining() <= 0:
                return self._result(Outcome.STOPPED)
            now = self._add(now)
            try:
                system = factored(self._model, self._backend, self._state, self._earlier)
            except BreakdownError as error:
                return self._result(Outcome.FAILED, str(error))
            try:
                if bounds.due(self._iteration, now):
                    bounds.offer(self._iteration, now, system)
                if bounds.gap <= self._options.gap:
                    return self._result(Outcome.SOLVED)
                if bounds.lower > self._ceiling:
                    return self._result(Outcome.INFEASIBLE, "the bound exceeds every loss")
                if self._monitor.should_stop():
                    self._offer_last(now, system)
                    return self._result(Outcome.STOPPED)
                if bounds.given_up:
                    return self._result(Outcome.FAILED, bounds.given_up)
                if self._exhausted(now):
                    return self._last(now, system, "no further progress in float64")
                step = iterate(self._backend, self._state, now, system)
                self._earlier = system.left
            except BreakdownError as error:
                return self._last(now, system, str(error))
            self._stalled = self._stalled + 1 if min(step) < 1e-3 else 0
        return self._result(Outcome.FAILED, f"no convergence in {most_iterations} iterations")

    def _exhausted(self, now: Residuals) -> bool:
        """Whether further iterations can only do harm."""
        small = now.mu * self._state.products < 1e-13 * max(abs(now.primal), 1e-300)
        return small or self._stalled >= TUNING.stalled

    def _last(self, now: Residuals, system: System, message: str) -> EngineResult:
        """End with the bounds of the present iterate."""
        self._offer_last(now, system)
        if self.bounds.gap <= self._options.gap or now.gap <= self._options.gap:
            return self._result(Outcome.SOLVED)
        return self._result(Outcome.FAILED, message)

    def _offer_last(self, now: Residuals, system: System) -> None:
        """Offer the present bounds unless that was done; the first iterates have none worth the
        time."""
        late = self._iteration < TUNING.worthless and self._monitor.remaining() <= 0
        if self.bounds.offered != self._iteration and not late:
            self.bounds.offer(self._iteration, now, system, last=True)

    def _add(self, now: Residuals) -> Residuals:
        """Let pairs and rows join that are nearly violated."""
        state = self._state
        if not self._iteration:
            return now
        dense = add_dense(state.dense, self._model, state.P, state.a, now.mu)
        rows = self._more_rows(now)
        if rows is None and dense is state.dense:
            return now
        if rows is not None:
            changed = np.flatnonzero(np.diff(rows.offset) != np.diff(state.rows.offset))
            state.rows = rows
            self._backend.structure(rows, changed)
        state.dense = dense
        return residuals(self._model, self._backend, state)

    def _more_rows(self, now: Residuals) -> Rows | None:
        state, gap, alone = self._state, self._options.gap, self._model.pairs_only
        # the held pairs are enough where moving columns into the cone hardly costs
        closes = self.bounds.upper - now.primal < 0.3 * gap * abs(now.primal)
        if alone and now.gap < 30 * gap and closes:
            return None
        late, nearer = TUNING.nearly_violated_late
        level = nearer if alone and now.gap < late else TUNING.nearly_violated
        new = worst(*self._backend.violations(state.P, level))
        if not len(new[0]):
            return None
        return add_rows(state.rows, self._cone, state.P, new, now.mu)

    def _result(self, outcome: Outcome, message: str = "") -> EngineResult:
        found = {"iterations": self._iteration, "pair_rows": len(self._state.rows)}
        return EngineResult(outcome, message, found)
