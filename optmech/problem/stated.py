"""From a problem's constraints to the statement that the certificate speaks of."""

from __future__ import annotations

from collections.abc import Sequence

from optmech.errors import ProblemError, inside
from optmech.problem.constraint import Constraint, kinds
from optmech.problem.objective import MaximizeDistortion
from optmech.problem.space import Space
from optmech.statement import Family, Objective, Statement


def make_statement(
    space: Space, objective: Objective | MaximizeDistortion, constraints: Sequence[Constraint]
) -> Statement:
    """Evaluate every distance and put the families of all constraints together.

    Raises
    ------
    ProblemError
        Where an array does not fit the domains; the message has the constraint's index.
    """
    families: list[Family] = []
    for k, stated in enumerate(constraints):
        with inside(f"constraints[{k}]"):
            families += _require(stated).families(k, space)
    if not isinstance(objective, MaximizeDistortion):
        return Statement(space.prior.weights, space.loss, objective, tuple(families))
    with inside("objective"):
        factors = objective.factors(space)
    return Statement(
        space.prior.weights, space.loss, "maximize_distortion", tuple(families), factors
    )


def _require(stated: object) -> Constraint:
    if isinstance(stated, Constraint):
        return stated
    names = [kind.__name__ for kind in kinds().values()]
    raise ProblemError(
        f"{type(stated).__name__} is not a constraint",
        remedy=f"Use {', '.join(names[:-1])} or {names[-1]}",
    )
