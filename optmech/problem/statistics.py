"""Statistics of a population, as matrices over the secrets, and the objective of estimating one
well."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import Converted, checked, converted, record
from optmech.certificate.variance import Survey
from optmech.errors import ProblemError
from optmech.problem import fields
from optmech.problem.constraint import Record
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.space import Place, Space
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

Named = Literal["histogram", "cdf", "ranges", "marginals", "mean"]
Statistic = Named | Floats
Population = Prior | Literal["worst"]


def as_statistic(value: ArrayLike | str) -> Statistic:
    """One of the names, or an array with a column for every secret."""
    if isinstance(value, str):
        if value not in get_args(Named):
            raise ProblemError(
                f"{value!r} is unknown",
                remedy=f"Use {', '.join(get_args(Named))}, or an array with a column per secret",
            )
        return value  # type: ignore[return-value]
    rows = finite_array(value, where="", ndim=2)
    if not rows.any():
        raise ProblemError("estimates nothing", remedy="Give rows that are not all zero")
    return rows


def as_weights(value: ArrayLike) -> Floats:
    """Numbers >= 0, one for every row of the statistic."""
    out = finite_array(value, where="", ndim=1)
    if (out < 0).any() or not out.any():
        raise ProblemError("are not weights >= 0", remedy="Give a weight for every row")
    return out


def as_population(value: Prior | str) -> Population:
    """A prior over the secrets, or "worst"."""
    if isinstance(value, Prior) or value == "worst":
        return value  # type: ignore[return-value]
    raise ProblemError("is no population", remedy='Give a Prior over the secrets, or "worst"')


def _load_population(plain: Plain, space: Space) -> Population:
    return "worst" if plain == "worst" else Prior(space.secrets, plain)


def _build_population(spec: object, place: Place) -> Population:
    return "worst" if spec == "worst" else fields.built(spec, place)  # type: ignore[no-any-return]


def _rows_or_name() -> object:
    return Named | list[list[float]]


def _worst_or_prior() -> object:
    from optmech.reading.sections import SORTS

    return Literal["worst"] | SORTS["prior"]


FIELDS |= {
    as_statistic: Field(
        _rows_or_name, lambda value, _: value if isinstance(value, str) else value.tolist()
    ),
    as_weights: Field(lambda: list[float], lambda value, _: value.tolist()),
    as_population: Field(
        _worst_or_prior,
        lambda value, _: value if isinstance(value, str) else value.weights.tolist(),
        _load_population,
        _build_population,
    ),
}


def statistic_matrix(statistic: Statistic, secrets: Domain) -> Floats:
    """C (q, S): the statistic of a distribution θ over the secrets is Cθ. Raises ProblemError where
    they do not fit each other."""
    n = len(secrets)
    if not isinstance(statistic, str):
        if statistic.shape[1] != n:
            raise ProblemError(
                f"has {statistic.shape[1]} columns for {n} secrets",
                where="statistic",
                remedy="Give a row for every number to estimate, a column for every secret",
            )
        return statistic
    if statistic == "histogram":
        return np.eye(n)
    if statistic == "cdf":
        return np.tril(np.ones((n, n)))
    if statistic == "ranges":
        first, last = np.triu_indices(n)
        every = np.arange(n)
        return np.asarray((every >= first[:, None]) & (every <= last[:, None]), dtype=np.float64)
    if statistic == "mean":
        if secrets.points is None:
            raise ProblemError(
                "the secrets have no coordinates to take the mean of",
                where="statistic",
                remedy="Give them points, or the values as an array of one row",
            )
        return np.ascontiguousarray(secrets.points.T, dtype=np.float64)
    labels = [label if isinstance(label, tuple) else (label,) for label in secrets.labels]
    if len({len(label) for label in labels}) != 1 or len(labels[0]) < 2:
        raise ProblemError(
            "the secrets are no product: their labels are not tuples of one length",
            where="statistic",
            remedy="Label them with tuples, or give the marginals as an array",
        )
    parts = []
    for axis in range(len(labels[0])):
        own = [label[axis] for label in labels]
        parts += [[float(value == each) for value in own] for each in dict.fromkeys(own)]
    return np.array(parts)


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
