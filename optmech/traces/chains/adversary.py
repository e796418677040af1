"""What an adversary who knows the chain, the policy and every mechanism makes of the releases.

The filtering adversary estimates X_t from the releases up to time t, the smoothing adversary from
all of them (forward-backward). Estimates are the optimal ones: they minimise the expected distance
under the posterior (PG 19 for traces).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.spaces.distances import DistanceLike, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.losses import as_loss, loss_matrix
from optmech.traces.chains.markov import MarkovPrior
from optmech.traces.chains.policy import Policy, State

_LARGEST_MEMO = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Series(Shown):
    """A figure per time, shape (T,), with the standard errors of its estimate (0 where exact)."""

    mean: Floats
    standard_error: Floats
    average_error: float = 0.0
    """Standard error of ``average``, whose terms are of the same traces."""

    @property
    def average(self) -> float:
        """The mean over time."""
        return float(self.mean.mean())


@dataclass(frozen=True, eq=False, repr=False)
class AdversaryReport(Shown):
    """What was protected over a trace; distances in their unit.

    "Believed" errors are those that the adversary expects from the posterior, which are the true
    ones when traces follow the chain. Errors on given traces are measured against where the user
    was; whoever does not follow the chain may be better or worse protected.
    """

    blind: Floats
    """Error of an adversary who knows the chain and sees nothing, shape (T,)."""
    filtering: Series
    """Believed error about X_t with the releases up to t."""
    smoothing: Series
    """Believed error about X_t with all releases."""
    filtering_on_traces: Series | None
    """Measured error on the traces; None for exact reports."""
    smoothing_on_traces: Series | None
    loss: Series
    """Utility loss of the release; where nothing is released, of the best constant answer."""
    leakage: Floats
    """Largest log Bayes factor between two locations at time t that any release sequence seen
    causes, shape (T,): exact for exact reports (posteriors below 2^-1022 count as that), else a
    lower bound of the worst case."""
    actions: dict[str, int]
    """How often the policy did what, over all times and traces (exact reports: histories)."""
    traces: int
    """Number of traces simulated; 0 for exact reports."""


def simulate(
    policy: Policy,
    distance: DistanceLike,
    *,
    steps: int | None = None,
    count: int = 100,
    traces: Sequence[Sequence[int]] | None = None,
    loss: DistanceLike | None = None,
    seed: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> AdversaryReport:
    """Monte Carlo: release traces and attack them, with standard errors.

    ``traces`` are sequences of cell indices of equal length, such as real ones, each released
    once; without them ``count`` traces of ``steps`` times are drawn from the chain. ``loss``,
    by default ``distance``, charges the releases.

    Believed errors and losses are averaged over the posterior rather than over the trace, which
    has the same expectation on traces of the chain and less variance; losses on given traces are
    those of the given locations.
    """
    prior = policy.prior
    real = traces is not None
    if traces is None:
        if steps is None or steps < 1:
            raise ProblemError(f"{steps!r} is not a number of times", where="steps")
        traces = prior.sample(steps, count, seed).tolist()
    paths = [prior.indices(trace) for trace in traces]
    if not paths or len({len(path) for path in paths}) != 1:
        raise ProblemError("needs traces, all of one length", where="traces")
    game = _Game(prior, distance, loss)
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    memo: dict[tuple[int, ...], State] = {}
    rows = []
    actions: Counter[str] = Counter()
    for k, path in enumerate(paths):
        rows.append(_released(game, policy, path, rng, memo, actions, real))
        if progress is not None:
            progress(f"trace {k + 1} of {len(paths)}")
    figures = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return AdversaryReport(
        blind=game.blind(prior.marginals(len(paths[0]))),
        filtering=_series(figures["filtering"]),
        smoothing=_series(figures["smoothing"]),
        filtering_on_traces=_series(figures["filtering_real"]),
        smoothing_on_traces=_series(figures["smoothing_real"]),
        loss=_series(figures["loss"]),
        leakage=figures["leakage"].max(axis=0),
        actions=dict(actions),
        traces=len(paths),
    )


def enumerate_releases(
    policy: Policy,
    distance: DistanceLike,
    steps: int,
    *,
    loss: DistanceLike | None = None,
    limit: int = 20_000,
) -> AdversaryReport:
    """The same, exactly, over all sequences of releases; for small domains and few times.

    Raises
    ------
    TooLargeError
        When there are more than ``limit`` sequences.
    """
    prior = policy.prior
    prior.require_time(steps - 1)
    game = _Game(prior, distance, loss)
    sums = {name: np.zeros(steps) for name in ("filtering", "smoothing", "loss")}
    leakage = np.zeros(steps)
    actions: Counter[str] = Counter()
    known = prior.marginals(steps)
    reached = 0
    pending: list[tuple[State, float]] = [(policy.start(), 1.0)]
    while pending:
        state, chance = pending.pop()
        if state.time == steps:
            reached += 1
            if reached > limit:
                raise TooLargeError(
                    f"there are more than {limit:,} sequences of releases",
                    where="steps",
                    remedy="Use fewer times or cells, or simulate(...)",
                )
            posteriors = state.belief.marginals(steps)
            sums["smoothing"] += chance * game.blind(posteriors)
            leakage = np.maximum(leakage, _bayes_factors(known, posteriors))
            continue
        actions[state.action] += 1
        weights = state.belief.marginals(state.time + 1)[-1]
        sums["loss"][state.time] += chance * game.expected_loss(state, weights)
        for probability, following in _successors(state, weights):
            after = following.belief.marginals(state.time + 1)[-1]
            sums["filtering"][state.time] += chance * probability * game.blind(after[None])[0]
            pending.append((following, chance * probability))
    exact = {name: Series(values, np.zeros(steps)) for name, values in sums.items()}
    return AdversaryReport(
        blind=game.blind(known),
        filtering=exact["filtering"],
        smoothing=exact["smoothing"],
        filtering_on_traces=None,
        smoothing_on_traces=None,
        loss=exact["loss"],
        leakage=leakage,
        actions=dict(actions),
        traces=0,
    )


class _Game:
    """Distances and losses as matrices."""

    def __init__(
        self, prior: MarkovPrior, distance: DistanceLike, loss: DistanceLike | None
    ) -> None:
        self.domain = prior.domain
        self.apart = evaluate(distance, self.domain, self.domain, where="distance")
        self.loss = as_loss(distance if loss is None else loss, "loss")

    def blind(self, beliefs: Floats) -> Floats:
        """Error of the best estimate under each row of beliefs."""
        return np.asarray((beliefs @ self.apart.T).min(axis=1))

    def errors(self, beliefs: Floats, path: Sequence[int]) -> Floats:
        """Distance from the best estimate to where the user was, at each time."""
        guess = (beliefs @ self.apart.T).argmin(axis=1)
        return np.asarray(self.apart[guess, np.asarray(path)])

    def costs(self, observables: Domain) -> Floats:
        """c(s, o), shape (cells, observables)."""
        return loss_matrix(self.loss, self.domain, observables, where="loss")

    def expected_loss(self, state: State, weights: Floats) -> float:
        """Of the next release; of the best constant answer where there is none."""
        if state.mechanism is None:
            return float((weights @ self.costs(self.domain)).min())
        costs = self.costs(state.mechanism.observables)
        return float(weights @ (state.mechanism.matrix * costs).sum(axis=1))

    def loss_at(self, state: State, weights: Floats, cell: int) -> float:
        """The same, when the user is in ``cell``."""
        if state.mechanism is None:
            costs = self.costs(self.domain)
            return float(costs[cell, (weights @ costs).argmin()])
        costs = self.costs(state.mechanism.observables)
        return float((state.mechanism.matrix[cell] * costs[cell]).sum())


def _released(
    game: _Game,
    policy: Policy,
    path: list[int],
    rng: np.random.Generator,
    memo: dict[tuple[int, ...], State],
    actions: Counter[str],
    real: bool,
) -> dict[str, Floats]:
    """One trace, released and attacked. States are remembered by the releases that lead there."""
    steps = len(path)
    filtered, losses = np.empty((steps, len(game.domain))), np.empty(steps)
    history: tuple[int, ...] = ()
    state = memo.setdefault((), policy.start())
    for t, cell in enumerate(path):
        actions[state.action] += 1
        weights = state.belief.marginals(t + 1)[-1]
        losses[t] = (
            game.loss_at(state, weights, cell) if real else game.expected_loss(state, weights)
        )
        label, index = None, -1
        if state.mechanism is not None:
            row = state.mechanism.matrix[cell]
            index = int(rng.choice(len(row), p=row / row.sum()))
            label = state.mechanism.observables.labels[index]
        history = (*history, index)
        following = memo.get(history) or state.after(label)
        if len(memo) < _LARGEST_MEMO:
            memo[history] = following
        state = following
        filtered[t] = state.belief.marginals(t + 1)[-1]
    smoothed = state.belief.marginals(steps)
    return {
        "filtering": game.blind(filtered),
        "smoothing": game.blind(smoothed),
        "filtering_real": game.errors(filtered, path),
        "smoothing_real": game.errors(smoothed, path),
        "loss": losses,
        "leakage": _bayes_factors(policy.prior.marginals(steps), smoothed),
    }


def _successors(state: State, weights: Floats) -> Iterator[tuple[float, State]]:
    """The states after every possible release, with their probabilities."""
    if state.mechanism is None:
        yield 1.0, state.after(None)
        return
    chances = weights @ state.mechanism.matrix
    for label, chance in zip(state.mechanism.observables.labels, chances.tolist(), strict=True):
        if chance > 0:
            yield chance, state.after(label)


def _bayes_factors(prior: Floats, posterior: Floats) -> Floats:
    """max over x, x' of ln (posterior(x) prior(x') / (prior(x) posterior(x'))) for every time."""
    possible = prior > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(posterior) - np.log(prior)
    most = np.where(possible, logs, -np.inf).max(axis=1)
    return np.asarray(most - np.where(possible, logs, np.inf).min(axis=1))


def _series(rows: Floats) -> Series:
    def error(values: Floats) -> Floats:
        return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))

    if len(rows) == 1:
        return Series(rows[0], np.full(rows.shape[1], np.nan), math.nan)
    return Series(rows.mean(axis=0), error(rows), float(error(rows.mean(axis=1))))
