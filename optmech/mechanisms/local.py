"""Randomisers of local differential privacy with more answers than secrets, and mechanisms with
tight constraints.

``om.estimate.frequencies`` and ``from_supports`` are their unbiased estimators.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np

from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.exact.checked import whole
from optmech.exact.number import Number, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, euclidean, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import Subsets

_MOST_SUBSETS = 200_000
_MOST_BITS = 12
_FARTHEST = 700.0


@checked_arguments
def subset_selection(secrets: Domain, epsilon: Number, *, size: int | None = None) -> Mechanism:
    """ω-subset selection: a set of ω secrets, e^ε times as likely if it holds the true one (Ye and
    Barg, Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy,
    2018; Wang et al. 2016). Tightly ε-differentially private for all pairs.

    ``size`` is ω, by default n / (e^ε + 1), rounded and at least 1: about where the estimates of
    frequencies vary least.
    Observables are the subsets, as ``om.observables.subsets`` has them, labelled by their members.

    Raises
    ------
    ProblemError
        Unless 1 <= ``size`` < n; ``TooLargeError`` beyond 200,000 subsets.
    """
    rate = float(parse_exact(epsilon, where="epsilon"))
    count = len(secrets)
    if count < 2:
        raise ProblemError("there is one secret, and nothing to hide", where="secrets")
    lie = np.exp(-min(rate, _FARTHEST))
    best = max(1, round(count * lie / (1 + lie)))
    chosen = whole(best if size is None else size, "size", least=1, most=count - 1)
    number = comb(count, chosen)
    if number > _MOST_SUBSETS:
        raise TooLargeError(
            f"{count} secrets have {number:,} subsets of {chosen}",
            where="secrets",
            remedy="Use a smaller size, randomized_response, or fewer secrets",
        )
    groups = list(combinations(range(count), chosen))
    inside = np.zeros((count, number))
    inside[np.array(groups).T, np.arange(number)] = 1.0
    matrix = np.where(inside > 0, 1.0, lie)
    labels = [tuple(secrets.labels[k] for k in group) for group in groups]
    seen = Subsets(secrets, labels, groups)
    return Mechanism(secrets, seen, matrix / matrix.sum(axis=1, keepdims=True))


@checked_arguments
def optimised_unary_encoding(secrets: Domain, epsilon: Number) -> Mechanism:
    """Optimised unary encoding: the secret as a unit vector of n bits, of which the one is kept
    with probability ½ and every zero becomes a one with probability 1 / (e^ε + 1) (Wang, Blocki,
    Li and Jha, Locally Differentially Private Protocols for Frequency Estimation, USENIX Security
    2017). Tightly ε-differentially private for all pairs.

    Observables are the 2^n tuples of bits.

    Raises
    ------
    TooLargeError
        Beyond 12 secrets.
    """
    rate = float(parse_exact(epsilon, where="epsilon"))
    size = len(secrets)
    if size > _MOST_BITS:
        raise TooLargeError(
            f"{size} secrets make 2^{size} observables",
            where="secrets",
            remedy=f"Use at most {_MOST_BITS} secrets, or subset_selection",
        )
    # the product of all bits must not vanish
    odds = np.exp(-min(rate, _FARTHEST / (size + 1)))
    words = list(product((0, 1), repeat=size))
    bits = np.array(words)
    others = bits.sum(axis=1)[None, :] - bits.T
    # a half for the own bit; another one is a one with odds / (1 + odds)
    matrix = 0.5 * odds**others / (1 + odds) ** (size - 1)
    return Mechanism(secrets, Domain(words), matrix)


@checked_arguments
def tight_constraints(
    secrets: Domain, epsilon: Number, distance: DistanceLike | None = None
) -> Mechanism:
    """The mechanism all of whose constraints are tight: p(o|s) = x(o) e^{-ε d(s,o)}, where x makes
    every row sum to one (ElSalamouny, Chatzikokolakis and Palamidessi, Generalized Differential
    Privacy: Regions of Priors That Admit Robust Optimal Mechanisms, 2014). ε-private
    per unit of d; the truncated geometric mechanism on a line, and k-ary randomised response
    for the Hamming distance. ``distance`` is Euclidean unless given.

    Raises
    ------
    ProblemError
        Where there is no such mechanism: the solution x is negative somewhere, or not unique.
    """
    rate = parse_exact(epsilon, where="epsilon", positive=True)
    given = euclidean() if distance is None else distance
    values = evaluate(given, secrets, secrets, where="distance")
    kernel = np.exp(-np.minimum(float(rate) * values, _FARTHEST))
    try:
        weights = np.linalg.solve(kernel, np.ones(len(secrets)))
    except np.linalg.LinAlgError:
        weights = np.full(len(secrets), np.nan)
    matrix = kernel * weights
    off = np.abs(matrix.sum(axis=1) - 1).max()
    if not np.isfinite(off) or (weights < -1e-12).any():
        raise ProblemError(
            "no mechanism has all constraints tight here: the equations for it have no solution "
            "with weights >= 0",
            where="distance",
            remedy="Use a larger ε, another distance, or om.solve",
        )
    if off > 1e-9:
        raise SolverError("the equations were not solved", where="tight_constraints")
    matrix = np.maximum(matrix, 0.0)
    return Mechanism(secrets, secrets, matrix / matrix.sum(axis=1, keepdims=True))
