"""Constraints on one release for the sake of the location at another time (TP19 with a finite
domain): distribution privacy of the rows of P(X_t | X_t' = x), and distortion about X_t'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.checked import probability, whole
from optmech.exact.number import Exact, parse_exact
from optmech.problem import DistortionPrivacy, DistributionPrivacy
from optmech.ratios.hockey_stick import log_ratio
from optmech.reductions.implied_pairs import implied
from optmech.spaces.distances import Distance, evaluate, matrix
from optmech.traces.chains.markov import MarkovPrior

_ROUNDING = 1e-9


@dataclass(frozen=True)
class When:
    """The times t' that a constraint on the release of time t is about."""

    lags: tuple[int, ...]
    """t' = t - lag; a negative lag looks ahead."""
    times: tuple[int, ...]
    """t' itself: the time of a visit that matters."""

    def __init__(self, lags: Sequence[int] | int, times: Sequence[int] | int) -> None:
        object.__setattr__(self, "lags", _integers(lags, "lags", least=None))
        object.__setattr__(self, "times", _integers(times, "times", least=0))
        if not self.lags and not self.times:
            raise ProblemError(
                "no time is named", where="lags", remedy="Give lags=(1,) or times=(0,)"
            )

    def at(self, time: int, horizon: int | None) -> list[int]:
        """The times t' for the release of ``time``, without those before 0 or past the end."""
        wanted = {time - lag for lag in self.lags} | set(self.times)
        return sorted(t for t in wanted if t >= 0 and (horizon is None or t < horizon))


@dataclass(frozen=True)
class ConditionalPrivacy:
    """What z_t tells about X_t': P(z_t | X_t' = x, earlier releases) <= e^ε P(z_t | X_t' = x', ...)
    for all x, x' that are possible, and all z_t.

    This is distribution privacy (DP19 Def. 8) with the rows of P(X_t | X_t' = ·, earlier releases)
    as the distributions. Over the releases of a trace the ε add up to a bound for everything
    that is learnt of X_t' (docs/theory.md, section on discrete traces).

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
    """

    epsilon: Exact
    when: When
    distance: Distance | None
    radius: float | None
    delta: Exact

    def __init__(
        self,
        epsilon: object,
        lags: Sequence[int] | int = (),
        times: Sequence[int] | int = (),
        distance: Distance | None = None,
        radius: float | None = None,
        delta: object = 0.0,
    ) -> None:
        object.__setattr__(self, "epsilon", parse_exact(epsilon, where="epsilon"))
        object.__setattr__(self, "when", When(lags, times))
        if radius is not None and distance is None:
            raise ProblemError("a radius needs a distance", where="radius")
        object.__setattr__(self, "distance", distance)
        limit = None if radius is None else float(parse_exact(radius, where="radius"))
        object.__setattr__(self, "radius", limit)
        object.__setattr__(self, "delta", probability(delta))

    def at(self, belief: MarkovPrior, time: int) -> list[DistributionPrivacy]:
        """The constraints on the mechanism of ``time``, when the trace is known as ``belief``.

        Pairs that every mechanism satisfies are left out: those whose rows are within the ratio
        themselves, and with ``distance`` those implied by shorter ones.
        """
        scale = self._scale(belief)
        found = []
        for about in self.when.at(time, belief.horizon):
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
                if not _close(rows[i], rows[j], float(self.epsilon) * apart[i, j]):
                    pairs.append((rows[i], rows[j]))
                    factors.append(apart[i, j])
            if pairs:
                found.append(
                    DistributionPrivacy(self.epsilon, pairs, self.delta, scale=np.array(factors))
                )
        return found

    def _scale(self, belief: MarkovPrior) -> Floats:
        """What ε is multiplied by for every pair of locations; inf for pairs that are not meant."""
        if self.distance is None:
            return np.ones((len(belief), len(belief)))
        apart = evaluate(self.distance, belief.domain, belief.domain, where="distance")
        if self.radius is None:
            return np.array(apart)
        return np.where(apart <= self.radius, 1.0, np.inf)


@dataclass(frozen=True)
class ConditionalDistortion:
    """The error of the best attack on X_t' is at least ``minimum`` after the release of time t too.

    Σ_o min_ŝ Σ_s π_t(s) p(o|s) E[d(ŝ, X_t') | X_t = s, earlier releases] >= d_m: distortion privacy
    (PG 21) with the distance from the estimate to where the user was. With lag 0 it is the usual
    one against the filtering adversary; with lags 0 to L nobody who waits for up to L further
    releases errs by less, in expectation.
    """

    minimum: Exact
    distance: Distance
    when: When

    def __init__(
        self,
        minimum: object,
        distance: Distance,
        lags: Sequence[int] | int = (),
        times: Sequence[int] | int = (),
    ) -> None:
        object.__setattr__(self, "minimum", parse_exact(minimum, where="minimum"))
        object.__setattr__(self, "distance", distance)
        object.__setattr__(self, "when", When(lags, times))

    def at(self, belief: MarkovPrior, time: int) -> list[DistortionPrivacy]:
        """The constraints on the mechanism of ``time``, when the trace is known as ``belief``."""
        apart = evaluate(self.distance, belief.domain, belief.domain, where="distance")
        found = []
        for about in self.when.at(time, belief.horizon):
            lagged = apart @ belief.conditional(about, time).T
            found.append(DistortionPrivacy(self.minimum, matrix(lagged)))
        return found


def _close(p: Floats, q: Floats, epsilon: float) -> bool:
    """Whether p <= e^ε q and back by a margin: then it holds after every mechanism."""
    apart = max(log_ratio(p, q).max(), log_ratio(q, p).max())
    return bool(apart <= epsilon * (1 - _ROUNDING) - _ROUNDING)


def _integers(values: Sequence[int] | int, where: str, least: int | None) -> tuple[int, ...]:
    listed = list(values) if isinstance(values, Iterable) else [values]
    return tuple(dict.fromkeys(whole(value, where, least) for value in listed))
