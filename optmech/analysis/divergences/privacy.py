"""The privacy of a mechanism under any divergence: of points, and of distributions (Kawamoto and
Murakami, Allerton 2019, §III); and what its points tell of distributions without any metric
(docs/theory/populations.md, "Transport between rows, and populations known roughly")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.distributional import Pairwise, every_pair, outputs_of, wide_outputs_of
from optmech.analysis.divergences.named import FUNCTIONS, max_divergence, renyi
from optmech.analysis.guarantees.guarantee import RULES, Guarantee
from optmech.analysis.measures import IndexPairs, neighbours, per_unit
from optmech.analysis.probabilities import shares
from optmech.base.arrays import Floats
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import nonnegative
from optmech.exact.exponentials import stated_down, stated_up
from optmech.exact.number import Number, parse_exact, rounded_up
from optmech.exact.ratios.generators import divergence_name, generator, order_of
from optmech.exact.ratios.wide import either_log_ratio
from optmech.exact.rounding import UNIT, exp_down
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares
from optmech.transport.rational import cheapest_plan, outside

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
    """The least ε with D(p(·|s) ‖ p(·|s')) <= ε d(s, s'), both ways (Kawamoto and Murakami,
    Allerton 2019, Def. 9, 10).

    ``divergence`` is "kl", "reverse_kl", "tv", "chi2", "hellinger", "max", or a function of two
    arrays, such as ``lambda p, q: om.divergences.renyi(p, q, 2)``. Without ``distance`` d = 1;
    ``pairs`` limits it to index pairs. inf where secrets at distance 0 differ.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.divergences.point_epsilon(m, "tv"))
    0.5
    >>> print(round(om.divergences.point_epsilon(m, lambda p, q: om.divergences.renyi(p, q, 2)), 4))
    0.8473
    """
    measure = _function(divergence)
    worst = 0.0
    for i, others, scale in neighbours(m, distance, pairs):
        spent = [measure(m.matrix[i], m.matrix[j]) for j in others.tolist()]
        worst = max(worst, float(per_unit(spent, scale).max(initial=0.0)))
    return worst


@checked_arguments
def epsilon_of_distributions(
    m: Mechanism,
    pairs: Sequence[tuple[Distribution, Distribution]],
    divergence: Divergence,
    *,
    scale: ArrayLike | None = None,
) -> float:
    """The least ε with D(λP ‖ λ'P) <= ε · scale for every pair, both ways (Kawamoto and Murakami,
    Allerton 2019, Def. 11, 12).

    ``pairs`` holds (λ, λ'), distributions over the secrets, normalised here; ``scale`` one number
    >= 0 per pair (W_1(λ, λ') for the extended form), default 1. inf where a pair of scale 0 is told
    apart. ``divergence`` as in ``point_epsilon``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.divergences.epsilon_of_distributions(m, [([1, 0], [0, 1])], "tv"))
    0.5
    """
    if not len(pairs):
        raise ProblemError("there is no pair", where="pairs", remedy="Give at least one")
    given = np.ones(len(pairs)) if scale is None else scale
    factors = nonnegative(given, "scale", (len(pairs),))
    spent = []
    for k, pair in enumerate(pairs):
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise ProblemError("is not a pair of distributions", where=f"pairs[{k}]")
        with inside(f"pairs[{k}]"):
            between = _between(m, pair, divergence)
        spent.append(between(0, 1))
    return float(per_unit(spent, factors).max())


@checked_arguments
def pairwise(m: Mechanism, lams: Sequence[Distribution], divergence: Divergence) -> Pairwise:
    """D(λP ‖ λ'P) for every pair of ``lams``, the larger of both ways (Kawamoto and Murakami,
    Allerton 2019, Def. 11).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.divergences.pairwise(m, [[1, 0], [0, 1]], "kl").values.round(4))  # ½ ln 3
    [[0.     0.5493]
     [0.5493 0.    ]]
    """
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


_RELATIVE, _ABSOLUTE = 2.0**-40, 2.0**-45
"""By which divergences of rows are raised, beyond what their roundings amount to."""


@checked_arguments
def by_transport(
    m: Mechanism,
    lam0: Distribution,
    lam1: Distribution,
    *,
    divergence: str = "max",
    epsilon: Number | None = None,
) -> Guarantee:
    """What the rows of a mechanism say of two distributions of its secret: at most the least
    Σ γ D(P_s ‖ P_s') over couplings γ of the two, for every jointly convex D.

    No metric is involved, and the bound is at most that of a coupling within a relation (Kawamoto
    and Murakami, ESORICS 2019, and Kawamoto and Murakami, Allerton 2019, Theorem 1) and of ε W_1
    (Kawamoto and Murakami, Allerton 2019, Theorem 2). For "max" it is (ε, δ): the least mean of the
    δ that each pair of points needs at ``epsilon``, so that one call for each ε draws a curve. To
    measure the pair itself look at the outputs: ``distribution_epsilon``, ``hockey_stick``. This is
    what looking at points alone can tell.

    Parameters
    ----------
    m:
        A mechanism; its probabilities count as their floats.
    lam0, lam1:
        Distributions over its secrets; weights count as what they are.
    divergence:
        "max", "kl", "reverse_kl", "tv", "chi2" or "hellinger".
    epsilon:
        ε >= 0, for "max" only, which needs it.

    Raises
    ------
    ProblemError
        On distributions that do not fit, an unknown divergence, or an ε that is missing or unused.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> promise = om.divergences.by_transport(m, [0.75, 0.25], [0.25, 0.75], divergence="tv")
    >>> print(round(promise.epsilon, 4))  # half of the mass moves, between rows 1/2 apart
    0.25
    """
    name = divergence_name(divergence)
    if (epsilon is None) == (name == "max"):
        raise ProblemError(
            'is needed for "max"' if epsilon is None else f"{name} has none",
            where="epsilon",
            remedy='Give it with "max" alone',
        )
    first, second = shares(m, lam0, "lam0"), shares(m, lam1, "lam1")
    if epsilon is None:

        def apart(p: Floats, q: Floats) -> Floats:
            terms = np.maximum(p - q, 0.0) if name == "tv" else generator(name).terms(p, q)
            # by more than roundings amount to
            return np.asarray(terms.sum(axis=1) * (1 + _RELATIVE) + _ABSOLUTE)

        value = min(RULES[name].largest, _least(first, second, m.matrix, apart))
        return Guarantee(value, 0.0, _PAIR, _WHY, divergence=name)
    rate = parse_exact(epsilon, where="epsilon")
    low = stated_down(rate)
    factor = (float(exp_down(np.array(low))) if low else 1.0) * (1 - 8 * UNIT)

    def spent(p: Floats, q: Floats) -> Floats:
        """Σ max(0, p - e^ε q), from above."""
        parts = np.maximum(p * (1 + 8 * UNIT) - factor * q, 0.0)
        return np.asarray(parts.sum(axis=1) * (1 + 4 * (len(p) + 4) * UNIT))

    delta = min(1.0, _least(first, second, m.matrix, spent))
    return Guarantee(stated_up(rate), delta, _PAIR, _WHY)


_PAIR = "the given pair, in this order"
_WHY = "transport between rows (DP19, CM19 Theorems 1, 2)"


def _least(
    first: Shares, second: Shares, matrix: Floats, apart: Callable[[Floats, Floats], Floats]
) -> float:
    """The least Σ γ c over couplings, rounded up, c what every pair of rows is ``apart``; inf where
    mass has to move at a cost of inf."""
    costs, columns = np.zeros((len(matrix), len(matrix))), second.support
    others = matrix[columns]
    for s in first.support:
        same = (others == matrix[s]).all(axis=1)
        costs[s, columns] = np.where(same, 0.0, apart(matrix[s], others))
    finite = np.isfinite(costs)
    if not finite.all():
        if outside(first, second, finite):
            return math.inf
        # a cycle of the difference of two plans has at most n + m arcs
        dear = 2.0 * (sum(costs.shape) + 1) * (float(costs[finite].max(initial=0.0)) or 1.0)
        costs = np.where(finite, costs, dear)
    return rounded_up(cheapest_plan(first, second, costs).cost(costs))
