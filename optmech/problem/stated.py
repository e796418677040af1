"""From a problem's constraints to the statement that the certificate speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from optmech.certificate.families import known
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
    VerificationError
        Where a kind of another package has families that the certificate does not know, or whose
        fields cannot be meant.
    """
    families: list[Family] = []
    for k, stated in enumerate(constraints):
        with inside(f"constraints[{k}]"):
            families += _families(k, _require(stated), space)
    name: Objective = "maximize_distortion"
    factors = None
    if isinstance(objective, MaximizeDistortion):
        with inside("objective"):
            factors = objective.factors(space)
    else:
        name = objective
    statement = Statement(space.prior.weights, space.loss, name, tuple(families), factors)
    known(statement)
    return statement


def _families(index: int, stated: Constraint, space: Space) -> Iterator[Family]:
    """Its families, if that is what a kind of any package yields."""
    given = stated.families(index, space)
    for family in given if isinstance(given, Iterable) else [given]:
        if not isinstance(getattr(family, "kind", None), str) or family.index != index:
            raise ProblemError(
                f"{type(stated).__name__} leads to a {type(family).__name__}, which is no family "
                "of inequalities of this constraint",
                remedy="Its method families(index, space) yields families with that index",
            )
        yield family


def _require(stated: object) -> Constraint:
    if isinstance(stated, Constraint):
        # a file names the kind, and its readers take the registered class for it
        if kinds().get(getattr(stated, "kind", "")) is type(stated):
            return stated
        raise ProblemError(
            f"{type(stated).__name__} is not a registered kind of constraint",
            remedy="Give it a name with optmech.problem.constraint.constraint",
        )
    names = [kind.__name__ for kind in kinds().values()]
    raise ProblemError(
        f"{type(stated).__name__} is not a constraint",
        remedy=f"Use {', '.join(names[:-1])} or {names[-1]}",
    )
