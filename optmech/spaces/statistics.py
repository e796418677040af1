"""Statistics of a population, as matrices over the secrets."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError
from optmech.spaces.domain import Domain

Named = Literal["histogram", "cdf", "ranges", "marginals", "mean"]
Statistic = Named | Floats


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
