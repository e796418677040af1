"""From an approximate matrix to one that satisfies the statement."""

from __future__ import annotations

from itertools import chain

import numpy as np

from optmech.domain import Floats
from optmech.repair.cone import Cone
from optmech.repair.mixing import best_mixture, constant_anchors, has_convex_constraints
from optmech.statement import Statement

__all__ = ["Cone", "repair"]


def repair(
    statement: Statement, cone: Cone, matrix: Floats, anchors: tuple[Floats, ...] = ()
) -> Floats | None:
    """A matrix near ``matrix`` that is meant to satisfy every inequality, or None.

    ``anchors`` are known feasible matrices to mix with, beside the constant mechanisms. The
    result is still to be checked: this function promises nothing.
    """
    if not np.isfinite(matrix).all():
        return None
    cost = statement.prior[:, None] * statement.loss
    completed = cone.complete(cone.closure(matrix), cost)
    if completed is None:
        return None
    if not has_convex_constraints(statement):
        return completed
    return best_mixture(
        statement, completed, chain(constant_anchors(statement, completed), anchors)
    )
