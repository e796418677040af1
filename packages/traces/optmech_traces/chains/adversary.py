"""What an adversary who knows the chain, the policy and every mechanism makes of the releases.

The filtering adversary estimates X_t from the releases up to time t, the smoothing adversary from
all of them (forward-backward). Estimates are the optimal ones: they minimise the expected distance
under the posterior (Shokri, PETS 2015, eq. 19 for traces).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, between
from optmech.spaces.losses import as_loss, loss_matrix
from optmech_traces.chains.policy import Policy, State

_LARGEST_MEMO = 20_000


@record
class Series(Shown):
    """A figure per time, shape (T,), with the standard errors of its estimate (0 where exact).

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> loss = om.traces.enumerate_releases(policy, om.distances.hamming(), steps=2).loss
    >>> print(loss.mean, loss.average)
    [0.25 0.25] 0.25
    """

    mean: Floats
    standard_error: Floats
    average_error: float = 0.0
    """Standard error of ``average``, whose terms are of the same traces."""

    @property
    def average(self) -> float:
        """The mean over time."""
        return float(self.mean.mean())


@record
class AdversaryReport(Shown):
    """What was protected over a trace; distances in their unit.

    "Believed" errors are those that the adversary expects from the posterior, which are the true
    ones when traces follow the chain. Errors on given traces are measured against where the user
    was; whoever does not follow the chain may be better or worse protected.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> report = om.traces.enumerate_releases(policy, om.distances.hamming(), steps=2)
    >>> print(report.blind, report.filtering.mean)  # wrong half, and a quarter of the time
    [0.5 0.5] [0.25 0.25]
    """

    blind: Floats
    """Error of an adversary who knows the chain and sees nothing, shape (T,)."""
    filtering: Series
    """Believed error about X_t with the releases up to t."""
    smoothing: Series
    """Believed error about X_t with all releases."""
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
    filtering_on_traces: Series | None = None
    """Measured error on the traces; None for exact reports."""
    smoothing_on_traces: Series | None = None


@checked_arguments
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

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], np.eye(2))
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> report = om.traces.simulate(policy, om.distances.hamming(), steps=3, count=200, seed=1)
    >>> bool(abs(report.filtering.mean[2] - 5 / 32) < 4 * report.filtering.standard_error[2])
    True
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
    game = _Game(policy, distance, loss)
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    rows = []
    for k, path in enumerate(paths):
        rows.append(game.released(path, rng, real))
        if progress is not None:
            progress(f"trace {k + 1} of {len(paths)}")
    leakage = np.array([row.pop("leakage") for row in rows]).max(axis=0)
    series = {name: _series(np.array([row[name] for row in rows])) for name in rows[0]}
    return game.report(leakage, len(paths), series)


@checked_arguments
def enumerate_releases(
    policy: Policy,
    distance: DistanceLike,
    steps: int,
    *,
    loss: DistanceLike | None = None,
    limit: int = 20_000,
) -> AdversaryReport:
    """The figures of a policy, exactly, over all sequences of releases; for small domains and few
    times.

    Raises
    ------
    TooLargeError
        When there are more than ``limit`` sequences.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], np.eye(2))  # nobody moves
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> report = om.traces.enumerate_releases(policy, om.distances.hamming(), steps=3)
    >>> print(report.filtering.mean)  # three reports about one place: 5/32 wrong
    [0.25    0.25    0.15625]
    """
    policy.prior.require_time(steps - 1)
    game = _Game(policy, distance, loss)
    sums = {name: np.zeros(steps) for name in ("filtering", "smoothing", "loss")}
    leakage = np.zeros(steps)
    known = policy.prior.marginals(steps)
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
        game.actions[state.action] += 1
        weights = state.belief.marginals(state.time + 1)[-1]
        sums["loss"][state.time] += chance * (weights @ game.losses(state, weights))
        for probability, following in _successors(state, weights):
            after = following.belief.marginals(state.time + 1)[-1]
            sums["filtering"][state.time] += chance * probability * game.blind(after[None])[0]
            pending.append((following, chance * probability))
    exact = {name: Series(values, np.zeros(steps)) for name, values in sums.items()}
    return game.report(leakage, 0, exact)


class _Game:
    """A policy against its adversaries: distances as a matrix, and what was done so far."""

    def __init__(self, policy: Policy, distance: DistanceLike, loss: DistanceLike | None) -> None:
        self.policy = policy
        self.domain = policy.prior.domain
        self.actions: Counter[str] = Counter()
        self.memo: dict[tuple[int, ...], State] = {}
        self.apart = between(distance, self.domain)
        self.loss = as_loss(distance if loss is None else loss, "loss")

    def blind(self, beliefs: Floats) -> Floats:
        """Error of the best estimate under each row of beliefs."""
        return np.asarray((beliefs @ self.apart.T).min(axis=1))

    def errors(self, beliefs: Floats, path: Sequence[int]) -> Floats:
        """Distance from the best estimate to where the user was, at each time."""
        return self.apart[(beliefs @ self.apart.T).argmin(axis=1), path]

    def losses(self, state: State, weights: Floats) -> Floats:
        """Expected loss of the next release by the user's cell, shape (cells,); of the constant
        answer that is best under ``weights`` where nothing is released."""
        m = state.mechanism
        answers = self.domain if m is None else m.observables
        costs = loss_matrix(self.loss, self.domain, answers)
        best = (weights @ costs).argmin()
        return costs[:, best] if m is None else (m.matrix * costs).sum(axis=1)

    def released(self, path: list[int], rng: np.random.Generator, real: bool) -> dict[str, Floats]:
        """One trace, released and attacked. States are remembered by the releases before them."""
        steps = len(path)
        filtered, losses = np.empty((steps, len(self.domain))), np.empty(steps)
        history: tuple[int, ...] = ()
        state = self.memo.setdefault((), self.policy.start())
        for t, cell in enumerate(path):
            self.actions[state.action] += 1
            weights = state.belief.marginals(t + 1)[-1]
            by_cell = self.losses(state, weights)
            losses[t] = by_cell[cell] if real else weights @ by_cell
            label, index = None, -1
            if state.mechanism is not None:
                row = state.mechanism.matrix[cell]
                index = int(rng.choice(len(row), p=row / row.sum()))
                label = state.mechanism.observables.labels[index]
            history = (*history, index)
            state = self.memo.get(history) or state.after(label)
            if len(self.memo) < _LARGEST_MEMO:
                self.memo[history] = state
            filtered[t] = state.belief.marginals(t + 1)[-1]
        smoothed = state.belief.marginals(steps)
        return {
            "filtering": self.blind(filtered),
            "smoothing": self.blind(smoothed),
            "filtering_on_traces": self.errors(filtered, path),
            "smoothing_on_traces": self.errors(smoothed, path),
            "loss": losses,
            "leakage": _bayes_factors(self.policy.prior.marginals(steps), smoothed),
        }

    def report(self, leakage: Floats, traces: int, series: dict[str, Series]) -> AdversaryReport:
        """What was found over the times of ``leakage``."""
        return AdversaryReport(
            blind=self.blind(self.policy.prior.marginals(len(leakage))),
            leakage=leakage,
            actions=dict(self.actions),
            traces=traces,
            **series,
        )


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
