"""What guarantees are about, in words: pairs of distributions after the pairs of points that they
come from."""

from __future__ import annotations

from optmech.errors import ProblemError

ALL_POINTS, ALL_DISTRIBUTIONS = "all pairs of points", "all pairs of distributions"
_COUPLED = "pairs that couple within "
_OPTIMALLY = "pairs with an optimal coupling within "
_MASSES = "pairs of points whose point masses are among "


def lifted_pairs(points: str, metric: bool = False) -> str:
    """Φ# for the pairs Φ of points; with ``metric`` those of which an optimal plan lies in Φ."""
    if metric and points == ALL_POINTS:
        return ALL_DISTRIBUTIONS
    return f"{_OPTIMALLY if metric else _COUPLED}{points}"


def point_pairs(distributions: str) -> str:
    """The pairs of points whose point masses are among these pairs: Φ for Φ#."""
    if distributions == ALL_DISTRIBUTIONS:
        return ALL_POINTS
    for prefix in (_COUPLED, _OPTIMALLY):
        if distributions.startswith(prefix):
            return distributions.removeprefix(prefix)
    return f"{_MASSES}{distributions}"


def ground_distance(per: str) -> str:
    """d of "W_1 of d", whatever the order.

    Raises
    ------
    ProblemError
        Where ``per`` is no Wasserstein distance.
    """
    metric, _, distance = per.partition(" of ")
    if not metric.startswith("W_") or not distance:
        raise ProblemError(
            f"is per unit of {per!r}, not of a Wasserstein distance",
            where="premise",
            remedy='Name the distance "W_1 of d" or "W_∞ of d"',
        )
    return distance


def require_kind(found: str, needed: str) -> None:
    """Refuse a premise about points where distributions are needed, and so on."""
    if found != needed:
        raise ProblemError(
            f"is a guarantee of {found}, and one of {needed} is needed", where="premise"
        )
