"""What a whole sequence of releases tells about the location at one time, in the worst case.

For mechanisms that are fixed beforehand the least ε with
P(z_0, z_1, ... | X_t = x) <= e^ε P(z_0, z_1, ... | X_t = x') for all releases and all possible
x, x' is the temporal privacy leakage of Cao, Yoshikawa, Xiao and Xiong, Quantifying Differential
Privacy under Temporal Correlations (ICDE 2017), here for pairs, exactly or between two bounds.
For policies that adapt see ``enumerate_releases``, and ``step_leakage`` along one history.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optmech.base.arrays import Floats, Ints, largest_entry
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.ratios.wide import Wide, log_ratio, log_values, product
from optmech.exact.rounding import UNIT
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.transport.gains import Logs, gains
from optmech_traces.chains.markov import MarkovPrior
from optmech_traces.chains.policy import State, require_cells


@record
class Leakage(Shown):
    """Bounds on the worst log-likelihood ratio about X_t, for every pair of locations.

    Both hold whatever was rounded on the way, and however small likelihoods become.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], np.eye(2))
    >>> m = om.mechanisms.randomized_response(cells, "ln 3")
    >>> two = om.traces.leakage_about(chain, [m, m], time=0)
    >>> print(round(two.lower, 4), round(two.upper, 4), two.pair)  # 2 ln 3: nobody moves
    2.1972 2.1972 (0, 1)
    """

    pair_lower: Floats
    """Attained by some releases, less the rounding; shape (n, n), row x against column x'; -inf
    where a location is impossible, and on the diagonal."""
    pair_upper: Floats
    """Exceeded by no releases."""

    @property
    def lower(self) -> float:
        """The largest of ``pair_lower``, at least 0."""
        return float(self.pair_lower.max(initial=0.0))

    @property
    def upper(self) -> float:
        """The largest of ``pair_upper``, at least 0: an ε that holds."""
        return float(self.pair_upper.max(initial=0.0))

    @property
    def pair(self) -> tuple[int, int]:
        """Indices of the locations that attain ``lower``."""
        return largest_entry(self.pair_lower)


@checked_arguments
def leakage_about(
    prior: MarkovPrior, mechanisms: Sequence[Mechanism], time: int, *, limit: int = 50_000
) -> Leakage:
    """Leakage about X_time of one release from each of ``mechanisms``, at times 0, 1, ...

    Given X_time, the releases before, at and after it are independent, so that the worst cases of
    the three add up pair by pair. Those before and after are found by going through all sequences
    from the far end, while there are at most ``limit`` of them; from there on the upper bound goes
    on by transport with gains (docs/theory/trace-privacy.md, "Discrete traces") and the lower one
    with the worst sequence of every pair.

    Raises
    ------
    ProblemError
        On mechanisms that do not fit the prior, or a time without a release.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> m = om.mechanisms.randomized_response(cells, "ln 3")
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    >>> two = om.traces.leakage_about(chain, [m, m], time=0)
    >>> print(round(two.upper, 4))  # ln 3: the places are independent
    1.0986
    """
    listed = list(mechanisms)
    for k, m in enumerate(listed):
        require_cells(m.secrets, prior, f"mechanisms[{k}]")
    at, most = whole(time, "time"), whole(limit, "limit", least=1)
    if at >= len(listed):
        raise ProblemError(f"there is no release at time {at} among {len(listed)}", where="time")
    prior.require_time(len(listed) - 1)
    columns = [Wide.of(m.matrix.T[m.matrix.any(axis=0)]) for m in listed]
    after = [Wide.of(prior.transition(t)) for t in range(at, len(listed) - 1)]
    before = [prior.wide_conditional(t - 1, t) for t in range(at, 0, -1)]
    possible = prior.wide_marginals(at + 1)[-1].positive
    pairs = np.outer(possible, possible) & ~np.eye(len(prior), dtype=bool)
    lower = upper = _ratios(columns[at], pairs)
    size = 0.0
    for kernels, emissions in ((after, columns[at + 1 :]), (before, columns[:at][::-1])):
        if kernels and pairs.any():
            attained, bound, seen = _worst_ratios(kernels, emissions, pairs, most)
            lower, upper = lower + attained, upper + bound
            size = max(size, seen)
    unit = 8 * (len(listed) + 1) ** 2 * (len(prior) + 8) * UNIT
    # inf is exact: zeros are true zeros
    low, high = (
        unit * (1 + size + np.where(np.isfinite(ends), np.abs(ends), 0.0))
        for ends in (lower, upper)
    )
    return Leakage(np.where(pairs, lower - low, -np.inf), np.where(pairs, upper + high, -np.inf))


@checked_arguments
def step_leakage(state: State, about: int) -> float:
    """The least ε with P(z_t | X_about = x, earlier releases) <= e^ε P(z_t | X_about = x', ...) for
    the mechanism of ``state`` and every z_t: what this step may cost. 0 where nothing is released.

    Along a history the steps add up to a bound on everything learnt about X_about.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], np.eye(2))
    >>> policy = om.traces.FixedPolicy(chain, om.mechanisms.randomized_response(cells, "ln 3"))
    >>> print(round(om.traces.step_leakage(policy.start(), about=0), 4))
    1.0986
    """
    if state.mechanism is None:
        return 0.0
    rows = state.belief.wide_conditional(state.time, about)
    rows = rows[rows.positive.any(axis=1)]
    outputs = product(rows, Wide.of(state.mechanism.matrix.T))
    pairs = ~np.eye(rows.shape[0], dtype=bool)
    return float(_ratios(outputs.T, pairs).max(initial=0.0))


def _ratios(vectors: Wide, pairs: np.ndarray) -> Floats:
    """max over vectors v, shape (m, n), of ln v[x] / v[x'] for the pairs; -inf for others."""
    out = np.full(pairs.shape, -np.inf)
    for x in np.flatnonzero(pairs.any(axis=1)).tolist():
        out[x] = log_ratio(vectors[:, [x]], vectors).max(axis=0, initial=-np.inf)
    return np.where(pairs, out, -np.inf)


def _size(values: Floats) -> float:
    """The largest finite absolute value."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _worst_ratios(
    kernels: Sequence[Wide], emissions: Sequence[Wide], pairs: np.ndarray, limit: int
) -> tuple[Floats, Floats, float]:
    """Attained and bounding log-ratios of P(releases | x), the releases being ``emissions`` at the
    ends of the ``kernels``, the nearest first; and the largest logarithm that transport met."""
    everything = ~np.eye(len(pairs), dtype=bool)
    vectors = Wide.of(np.ones((1, len(pairs))))
    exhaustive = True
    bound = np.zeros(pairs.shape)
    size = 0.0
    for k in reversed(range(len(kernels))):
        columns = emissions[k]
        if exhaustive and vectors.shape[0] * columns.shape[0] > limit:
            exhaustive = False
            bound = np.where(everything, np.maximum(_ratios(vectors, everything), 0.0), 0.0)
            vectors = vectors[_extreme(vectors, everything)]
        grown = vectors[:, None, :].times(columns[None, :, :])
        grown = grown.reshaped(-1, len(pairs))
        vectors = product(grown[grown.positive.any(axis=1)], kernels[k])
        vectors = vectors[vectors.positive.any(axis=1)]
        if not exhaustive:
            wanted = pairs if k == 0 else everything
            own = np.where(everything, _ratios(columns, everything), 0.0)
            size = max(size, _size(own + bound), _size(log_values(kernels[k])))
            bound = _through(kernels[k], own + bound, wanted)
            vectors = vectors[_extreme(vectors, wanted)]
    attained = _ratios(vectors, pairs)
    return (attained, attained, 0.0) if exhaustive else (attained, bound, max(size, _size(bound)))


def _extreme(vectors: Wide, pairs: np.ndarray) -> Ints:
    """Indices of the vectors that are the worst for some pair."""
    found = [
        log_ratio(vectors[:, [x]], vectors).argmax(axis=0)[pairs[x]]
        for x in np.flatnonzero(pairs.any(axis=1)).tolist()
    ]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))


def _through(kernel: Wide, bound: Floats, pairs: np.ndarray) -> Floats:
    """max ln (K u)[x] / (K u)[x'] over all u >= 0 with ln u[y] / u[y'] <= bound[y, y'], or a
    little more."""
    logs = log_values(kernel)
    wanted = pairs & np.logical_and.outer(*[kernel.positive.any(axis=1)] * 2)
    out = np.zeros(pairs.shape)
    for x in np.flatnonzero(wanted.any(axis=1)).tolist():
        others = np.flatnonzero(wanted[x])
        # logarithms count as they are
        one, other = np.broadcast_to(logs[x], (len(others), len(logs))), logs[others]
        every = np.broadcast_to(bound, (len(others), *bound.shape))
        out[x, others] = gains(every, Logs(one, one), Logs(other, other)).upper
    return out
