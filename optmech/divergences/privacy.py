"""The privacy of a mechanism under any divergence: of points, and of distributions (CM19 §III)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.distributional import Pairwise, every_pair, outputs_of, wide_outputs_of
from optmech.analysis.measures import IndexPairs, neighbours, per_unit
from optmech.base.arrays import Floats
from optmech.divergences.named import FUNCTIONS, max_divergence
from optmech.divergences.orders import renyi
from optmech.errors import ProblemError
from optmech.exact.checked import nonnegative
from optmech.exact.ratios.generators import divergence_name
from optmech.exact.ratios.powers import order_of
from optmech.exact.ratios.wide import either_log_ratio
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution

Divergence = str | Callable[[Floats, Floats], float]
"""The name of a divergence, or a function of two distributions of shape (n_o,)."""


@checked_arguments
def point_epsilon(
    m: Mechanism,
    divergence: Divergence,
    distance: DistanceLike | None = None,
    *,
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
        spent = [measure(m.matrix[i], m.matrix[j]) for j in others.tolist()]
        worst = max(worst, float(per_unit(spent, scale).max(initial=0.0)))
    return worst


@checked_arguments
def distribution_epsilon(
    m: Mechanism,
    pairs: Sequence[tuple[Distribution, Distribution]],
    divergence: Divergence,
    *,
    scale: ArrayLike | None = None,
) -> float:
    """The least ε with D(λP ‖ λ'P) <= ε · scale for every pair, both ways (CM19 Def. 11, 12).

    ``pairs`` holds (λ, λ'), distributions over the secrets, normalised here; ``scale`` one number
    >= 0 per pair (W_1(λ, λ') for the extended form), default 1. inf where a pair of scale 0 is told
    apart. ``divergence`` as in ``point_epsilon``.
    """
    if not len(pairs):
        raise ProblemError("there is no pair", where="pairs", remedy="Give at least one")
    given = np.ones(len(pairs)) if scale is None else scale
    factors = nonnegative(given, "scale", (len(pairs),))
    spent = []
    for k, pair in enumerate(pairs):
        try:
            between = _between(m, pair, divergence)
        except ProblemError as error:
            raise error.at(f"pairs[{k}]") from error
        spent.append(between(0, 1))
    return float(per_unit(spent, factors).max())


@checked_arguments
def pairwise(m: Mechanism, lams: Sequence[Distribution], divergence: Divergence) -> Pairwise:
    """D(λP ‖ λ'P) for every pair of ``lams``, the larger of both ways (CM19 Def. 11)."""
    return every_pair(len(lams), _between(m, lams, divergence))


def _between(
    m: Mechanism, lams: Sequence[Distribution], divergence: Divergence
) -> Callable[[int, int], float]:
    """D of the outputs of two of ``lams``, by their indices, the larger of both ways."""
    measure = _function(divergence)
    if measure is max_divergence:
        wide = wide_outputs_of(m, lams)
        # ratios of outputs that are no floats count, too
        return lambda i, j: float(either_log_ratio(wide[i], wide[j]).max(initial=0.0))
    outputs = outputs_of(m, lams)
    return lambda i, j: max(measure(outputs[i], outputs[j]), measure(outputs[j], outputs[i]))


def _function(divergence: Divergence) -> Callable[[Floats, Floats], float]:
    if callable(divergence):
        return divergence
    name = divergence_name(divergence, orders=True)
    order = order_of(name)
    if order is not None:
        return partial(renyi, order=float(order))
    return FUNCTIONS[name]
