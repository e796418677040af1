"""What a mechanism tells about the distribution of its input (Kawamoto and Murakami, ESORICS 2019,
§3, §7.3, App. B.6).

All pairs of a set at once, per unit of a distance between distributions, with probability, as
Bayes factors, and as the success of the attack that the Bayes decision rule makes. For a single
pair see ``measures.distribution_epsilon`` and ``measures.distribution_delta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.analysis.measures import per_unit, weights_over
from optmech.base.arrays import Floats, Ints, largest_entry, normalised
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact import arguments
from optmech.exact.arguments import nonnegative, probability, whole
from optmech.exact.number import Number, float_of
from optmech.exact.ratios.wide import Wide, either_log_ratio, pushed
from optmech.exact.rounding import UNIT, suffix_sums
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, between
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.transport import wasserstein

__all__ = [
    "AttackSuccess",
    "Pairwise",
    "attack_success",
    "bayes_factors",
    "extended_epsilon",
    "pairwise_delta",
    "pairwise_epsilon",
    "probabilistic_delta",
    "probabilistic_epsilon",
    "simulated_success",
    "stability",
]
__dir__ = __all__.copy


@record
class Pairwise(Shown):
    """A number for every pair of a set of distributions, both directions in one.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.distributional.pairwise_delta(m, [[1, 0], [0, 1], [1, 1]], epsilon=0)
    >>> found.worst, found.worst_pair
    (0.5, (0, 1))
    """

    values: Floats
    """Symmetric, shape (k, k), zero on the diagonal."""

    @property
    def worst(self) -> float:
        """The largest: what the set as a whole enjoys (Kawamoto and Murakami, ESORICS 2019, Def. 8,
        w.r.t. Λ).
        """
        return float(self.values.max())

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Indices of the pair where it is attained."""
        return largest_entry(self.values)


@checked_arguments
def pairwise_epsilon(m: Mechanism, lams: Sequence[Distribution], delta: Number = 0.0) -> Pairwise:
    """The least ε of (ε, δ)-distribution privacy for every pair of ``lams`` (Kawamoto and Murakami,
    ESORICS 2019, Def. 8).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.distributional.pairwise_epsilon(m, [[1, 0], [0, 1]]).values.round(4))
    [[0.     1.0986]
     [1.0986 0.    ]]
    """
    return every_pair(
        len(lams), lambda i, j: measures.distribution_epsilon(m, lams[i], lams[j], delta)
    )


@checked_arguments
def pairwise_delta(m: Mechanism, lams: Sequence[Distribution], epsilon: Number) -> Pairwise:
    """The least δ of (ε, δ)-distribution privacy for every pair of ``lams`` (Kawamoto and Murakami,
    ESORICS 2019, Def. 8).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.distributional.pairwise_delta(m, [[1, 0], [0, 1]], epsilon=0).values)
    [[0.  0.5]
     [0.5 0. ]]
    """
    return every_pair(
        len(lams), lambda i, j: measures.distribution_delta(m, lams[i], lams[j], epsilon)
    )


@checked_arguments
def extended_epsilon(
    m: Mechanism,
    lams: Sequence[Distribution],
    distance: DistanceLike,
    *,
    delta: Number = 0.0,
) -> float:
    """The least ε of (ε, W, δ)-extended distribution privacy (Kawamoto and Murakami, ESORICS 2019,
    Def. 9) for all pairs.

    ``distance`` holds W(λ_i, λ_j), shape (k, k); or it is a distance between secrets, and W its W_∞
    (Kawamoto and Murakami, ESORICS 2019, Theorem 2). inf where distributions at distance 0 are told
    apart.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.geometric(line, "ln 2")
    >>> lams = [[1, 0, 0], [0, 0, 1]]
    >>> epsilon = om.distributional.extended_epsilon(m, lams, om.distances.euclidean())
    >>> print(round(epsilon, 4))  # ln 2 per unit of W_∞
    0.6931
    """
    apart: Any = distance
    if callable(distance):
        read = _read(m, lams)
        values = between(distance, m.secrets)
        apart = [[wasserstein(a, b, values, math.inf).value for a in read] for b in read]
    apart = nonnegative(apart, "distance", (len(lams), len(lams)))
    spent = pairwise_epsilon(m, lams, delta).values
    return float(per_unit(spent, np.minimum(apart, apart.T)).max())


@checked_arguments
def stability(
    transformation: Mechanism,
    lams: Sequence[Distribution],
    distance: DistanceLike,
    *,
    p: float = math.inf,
) -> float:
    """The least c with W_p(λT, λ'T) ≤ c W_p(λ, λ') for all pairs of ``lams``: T is (c, W)-stable on
    these (Kawamoto and Murakami, ESORICS 2019, Definition 10, which asks for a whole c of all
    pairs).

    ``transformation`` is a mechanism from the secrets to themselves. inf where equal distributions
    are moved apart.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> twice = om.Mechanism(line, line, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    >>> lams = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> om.distributional.stability(twice, lams, om.distances.euclidean())
    2.0
    """
    read = _read(transformation, lams)
    before = between(distance, transformation.secrets)
    after = between(distance, transformation.observables)
    moved = [transformation.push(lam) for lam in read]

    def ratio(i: int, j: int) -> float:
        far = wasserstein(moved[i], moved[j], after, p).value
        near = wasserstein(read[i], read[j], before, p).value
        return float(per_unit(far, near))

    return every_pair(len(read), ratio).worst


@checked_arguments
def probabilistic_delta(
    m: Mechanism, lam0: Distribution, lam1: Distribution, epsilon: Number
) -> float:
    """The least δ of (ε, δ)-probabilistic distribution privacy (Kawamoto and Murakami, ESORICS
    2019, Def. 16), both ways.

    The exceptional set must hold every observable with a likelihood ratio beyond e^ε, and need hold
    no other; δ is the larger of its two probabilities. Never below ``distribution_delta`` (Kawamoto
    and Murakami, ESORICS 2019, Prop. 9). It jumps where ε is the logarithm of a ratio: a ratio that
    exceeds e^ε by no more than the sums over the secrets may be rounded does not count as beyond
    it.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.distributional.probabilistic_delta(m, [1, 0], [0, 1], epsilon=1)  # 1 < ln 3
    1.0
    >>> om.distributional.probabilistic_delta(m, [1, 0], [0, 1], epsilon=2)
    0.0
    """
    rate = float_of(epsilon, "epsilon")
    p, q = wide_outputs_of(m, (lam0, lam1))
    beyond = _loudness(p, q, len(m.secrets)) > rate
    return min(1.0, max(float(x.floats()[beyond].sum()) for x in (p, q)))


@checked_arguments
def probabilistic_epsilon(
    m: Mechanism, lam0: Distribution, lam1: Distribution, delta: Number
) -> float:
    """The least ε of (ε, δ)-probabilistic distribution privacy (Kawamoto and Murakami, ESORICS
    2019, Def. 16), both ways.

    0 or one of the log-likelihood ratios, less the rounding that ``probabilistic_delta`` allows:
    observables leave the exceptional set as ε grows past theirs.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.distributional.probabilistic_epsilon(m, [1, 0], [0, 1], delta=0.1), 4))
    1.0986
    """
    budget = float(probability(delta))
    p, q = wide_outputs_of(m, (lam0, lam1))
    loud = _loudness(p, q, len(m.secrets))
    candidates = np.unique(np.append(loud[loud > 0], 0.0))
    order = np.argsort(loud)
    beyond = np.searchsorted(loud[order], candidates, side="right")
    spent = np.maximum(*(suffix_sums(x.floats()[order])[beyond] for x in (p, q)))
    # the largest candidate leaves nothing beyond it: some candidate always fits
    return float(candidates[int(np.argmax(spent <= budget * (1 + 2.0**-50)))])


@checked_arguments
def bayes_factors(m: Mechanism, lam0: Distribution, lam1: Distribution) -> Floats:
    """K(λ0, λ1, o) = (λ0P)(o) / (λ1P)(o), shape (n_o,): how observing o moves the odds of λ0
    against λ1 (Kawamoto and Murakami, ESORICS 2019, §3.3). inf where only λ1 excludes o, nan where
    both do.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.distributional.bayes_factors(m, [1, 0], [0, 1]).round(4))
    [3.     0.3333]
    """
    p, q = wide_outputs_of(m, (lam0, lam1))
    excluded = np.where(p.positive, np.inf, np.nan)
    return np.where(q.positive, p.over(q).floats(), excluded)


@record
class AttackSuccess(Shown):
    """What the Bayes decision rule guesses, and how often it is right (Kawamoto and Murakami,
    ESORICS 2019, §7.3).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> success = om.distributional.attack_success(m, [[1, 0], [0, 1]])
    >>> success.accuracy, success.blind, success.guess.tolist()
    (0.75, 0.5, [0, 1])
    """

    guess: Ints
    """Index of the distribution guessed for every observable, shape (n_o,)."""
    per_distribution: Floats
    """Chance of a right guess when the input comes from λ_t, shape (k,): the paper's ASR."""
    accuracy: float
    """Chance of a right guess over all; no rule does better."""
    blind: float
    """Chance of a right guess without any observation."""


@checked_arguments
def attack_success(
    m: Mechanism, lams: Sequence[Distribution], weights: ArrayLike | None = None
) -> AttackSuccess:
    """The Bayes decision rule against the attribute t with inputs from λ_t, in expectation.

    ``weights`` are the prior probabilities of the attributes, shape (k,), equal unless given.
    With two equally likely ones the accuracy is (1 + TV(λ0P, λ1P)) / 2.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> success = om.distributional.attack_success(m, [[0.75, 0.25], [0.25, 0.75]])
    >>> success.accuracy  # (1 + 0.25) / 2
    0.625
    """
    share, outputs, guess = _bayes_rule(m, lams, weights)
    right = np.array([outputs[t, guess == t].sum() for t in range(len(lams))])
    return AttackSuccess(guess, right, float(share @ right), float(share.max()))


@checked_arguments
def simulated_success(
    m: Mechanism,
    lams: Sequence[Distribution],
    samples: int,
    *,
    weights: ArrayLike | None = None,
    seed: int | None = None,
) -> float:
    """The accuracy of ``attack_success`` in ``samples`` simulated rounds.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> share = om.distributional.simulated_success(m, [[1, 0], [0, 1]], samples=10000, seed=1)
    >>> abs(share - 0.75) < 0.02
    True
    """
    count = whole(samples, "samples", least=1, most=2**53)
    share, outputs, guess = _bayes_rule(m, lams, weights)
    rng = np.random.default_rng(seed)
    rounds = rng.multinomial(count, share)
    right = sum(
        int((guess[rng.choice(len(guess), size=drawn, p=output / output.sum())] == t).sum())
        for t, (drawn, output) in enumerate(zip(rounds.tolist(), outputs, strict=True))
    )
    return right / count


def every_pair(count: int, value: Callable[[int, int], float]) -> Pairwise:
    """``value(i, j)`` for every pair i > j of ``count`` >= 1 distributions."""
    _require_some(count)
    values = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            values[i, j] = values[j, i] = value(i, j)
    return Pairwise(values)


def _loudness(p: Wide, q: Wide, terms: int) -> Floats:
    """|ln p/q| for every observable, 0 where neither produces it; less what the rounding of two
    sums of ``terms`` products and of the logarithm may have added."""
    exact = either_log_ratio(p, q)
    return np.maximum(exact * (1 - 4 * UNIT) - 2 * (terms + 4) * UNIT, 0.0)


def outputs_of(m: Mechanism, lams: Sequence[Distribution]) -> list[Floats]:
    """λP for every λ of ``lams``, which are distributions over the secrets, normalised here."""
    return [m.push(weights) for weights in _read(m, lams)]


def wide_outputs_of(m: Mechanism, lams: Sequence[Distribution]) -> list[Wide]:
    """The distributions over reports, where ratios count of numbers too small for floats."""
    return [pushed(Wide.of(weights), m.matrix) for weights in _read(m, lams)]


def _read(m: Mechanism, lams: Sequence[Distribution]) -> list[Floats]:
    return [weights_over(m, lam, f"lams[{k}]") for k, lam in enumerate(lams)]


def _bayes_rule(
    m: Mechanism, lams: Sequence[Distribution], weights: ArrayLike | None
) -> tuple[Floats, Floats, Ints]:
    """Weights, outputs (k, n_o), and the index guessed for every observable."""
    count = len(lams)
    _require_some(count)
    share = np.full(count, 1.0 / count)
    if weights is not None:
        share = normalised(arguments.weights(weights, "weights", count))
    outputs = np.array(outputs_of(m, lams))
    return share, outputs, (share[:, None] * outputs).argmax(axis=0)


def _require_some(count: int) -> None:
    if not count:
        raise ProblemError("there is no distribution", where="lams", remedy="Give at least one")
