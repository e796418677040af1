"""One solve in progress: iterates of the interior-point method, and rows that join them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optmech.engines.base import EngineResult, Outcome
from optmech.engines.structured.bounds import Bounds
from optmech.engines.structured.iterative import Preconditioner
from optmech.engines.structured.newton import BreakdownError, factored, iterate
from optmech.engines.structured.rows import Rows, add_dense, add_rows, worst
from optmech.engines.structured.state import Residuals, residuals
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING

if TYPE_CHECKING:
    from optmech.engines.structured.narrowing import Narrowing


class Run:
    """One solve in progress, from the state of ``bounds`` on, which say when it is at its end."""

    def __init__(self, bounds: Bounds, narrowing: Narrowing | None = None) -> None:
        self._take(bounds)
        self._narrowing = narrowing
        self._iteration, self._stalled = 0, 0
        self._kept: Preconditioner | None = None
        model = self._model
        plain_cost = not len(model.shared_cost) and not model.auxiliary_cost.any()
        self._ceiling = float(model.lp.cost.max(axis=1).sum()) if plain_cost else np.inf

    @property
    def bounds(self) -> Bounds:
        """Those of the columns that the run is on."""
        return self._bounds

    def _take(self, bounds: Bounds) -> None:
        self._bounds, self._model, self._cone = bounds, bounds.model, bounds.cone
        self._backend, self._state = bounds.backend, bounds.state
        self._options, self._monitor = bounds.options, bounds.monitor
        self._backend.structure(self._state.rows, np.arange(self._model.blocks))

    def finish(self, most_iterations: int = TUNING.most_iterations) -> EngineResult:
        """Iterate to the end."""
        for self._iteration in range(most_iterations):
            now = self._narrowed(residuals(self._model, self._backend, self._state))
            bounds = self._bounds
            if not np.isfinite(now.mu) or now.mu <= 0:
                return self._result(Outcome.FAILED, "the iterates left float64")
            if not self._iteration and self._monitor.remaining() <= 0:
                return self._result(Outcome.STOPPED)
            now = self._add(now)
            try:
                system = factored(self._model, self._backend, self._state, self._kept)
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
                self._kept = system.preconditioner
            except BreakdownError as error:
                return self._last(now, system, str(error))
            self._stalled = self._stalled + 1 if min(step.primal, step.dual) < 1e-3 else 0
        return self._result(Outcome.FAILED, f"no convergence in {most_iterations} iterations")

    def _narrowed(self, now: Residuals) -> Residuals:
        """Go on with the columns in use, where that is known."""
        bounds = None if self._narrowing is None else self._narrowing.next(self._bounds, now)
        if bounds is None:
            return now
        self._take(bounds)
        return residuals(self._model, self._backend, self._state)

    def _exhausted(self, now: Residuals) -> bool:
        """Whether further iterations can only do harm."""
        small = now.mu * self._state.products < 1e-13 * max(abs(now.primal), 1e-300)
        return small or self._stalled >= TUNING.stalled

    def _last(self, now: Residuals, system: System, message: str) -> EngineResult:
        """End with the bounds of the present iterate."""
        self._offer_last(now, system)
        if self._bounds.gap <= self._options.gap or now.gap <= self._options.gap:
            return self._result(Outcome.SOLVED)
        return self._result(Outcome.FAILED, message)

    def _offer_last(self, now: Residuals, system: System) -> None:
        """Offer the present bounds unless that was done; the first iterates have none worth the
        time."""
        late = self._iteration < TUNING.worthless and self._monitor.remaining() <= 0
        if self._bounds.offered != self._iteration and not late:
            self._bounds.offer(self._iteration, now, system, last=True)

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

    def _closes(self, now: Residuals) -> bool:
        """Whether the held pairs are enough: moving columns into the cone hardly costs."""
        if not self._model.pairs_only:
            return False
        return self._bounds.upper - now.primal < 0.3 * self._options.gap * abs(now.primal)

    def _more_rows(self, now: Residuals) -> Rows | None:
        if now.gap < 30 * self._options.gap and self._closes(now):
            return None
        state = self._state
        gap, late = TUNING.nearly_violated_late
        level = late if self._model.pairs_only and now.gap < gap else TUNING.nearly_violated
        new = worst(*self._backend.violations(state.rows, state.P, level))
        if not len(new[0]):
            return None
        return add_rows(state.rows, self._cone, state.P, new, now.mu)

    def _result(self, outcome: Outcome, message: str = "") -> EngineResult:
        state = self._state
        return EngineResult(
            outcome,
            message,
            {
                "iterations": self._iteration,
                "pair_rows": len(state.rows),
                "pairs_per_variable": round(
                    len(state.rows) / (self._model.blocks * self._model.variables), 2
                ),
                "dense_rows": state.dense.count,
                "backend": type(self._backend).__name__,
            },
        )
