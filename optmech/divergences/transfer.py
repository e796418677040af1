"""Divergence guarantees that follow by theorem, without looking at a matrix (CM19 §IV, §V).

The (ε, δ) counterpart is ``om.guarantees``. Proofs, and counterexamples to what CM19 states too
widely, are in docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.lifted_words import ALL_POINTS, lifted_pairs, require_kind
from optmech.errors import ProblemError
from optmech.exact.checked import nonnegative, whole
from optmech.exact.exponentials import stated_up
from optmech.exact.number import parse_exact, product_up, rounded_up, sum_up
from optmech.ratios.generators import divergence_name
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import Shares
from optmech.transport import Violation, lifted
from optmech.transport.certain import longest_move, mean_move, outside

Number = float | str

_BOUNDED = ("tv", "hellinger")
"""Never above 1: mass that a coupling leaves out costs no more than itself."""


@dataclass(frozen=True)
class DivergenceGuarantee:
    """D(μ ‖ μ') <= ε for the outputs of certain pairs of inputs (CM19 Def. 9 to 12).

    Where ``per`` names a distance, ε is per unit of it.
    """

    divergence: str
    """"kl", "reverse_kl", "tv", "chi2", "hellinger" or "max"."""
    epsilon: float
    pairs: str
    """For which pairs, in words."""
    theorem: str
    of: str = "distributions"
    """ "points" or "distributions"."""
    per: str = ""

    def __str__(self) -> str:
        rate = f" per unit of {self.per}" if self.per else ""
        return (
            f"{self.divergence} divergence at most {self.epsilon:.6g}{rate} for {self.pairs} "
            f"({self.of}), by {self.theorem}"
        )


def points(
    divergence: str, epsilon: Number, pairs: str = ALL_POINTS, per: str = ""
) -> DivergenceGuarantee:
    """A premise: D(p(·|s) ‖ p(·|s')) <= ε for ``pairs`` (CM19 Def. 9), or per unit of a distance
    (Def. 10), known from a construction or measured with ``point_epsilon``."""
    return _premise(divergence, epsilon, pairs, per, "points")


def distributions(
    divergence: str, epsilon: Number, pairs: str, per: str = ""
) -> DivergenceGuarantee:
    """A premise: D(λP ‖ λ'P) <= ε for ``pairs`` (CM19 Def. 11, 12)."""
    return _premise(divergence, epsilon, pairs, per, "distributions")


def lift(premise: DivergenceGuarantee) -> DivergenceGuarantee:
    """From points to distributions with the same ε: Φ gives Φ# (CM19 Theorem 1); a distance d gives
    W_1,d for f-divergences (Theorem 2) and W_∞,d for the max divergence, which is not jointly
    convex and for which W_1 is false (docs/theory.md)."""
    _require(premise, "points")
    if not premise.per:
        return replace(
            premise,
            of="distributions",
            pairs=lifted_pairs(premise.pairs),
            theorem="CM19 Theorem 1",
        )
    metric = _metric(premise)
    return replace(
        premise,
        of="distributions",
        pairs=lifted_pairs(premise.pairs, metric=True),
        per=f"{metric} of {premise.per}",
        theorem="CM19 Theorem 2" if metric == "W_1" else "DP19 Theorem 2",
    )


def lift_pair(
    premise: DivergenceGuarantee,
    lam0: ArrayLike | Prior,
    lam1: ArrayLike | Prior,
    relation: ArrayLike,
) -> DivergenceGuarantee | Violation:
    """``lift`` for one pair: the guarantee where a coupling inside the relation Φ (a boolean (n, n)
    array) exists, else the set that shows that there is none.

    Weights count as what they are (floats as binary fractions, texts such as ``"1/3"`` exactly),
    divided by their exact sum. Mass that has to leave Φ for rounding's sake is added to ε for
    "tv" and "hellinger".

    Raises
    ------
    ProblemError
        Where there is such mass and the divergence is another one: however little it is, the
        outputs may be infinitely far apart.
    """
    _require(premise, "points")
    if premise.per:
        raise ProblemError(
            "the premise is per unit of a distance", where="premise", remedy="Use lift_metric_pair"
        )
    first, second = Shares.of(lam0, "lam0"), Shares.of(lam1, "lam1")
    found = lifted(first.weights, second.weights, relation)
    if isinstance(found, Violation):
        return found
    lost = outside(first, second, np.asarray(relation))
    if lost and premise.divergence not in _BOUNDED:
        raise ProblemError(
            f"as they are in binary, a mass of {float(lost):.3g} has to leave the relation, and "
            f"for {premise.divergence} none is too small to matter",
            where="lam0",
            remedy='Give counts, or exact weights such as "1/3"; or use om.guarantees, where it '
            "is added to δ",
        )
    total = sum_up(premise.epsilon, rounded_up(lost))
    return replace(
        premise,
        epsilon=_cut(premise.divergence, total, premise.per),
        of="distributions",
        pairs="the given pair",
        theorem="CM19 Theorem 1, by a coupling",
    )


def lift_metric_pair(
    premise: DivergenceGuarantee,
    lam0: ArrayLike | Prior,
    lam1: ArrayLike | Prior,
    distance_matrix: ArrayLike,
) -> DivergenceGuarantee:
    """ε W(λ0, λ1) for one pair from ε per unit of d, with W_1 (W_∞ for the max divergence).

    Weights count as what they are, as in ``lift_pair``: no mass is left out, so that W_∞ of floats
    that agree on paper only may be larger than that of ``transport.wasserstein``.
    """
    _require(premise, "points")
    if not premise.per:
        raise ProblemError(
            "the premise is not per unit of a distance", where="premise", remedy="Use lift_pair"
        )
    metric = _metric(premise)
    first, second = Shares.of(lam0, "lam0"), Shares.of(lam1, "lam1")
    distance = nonnegative(distance_matrix, "distance_matrix", (len(first), len(second)))
    if metric == "W_1":
        apart, theorem = rounded_up(mean_move(first, second, distance)), "CM19 Theorem 2"
    else:
        apart, theorem = longest_move(first, second, distance), "DP19 Theorem 2"
    total = product_up(premise.epsilon, apart)
    return DivergenceGuarantee(
        premise.divergence,
        _cut(premise.divergence, total, ""),
        "the given pair",
        f"{theorem} with {metric} = {apart:.6g}",
    )


def compose_shared(first: DivergenceGuarantee, second: DivergenceGuarantee) -> DivergenceGuarantee:
    """Both outputs of two mechanisms on the *same* input, for points; the second may look at the
    first one's output.

    The sum for "kl", "reverse_kl" and "max", 1 - (1 - ε₀)(1 - ε₁) for "tv" and "hellinger",
    (1 + ε₀)(1 + ε₁) - 1 for "chi2"; all attained by independent noise. ``lift`` afterwards gives
    CM19 Propositions 3 and 4, which are about Φ#. For given pairs of distributions alone nothing
    composes (docs/theory.md has two bits and their exclusive or): hence points.
    """
    for guarantee in (first, second):
        _require(guarantee, "points")
    return _composed(first, second, "composition (CM19 Prop. 3, 4, for points)")


def compose_independent(
    first: DivergenceGuarantee, second: DivergenceGuarantee
) -> DivergenceGuarantee:
    """Outputs on *independent* inputs, with the constants of ``compose_shared`` (CM19 Prop. 5, 6,
    where they are given for "kl")."""
    for guarantee in (first, second):
        _require(guarantee, "distributions")
    return _composed(first, second, "CM19 Proposition 5")


def post_process(premise: DivergenceGuarantee) -> DivergenceGuarantee:
    """Whatever is computed from the output alone keeps the guarantee (CM19 Prop. 7)."""
    return replace(premise, theorem=f"CM19 Proposition 7 after {premise.theorem}")


def pre_process(premise: DivergenceGuarantee, stability: int) -> DivergenceGuarantee:
    """After a c-stable transformation of the input distribution (CM19 Def. 13, Prop. 8).

    Per unit of a distance between distributions: cε. For an adjacency that is walked c steps: cε
    for "tv" and "max", c²ε for "hellinger", whose root is a metric. Refused for the others: CM19
    Prop. 8 (1) states cε for every divergence, but two steps of "kl" or "chi2" can be as far apart
    as one likes (docs/theory.md).
    """
    _require(premise, "distributions")
    count = whole(stability, "stability", least=1)
    factor = {"tv": count, "max": count, "hellinger": count**2}
    steps = count if premise.per or count == 1 else factor.get(premise.divergence)
    if steps is None:
        raise ProblemError(
            f"{premise.divergence} has no triangle inequality of any kind",
            where="premise",
            remedy='Use a guarantee per unit of a distance, or of "tv", "hellinger" or "max"',
        )
    return replace(
        premise,
        epsilon=_cut(premise.divergence, product_up(steps, premise.epsilon), premise.per),
        theorem=f"CM19 Proposition 8 with c = {count}",
    )


def _premise(
    divergence: str, epsilon: Number, pairs: str, per: str, of: str
) -> DivergenceGuarantee:
    rate = stated_up(parse_exact(epsilon, where="epsilon"))
    return DivergenceGuarantee(divergence_name(divergence), rate, pairs, "assumption", of, per)


def _metric(premise: DivergenceGuarantee) -> str:
    return "W_∞" if premise.divergence == "max" else "W_1"


def _composed(
    first: DivergenceGuarantee, second: DivergenceGuarantee, theorem: str
) -> DivergenceGuarantee:
    for name in ("divergence", "pairs", "per"):
        if getattr(first, name) != getattr(second, name):
            raise ProblemError(
                f"holds for {getattr(second, name)!r}, the first for {getattr(first, name)!r}",
                where="second",
                remedy="State both with the same divergence, pairs and distance",
            )
    a, b = first.epsilon, second.epsilon
    if first.per and first.divergence == "chi2":
        raise ProblemError(
            "χ² grows faster than the distance when composed",
            where="first",
            remedy="State both for pairs at a given distance instead of per unit of it",
        )
    total = sum_up(a, b)
    if not first.per and first.divergence == "chi2":
        total = sum_up(a, b, product_up(a, b))
    elif not first.per and first.divergence in _BOUNDED and max(a, b) <= 1:
        x, y = Fraction(a), Fraction(b)
        total = rounded_up(x + y - x * y)
    return replace(first, epsilon=_cut(first.divergence, total, first.per), theorem=theorem)


def _cut(divergence: str, epsilon: float, per: str) -> float:
    """No total variation or Hellinger distance exceeds 1."""
    return min(1.0, epsilon) if divergence in ("tv", "hellinger") and not per else epsilon


def _require(guarantee: DivergenceGuarantee, of: str) -> None:
    require_kind(guarantee.of, of)
