"""Sequential design: after every release the prior is updated by Bayes and the chain, and the next
mechanism is designed on it (Shokri, PETS 2015, sections 2 and 3).

The policy reads the earlier releases and never the trace, so that whoever knows the policy and
sees the releases can redo every design, and gains nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.statement import Objective
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of
from optmech.exact.number import Exact, Number, float_of, parse_exact
from optmech.pipeline.profiles import Profile
from optmech.pipeline.search import solve
from optmech.problem import (
    Constraint,
    DistortionPrivacy,
    MaximizeDistortion,
    MetricPrivacy,
    MinimizeLeakage,
    Problem,
)
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import Distance, DistanceLike, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.losses import as_loss
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_traces.chains.conditional import ConditionalDistortion, ConditionalPrivacy
from optmech_traces.chains.markov import MarkovPrior
from optmech_traces.chains.policy import updated

StepConstraint = Constraint | ConditionalPrivacy | ConditionalDistortion
Fallback = Literal["stop", "skip", "relax"]
Action = Literal["design", "relax", "skip", "stop"]

Schedule = Callable[[int], Sequence[StepConstraint]]
"""The constraints of a time."""


@record
class SequentialDesigner(Shown):
    """Designs one mechanism per time on the prior that the earlier releases leave.

    Parameters
    ----------
    prior:
        The chain, known to the adversary as well.
    loss, observables, objective:
        As in ``Problem``; the prior of the loss is the filtered one.
    constraints:
        Those of ``Problem``, in which a missing prior means the filtered one, and
        ``ConditionalPrivacy`` and ``ConditionalDistortion``; or a function of the time that
        returns them.
    on_infeasible:
        What to do when no mechanism satisfies them, because the adversary already knows too
        much, say: ``"stop"`` (nothing is released from there on), ``"skip"`` (nothing at this
        time) or ``"relax"`` (every distortion minimum above ``fraction`` of what is possible is
        lowered to that; skip where this does not help).
    fraction:
        For ``"relax"``: in (0, 1).
    total_epsilon:
        Largest sum of the ε of ``MetricPrivacy`` over the releases: a release that would exceed
        it gets what is left, and none is made when nothing is.
    profile, gap:
        As in ``solve``.

    Raises
    ------
    ProblemError
        On arguments that do not fit.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> d = om.distances.hamming()
    >>> designer = om.traces.SequentialDesigner(chain, d, [om.DifferentialPrivacy("ln 3")])
    >>> first = designer.start()
    >>> second = first.after(0)  # 0 was released
    >>> print(second.prior.weights)  # 0.9 * 3/4 + 0.1 * 1/4
    [0.7 0.3]
    >>> [type(one).__name__ for one in designer.stated(time=1)]
    ['DifferentialPrivacy']
    >>> len(designer.problem(chain.marginal(1), designer.stated(1)).secrets)
    2
    """

    prior: MarkovPrior
    loss: Distance | Floats
    constraints: tuple[StepConstraint, ...] | Schedule
    observables: Domain | None
    objective: Objective | MaximizeDistortion | MinimizeLeakage
    on_infeasible: Fallback
    fraction: float
    total_epsilon: Exact | None
    profile: str | Path | Profile
    gap: float | None

    @checked_arguments
    def __init__(
        self,
        prior: MarkovPrior,
        loss: DistanceLike,
        constraints: Iterable[StepConstraint] | Schedule = (),
        *,
        observables: Domain | None = None,
        objective: Objective | MaximizeDistortion | MinimizeLeakage = "expected_loss",
        on_infeasible: Fallback = "stop",
        fraction: Number = 0.9,
        total_epsilon: Number | None = None,
        profile: str | Path | Profile = "auto",
        gap: float | None = None,
    ) -> None:
        one_of(on_infeasible, get_args(Fallback), "on_infeasible")
        share = float_of(fraction, "fraction", positive=True)
        if share >= 1:
            raise ProblemError(f"{share:g} is not below 1", where="fraction")
        if total_epsilon is not None:
            total_epsilon = parse_exact(total_epsilon, where="total_epsilon", positive=True)
        vars(self).update(
            prior=prior,
            loss=as_loss(loss, "loss"),
            constraints=constraints if callable(constraints) else tuple(constraints),
            observables=observables,
            objective=objective,
            on_infeasible=on_infeasible,
            fraction=share,
            total_epsilon=total_epsilon,
            profile=profile,
            gap=gap,
        )

    def start(self) -> Step:
        """The first step, designed on the prior itself."""
        return Step(self, 0, self.prior, (), ())

    def stated(self, time: int) -> tuple[StepConstraint, ...]:
        """The constraints on the release of a time."""
        stated = tuple(self.constraints(time)) if callable(self.constraints) else self.constraints
        for k, constraint in enumerate(stated):
            if not isinstance(constraint, StepConstraint):
                raise ProblemError(
                    f"{type(constraint).__name__} is not a constraint",
                    where=f"constraints[{k}]",
                    remedy="Use those of Problem, ConditionalPrivacy or ConditionalDistortion",
                )
        return stated

    @checked_arguments
    def problem(self, prior: Prior, constraints: Sequence[Constraint], title: str = "") -> Problem:
        """The problem of a single release."""
        return Problem(
            prior,
            self.loss,
            self.observables,
            objective=self.objective,
            constraints=constraints,
            title=title,
        )


@record
class Outcome:
    """What a sequential designer decided for one time."""

    action: Action
    design: Design | None
    """The certified design; None where nothing is released."""
    reason: str = ""
    """Why the action is not "design"."""


@record
class Step(Shown):
    """One time of a sequential design: what is known, and the mechanism for it, which is designed
    when it is first asked for.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> d = om.distances.hamming()
    >>> designer = om.traces.SequentialDesigner(chain, d, [om.DifferentialPrivacy("ln 3")])
    >>> step = designer.start()
    >>> step.time, step.action, round(step.design.loss, 6)
    (0, 'design', 0.25)
    >>> step.after(0).time
    1
    """

    designer: SequentialDesigner
    time: int
    belief: MarkovPrior
    """P(X_0, X_1, ... | earlier releases)."""
    history: tuple[Hashable | None, ...]
    """The earlier releases, None where there was none."""
    spent: tuple[Exact, ...]
    """ε of metric privacy of the earlier releases, one per release made."""
    stopped: Outcome | None = None
    """Why nothing is released any more."""

    @property
    def prior(self) -> Prior:
        """P(X_t | earlier releases), on which the mechanism is designed."""
        return self.belief.marginal(self.time)

    @cached_property
    def outcome(self) -> Outcome:
        """The design of this time, or why there is none.

        Raises
        ------
        ProblemError
            Past the end of the trace; where a constraint does not fit the domain.
        SolverError
            As ``solve`` does.
        """
        if self.stopped is not None:
            return self.stopped
        designer = self.designer
        self.belief.require_time(self.time)
        stated = self._within_budget(designer.stated(self.time))
        silent: Action = "stop" if designer.on_infeasible == "stop" else "skip"
        if stated is None:
            total = float(designer.total_epsilon or 0.0)
            return Outcome(silent, None, f"the total epsilon of {total:g} is used up")
        constraints: list[Constraint] = []
        for constraint in stated:
            if isinstance(constraint, ConditionalPrivacy | ConditionalDistortion):
                constraints += constraint.at(self.belief, self.time)
            else:
                constraints.append(constraint)
        problem = designer.problem(self.prior, constraints, f"time {self.time}")
        design = solve(problem, profile=designer.profile, gap=designer.gap)
        if design.status != "infeasible":
            return Outcome("design", design)
        if designer.on_infeasible == "relax":
            relaxed = [_relaxed(c, problem, designer.fraction) for c in constraints]
            if any(after is not before for after, before in zip(relaxed, constraints, strict=True)):
                lower = designer.problem(problem.prior, relaxed, problem.title)
                again = solve(lower, profile=designer.profile, gap=designer.gap)
                if again.status != "infeasible":
                    return Outcome("relax", again, design.reason)
        return Outcome(silent, None, design.reason)

    def _within_budget(
        self, stated: tuple[StepConstraint, ...]
    ) -> tuple[StepConstraint, ...] | None:
        """The constraints with the ε of metric privacy cut to what is left; None if nothing is."""
        total = self.designer.total_epsilon
        if total is None:
            return stated
        own = _metric_epsilon(stated)
        if own is None:
            raise ProblemError(
                "a total epsilon needs a metric privacy constraint at every time",
                where="total_epsilon",
                remedy="Add MetricPrivacy(epsilon, distance)",
            )
        # rounded down twice, so that sums of what is granted never exceed the total
        left = (float(total) - float(sum(self.spent)) * (1 + 2.0**-50)) * (1 - 2.0**-50)
        if own <= left:
            return stated
        if left <= 0 or left < 2.0**-40 * float(total):
            return None
        return tuple(
            replace(c, epsilon=left) if isinstance(c, MetricPrivacy) and c.epsilon > left else c
            for c in stated
        )

    @property
    def action(self) -> Action:
        """What is done at this time."""
        return self.outcome.action

    @property
    def design(self) -> Design | None:
        """The certified design; None where nothing is released."""
        return self.outcome.design

    @property
    def reason(self) -> str:
        """Why the action is not "design"."""
        return self.outcome.reason

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """The mechanism of this time, which samples the certified probabilities."""
        return None if self.design is None else self.design.mechanism

    @property
    def epsilon(self) -> Exact | None:
        """The largest ε of metric privacy stated for this release; None where there is none."""
        return None if self.design is None else _metric_epsilon(self.design.problem.constraints)

    @property
    def total_epsilon(self) -> float:
        """Sum of the ε of metric privacy over the earlier releases and this one."""
        own = self.epsilon
        return float(sum(self.spent)) + (0.0 if own is None else float(own))

    def after(self, observable: Hashable | None = None) -> Step:
        """The next step, when ``observable`` (a label) was released; None where nothing was."""
        belief = updated(self.belief, self.time, self.mechanism, observable)
        own = self.epsilon
        return Step(
            self.designer,
            self.time + 1,
            belief,
            (*self.history, observable),
            self.spent if own is None else (*self.spent, own),
            self.outcome if self.action == "stop" else None,
        )


def _metric_epsilon(constraints: Sequence[object]) -> Exact | None:
    return max((c.epsilon for c in constraints if isinstance(c, MetricPrivacy)), default=None)


def _relaxed(constraint: Constraint, problem: Problem, fraction: float) -> Constraint:
    """A distortion minimum within ``fraction`` of its largest value, anything else as it is."""
    if not isinstance(constraint, DistortionPrivacy):
        return constraint
    prior = problem.prior if constraint.prior is None else constraint.prior
    apart = evaluate(constraint.distance, problem.secrets, problem.secrets, where="distance")
    limit = fraction * float((apart @ prior.weights).min())
    return replace(constraint, minimum=limit) if limit < constraint.minimum else constraint
