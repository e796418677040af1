"""Constraints on one release for the sake of the location at another time (Meehan and Chaudhuri
2019 with a finite domain): distribution privacy of the rows of P(X_t | X_t' = x), and distortion
about X_t'."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY

import numpy as np

from optmech.base.read_only import Converted, checked, converted, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.number import Exact, Number
from optmech.exact.ratios.hockey_stick import log_ratio
from optmech.problem import DistortionPrivacy, DistributionPrivacy, fields
from optmech.reductions.pairs import implied
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import Distance, DistanceLike, evaluate, matrix
from optmech_traces.chains.markov import MarkovPrior

_ROUNDING = 1e-9


def _lags(values: Iterable[int] | int) -> tuple[int, ...]:
    return _integers(values, least=None)


def _times(values: Iterable[int] | int) -> tuple[int, ...]:
    return _integers(values, least=0)


Times = Converted[Iterable[int] | int, tuple[int, ...]]


def _require_time(constraint: About) -> None:
    if not constraint.lags and not constraint.times:
        raise ProblemError("no time is named", where="lags", remedy="Give lags=(1,) or times=(0,)")


@record
class ConditionalPrivacy(Shown):
    """What z_t tells about X_t': P(z_t | X_t' = x, earlier releases) <= e^ε P(z_t | X_t' = x', ...)
    for all x, x' that are possible, and all z_t.

    This is distribution privacy (Kawamoto and Murakami, ESORICS 2019, Def. 8) with the rows of
    P(X_t | X_t' = ·, earlier releases) as the distributions. Over the releases of a trace the ε add
    up to a bound for everything that is learnt of X_t' (docs/theory/trace-privacy.md, "Discrete
    traces").

    Parameters
    ----------
    epsilon:
        ε >= 0; per unit of ``distance`` where there is one.
    lags, times:
        Which t': ``lags=(1, 2)`` means t - 1 and t - 2, ``times=(0,)`` the start of the trace.
        With lag 1 and all pairs, the same ε holds for every longer lag.
    distance:
        ε d(x, x') in place of ε.
    radius:
        Only pairs with d(x, x') <= radius, with ε itself in place of ε d(x, x').
    delta:
        As in ``DistributionPrivacy``.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> wanted = om.traces.ConditionalPrivacy("ln 3", times=(0,))
    >>> first = om.traces.SequentialDesigner(chain, om.distances.hamming(), [wanted]).start()
    >>> print(round(first.design.loss, 6))  # at time 0: randomised response
    0.25
    >>> [type(one).__name__ for one in wanted.at(chain, time=0)]
    ['DistributionPrivacy']
    """

    epsilon: Converted[Number, Exact] = converted(fields.number)
    lags: Times = converted(_lags, default=())
    times: Times = converted(_times, default=())
    _: KW_ONLY
    distance: fields.AnyDistance = converted(fields.distance, default=None)
    radius: float | None = checked(fields.limit, default=None)
    delta: Converted[Number, Exact] = converted(fields.delta, default=fields.ZERO)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_time(self)
        if self.radius is not None and self.distance is None:
            raise ProblemError("a radius needs a distance", where="radius")

    @checked_arguments
    def at(self, belief: MarkovPrior, time: int) -> list[DistributionPrivacy]:
        """The constraints on the mechanism of ``time``, when the trace is known as ``belief``.

        Pairs that every mechanism satisfies are left out: those whose rows are within the ratio
        themselves, and with ``distance`` those implied by shorter ones.
        """
        # what ε is multiplied by for every pair of locations; inf for pairs that are not meant
        scale = np.ones((len(belief), len(belief)))
        if self.distance is not None:
            scale = evaluate(self.distance, belief.domain, belief.domain, where="distance")
        if self.radius is not None:
            scale = np.where(scale <= self.radius, 1.0, np.inf)
        found = []
        for about in about_times(self, time, belief.horizon):
            rows = belief.conditional(time, about)
            possible = rows.any(axis=1)
            apart = np.where(np.outer(possible, possible), scale, np.inf)
            np.fill_diagonal(apart, np.inf)
            if self.radius is None and self.distance is not None and not self.delta > 0:
                apart[implied(apart)] = np.inf
            # either direction being needed keeps the pair, which stands for both
            apart = np.minimum(apart, apart.T)
            pairs, factors = [], []
            for i, j in np.argwhere(np.triu(np.isfinite(apart))).tolist():
                p, q = rows[i], rows[j]
                # rows that are close by a margin stay so after every mechanism
                told = max(log_ratio(p, q).max(), log_ratio(q, p).max())
                if told > float(self.epsilon) * apart[i, j] * (1 - _ROUNDING) - _ROUNDING:
                    pairs.append((p, q))
                    factors.append(apart[i, j])
            if pairs:
                found.append(DistributionPrivacy(self.epsilon, pairs, self.delta, scale=factors))
        return found


@record
class ConditionalDistortion(Shown):
    """The error of the best attack on X_t' is at least ``minimum`` after the release of time t too.

    Σ_o min_ŝ Σ_s π_t(s) p(o|s) E[d(ŝ, X_t') | X_t = s, earlier releases] >= d_m: distortion privacy
    (Shokri, PETS 2015, eq. 21) with the distance from the estimate to where the user was. With lag
    0 it is the usual one against the filtering adversary; with lags 0 to L nobody who waits for up
    to L further releases errs by less, in expectation.

    Examples
    --------
    >>> cells = om.Domain.range(2)
    >>> chain = om.traces.MarkovPrior(cells, [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    >>> d = om.distances.hamming()
    >>> wanted = om.traces.ConditionalDistortion(0.2, d, lags=(0, 1))
    >>> first = om.traces.SequentialDesigner(chain, d, [wanted]).start()
    >>> print(round(first.design.loss, 6))
    0.2
    >>> [round(float(one.minimum), 3) for one in wanted.at(chain, time=1)]
    [0.2, 0.2]
    """

    minimum: Converted[Number, Exact] = converted(fields.number)
    distance: Converted[DistanceLike, Distance] = converted(fields.distance)
    lags: Times = converted(_lags, default=())
    _: KW_ONLY
    times: Times = converted(_times, default=())

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_time(self)

    @checked_arguments
    def at(self, belief: MarkovPrior, time: int) -> list[DistortionPrivacy]:
        """The constraints on the mechanism of ``time``, when the trace is known as ``belief``."""
        apart = evaluate(self.distance, belief.domain, belief.domain, where="distance")
        found = []
        for about in about_times(self, time, belief.horizon):
            lagged = apart @ belief.conditional(about, time).T
            found.append(DistortionPrivacy(self.minimum, matrix(lagged)))
        return found


About = ConditionalPrivacy | ConditionalDistortion


def about_times(constraint: About, time: int, horizon: int | None) -> list[int]:
    """The times t' for the release of ``time``, without those before 0 or past the end: t - lag,
    where a negative lag looks ahead, and the times of visits that matter."""
    wanted = {time - lag for lag in constraint.lags} | set(constraint.times)
    return sorted(t for t in wanted if t >= 0 and (horizon is None or t < horizon))


def _integers(values: Iterable[int] | int, least: int | None) -> tuple[int, ...]:
    listed = list(values) if isinstance(values, Iterable) else [values]
    return tuple(dict.fromkeys(whole(value, "", least) for value in listed))
