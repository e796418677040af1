"""Mechanisms whose matrix has a closed form: randomised response, RAPPOR, geometric, exponential,
restricted Laplace.

Weights e^{-x} beyond x = 700 count as e^{-700}: a zero, or a number with few digits, beside a
positive one would be no privacy at all, and -min(x, 700) changes no faster than -x does.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.number import Number, parse_exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, euclidean, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism

_MOST_RAPPOR_SECRETS = 12
_FARTHEST = 700.0
"""e^-700, divided by up to 4,000 observables, still has all its digits."""


@checked_arguments
def randomized_response(secrets: Domain, epsilon: Number) -> Mechanism:
    """k-ary randomised response: the truth with probability e^ε / (e^ε + n - 1), else any other
    secret (DP19 Example 2). ε-differentially private for all pairs, tightly for n > 1."""
    lie = _weight(float(parse_exact(epsilon, where="epsilon")))
    size = len(secrets)
    matrix = np.full((size, size), lie)
    np.fill_diagonal(matrix, 1.0)
    return Mechanism(secrets, secrets, matrix / (1 + (size - 1) * lie))


@checked_arguments
def rappor(secrets: Domain, epsilon: Number) -> Mechanism:
    """One-time RAPPOR (DP19 Example 2): the secret as a unit vector of n bits, each flipped with
    probability 1 / (1 + e^{ε/2}). ε-differentially private for all pairs, tightly for n > 1.

    Observables are the 2^n tuples of bits.

    Raises
    ------
    TooLargeError
        Beyond 12 secrets.
    """
    size = len(secrets)
    if size > _MOST_RAPPOR_SECRETS:
        raise TooLargeError(
            f"{size} secrets make 2^{size} observables",
            where="secrets",
            remedy=f"Use at most {_MOST_RAPPOR_SECRETS} secrets",
        )
    # the product of all flips must not vanish
    odds = np.exp(-min(float(parse_exact(epsilon, where="epsilon")) / 2, _FARTHEST / (size + 1)))
    words = list(product((0, 1), repeat=size))
    bits = np.array(words)
    flips = bits.sum(axis=1)[None, :] + 1 - 2 * bits.T
    return Mechanism(secrets, Domain(words), odds**flips / (1 + odds) ** size)


@checked_arguments
def geometric(secrets: Domain, epsilon: Number) -> Mechanism:
    """Truncated geometric mechanism on points of a line with equal spacing h: two-sided geometric
    noise of ratio e^{-εh}, and what falls beyond an end is reported as that end (Ghosh,
    Roughgarden, Sundararajan, STOC 2009). Tightly ε-private per unit of distance.

    Raises
    ------
    ProblemError
        Unless the secrets have one coordinate, in equal steps upwards.
    """
    rate = float(parse_exact(epsilon, where="epsilon"))
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
    """Exponential mechanism: p(o|s) ∝ e^{-ε d(s,o)/2} (DP19 §2.3, §5.2).

    ε-private per unit of d by the triangle inequality: one half for the weight, one for the
    normalisation. ``distance`` is Euclidean unless given, ``observables`` are the secrets.
    """
    rate = float(parse_exact(epsilon, where="epsilon"))
    outputs, values = _apart(secrets, distance, observables)
    weights = _weight(rate / 2 * (values - values.min(axis=1, keepdims=True)))
    return Mechanism(secrets, outputs, weights / weights.sum(axis=1, keepdims=True))


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
    (DP19 Def. 12). The loss never exceeds r; it is not differentially private by itself.

    Raises
    ------
    ProblemError
        Where a secret has no observable within ``radius``.
    """
    rate = float(parse_exact(epsilon, where="epsilon"))
    reach = float(finite_array(radius, where="radius", ndim=0))
    outputs, values = _apart(secrets, distance, observables)
    near = values <= reach
    alone = np.flatnonzero(~near.any(axis=1))
    if len(alone):
        raise ProblemError(
            f"no observable lies within {reach:g} of secret {secrets.labels[alone[0]]!r}",
            where="radius",
            remedy=f"Use at least {values.min(axis=1).max():g}",
        )
    weights = np.where(near, np.exp(-rate * (values - values.min(axis=1, keepdims=True))), 0.0)
    return Mechanism(secrets, outputs, weights / weights.sum(axis=1, keepdims=True))


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
