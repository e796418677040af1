"""One solve in progress: iterates of the interior-point method, and the points they propose."""

from __future__ import annotations

import numpy as np

from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.bounds import Duals, closed, lifted, point
from optmech.engines.structured.dense import add_dense
from optmech.engines.structured.model import Model
from optmech.engines.structured.newton import BreakdownError, Step, factored, iterate
from optmech.engines.structured.pairs import Cone, Rows, add_rows, distinct
from optmech.engines.structured.state import Residuals, State, residuals, start
from optmech.engines.structured.system import System

_MOST_ITERATIONS = 600
_NEARLY_VIOLATED = 0.9
"""Long pairs join from here on, in every iteration: those that enter violated shorten the steps
and spoil the bounds for a long time."""
_STALLED = 12
_WORTHLESS = 3
"""Before so many iterations the bounds are far from anything."""
_QUICK = 2_000_000
"""Blocks times variables squared up to which an iteration takes some milliseconds: bounds on the
way are then of use to nobody, and would take as long as the iterations."""


class Run:
    """One solve in progress."""

    def __init__(
        self, model: Model, cone: Cone, backend: Backend, options: Options, monitor: Monitor
    ) -> None:
        self._model, self._cone, self._backend = model, cone, backend
        self._options, self._monitor = options, monitor
        self._state = self._begin()
        # plain: nothing beyond pairs, so bounds and values are known here as well as to the monitor
        self._plain = not len(model.pool) and not len(model.links.rhs) and bool(model.allowed.all())
        self._backend.structure(self._state.rows, np.arange(model.blocks))
        self._has_pairs = bool(np.isfinite(model.ratio).any()) and bool(model.allowed.all())
        self._upper, self._lower = np.inf, -np.inf
        self._proposed = np.inf
        self._gap = np.inf
        self._iterations, self._last_due, self._offered = 0, 0, -1
        self._stalled = 0
        self._quick = model.blocks * model.variables**2 <= _QUICK
        self._gap_then = 1.0 if self._quick else np.inf
        plain_cost = not len(model.shared_cost) and not model.auxiliary_cost.any()
        lp = model.lp
        self._ceiling = float(lp.cost.max(axis=1).sum()) if plain_cost else np.inf

    def _begin(self) -> State:
        """The first iterate."""
        return start(self._model, self._cone)

    def finish(self) -> EngineResult:
        """Iterate to the end."""
        for self._iterations in range(_MOST_ITERATIONS):
            now = residuals(self._model, self._backend, self._state)
            if not np.isfinite(now.mu) or now.mu <= 0:
                return self._result(Outcome.FAILED, "the iterates left float64")
            if not self._iterations and self._monitor.remaining() <= 0:
                return self._result(Outcome.STOPPED)
            now = self._add(now)
            try:
                system = factored(self._model, self._backend, self._state)
            except BreakdownError as error:
                return self._result(Outcome.FAILED, str(error))
            try:
                if self._due(now):
                    self._propose(now, system)
                if self._gap <= self._options.gap:
                    return self._result(Outcome.SOLVED)
                if self._lower > self._ceiling:
                    return self._result(Outcome.INFEASIBLE, "the bound exceeds every loss")
                if self._monitor.should_stop():
                    self._finally(now, system)
                    return self._result(Outcome.STOPPED)
                if self._exhausted(now):
                    return self._last(now, system, "no further progress in float64")
                step = iterate(self._backend, self._state, now, system)
            except BreakdownError as error:
                return self._last(now, system, str(error))
            self._follow(step)
        return self._result(Outcome.FAILED, f"no convergence in {_MOST_ITERATIONS} iterations")

    def _follow(self, step: Step) -> None:
        shorter = min(step.primal, step.dual)
        self._stalled = self._stalled + 1 if shorter < 1e-3 else 0

    def _exhausted(self, now: Residuals) -> bool:
        """Whether further iterations can only do harm."""
        small = now.mu * self._state.products < 1e-13 * max(abs(now.primal), 1e-300)
        return small or self._stalled >= _STALLED

    def _last(self, now: Residuals, system: System, message: str) -> EngineResult:
        """End with the bounds of the present iterate."""
        self._finally(now, system)
        if self._gap <= self._options.gap or now.gap <= self._options.gap:
            return self._result(Outcome.SOLVED)
        return self._result(Outcome.FAILED, message)

    def _finally(self, now: Residuals, system: System) -> None:
        """Offer the present bounds, however little better they are, unless that was done; the
        first iterates have none worth the time."""
        late = self._iterations < _WORTHLESS and self._monitor.remaining() <= 0
        if self._offered != self._iterations and not late:
            self._proposed = np.inf
            self._propose(now, system)

    def _due(self, now: Residuals) -> bool:
        """Bounds cost about as much as two iterations: when the gap has fallen a lot, and often
        once it is as small as asked."""
        since = self._iterations - self._last_due
        if self._plain and now.gap >= 1 and since < 10:
            return False  # the bound is below zero still, where losses start
        fallen = now.gap < (0.01 if self._quick else 0.5) * self._gap_then
        if fallen or since >= 10 or (self._iterations in (1, 4) and not self._quick):
            due = True
        else:
            due = since >= (1 if self._quick else 2) and now.gap < self._options.gap
        if due:
            self._last_due, self._gap_then = self._iterations, now.gap
        return due

    def _propose(self, now: Residuals, system: System) -> None:
        """Offer the present bounds where they are better by enough."""
        duals = Duals(self._model, self._backend, self._state)
        self._lower = max(self._lower, duals.bound)
        P, upper = self._state.P, np.inf
        if self._plain:
            P, upper = closed(self._model, self._backend, self._cone, self._state, now.mu, system)
            gap = (min(self._upper, upper) - self._lower) / max(abs(upper), 1e-300)
            if gap > 0.5 * self._proposed and gap > self._options.gap:
                return
            self._proposed = gap
        elif self._has_pairs:
            P = lifted(self._model, self._backend, self._state, now.mu, system)
        self._offered = self._iterations
        self._gap = self._monitor.propose(
            point(self._model, P, self._state, duals),
            primal=not self._plain or upper < self._upper,
        )
        self._upper = min(self._upper, upper)
        self._monitor.report(
            f"iteration {self._iterations}: {now.primal:.9g} / {now.bound:.9g}, gap {self._gap:.2e}"
        )

    def _add(self, now: Residuals) -> Residuals:
        """Let pairs and rows join that are nearly violated."""
        k, state = self._iterations, self._state
        dense = add_dense(state.dense, self._model, state.P, state.a, now.mu) if k else state.dense
        rows = self._more_rows(now) if k else None
        if rows is None and dense is state.dense:
            return now
        if rows is not None:
            changed = np.flatnonzero(np.diff(rows.offset) != np.diff(state.rows.offset))
            state.rows = rows
            self._backend.structure(rows, changed)
        state.dense = dense
        return residuals(self._model, self._backend, state)

    def _closes(self, now: Residuals) -> bool:
        """Whether the held pairs are enough: closing over all pairs hardly costs."""
        if not self._plain:
            return False
        return self._upper - now.primal < 0.3 * self._options.gap * abs(now.primal)

    def _more_rows(self, now: Residuals) -> Rows | None:
        if now.gap < 30 * self._options.gap and self._closes(now):
            return None
        state = self._state
        by_i, by_j = self._backend.violations(state.rows, state.P, _NEARLY_VIOLATED)
        block, i = np.nonzero(by_i >= 0)
        block2, j2 = np.nonzero(by_j >= 0)
        candidates = (
            np.concatenate([block, block2]),
            np.concatenate([i, by_j[block2, j2]]),
            np.concatenate([by_i[block, i], j2]),
        )
        block, i, j = distinct(self._model.variables, candidates)
        if not len(block):
            return None
        return add_rows(state.rows, self._cone, state.P, (block, i, j), now.mu)

    def _result(self, outcome: Outcome, message: str = "") -> EngineResult:
        state = self._state
        return EngineResult(
            outcome,
            message,
            {
                "iterations": self._iterations,
                "pair_rows": len(state.rows),
                "pairs_per_variable": round(
                    len(state.rows) / (self._model.blocks * self._model.variables), 2
                ),
                "dense_rows": state.dense.count,
                "backend": type(self._backend).__name__,
            },
        )
