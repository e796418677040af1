"""From points to distributions and back (Kawamoto and Murakami, ESORICS 2019, Theorems 1, 2, 4;
Kawamoto and Murakami, Allerton 2019, Theorems 1, 2, 4).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.guarantees.guarantee import ALL_DISTRIBUTIONS, ALL_POINTS, Guarantee, require
from optmech.errors import ProblemError
from optmech.exact.arguments import nonnegative
from optmech.exact.number import product_up, rounded_up, sum_up
from optmech.exact.rounding import up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, values_between
from optmech.spaces.prior import Distribution, domain_of
from optmech.spaces.rationals import Shares
from optmech.transport import Violation, lifted, wasserstein
from optmech.transport.gains import least_log_factor
from optmech.transport.rational import mean_move, outside, readable

COUPLED = "pairs that couple within "
_OPTIMALLY = "pairs with an optimal coupling within "
_MASSES = "pairs of points whose point masses are among "
_GIVEN = "the given pair"
_MOST_CARRIED = 1000


@checked_arguments
def lift(premise: Guarantee) -> Guarantee:
    """From points to distributions with the same ε and δ: Φ gives Φ# (Kawamoto and Murakami,
    ESORICS 2019, Theorem 1 without its factor |Φ|, Kawamoto and Murakami, Allerton 2019, Theorem
    1), and a distance d gives W_∞,d for the max divergence (Kawamoto and Murakami, ESORICS 2019,
    Theorem 2, for which W_1 is false) and W_1,d for the others (Kawamoto and Murakami, Allerton
    2019, Theorem 2).

    Examples
    --------
    >>> rows = om.guarantees.points(0.5, per="km")
    >>> print(om.guarantees.lift(rows).per)
    W_∞ of km
    """
    require(premise, "points")
    theorem, pairs, per = "Theorem 1", f"{COUPLED}{premise.pairs}", ""
    if premise.per:
        every = premise.pairs == ALL_POINTS
        theorem, pairs = "Theorem 2", ALL_DISTRIBUTIONS if every else f"{_OPTIMALLY}{premise.pairs}"
        per = f"{premise.rules.metric} of {premise.per}"
    cited = premise.cited(f"{theorem}, tight", theorem)
    return replace(premise, of="distributions", pairs=pairs, per=per, theorem=cited)


@checked_arguments
def lift_pair(
    premise: Guarantee, lam0: Distribution, lam1: Distribution, relation: ArrayLike
) -> Guarantee | Violation:
    """``lift`` for one pair: the guarantee where a coupling inside the relation Φ exists, else the
    set that shows that there is none (Kawamoto and Murakami, ESORICS 2019, Def. 7).

    ``relation`` is Φ as a boolean array of shape (n, n), the pairs that the premise is about.
    Weights count as what they are (floats as binary fractions, texts such as ``"1/3"`` exactly),
    divided by their exact sum. Mass that has to leave Φ for rounding's sake is added to δ for
    "max", and to ε for "tv" and "hellinger".

    Raises
    ------
    ProblemError
        Where there is such mass and the divergence is another one: however little it is, the
        outputs may be infinitely far apart.

    Examples
    --------
    >>> rows = om.guarantees.points(0.5, pairs="neighbours")
    >>> near = np.array([[True, True], [True, True]])
    >>> print(om.guarantees.lift_pair(rows, [0.75, 0.25], [0.25, 0.75], near).epsilon)
    0.5
    """
    require(premise, "points", rate=False, use="Use lift_metric_pair")
    first, second = Shares.of(lam0, "lam0"), Shares.of(lam1, "lam1")
    found = lifted(first.weights, second.weights, relation)
    if isinstance(found, Violation):
        return found
    lost = outside(first, second, np.asarray(relation))
    theorem = premise.cited("Theorem 1, tight, by a coupling", "Theorem 1, by a coupling")
    if premise.divergence == "max":
        return _of_pair(premise, premise.epsilon, theorem, rounded_up(lost))
    if lost and premise.rules.largest == math.inf:
        raise ProblemError(
            f"as they are in binary, a mass of {float(lost):.3g} has to leave the relation, and "
            f"for {premise.divergence} none is too small to matter",
            where="lam0",
            remedy='Give counts, or exact weights such as "1/3"',
        )
    return _of_pair(premise, sum_up(premise.epsilon, rounded_up(lost)), theorem)


@checked_arguments
def lift_metric_pair(
    premise: Guarantee, lam0: Distribution, lam1: Distribution, distance: DistanceLike
) -> Guarantee:
    """What ε per unit of d is worth for one pair, both ways: the larger of ln Λ(λ0, λ1) and ln
    Λ(λ1, λ0) for the max divergence (``carry_over``), which is at most ε W_∞ (Kawamoto and
    Murakami, ESORICS 2019, Theorem 2), and ε W_1 for the others (Kawamoto and Murakami, Allerton
    2019, Theorem 2).

    ``distance`` is as in ``transport.wasserstein``, and symmetric. Weights count as what they are,
    as in ``lift_pair``. With more than 1,000 places of mass on a side W_∞ takes the place of ln Λ,
    and mass within rounding that moves farther (see ``transport``) is added to δ.

    Examples
    --------
    >>> rows = om.guarantees.points(0.5, per="km")
    >>> d = np.array([[0.0, 1], [1, 0]])
    >>> pair = om.guarantees.lift_metric_pair(rows, [1, 0], [0, 1], d)
    >>> print(round(pair.epsilon, 6))
    0.5
    """
    require(premise, "points", rate=True, use="Use lift_pair")
    first, second = Shares.of(lam0, "lam0"), Shares.of(lam1, "lam1")
    given = values_between(distance, domain_of(lam0), domain_of(lam1))
    values = nonnegative(given, "distance", (len(first), len(second)))
    # a diagonal of zeros says that rows and columns are the same places
    if values.shape[0] == values.shape[1] and not values.diagonal().any():
        if not np.allclose(values, values.T, rtol=1e-9, atol=0.0):
            raise ProblemError(
                "is not symmetric, and what follows for a pair holds both ways",
                where="distance",
                remedy="Give the larger of the two, np.maximum(d, d.T)",
            )
        values = np.maximum(values, values.T)
    if premise.rules.metric == "W_1":
        return _moved(premise, rounded_up(mean_move(first, second, values)))
    if max(len(first.support), len(second.support)) <= _MOST_CARRIED:
        # a product that overflows states nothing
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(values > 0, up(premise.epsilon * values), 0.0)
        ratio = np.where(np.isfinite(ratio), ratio, np.inf)
        # in proportion up to 2^-53 of themselves, and the largest about 2^500
        one, other = (
            [float(k * Fraction(2) ** (500 - max(side.units).bit_length())) for k in side.units]
            for side in (first, second)
        )
        # a promise between points holds both ways, and so does what is made of it
        factor = max(least_log_factor(ratio, one, other), least_log_factor(ratio.T, other, one))
        return _of_pair(premise, factor, f"carrying over with ln Λ = {factor:.6g}, tight")
    found = wasserstein(readable(first), readable(second), values, math.inf)
    return _moved(premise, found.value, found.missing)


@checked_arguments
def restrict(premise: Guarantee) -> Guarantee:
    """From distributions back to points, ``lift`` undone: point masses are distributions, couple
    within Φ where their points are in it, and are W_p = d apart (Kawamoto and Murakami, ESORICS
    2019, and Kawamoto and Murakami, Allerton 2019, Theorem 4).

    Raises
    ------
    ProblemError
        Unless the premise is about distributions, at once or per unit of a Wasserstein distance.

    Examples
    --------
    >>> premise = om.guarantees.distributions(0.5, 0, "all pairs")
    >>> print(om.guarantees.restrict(premise).of)
    points
    """
    require(premise, "distributions")
    per = _ground_distance(premise.per) if premise.per else ""
    # Φ for Φ#, else the pairs of points whose point masses are among the pairs
    pairs = f"{_MASSES}{premise.pairs}"
    if premise.pairs == ALL_DISTRIBUTIONS:
        pairs = ALL_POINTS
    for prefix in (COUPLED, _OPTIMALLY):
        if premise.pairs.startswith(prefix):
            pairs = premise.pairs.removeprefix(prefix)
    theorem = premise.cited("Theorem 4", "Theorem 4")
    return replace(premise, of="points", pairs=pairs, per=per, theorem=theorem)


@checked_arguments
def weaken_metric(premise: Guarantee) -> Guarantee:
    """From ε per unit of W_1 to the same per unit of W_∞, which is never smaller (Kawamoto and
    Murakami, Allerton 2019, Prop. 9).

    Examples
    --------
    >>> premise = om.guarantees.lift(om.guarantees.points(0.5, per="km", divergence="kl"))
    >>> print(premise.per, "->", om.guarantees.weaken_metric(premise).per)
    W_1 of km -> W_∞ of km
    """
    require(premise, "distributions")
    per = f"W_∞ of {_ground_distance(premise.per)}"
    return replace(premise, per=per, theorem="CM19 Proposition 9")


def _moved(premise: Guarantee, apart: float, lost: float = 0.0) -> Guarantee:
    theorem = premise.cited("Theorem 2, tight,", "Theorem 2")
    words = f"{theorem} with {premise.rules.metric} = {apart:.6g}"
    return _of_pair(premise, product_up(premise.epsilon, apart), words, lost)


def _of_pair(premise: Guarantee, epsilon: float, theorem: str, lost: float = 0.0) -> Guarantee:
    """With the mass that a coupling leaves out, ``lost``, in δ."""
    delta = min(1.0, sum_up(premise.delta, lost)) if lost else premise.delta
    made = replace(premise, of="distributions", pairs=_GIVEN, per="", theorem=theorem, delta=delta)
    return replace(made, epsilon=made.capped(epsilon))


def _ground_distance(per: str) -> str:
    """d of "W_1 of d", whatever the order; raises ProblemError on any other distance."""
    metric, _, distance = per.partition(" of ")
    if not metric.startswith("W_") or not distance:
        raise ProblemError(
            f"is per unit of {per!r}, not of a Wasserstein distance",
            where="premise",
            remedy='Name the distance "W_1 of d" or "W_∞ of d"',
        )
    return distance
