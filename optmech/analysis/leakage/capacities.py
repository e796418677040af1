"""The most that a mechanism can leak, over priors or gains (QIF chapter 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.leakage.joint import joint, probabilities, shares
from optmech.base.arrays import finite_array
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import Exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


@dataclass(frozen=True, eq=False, repr=False)
class Capacity(Shown):
    """A capacity and a prior that attains it."""

    value: float
    """An ``Exact`` unless infinite."""
    prior: Prior


@checked_arguments
def multiplicative_capacity(m: Mechanism) -> Exact:
    """Σ_o max_s p(o|s): the largest multiplicative leakage over all priors and all gains >= 0,
    attained by the uniform prior and the identity (the miracle theorem, QIF chapter 7)."""
    found = probabilities(m)
    return Exact(Fraction(sum(map(max, found.columns)), found.total))


@checked_arguments
def maximal_leakage(m: Mechanism) -> Exact:
    """ln Σ_o max_s p(o|s) in nats: the logarithm of ``multiplicative_capacity`` (Issa, Wagner and
    Kamath, An Operational Approach to Information Leakage, 2020, Thm. 1)."""
    return Exact(Fraction(1), multiplicative_capacity(m).factor)


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
    """
    if spanning == "gains" and prior is not None:
        return Exact(_mean_move(m, prior))
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
    Palamidessi and Troncoso, Bayes Security: A Not So Average Metric, CSF 2023)."""
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
    """
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
    variation, ends = Fraction(0), (0, 0)
    for i, j in chosen[near].tolist():
        exact = _variation(m.rational.rows[i], m.rational.rows[j])
        if exact > variation or ends == (0, 0):
            variation, ends = exact, (i, j)
    weights = np.zeros(len(m.secrets))
    weights[list(ends)] = 1.0
    worst = Prior(m.secrets, weights)
    if not risk:
        return Capacity(Exact(1 + variation), worst)
    return Capacity(math.inf if variation == 1 else Exact(1 / (1 - variation)), worst)


def _variation(p: Sequence[int], q: Sequence[int]) -> Fraction:
    """Total variation of two rows, each over its own sum."""
    one, other = sum(p), sum(q)
    excess = sum(max(0, a * other - b * one) for a, b in zip(p, q, strict=True))
    return Fraction(excess, one * other)


def _mean_move(m: Mechanism, prior: Prior) -> Fraction:
    """Σ_o Σ_s max(0, π(s) p(o|s) - π(s) (πP)(o))."""
    found, drawn = joint(m, prior), shares(m, prior)
    moved = 0
    for column in found.columns:
        told = sum(column)
        moved += sum(
            max(0, value * drawn.total - unit * told)
            for value, unit in zip(column, drawn.units, strict=True)
        )
    return Fraction(moved, found.total * drawn.total)
