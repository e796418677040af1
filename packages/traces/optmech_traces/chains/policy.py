"""Release policies: which mechanism is used at each time, as a function of the earlier releases."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from optmech.base.read_only import record
from optmech.base.shown import SameFields, Shown
from optmech.errors import ProblemError
from optmech.spaces.arguments import checked_arguments, kind
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech_traces.chains.markov import MarkovPrior


@kind("Give policy.start(), or what follows it", words="state")
@runtime_checkable
class State(Protocol):
    """A policy at one time, with what everybody knows who saw the earlier releases."""

    @property
    def time(self) -> int:
        """The time t of the next release."""

    @property
    def belief(self) -> MarkovPrior:
        """P(X_0, X_1, ... | z_0, ..., z_{t-1})."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The mechanism of time t; None where nothing is released."""

    @property
    def action(self) -> str:
        """What the policy does at this time, in a word."""

    def after(self, observable: Hashable | None) -> State:
        """The state at time t + 1 when ``observable``, a label, was released (None: nothing)."""


@kind(
    "Make one with om.traces.FixedPolicy(prior, mechanisms) or om.traces.SequentialDesigner",
    words="policy",
)
@runtime_checkable
class Policy(Protocol):
    """Anything that decides on mechanisms from the earlier releases alone."""

    @property
    def prior(self) -> MarkovPrior: ...

    def start(self) -> State:
        """The state before the first release."""


def updated(
    belief: MarkovPrior, time: int, mechanism: Mechanism | None, observable: Hashable | None
) -> MarkovPrior:
    """The belief after a release. Raises ProblemError where a release is named and there is no
    mechanism, or the other way round; where the release is impossible."""
    if mechanism is None:
        if observable is not None:
            raise ProblemError(
                f"{observable!r} cannot be released: there is no mechanism at time {time}",
                where="observable",
                remedy="Go on with after(None)",
            )
        return belief
    if observable is None:
        raise ProblemError(
            f"the release of time {time} is missing",
            where="observable",
            remedy="Name the label that was released",
        )
    column = mechanism.matrix[:, mechanism.observables.index(observable)]
    if not column.any():
        raise ProblemError(f"{observable!r} is never released at time {time}", where="observable")
    return belief.given({time: column})


@record
class FixedPolicy(Shown):
    """One mechanism for every time, or one for each, whatever was released before.

    This is how mechanisms for single locations are used on traces (Meehan and Chaudhuri 2019,
    section 1).

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> released = om.traces.release(policy, [0, 0, 1], seed=1)
    >>> len(released.releases)
    3
    >>> policy.start().time
    0
    """

    prior: MarkovPrior
    mechanisms: tuple[Mechanism, ...]
    """One for each time; the last one goes on."""

    @checked_arguments
    def __init__(self, prior: MarkovPrior, mechanisms: Mechanism | Sequence[Mechanism]) -> None:
        listed = (mechanisms,) if isinstance(mechanisms, Mechanism) else tuple(mechanisms)
        if not listed:
            raise ProblemError("needs mechanisms, at least one", where="mechanisms")
        for k, m in enumerate(listed):
            require_cells(m.secrets, prior, f"mechanisms[{k}]")
        vars(self).update(prior=prior, mechanisms=listed)

    def start(self) -> FixedState:
        """The state before the first release."""
        return FixedState(self, 0, self.prior)


@record
class FixedState(SameFields):
    """A ``FixedPolicy`` at one time."""

    policy: FixedPolicy
    time: int
    belief: MarkovPrior
    action: str = "fixed"

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of this time."""
        return self.policy.mechanisms[min(self.time, len(self.policy.mechanisms) - 1)]

    def after(self, observable: Hashable | None) -> FixedState:
        """The state after a release."""
        belief = updated(self.belief, self.time, self.mechanism, observable)
        return FixedState(self.policy, self.time + 1, belief)


@record
class ProtectedTrace(Shown):
    """A trace as it was released.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], np.eye(2))
    >>> policy = om.traces.FixedPolicy(chain, om.Mechanism(cells, cells, np.eye(2)))
    >>> released = om.traces.release(policy, [0, 0], seed=1)
    >>> released.releases, released.posterior.marginal(1).weights.tolist()  # the truth was told
    ((0, 0), [1.0, 0.0])
    """

    releases: tuple[Hashable | None, ...]
    """Labels; None where nothing was released."""
    states: tuple[State, ...]
    """The policy at every time, before its release."""
    posterior: MarkovPrior
    """P(X_0, X_1, ... | all releases)."""


@checked_arguments
def release(policy: Policy, trace: Sequence[Hashable], seed: int | None = None) -> ProtectedTrace:
    """Release a trace, given by labels of the domain, location by location.

    Draws come from the operating system's entropy, exactly as ``Mechanism.sample`` does; a
    ``seed`` makes them reproducible and unfit for release.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> all(label in cells.labels for label in om.traces.release(policy, [0, 0, 1]).releases)
    True
    """
    if isinstance(trace, str) or not hasattr(trace, "__len__") or not len(trace):
        raise ProblemError("is not a list of labels", where="trace")
    for label in trace:
        policy.prior.domain.index(label)
    policy.prior.require_time(len(trace) - 1)
    seeds: list[int | None] = [None] * len(trace)
    if seed is not None:
        seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(len(trace))]
    state = policy.start()
    releases: list[Hashable | None] = []
    states = []
    for label, own in zip(trace, seeds, strict=True):
        m = state.mechanism
        released = None if m is None else m.sample(label, seed=own)
        states.append(state)
        releases.append(released)
        state = state.after(released)
    return ProtectedTrace(tuple(releases), tuple(states), state.belief)


def require_cells(domain: Domain, prior: MarkovPrior, where: str) -> None:
    """Raise ProblemError unless ``domain`` is that of the prior."""
    if domain.labels != prior.domain.labels:
        raise ProblemError(
            f"is over {len(domain)} cells that are not the prior's {len(prior)}",
            where=where,
            remedy="Use the same labels in the same order",
        )
