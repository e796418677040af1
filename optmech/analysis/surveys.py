"""Statistics of a population from private reports: unbiased estimates with their covariance, and
how many people an error takes.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.counts import Counts, counts_of
from optmech.analysis.measures import prior_weights
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.variance import estimator
from optmech.errors import ProblemError
from optmech.exact.arguments import positive, probability
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.statistics import as_statistic, statistic_matrix

_UNBIASED = 1e-7


@record
class Estimate(Shown):
    """A statistic of those who reported, estimated without bias: values may be below 0 or above 1.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.estimate.statistic(m, {"left": 60, "right": 40})
    >>> print(found.values, found.interval(0.9).round(3).tolist())
    [0.7 0.3] [[0.538, 0.862], [0.138, 0.462]]
    >>> print(found.consistent().round(3), found.errors.round(4))
    [0.7 0.3] [0.0985 0.0985]
    """

    values: Floats
    """Shape (q,): the statistic Cθ of the shares θ of the secrets."""
    _: KW_ONLY
    covariance: Floats
    """Of ``values``, (q, q): an unbiased estimate for reports that are independent draws of secrets
    and answers."""
    shares: Floats
    """θ itself, estimated likewise, (S,)."""
    statistic: Floats
    """C, (q, S)."""
    reports: float

    @property
    def errors(self) -> Floats:
        """Standard errors, (q,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def interval(self, level: float = 0.95) -> Floats:
        """Each value less and plus what a normal law of its standard error says, (q, 2).

        That law is right for many reports; of few it is an approximation. The intervals hold one by
        one, not all together.
        """
        wide = confidence(level)[1] * self.errors
        return np.column_stack([self.values - wide, self.values + wide])

    def consistent(self) -> Floats:
        """The statistic of the distribution nearest to ``shares``, (q,): >= 0, sums to one.

        It is **biased**, where some true shares are small most of all; its error is often less.
        """
        return self.statistic @ nearest_distribution(self.shares)


def nearest_distribution(values: Floats) -> Floats:
    """The Euclidean projection of values onto the distributions (Held, Wolfe and Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    level = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > level)[-1])
    return np.asarray(np.maximum(values - level[last], 0.0))


def confidence(level: float) -> tuple[float, float]:
    """A level below 1, and up to how many deviations a normal law has so much."""
    share = float(probability(level, "level", positive=True))
    if share >= 1:
        raise ProblemError("1 is no level below certainty", where="level", remedy="Give 0.95")
    return share, NormalDist().inv_cdf((1 + share) / 2)


def _unbiased(m: Mechanism, rows: Floats, people: Floats) -> Floats:
    """L (S, O) with CLP = C, of least variance at a population."""
    found = estimator(m.matrix, people)
    off = np.abs(rows @ (found @ m.matrix.T - np.eye(len(people)))).max()
    if not off <= _UNBIASED * max(1.0, np.abs(rows).max()):
        raise ProblemError(
            "some mixtures of secrets cause the same reports and have another statistic, so that "
            "no estimate of it is unbiased",
            where="mechanism",
            remedy="Use om.estimate.prior, or a mechanism designed with MinimizeVariance",
        )
    return found


@checked_arguments
def statistic(
    m: Mechanism,
    counts: Counts,
    statistic: ArrayLike | str = "histogram",
    *,
    prior: Prior | None = None,
) -> Estimate:
    """A statistic of those who reported, estimated without bias, with its covariance.

    Of all unbiased estimates that are linear in the counts, the one of least variance at ``prior``
    (by default the uniform one), as ``om.estimate.frequencies`` has it for single shares.

    Parameters
    ----------
    m:
        The mechanism that all reports were drawn from, independently.
    counts:
        As in ``om.estimate.prior``.
    statistic:
        As in ``om.MinimizeVariance``.

    Raises
    ------
    ProblemError
        On unusable counts; where reports do not tell the statistic.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.geometric(line, "ln 2")
    >>> found = om.estimate.statistic(m, [50, 30, 20], "cdf")
    >>> print(found.values.round(3))  # unbiased, and not a distribution function
    [0.4 1.2 1. ]
    """
    reported = counts_of(counts, m.observables)
    rows = statistic_matrix(as_statistic(statistic), m.secrets)
    start = Prior.uniform(m.secrets) if prior is None else prior
    return estimated(rows, _unbiased(m, rows, prior_weights(m, start)), reported)


def estimated(rows: Floats, near: Floats, reported: Floats) -> Estimate:
    """The estimate by a left inverse L (S, O) of counts of reports (O,)."""
    total = float(reported.sum())
    share = reported / total
    weights = rows @ near
    values = weights @ share
    spread = (weights * share) @ weights.T - np.outer(values, values)
    return Estimate(
        values,
        covariance=spread / max(total - 1, 1.0),
        shares=near @ share,
        statistic=rows,
        reports=total,
    )


@checked_arguments
def variances(
    m: Mechanism,
    statistic: ArrayLike | str = "histogram",
    population: Prior | str | None = None,
) -> Floats:
    """N times the variance of every row of a statistic, estimated without bias from N people, (q,).

    People are drawn from ``population``, by default the uniform one, and the sampling of people
    counts; "worst" is for every row its worst population, by the estimate that is best at the
    uniform one. Computed in floating point.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.estimate.variances(m))  # p (1 - p) / (2 p - 1)^2 and sampling: 3/4 + 1/4
    [1. 1.]
    """
    rows = statistic_matrix(as_statistic(statistic), m.secrets)
    worst = isinstance(population, str)
    if worst and population != "worst":
        raise ProblemError(f"{population!r} is unknown", where="population", remedy='Use "worst"')
    given = Prior.uniform(m.secrets) if population is None or worst else population
    people = prior_weights(m, given)  # type: ignore[arg-type]
    weights = rows @ _unbiased(m, rows, people)
    each = weights**2 @ m.matrix.T
    if worst:
        return np.array([_largest(*pair) for pair in zip(each, rows, strict=True)])
    return each @ people - (rows @ people) ** 2


def _largest(squares: Floats, values: Floats) -> float:
    """The largest Σ π_s a_s - (Σ π_s c_s)² of all distributions: it has two points at most."""
    a, c = squares[:, None], values[:, None]
    step = c.T - c
    with np.errstate(divide="ignore", invalid="ignore"):
        share = ((a.T - a) - 2 * c * step) / (2 * step**2)
    share = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
    mixed = (1 - share) * a + share * a.T - (c + share * step) ** 2
    return float(max(mixed.max(), (squares - values**2).max()))


@checked_arguments
def people(
    m: Mechanism,
    statistic: ArrayLike | str = "histogram",
    population: Prior | str | None = None,
    *,
    error: float,
    level: float = 0.95,
) -> int:
    """How many people have to report, so that every number of a statistic is known to ``error``.

    The half-width of its interval at ``level``, by a normal law, is then at most ``error``; see
    ``om.estimate.variances`` for ``population``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.estimate.people(m, error=0.01)  # 1.96^2 / 0.01^2
    38415
    """
    wide = positive(error, "error")
    found = variances(m, statistic, population)
    return max(1, math.ceil(float(found.max()) * (confidence(level)[1] / wide) ** 2))


@checked_arguments
def error(
    m: Mechanism,
    statistic: ArrayLike | str = "histogram",
    population: Prior | str | None = None,
    *,
    people: float,
    level: float = 0.95,
) -> float:
    """To what error every number of a statistic is known from so many people.

    The largest half-width of the intervals at ``level``, by a normal law: what
    ``om.estimate.people`` asks for.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.estimate.error(m, people=38415), 5))
    0.01
    """
    count = positive(people, "people")
    found = variances(m, statistic, population)
    return confidence(level)[1] * math.sqrt(float(found.max()) / count)
