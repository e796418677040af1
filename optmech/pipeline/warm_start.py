"""What a design of a neighbouring problem is worth at the start: hints, never trusted."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from optmech.certificate import Multipliers
from optmech.certificate.bound import pairs_of
from optmech.certificate.statement import Statement
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.lp.blocks import Start
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.session import Session
from optmech.problem import Problem


def require_fit(problem: Problem, start: object) -> Design:
    """``start`` as a design whose matrix has the problem's shape. Raises ProblemError where it is
    no design, or one over other numbers of secrets or observables."""
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
    multipliers = start.certificate.multipliers
    session.offer_bound(_fitting(multipliers, start.problem.statement, session.statement))


def hint(design: Design) -> Start | None:
    """What an engine may begin with; None where there is no mechanism, or the neighbour's problem
    has more than pairs and the hint would mislead."""
    given = Inequalities.of(design.problem.statement)
    ratio = pairs_of(design.problem.statement, design.certificate.multipliers)
    if design.matrix is None or ratio is None or len(given.parts) > 1:
        return None
    # one order, however they were stored: sums depend on it
    order = np.lexsort((ratio.j, ratio.i, ratio.o))
    i, j, block = (part[order] for part in (ratio.i, ratio.j, ratio.o))
    return Start(design.matrix, given.log_ratio, i, j, block, ratio.value[order])


def _fitting(multipliers: Multipliers, old: Statement, new: Statement) -> Multipliers:
    """Multipliers of those inequalities that the new statement has in the same numbers: of its
    families, those of the next old one with the same signature."""
    given: dict[Hashable, list[object]] = {}
    for family, part in multipliers.of(old):
        given.setdefault(family.signature(), []).append(part)
    fitting = [given.get(family.signature(), []) for family in new.families]
    families = tuple(parts.pop(0) if parts else None for parts in fitting)
    shapes = [None if stated.target is None else stated.target.shape for stated in (old, new)]
    same = old.objective == new.objective and shapes[0] == shapes[1]
    return Multipliers(families, multipliers.objective if same else None)
