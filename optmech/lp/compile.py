"""From inequalities to a BlockLP, and from its points back to matrices and multipliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.statement import Statement
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import BlockLP, HeldColumns, Point, Sense
from optmech.lp.families import Reader
from optmech.lp.families.leakage import add_gains
from optmech.lp.families.ratio import JOINT
from optmech.lp.inequalities import Inequalities


@dataclass(frozen=True, eq=False)
class ProgramMultipliers:
    """``pairs`` are of the joint log ratios, whether stated or implied; ``families`` has the others
    by the place of their family in the statement."""

    pairs: PairMultipliers
    families: dict[int, Any]
    objective: Floats | None

    def stated(self, statement: Statement) -> Multipliers:
        """Multipliers of the statement, where its families state all pairs."""
        found = {**self.families, **shared_out(statement, self.pairs)}
        families = tuple(found.get(place) for place in range(len(statement.families)))
        return Multipliers(families, self.objective)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A BlockLP with what reads its points: the families' rows, and the objective's."""

    lp: BlockLP
    readers: tuple[Reader, ...]
    objective: Callable[[Point], Floats | None]

    def recover(self, point: Point) -> tuple[Floats, ProgramMultipliers]:
        """The matrix (S, O) and the multipliers of the inequalities."""
        found = {place: part for read in self.readers for place, part in read(point).items()}
        pairs = found.pop(JOINT)
        return point.z[: self.lp.secrets], ProgramMultipliers(pairs, found, self.objective(point))


def compile_lp(given: Inequalities) -> Compiled:
    """Write a design problem as a BlockLP (PG 21, 22, 24; DP19 Def. 8, 9)."""
    return _compiled(given, elastic=False)


def compile_feasibility(given: Inequalities) -> Compiled:
    """The program whose optimum is zero exactly when the inequalities can be satisfied.

    Every row sum and every required distortion is multiplied by 1 - e with one shared e >= 0,
    which is minimised: P = 0 with e = 1 is always feasible, and the multipliers of an optimum
    e > 0 are a Farkas certificate.
    """
    return _compiled(given, elastic=True)


def _compiled(given: Inequalities, *, elastic: bool) -> Compiled:
    stated = given.statement.held
    held = None if stated is None else HeldColumns(stated.secrets, stated.matrix)
    lp = Assembly(given.allowed, held)
    index = np.arange(lp.secrets * lp.blocks)
    sums = sp.coo_array((np.ones(len(index)), (index // lp.blocks, index)))
    lp.link(Sense.EQUAL, np.ones(lp.secrets), sums)
    objective = _nothing if elastic else _objective(given, lp)
    readers = tuple(part.write(lp) for part in given.parts)
    if elastic:
        lp.add_elastic()
    return Compiled(lp.finish(), readers, objective)


def _nothing(point: Point) -> None:
    """The multipliers of an objective that has none."""


def _objective(given: Inequalities, lp: Assembly) -> Callable[[Point], Floats | None]:
    """Add what is minimised; the way back to its multipliers."""
    statement = given.statement
    if statement.objective == "expected_loss":
        lp.cost = statement.cost
        return _nothing
    if statement.objective == "worst_loss":
        column, secrets = lp.shared(1.0), lp.secrets
        rows = lp.weighted_rows(statement.loss, per_secret=True)
        places = (np.arange(secrets), np.full(secrets, column))
        level = sp.coo_array((-np.ones(secrets), places))
        worst = lp.link(Sense.AT_MOST, np.zeros(secrets), rows, level)
        return lambda point: point.links[worst]
    assert statement.target is not None
    if statement.objective == "minimize_leakage":
        played = add_gains(lp, statement.target, 1.0, regrets=given.pairs > 0)
        return lambda point: played.strategy(point, 1.0)
    _, attack = lp.attack_rows(statement.target, -1.0)
    return lambda point: point.local[attack].T
