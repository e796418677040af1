"""A first pair in closed form, and mixing a nearly feasible matrix with an anchor that satisfies
the convex constraints.

Every constraint beyond the ratio cone is g(P) <= 0 with g convex, so on the segment from P to a
feasible anchor A the feasible part is an interval that ends in A.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from optmech.base.arrays import Floats, normalised_rows
from optmech.base.bisection import bisected
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.objective import objective_value
from optmech.certificate.statement import Statement
from optmech.lp.inequalities import Inequalities
from optmech.repair.cone import Cone

_STEPS = 60
_SWEEPS = 4
_PRICE = 1e-8
"""What room below the limits may cost, relatively."""
_SLACK = 1e-8
"""Keeps the lowered entries this far above the charge, out of reach of cancellation."""


def constant_anchors(statement: Statement, matrix: Floats) -> Iterator[Floats]:
    """Mechanisms that ignore the secret: they satisfy every privacy constraint.

    The output marginal of ``matrix``, the single cheapest observable, and the uniform row; those
    that the support allows.
    """
    usable = statement.allowed.all(axis=0)
    if not usable.any():
        return
    costs = np.where(usable, statement.prior @ statement.loss, np.inf)
    cheapest = np.zeros(statement.observables)
    cheapest[costs.argmin()] = 1.0
    marginal = np.where(usable, matrix.mean(axis=0), 0.0)
    uniform = usable / usable.sum()
    for row in (marginal, cheapest, uniform):
        total = row.sum()
        if total > 0:
            yield np.tile(row / total, (statement.secrets, 1))


def always_cheapest(cost: Floats) -> Floats:
    """What always makes the report that costs least, for costs (S, O) that add up."""
    matrix = np.zeros_like(cost)
    matrix[:, cost.sum(axis=0).argmin()] = 1.0
    return matrix


def mix(matrix: Floats, anchor: Floats, holds: Callable[[Floats], bool]) -> Floats | None:
    """The point nearest to ``matrix`` on the segment to ``anchor`` of which convex constraints
    hold, in floating point; None where they do not hold of the anchor."""

    def at(theta: float) -> Floats:
        return normalised_rows((1 - theta) * matrix + theta * anchor)

    if not holds(anchor):
        return None
    low, high = 0.0, 1.0
    # violations are tiny: find the scale first, then bisect
    for exponent in range(-15, 0):
        theta = 10.0**exponent
        if holds(at(theta)):
            high = theta
            break
        low = theta
    return at(bisected(lambda theta: holds(at(theta)), low, high, _STEPS, 1e-3)[1])


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
        """The cheapest feasible mixture with one of the anchors."""

        def holds(near: Floats) -> bool:
            return limits.violation(near) <= 0

        if holds(completed):
            return completed
        others = chain(constant_anchors(statement, completed), anchors)
        found = (mix(completed, anchor, holds) for anchor in others)
        feasible = (near for near in found if near is not None)
        return min(feasible, key=partial(objective_value, statement), default=None)

    roomy = None if spared is None else mixed(spared)
    if roomy is completed:
        return roomy
    exact = mixed(given)
    if roomy is None or exact is None:
        return exact if roomy is None else roomy
    least, value = objective_value(statement, exact), objective_value(statement, roomy)
    return exact if value - least > _PRICE * abs(least) else roomy


def first_matrix(statement: Statement, cone: Cone) -> Floats:
    """Columns e^{-r(centre, s)}, rows not yet normalised: asymptotically optimal, with
    ``first_multipliers``, when every ratio e^r is large.

    Each observable is centred on the secret it suits best, and its column falls off from there as
    fast as the ratios allow. Solvers cannot see entries far below their tolerances; this pair can.
    """
    centre = statement.loss.argmin(axis=0)
    out: Floats = np.exp(-cone.always[centre]).T
    out[centre, np.arange(len(centre))] = 1.0
    return out


def first_multipliers(statement: Statement) -> Multipliers:
    """Multipliers that charge every centre with the loss it forces upon the other secrets.

    With y_s the charge of secret s, the pair (centre, s) of block o gets
    max(0, π_s c(s,o) - y_s) e^{-r}, less a hair: L[s,o] falls to y_s, the centre's entry rises.
    """
    if statement.objective != "expected_loss":
        return Multipliers()
    cost = np.where(statement.allowed, statement.cost, np.inf)
    centre = statement.loss.argmin(axis=0)
    blocks = np.arange(len(centre))
    ratio = statement.log_ratio[centre].T
    charge = np.zeros(statement.secrets)
    with np.errstate(invalid="ignore"):
        for _ in range(_SWEEPS):
            excess = np.maximum(np.where(np.isfinite(cost), cost, 0.0) - charge[:, None], 0.0)
            value = np.where(np.isfinite(ratio), (1 - _SLACK) * excess * np.exp(-ratio), 0.0)
            value[centre, blocks] = 0.0
            own = np.array(cost)
            own[centre, blocks] += value.sum(axis=0)
            own[value > 0] = np.inf
            charge = own.min(axis=1)
            charge = np.where(np.isfinite(charge), charge, 0.0)
    s, o = np.nonzero(value)
    found = shared_out(statement, PairMultipliers(centre[o], s, o, value[s, o]))
    return Multipliers(tuple(found.get(place) for place in range(len(statement.families))))
