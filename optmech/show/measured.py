"""What every constraint of a problem amounts to in a given mechanism, measured from the matrix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from optmech import divergences
from optmech.analysis import measures
from optmech.base.arrays import Ints
from optmech.errors import ProblemError
from optmech.problem.constraints import (
    Constraint,
    DifferentialPrivacy,
    DistortionPrivacy,
    DistributionPrivacy,
    LossBound,
    MaximizeDistortion,
    MetricPrivacy,
    Support,
)
from optmech.problem.problem import Problem
from optmech.show import words
from optmech.spaces.distances import Distance, distance_name, evaluate, matrix
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tabulated import NAMED, distance_words


@dataclass(frozen=True)
class Measured:
    """One promise and what the matrix keeps of it."""

    constraint: int
    kind: str
    quantity: str
    """ "epsilon", "delta", "divergence", "distortion", "loss" or "outside"."""
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
        found = _measure(problem, mechanism, constraint)
        if found is not None:
            quantity, promised, measured = found
            sense = "at least" if quantity == "distortion" else "at most"
            name = words.kind(constraint)
            rows.append(Measured(k, name, quantity, sense, promised, measured))
    return rows


def choose_distance(problem: Problem, name: str | None = None) -> tuple[str, Distance]:
    """The distance in which attacks are measured, with what may be said of it.

    Unless one is asked for: that of the first distortion privacy, the objective's, that of the
    first metric privacy, the loss where estimates fit it, Hamming.

    Raises
    ------
    ProblemError
        When ``name`` is unknown.
    """
    known = named_distances(problem)
    if name is not None:
        if name not in known:
            raise ProblemError(
                f"{name!r} is unknown here",
                where="--distance",
                remedy=f"Use one of {', '.join(known)}",
            )
        return distance_words(known[name]) if name != "loss" else name, known[name]
    stated = [c.distance for c in problem.constraints if isinstance(c, DistortionPrivacy)]
    if isinstance(problem.objective, MaximizeDistortion):
        stated.append(problem.objective.distance)
    stated += [c.distance for c in problem.constraints if isinstance(c, MetricPrivacy)]
    if stated:
        return distance_words(stated[0]), stated[0]
    fallback = _name_of_loss(problem, known) if "loss" in known else "hamming"
    return fallback, known[fallback]


def _name_of_loss(problem: Problem, known: dict[str, Distance]) -> str:
    """The named distance that the loss is, entry by entry, so that it has a unit; else "loss"."""
    for name in ("euclidean", "haversine", "manhattan", "hamming"):
        try:
            values = evaluate(known[name], problem.secrets, problem.observables, where=name)
        except ProblemError:
            continue
        if np.allclose(values, problem.loss_matrix, rtol=1e-12, atol=0):
            return name
    return "loss"


def blind_error(problem: Problem, distance: Distance) -> float:
    """d_max: the error of an adversary who sees nothing."""
    values = evaluate(distance, problem.secrets, problem.secrets, where="distance")
    return float((values @ problem.prior.weights).min())


def named_distances(problem: Problem) -> dict[str, Distance]:
    """The distances that a problem knows by name, and the plain ones."""
    known = dict(NAMED)
    if problem.loss_matrix.shape[0] == problem.loss_matrix.shape[1]:
        known["loss"] = matrix(problem.loss_matrix)
    for constraint in problem.constraints:
        distance = getattr(constraint, "distance", None)
        if distance is not None and distance_name(distance) not in NAMED:
            known[distance_name(distance)] = distance
    return known


def _measure(
    problem: Problem, m: Mechanism, constraint: Constraint
) -> tuple[str, float, float] | None:
    match constraint:
        case MetricPrivacy():
            return _metric(m, constraint)
        case DifferentialPrivacy():
            pairs = _adjacent(m, constraint)
            return _ratio(m, constraint, None, pairs)
        case DistortionPrivacy():
            prior = problem.prior if constraint.prior is None else constraint.prior
            value = measures.distortion(m, prior, constraint.distance)
            return "distortion", float(constraint.minimum), value
        case DistributionPrivacy():
            return _distribution(m, constraint)
        case LossBound():
            loss = problem.loss if constraint.loss is None else constraint.loss
            value = (
                measures.worst_loss(m, loss)
                if constraint.worst_case
                else measures.expected_loss(m, problem.prior, loss)
            )
            return "loss", float(constraint.maximum), value
        case Support():
            allowed = problem.statement.allowed
            return "outside", 0.0, float(m.matrix[~allowed].max(initial=0.0))


def _metric(m: Mechanism, constraint: MetricPrivacy) -> tuple[str, float, float] | None:
    if constraint.observable_threshold is not None:
        return None
    pairs = None
    if constraint.threshold is not None:
        pairs = _within(m, constraint.distance, constraint.threshold)
    return _ratio(m, constraint, constraint.distance, pairs)


def _ratio(
    m: Mechanism,
    constraint: MetricPrivacy | DifferentialPrivacy,
    distance: Distance | None,
    pairs: Ints | None,
) -> tuple[str, float, float]:
    if pairs is not None and not len(pairs):
        return "epsilon", float(constraint.epsilon), 0.0
    if constraint.delta > 0:
        spent = measures.delta(m, constraint.epsilon, distance, pairs=pairs)
        return "delta", float(constraint.delta), spent
    return "epsilon", float(constraint.epsilon), measures.epsilon(m, distance, pairs)


def _distribution(m: Mechanism, constraint: DistributionPrivacy) -> tuple[str, float, float]:
    if constraint.divergence != "max":
        spent = divergences.distribution_epsilon(
            m, constraint.pairs, constraint.divergence, scale=constraint.scale
        )
        return "divergence", float(constraint.epsilon), spent
    scales = constraint.scale or (1.0,) * len(constraint.pairs)
    if constraint.delta > 0:
        spent = max(
            measures.distribution_delta(m, a, b, float(constraint.epsilon) * scale)
            for (a, b), scale in zip(constraint.pairs, scales, strict=True)
        )
        return "delta", float(constraint.delta), spent
    found = [
        float(measures.per_unit(measures.distribution_epsilon(m, a, b), scale))
        for (a, b), scale in zip(constraint.pairs, scales, strict=True)
    ]
    return "epsilon", float(constraint.epsilon), max(found)


def _adjacent(m: Mechanism, constraint: DifferentialPrivacy) -> Ints | None:
    adjacency = constraint.adjacency
    if adjacency == "all":
        return None
    if callable(adjacency[0]):
        distance, radius = adjacency
        return _within(m, distance, float(radius))
    return np.array([pair for pair in adjacency if pair[0] != pair[1]]).reshape(-1, 2)


def _within(m: Mechanism, distance: Distance, radius: float) -> Ints:
    values = evaluate(distance, m.secrets, m.secrets, where="distance")
    near = values <= radius
    np.fill_diagonal(near, False)
    return np.argwhere(near)
