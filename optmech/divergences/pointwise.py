"""Transport between the rows of a mechanism: what its points tell of distributions, without any
metric (docs/theory.md, "Transport between rows, and populations known roughly")."""

from __future__ import annotations

import math

import numpy as np

from optmech.analysis.guarantees.guarantee import RULES, Guarantee
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.exponentials import stated_down, stated_up
from optmech.exact.number import Number, parse_exact, rounded_up
from optmech.exact.ratios.generators import divergence_name, generator
from optmech.exact.rounding import exp_down
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares
from optmech.transport.rational import cheapest_plan, outside

_UNIT = 2.0**-53
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

    No metric is involved, and the bound is at most that of a coupling within a relation (DP19 and
    CM19 Theorem 1) and of ε W_1 (CM19 Theorem 2). For "max" it is (ε, δ): the least mean of the δ
    that each pair of points needs at ``epsilon``, so that one call for each ε draws a curve. To
    measure the pair itself look at the outputs: ``distribution_epsilon``, ``hockey_stick``. This
    is what looking at points alone can tell.

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
    """
    name = divergence_name(divergence)
    if (epsilon is None) == (name == "max"):
        raise ProblemError(
            'is needed for "max"' if epsilon is None else f"{name} has none",
            where="epsilon",
            remedy='Give it with "max" alone',
        )
    first, second = Shares.of(lam0, "lam0"), Shares.of(lam1, "lam1")
    for shares, where in ((first, "lam0"), (second, "lam1")):
        if len(shares) != len(m.secrets):
            raise ProblemError(f"{len(shares)} weights for {len(m.secrets)} secrets", where=where)
    if epsilon is None:
        costs = _divergences(m.matrix, first.support, second.support, name)
        value = min(RULES[name].largest, _least(first, second, costs))
        return Guarantee(value, 0.0, _PAIR, _WHY, divergence=name)
    rate = parse_exact(epsilon, where="epsilon")
    costs = _deltas(m.matrix, first.support, second.support, stated_down(rate))
    delta = min(1.0, _least(first, second, costs))
    return Guarantee(stated_up(rate), delta, _PAIR, _WHY)


_PAIR = "the given pair, in this order"
_WHY = "transport between rows (DP19, CM19 Theorems 1, 2)"


def _least(first: Shares, second: Shares, costs: Floats) -> float:
    """The least Σ γ c, rounded up; inf where mass has to move at a cost of inf."""
    finite = np.isfinite(costs)
    if not finite.all():
        if outside(first, second, finite):
            return math.inf
        # a cycle of the difference of two plans has at most n + m arcs
        dear = 2.0 * (sum(costs.shape) + 1) * (float(costs[finite].max(initial=0.0)) or 1.0)
        costs = np.where(finite, costs, dear)
    return rounded_up(cheapest_plan(first, second, costs).cost(costs))


def _divergences(matrix: Floats, rows: list[int], columns: list[int], name: str) -> Floats:
    """D of every pair of rows, raised by more than roundings amount to."""
    out = np.zeros((len(matrix), len(matrix)))
    others = matrix[columns]
    for s in rows:
        if name == "tv":
            terms = np.maximum(matrix[s] - others, 0.0)
        else:
            terms = generator(name).terms(matrix[s], others)
        found = terms.sum(axis=1) * (1 + _RELATIVE) + _ABSOLUTE
        same = (others == matrix[s]).all(axis=1)
        out[s, columns] = np.where(same, 0.0, found)
    return out


def _deltas(matrix: Floats, rows: list[int], columns: list[int], rate: float) -> Floats:
    """The δ that every pair needs at ε, from above: Σ max(0, p - e^ε q), roundings charged."""
    out = np.zeros((len(matrix), len(matrix)))
    factor = float(exp_down(np.array(rate))) * (1 - 8 * _UNIT) if rate else 1.0 - 8 * _UNIT
    others = matrix[columns]
    for s in rows:
        parts = np.maximum(matrix[s] * (1 + 8 * _UNIT) - factor * others, 0.0)
        found = parts.sum(axis=1) * (1 + 4 * (matrix.shape[1] + 4) * _UNIT)
        same = (others == matrix[s]).all(axis=1)
        out[s, columns] = np.where(same, 0.0, found)
    return out
