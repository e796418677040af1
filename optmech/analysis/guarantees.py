"""Guarantees that follow by theorem, without looking at a matrix (DP19 §3.4, §4, §5; App. B).

Every function returns a ``Guarantee``: what holds, for which pairs, and by which theorem. The
constants are the tight ones of docs/theory.md, where the proofs are; the paper loses a factor |Φ|
on δ that is not needed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from optmech.analysis.lifted_words import (
    ALL_POINTS,
    ground_distance,
    lifted_pairs,
    point_pairs,
    require_kind,
)
from optmech.errors import ProblemError
from optmech.exact.checked import probability, whole
from optmech.exact.exponentials import stated_up
from optmech.exact.number import parse_exact, product_up, sum_up
from optmech.spaces.prior import Prior
from optmech.transport import Coupling, Violation, lifted, wasserstein
from optmech.transport.carry import CarryOver as CarryOver
from optmech.transport.carry import carry_over as carry_over
from optmech.transport.carry import carry_over_many as carry_over_many

Number = float | str

_LARGEST_EXPONENT = 700.0
"""e^700 is a float64; δ that grows by more counts as 1."""
MOST_STEPS = 1_000_000
"""Steps of a transformation; more are taken for a mistake."""
_NAMES = {
    "points": "differential privacy",
    "distributions": "distribution privacy",
    "probabilistic": "probabilistic distribution privacy",
}


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-indistinguishability of the outputs for certain pairs of inputs.

    Between points it is differential privacy (DP19 Def. 1, 4), between distributions distribution
    privacy (Def. 8, 9). Where ``per`` names a distance, ε is per unit of it.
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

    def __str__(self) -> str:
        rate = f" per unit of {self.per}" if self.per else ""
        return (
            f"({self.epsilon:.6g}, {self.delta:.6g})-{_NAMES[self.of]}{rate} for {self.pairs}, "
            f"by {self.theorem}"
        )


def points(
    epsilon: Number, delta: Number = 0.0, pairs: str = ALL_POINTS, per: str = ""
) -> Guarantee:
    """The premise of the others: (ε, δ)-privacy of points for ``pairs`` (DP19 Def. 1, 4), known
    from a mechanism's construction or measured."""
    return Guarantee(*_budget(epsilon, delta), pairs, "assumption", "points", per)


def distributions(epsilon: Number, delta: Number, pairs: str, per: str = "") -> Guarantee:
    """A premise: (ε, δ)-distribution privacy for ``pairs`` (DP19 Def. 8, 9)."""
    return Guarantee(*_budget(epsilon, delta), pairs, "assumption", "distributions", per)


def probabilistic(epsilon: Number, delta: Number, pairs: str) -> Guarantee:
    """A premise: (ε, δ)-probabilistic distribution privacy for ``pairs``, both ways (DP19 Def. 16):
    outside a set of reports of probability at most δ under either, ratios are at most e^ε."""
    return Guarantee(*_budget(epsilon, delta), pairs, "assumption", "probabilistic")


def lift(premise: Guarantee) -> Guarantee:
    """From points to distributions: Φ gives Φ#, a distance d gives W_∞,d, with the same ε and δ
    (DP19 Theorems 1 and 2, without their factor |Φ|)."""
    _require(premise, "points")
    if premise.per:
        return replace(
            premise,
            of="distributions",
            per=f"W_∞ of {premise.per}",
            pairs=lifted_pairs(premise.pairs, metric=True),
            theorem="DP19 Theorem 2, tight",
        )
    return replace(
        premise,
        of="distributions",
        pairs=lifted_pairs(premise.pairs),
        theorem="DP19 Theorem 1, tight",
    )


def lift_pair(
    premise: Guarantee, lam0: ArrayLike | Prior, lam1: ArrayLike | Prior, relation: ArrayLike
) -> Guarantee | Violation:
    """``lift`` for one pair: the guarantee where a coupling inside the relation Φ exists, else the
    set that shows that there is none (DP19 Def. 7).

    ``relation`` is Φ as a boolean array of shape (n, n), the pairs that the premise is about. A
    coupling may leave mass within rounding (see ``transport``) outside; it is added to δ.
    """
    _require(premise, "points")
    if premise.per:
        raise ProblemError(
            "the premise is per unit of a distance", where="premise", remedy="Use lift_metric_pair"
        )
    found = lifted(lam0, lam1, relation)
    if isinstance(found, Violation):
        return found
    return replace(
        premise,
        of="distributions",
        pairs="the given pair",
        delta=_with_loss(premise.delta, found),
        theorem="DP19 Theorem 1, tight, by a coupling",
    )


def lift_metric_pair(
    premise: Guarantee,
    lam0: ArrayLike | Prior,
    lam1: ArrayLike | Prior,
    distance_matrix: ArrayLike,
) -> Guarantee:
    """(ε W_∞(λ0, λ1), δ) for one pair, from ε per unit of d (DP19 Theorem 2, tight)."""
    _require(premise, "points")
    if not premise.per:
        raise ProblemError(
            "the premise is not per unit of a distance", where="premise", remedy="Use lift_pair"
        )
    found = wasserstein(lam0, lam1, distance_matrix, math.inf)
    return Guarantee(
        product_up(premise.epsilon, found.value),
        _with_loss(premise.delta, found),
        "the given pair",
        f"DP19 Theorem 2, tight, with W_∞ = {found.value:.6g}",
    )


def compose_shared(first: Guarantee, second: Guarantee) -> Guarantee:
    """Both outputs of two mechanisms on the *same* input: (ε₀+ε₁, δ₀+δ₁).

    For points, and by ``lift`` afterwards for distributions (DP19 Prop. 3, 4 without |Φ|). It is
    false for distribution privacy of given pairs only (docs/theory.md has two bits and their
    exclusive or): hence points.
    """
    for guarantee in (first, second):
        _require(guarantee, "points")
    return _sum(first, second, "DP composition (DP19 Prop. 3, 4), tight")


def compose_independent(first: Guarantee, second: Guarantee) -> Guarantee:
    """Outputs on *independent* inputs from the same unknown λ: (ε₀+ε₁, δ₀+δ₁) (DP19 Prop. 5)."""
    for guarantee in (first, second):
        _require(guarantee, "distributions")
    return _sum(first, second, "DP19 Proposition 5")


def post_process(premise: Guarantee) -> Guarantee:
    """Whatever is computed from the output alone keeps the guarantee (DP19 Prop. 6).

    Raises
    ------
    ProblemError
        On a probabilistic premise: a rare report that tells much, counted together with a frequent
        one, makes the frequent one tell more.
    """
    _require_kept(premise)
    return replace(premise, theorem=f"DP19 Proposition 6 after {premise.theorem}")


def pre_process(premise: Guarantee, stability: int) -> Guarantee:
    """After a c-stable transformation of the input distribution (DP19 Def. 10, Prop. 7).

    Per unit of W: ε grows to cε and δ stays. For an adjacency that is walked c steps, the steps
    compound: (cε, (1 + e^ε + … + e^{(c-1)ε}) δ); the paper writes δ, which its proof does not
    give for δ > 0.
    """
    _require(premise, "distributions")
    count = whole(stability, "stability", least=1, most=MOST_STEPS)
    delta = premise.delta if premise.per else _chained(premise.delta, [premise.epsilon] * count)
    return replace(
        premise,
        epsilon=product_up(count, premise.epsilon),
        delta=delta,
        theorem=f"DP19 Proposition 7 with c = {count}",
    )


def close_beliefs(premise: Guarantee) -> Guarantee:
    """Against beliefs λ̃ such that (λ̃0, λ0) and (λ1, λ̃1) are themselves pairs of the premise:
    (3ε, (1 + e^ε + e^{2ε}) δ) (DP19 Prop. 2)."""
    _require(premise, "distributions")
    if premise.per:
        raise ProblemError(
            "is per unit of a distance", where="premise", remedy="Use close_beliefs_metric"
        )
    return replace(
        premise,
        epsilon=product_up(3, premise.epsilon),
        delta=_chained(premise.delta, [premise.epsilon] * 3),
        pairs=f"beliefs adjacent to {premise.pairs}",
        theorem="DP19 Proposition 2",
    )


def close_beliefs_metric(premise: Guarantee, distance: float, closeness: float) -> Guarantee:
    """Against beliefs with W(λ, λ̃) <= c = ``closeness``, for a pair at W = ``distance``:
    e^{ε(W + 2c)} (DP19 Prop. 1), and δ (1 + e^{εc} + e^{ε(c + W)})."""
    _require(premise, "distributions")
    if not premise.per:
        raise ProblemError(
            "is not per unit of a distance", where="premise", remedy="Use close_beliefs"
        )
    apart = stated_up(parse_exact(distance, where="distance"))
    close = stated_up(parse_exact(closeness, where="closeness"))
    steps = [product_up(premise.epsilon, length) for length in (close, apart, close)]
    return Guarantee(
        sum_up(*steps),
        _chained(premise.delta, steps),
        f"beliefs within {close:g} of a pair at distance {apart:g}",
        "DP19 Proposition 1",
    )


def restrict(premise: Guarantee) -> Guarantee:
    """From distributions back to points, ``lift`` undone: point masses are distributions, couple
    within Φ where their points are in it, and are W_p = d apart (DP19 Theorem 4).

    Raises
    ------
    ProblemError
        Unless the premise is about distributions, at once or per unit of a Wasserstein distance.
    """
    _require(premise, "distributions")
    return replace(
        premise,
        of="points",
        pairs=point_pairs(premise.pairs),
        per=ground_distance(premise.per) if premise.per else "",
        theorem="DP19 Theorem 4",
    )


def weaken_metric(premise: Guarantee) -> Guarantee:
    """From ε per unit of W_1 to the same per unit of W_∞, which is never smaller (CM19 Prop. 9)."""
    _require(premise, "distributions")
    distance = ground_distance(premise.per)
    return replace(premise, per=f"W_∞ of {distance}", theorem="CM19 Proposition 9")


def from_probabilistic(premise: Guarantee) -> Guarantee:
    """Probabilistic distribution privacy is distribution privacy, with the same ε and δ (DP19
    Prop. 9; Prop. 8 for δ = 0)."""
    _require(premise, "probabilistic")
    return replace(premise, of="distributions", theorem="DP19 Proposition 9")


def to_probabilistic(premise: Guarantee, epsilon: Number | None = None) -> Guarantee:
    """Distribution privacy as the probabilistic one: the same ε for δ = 0 (DP19 Prop. 8), else at a
    larger ε' = ``epsilon`` with δ (1 + e^{-ε'}) / (1 - e^{ε-ε'}) (docs/theory.md). The premise has
    to hold both ways.

    Raises
    ------
    ProblemError
        Unless ε' > ε (ε' >= ε for δ = 0), or if ε is per unit of a distance.
    """
    _require(premise, "distributions")
    if premise.per:
        raise ProblemError(
            "is per unit of a distance", where="premise", remedy="Take the pair's own ε"
        )
    own = premise.epsilon
    rate = own if epsilon is None else stated_up(parse_exact(epsilon, where="epsilon"))
    if rate < own or (rate == own and premise.delta > 0):
        raise ProblemError(
            f"{rate:g} is not above the premise's {own:g}",
            where="epsilon",
            remedy="(ε, δ)-privacy with δ > 0 says nothing probabilistic at its own ε",
        )
    delta = premise.delta
    if delta > 0:
        grown = (1 + math.exp(-rate)) / -math.expm1(own - rate) * (1 + 2.0**-50)
        delta = min(1.0, product_up(delta, grown))
    return replace(
        premise, epsilon=rate, delta=delta, of="probabilistic", theorem="DP19 Proposition 8"
    )


def with_dummies(premise: Guarantee) -> Guarantee:
    """The tupling mechanism around a mechanism with this guarantee (DP19 Prop. 10).

    Dummies and places are drawn without a look at the input, so this is post-processing: it holds
    for any law of the dummies, any δ, and for points as well, where the paper has uniform dummies,
    δ = 0 and distributions. At δ = 0 dummies that cover all reports gain nothing; for δ > 0 they
    do: ``Tupling.epsilon``.

    Raises
    ------
    ProblemError
        On a probabilistic premise, which post-processing does not keep.
    """
    _require_kept(premise)
    return replace(premise, theorem=f"DP19 Proposition 10 after {premise.theorem}")


def _budget(epsilon: Number, delta: Number) -> tuple[float, float]:
    return stated_up(parse_exact(epsilon, where="epsilon")), stated_up(probability(delta))


def _chained(delta: float, steps: list[float]) -> float:
    """δ after a chain of steps, rounded up: p₀ <= e^{ε₁}(e^{ε₂}(… + δ) + δ) + δ; at most 1."""
    if delta == 0:
        return 0.0
    if len(steps) == 1:
        return delta
    reached = list(itertools.accumulate(steps[:-1], initial=0.0))
    if reached[-1] > _LARGEST_EXPONENT:
        return 1.0
    total = math.fsum(map(math.exp, reached))
    # of every exponent the sums, of every power one unit
    room = 4 * (len(steps) + 1) * (1 + reached[-1]) * 2.0**-53
    return min(1.0, product_up(delta, total * (1 + room)))


def _sum(first: Guarantee, second: Guarantee, theorem: str) -> Guarantee:
    if (first.pairs, first.per) != (second.pairs, second.per):
        raise ProblemError(
            f"holds for {second.pairs}, the first for {first.pairs}",
            where="second",
            remedy="State both for the same pairs and the same distance",
        )
    return replace(
        first,
        epsilon=sum_up(first.epsilon, second.epsilon),
        delta=min(1.0, sum_up(first.delta, second.delta)),
        theorem=theorem,
    )


def _require(guarantee: Guarantee, of: str) -> None:
    require_kind(guarantee.of, of)


def _require_kept(guarantee: Guarantee) -> None:
    """Refuse what post-processing does not keep."""
    if guarantee.of == "probabilistic":
        raise ProblemError(
            "a probabilistic guarantee need not survive post-processing",
            where="premise",
            remedy="Take from_probabilistic of it first",
        )


def _with_loss(delta: float, coupling: Coupling) -> float:
    """δ and the mass that the coupling leaves out within rounding."""
    return min(1.0, sum_up(delta, coupling.missing))
