"""From an approximate matrix to one that satisfies the statement."""

from itertools import chain

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.objective import objective_value
from optmech.lp.inequalities import Inequalities
from optmech.repair.cone import Cone as Cone
from optmech.repair.equalities import Implied as Implied
from optmech.repair.mixing import best_mixture, constant_anchors

_PRICE = 1e-8
"""What room below the limits may cost, relatively."""


def repair(
    given: Inequalities,
    cone: Cone,
    matrix: Floats,
    anchors: tuple[Floats, ...] = (),
    spared: Inequalities | None = None,
) -> Floats | None:
    """A matrix near ``matrix`` that is meant to satisfy every inequality given, or None.

    ``anchors`` are known feasible matrices to mix with, beside the constant mechanisms. With
    ``spared``, the same with a little room below the limits, these are satisfied
    instead where that costs next to nothing. The result is still to be checked: this function
    promises nothing.
    """
    if not np.isfinite(matrix).all():
        return None
    statement = given.statement
    completed = cone.complete(cone.closure(matrix), statement.cost)
    if completed is None or not given.convex:
        return completed

    def mixed(limits: Inequalities) -> Floats | None:
        others = chain(constant_anchors(statement, completed), anchors)
        return best_mixture(limits, completed, others)

    roomy = None if spared is None else mixed(spared)
    if roomy is completed:
        return roomy
    exact = mixed(given)
    if roomy is None or exact is None:
        return exact if roomy is None else roomy
    least, value = objective_value(statement, exact), objective_value(statement, roomy)
    return exact if value - least > _PRICE * abs(least) else roomy
