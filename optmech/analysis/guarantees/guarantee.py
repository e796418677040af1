"""What is guaranteed, under which divergence, and how guarantees of that divergence behave."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optmech.errors import ProblemError
from optmech.exact.checked import probability
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact
from optmech.exact.ratios.generators import divergence_name

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
    which the max divergence has not (docs/theory.md)."""
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


@dataclass(frozen=True)
class Guarantee:
    """D(μ ‖ μ') <= ε for the outputs of certain pairs of inputs.

    Of the max divergence this is (ε, δ)-indistinguishability, with δ the mass that is set aside:
    between points differential privacy (DP19 Def. 1, 4), between distributions distribution privacy
    (Def. 8, 9). Of the others it is divergence privacy (CM19 Def. 9 to 12), and δ is 0. Where
    ``per`` names a distance, ε is per unit of it.

    Raises
    ------
    ProblemError
        On a divergence that is unknown, or has no δ and no probabilistic form.
    """

    epsilon: float
    delta: float
    pairs: str
    """For which pairs, in words."""
    theorem: str
    """Why: the theorem, and what it was applied to."""
    of: str = "distributions"
    """ "points", "distributions" or "probabilistic" (DP19 Def. 16)."""
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
        """The theorem that is meant: of DP19 for the max divergence, of CM19 for the others."""
        return f"DP19 {dp19}" if self.divergence == "max" else f"CM19 {cm19}"

    def capped(self, epsilon: float) -> float:
        """``epsilon``, or what no divergence is above; a rate may be above it."""
        return epsilon if self.per else min(self.rules.largest, epsilon)

    def __str__(self) -> str:
        rate = f" per unit of {self.per}" if self.per else ""
        if self.divergence == "max":
            return (
                f"({self.epsilon:.6g}, {self.delta:.6g})-{_NAMES[self.of]}{rate} for {self.pairs}, "
                f"by {self.theorem}"
            )
        return (
            f"{self.divergence} divergence at most {self.epsilon:.6g}{rate} for {self.pairs} "
            f"({self.of}), by {self.theorem}"
        )


def points(
    epsilon: Number,
    delta: Number = 0.0,
    pairs: str = ALL_POINTS,
    *,
    per: str = "",
    divergence: str = "max",
) -> Guarantee:
    """The premise of the others: (ε, δ)-privacy of points for ``pairs`` (DP19 Def. 1, 4), or
    D(p(·|s) ‖ p(·|s')) <= ε for another divergence (CM19 Def. 9, 10), known from a mechanism's
    construction or measured."""
    return _premise(epsilon, delta, pairs, "points", per, divergence)


def distributions(
    epsilon: Number, delta: Number, pairs: str, *, per: str = "", divergence: str = "max"
) -> Guarantee:
    """A premise: (ε, δ)-distribution privacy for ``pairs`` (DP19 Def. 8, 9), or D(λP ‖ λ'P) <= ε
    for another divergence (CM19 Def. 11, 12)."""
    return _premise(epsilon, delta, pairs, "distributions", per, divergence)


def probabilistic(epsilon: Number, delta: Number, pairs: str) -> Guarantee:
    """A premise: (ε, δ)-probabilistic distribution privacy for ``pairs``, both ways (DP19 Def. 16):
    outside a set of reports of probability at most δ under either, ratios are at most e^ε."""
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
