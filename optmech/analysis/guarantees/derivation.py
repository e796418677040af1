"""What follows for several outputs, for what is made of inputs and outputs, for other beliefs
(Kawamoto and Murakami, ESORICS 2019, §3.4, §4, §5, App. B; Kawamoto and Murakami, Allerton 2019,
§V), for populations that are known roughly, and for their mixtures (docs/theory/populations.md,
"Transport between rows, and populations known roughly")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.analysis.guarantees.guarantee import ALL_POINTS, Guarantee, require, require_kept
from optmech.analysis.guarantees.lifting import COUPLED
from optmech.analysis.probabilities import shares
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, whole
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, product_up, rounded_up, sum_up
from optmech.exact.rounding import UNIT, exp_up, up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares

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
    afterwards gives Kawamoto and Murakami, ESORICS 2019, Prop. 3, 4 (without |Φ|) and Kawamoto and
    Murakami, Allerton 2019, Prop. 3, 4, which are about Φ#. For given pairs of distributions alone
    nothing composes (docs/theory/families.md has two bits and their exclusive or): hence points.

    Examples
    --------
    >>> one = om.guarantees.points(0.5)
    >>> print(om.guarantees.compose_shared(one, one).epsilon)
    1.0
    >>> tv = om.guarantees.points(0.5, divergence="tv")
    >>> print(om.guarantees.compose_shared(tv, tv).epsilon)  # 1 - (1 - 0.5)²
    0.75
    """
    theorem = "composition (CM19 Prop. 3, 4, for points)"
    if first.divergence == "max":
        theorem = "DP composition (DP19 Prop. 3, 4), tight"
    return _composed(first, second, "points", theorem)


@checked_arguments
def compose_independent(first: Guarantee, second: Guarantee) -> Guarantee:
    """Outputs on *independent* inputs from the same unknown λ, with the constants of
    ``compose_shared`` (Kawamoto and Murakami, ESORICS 2019, Prop. 5; Kawamoto and Murakami,
    Allerton 2019, Prop. 5, 6, where they are given for "kl").

    Examples
    --------
    >>> town = om.guarantees.distributions(0.5, 0.01, "two towns")
    >>> both = om.guarantees.compose_independent(town, town)
    >>> print(both.epsilon, both.delta)
    1.0 0.02
    """
    theorem = first.cited("Proposition 5", "Proposition 5")
    return _composed(first, second, "distributions", theorem)


@checked_arguments
def post_process(premise: Guarantee) -> Guarantee:
    """Whatever is computed from the output alone keeps the guarantee (Kawamoto and Murakami,
    ESORICS 2019, Prop. 6, Kawamoto and Murakami, Allerton 2019, Prop. 7).

    Raises
    ------
    ProblemError
        On a probabilistic premise: a rare report that tells much, counted together with a frequent
        one, makes the frequent one tell more.

    Examples
    --------
    >>> print(om.guarantees.post_process(om.guarantees.points(0.5)).epsilon)
    0.5
    """
    require_kept(premise)
    theorem = premise.cited("Proposition 6", "Proposition 7")
    return replace(premise, theorem=f"{theorem} after {premise.theorem}")


@checked_arguments
def with_dummies(premise: Guarantee) -> Guarantee:
    """The tupling mechanism around a mechanism with this guarantee (Kawamoto and Murakami, ESORICS
    2019, Prop. 10).

    Dummies and places are drawn without a look at the input, so this is post-processing: it holds
    for any law of the dummies, any δ, and for points as well, where the paper has uniform dummies,
    δ = 0 and distributions. At δ = 0 dummies that cover all reports gain nothing; for δ > 0 they
    do: ``Tupling.epsilon``.

    Raises
    ------
    ProblemError
        On a probabilistic premise, which post-processing does not keep.

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "two towns")
    >>> print(om.guarantees.with_dummies(premise).epsilon)
    0.5
    """
    require_kept(premise)
    return replace(premise, theorem=f"DP19 Proposition 10 after {premise.theorem}")


@checked_arguments
def pre_process(premise: Guarantee, stability: int) -> Guarantee:
    """After a c-stable transformation of the input distribution (Kawamoto and Murakami, ESORICS
    2019, Def. 10, Prop. 7; Kawamoto and Murakami, Allerton 2019, Def. 13, Prop. 8).

    Per unit of a distance between distributions: cε, and δ stays. For an adjacency that is walked c
    steps: cε for "tv" and "max", c²ε for "hellinger", whose root is a metric; δ grows to (1 + e^ε +
    … + e^{(c-1)ε}) δ (Kawamoto and Murakami, ESORICS 2019, write δ, which its proof does not give
    for δ > 0). Refused for the others: Kawamoto and Murakami, Allerton 2019, Prop. 8 (1) states cε
    for every divergence, but two steps of "kl" or "chi2" can be as far apart as one likes
    (docs/theory/families.md).

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "neighbouring towns")
    >>> print(om.guarantees.pre_process(premise, stability=3).epsilon)
    1.5
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
    (3ε, (1 + e^ε + e^{2ε}) δ) (Kawamoto and Murakami, ESORICS 2019, Prop. 2).

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "two towns")
    >>> print(om.guarantees.close_beliefs(premise).epsilon)  # 3 ε
    1.5
    """
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
    e^{ε(W + 2c)} (Kawamoto and Murakami, ESORICS 2019, Prop. 1), and δ (1 + e^{εc} + e^{ε(c + W)}).

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "all pairs", per="W_inf")
    >>> kept = om.guarantees.close_beliefs_metric(premise, distance=2, closeness=1)
    >>> print(kept.epsilon)  # 0.5 * (2 + 2 * 1)
    2.0
    """
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
    """Probabilistic distribution privacy is distribution privacy, with the same ε and δ (Kawamoto
    and Murakami, ESORICS 2019, Prop. 9; Prop. 8 for δ = 0).

    Examples
    --------
    >>> premise = om.guarantees.probabilistic(0.5, 0.01, "two towns")
    >>> print(om.guarantees.from_probabilistic(premise).delta)
    0.01
    """
    require(premise, "probabilistic")
    return replace(premise, of="distributions", theorem="DP19 Proposition 9")


@checked_arguments
def to_probabilistic(premise: Guarantee, epsilon: Number | None = None) -> Guarantee:
    """Distribution privacy as the probabilistic one: the same ε for δ = 0 (Kawamoto and Murakami,
    ESORICS 2019, Prop. 8), else at a larger ε' = ``epsilon`` with δ (1 + e^{-ε'}) / (1 - e^{ε-ε'})
    (docs/theory/families.md). The premise has to hold both ways.

    Raises
    ------
    ProblemError
        Unless ε' > ε (ε' >= ε for δ = 0), or if ε is per unit of a distance.

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0.001, "two towns")
    >>> kept = om.guarantees.to_probabilistic(premise, epsilon=1)
    >>> print(round(kept.delta, 5))  # 0.001 (1 + e^-1) / (1 - e^-0.5)
    0.00348
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


def _composed(first: Guarantee, second: Guarantee, of: str, theorem: str) -> Guarantee:
    for guarantee in (first, second):
        require(guarantee, of)
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
    room = 4 * (len(steps) + 1) * (1 + reached[-1]) * UNIT
    return min(1.0, product_up(delta, total * (1 + room)))


@checked_arguments
def estimated(premise: Guarantee, first: Number, second: Number) -> Guarantee:
    """For a pair of populations that is known roughly: what holds for the estimates λ̂0, λ̂1 with
    (ε, δ) holds for all λ0 within total variation ρ = ``first`` of λ̂0 and λ1 within ρ' = ``second``
    of λ̂1 with (ε, δ + ρ + e^ε ρ'), λ0 against λ1. Attained.

    For "tv" the divergence grows to ε + ρ + ρ'. Without δ see ``estimated_pair``, which looks at
    the matrix.

    Raises
    ------
    ProblemError
        On another divergence, a premise of points or per unit of a distance, or numbers that are
        no total variation.

    Examples
    --------
    >>> premise = om.guarantees.distributions("ln 2", 0, "two towns")
    >>> known = om.guarantees.estimated(premise, first=0.01, second=0.02)
    >>> print(round(known.delta, 4))  # 0.01 + 2 * 0.02
    0.05
    """
    kind = premise.divergence if premise.divergence == "tv" else "max"
    require(premise, "distributions", kind, rate=False, use="Lift it to the pair first")
    near, far = _radii(first, second)
    pairs = f"populations within total variation {near:g} and {far:g} of {premise.pairs}"
    if near != far:
        pairs += ", in this order"
    theorem = f"total variation around estimates after {premise.theorem}"
    if kind == "tv":
        total = premise.capped(sum_up(premise.epsilon, near, far))
        return replace(premise, epsilon=total, pairs=pairs, theorem=theorem)
    grown = product_up(_power(premise.epsilon), far) if far else 0.0
    delta = min(1.0, sum_up(premise.delta, near, grown))
    return replace(premise, delta=delta, pairs=pairs, theorem=theorem)


@checked_arguments
def estimated_pair(
    m: Mechanism, lam0: Distribution, lam1: Distribution, *, first: Number, second: Number
) -> Guarantee:
    """The least ε, measured and rounded up, with (λ0 P)(o) <= e^ε (λ1 P)(o) for every report o, all
    λ0 within total variation ``first`` of ``lam0`` and all λ1 within ``second`` of ``lam1``.

    Report by report the worst λ0 takes ``first`` of its mass from where the report is rarest to
    where it is likeliest, the worst λ1 the other way. inf where a report is then impossible under
    one and not under the other. Probabilities count as their floats.

    Raises
    ------
    ProblemError
        On distributions that do not fit, or numbers that are no total variation.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> exact = om.guarantees.estimated_pair(m, [1, 1], [1, 1], first=0, second=0)
    >>> near = om.guarantees.estimated_pair(m, [1, 1], [1, 1], first=0.1, second=0.1)
    >>> print(round(exact.epsilon, 4), round(near.epsilon, 4))  # 0, ln(0.55 / 0.45)
    0.0 0.2007
    """
    one, other = shares(m, lam0, "lam0"), shares(m, lam1, "lam1")
    near, far = _radii(first, second)
    worst = 0.0
    for column in m.matrix.T:
        most = _moved(one, column, Fraction(near), upward=True)
        least = _moved(other, column, Fraction(far), upward=False)
        if most == 0:
            continue
        ratio = math.inf if least == 0 else rounded_up(most / least)
        worst = max(worst, ratio)
    epsilon = math.inf if worst == math.inf else math.log(worst) if worst > 1 else 0.0
    if 0 < epsilon < math.inf:
        # a logarithm errs by far less
        epsilon = float(up(np.array(epsilon * (1 + 4 * UNIT) + 2 * UNIT)))
    return Guarantee(
        epsilon,
        0.0,
        f"populations within total variation {near:g} and {far:g} of the given pair, in this order",
        "the worst populations, report by report",
    )


@checked_arguments
def misestimated_inputs(
    premise: Guarantee, first: tuple[Number, Number], second: tuple[Number, Number]
) -> Guarantee:
    """What coupling mechanisms keep that were chosen for estimates λ̂0, λ̂1 of their inputs, and
    any mechanism: where λ0(S) <= e^{ε₁} λ̂0(S) + δ₁ and λ̂1(S) <= e^{ε₂} λ1(S) + δ₂ for all S, with
    ``first`` = (ε₁, δ₁) and ``second`` = (ε₂, δ₂), and (ε₀, δ₀) for the outputs of the estimates,
    the outputs of λ0 and λ1 are (ε₁ + ε₀ + ε₂, δ₁ + e^{ε₁} δ₀ + e^{ε₁ + ε₀} δ₂)-close.

    With ε₁ = ε₂ = 0 the δ are total variations, which are finite on any data; Kawamoto and
    Murakami, Allerton 2019, Theorem 3 needs finite max divergences, see
    ``om.divergences.misestimated``. ``om.divergences.hockey_stick`` gives the least δ for an ε.

    Raises
    ------
    ProblemError
        On another divergence than "max", or a premise of points or per unit of a distance.

    Examples
    --------
    >>> premise = om.guarantees.distributions(0, 0, "two ages")
    >>> kept = om.guarantees.misestimated_inputs(premise, first=(0.1, 0.01), second=(0.2, 0.0))
    >>> print(round(kept.epsilon, 4), round(kept.delta, 4))
    0.3 0.01
    """
    require(premise, "distributions", "max", rate=False, use="Lift it to the pair first")
    (near, aside), (far, beside) = (
        (stated_up(parse_exact(pair[0], where=name)), stated_up(probability(pair[1], name)))
        for pair, name in ((first, "first"), (second, "second"))
    )
    delta = sum_up(
        aside,
        _grown(premise.delta, near),
        _grown(beside, sum_up(near, premise.epsilon)),
    )
    return replace(
        premise,
        epsilon=sum_up(near, premise.epsilon, far),
        delta=min(1.0, delta),
        pairs=f"inputs within ({near:g}, {aside:g}) and ({far:g}, {beside:g}) of the assumed ones, "
        "in this order",
        theorem=f"CM19 Theorem 3 with δ after {premise.theorem}",
    )


@checked_arguments
def mixtures(premise: Guarantee) -> Guarantee:
    """From all pairs of two finite sets of distributions to all pairs of their mixtures, at no
    cost: for (ε, δ), and for every divergence that is jointly convex. What holds for each town
    against each other town holds for regions of towns, whatever their weights.

    Raises
    ------
    ProblemError
        On a premise of points, per unit of a distance, of all pairs that couple within a relation,
        or a probabilistic one, whose rare reports differ from pair to pair.

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "any two of ten towns")
    >>> print(om.guarantees.mixtures(premise).epsilon)
    0.5
    """
    require_kept(premise)
    require(premise, "distributions", rate=False, use="Lift it to the pairs first")
    if COUPLED in premise.pairs and ALL_POINTS not in premise.pairs:
        raise ProblemError(
            f"is about {premise.pairs}, which need not be all pairs of two sets",
            where="premise",
            remedy="Lift it to every pair of the two sets (lift_pair), and state the largest of "
            "them with distributions(...)",
        )
    theorem = f"joint convexity after {premise.theorem}"
    return replace(premise, pairs=f"mixtures of the sides of {premise.pairs}", theorem=theorem)


def _radii(first: Number, second: Number) -> tuple[float, float]:
    return stated_up(probability(first, "first")), stated_up(probability(second, "second"))


def _grown(delta: float, epsilon: float) -> float:
    return product_up(_power(epsilon), delta) if delta else 0.0


def _power(epsilon: float) -> float:
    """e^ε from above."""
    return math.inf if epsilon > _LARGEST_EXPONENT else float(exp_up(np.array(epsilon)))


def _moved(lam: Shares, column: Floats, radius: Fraction, *, upward: bool) -> Fraction:
    """The largest (``upward``) or least mean of a column under what lies within a total variation
    of a distribution, exactly."""
    values: Sequence[float] = column.tolist()
    end = Fraction(max(values) if upward else min(values))
    order = sorted(lam.support, key=lambda k: values[k], reverse=not upward)
    total, left = Fraction(0), radius
    for k in order:
        taken = min(left, lam[k])
        left -= taken
        total += taken * end + (lam[k] - taken) * Fraction(values[k])
    return total
