"""``optmech.analysis.guarantees`` as divergences have it: the divergence first, and no δ."""

from __future__ import annotations

from optmech.analysis.guarantees import guarantee
from optmech.analysis.guarantees.guarantee import ALL_POINTS, Guarantee
from optmech.exact.number import Number


def points(
    divergence: str, epsilon: Number, pairs: str = ALL_POINTS, *, per: str = ""
) -> Guarantee:
    """A premise: D(p(·|s) ‖ p(·|s')) <= ε for ``pairs`` (CM19 Def. 9), or per unit of a distance
    (Def. 10), known from a construction or measured with ``point_epsilon``."""
    return guarantee.points(epsilon, 0, pairs, per=per, divergence=divergence)


def distributions(divergence: str, epsilon: Number, pairs: str, *, per: str = "") -> Guarantee:
    """A premise: D(λP ‖ λ'P) <= ε for ``pairs`` (CM19 Def. 11, 12)."""
    return guarantee.distributions(epsilon, 0, pairs, per=per, divergence=divergence)
