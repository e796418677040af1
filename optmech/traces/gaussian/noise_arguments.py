"""What ``optimal_noise`` is asked: secret sets, priors and a query, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps


def read_sets(trace: GaussianPrior, secret_sets: Sequence[Iterable[int]]) -> list[Ints]:
    """The indices of every set, from one or several."""
    try:
        listed = list(secret_sets)
    except TypeError:
        raise ProblemError(f"{secret_sets!r} is not a list of sets", where="secret_sets") from None
    if not listed:
        raise ProblemError("is empty", where="secret_sets", remedy="Give at least one set")
    if all(isinstance(s, int | np.integer) for s in listed):
        return [secret_steps(trace, listed, where="secret_sets")]  # type: ignore[arg-type]
    return [secret_steps(trace, s, where=f"secret_sets[{k}]") for k, s in enumerate(listed)]


def read_priors(trace: GaussianPrior, also: Sequence[GaussianPrior]) -> list[GaussianPrior]:
    """All priors that the promise is for."""
    for k, prior in enumerate(also):
        if prior.dimensions != trace.dimensions or not np.array_equal(prior.times, trace.times):
            raise ProblemError(
                "has other times or axes",
                where=f"also[{k}]",
                remedy="Give priors at the same times",
            )
    return [trace, *also]


def read_query(trace: GaussianPrior, query: ArrayLike | None) -> Floats:
    """L, shape (q, d·k): the identity, the roots of weights, or as given."""
    size = len(trace.covariance)
    if query is None:
        return np.eye(size)
    values = finite_array(query, where="query")
    if values.shape == (size,):
        if values.min() < 0:
            raise ProblemError("weights must be >= 0", where="query", remedy="Correct them")
        values = np.diag(np.sqrt(values))
    if values.ndim != 2 or values.shape[1] != size or not values.any():
        raise ProblemError(
            f"shape {values.shape} does not fit {size} coordinates",
            where="query",
            remedy=f"Give weights ({size},) or a matrix (q, {size}), not all zero",
        )
    return values
