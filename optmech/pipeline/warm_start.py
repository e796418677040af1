"""What a design of a neighbouring problem is worth at the start: hints, never trusted."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from optmech.certificate import Multipliers
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.lp.blocks import Start
from optmech.pipeline.session import Session
from optmech.problem.problem import Problem
from optmech.statement.statement import Statement


def require_fit(problem: Problem, start: object) -> Design:
    """``start`` as a design whose matrix has the problem's shape.

    Raises
    ------
    ProblemError
        Where it is no design, or one over other numbers of secrets or observables.
    """
    if not isinstance(start, Design):
        raise ProblemError(
            f"{type(start).__name__} is not a Design",
            where="start",
            remedy="Give the design of a neighbouring problem, or om.Design.load(file)",
        )
    given, wanted = start.problem.loss_matrix.shape, problem.loss_matrix.shape
    if given != wanted:
        raise ProblemError(
            f"a design of {given[0]} secrets and {given[1]} observables does not fit a problem of "
            f"{wanted[0]} and {wanted[1]}",
            where="start",
            remedy="Start from a design over the same secrets and observables, or from none",
        )
    return start


def offer(session: Session, start: Design) -> None:
    """Offer the neighbour's matrix, repaired, and those of its multipliers that still fit."""
    if start.matrix is not None:
        session.offer_matrix(start.matrix)
        session.unrepaired = None
    old, new = start.problem.statement, session.statement
    session.offer_bound(_fitting(start.certificate.multipliers, old, new))


def hint(design: Design) -> Start | None:
    """What an engine may begin with; None where there is no mechanism, or the neighbour's problem
    has more than pairs and the hint would mislead."""
    statement, ratio = design.problem.statement, design.certificate.multipliers.ratio
    others = (
        statement.windowed or statement.lifted or statement.approximate or statement.divergences
        or statement.distortion or statement.loss_limits
    )  # fmt: skip
    if design.matrix is None or ratio is None or others:
        return None
    # one order, however they were stored: sums depend on it
    order = np.lexsort((ratio.j, ratio.i, ratio.o))
    i, j, block = (part[order] for part in (ratio.i, ratio.j, ratio.o))
    return Start(design.matrix, statement.log_ratio, i, j, block, ratio.value[order])


def _fitting(multipliers: Multipliers, old: Statement, new: Statement) -> Multipliers:
    """The families of multipliers whose inequalities the new statement has in the same numbers."""
    before, after, none = _shapes(old), _shapes(new), Multipliers()
    families = [field.name for field in fields(Multipliers)]
    misfits = {name: getattr(none, name) for name in families if before[name] != after[name]}
    return replace(multipliers, **misfits)


def _shapes(statement: Statement) -> dict[str, object]:
    """What has to agree for every family of ``Multipliers`` to mean the same."""
    return {
        "ratio": (),
        "windowed": len(statement.windowed),
        "lifted": [part.left.shape for part in statement.lifted],
        "approximate": [part.left.shape for part in statement.approximate],
        "divergences": [(part.kind, part.left.shape) for part in statement.divergences],
        "distortion": len(statement.distortion),
        "loss_limits": [part.per_secret for part in statement.loss_limits],
        "objective": statement.objective,
    }
