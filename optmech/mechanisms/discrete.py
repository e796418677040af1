"""Mechanisms whose matrix has a closed form: randomised response, RAPPOR, geometric, exponential,
restricted Laplace; randomisers of local differential privacy with more answers than secrets; and
mechanisms with tight constraints.

Weights e^{-x} beyond x = 700 count as e^{-700}: a zero, or a number with few digits, beside a
positive one would be no privacy at all, and -min(x, 700) changes no faster than -x does.
``om.estimate.frequencies`` and ``from_supports`` are the unbiased estimators of local randomisers.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array, normalised_rows
from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.exact.arguments import whole
from optmech.exact.number import Number, float_of, from_above, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, between, euclidean, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import Subsets

_FARTHEST = 700.0
"""e^-700, divided by up to 4,000 observables, still has all its digits."""


@checked_arguments
def randomized_response(secrets: Domain, epsilon: Number) -> Mechanism:
    """k-ary randomised response: the truth with probability e^ε / (e^ε + n - 1), else any other
    secret (Kawamoto and Murakami, ESORICS 2019, Example 2). ε-differentially private for all pairs,
    tightly for n > 1.

    Examples
    --------
    >>> m = om.mechanisms.randomized_response(om.Domain(["yes", "no"]), "ln 3")
    >>> print(m.matrix)
    [[0.75 0.25]
     [0.25 0.75]]
    """
    lie = _weight(float_of(epsilon, "epsilon"))
    size = len(secrets)
    matrix = np.full((size, size), lie)
    np.fill_diagonal(matrix, 1.0)
    return Mechanism(secrets, secrets, matrix / (1 + (size - 1) * lie))


@checked_arguments
def rappor(secrets: Domain, epsilon: Number) -> Mechanism:
    """One-time RAPPOR (Kawamoto and Murakami, ESORICS 2019, Example 2): the secret as a unit vector
    of n bits, each flipped with probability 1 / (1 + e^{ε/2}). ε-differentially private for all
    pairs, tightly for n > 1.

    Observables are the 2^n tuples of bits.

    Raises
    ------
    TooLargeError
        Beyond 12 secrets.

    Examples
    --------
    >>> m = om.mechanisms.rappor(om.Domain(["a", "b"]), "2 ln 3")
    >>> len(m.observables), round(om.measures.epsilon(m), 4)  # 2 ln 3
    (4, 2.1972)
    """
    odds, words, bits = _words(secrets, parse_exact(epsilon, where="epsilon") / 2)
    flips = bits.sum(axis=1)[None, :] + 1 - 2 * bits.T
    return Mechanism(secrets, words, odds**flips / (1 + odds) ** len(secrets))


@checked_arguments
def geometric(secrets: Domain, epsilon: Number) -> Mechanism:
    """Truncated geometric mechanism on points of a line with equal spacing h: two-sided geometric
    noise of ratio e^{-εh}, and what falls beyond an end is reported as that end (Ghosh,
    Roughgarden, Sundararajan, STOC 2009). Tightly ε-private per unit of distance.

    Raises
    ------
    ProblemError
        Unless the secrets have one coordinate, in equal steps upwards.

    Examples
    --------
    >>> m = om.mechanisms.geometric(om.Domain.range(3, unit="km"), epsilon="ln 2")
    >>> print(m.matrix.round(4))
    [[0.6667 0.1667 0.1667]
     [0.3333 0.3333 0.3333]
     [0.1667 0.1667 0.6667]]
    """
    rate = float_of(epsilon, "epsilon")
    points = secrets.require_points("add geometric noise")
    steps = np.diff(points[:, 0])
    if points.shape[1] != 1 or (
        len(steps) and not (steps.min() > 0 and np.ptp(steps) <= 1e-9 * steps.max())
    ):
        raise ProblemError(
            "the secrets are not equally spaced points of a line, in order",
            where="secrets",
            remedy="Use Domain.range, or planar_laplace or exponential elsewhere",
        )
    if len(secrets) == 1:
        return Mechanism(secrets, secrets, np.ones((1, 1)))
    apart = np.abs(np.subtract.outer(np.arange(len(secrets)), np.arange(len(secrets))))
    step = rate * float(points[-1, 0] - points[0, 0]) / (len(secrets) - 1)
    decay = _weight(step * apart)
    matrix = np.tanh(step / 2) * decay
    matrix[:, [0, -1]] = decay[:, [0, -1]] / (1 + np.exp(-step))
    return Mechanism(secrets, secrets, matrix)


@checked_arguments
def exponential(
    secrets: Domain,
    epsilon: Number,
    distance: DistanceLike | None = None,
    *,
    observables: Domain | None = None,
) -> Mechanism:
    """Exponential mechanism: p(o|s) ∝ e^{-ε d(s,o)/2} (Kawamoto and Murakami, ESORICS 2019, §2.3,
    §5.2).

    ε-private per unit of d by the triangle inequality: one half for the weight, one for the
    normalisation. ``distance`` is Euclidean unless given, ``observables`` are the secrets.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> m = om.mechanisms.exponential(line, epsilon="2 ln 3")
    >>> print(m.matrix.round(4))
    [[0.75 0.25]
     [0.25 0.75]]
    """
    rate = float_of(epsilon, "epsilon")
    outputs, values = _apart(secrets, distance, observables)
    weights = _weight(rate / 2 * (values - values.min(axis=1, keepdims=True)))
    return Mechanism(secrets, outputs, normalised_rows(weights))


@checked_arguments
def restricted_laplace(
    secrets: Domain,
    epsilon: Number,
    radius: float,
    *,
    distance: DistanceLike | None = None,
    observables: Domain | None = None,
) -> Mechanism:
    """(ε, r)-restricted Laplace mechanism: p(o|s) ∝ e^{-ε d(s,o)} where d(s,o) <= r, else 0
    (Kawamoto and Murakami, ESORICS 2019, Def. 12). The loss never exceeds r; it is not
    differentially private by itself.

    Raises
    ------
    ProblemError
        Where a secret has no observable within ``radius``.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.restricted_laplace(line, "ln 2", radius=1)
    >>> print(m.matrix.round(4))
    [[0.6667 0.3333 0.    ]
     [0.25   0.5    0.25  ]
     [0.     0.3333 0.6667]]
    """
    rate = float_of(epsilon, "epsilon")
    reach = float(finite_array(radius, where="radius", ndim=0))
    outputs, values = _apart(secrets, distance, observables)
    near = values <= reach
    alone = np.flatnonzero(~near.any(axis=1))
    if len(alone):
        plain = distance is None or getattr(distance, "name", "") in ("euclidean", "manhattan")
        unit = f" {secrets.unit}" if plain and secrets.unit else " by the distance"
        raise ProblemError(
            f"no observable lies within {reach:g}{unit} of secret {secrets.labels[alone[0]]!r}",
            where="radius",
            remedy=f"Use at least {from_above(values.min(axis=1).max())}",
        )
    weights = np.where(near, np.exp(-rate * (values - values.min(axis=1, keepdims=True))), 0.0)
    return Mechanism(secrets, outputs, normalised_rows(weights))


def _apart(
    secrets: Domain, distance: DistanceLike | None, observables: Domain | None
) -> tuple[Domain, Floats]:
    """The observables, and their distances from the secrets."""
    outputs = secrets if observables is None else observables
    given = euclidean() if distance is None else distance
    return outputs, evaluate(given, secrets, outputs, where="distance")


def _weight(exponent: ArrayLike) -> Floats:
    """e^{-x}, as the module's docstring has it."""
    return np.exp(-np.minimum(exponent, _FARTHEST))


_MOST_SUBSETS = 200_000
_MOST_BITS = 12


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

    Examples
    --------
    >>> m = om.mechanisms.subset_selection(om.Domain(["a", "b", "c"]), "ln 2", size=1)
    >>> print(m.matrix)
    [[0.5  0.25 0.25]
     [0.25 0.5  0.25]
     [0.25 0.25 0.5 ]]
    """
    rate = float_of(epsilon, "epsilon")
    count = len(secrets)
    if count < 2:
        raise ProblemError("there is one secret, and nothing to hide", where="secrets")
    lie = float(_weight(rate))
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
    matrix = np.full((count, number), lie)
    matrix[np.array(groups).T, np.arange(number)] = 1.0
    labels = [tuple(secrets.labels[k] for k in group) for group in groups]
    seen = Subsets(secrets, labels, groups)
    return Mechanism(secrets, seen, normalised_rows(matrix))


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

    Examples
    --------
    >>> m = om.mechanisms.optimised_unary_encoding(om.Domain(["a", "b", "c"]), "ln 3")
    >>> m.matrix.shape, round(om.measures.epsilon(m), 4)  # ln 3
    ((3, 8), 1.0986)
    """
    odds, words, bits = _words(secrets, parse_exact(epsilon, where="epsilon"))
    others = bits.sum(axis=1)[None, :] - bits.T
    # a half for the own bit; another one is a one with odds / (1 + odds)
    return Mechanism(secrets, words, 0.5 * odds**others / (1 + odds) ** (len(secrets) - 1))


def _words(secrets: Domain, rate: float) -> tuple[float, Domain, Ints]:
    """e^-rate, and the words of a bit for every secret, as labels and as an array."""
    size = len(secrets)
    if size > _MOST_BITS:
        raise TooLargeError(
            f"{size} secrets make 2^{size} observables",
            where="secrets",
            remedy=f"Use at most {_MOST_BITS} secrets, or subset_selection",
        )
    words = list(product((0, 1), repeat=size))
    # the product of all bits must not vanish
    odds = float(np.exp(-min(rate, _FARTHEST / (size + 1))))
    return odds, Domain(words), np.array(words)


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

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.tight_constraints(line, "ln 2")
    >>> print(np.allclose(m.matrix, om.mechanisms.geometric(line, "ln 2").matrix))
    True
    """
    rate = parse_exact(epsilon, where="epsilon", positive=True)
    given = euclidean() if distance is None else distance
    kernel = _weight(float(rate) * between(given, secrets))
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
    return Mechanism(secrets, secrets, normalised_rows(np.maximum(matrix, 0.0)))
