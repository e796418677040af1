"""What a whole sequence of releases tells about the location at one time, in the worst case.

For mechanisms that are fixed beforehand the least ε with
P(z_0, z_1, ... | X_t = x) <= e^ε P(z_0, z_1, ... | X_t = x') for all releases and all possible
x, x' is the temporal privacy leakage of Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential
Privacy under Temporal Correlations (ICDE 2017), here for pairs, exactly or between two bounds.
For policies that adapt see ``enumerate_releases``, and ``step_leakage`` along one history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optmech.domain import Floats, Ints
from optmech.errors import ProblemError
from optmech.hockey_stick import log_ratio
from optmech.mechanism import Mechanism
from optmech.traces.markov import MarkovPrior
from optmech.traces.policy import State, require_cells

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Leakage:
    """Bounds on the worst log-likelihood ratio about X_t, for every pair of locations.

    Both hold whatever was rounded on the way; likelihoods below 10^-300 of the largest count as
    impossible in ``pair_lower``.
    """

    pair_lower: Floats
    """Attained by some releases, less the rounding; shape (n, n), row x against column x'; -inf
    where a location is impossible, and on the diagonal."""
    pair_upper: Floats
    """Exceeded by no releases."""

    @property
    def lower(self) -> float:
        """The largest of ``pair_lower``, at least 0."""
        return max(0.0, float(self.pair_lower.max()))

    @property
    def upper(self) -> float:
        """The largest of ``pair_upper``, at least 0: an ε that holds."""
        return max(0.0, float(self.pair_upper.max()))

    @property
    def pair(self) -> tuple[int, int]:
        """Indices of the locations that attain ``lower``."""
        i, j = np.unravel_index(int(self.pair_lower.argmax()), self.pair_lower.shape)
        return int(i), int(j)


def leakage_about(
    prior: MarkovPrior, mechanisms: Sequence[Mechanism], time: int, limit: int = 50_000
) -> Leakage:
    """Leakage about X_time of one release from each of ``mechanisms``, at times 0, 1, ...

    Given X_time, the releases before, at and after it are independent, so that the worst cases of
    the three add up pair by pair. Those before and after are found by going through all sequences
    from the far end, while there are at most ``limit`` of them; from there on the upper bound goes
    on by transport with gains (docs/theory.md, section on discrete traces) and the lower one with
    the worst sequence of every pair.

    Raises
    ------
    ProblemError
        On mechanisms that do not fit the prior, or a time without a release.
    """
    listed = list(mechanisms)
    for k, m in enumerate(listed):
        require_cells(m.secrets, prior, f"mechanisms[{k}]")
    if not 0 <= time < len(listed):
        raise ProblemError(f"there is no release at time {time} among {len(listed)}", where="time")
    prior.require_time(len(listed) - 1)
    matrices = [m.matrix for m in listed]
    after = [prior.transition(t) for t in range(time, len(listed) - 1)]
    before = [prior.conditional(t - 1, t) for t in range(time, 0, -1)]
    possible = prior.marginals(time + 1)[-1] > 0
    pairs = np.outer(possible, possible) & ~np.eye(len(prior), dtype=bool)
    own = _ratios(matrices[time].T, pairs)
    lower, upper = own.copy(), own.copy()
    for kernels, emissions in (
        (after, matrices[time + 1 :]),
        (before, matrices[:time][::-1]),
    ):
        if kernels:
            attained, bound = _worst_ratios(kernels, emissions, pairs, limit)
            lower, upper = lower + attained, upper + bound
    margin = 8 * (len(listed) + 1) ** 2 * (len(prior) + 8) * _UNIT
    with np.errstate(invalid="ignore"):
        return Leakage(
            np.where(pairs, lower - margin * (1 + np.abs(lower)), -np.inf),
            np.where(pairs, upper + margin * (1 + np.abs(upper)), -np.inf),
        )


def step_leakage(state: State, about: int) -> float:
    """The least ε with P(z_t | X_about = x, earlier releases) <= e^ε P(z_t | X_about = x', ...) for
    the mechanism of ``state`` and every z_t: what this step may cost. 0 where nothing is released.

    Along a history the steps add up to a bound on everything learnt about X_about.
    """
    if state.mechanism is None:
        return 0.0
    rows = state.belief.conditional(state.time, about)
    rows = rows[rows.any(axis=1)]
    outputs = rows @ state.mechanism.matrix
    pairs = ~np.eye(len(rows), dtype=bool)
    return max(0.0, float(_ratios(outputs.T, pairs).max(initial=0.0)))


def _ratios(vectors: Floats, pairs: np.ndarray) -> Floats:
    """max over vectors v, shape (m, n), of ln v[x] / v[x'] for the pairs; -inf for others."""
    out = np.full(pairs.shape, -np.inf)
    for x in np.flatnonzero(pairs.any(axis=1)).tolist():
        out[x] = log_ratio(vectors[:, [x]], vectors).max(axis=0)
    return np.where(pairs, out, -np.inf)


def _worst_ratios(
    kernels: Sequence[Floats], emissions: Sequence[Floats], pairs: np.ndarray, limit: int
) -> tuple[Floats, Floats]:
    """Attained and bounding log-ratios of P(releases | x), the releases being ``emissions`` at the
    ends of the ``kernels``, the nearest first."""
    everything = ~np.eye(len(pairs), dtype=bool)
    vectors = np.ones((1, len(pairs)))
    exhaustive = True
    bound = np.zeros(pairs.shape)
    for k in reversed(range(len(kernels))):
        columns = emissions[k].T[emissions[k].any(axis=0)]
        if exhaustive and len(vectors) * len(columns) > limit:
            exhaustive = False
            bound = np.maximum(_ratios(vectors, everything), 0.0)
            np.fill_diagonal(bound, 0.0)
            vectors = vectors[_extreme(vectors, everything)]
        grown = (vectors[:, None, :] * columns[None, :, :]).reshape(-1, len(pairs))
        grown = grown[grown.any(axis=1)] @ kernels[k].T
        peaks = grown.max(axis=1, keepdims=True)
        vectors = (grown / np.where(peaks > 0, peaks, 1.0))[peaks[:, 0] > 0]
        if not exhaustive:
            wanted = pairs if k == 0 else everything
            own = _ratios(columns, everything)
            np.fill_diagonal(own, 0.0)
            bound = _through(kernels[k], own + bound, wanted)
            vectors = vectors[_extreme(vectors, wanted)]
    attained = _ratios(vectors, pairs)
    return attained, attained if exhaustive else bound


def _extreme(vectors: Floats, pairs: np.ndarray) -> Ints:
    """Indices of the vectors that are the worst for some pair."""
    found = [
        log_ratio(vectors[:, [x]], vectors).argmax(axis=0)[pairs[x]]
        for x in np.flatnonzero(pairs.any(axis=1)).tolist()
    ]
    return np.unique(np.concatenate(found))


def _through(kernel: Floats, bound: Floats, pairs: np.ndarray) -> Floats:
    """max ln (K u)[x] / (K u)[x'] over all u >= 0 with ln u[y] / u[y'] <= bound[y, y']."""
    out = np.zeros(pairs.shape)
    for x, other in np.argwhere(pairs).tolist():
        if kernel[x].any() and kernel[other].any():
            out[x, other] = gain(kernel[x], kernel[other], bound)
    return out


def gain(p: Floats, q: Floats, bound: Floats) -> float:
    """An r with p·u <= e^r q·u for every u >= 0 with u[y] <= e^{bound[y, y']} u[y'].

    Mass p[y] is sent to places y', where it counts e^{bound[y, y']} times; e^r is the largest
    ratio of what arrives to q. A linear program finds the best plan; any plan gives a valid r.
    """
    from scipy.optimize import linprog

    sources, targets = np.flatnonzero(p), np.flatnonzero(q)
    logs = bound[np.ix_(sources, targets)]
    open_ = np.isfinite(logs)
    if not open_.any(axis=1).all():
        return float("inf")
    shift = max(0.0, float(logs[open_].max()) - 30.0)
    # what a share of a row adds to the ratio at its target
    weight = np.exp(np.where(open_, logs, 0.0) - shift) * p[sources][:, None] / q[targets]
    cheapest = np.where(open_, weight, np.inf).argmin(axis=1)
    plan = np.zeros(logs.shape)
    plan[np.arange(len(sources)), cheapest] = 1.0
    best = _arrival(plan, weight)
    i, j = np.nonzero(open_)
    edges = np.arange(len(i))
    ship = np.zeros((len(sources), len(edges) + 1))
    ship[i, edges] = 1.0
    arrive = np.zeros((len(targets), len(edges) + 1))
    arrive[j, edges] = weight[i, j]
    arrive[:, -1] = -1.0
    cost = np.append(np.zeros(len(edges)), 1.0)
    whole = np.ones(len(sources))
    solved = linprog(cost, arrive, np.zeros(len(targets)), ship, whole, method="highs")
    if solved.x is not None:
        proposed = np.zeros(logs.shape)
        proposed[i, j] = np.maximum(solved.x[:-1], 0.0)
        if proposed.any(axis=1).all():
            best = min(best, _arrival(proposed, weight))
    return float(np.log(best) + shift)


def _arrival(plan: Floats, weight: Floats) -> float:
    """Largest ratio of what arrives to q, when every row of the plan is sent as a whole."""
    shares = plan / plan.sum(axis=1, keepdims=True)
    return float((shares * weight).sum(axis=0).max())
