"""When a run makes bounds, and what it offers to the monitor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from optmech.engines.base import Monitor, Options
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.model import Model
from optmech.engines.structured.recovery import point
from optmech.engines.structured.repair import majorants, mechanism, restored
from optmech.engines.structured.rows import Cone
from optmech.engines.structured.state import Residuals, State
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING


@dataclass(eq=False)
class Bounds(ABC):
    """Turns iterates of a run into points for the monitor."""

    model: Model
    cone: Cone
    backend: Backend
    state: State
    options: Options
    monitor: Monitor
    gap: float = field(default=np.inf, init=False)
    """The best relative gap so far, as the monitor says."""
    upper: float = field(default=np.inf, init=False)
    lower: float = field(default=-np.inf, init=False)
    """The best bounds of this run, in float64."""
    offered: int = field(default=-1, init=False)
    """The iteration of the last offer."""
    last_due: int = field(default=0, init=False)
    gap_then: float = field(default=np.inf, init=False)
    """When bounds were due last, and the objectives' gap at that time."""
    given_up: str = field(default="", init=False)
    """Why the run cannot lead to the optimum; empty while it can."""

    @property
    def quick(self) -> bool:
        """Whether iterations take next to nothing."""
        return self.model.blocks * self.model.variables**2 <= TUNING.quick

    @abstractmethod
    def due(self, iteration: int, now: Residuals) -> bool:
        """Whether this iteration's bounds are worth their time."""

    @abstractmethod
    def offer(self, iteration: int, now: Residuals, system: System, last: bool = False) -> None:
        """Make bounds and offer them, the last ones however little better they are."""


@dataclass(eq=False)
class AllColumns(Bounds):
    """Bounds where the program's blocks are all there."""

    def __post_init__(self) -> None:
        model = self.model
        self._has_pairs = bool(np.isfinite(model.ratio).any()) and bool(model.allowed.all())
        self.gap_then = 1.0 if self.quick else np.inf
        self._own_gap = np.inf

    def due(self, iteration: int, now: Residuals) -> bool:
        """When the gap has fallen a lot, and often once it is as small as asked."""
        since = iteration - self.last_due
        if self.model.pairs_only and now.gap >= 1 and since < TUNING.bounds_at_latest:
            return False  # the bound is below zero still, where losses start
        share = TUNING.fallen_quick if self.quick else TUNING.fallen
        early = iteration in (1, 4) and not self.quick
        closed = now.gap < TUNING.closed * self.options.gap
        first = self.gap_then >= TUNING.closed * self.options.gap
        if closed:
            due = self.quick or first or since >= 2
        elif not self.quick and now.gap < self.options.gap / TUNING.fallen:
            due = since >= TUNING.bounds_at_latest  # the next iterations will get there
        else:
            fallen = now.gap < share * self.gap_then
            due = fallen or since >= TUNING.bounds_at_latest or early
        if due:
            self.last_due, self.gap_then = iteration, now.gap
        return due

    def offer(self, iteration: int, now: Residuals, system: System, last: bool = False) -> None:
        """Offer the present bounds where they are better by enough."""
        model, state = self.model, self.state
        duals = restored(model, self.backend, state)
        self.lower = max(self.lower, duals.bound)
        P, upper = state.P, np.inf
        if model.pairs_only:
            P, upper = mechanism(model, self.backend, self.cone, state, now.mu, system)
            gap = (min(self.upper, upper) - self.lower) / max(abs(upper), 1e-300)
            if not last and gap > 0.5 * self._own_gap and gap > self.options.gap:
                return
            self._own_gap = gap
        elif self._has_pairs:
            P = majorants(model, self.backend, state, now.mu, system)
        self.offered = iteration
        self.gap = self.monitor.propose(
            point(model, P, state, duals), primal=not model.pairs_only or upper < self.upper
        )
        self.upper = min(self.upper, upper)
        self.monitor.report(
            f"iteration {iteration}: {now.primal:.9g} / {now.bound:.9g}, gap {self.gap:.2e}"
        )
