"""What can be measured of any given mechanism, from its matrix alone.

Sources: PG = Shokri, Privacy Games (PETS 2015); DP19 = Kawamoto and Murakami, Local Obfuscation
Mechanisms for Hiding Probability Distributions (ESORICS 2019). Values are computed in floating
point; sums carry a relative error of about 1e-15, ratios one of a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.positions import Everywhere, everywhere
from optmech.base.arrays import Bools, Floats, Ints, finite_array
from optmech.errors import ProblemError, moved
from optmech.exact.arguments import distribution, probability
from optmech.exact.number import Number, float_of
from optmech.exact.ratios.hockey_stick import (
    HockeyStick,
    excess_mass,
    least_log_ratio,
    log_ratio,
    most_revealing,
)
from optmech.exact.ratios.wide import Wide, either_log_ratio, pushed
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, between, evaluate
from optmech.spaces.losses import as_loss, loss_matrix
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior, weights_of

__all__ = [
    "Everywhere",
    "HockeyStick",
    "Tightest",
    "bayes_vulnerability",
    "conditional_entropy",
    "delta",
    "distortion",
    "distribution_delta",
    "distribution_epsilon",
    "epsilon",
    "epsilon_for_delta",
    "everywhere",
    "expected_loss",
    "hockey_stick_curve",
    "mutual_information",
    "posterior",
    "tightest",
    "worst_loss",
]
__dir__ = __all__.copy


IndexPairs = Sequence[Sequence[int]] | Ints


@checked_arguments
def expected_loss(m: Mechanism, prior: Prior, loss: DistanceLike) -> float:
    """Σ_s π(s) Σ_o p(o|s) c(s,o) (Shokri, PETS 2015, eq. 3), in the unit of the loss.

    ``loss`` is a distance, or a non-negative array or table of shape (secrets, observables).

    Examples
    --------
    >>> line = om.Domain.range(2, unit="km")
    >>> m = om.mechanisms.geometric(line, "ln 3")
    >>> om.measures.expected_loss(m, om.Prior.uniform(line), om.distances.euclidean())  # km
    0.25
    """
    return float(prior_weights(m, prior) @ _loss_per_secret(m, loss))


@checked_arguments
def worst_loss(m: Mechanism, loss: DistanceLike) -> float:
    """max_s Σ_o p(o|s) c(s,o) (Shokri, PETS 2015, eq. 4), in the unit of the loss; over all secrets
    of the domain.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.geometric(line, "ln 2")
    >>> print(round(om.measures.worst_loss(m, om.distances.euclidean()), 4))
    0.6667
    """
    return float(_loss_per_secret(m, loss).max())


@checked_arguments
def distortion(m: Mechanism, prior: Prior, distance: DistanceLike) -> float:
    """Σ_o min_t Σ_s π(s) p(o|s) d(t,s), the error of the optimal attack (Shokri, PETS 2015, eq. 7,
    21).

    Estimates t range over the secrets. ``attacks.optimal_attack`` gives the attack itself.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.measures.distortion(m, om.Prior.uniform(sides), om.distances.hamming())
    0.25
    """
    weighted = between(distance, m.secrets) * prior_weights(m, prior)
    return float((weighted @ m.matrix).min(axis=0).sum())


@dataclass(frozen=True)
class Tightest:
    """The largest ln(p(o|s) / p(o|s')), per unit of distance, and where it occurs.

    Without any pair of secrets ``value`` is 0 and everything else None.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> found = om.measures.tightest(om.mechanisms.geometric(line, "ln 2"))
    >>> print(round(found.value, 4), found.secret, found.other)  # 2 ln 2 between the ends
    1.3863 0 2
    """

    value: float
    secret: Hashable | None = None
    """Label of s, the secret that makes the observable more likely."""
    other: Hashable | None = None
    """Label of s'."""
    observable: Hashable | None = None
    """Label of o."""
    indices: tuple[int, int, int] | None = None
    """Indices of (s, s', o)."""

    def __str__(self) -> str:
        if self.indices is None:
            return "epsilon 0: there is no pair of secrets"
        return (
            f"epsilon {self.value:.9g} at secrets {self.secret!r} and {self.other!r}, "
            f"observable {self.observable!r}"
        )


@checked_arguments
def tightest(
    m: Mechanism, distance: DistanceLike | None = None, pairs: IndexPairs | None = None
) -> Tightest:
    """The least ε that ``m`` gives, with the secrets and the observable that need it.

    With ``distance``, of metric privacy: the largest ln(p(o|s)/p(o|s')) / d(s,s') (Shokri, PETS
    2015, eq. 10, 15; Kawamoto and Murakami, ESORICS 2019, Def. 4). Secrets at distance 0 must have
    equal rows. Without, of differential privacy: the largest ln(p(o|s)/p(o|s')) (Shokri, PETS 2015,
    eq. 14; Kawamoto and Murakami, ESORICS 2019, Def. 1). ``pairs`` limits either to index pairs,
    each in both directions; the default is all pairs. inf where a zero faces a positive entry.

    Raises
    ------
    ProblemError
        On pairs that are not indices of two secrets, or an unusable distance.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> m = om.mechanisms.geometric(line, "ln 2")
    >>> found = om.measures.tightest(m, om.distances.euclidean())
    >>> print(round(found.value, 4), found.secret, found.other)
    0.6931 0 1
    """
    found = Tightest(0.0)
    labels = m.secrets.labels
    for i, others, scale in neighbours(m, distance, pairs):
        best, logs = most_revealing(m.matrix[i][None, :], m.matrix[others])
        values = per_unit(logs, scale)
        k = int(values.argmax())
        if found.indices is None or values[k] > found.value:
            j, o = int(others[k]), int(best[k])
            found = Tightest(
                float(values[k]), labels[i], labels[j], m.observables.labels[o], (i, j, o)
            )
    return found


@checked_arguments
def epsilon(
    m: Mechanism, distance: DistanceLike | None = None, pairs: IndexPairs | None = None
) -> float:
    """The least ε of metric (with ``distance``) or differential privacy; see ``tightest``.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> m = om.mechanisms.geometric(line, "ln 2")
    >>> print(round(om.measures.epsilon(m, om.distances.euclidean()), 4))  # ln 2 per km
    0.6931
    >>> print(round(om.measures.epsilon(m), 4))  # 2 ln 2 for any two places
    1.3863
    """
    return tightest(m, distance, pairs).value


@checked_arguments
def delta(
    m: Mechanism,
    epsilon: Number,
    distance: DistanceLike | None = None,
    *,
    pairs: IndexPairs | None = None,
) -> float:
    """The least δ for which ``m`` is (ε, δ)-private: max over s, s' of
    Σ_o max(0, p(o|s) - e^{ε d(s,s')} p(o|s')) (Kawamoto and Murakami, ESORICS 2019, Def. 1, 4).

    ``epsilon`` is a number >= 0 or an exact string; ``distance`` (default: d = 1) and ``pairs``
    as in ``tightest``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.measures.delta(m, epsilon=0), om.measures.delta(m, epsilon="ln 3")
    (0.5, 0.0)
    """
    rate = float_of(epsilon, "epsilon")
    worst = 0.0
    for i, others, scale in neighbours(m, distance, pairs):
        spent = excess_mass(m.matrix[i][None, :], m.matrix[others], rate * scale)
        worst = max(worst, float(spent.max()))
    return min(worst, 1.0)


@checked_arguments
def epsilon_for_delta(
    m: Mechanism,
    delta: Number,
    distance: DistanceLike | None = None,
    *,
    pairs: IndexPairs | None = None,
) -> float:
    """The least ε >= 0 for which ``m`` is (ε, δ)-private: the inverse of ``delta``.

    Solved in closed form on the sorted likelihood ratios of every pair, without iteration. inf
    where a pair has more than δ on observables that the other secret excludes, or where secrets
    at distance 0 differ by more than δ in total variation.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.measures.epsilon_for_delta(m, delta=0.25), 4))  # ln 2
    0.6931
    """
    budget = float(probability(delta))
    if budget == 0:
        return epsilon(m, distance, pairs)
    worst = 0.0
    for i, others, scale in neighbours(m, distance, pairs):
        row = m.matrix[i][None, :]
        # only pairs that break δ at the ε found so far can raise it; few need the sort
        if np.isfinite(worst):
            open_ = excess_mass(row, m.matrix[others], worst * scale) > budget
            others, scale = others[open_], scale[open_]
        if len(others):
            logs = least_log_ratio(row, m.matrix[others], budget)
            worst = max(worst, float(per_unit(logs, scale).max()))
    return worst


def distributions(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), as they are; raises ProblemError on NaN, a negative
    entry, a sum that is not 1 (within 1e-9), or different lengths."""
    first, second = distribution(weights_of(p), "p"), distribution(weights_of(q), "q")
    if first.shape != second.shape:
        raise ProblemError(
            f"has {second.size} entries, and p has {first.size}",
            where="q",
            remedy="Give distributions over the same set",
        )
    return first, second


def hockey_stick_curve(p: Distribution, q: Distribution) -> HockeyStick:
    """δ(ε) = Σ_o max(0, p_o - e^ε q_o) for two distributions of shape (m,), exactly: its
    breakpoints, values and inverse (Kawamoto and Murakami, ESORICS 2019, Def. 1).

    Raises
    ------
    ProblemError
        On different shapes, a negative entry, or a sum that is not 1 (within 1e-9).

    Examples
    --------
    >>> curve = om.measures.hockey_stick_curve([0.75, 0.25], [0.25, 0.75])
    >>> print(round(curve.delta("ln 2"), 4))  # 3/4 - 2/4
    0.25
    """
    return HockeyStick(*distributions(p, q))


@checked_arguments
def distribution_epsilon(
    m: Mechanism, lam0: Distribution, lam1: Distribution, delta: Number = 0.0
) -> float:
    """The least ε of (ε, δ)-distribution privacy for the pair, both ways (Kawamoto and Murakami,
    ESORICS 2019, Def. 8).

    ``lam0`` and ``lam1`` are distributions over the secrets, shape (n_s,), normalised here.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.measures.distribution_epsilon(m, [0.75, 0.25], [0.25, 0.75]), 4))  # ln(5/3)
    0.5108
    """
    budget = float(probability(delta))
    if budget == 0:
        p, q = (pushed(Wide.of(lam), m.matrix) for lam in _pair(m, lam0, lam1))
        return float(either_log_ratio(p, q).max(initial=0.0))
    return max(float(least_log_ratio(a, b, budget)[0]) for a, b in _lifted(m, lam0, lam1))


@checked_arguments
def distribution_delta(
    m: Mechanism, lam0: Distribution, lam1: Distribution, epsilon: Number
) -> float:
    """The least δ of (ε, δ)-distribution privacy for the pair, both ways (Kawamoto and Murakami,
    ESORICS 2019, Def. 8).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.measures.distribution_delta(m, [0.75, 0.25], [0.25, 0.75], epsilon=0)
    0.25
    """
    rate = np.array([float_of(epsilon, "epsilon")])
    spent = max(float(excess_mass(a, b, rate)[0]) for a, b in _lifted(m, lam0, lam1))
    return min(spent, 1.0)


@checked_arguments
def posterior(m: Mechanism, prior: Prior) -> Floats:
    """π(s|o) by Bayes' rule, shape (observables, secrets); rows sum to one (Shokri, PETS 2015, eq.
    25).

    An observable of probability 0 teaches nothing: its row is the prior.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(om.measures.posterior(m, om.Prior.uniform(sides)))
    [[0.75 0.25]
     [0.25 0.75]]
    """
    weights = prior_weights(m, prior)
    possible = np.where(weights[:, None] > 0, m.matrix, 0.0)
    # columns are scaled to a largest entry of 1 so that products with π cannot all underflow
    top = possible.max(axis=0)
    joint = weights[:, None] * (possible / np.where(top > 0, top, 1.0))
    evidence = joint.sum(axis=0)
    joint[:, evidence == 0] = weights[:, None]
    return np.ascontiguousarray((joint / joint.sum(axis=0)).T)


@checked_arguments
def bayes_vulnerability(m: Mechanism, prior: Prior) -> float:
    """Σ_o max_s π(s) p(o|s): the chance that the best single guess is right.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> om.measures.bayes_vulnerability(m, om.Prior.uniform(sides))
    0.75
    """
    return float((prior_weights(m, prior)[:, None] * m.matrix).max(axis=0).sum())


@checked_arguments
def conditional_entropy(m: Mechanism, prior: Prior) -> float:
    """H(S|O) in bits: what an observer still does not know about the secret, on average.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.measures.conditional_entropy(m, om.Prior.uniform(sides)), 4))  # bits
    0.8113
    """
    learnt = posterior(m, prior)
    logs = np.log2(learnt, where=learnt > 0, out=np.zeros_like(learnt))
    per_observable = -(learnt * logs).sum(axis=1)
    return max(0.0, float(m.push(prior_weights(m, prior)) @ per_observable))


@checked_arguments
def mutual_information(m: Mechanism, prior: Prior) -> float:
    """I(S;O) = Σ_{s,o} π(s) p(o|s) ln(p(o|s) / (πP)(o)) in nats, as ``MutualInformation`` limits
    it; ``leakage.shannon_leakage`` encloses it.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> print(round(om.measures.mutual_information(m, om.Prior.uniform(sides)), 4))  # nats
    0.1308
    """
    weights = prior_weights(m, prior)
    output = m.push(weights)
    joint = weights[:, None] * m.matrix
    logs = np.where(joint > 0, log_ratio(m.matrix, output), 0.0)
    return max(0.0, float((joint * logs).sum()))


def prior_weights(m: Mechanism, prior: Prior) -> Floats:
    """π as an array, shape (n_s,); raises ProblemError unless it is over the secrets of ``m``."""
    given, secrets = prior.domain, m.secrets
    if given is not secrets and given.labels != secrets.labels:
        raise ProblemError(
            f"is over {len(given)} secrets that are not the mechanism's {len(secrets)}",
            where="prior",
            remedy="Use the same labels in the same order",
        )
    return prior.weights


def weights_over(m: Mechanism, lam: Distribution, where: str) -> Floats:
    """A distribution over the secrets, checked and normalised, shape (n_s,)."""
    with moved(where):
        return prior_weights(m, lam if isinstance(lam, Prior) else Prior(m.secrets, lam))


def _loss_per_secret(m: Mechanism, loss: DistanceLike) -> Floats:
    values = loss_matrix(as_loss(loss, "loss"), m.secrets, m.observables)
    return np.asarray((m.matrix * values).sum(axis=1))


def _lifted(m: Mechanism, lam0: Distribution, lam1: Distribution) -> Iterator[tuple[Floats, ...]]:
    """λ0P and λ1P as rows of shape (1, n_o), in both orders."""
    return permutations(m.push(lam)[None, :] for lam in _pair(m, lam0, lam1))


def _pair(m: Mechanism, lam0: Distribution, lam1: Distribution) -> list[Floats]:
    return [weights_over(m, lam0, "lam0"), weights_over(m, lam1, "lam1")]


def neighbours(
    m: Mechanism, distance: DistanceLike | None, pairs: IndexPairs | None
) -> Iterator[tuple[int, Ints, Floats]]:
    """For every secret with neighbours: its index, theirs, and the distances to them."""
    adjacent = _adjacent(pairs, len(m.secrets))
    values = np.ones(adjacent.shape)
    if distance is not None:
        values = evaluate(distance, m.secrets, m.secrets, infinite=True)
    for i, row in enumerate(adjacent & np.isfinite(values)):
        others = np.flatnonzero(row)
        if len(others):
            yield i, others, values[i, others]


def _adjacent(pairs: IndexPairs | None, count: int) -> Bools:
    if pairs is None:
        return ~np.eye(count, dtype=bool)
    remedy = f"Give pairs of indices from 0 to {count - 1}"
    listed = finite_array(pairs, where="pairs")
    if listed.ndim != 2 or listed.shape[1] != 2 or not len(listed):
        raise ProblemError(f"shape {listed.shape} is not (m, 2)", where="pairs", remedy=remedy)
    wrong = np.flatnonzero(
        ((listed != np.floor(listed)) | (listed < 0) | (listed >= count)).any(axis=1)
    )
    if len(wrong):
        i, j = listed[wrong[0]].tolist()
        raise ProblemError(
            f"({i:g}, {j:g}) is not a pair of the {count} secrets",
            where=f"pairs[{wrong[0]}]",
            remedy=remedy,
        )
    first, second = listed.astype(np.int64).T
    adjacent = np.zeros((count, count), dtype=bool)
    adjacent[first, second] = adjacent[second, first] = True
    np.fill_diagonal(adjacent, False)
    return adjacent


def per_unit(spent: ArrayLike, scale: ArrayLike) -> Floats:
    """``spent`` per unit of ``scale``, entry by entry: at 0 no ε helps, unless none is needed."""
    amounts = np.asarray(spent)
    with np.errstate(all="ignore"):
        return np.where(amounts > 0, amounts / np.asarray(scale), 0.0)
