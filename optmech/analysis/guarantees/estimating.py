"""What holds for populations that are known roughly, and for their mixtures (docs/theory.md,
"Transport between rows, and populations known roughly")."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optmech.analysis.guarantees.guarantee import ALL_POINTS, Guarantee, require, require_kept
from optmech.analysis.guarantees.lifting import COUPLED
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.checked import probability
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, product_up, rounded_up, sum_up
from optmech.exact.rounding import exp_up, up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares

_LARGEST_EXPONENT = 700.0
_UNIT = 2.0**-53


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
    """
    kind = premise.divergence if premise.divergence == "tv" else "max"
    require(premise, "distributions", kind, rate=False, use="Lift it to the pair first")
    near, far = (
        stated_up(probability(value, name))
        for value, name in ((first, "first"), (second, "second"))
    )
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
    """
    shares = [Shares.of(lam, name) for lam, name in ((lam0, "lam0"), (lam1, "lam1"))]
    radii = [
        stated_up(probability(value, name))
        for value, name in ((first, "first"), (second, "second"))
    ]
    for lam in (lam0, lam1):
        m.push(lam)  # refuses what does not fit
    worst = 0.0
    for column in m.matrix.T:
        most = _moved(shares[0], column, Fraction(radii[0]), upward=True)
        least = _moved(shares[1], column, Fraction(radii[1]), upward=False)
        if most == 0:
            continue
        ratio = math.inf if least == 0 else rounded_up(most / least)
        worst = max(worst, ratio)
    epsilon = math.inf if worst == math.inf else math.log(worst) if worst > 1 else 0.0
    if 0 < epsilon < math.inf:
        # a logarithm errs by far less
        epsilon = float(up(np.array(epsilon * (1 + 4 * _UNIT) + 2 * _UNIT)))
    return Guarantee(
        epsilon,
        0.0,
        f"populations within total variation {radii[0]:g} and {radii[1]:g} of the given pair, "
        "in this order",
        "the worst populations, report by report",
    )


def misestimated_inputs(
    premise: Guarantee, first: tuple[Number, Number], second: tuple[Number, Number]
) -> Guarantee:
    """What coupling mechanisms keep that were chosen for estimates λ̂0, λ̂1 of their inputs, and any
    mechanism: where λ0(S) <= e^{ε₁} λ̂0(S) + δ₁ and λ̂1(S) <= e^{ε₂} λ1(S) + δ₂ for all S, with
    ``first`` = (ε₁, δ₁) and ``second`` = (ε₂, δ₂), and (ε₀, δ₀) for the outputs of the estimates,
    the outputs of λ0 and λ1 are (ε₁ + ε₀ + ε₂, δ₁ + e^{ε₁} δ₀ + e^{ε₁ + ε₀} δ₂)-close.

    With ε₁ = ε₂ = 0 the δ are total variations, which are finite on any data; CM19 Theorem 3 needs
    finite max divergences, see ``om.divergences.misestimated``. ``om.divergences.hockey_stick``
    gives the least δ for an ε.

    Raises
    ------
    ProblemError
        On another divergence than "max", or a premise of points or per unit of a distance.
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


def mixtures(premise: Guarantee) -> Guarantee:
    """From all pairs of two finite sets of distributions to all pairs of their mixtures, at no
    cost: for (ε, δ), and for every divergence that is jointly convex. What holds for each town
    against each other town holds for regions of towns, whatever their weights.

    Raises
    ------
    ProblemError
        On a premise of points, per unit of a distance, of all pairs that couple within a relation,
        or a probabilistic one, whose rare reports differ from pair to pair.
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


def _grown(delta: float, epsilon: float) -> float:
    return product_up(_power(epsilon), delta) if delta else 0.0


def _power(epsilon: float) -> float:
    """e^ε from above."""
    return math.inf if epsilon > _LARGEST_EXPONENT else float(exp_up(np.array(epsilon)))


def _moved(shares: Shares, column: Floats, radius: Fraction, *, upward: bool) -> Fraction:
    """The largest (``upward``) or least mean of a column under what lies within a total variation
    of a distribution, exactly."""
    values: Sequence[float] = column.tolist()
    end = Fraction(max(values) if upward else min(values))
    order = sorted(shares.support, key=lambda k: values[k], reverse=not upward)
    total, left = Fraction(0), radius
    for k in order:
        taken = min(left, shares[k])
        left -= taken
        total += taken * end + (shares[k] - taken) * Fraction(values[k])
    return total
