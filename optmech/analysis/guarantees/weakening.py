"""What a bound of one divergence says of another (CM19 Prop. 10, Fig. 4); proofs are in
docs/theory.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from optmech.analysis.guarantees.guarantee import RULES, Guarantee
from optmech.errors import ProblemError
from optmech.exact.number import product_up
from optmech.exact.ratios.generators import divergence_name

_UP = 1 + 2.0**-50
"""More than a few roundings take away."""


@dataclass(frozen=True)
class _Bound:
    """The largest D for a given D', and its slope at 0 where it is concave: a rate per unit."""

    of: Callable[[float], float]
    slope: float | None = None


_SAME = _Bound(lambda e: e, 1.0)
_HALF = _Bound(lambda e: -math.expm1(-e / 2), 0.5)
_PINSKER = _Bound(lambda e: min(math.sqrt(e) * math.sqrt(0.5), math.sqrt(-math.expm1(-e))))
_BOUNDS: dict[tuple[str, str], _Bound] = {
    ("max", "kl"): _SAME,
    ("max", "tv"): _Bound(lambda e: -math.expm1(-e), 1.0),
    ("max", "chi2"): _Bound(lambda e: math.inf if e > 700 else math.expm1(e)),
    ("max", "hellinger"): _HALF,
    ("chi2", "kl"): _Bound(math.log1p, 1.0),
    ("chi2", "tv"): _Bound(
        lambda e: math.sqrt(e) / 2 if e <= 1 else 1.0 if e == math.inf else e / (1 + e)
    ),
    ("chi2", "hellinger"): _Bound(lambda e: -math.expm1(-math.log1p(e) / 2), 0.5),
    ("kl", "tv"): _PINSKER,
    ("kl", "hellinger"): _HALF,
    ("reverse_kl", "tv"): _PINSKER,
    ("reverse_kl", "hellinger"): _HALF,
    ("hellinger", "tv"): _Bound(lambda e: math.sqrt(min(1.0, e) * (2 - min(1.0, e)))),
    ("tv", "hellinger"): _SAME,
}


def weaken(premise: Guarantee, divergence: str) -> Guarantee:
    """What a bound of one divergence says of another, pair by pair (CM19 Prop. 10, Fig. 4).

    Beyond D <= D', of which the paper has kl <= max: the largest D that D' <= ε leaves, attained
    for all but "tv" from "kl" and "reverse_kl" (docs/theory.md). Rounded up. Bounds of "max" both
    ways give less still: ``named_chord``.

    Raises
    ------
    ProblemError
        Where the premise sets mass aside or bounds nothing: rare reports can make "max", "chi2"
        and, from any but these two, "kl" as large as they like; or where a rate per unit of a
        distance would not stay one.
    """
    name = divergence_name(divergence)
    if name == premise.divergence:
        return premise
    if premise.of == "probabilistic" or premise.delta > 0:
        raise ProblemError(
            f"mass that is set aside may be as far apart as it likes in {name}",
            where="premise",
            remedy="Start from a guarantee with δ = 0 that is not probabilistic",
        )
    bound = _BOUNDS.get((premise.divergence, name))
    if bound is None:
        raise ProblemError(
            f"a bound of {premise.divergence} gives none of {name}", where="divergence"
        )
    epsilon = premise.epsilon
    if premise.per:
        if bound.slope is None:
            raise ProblemError(
                f"{name} is not proportional to {premise.divergence}",
                where="premise",
                remedy="State it for pairs at a given distance instead of per unit of it",
            )
        epsilon = product_up(epsilon, bound.slope)
    elif bound is not _SAME and epsilon > 0:
        # where e / 2 is no float it may have been rounded to 0
        epsilon = math.nextafter(bound.of(epsilon) * _UP, math.inf)
        epsilon = min(RULES[name].largest, epsilon)
    theorem = f"CM19 Proposition 10 after {premise.theorem}"
    return replace(premise, divergence=name, epsilon=epsilon, theorem=theorem)
