"""The privacy of a mechanism under any divergence: of points, and of distributions (CM19 §III)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from optmech.distances import Distance
from optmech.distributional import Distribution, Pairwise, every_pair, outputs_of
from optmech.divergences.named import (
    chi_squared,
    kl,
    max_divergence,
    reverse_kl,
    squared_hellinger,
    total_variation,
)
from optmech.domain import Floats, finite_array
from optmech.errors import ProblemError
from optmech.generators import divergence_name
from optmech.measures import IndexPairs, neighbours
from optmech.mechanism import Mechanism

Divergence = str | Callable[[Floats, Floats], float]
"""The name of a divergence, or a function of two distributions of shape (n_o,)."""

_FUNCTIONS: dict[str, Callable[[Floats, Floats], float]] = {
    "max": max_divergence,
    "kl": kl,
    "reverse_kl": reverse_kl,
    "tv": total_variation,
    "chi2": chi_squared,
    "hellinger": squared_hellinger,
}


def point_epsilon(
    m: Mechanism,
    divergence: Divergence,
    distance: Distance | None = None,
    pairs: IndexPairs | None = None,
) -> float:
    """The least ε with D(p(·|s) ‖ p(·|s')) <= ε d(s, s'), both ways (CM19 Def. 9, 10).

    ``divergence`` is "kl", "reverse_kl", "tv", "chi2", "hellinger", "max", or a function of two
    arrays, such as ``lambda p, q: om.divergences.renyi(p, q, 2)``. Without ``distance`` d = 1;
    ``pairs`` limits it to index pairs. inf where secrets at distance 0 differ.
    """
    measure = _function(divergence)
    worst = 0.0
    for i, others, scale in neighbours(m, distance, pairs):
        for j, apart in zip(others.tolist(), scale.tolist(), strict=True):
            spent = measure(m.matrix[i], m.matrix[j])
            worst = max(worst, per_unit(spent, apart))
    return worst


def distribution_epsilon(
    m: Mechanism,
    pairs: Sequence[tuple[Distribution, Distribution]],
    divergence: Divergence,
    scale: ArrayLike | None = None,
) -> float:
    """The least ε with D(λP ‖ λ'P) <= ε · scale for every pair, both ways (CM19 Def. 11, 12).

    ``pairs`` holds (λ, λ'), distributions over the secrets, normalised here; ``scale`` one number
    >= 0 per pair (W_1(λ, λ') for the extended form), default 1. inf where a pair of scale 0 is told
    apart. ``divergence`` as in ``point_epsilon``.
    """
    measure = _function(divergence)
    factors = np.ones(len(pairs)) if scale is None else finite_array(scale, where="scale", ndim=1)
    if factors.shape != (len(pairs),) or (factors < 0).any() or not len(pairs):
        raise ProblemError(f"needs {len(pairs)} numbers >= 0, one per pair", where="scale")
    worst = 0.0
    for k, (pair, factor) in enumerate(zip(pairs, factors.tolist(), strict=True)):
        try:
            first, second = outputs_of(m, pair)
        except ProblemError as error:
            raise error.at(f"pairs[{k}]") from error
        spent = max(measure(first, second), measure(second, first))
        worst = max(worst, per_unit(spent, factor))
    return worst


def pairwise(m: Mechanism, lams: Sequence[Distribution], divergence: Divergence) -> Pairwise:
    """D(λP ‖ λ'P) for every pair of ``lams``, the larger of both ways (CM19 Def. 11)."""
    measure = _function(divergence)
    outputs = outputs_of(m, lams)
    return every_pair(
        len(lams),
        lambda i, j: max(measure(outputs[i], outputs[j]), measure(outputs[j], outputs[i])),
    )


def per_unit(spent: float, scale: float) -> float:
    """``spent`` per unit of ``scale``: at 0 no ε helps, unless none is needed."""
    if scale > 0:
        return spent / scale
    return math.inf if spent > 0 else 0.0


def _function(divergence: Divergence) -> Callable[[Floats, Floats], float]:
    if callable(divergence):
        return divergence
    return _FUNCTIONS[divergence_name(divergence)]
