"""One solve in progress: the best verified mechanism and the best bound, whatever comes in; what
connects engines to it, and the design that it ends with."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.native import has_kernels
from optmech.base.watch import Line, noticed
from optmech.certificate import Bound, Multipliers, lower_bound, values
from optmech.certificate.bound import multiplier_reason, pairs_of
from optmech.certificate.families.ratio import everywhere, shared_out
from optmech.certificate.objective import (
    Figures,
    figures_of,
    is_optimal,
    objective_value,
    relative_gap,
    trivial_bound,
)
from optmech.certificate.statement import Statement
from optmech.designs.design import Certificate, Design, OuterProof, mechanism_of
from optmech.designs.notes import design_notes
from optmech.designs.promise import measure_approximations
from optmech.designs.sentences import infeasible_words
from optmech.errors import EngineError, OptmechError
from optmech.exact.number import from_above
from optmech.exact.numerators import Numerators
from optmech.lp.blocks import Point
from optmech.lp.inequalities import Inequalities, Points
from optmech.pipeline.prior_support import improved
from optmech.pipeline.profiles import Profile
from optmech.problem import Problem
from optmech.repair import Cone, Implied, repair
from optmech.repair.fixed_rows import HeldRows
from optmech.repair.mixing import constant_anchors, first_matrix, first_multipliers
from optmech.repair.release import Released, release

T = TypeVar("T")
P = ParamSpec("P")
MENDING = "Mend the installation, give it more memory, or use another profile (optmech profiles)"
"""What to do where engines break off."""
CLOSED_FORM = "closed form"
"""In the place of an engine, where no search was needed."""
NUMERICAL = (ArithmeticError, np.linalg.LinAlgError)
"""What an engine that gives up may raise: it works, and floating point leads no further."""
_BROKE: ContextVar[list[str] | None] = ContextVar("broke", default=None)
"""What broke off during the solve in progress."""
Recover = Callable[[Point], tuple[Floats, Multipliers]]
Progress = Callable[[str], None]
Outer = tuple[OuterProof | None, float]
"""The proof of a bound of the loss for every mechanism, and that bound; 0 without one."""
_SPARE = 1e-13
"""Room, relatively, that repair leaves below limits on sums: rounding must not use it up."""
_DUST = 1e-6
"""Where no more than this of any row costs anything, none at all may do: the rest is tried."""
_BINDING = 1e-3
"""Constraints that were left out bind once they are broken by this share."""
_NEARER = 0.1
"""Of the gap, what a program of some points may lack when others are added."""
_MANY = 2
"""Multipliers of ratios for every entry of the matrix; without cycles there is at most one."""
_INSTANT = 1e-3
"""Seconds of a time that is over."""
_WORTH = 100_000
"""Multipliers up to which loading compiled code takes longer than writing them."""


def attempted(work: Callable[[], T], what: str) -> tuple[T | None, tuple[str, ...]]:
    """What ``work`` returns; or, where it fails in whatever way, None and a note in which ``what``
    failed. Ctrl-C is none of its failures."""
    try:
        return work(), ()
    except Exception as error:
        return None, (f"{what} failed: {told(error)}",)


@contextmanager
def searching(what: str) -> Iterator[None]:
    """Raises EngineError where the only search there is breaks off, in whatever way."""
    try:
        yield
    except OptmechError:
        raise
    except Exception as error:
        message = f"nothing was searched: {what} broke off ({told(error)})"
        raise EngineError(message, where="profile", remedy=MENDING) from error


def told(error: Exception) -> str:
    """An exception in a line."""
    if isinstance(error, OptmechError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def noting_breakage(work: Callable[P, Design]) -> Callable[P, Design]:
    """A solve, whose design says first what broke off during it, in the solves inside it too."""

    @wraps(work)
    def noting(*args: P.args, **options: P.kwargs) -> Design:
        lines = _BROKE.get()
        before = _BROKE.set([] if lines is None else lines)
        try:
            design = work(*args, **options)
            new = [line for line in _BROKE.get() or () if line not in design.notes]
        finally:
            _BROKE.reset(before)
        return replace(design, notes=(*new, *design.notes)) if new else design

    return noting


def broke(line: str) -> None:
    """Note what broke off, once."""
    lines = _BROKE.get()
    if lines is not None and line not in lines:
        lines.append(line)


def _now() -> float:
    """Looked up when a clock starts, so that its start and its time are of one source."""
    return time.monotonic()


@dataclass(eq=False)
class Clock:
    """How much time is left, whether somebody asked to stop, and whom to tell."""

    time_limit: float | None = None
    progress: Progress | None = None
    started: float = field(default_factory=_now, kw_only=True)
    interrupted: bool = field(default=False, kw_only=True)
    share: float = field(default=1.0, kw_only=True)
    """Of the time, for what is under way."""

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def remaining(self) -> float:
        """Seconds of the share of the time; inf without a limit, 0 after an interrupt."""
        if self.interrupted:
            return 0.0
        limit = np.inf if self.time_limit is None else self.share * self.time_limit
        return max(0.0, limit - self.seconds)

    def should_stop(self) -> bool:
        return self.remaining() <= 0

    def rest(self, profile: Profile) -> Profile:
        """The profile with what is left of the time."""
        if self.time_limit is None:
            return profile
        return profile.with_limits(None, max(self.remaining(), _INSTANT))

    def report(self, text: str, gap: float = np.inf) -> None:
        """Say how far it is, and the best gap so far."""
        if self.progress is not None:
            self.progress(Line(text, gap))

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Turn the first Ctrl-C into a request to stop; a second one interrupts as usual."""
        with noticed(self._interrupt):
            yield

    def _interrupt(self) -> None:
        self.interrupted = True
        self.report("interrupted: finishing with the best verified result so far")


@dataclass
class Unheard(Clock):
    """The monitor of a run whose points nobody takes; it ends when the time is over."""

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        return math.inf


@dataclass(eq=False)
class Incumbent(Clock):
    """Keeps the best pair of a mechanism and multipliers."""

    statement: Statement = field(kw_only=True)
    gap_asked: float = field(kw_only=True)
    matrix: Floats | None = None
    value: float = np.inf
    bound: Bound = field(default_factory=lambda: Bound(0.0, 0.0))
    multipliers: Multipliers = field(default_factory=Multipliers)

    @property
    def gap(self) -> float:
        """Relative gap of the best pair; inf while there is no mechanism."""
        return relative_gap(self.value, self.bound.value) if self.value < np.inf else np.inf

    def report(self, text: str, gap: float = np.inf) -> None:
        """Say how far it is, with the gap of the best pair."""
        super().report(text, min(gap, self.gap))

    def offer_bound(self, multipliers: Multipliers) -> None:
        """Evaluate multipliers and keep them if their bound is the best so far."""
        bound = lower_bound(self.statement, multipliers)
        if np.isfinite(bound.value) and bound.value > self.bound.value:
            self.bound, self.multipliers = bound, multipliers


@dataclass(eq=False)
class Session(Incumbent):
    """The pair of a search over secrets. ``Channel`` connects an engine to it."""

    refuted: str = ""
    """Why nothing is feasible, as the multipliers prove."""
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
            self.offer_matrix(first_matrix(self.statement, self.cone))
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
            self.offer_bound(first_multipliers(self.statement))
        self.unrepaired = None

    def work_on(self, implied: Implied) -> None:
        """Search and repair within these inequalities."""
        self.implied = implied
        self.held = HeldRows.of(implied.given)
        self.cone = Cone.of(implied.given)
        self.spared = implied.given.tightened(_SPARE)

    def should_stop(self) -> bool:
        done = self.gap <= self.gap_asked and not self.anchoring
        return self.remaining() <= 0 or done

    def offer_matrix(self, matrix: Floats) -> Floats | None:
        """Repair, check, and keep the matrix if it is the best so far; returns it repaired, or
        None."""
        if self.held is not None:
            return self._offer_held(self.held, matrix)
        self._offer_free(matrix)
        anchors = self._anchors()
        repaired = repair(self.implied.given, self.cone, matrix, anchors, self.spared)
        if self.anchoring and repaired is not None:
            self.interior.append(repaired)
        if repaired is None:
            self.unrepaired = matrix
            return None
        value = objective_value(self.statement, repaired)
        if value >= self.value:
            return repaired
        if self.inequalities.hold(repaired):
            self.matrix, self.value, self.exact = repaired, value, None
            self.unrepaired = None
        else:
            self.unrepaired = matrix
        return repaired

    def _anchors(self) -> tuple[Floats, ...]:
        """What to mix with."""
        return (*self.interior[-2:], *(() if self.matrix is None else (self.matrix,)))

    def _offer_held(self, held: HeldRows, matrix: Floats) -> Floats | None:
        """The same where rows are held: in whole numbers from the start."""
        found = held.near(matrix, self._anchors())
        if found is None:
            self.unrepaired = matrix
            return None
        if self.anchoring:
            self.interior.append(found.exact.matrix)
        self.offer_exact(found)
        return found.exact.matrix

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
        if self.released is not None and self.remaining() > 0:
            self.released = improved(self.inequalities, self.cone, self.released) or self.released


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
    proposals: int = 0

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        self.proposals += 1
        matrix, multipliers = self.recover(point)
        if dual and self.dual:
            self.session.offer_bound(multipliers)
        if primal and self.primal:
            self._offer(matrix)
        return self.session.gap

    def _offer(self, matrix: Floats) -> None:
        self.session.proposal = matrix
        self._offered(self.session.offer_matrix(matrix))

    def _offered(self, repaired: Floats | None) -> None:
        """What became of the last proposal."""

    def should_stop(self) -> bool:
        return self.session.should_stop()

    def remaining(self) -> float:
        return self.session.remaining()

    def report(self, text: str) -> None:
        self.session.report(text)


@dataclass(eq=False)
class PointsChannel(Channel):
    """The monitor of a program that counts the worst loss at some points only: stops where others
    matter more than what it lacks itself."""

    points: Points = field(kw_only=True)
    near: bool = False

    def _offered(self, repaired: Floats | None) -> None:
        session = self.session
        if repaired is not None:
            level = self.points.level(session.statement, repaired)
            own = relative_gap(level, session.bound.value)
            self.near |= own <= max(session.gap_asked / 2, _NEARER * session.gap)

    def should_stop(self) -> bool:
        return self.near or self.session.should_stop()


class PatientChannel(Channel):
    """The monitor of a run that is wanted although the gap is reached: it ends with the time."""

    def should_stop(self) -> bool:
        return self.session.remaining() <= 0


class WitnessChannel(Channel):
    """The monitor of a feasibility program: looks for a proof, offers matrices all the same."""

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        session = self.session
        matrix, multipliers = self.recover(point)
        reason = multiplier_reason(session.statement, multipliers)
        if not reason:
            session.offer_matrix(matrix)
        elif not session.refuted:
            session.refuted, session.multipliers = reason, multipliers
        return 0.0 if reason else math.inf


@dataclass(eq=False)
class RelaxedChannel(Channel):
    """The monitor of a program without some constraints, ``left_out``: stops once they bind."""

    left_out: Inequalities = field(kw_only=True)
    binding: bool = False

    def _offer(self, matrix: Floats) -> None:
        sums = np.maximum(matrix.sum(axis=1, keepdims=True), 1e-300)
        self.binding |= self.left_out.violation(matrix / sums) > _BINDING
        self.session.offer_matrix(matrix)

    def should_stop(self) -> bool:
        return self.binding or self.session.should_stop()


def make_design(
    problem: Problem,
    session: Session,
    engine: str,
    engine_reason: str,
    infeasible: str = "",
    message: str = "",
) -> Design:
    """The design that a session ends with."""
    if infeasible:
        return infeasible_design(
            problem, session.multipliers, infeasible, engine, engine_reason, session.seconds
        )
    unseen = attempted(session.serve_unseen, "better rows for secrets without prior weight")
    assert session.released is not None
    released = session.released
    thin = attempted(lambda: _thin(session), "leaving out multipliers that prove nothing")
    approximations, unmeasured = attempted(
        lambda: measure_approximations(problem, released.exact.matrix),
        "measuring what thresholds leave out",
    )
    return feasible_design(
        problem,
        released,
        session.bound,
        session.multipliers,
        session,
        gap=session.gap_asked,
        engine=engine,
        engine_reason=engine_reason,
        message=message,
        notes=(*unseen[1], *thin[1], *unmeasured),
        approximations=approximations or (),
        rounding_cost=_rounding_cost(problem.statement, session),
    )


def feasible_design(
    problem: Problem,
    released: Released,
    bound: Bound,
    multipliers: Multipliers,
    clock: Clock,
    *,
    gap: float,
    message: str = "",
    outer: tuple[OuterProof | None, float | None] = (None, None),
    notes: tuple[str, ...] = (),
    **more: Any,
) -> Design:
    """The design of a released matrix, with ``more`` of its fields: ``gap`` was asked for, and
    what bounds the loss
    where these multipliers do not is ``outer``."""
    figures = figures_of(problem.statement, released.exact, bound, multipliers)
    proof, lower = outer
    return Design(
        problem,
        released.exact,
        figures if lower is None else figures._replace(lower_bound=lower),
        certificate=Certificate(released.checks, multipliers, bound, proof),
        seconds=clock.seconds,
        reason=ending(figures.gap, gap, message, late=clock.remaining() <= 0),
        notes=(*design_notes(problem, mechanism_of(problem, released.exact).matrix), *notes),
        **more,
    )


def infeasible_design(
    problem: Problem,
    multipliers: Multipliers,
    reason: str,
    engine: str,
    engine_reason: str,
    seconds: float,
    outer: OuterProof | None = None,
) -> Design:
    """The result where ``reason`` proves that nothing is feasible; of a mesh ``outer`` may prove it
    of every mechanism."""
    nan = float("nan")
    return Design(
        problem,
        None,
        Figures(nan, nan, nan, nan, nan),
        certificate=Certificate((), multipliers, Bound(nan, nan), outer),
        engine=engine,
        engine_reason=engine_reason,
        seconds=seconds,
        reason=infeasible_words(problem, reason, outer),
        notes=problem.notes,
    )


def ending(gap: float, asked: float, message: str = "", *, late: bool = False) -> str:
    """Why the search ended before the mechanism was optimal, or short of what was asked for."""
    if gap > asked:
        short = "the time was up" if late else "floating point leads no further"
        return (
            message
            or f"ended at a gap of {from_above(gap, 3)}, where {asked:g} was asked for: {short}"
        )
    return "" if is_optimal(gap) else f"stopped at the gap asked for, {asked:g}"


def _thin(session: Session) -> None:
    """Leave out multipliers that prove nothing, where there are so many that a file shows it."""
    statement = session.statement
    pairs = pairs_of(statement, session.multipliers)
    least = max(_WORTH, _MANY * statement.loss.size)
    if pairs is None or len(pairs.value) <= least or not has_kernels():
        return
    from optmech.reductions.pairs import thinned

    fewer = shared_out(statement, thinned(pairs, statement.log_ratio))
    joint = everywhere(statement)
    given = [part for _, part in session.multipliers.of(statement)]
    families = tuple(fewer.get(k) if k in joint else part for k, part in enumerate(given))
    multipliers = Multipliers(families, session.multipliers.objective)
    bound = lower_bound(statement, multipliers)
    allowed = max(session.gap_asked, session.gap)
    # rounding may take from the bound what nobody asked for, and no more
    if relative_gap(session.value, bound.value) <= allowed:
        session.bound, session.multipliers = bound, multipliers


def _rounding_cost(statement: Statement, session: Session) -> float:
    """What release cost relative to the repaired matrix before it was rounded."""
    assert session.released is not None
    exact = float(values.objective(statement, session.released.exact)[1])
    change = exact - session.value
    return change / abs(session.value) if session.value else change
