"""What is guaranteed, under which divergence, how guarantees of that divergence behave, and what a
bound of one divergence says of another (Kawamoto and Murakami, Allerton 2019, Prop. 10, Fig. 4;
proofs are in docs/theory/families.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from optmech.errors import ProblemError
from optmech.exact.arguments import probability
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, from_above, parse_exact, product_up
from optmech.exact.ratios.generators import divergence_name
from optmech.spaces.arguments import checked_arguments, kind

ALL_POINTS, ALL_DISTRIBUTIONS = "all pairs of points", "all pairs of distributions"
_NAMES = {
    "points": "differential privacy",
    "distributions": "distribution privacy",
    "probabilistic": "probabilistic distribution privacy",
}


@dataclass(frozen=True)
class Rules:
    """What theorems need to know of a divergence."""

    metric: str = "W_1"
    """The Wasserstein distance to which a rate per unit of d is lifted. W_1 needs joint convexity,
    which the max divergence has not (docs/theory/families.md)."""
    joint: int = 0
    """Two outputs spend ε₀ + ε₁ + joint · ε₀ε₁, attained by independent noise."""
    steps: int | None = None
    """A chain of c pairs spends at most c to this power times ε; None: as much as it likes."""
    largest: float = math.inf
    """No divergence is above it. Where it is finite, mass that a coupling leaves out costs no more
    than itself, and elsewhere any mass may cost everything."""


RULES = {
    "max": Rules(metric="W_∞", steps=1),
    "kl": Rules(),
    "reverse_kl": Rules(),
    "tv": Rules(joint=-1, steps=1, largest=1.0),
    "chi2": Rules(joint=1),
    # its root is a metric
    "hellinger": Rules(joint=-1, steps=2, largest=1.0),
}


@kind("Make one with om.guarantees.points or om.guarantees.distributions")
@dataclass(frozen=True)
class Guarantee:
    """D(μ ‖ μ') <= ε for the outputs of certain pairs of inputs.

    Of the max divergence this is (ε, δ)-indistinguishability, with δ the mass that is set aside:
    between points differential privacy (Kawamoto and Murakami, ESORICS 2019, Def. 1, 4), between
    distributions distribution privacy (Def. 8, 9). Of the others it is divergence privacy (Kawamoto
    and Murakami, Allerton 2019, Def. 9 to 12), and δ is 0. Where ``per`` names a distance, ε is per
    unit of it.

    Raises
    ------
    ProblemError
        On a divergence that is unknown, or has no δ and no probabilistic form.

    Examples
    --------
    >>> promise = om.guarantees.points("ln 2")
    >>> print(round(promise.epsilon, 4), promise.delta, promise.of)
    0.6931 0.0 points
    >>> promise.cited("Theorem 1", "Theorem 2").endswith("Theorem 1"), promise.capped(0.5)
    (True, 0.5)
    """

    epsilon: float
    delta: float
    pairs: str
    """For which pairs, in words."""
    theorem: str
    """Why: the theorem, and what it was applied to."""
    of: str = "distributions"
    """ "points", "distributions" or "probabilistic" (Kawamoto and Murakami, ESORICS 2019, Def. 16).
    """
    per: str = ""
    """The distance that ε is per unit of; "" for none."""
    divergence: str = "max"
    """ "max", "kl", "reverse_kl", "tv", "chi2" or "hellinger"."""

    def __post_init__(self) -> None:
        if divergence_name(self.divergence) != "max" and (
            self.delta != 0 or self.of == "probabilistic"
        ):
            raise ProblemError(
                f"{self.divergence} divergence sets no mass aside",
                where="delta",
                remedy='Only "max" has a δ and a probabilistic form',
            )

    @property
    def rules(self) -> Rules:
        """How guarantees of this divergence behave."""
        return RULES[self.divergence]

    def cited(self, dp19: str, cm19: str) -> str:
        """The theorem that is meant: of Kawamoto and Murakami, ESORICS 2019, for the max
        divergence, of Kawamoto and Murakami, Allerton 2019, for the others.
        """
        return f"DP19 {dp19}" if self.divergence == "max" else f"CM19 {cm19}"

    def capped(self, epsilon: float) -> float:
        """``epsilon``, or what no divergence is above; a rate may be above it."""
        return epsilon if self.per else min(self.rules.largest, epsilon)

    def __str__(self) -> str:
        rate = f" per unit of {self.per}" if self.per else ""
        if self.divergence == "max":
            return (
                f"({from_above(self.epsilon)}, {from_above(self.delta)})-{_NAMES[self.of]}{rate} "
                f"for {self.pairs}, by {self.theorem}"
            )
        return (
            f"{self.divergence} divergence at most {from_above(self.epsilon)}{rate} "
            f"for {self.pairs} ({self.of}), by {self.theorem}"
        )


def points(
    epsilon: Number,
    delta: Number = 0.0,
    pairs: str = ALL_POINTS,
    *,
    per: str = "",
    divergence: str = "max",
) -> Guarantee:
    """The premise of the others: (ε, δ)-privacy of points for ``pairs`` (Kawamoto and Murakami,
    ESORICS 2019, Def. 1, 4), or D(p(·|s) ‖ p(·|s')) <= ε for another divergence (Kawamoto and
    Murakami, Allerton 2019, Def. 9, 10), known from a mechanism's construction or measured.

    Examples
    --------
    >>> print(om.guarantees.points(0.5, per="km").per)
    km
    """
    return _premise(epsilon, delta, pairs, "points", per, divergence)


def distributions(
    epsilon: Number, delta: Number, pairs: str, *, per: str = "", divergence: str = "max"
) -> Guarantee:
    """A premise: (ε, δ)-distribution privacy for ``pairs`` (Kawamoto and Murakami, ESORICS 2019,
    Def. 8, 9), or D(λP ‖ λ'P) <= ε for another divergence (Kawamoto and Murakami, Allerton 2019,
    Def. 11, 12).

    Examples
    --------
    >>> promise = om.guarantees.distributions("ln 2", 0, "two towns")
    >>> print(round(promise.epsilon, 4), promise.of)
    0.6931 distributions
    """
    return _premise(epsilon, delta, pairs, "distributions", per, divergence)


def probabilistic(epsilon: Number, delta: Number, pairs: str) -> Guarantee:
    """A premise: (ε, δ)-probabilistic distribution privacy for ``pairs``, both ways (Kawamoto and
    Murakami, ESORICS 2019, Def. 16): outside a set of reports of probability at most δ under
    either, ratios are at most e^ε.

    Examples
    --------
    >>> print(om.guarantees.probabilistic(0.5, 0.01, "two towns").delta)
    0.01
    """
    return _premise(epsilon, delta, pairs, "probabilistic", "", "max")


def _premise(
    epsilon: Number, delta: Number, pairs: str, of: str, per: str, divergence: str
) -> Guarantee:
    rate = stated_up(parse_exact(epsilon, where="epsilon"))
    aside = stated_up(probability(delta))
    return Guarantee(rate, aside, pairs, "assumption", of, per, divergence_name(divergence))


def require(
    premise: Guarantee, of: str, divergence: str = "", *, rate: bool | None = None, use: str = ""
) -> None:
    """Refuse a premise about points where distributions are needed, or of another divergence than
    the theorem knows; and with ``rate`` one that is (not) per unit of a distance, for which ``use``
    is the function to call."""
    for found, needed in ((premise.of, of), (premise.divergence, divergence or premise.divergence)):
        if found != needed:
            raise ProblemError(
                f"is a guarantee of {found}, and one of {needed} is needed", where="premise"
            )
    if rate is not None and rate != bool(premise.per):
        raise ProblemError(
            f"is{'' if premise.per else ' not'} per unit of a distance",
            where="premise",
            remedy=use,
        )


def require_kept(premise: Guarantee) -> None:
    """Refuse what post-processing does not keep."""
    if premise.of == "probabilistic":
        raise ProblemError(
            "a probabilistic guarantee need not survive post-processing",
            where="premise",
            remedy="Take from_probabilistic of it first",
        )


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


@checked_arguments
def weaken(premise: Guarantee, divergence: str) -> Guarantee:
    """What a bound of one divergence says of another, pair by pair (Kawamoto and Murakami, Allerton
    2019, Prop. 10, Fig. 4).

    Beyond D <= D', of which the paper has kl <= max: the largest D that D' <= ε leaves, attained
    for all but "tv" from "kl" and "reverse_kl" (docs/theory/families.md). Rounded up. Bounds of
    "max" both ways give less still: ``named_chord``.

    Raises
    ------
    ProblemError
        Where the premise sets mass aside or bounds nothing: rare reports can make "max", "chi2"
        and, from any but these two, "kl" as large as they like; or where a rate per unit of a
        distance would not stay one.

    Examples
    --------
    >>> rows = om.guarantees.points("ln 3")
    >>> print(round(om.guarantees.weaken(rows, "tv").epsilon, 4))  # 1 - 1/3
    0.6667
    >>> kl = om.guarantees.points(0.02, divergence="kl")
    >>> print(om.guarantees.weaken(kl, "tv").epsilon <= 0.1001)  # Pinsker: √(0.02 / 2)
    True
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
