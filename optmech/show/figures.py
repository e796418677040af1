"""Numbers that people look at: what every promise amounts to in a mechanism, what the optimal
attack makes of it, how much of their log ratios pairs of secrets use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from optmech.analysis import attacks
from optmech.analysis.measures import posterior
from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.problem import Problem
from optmech.problem.attack import named_distances
from optmech.spaces.distances import Distance, between, evaluate
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tables import distance_words

BINS = 56


@dataclass(frozen=True)
class Measured:
    """One promise and what the matrix keeps of it."""

    constraint: int
    kind: str
    quantity: str
    """ "epsilon", "delta", "divergence", "distortion", "leakage", "bias", "information", "loss"
    or "outside"."""
    sense: str
    """ "at most" or "at least"."""
    promised: float
    measured: float

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def measure_constraints(problem: Problem, mechanism: Mechanism) -> list[Measured]:
    """A row for every constraint whose promise is a number."""
    rows = []
    for k, constraint in enumerate(problem.constraints):
        kept = constraint.measured(mechanism, problem.space)
        if kept is not None:
            quantity, promised, measured, sense = kept
            rows.append(Measured(k, constraint.called, quantity, sense, promised, measured))
    return rows


def blind_error(problem: Problem, distance: Distance) -> float:
    """d_max: the error of an adversary who sees nothing."""
    values = between(distance, problem.secrets)
    return float((values @ problem.prior.weights).min())


@record
class Adversary:
    """The optimal attack, observable by observable."""

    marginal: Floats
    """p(o) under the prior, shape (observables,)."""
    guess: Ints
    """Index of the estimate."""
    error: Floats
    """Expected distance between estimate and secret, given o."""
    right: Floats
    """Probability that the estimate is the secret, given o."""
    per_secret: Floats
    """Expected error for each secret, shape (secrets,)."""
    total: float


def adversary(m: Mechanism, prior: Prior, distance: Distance) -> Adversary:
    """What the optimal attack guesses for each observable, and how far off it is."""
    attack = attacks.optimal_attack(m, prior, distance)
    values = between(distance, m.secrets)
    beliefs = posterior(m, prior)
    guess = attack.strategy.argmax(axis=1)
    return Adversary(
        marginal=m.push(prior.weights),
        guess=guess,
        error=(beliefs * values[guess]).sum(axis=1),
        right=beliefs[np.arange(len(guess)), guess],
        per_secret=attack.error_per_secret,
        total=attack.error,
    )


@record
class Spread:
    """How many ordered pairs of secrets use how much of the log ratio allowed to them."""

    counts: Ints
    """(BINS, BINS): rows by measured, columns by allowed log ratio, both from 0 to ``top``."""
    top: float
    beyond: int
    """Pairs whose measured log ratio is infinite, or that no constraint limits."""


def spread(matrix: Floats, allowed: Floats) -> Spread | None:
    """Measured against allowed log ratios of all pairs; None where no pair is limited."""
    limited = np.isfinite(allowed)
    if not limited.any():
        return None
    top = float(allowed[limited].max()) or 1.0
    counts = np.zeros((BINS, BINS), dtype=np.int64)
    size = len(matrix)
    beyond = size * (size - 1) - int(limited.sum())
    for i, row in enumerate(largest_log_ratios(matrix)):
        used = limited[i] & np.isfinite(row)
        beyond += int((limited[i] & ~np.isfinite(row)).sum())
        shares = np.array([row[used], allowed[i][used]]) / top
        np.add.at(counts, tuple(np.clip((shares * BINS).astype(np.int64), 0, BINS - 1)), 1)
    return Spread(counts, top, beyond)


def largest_log_ratios(matrix: Floats) -> Iterator[Floats]:
    """For every secret s the numbers max_o ln(p(o|s) / p(o|s')) over s'."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        for row in logs:
            # nan where both are zero, which says nothing about the pair
            yield np.fmax.reduce(row - logs, axis=1)


def loss_name(problem: Problem) -> str:
    """What may be said of the loss: the name of the distance that its numbers are."""
    if callable(problem.loss):
        return distance_words(problem.loss)
    for name, distance in named_distances(problem).items():
        if name == "loss":
            continue
        try:
            values = evaluate(distance, problem.secrets, problem.observables, where="loss")
        except ProblemError:
            continue
        if np.array_equal(values, problem.loss_matrix):
            return distance_words(distance)
    return "given as a matrix"
