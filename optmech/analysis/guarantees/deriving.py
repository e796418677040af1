"""What follows for several outputs, for what is made of inputs and outputs, and for other beliefs
(DP19 §3.4, §4, §5, App. B; CM19 §V)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from optmech.analysis.guarantees.guarantee import Guarantee, require, require_kept
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, product_up, rounded_up, sum_up
from optmech.spaces.arguments import checked_arguments

_LARGEST_EXPONENT = 700.0
"""e^700 is a float64; δ that grows by more counts as 1."""
MOST_STEPS = 1_000_000
"""Steps of a transformation under "max"; more are taken for a mistake."""


@checked_arguments
def compose_shared(first: Guarantee, second: Guarantee) -> Guarantee:
    """Both outputs of two mechanisms on the *same* input, for points; the second may look at the
    first one's output.

    (ε₀ + ε₁, δ₀ + δ₁) for "max", the sum for "kl" and "reverse_kl", 1 - (1 - ε₀)(1 - ε₁) for "tv"
    and "hellinger", (1 + ε₀)(1 + ε₁) - 1 for "chi2"; all attained by independent noise. ``lift``
    afterwards gives DP19 Prop. 3, 4 (without |Φ|) and CM19 Prop. 3, 4, which are about Φ#. For
    given pairs of distributions alone nothing composes (docs/theory.md has two bits and their
    exclusive or): hence points.
    """
    for guarantee in (first, second):
        require(guarantee, "points")
    if first.divergence == "max":
        return _composed(first, second, "DP composition (DP19 Prop. 3, 4), tight")
    return _composed(first, second, "composition (CM19 Prop. 3, 4, for points)")


@checked_arguments
def compose_independent(first: Guarantee, second: Guarantee) -> Guarantee:
    """Outputs on *independent* inputs from the same unknown λ, with the constants of
    ``compose_shared`` (DP19 Prop. 5; CM19 Prop. 5, 6, where they are given for "kl")."""
    for guarantee in (first, second):
        require(guarantee, "distributions")
    return _composed(first, second, first.cited("Proposition 5", "Proposition 5"))


@checked_arguments
def post_process(premise: Guarantee) -> Guarantee:
    """Whatever is computed from the output alone keeps the guarantee (DP19 Prop. 6, CM19 Prop. 7).

    Raises
    ------
    ProblemError
        On a probabilistic premise: a rare report that tells much, counted together with a frequent
        one, makes the frequent one tell more.
    """
    require_kept(premise)
    theorem = premise.cited("Proposition 6", "Proposition 7")
    return replace(premise, theorem=f"{theorem} after {premise.theorem}")


@checked_arguments
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
    require_kept(premise)
    return replace(premise, theorem=f"DP19 Proposition 10 after {premise.theorem}")


@checked_arguments
def pre_process(premise: Guarantee, stability: int) -> Guarantee:
    """After a c-stable transformation of the input distribution (DP19 Def. 10, Prop. 7; CM19 Def.
    13, Prop. 8).

    Per unit of a distance between distributions: cε, and δ stays. For an adjacency that is walked c
    steps: cε for "tv" and "max", c²ε for "hellinger", whose root is a metric; δ grows to
    (1 + e^ε + … + e^{(c-1)ε}) δ (DP19 writes δ, which its proof does not give for δ > 0). Refused
    for the others: CM19 Prop. 8 (1) states cε for every divergence, but two steps of "kl" or "chi2"
    can be as far apart as one likes (docs/theory.md).
    """
    require(premise, "distributions")
    most = MOST_STEPS if premise.divergence == "max" else None
    count = whole(stability, "stability", least=1, most=most)
    power = 1 if premise.per or count == 1 else premise.rules.steps
    if power is None:
        raise ProblemError(
            f"{premise.divergence} has no triangle inequality of any kind",
            where="premise",
            remedy='Use a guarantee per unit of a distance, or of "tv", "hellinger" or "max"',
        )
    delta = premise.delta if premise.per else _chained(premise.delta, [premise.epsilon] * count)
    theorem = premise.cited("Proposition 7", "Proposition 8")
    return replace(
        premise,
        epsilon=premise.capped(product_up(count**power, premise.epsilon)),
        delta=delta,
        theorem=f"{theorem} with c = {count}",
    )


@checked_arguments
def close_beliefs(premise: Guarantee) -> Guarantee:
    """Against beliefs λ̃ such that (λ̃0, λ0) and (λ1, λ̃1) are themselves pairs of the premise:
    (3ε, (1 + e^ε + e^{2ε}) δ) (DP19 Prop. 2)."""
    require(premise, "distributions", "max", rate=False, use="Use close_beliefs_metric")
    return replace(
        premise,
        epsilon=product_up(3, premise.epsilon),
        delta=_chained(premise.delta, [premise.epsilon] * 3),
        pairs=f"beliefs adjacent to {premise.pairs}",
        theorem="DP19 Proposition 2",
    )


@checked_arguments
def close_beliefs_metric(premise: Guarantee, distance: Number, closeness: Number) -> Guarantee:
    """Against beliefs with W(λ, λ̃) <= c = ``closeness``, for a pair at W = ``distance``:
    e^{ε(W + 2c)} (DP19 Prop. 1), and δ (1 + e^{εc} + e^{ε(c + W)})."""
    require(premise, "distributions", "max", rate=True, use="Use close_beliefs")
    apart = stated_up(parse_exact(distance, where="distance"))
    close = stated_up(parse_exact(closeness, where="closeness"))
    steps = [product_up(premise.epsilon, length) for length in (close, apart, close)]
    return Guarantee(
        sum_up(*steps),
        _chained(premise.delta, steps),
        f"beliefs within {close:g} of a pair at distance {apart:g}",
        "DP19 Proposition 1",
    )


@checked_arguments
def from_probabilistic(premise: Guarantee) -> Guarantee:
    """Probabilistic distribution privacy is distribution privacy, with the same ε and δ (DP19
    Prop. 9; Prop. 8 for δ = 0)."""
    require(premise, "probabilistic")
    return replace(premise, of="distributions", theorem="DP19 Proposition 9")


@checked_arguments
def to_probabilistic(premise: Guarantee, epsilon: Number | None = None) -> Guarantee:
    """Distribution privacy as the probabilistic one: the same ε for δ = 0 (DP19 Prop. 8), else at a
    larger ε' = ``epsilon`` with δ (1 + e^{-ε'}) / (1 - e^{ε-ε'}) (docs/theory.md). The premise has
    to hold both ways.

    Raises
    ------
    ProblemError
        Unless ε' > ε (ε' >= ε for δ = 0), or if ε is per unit of a distance.
    """
    require(premise, "distributions", "max", rate=False, use="Take the pair's own ε")
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


def _composed(first: Guarantee, second: Guarantee, theorem: str) -> Guarantee:
    for name in ("divergence", "pairs", "per"):
        if getattr(first, name) != getattr(second, name):
            raise ProblemError(
                f"holds for {getattr(second, name)!r}, the first for {getattr(first, name)!r}",
                where="second",
                remedy="State both for the same divergence, the same pairs and the same distance",
            )
    joint = first.rules.joint
    if first.per and joint > 0:
        raise ProblemError(
            "χ² grows faster than the distance when composed",
            where="first",
            remedy="State both for pairs at a given distance instead of per unit of it",
        )
    a, b = first.capped(first.epsilon), second.capped(second.epsilon)
    total = sum_up(a, b)
    # of rates the product is of second order, and left out where it is negative
    if not first.per and total < math.inf:
        total = rounded_up(Fraction(a) + Fraction(b) + joint * Fraction(a) * Fraction(b))
    delta = min(1.0, sum_up(first.delta, second.delta))
    return replace(first, epsilon=first.capped(total), delta=delta, theorem=theorem)


def _chained(delta: float, steps: Sequence[float]) -> float:
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
