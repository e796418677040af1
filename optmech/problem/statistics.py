"""The objective of estimating a statistic of a population well."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate.variance import Survey
from optmech.errors import ProblemError
from optmech.problem.constraint import Record
from optmech.problem.fields import FIELDS, Field
from optmech.problem.space import Space
from optmech.spaces.prior import Prior
from optmech.spaces.statistics import Named, Statistic, as_statistic, statistic_matrix

Population = Prior | Literal["worst"]


def as_weights(value: ArrayLike) -> Floats:
    """Numbers >= 0, one for every row of the statistic."""
    out = finite_array(value, where="", ndim=1)
    if (out < 0).any() or not out.any():
        raise ProblemError("are not weights >= 0", remedy="Give a weight for every row")
    return out


def as_population(value: Population | None) -> Population | None:
    """A prior over the secrets, or "worst"."""
    if isinstance(value, Prior) or value == "worst":
        return value
    raise ProblemError("is no population", remedy='Give a Prior over the secrets, or "worst"')


def _worst_or_prior() -> object:
    from optmech.reading.sections import SORTS

    return Literal["worst"] | SORTS["prior"]


FIELDS |= {
    as_statistic: Field(lambda: Named | list[list[float]]),
    as_weights: Field(lambda: list[float]),
    as_population: Field(
        _worst_or_prior,
        load=lambda plain, space: "worst" if plain == "worst" else Prior(space.secrets, plain),
    ),
}


@record
class MinimizeVariance(Record):
    """Objective: the least variance of a statistic of the population, estimated without bias from
    one report of each person.

    What is least is N times the total variance of the best unbiased estimate from the reports of N
    persons who are drawn from ``population``: a prior, by default the problem's, or "worst" for
    the population where it is largest. ``statistic`` is "histogram", "cdf" (the distribution
    function along the order of the secrets), "ranges" (of all intervals), "marginals" (of secrets
    that are tuples, or of rows and columns of a grid), "mean" (of coordinates), or an array with a
    row for every number to estimate and a column for every secret. ``weights`` count the variances
    of its rows. The reports are the design's own: as many as it needs, each with the loss of one of
    the problem's observables.

    Examples
    --------
    >>> line = om.Domain.range(6)
    >>> d = om.distances.euclidean()
    >>> problem = om.Problem(
    ...     om.Prior.uniform(line),
    ...     d,
    ...     objective=om.MinimizeVariance("histogram"),
    ...     constraints=[om.MetricPrivacy(0.3, d)],
    ... )
    >>> design = om.solve(problem, gap=1e-3)
    >>> print(f"{design.variance:.1f} {design.variance_bound:.1f}")
    95.3 95.3
    >>> problem.objective.survey(problem.space).statistic.shape
    (6, 6)
    """

    kind: ClassVar[Literal["minimize_variance"]] = "minimize_variance"

    statistic: Converted[ArrayLike | str, Statistic] = converted(as_statistic, default="histogram")
    population: Population | None = checked(as_population, default=None)
    weights: Converted[ArrayLike | None, Floats | None] = converted(as_weights, default=None)

    def survey(self, space: Space) -> Survey:
        """The statistic as a matrix, its weights and the population. Raises ProblemError where they
        do not fit the secrets."""
        rows = statistic_matrix(self.statistic, space.secrets)
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        if len(weights) != len(rows):
            raise ProblemError(
                f"{len(weights)} weights for {len(rows)} rows",
                where="weights",
                remedy="Give one for every row of the statistic",
            )
        if self.population == "worst":
            return Survey(rows, weights, None)
        given = self.population
        assert not isinstance(given, str)
        return Survey(rows, weights, space.adversary(given).weights)
