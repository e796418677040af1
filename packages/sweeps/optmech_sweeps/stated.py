"""Known mechanisms that a problem file states in its ``[[mechanisms]]`` tables, tupling among them:
made, and measured by what the problem promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optmech.analysis import measures
from optmech.errors import ProblemError, inside
from optmech.exact.number import Number
from optmech.files.load import ProblemFile
from optmech.files.validate import checked
from optmech.mechanisms.discrete import restricted_laplace
from optmech.mechanisms.planar import planar_gaussian
from optmech.mechanisms.tupling import Tupling, tupling
from optmech.pipeline.solve import solve
from optmech.problem import DistributionPrivacy, Problem, Pufferfish
from optmech.reading.errors import Collector
from optmech.show.figures import measure_constraints
from optmech.spaces.mechanism import Mechanism
from optmech_sweeps.baselines import distance_of, known
from optmech_sweeps.files import Known, KnownTables


def made(own: Known, problem: Problem) -> Mechanism:
    """The mechanism, over the secrets of a problem."""
    needs = {"restricted_laplace": ("epsilon", "radius"), "planar_gaussian": ("sigma",)}
    asked = needs.get(own.name, ("epsilon",))
    for key in ("epsilon", "radius", "sigma"):
        if (getattr(own, key) is None) == (key in asked):
            remedy = "Give a number" if key in asked else "Leave it out"
            raise ProblemError(f"of {own.name}", where=key, remedy=remedy)
    cells: Any = problem.secrets
    if own.name == "planar_gaussian":
        return planar_gaussian(cells, float(own.sigma or 0))
    epsilon: Any = own.epsilon
    if own.name == "restricted_laplace":
        apart, seen = distance_of(problem), problem.observables
        radius = float(own.radius or 0)
        return restricted_laplace(
            problem.secrets, epsilon, radius, distance=apart, observables=seen
        )
    return known(own.name, problem, epsilon)


def stated_in(file: ProblemFile) -> list[Known]:
    """The mechanisms that a file states. Raises ProblemError, with every error, where a table does
    not fit, and where there is none."""
    if not file.mechanisms:
        raise ProblemError(
            "states no mechanisms", where=file.path, remedy="Name one, such as exponential"
        )
    tables = {"mechanisms": list(file.mechanisms)}
    return checked(KnownTables, tables, Collector(), file.path).mechanisms


def beside_optimum(file: ProblemFile) -> dict[str, Any]:
    """The row of the design of least loss."""
    design = solve(file.problem, profile=file.profile or "auto")
    row = _matrix_figures(file.problem, design.mechanism)
    return {"mechanism": f"optimum ({design.status})", **row}


def measured(problem: Problem, stated: Sequence[Known]) -> list[dict[str, Any]]:
    """Of every mechanism its loss, and what it keeps of the problem's constraints; of tuples what
    is lost by the nearest, and ε at their δ of every pair of distributions, an upper bound."""
    rows = []
    for k, own in enumerate(stated):
        with inside(f"mechanisms[{k}]"):
            found = made(own, problem)
            rows.append({"mechanism": own.called, **_figures(problem, found, own)})
    return rows


def _figures(problem: Problem, made: Mechanism, own: Known) -> dict[str, Any]:
    if own.dummies is None:
        if own.delta is not None:
            raise ProblemError("belongs to dummies", where="delta", remedy="Leave it out")
        return _matrix_figures(problem, made)
    if not callable(problem.loss):
        raise ProblemError("needs a distance as loss", where="dummies", remedy="Leave it out")
    tuples = tupling(made, own.dummies)
    return {
        "loss": tuples.expected_loss(problem.prior, problem.loss),
        "worst_loss": None,
        **{
            f"constraints[{k}] epsilon": _epsilon(tuples, constraint.corners, own.delta or 0)
            for k, constraint in enumerate(problem.constraints)
            if isinstance(constraint, DistributionPrivacy | Pufferfish)
        },
    }


def _matrix_figures(problem: Problem, made: Mechanism) -> dict[str, Any]:
    kept = measure_constraints(problem, made)
    return {
        "loss": measures.expected_loss(made, problem.prior, problem.loss_matrix),
        "worst_loss": measures.worst_loss(made, problem.loss_matrix),
        **{f"constraints[{row.constraint}] {row.quantity}": row.measured for row in kept},
    }


def _epsilon(tuples: Tupling, pairs: Any, delta: Number) -> float:
    return max(tuples.epsilon(a, b, delta).upper for a, b in pairs)
