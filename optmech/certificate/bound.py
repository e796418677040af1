"""Lower bounds from multipliers (theory: "The Lagrangian bound").

For multipliers >= 0 of all inequalities, every feasible P has

    objective(P) >= constant + Σ_s min_o L[s,o],

where L[s,o] collects the cost of P[s,o] and the multipliers' terms, and the minimum runs over
allowed observables, because P's rows are distributions; of a row that is held fixed the minimum is
its value. Nothing about the multipliers is
trusted: signs are clipped, tests clipped to [0, 1], attacks normalised here. Powers e^{εd} enter
as floats proved to be above them; from there on everything is sums of products of floats, whose
rounding has the a-priori bound (number of roundings) x 2^-53 x (sum of absolute values).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optmech.certificate.lagrangian import Bound, Lagrangian, attack, mixture, positive
from optmech.certificate.multipliers import Multipliers
from optmech.statement import Statement


def lower_bound(statement: Statement, multipliers: Multipliers) -> Bound:
    """A number that no feasible mechanism's objective can go below, whatever the multipliers."""
    lagrangian = lagrangian_of(statement, multipliers)
    if lagrangian is None:
        return Bound(-math.inf, 0.0)
    return lagrangian.minimum(statement.allowed, statement.held)


def lagrangian_of(
    statement: Statement, multipliers: Multipliers, *, objective: bool = True
) -> Lagrangian | None:
    """L and the constant, also without the objective; None where its multipliers leave nothing."""
    families = tuple(multipliers.of(statement))
    lagrangian = Lagrangian(statement.loss.shape)
    if objective and not _add_objective(lagrangian, statement, multipliers):
        return None
    for family, given in families:
        if given is None and family.spread() is not None:
            given = family.zeros(statement)
        if given is not None:
            family.charge(statement, lagrangian, given)
    return lagrangian


def infeasibility_margin(statement: Statement, multipliers: Multipliers) -> float:
    """Positive only if no feasible mechanism exists (a Farkas certificate): the same evaluation
    without an objective bounds zero from below."""
    lagrangian = lagrangian_of(statement, multipliers, objective=False)
    assert lagrangian is not None
    return lagrangian.minimum(statement.allowed, statement.held).value


def _add_objective(lagrangian: Lagrangian, statement: Statement, multipliers: Multipliers) -> bool:
    if statement.objective == "expected_loss":
        lagrangian.add(statement.cost, statement.cost, 1.0)
    elif statement.objective == "worst_loss":
        weights = np.full(statement.secrets, 1.0 / statement.secrets)
        if multipliers.objective is not None:
            weights = positive(multipliers.objective)
        # Σ ω · max_s ℓ_s >= Σ_s ω_s ℓ_s, whatever the weights sum to
        lagrangian.weight = sum(map(Fraction, weights.tolist()), Fraction())
        if not lagrangian.weight > 0:
            return False
        part = weights[:, None] * statement.loss
        lagrangian.add(part, part, 1.0)
    elif statement.objective == "minimize_leakage":
        assert statement.target is not None
        played = multipliers.objective
        if played is None:
            played = np.ones((statement.observables, len(statement.target)))
        strategy, roundings = mixture(played)
        part = (strategy @ statement.target).T
        lagrangian.add(part, (strategy @ np.abs(statement.target)).T, roundings + 2.0)
    else:
        assert statement.target is not None
        guesses = multipliers.objective
        if guesses is None:
            guesses = np.ones((statement.observables, statement.secrets))
        part = (attack(guesses) @ statement.target).T
        lagrangian.add(-part, part, statement.secrets + 4.0)
    return True
