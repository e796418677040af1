"""The most that a mechanism can leak, over priors or gains (QIF chapter 7); Shannon's mutual
information and capacity, between proved bounds (nats).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.probabilities import joint, probabilities, shares
from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.base.simplex import concave_maximum
from optmech.errors import ProblemError
from optmech.exact.arguments import positive, whole
from optmech.exact.number import Exact, Interval
from optmech.exact.numerators import dot
from optmech.exact.ratios.generators import divergence_ball, generator
from optmech.exact.rounding import above, below
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.rationals import Shares
from optmech_leakage.vulnerability import variation


@record
class Capacity(Shown):
    """A capacity and a prior that attains it.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.leakage.bayes_risk_capacity(m)
    >>> print(found.value, found.prior.weights)
    2.0 [0.5 0.5]
    """

    value: float
    """An ``Exact`` unless infinite."""
    prior: Prior


@checked_arguments
def multiplicative_capacity(m: Mechanism) -> Exact:
    """Σ_o max_s p(o|s): the largest multiplicative leakage over all priors and all gains >= 0,
    attained by the uniform prior and the identity (the miracle theorem, QIF chapter 7).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(float(om.leakage.multiplicative_capacity(m)))  # 3/4 + 3/4
    1.5
    """
    found = probabilities(m)
    return Exact(Fraction(sum(map(max, found.columns)), found.total))


@checked_arguments
def maximal_leakage(m: Mechanism) -> Exact:
    """ln Σ_o max_s p(o|s) in nats: the logarithm of ``multiplicative_capacity`` (Issa, Wagner and
    Kamath, An Operational Approach to Information Leakage, 2020, Thm. 1).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(float(om.leakage.maximal_leakage(m)), 4))  # ln(3/2), in nats
    0.4055
    """
    return Exact(Fraction(1), multiplicative_capacity(m).factor)


@checked_arguments
def pointwise_maximal_leakage(m: Mechanism, prior: Prior) -> Exact:
    """The largest of ln p(o|s) / Σ_s' π(s') p(o|s') in nats, over all secrets s with π(s) > 0 and
    all reports o: the logarithm of how many times likelier a right guess becomes by any one report,
    whatever function of the secret is guessed (Saeidian, Cervia, Oechtering and Skoglund, Pointwise
    Maximal Leakage, IEEE Trans. Inf. Theory 2023, Thm. 1).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> prior = om.Prior(sides, [0.25, 0.75])
    >>> print(round(float(om.leakage.pointwise_maximal_leakage(m, prior)), 4))  # ln(3/4 / (3/8))
    0.6931
    """
    pi, worst = shares(m, prior), Fraction(1)
    for column in probabilities(m).columns:
        mean = dot(pi.units, column)
        if mean:
            worst = max(worst, Fraction(max(column[s] for s in pi.support) * pi.total, mean))
    return Exact(Fraction(1), worst)


@checked_arguments
def additive_capacity(m: Mechanism, prior: Prior | None = None, *, spanning: str = "any") -> Exact:
    """The largest additive leakage over vulnerabilities whose values differ by at most 1.

    Without ``prior`` over all priors too, and with it for that prior, of which only the support
    matters: 1 - Σ_o min_s p(o|s) over the secrets of positive weight (1 minus the Doeblin
    coefficient; QIF chapter 7).

    With ``spanning="gains"``, and a prior, over the smaller class of gains where those of each
    guess differ by at most 1: Σ_o (πP)(o) TV(π, π(·|o)), the mean distance between prior and
    posterior (Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith, Additive and
    multiplicative notions of leakage, CSF 2014, Thm. 17).

    Raises
    ------
    ProblemError
        On another ``spanning``, or ``"gains"`` without a prior.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(float(om.leakage.additive_capacity(m)))  # 1 - 2/4
    0.5
    """
    if spanning == "gains" and prior is not None:
        together, drawn = joint(m, prior), shares(m, prior)
        # Σ_o Σ_s max(0, π(s) p(o|s) - π(s) (πP)(o))
        moved = 0
        for column in together.columns:
            told = sum(column)
            excess = (
                p * drawn.total - unit * told for p, unit in zip(column, drawn.units, strict=True)
            )
            moved += sum(max(0, value) for value in excess)
        return Exact(Fraction(moved, together.total * drawn.total))
    if spanning != "any":
        raise ProblemError(
            f"{spanning!r} does not fit",
            where="spanning",
            remedy='Use "any", or "gains" with a prior',
        )
    found = probabilities(m)
    held = range(len(m.secrets)) if prior is None else shares(m, prior).support
    least = sum(min(column[s] for s in held) for column in found.columns)
    return Exact(1 - Fraction(least, found.total))


@checked_arguments
def bayes_risk_capacity(m: Mechanism) -> Capacity:
    """The largest ratio of the risk of a wrong guess before and after a report, over all priors:
    1 / (1 - max TV of two rows), attained by those two secrets with weight ½ each; infinite where
    two rows share no observable. 1 over it is Bayes security (Chatzikokolakis, Cherubin,
    Palamidessi and Troncoso, Bayes Security: A Not So Average Metric, CSF 2023).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.leakage.bayes_risk_capacity(m).value  # 1/2 before, 1/4 after a report
    2.0
    """
    return _of_pairs(m, combinations(range(len(m.secrets)), 2), risk=True)


@checked_arguments
def predicate_capacity(m: Mechanism, members: ArrayLike, *, risk: bool = False) -> Capacity:
    """The largest multiplicative leakage of a predicate over all priors, with the prior that
    attains it: 1 + max TV of a row inside and a row outside. With ``risk`` the largest ratio of
    the risk of a wrong guess, 1 / (1 - max TV).

    ``members`` is a mask of the secrets, shape (S,), or the gain that ``leakage.predicate`` makes.

    Raises
    ------
    ProblemError
        On another shape, entries that are not 0 and 1, or a predicate that holds for all secrets
        or none.

    Examples
    --------
    >>> places = om.Domain(["clinic", "bank", "shop"])
    >>> m = om.mechanisms.randomized_response(places, "ln 2")
    >>> print(om.leakage.predicate_capacity(m, [True, False, False]).value)  # 1 + (2 - 1) / 4
    1.25
    """
    if isinstance(members, list | tuple | np.ndarray):
        members = [float(v) if isinstance(v, bool | np.bool_) else v for v in members]
    mask = finite_array(members, where="members")
    mask = mask[0] if mask.ndim == 2 and len(mask) == 2 and (mask[0] == 1 - mask[1]).all() else mask
    if mask.shape != (len(m.secrets),) or not set(mask.tolist()) <= {0.0, 1.0}:
        raise ProblemError(
            f"is no mask of {len(m.secrets)} secrets",
            where="members",
            remedy="Give 0 or 1 for every secret, or make one with leakage.predicate",
        )
    inside, outside = np.flatnonzero(mask == 1).tolist(), np.flatnonzero(mask == 0).tolist()
    if not inside or not outside:
        raise ProblemError(
            "the predicate holds for all secrets or none: there is nothing to guess",
            where="members",
        )
    return _of_pairs(m, product(inside, outside), risk=risk)


def _of_pairs(m: Mechanism, pairs: Iterable[tuple[int, int]], *, risk: bool) -> Capacity:
    chosen = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    apart = np.array([np.maximum(0, m.matrix[i] - m.matrix[j]).sum() for i, j in chosen])
    # rows of floats are off by a unit an entry: the farthest pair is among these
    near = apart >= apart.max(initial=0.0) - (len(m.observables) + 8) * 2.0**-50
    # without any pair there is nothing to learn
    most, ends = Fraction(0), (0, 0)
    for i, j in chosen[near].tolist():
        exact = variation(m.rational.rows[i], m.rational.rows[j])
        if exact > most or ends == (0, 0):
            most, ends = exact, (i, j)
    weights = np.zeros(len(m.secrets))
    weights[list(ends)] = 1.0
    worst = Prior(m.secrets, weights)
    if not risk:
        return Capacity(Exact(1 + most), worst)
    return Capacity(math.inf if most == 1 else Exact(1 / (1 - most)), worst)


_PATIENCE, _NEWTON = 500, 100
_BITS = 192
"""Precision of the ball arithmetic: sums of 10,000 terms keep far more digits than a float has."""


@record
class ShannonCapacity(Shown):
    """Bounds of max_π I(S;O) in nats, and the prior that the lower one is proved with.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> found = om.leakage.shannon_capacity(om.mechanisms.randomized_response(sides, "ln 3"))
    >>> print(round(found.lower, 6), round(found.upper, 6), found.prior.weights)
    0.130812 0.130812 [0.5 0.5]
    """

    lower: float
    """I(S;O) under ``prior``, rounded down."""
    upper: float
    """max_s KL(p(·|s) ‖ q) for the output distribution q under ``prior``, rounded up."""
    prior: Prior
    iterations: int


@checked_arguments
def shannon_leakage(m: Mechanism, prior: Prior) -> Interval:
    """I(S;O) = Σ_{s,o} π(s) p(o|s) ln(p(o|s) / (πP)(o)) in nats, between two floats:
    what ``measures.mutual_information`` computes in floating point.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> bounds = om.leakage.shannon_leakage(m, om.Prior.uniform(sides))
    >>> print(round(bounds.lower, 4), bounds.width < 1e-12)  # nats
    0.1308 True
    """
    return _enclosed(m, shares(m, prior))[0]


@checked_arguments
def shannon_capacity(m: Mechanism, *, gap: float = 1e-9, iterations: int = 1000) -> ShannonCapacity:
    """max_π I(S;O), Shannon's capacity, between certified bounds, in nats.

    The prior is proposed by the Blahut-Arimoto iteration (Arimoto 1972, Blahut 1972) in floats, and
    by Newton's method where that is slow, until its own bounds are ``gap`` apart or after so many
    ``iterations``; the bounds that are returned are enclosures for that prior and hold whatever
    was proposed: for every q, max_π I <= max_s KL(p(·|s) ‖ q) (Gallager 1968, Thm. 4.5.1).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.leakage.shannon_capacity(m)
    >>> print(round(found.lower / np.log(2), 4))  # 1 - h(1/4) bits: the binary symmetric channel
    0.1887
    """
    weights, steps = _proposed(m.matrix, positive(gap, "gap"), whole(iterations, "iterations"))
    proposed = Prior(m.secrets, weights)
    information, upper = _enclosed(m, Shares.of(proposed, "prior"))
    return ShannonCapacity(information.lower, upper, proposed, steps)


def _proposed(matrix: Floats, gap: float, most: int) -> tuple[Floats, int]:
    """A prior under which the mutual information is nearly largest: by the iteration of Blahut and
    Arimoto, and where that is slow by Newton's method."""
    seen = matrix[:, matrix.max(axis=0) > 0]
    own = np.where(seen > 0, seen * np.log(np.where(seen > 0, seen, 1.0)), 0.0).sum(axis=1)
    prior = np.full(len(seen), 1 / len(seen))

    def learnt(weights: Floats) -> Floats:
        """KL(p(·|s) ‖ πP) for every s."""
        return np.asarray(own - seen @ np.log(np.maximum(weights @ seen, np.finfo(float).tiny)))

    for step in range(min(most, _PATIENCE)):
        losses = learnt(prior)
        if losses.max() - prior @ losses <= gap:
            return prior, step
        scaled = prior * np.exp(losses - losses.max())
        prior = np.maximum(scaled / scaled.sum(), 1e-300)
    if most <= _PATIENCE:
        return prior, most

    def value(weights: Floats) -> tuple[Floats, Floats, float]:
        losses = learnt(weights)
        curved = (seen / np.maximum(weights @ seen, np.finfo(float).tiny)) @ seen.T
        return losses, curved, float(losses.max() - weights @ losses / weights.sum())

    found, steps = concave_maximum(prior, value, gap, min(most - _PATIENCE, _NEWTON))
    return found, _PATIENCE + steps


def _enclosed(m: Mechanism, drawn: Shares) -> tuple[Interval, float]:
    """I(S;O) under π, and a float >= KL(p(·|s) ‖ πP) for all secrets s, of whatever weight."""
    import flint

    found = probabilities(m)
    told = [dot(drawn.units, column) for column in found.columns]
    with flint.ctx.workprec(_BITS):
        balls = [divergence_ball(generator("kl"), row, told) for row in found.rows]
        # a report that only impossible secrets cause tells of them without limit
        losses = [flint.arb("inf") if ball is None else ball for ball in balls]
        total = flint.arb(0)
        for unit, loss in zip(drawn.units, losses, strict=True):
            if unit:
                total += flint.arb(unit) / drawn.total * loss
        return Interval(max(0.0, below(total)), above(total)), max(map(above, losses))
