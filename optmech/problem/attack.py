"""The distance in which the attack on a problem's mechanisms is measured."""

from __future__ import annotations

import numpy as np

from optmech.errors import ProblemError
from optmech.problem import DistortionPrivacy, MaximizeDistortion, MetricPrivacy, Problem
from optmech.spaces.distances import Distance, distance_name, evaluate, matrix
from optmech.spaces.tables import NAMED, distance_words


def choose_distance(problem: Problem, name: str | None = None) -> tuple[str, Distance]:
    """The distance in which attacks are measured, with what may be said of it.

    Unless one is asked for: that of the first distortion privacy, the objective's, that of the
    first metric privacy, the loss where estimates fit it, Hamming. Raises ProblemError when
    ``name`` is unknown.
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
    metric = [c for c in problem.constraints if isinstance(c, MetricPrivacy)]
    stated += [c.distance for c in metric if not c.leaves_out(problem.space)]
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
