"""``solve``: from a problem to a certified design. Thin: every step lives in its own module."""

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.native import has_kernels, uncompiled
from optmech.certificate import Multipliers
from optmech.certificate.bound import closed_form_reason, pairs_of, support_reason
from optmech.certificate.statement import Statement
from optmech.designs.design import Design
from optmech.engines import load_engine, second, select, substitute
from optmech.engines.base import EngineResult, Options, Outcome
from optmech.engines.highs import interior
from optmech.errors import EngineError, ProblemError, SolverError
from optmech.lp.blocks import BlockLP, Point, Start
from optmech.lp.flatten import Interior
from optmech.lp.inequalities import Compiled, Inequalities, compile_lp
from optmech.pipeline.profiles import Profile, load_profile
from optmech.pipeline.session import (
    CLOSED_FORM,
    MENDING,
    NUMERICAL,
    Channel,
    Clock,
    PatientChannel,
    PointsChannel,
    Progress,
    Recover,
    RelaxedChannel,
    Session,
    Unheard,
    WitnessChannel,
    broke,
    make_design,
    noting_breakage,
    told,
)
from optmech.pipeline.sizes import finishing_seconds, opening_seconds, reducing_seconds
from optmech.problem import Problem
from optmech.reductions import Reduced
from optmech.repair import Implied
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import released_near

T = TypeVar("T")

_INNER_MARGINS = (1e-7, 1e-9)
_INNER_SECONDS = 60.0
"""For a matrix inside all inequalities that is asked for alone."""
_ROUNDS = 20
"""Times that points are added at which the worst loss counts; five are usual."""
_LATE = "the time was over before the search began"
_SECOND = 1.0
_SMALL = 1e-4
"""Log ratios up to which a mechanism with ratios of one is worth a try."""
_SLACK_FIRST_ROWS = 500_000
"""From this many pair rows on it pays to see first whether distortion constraints bind."""


class NoMechanismError(SolverError):
    """No verified mechanism was found, and no proof that there is none."""

    multipliers = Multipliers()
    """Multipliers that prove the best lower bound that was found."""


def solve(
    problem: Problem,
    profile: str | Path | Profile = "auto",
    *,
    gap: float | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
    start: Design | None = None,
    device: str | None = None,
) -> Design:
    """The design of a problem over finitely many secrets: as ``optmech.pipeline.solve.solve``.

    Raises
    ------
    ProblemError
        On unusable arguments, privacy at every point among them; and as there.
    SolverError
        When the search ended without any verified mechanism and without a proof that none exists.
    EngineError
        When every engine broke off, so that nothing was searched.
    """
    if problem.mesh is not None:
        raise ProblemError(
            "privacy at every point is solved for by om.solve and optmech solve only",
            where="constraints",
            remedy="Leave everywhere out for what works on finitely many secrets",
        )
    chosen = load_profile(profile).with_limits(gap, time_limit)
    return over_secrets(problem, chosen, progress, start, device)


@noting_breakage
def over_secrets(
    problem: Problem,
    profile: Profile,
    progress: Progress | None,
    start: Design | None,
    device: str | None,
) -> Design:
    """The design of a problem over finitely many secrets, also where a line or network is promised
    something at every point: the lower bound is then one about its own mechanisms."""
    chosen = profile.on_device(device)
    if chosen.device:
        from optmech.engines.structured.arrays import open_device

        open_device(chosen.device)
    if start is not None:
        require_fit(problem, start)
    clock, statement = Clock(chosen.time_limit), problem.statement
    session = Session(
        _searched_for(statement, chosen),
        progress,
        started=clock.started,
        statement=statement,
        gap_asked=chosen.gap,
    )
    reason = support_reason(statement) or closed_form_reason(statement)
    if reason:
        return make_design(problem, session, CLOSED_FORM, "no search was needed", reason)
    if session.gap <= chosen.gap and session.release():
        return make_design(problem, session, CLOSED_FORM, "the ratios are so large that it fits")
    if start is not None:
        offer(session, start)
        if session.gap <= chosen.gap and session.release():
            return make_design(problem, session, "start", "the start is optimal here as well")
    search = _Search(session, chosen, None if start is None else hint(start))
    with session.interruptible():
        reason = search.kept(search.whole, "")
        if session.matrix is not None and not session.release() and not session.interrupted:
            search.kept(search.settle, None)
            if not session.release():
                search.kept(search.anchor, None)
                session.release(alone=True)
    if not (reason or search.ran or session.gap <= chosen.gap) and (first := search.error):
        raise EngineError(
            f"nothing was searched: {search.message}",
            where=f"profile {chosen.name}",
            remedy=MENDING,
        ) from first
    if session.released is None and not reason:
        error = NoMechanismError(
            f"no verified mechanism was found in {session.seconds:.1f} s ({search.message})",
            where=f"profile {chosen.name}",
            remedy="Allow more time, use another profile, or relax a constraint that leaves "
            "no room (a loss bound at its minimum; two limits that meet: give equal)",
        )
        error.multipliers = session.multipliers
        raise error
    return make_design(problem, session, search.engine, search.why, reason, search.message)


def _searched_for(statement: Statement, profile: Profile) -> float | None:
    """Seconds for the search, of those that the profile has; the rest is for verifying what was
    found. Raises NoMechanismError where there is no time for any mechanism."""
    limit = profile.time_limit
    if limit is None:
        return None
    require_time(limit, opening_seconds(statement), "to verify one", f"profile {profile.name}")
    return limit - finishing_seconds(statement)


def require_time(left: float, needed: float, what: str, where: str) -> None:
    """Raise NoMechanismError where the time that is left will not do; what takes less than a second
    is done however little there is."""
    if needed > max(left, _SECOND):
        raise NoMechanismError(
            f"no mechanism was looked for: {what} takes about {needed:,.0f} s, and {left:.3g} s "
            "are left of the time",
            where=where,
            remedy="Allow more time, or use a coarser domain or fewer observables",
        )


@dataclass(eq=False)
class _Search:
    """Runs the profile's engine on the programs that the statement compiles to."""

    session: Session
    profile: Profile
    start: Start | None = None
    engine: str = ""
    why: str = ""
    message: str = ""
    ran: bool = False
    """Whether an engine searched: it proposed something, or came to an end of its own."""
    error: Exception | None = None
    """What broke off first."""
    plain: bool = False
    """Whether compiled code broke off, so that none is used any more."""
    looked: Inequalities | None = None
    inside: Interior | None = None

    @property
    def given(self) -> Inequalities:
        """What is searched within."""
        return self.session.implied.given

    def whole(self) -> str:
        """Search with what the statement implies, and where tiny ratios were taken for zero in
        vain with these as they are; returns words for a proof that nothing is feasible."""
        session = self.session
        reason = self._within()
        if session.implied.stricter and not session.should_stop():
            session.report("tiny ratios count: solving with them")
            session.work_on(Implied.of(session.inequalities, tiny=False))
            reason = self._within()
        self._without_small()
        return "" if session.matrix is not None else reason

    def _without_small(self) -> None:
        """Where the gap was not reached, offer the best mechanism for small ratios taken for one:
        it keeps them as they are, and floating point finds it more easily."""
        session, before = self.session, self.session.implied
        stricter = session.inequalities.without_tiny(_SMALL)
        if session.should_stop() or stricter is session.inequalities:
            return
        session.report("small ratios are hard to tell from one: solving with ones")
        session.work_on(Implied.of(stricter, tiny=False))
        self._mechanisms(self.given)
        session.work_on(before)

    def kept(self, work: Callable[[], T], otherwise: T) -> T:
        """What ``work`` returns; ``otherwise`` where it fails and there is a matrix by then, which
        is not to be lost. What is refused is refused."""
        try:
            return work()
        except ProblemError:
            raise
        except Exception as error:
            if self.session.matrix is None:
                raise
            self.error = self.error or error
            self.message = f"the search failed: {told(error)}"
            return otherwise

    def _within(self) -> str:
        """One search within ``Session.implied``; words where nothing is feasible."""
        self.prepare()
        result = self.run()
        for _ in range(_ROUNDS):
            if not self._counted_on():
                break
            result = self.run()
        self.message = result.message
        reason = self.infeasible() if result.outcome is Outcome.INFEASIBLE else ""
        if not reason and not self.session.should_stop():
            self.settle()
            self.improve()
            if self.session.matrix is None and not self.session.interrupted:
                reason = self.infeasible()
        return reason

    def _counted_on(self) -> bool:
        """Whether the last proposal loses more somewhere than the program knew, which now does."""
        session, given = self.session, self.given
        if given.points is None or session.proposal is None or session.should_stop():
            return False
        weights = session.multipliers.objective
        points = given.points.beyond(session.statement, session.proposal, weights, session.gap)
        if points is None:
            return False
        few = f"{len(points.of):,} points between {session.statement.secrets:,} secrets"
        session.report(f"gap {session.gap:.1e}: the worst loss counts at {few}")
        session.work_on(replace(session.implied, given=replace(given, points=points)))
        return True

    def run(self) -> EngineResult:
        """Solve the stated program; a large one first without its distortion constraints, which
        often hold by themselves and then only make it harder."""
        session, given = self.session, self.given
        slack = [part.may_be_slack for part in given.convex]
        rows = given.pairs * given.statement.observables
        if slack and all(slack) and rows >= _SLACK_FIRST_ROWS:
            relaxed = given.without(lambda part: part.may_be_slack)
            left_out = given.without(lambda part: not part.may_be_slack)
            channel = partial(RelaxedChannel, left_out=left_out)
            result = self._programs(relaxed, channel)
            if session.should_stop():
                return result
            session.report("distortion constraints bind: solving with them")
        if given.points is not None:
            return self._programs(given, partial(PointsChannel, points=given.points))
        return self._programs(given, Channel)

    def settle(self) -> None:
        """Where repair lost much of the last proposal, or all, or release failed: bring it to the
        equations that all mechanisms share, and mix it with one as far inside as there are."""
        proposal = self.session.proposal
        if proposal is not None and (inside := self._inside()) is not None:
            self._offer_near(proposal, inside)

    def prepare(self) -> None:
        """Where no mechanism that ignores the secret is feasible, have one inside to mix with."""
        session, given, statement = self.session, self.given, self.session.statement
        if not given.convex:
            return
        uniform = np.full(statement.loss.shape, 1 / statement.observables)
        anchors = constant_anchors(statement, uniform)
        if any(given.violation(anchor) <= 0 for anchor in anchors):
            return
        if (inside := self._inside()) is not None:
            session.interior.append(inside.matrix)
            self._offer_near(inside.matrix, inside)

    def _offer_near(self, matrix: Floats, inside: Interior) -> None:
        session = self.session
        if session.held is not None:
            found = session.held.near(matrix, (inside.matrix,))
        else:
            found = released_near(session.implied, matrix, inside)
        if found is not None:
            session.offer_exact(found)

    def _inside(self) -> Interior | None:
        """What ``interior`` finds for the session's inequalities; looked for once."""
        implied = self.session.implied
        if self.looked is not implied.given:
            compiled = compile_lp(implied.given)
            options = replace(self.profile.options(), parameters={})
            recover = _recovering(compiled, implied, Reduced(compiled.lp))
            channel = PatientChannel(self.session, recover)
            self.looked, self.inside = implied.given, interior(compiled.lp, options, channel)
        return self.inside

    def improve(self) -> None:
        """Where a proposal could not be repaired, look for an anchor strictly inside.

        The program is solved again with its convex constraints tightened by a hair; its repaired
        point is feasible for the statement, and the failed proposal is mixed with it.
        """
        session, given = self.session, self.given
        for margin in _INNER_MARGINS:
            failed = session.unrepaired
            if not (given.convex or session.held) or failed is None:
                return
            inner = given.tightened(margin)
            if session.held is not None:
                inner = inner.with_ratios(given.log_ratio * (1 - margin))
            self._mechanisms(inner)
            if session.matrix is not None:
                session.offer_matrix(failed)

    def anchor(self) -> None:
        """Where rounding broke a constraint and no constant mechanism has room to spare: look for
        a matrix strictly inside, to mix with."""
        if not self.given.convex:
            return
        self.session.anchoring = True
        for margin in _INNER_MARGINS:
            self._mechanisms(self.given.tightened(margin))
        self.session.anchoring = False

    def infeasible(self) -> str:
        """Words for a checked proof of infeasibility, or nothing."""
        session = self.session
        session.refuted = ""
        self._programs(self.given, WitnessChannel, named=False, elastic=True)
        return session.refuted

    def _mechanisms(self, given: Inequalities) -> None:
        """Look for mechanisms only."""
        self._programs(given, partial(Channel, dual=False), named=False)

    def _programs(
        self,
        given: Inequalities,
        connect: Callable[..., Channel],
        *,
        named: bool = True,
        elastic: bool = False,
    ) -> EngineResult:
        """Run the engine on every reduced program; ``connect`` makes its monitor from the session
        and the way back. ``named`` records the engine as the design's."""
        compiled = _compiled(given, elastic)
        result = EngineResult(Outcome.FAILED, "nothing was run")
        programs = [Reduced(compiled.lp)]
        for reduction in self.profile.parsed_reductions():
            needed = reducing_seconds(given.statement.secrets)
            if self.session.matrix is not None and self.session.remaining() <= needed:
                return EngineResult(Outcome.STOPPED, _LATE)
            programs = [
                _chained(outer, inner) for outer in programs for inner in reduction.apply(outer.lp)
            ]
        for reduced in programs:
            # with nothing there is, the engine is started
            if self.session.matrix is not None and self.session.remaining() <= 0:
                return EngineResult(Outcome.STOPPED, _LATE)
            channel = connect(self.session, _recovering(compiled, self.session.implied, reduced))
            channel.primal &= reduced.primal
            channel.dual &= reduced.dual
            if named and reduced.lp.blocks < compiled.lp.blocks:
                few = f"{reduced.lp.blocks:,} of {compiled.lp.blocks:,} observables"
                self.session.report(f"{few}: the others can be stood in for")
            name, result = self._searched(reduced, channel, named)
            exact = reduced.primal and reduced.dual  # others fall short of the gap by themselves
            if not (named and exact and self.profile.engine == "auto") or channel.should_stop():
                continue
            other = second(reduced.lp, name)
            if other and result.outcome not in (Outcome.INFEASIBLE, Outcome.BROKEN):
                why = f"{name} ended at a gap of {self.session.gap:.1e}: {self.why}"
                result = self._engine(reduced, channel, other, why, named)
        return result

    def _searched(
        self, reduced: Reduced, channel: Channel, named: bool
    ) -> tuple[str, EngineResult]:
        """What the chosen engine ends with, or, where it breaks off, the next one; and its name."""
        name, why = _engine_for(reduced.lp, self.profile)
        first = result = self._engine(reduced, channel, name, why, named)
        broken = [name]
        while result.outcome is Outcome.BROKEN and not channel.should_stop():
            other = substitute(reduced.lp, broken)
            if not other:
                return name, first
            why = f"in the place of {name}, which broke off"
            name, result = other, self._engine(reduced, channel, other, why, named)
            broken.append(name)
        return name, result

    def _engine(
        self, reduced: Reduced, channel: Channel, name: str, why: str, named: bool
    ) -> EngineResult:
        if named:
            self.engine, self.why = name, why
        start = reduced.enter(self.start) if named and self.start is not None else None
        options, before = replace(self.profile.options(), start=start), channel.proposals
        result = self._run(reduced.lp, options, channel, name)
        if named:
            self.ran |= result.outcome is not Outcome.BROKEN or channel.proposals > before
        self.session.report(result.message)
        return result

    def _run(self, lp: BlockLP, options: Options, channel: Channel, name: str) -> EngineResult:
        """One run of an engine; where it breaks off with compiled code, another without."""
        try:
            with uncompiled() if self.plain else nullcontext():
                return load_engine(name).run(lp, options, channel)
        except ProblemError:
            raise
        except NUMERICAL as error:
            return EngineResult(Outcome.FAILED, f"{name} failed: {told(error)}")
        except Exception as error:
            self.error = self.error or error
            line = f"{name} broke off ({told(error)})"
            exhausted = memory.is_exhausted(error)
        broke(line)
        if name == "structured" and not (exhausted or options.device or self.plain):
            self.plain = has_kernels()
            if self.plain:
                self.session.report(f"{line}: NumPy does the work, which takes longer")
                return self._run(lp, options, channel, name)
        return EngineResult(Outcome.BROKEN, line)


def _compiled(given: Inequalities, elastic: bool = False) -> Compiled:
    """The program of some inequalities, where there is memory for it."""
    memory.require(
        64.0 * given.pairs,
        what="the list of constrained pairs",
        where="problem",
        remedy="Use a coarser domain, a threshold or a spanner",
    )
    return compile_lp(given, elastic=elastic)


def _engine_for(lp: BlockLP, profile: Profile) -> tuple[str, str]:
    """The engine for a program, and why."""
    name, why = profile.engine, f"asked for by profile {profile.name}"
    if profile.device:
        name, why = "structured", f"asked for by device {profile.device}"
    elif name == "auto":
        name, why = select(lp)
    refusal = load_engine(name).refusal(lp)
    if refusal:
        why = f"{name} was not used: {refusal}"
        name = "tangents" if lp.perspectives else "highs"
    return name, why


def first_choice(statement: Statement, profile: Profile) -> tuple[str, str]:
    """The engine that a search for a statement begins with, and why; nothing is searched. Raises
    TooLargeError where the program does not fit into memory."""
    lp = _compiled(Implied.of(Inequalities.of(statement)).given).lp
    for reduction in profile.parsed_reductions():
        lp = next(iter(reduction.apply(lp))).lp
    return _engine_for(lp, profile)


def strictly_inside(statement: Statement) -> Floats | None:
    """A matrix (S, O) as far inside all inequalities of a statement as there are; None where none
    was found, or the program is too large to look."""
    given = Implied.of(Inequalities.of(statement)).given
    found = interior(compile_lp(given).lp, Options(), Unheard(_INNER_SECONDS))
    return None if found is None else found.matrix


def _recovering(compiled: Compiled, implied: Implied, reduced: Reduced) -> Recover:
    """From points of a program to matrices and multipliers of the statement."""

    def recover(point: Point) -> tuple[Floats, Multipliers]:
        matrix, multipliers = compiled.recover(reduced.recover(point))
        return matrix, implied.recover(multipliers)

    return recover


def _chained(outer: Reduced, inner: Reduced) -> Reduced:
    return Reduced(
        inner.lp,
        lambda point: outer.recover(inner.recover(point)),
        outer.primal and inner.primal,
        outer.dual and inner.dual,
        lambda start: inner.enter(outer.enter(start)),
    )


def require_fit(problem: Problem, start: Design) -> None:
    """Raise ProblemError where a start is one over other numbers of secrets or observables, or for
    every point of a region."""
    if start.mesh is not None and start.mesh.is_region:
        raise ProblemError(
            "is a design for every point of a region, whose rows are not those of secrets",
            where="start",
            remedy="Start from a design over the same secrets and observables, or from none",
        )
    given, wanted = start.problem.loss_matrix.shape, problem.loss_matrix.shape
    if given != wanted:
        raise ProblemError(
            f"a design of {given[0]} secrets and {given[1]} observables does not fit a problem of "
            f"{wanted[0]} and {wanted[1]}",
            where="start",
            remedy="Start from a design over the same secrets and observables, or from none",
        )


def offer(session: Session, start: Design) -> None:
    """Offer the neighbour's matrix, repaired, and those of its multipliers that still fit."""
    if start.matrix is not None:
        session.offer_matrix(start.matrix)
        session.unrepaired = None
    multipliers = start.certificate.multipliers
    session.offer_bound(_fitting(multipliers, start.problem.statement, session.statement))


def hint(design: Design) -> Start | None:
    """What an engine may begin with; None where there is no mechanism, or the neighbour's problem
    has more than pairs and the hint would mislead."""
    given = Inequalities.of(design.problem.statement)
    ratio = pairs_of(design.problem.statement, design.certificate.multipliers)
    if design.matrix is None or ratio is None or len(given.parts) > 1:
        return None
    # one order, however they were stored: sums depend on it
    order = np.lexsort((ratio.j, ratio.i, ratio.o))
    i, j, block = (part[order] for part in (ratio.i, ratio.j, ratio.o))
    return Start(design.matrix, given.log_ratio, i, j, block, ratio.value[order])


def _fitting(multipliers: Multipliers, old: Statement, new: Statement) -> Multipliers:
    """Multipliers of those inequalities that the new statement has in the same numbers: of its
    families, those of the next old one with the same signature."""
    given: dict[Hashable, list[object]] = {}
    for family, part in multipliers.of(old):
        given.setdefault(family.signature(), []).append(part)
    fitting = [given.get(family.signature(), []) for family in new.families]
    families = tuple(parts.pop(0) if parts else None for parts in fitting)
    first, second = (
        (stated.objective, stated.loss_terms, getattr(stated.target, "shape", None))
        for stated in (old, new)
    )
    return Multipliers(families, multipliers.objective if first == second else None)
