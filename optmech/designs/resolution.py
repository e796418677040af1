"""The problem over cells of secrets whose optimum no mechanism undercuts, as a design file proves
its lower bound by it (theory: "Cells and landmarks")."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import Ratio
from optmech.certificate.statement import Statement
from optmech.designs.coarse import problem_over
from optmech.exact.exponentials import stated_up
from optmech.exact.rounding import up
from optmech.problem import Problem
from optmech.reductions.cells import Limits, coarsened
from optmech.reductions.witness import Witness, witnessed


def refusal(statement: Statement) -> str:
    """Why a statement has no such problem; empty where it has."""
    if statement.objective != "expected_loss":
        return "only an expected loss can be taken from cells"
    ratios = [family for family in statement.of_kind(Ratio) if family.window is None]
    if not ratios or len(ratios) != len(statement.families):
        return "only ratios of all pairs of secrets can be taken from cells"
    if not all(_limits_all(family.distance) for family in ratios):
        return "some pairs of secrets are not limited"
    return ""


def _limits_all(distance: Floats) -> bool:
    unlimited = np.count_nonzero(~np.isfinite(distance))
    return bool(unlimited == np.count_nonzero(~np.isfinite(distance.diagonal())))


def limits_of(statement: Statement) -> Limits:
    """Floats not below the log ratios that are stated between secrets; 0 from one to itself."""
    parts = [(stated_up(f.epsilon), f.distance) for f in statement.of_kind(Ratio)]

    def limits(i: Ints, j: Ints) -> Floats:
        found = np.min([up(rate * distance[i, j]) for rate, distance in parts], axis=0)
        return np.where(i == j, 0.0, found)

    return limits


def problem_of_cells(problem: Problem, cells: Ints, witness: Witness | None = None) -> Problem:
    """The problem over ``cells`` (n,) of the secrets, its numbers as ``witness`` proves them if one
    is given. Raises ProblemError on cells or a witness that do not fit."""
    statement = problem.statement
    limits = limits_of(statement)
    if witness is None:
        found = coarsened(problem.prior, statement.loss, limits, cells)
    else:
        found = witnessed(problem.prior, statement.loss, limits, cells, witness)
    return problem_over(found, problem.observables)
