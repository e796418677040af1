"""One solve in progress: the best verified mechanism and the best bound, whatever comes in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.interrupts import noticed
from optmech.certificate import Bound, Multipliers, lower_bound
from optmech.certificate.objective import objective_value, relative_gap, trivial_bound
from optmech.certificate.statement import Statement
from optmech.exact.numerators import Numerators
from optmech.lp.blocks import Point
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.unseen import improved
from optmech.repair import Cone, Implied, repair, start
from optmech.repair.held import HeldRows
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import Released, release

_SPARE = 1e-13
"""Room, relatively, that repair leaves below limits on sums: rounding must not use it up."""

_DUST = 1e-6
"""Where no more than this of any row costs anything, none at all may do: the rest is tried."""

Recover = Callable[[Point], tuple[Floats, Multipliers]]
Progress = Callable[[str], None]


@dataclass(eq=False)
class Session:
    """Keeps the incumbent pair and the clock. ``Channel`` connects an engine to it."""

    statement: Statement
    gap_asked: float
    time_limit: float | None = None
    progress: Progress | None = None
    started: float = field(default_factory=time.monotonic)
    matrix: Floats | None = None
    value: float = np.inf
    bound: Bound = field(default_factory=lambda: Bound(-np.inf, 0.0))
    multipliers: Multipliers = field(default_factory=Multipliers)
    interrupted: bool = False
    unrepaired: Floats | None = None
    """The last proposal for which no repair was found; tried again once there is an anchor."""
    anchoring: bool = False
    """Whether offers come from a tightened program and are kept in ``interior``."""
    interior: list[Floats] = field(default_factory=list)
    """Matrices that satisfy the constraints with room to spare, where they were needed."""
    released: Released | None = None
    proposal: Floats | None = None
    """The last matrix that an engine proposed, as it came."""
    unreleased: bool = False
    """Whether no whole numbers near ``matrix`` passed."""
    exact: Released | None = None
    """``matrix`` in whole numbers that passed, where it was found in these."""

    def __post_init__(self) -> None:
        self.inequalities = Inequalities.of(self.statement)
        self.work_on(Implied.of(self.inequalities))
        self.bound = Bound(trivial_bound(self.statement), 0.0)
        self.offer_bound(Multipliers())
        if self.remaining() > 0:
            self.offer_matrix(start.matrix(self.statement, self.cone))
        uniform = np.full(
            (self.statement.secrets, self.statement.observables), 1 / self.statement.observables
        )
        # the cheapest first: one is enough where there is no time
        anchors = list(constant_anchors(self.statement, uniform))
        anchors.sort(key=lambda anchor: objective_value(self.statement, anchor))
        for anchor in anchors:
            if objective_value(self.statement, anchor) < self.value:
                self.offer_matrix(anchor)
        if self.remaining() > 0:
            self.offer_bound(start.multipliers(self.statement))
        self.unrepaired = None

    def work_on(self, implied: Implied) -> None:
        """Search and repair within these inequalities."""
        self.implied = implied
        self.held = HeldRows.of(implied.given)
        self.cone = Cone.of(implied.given)
        self.spared = implied.given.tightened(_SPARE)

    @property
    def gap(self) -> float:
        """Relative gap of the best pair; inf while there is no mechanism."""
        return relative_gap(self.value, self.bound.value) if self.matrix is not None else np.inf

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def remaining(self) -> float:
        return np.inf if self.time_limit is None else max(0.0, self.time_limit - self.seconds)

    def should_stop(self) -> bool:
        done = self.gap <= self.gap_asked and not self.anchoring
        return self.interrupted or self.remaining() <= 0 or done

    def report(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)

    def offer_matrix(self, matrix: Floats) -> None:
        """Repair, check, and keep the matrix if it is the best so far."""
        if self.held is not None:
            self._offer_held(self.held, matrix)
            return
        self._offer_free(matrix)
        anchors = (*self.interior[-2:], *(() if self.matrix is None else (self.matrix,)))
        repaired = repair(self.implied.given, self.cone, matrix, anchors, self.spared)
        if self.anchoring and repaired is not None:
            self.interior.append(repaired)
        if repaired is None:
            self.unrepaired = matrix
            return
        value = objective_value(self.statement, repaired)
        if value >= self.value:
            return
        if self.inequalities.hold(repaired):
            self.matrix, self.value, self.exact = repaired, value, None
            self.unrepaired = None
        else:
            self.unrepaired = matrix

    def _offer_held(self, held: HeldRows, matrix: Floats) -> None:
        """The same where rows are held: in whole numbers from the start."""
        anchors = (*self.interior[-2:], *(() if self.matrix is None else (self.matrix,)))
        found = held.near(matrix, anchors)
        if found is None:
            self.unrepaired = matrix
            return
        if self.anchoring:
            self.interior.append(found.exact.matrix)
        self.offer_exact(found)

    def _offer_free(self, matrix: Floats) -> None:
        """Keep what of a matrix costs nothing, if that was nearly all and satisfies everything."""
        statement = self.statement
        if statement.target is not None or self.value == 0:
            return
        free = statement.allowed & (statement.loss == 0)
        if statement.objective == "expected_loss":
            free |= statement.allowed & (statement.prior[:, None] == 0)
        kept = np.where(free, np.maximum(matrix, 0.0), 0.0)
        sums = kept.sum(axis=1, keepdims=True)
        if not (np.isfinite(sums).all() and (abs(sums - 1) <= _DUST).all()):
            return
        kept = np.asarray(kept / sums)
        # as it is first: repair keeps a distance from limits that zero may not leave
        clear = np.where(kept < _DUST, 0.0, kept)
        repaired = repair(self.implied.given, self.cone, clear)
        for candidate in (kept, repaired):
            if candidate is None or objective_value(statement, candidate) > 0:
                continue
            rounded = Numerators.rounded(candidate)
            if _tells_apart(statement, rounded.matrix):
                continue
            found = Released.of(statement, rounded)
            if found is not None:
                self.offer_exact(found)
                return

    def offer_exact(self, found: Released) -> None:
        """Keep whole numbers that passed if they are the best so far, or the first for which
        release will not fail."""
        value = objective_value(self.statement, found.exact.matrix)
        if value < self.value or (self.exact is None and self.unreleased):
            self.matrix, self.value, self.exact = found.exact.matrix, value, found
            self.unrepaired = None

    def offer_bound(self, multipliers: Multipliers) -> None:
        """Evaluate multipliers and keep them if their bound is the best so far."""
        bound = lower_bound(self.statement, multipliers)
        if np.isfinite(bound.value) and bound.value > self.bound.value:
            self.bound, self.multipliers = bound, multipliers

    def release(self, *, alone: bool = False) -> bool:
        """Turn the best matrix into numerators that pass the exact check; whether that worked.

        With ``alone``, a matrix to mix with will do by itself, whatever it costs.
        """
        assert self.matrix is not None
        if self.exact is not None:
            self.released = self.exact
            return True
        anchors = self.interior[-2:] + list(constant_anchors(self.statement, self.matrix))
        self.released = release(self.inequalities, self.matrix, anchors, alone=alone)
        self.unreleased = self.released is None
        return not self.unreleased

    def serve_unseen(self) -> None:
        """Where secrets have no prior weight, release rows of less loss for them."""
        if self.released is not None and not self.interrupted and self.remaining() > 0:
            self.released = improved(self.inequalities, self.cone, self.released) or self.released

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Turn the first Ctrl-C into a request to stop; a second one interrupts as usual."""
        with noticed(self._interrupt):
            yield

    def _interrupt(self) -> None:
        self.interrupted = True
        self.report("interrupted: finishing with the best verified result so far")


def _tells_apart(statement: Statement, matrix: Floats) -> bool:
    """Whether a ratio is broken by an observable that one secret has and the other never: seen at
    once, where the exact check would list every single inequality that fails."""
    bounded = np.isfinite(statement.log_ratio).astype(np.float32)
    never = (matrix == 0).astype(np.float32)
    return bool(((bounded @ never > 0) & (matrix > 0)).any())


@dataclass(eq=False)
class Channel:
    """The monitor of one engine run: turns the run's points into offers to the session."""

    session: Session
    recover: Recover
    primal: bool = True
    dual: bool = True

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        matrix, multipliers = self.recover(point)
        if dual and self.dual:
            self.session.offer_bound(multipliers)
        if primal and self.primal:
            self.session.proposal = matrix
            self.session.offer_matrix(matrix)
        return self.session.gap

    def should_stop(self) -> bool:
        return self.session.should_stop()

    def remaining(self) -> float:
        return self.session.remaining()

    def report(self, text: str) -> None:
        self.session.report(text)
