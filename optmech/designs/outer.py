"""A problem over finitely many places whose optimum no mechanism undercuts that is private at every
point of a region: the places of the prior themselves, or cells of them (theory: "Carrying a
guarantee over to distributions")."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.designs.coarse import problem_over
from optmech.exact.exponentials import stated_up
from optmech.exact.outward import up
from optmech.problem import MetricPrivacy, Problem
from optmech.problem.constraint import Constraint
from optmech.problem.everywhere import Gradient
from optmech.spaces import distances

if TYPE_CHECKING:
    from optmech.reductions.aggregation import Coarse

FEW = 150
"""Places up to which the problem is that of the places themselves."""
FEW_BESIDE = 400
"""The same where constraints stand beside the promise, which cells leave out."""
_CELLS, _MOST_CELLS = 300, 3_000
_MEMBERS = 16
"""Places in a cell on average, between these numbers of cells."""
_GLOBAL = 2_000
"""Places in degrees that are aggregated, as it takes the table of their distances."""
_UNIT = 2.0**-53
_CLAIMED = 1e-9
"""Share of a bound that is not claimed, so that another machine's roundings prove it as well."""


def cells_of(problem: Problem, gradient: Gradient) -> Ints | None:
    """A cell for every place, (n,); None where the places are few enough to be their own."""
    if len(problem.secrets) <= (FEW_BESIDE if beside(problem, gradient) else FEW):
        return None
    from optmech.reductions.aggregation import partition

    points = _plane(problem, gradient)
    count = min(max(len(points) // _MEMBERS, _CELLS), _MOST_CELLS)
    return partition(points, problem.prior, count)


def middles_of(problem: Problem, gradient: Gradient, cells: Ints) -> Floats:
    """About where the cells with mass are, (K, 2), in the order of the problem over them."""
    some = np.flatnonzero(problem.prior.weights)
    which = np.unique(cells[some], return_inverse=True)[1]
    points = _plane(problem, gradient)[some]
    sums = np.column_stack([np.bincount(which, column) for column in points.T])
    return np.asarray(sums / np.bincount(which)[:, None])


def has_outer(problem: Problem, gradient: Gradient) -> bool:
    """Whether there is such a problem of a size that can be solved."""
    return gradient.mesh.coordinates == "plane" or len(problem.secrets) <= _GLOBAL


def outer_problem(problem: Problem, gradient: Gradient, cells: Ints | None) -> Problem:
    """The problem over the places, or over ``cells`` of them; every number is rounded to the side
    that keeps its optimum a bound.

    Raises
    ------
    ProblemError
        On cells that do not fit.
    """
    if cells is None:
        apart = distances.matrix(_apart_up(problem, gradient))
        return Problem(
            problem.prior,
            problem.loss_matrix,
            problem.observables,
            # what is said of the places is said of every mechanism
            constraints=[MetricPrivacy(gradient.epsilon, apart), *beside(problem, gradient)],
        )
    coarse = _aggregated(problem, gradient, cells)
    # where nothing nearer is known, no two places of the region differ by more
    most = _diameter_up(gradient)
    ratio = np.where(np.isfinite(coarse.log_ratio), coarse.log_ratio, most)
    return problem_over(replace(coarse, log_ratio=ratio), problem.observables)


def beside(problem: Problem, gradient: Gradient) -> list[Constraint]:
    """The constraints beside the promise at every point."""
    return [c for k, c in enumerate(problem.constraints) if k != gradient.index]


def claimable(bound: float) -> float:
    """What is claimed of a proved lower bound of the outer problem."""
    if not math.isfinite(bound) or bound <= 0:
        return 0.0
    return math.nextafter(bound * (1 - _CLAIMED), 0.0)


def _aggregated(problem: Problem, gradient: Gradient, cells: Ints) -> Coarse:
    # checking a design over few places needs nothing of this
    from optmech.reductions.aggregation import aggregated, aggregated_places

    prior, loss = problem.prior, problem.loss_matrix
    if gradient.mesh.coordinates == "plane":
        points = problem.secrets.require_points("aggregate")
        found = aggregated_places(prior, loss, points, gradient.epsilon, cells)
    else:
        rate = stated_up(gradient.epsilon)
        found = aggregated(prior, loss, up(rate * _apart_up(problem, gradient)), cells)
    return found.undivided(prior)


def _apart_up(problem: Problem, gradient: Gradient) -> Floats:
    """Floats not below the distances between places: Euclidean ones err by two units in the last
    place; on the globe radians, of at most 2π, err by 2^-51 each, which costs less than 1e-9 km
    and, up to half of the globe, less than 1e-9 of the distance."""
    secrets = problem.secrets
    if gradient.mesh.coordinates == "plane":
        found = up(distances.euclidean()(secrets, secrets) * (1 + 8 * _UNIT) + 2.0**-500)
    else:
        found = distances.haversine()(secrets, secrets) * (1 + 1e-9) + 1e-9
    found = np.array(found)
    np.fill_diagonal(found, 0.0)
    return found


def _diameter_up(gradient: Gradient) -> float:
    mesh = gradient.mesh
    box = np.ptp(mesh.vertices, axis=0)
    # a degree is less than 112 km
    widest = float(np.hypot(*box)) * (1.0 if mesh.coordinates == "plane" else 112.0)
    return stated_up(gradient.epsilon) * widest * (1 + 1e-9)


def _plane(problem: Problem, gradient: Gradient) -> Floats:
    points = problem.secrets.require_points("aggregate")
    return np.asarray(points * gradient.mesh.scale)
