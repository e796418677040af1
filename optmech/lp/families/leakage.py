"""Leakage: what the best guess gains in every block, and its total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.families import AttackMultipliers, Leakage
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point, Sense
from optmech.lp.families.base import LARGEST_LOG, Part, Reader


@dataclass(frozen=True, eq=False)
class LeakagePart(Part):
    """Σ_o max_w Σ_s weighted[w,s] P[s,o] <= maximum."""

    may_be_slack = True
    number: int
    weighted: Floats
    maximum: float

    @classmethod
    def of(cls, number: int, family: Leakage) -> LeakagePart:
        most = float(family.maximum)
        if family.natural:
            most = math.exp(min(most, LARGEST_LOG))
        if family.most != family.stated:
            most = float(family.most[0])
        # what knows the secret gains at most this: a limit beyond it says nothing
        known = float(family.weighted.max(axis=0).sum())
        return cls(number, family.weighted, min(most, 2 * abs(known) + 1))

    def write(self, lp: Assembly) -> Reader:
        played = add_gains(lp, self.weighted, 0.0, regrets=lp.has_pairs)
        total = lp.over_blocks(np.array([played.sign]), np.array([played.column]))
        limit = lp.link(Sense.AT_MOST, np.array([self.maximum - played.constant]), total)

        def read(point: Point) -> dict[int, Any]:
            weight = float(point.links[limit][0])
            return {self.number: AttackMultipliers(weight, played.strategy(point, weight))}

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        used = np.flatnonzero(np.any(self.weighted, axis=0))
        gain = float((self.weighted[:, used] @ matrix[used]).max(axis=0).sum())
        size = max(abs(self.maximum), float(np.abs(self.weighted).max(axis=0).sum()), 1e-300)
        return (gain - self.maximum) / size - abs(guard)

    def tightened(self, margin: float) -> LeakagePart:
        """Down to what an adversary gains who sees nothing, the least possible."""
        blind = float(self.weighted.sum(axis=1).max())
        return replace(self, maximum=max(self.maximum - abs(self.maximum) * margin, blind))

    def weights(self) -> Floats:
        return np.asarray(np.abs(self.weighted).sum(axis=0))


@dataclass(frozen=True, eq=False)
class Gains:
    """What the best guess gains in a block is ``sign`` times the variable ``column``; in all blocks
    together, as rows sum to one, with ``constant`` added. ``rows`` is the place of its rows."""

    weighted: Floats
    column: int
    rows: int
    sign: float
    constant: float

    def strategy(self, point: Point, weight: float) -> Floats:
        """Strategies (O, W) from the multipliers of the rows, which sum to ``weight``: what the
        bound x >= 0 took belongs to the guess that gains nowhere less than 0."""
        played = np.array(point.local[self.rows].T)
        if self.sign > 0:
            usable = np.where((self.weighted >= 0).all(axis=1), self.weighted.sum(axis=1), np.inf)
            played[:, int(usable.argmin())] += np.maximum(weight - played.sum(axis=1), 0.0)
        return played


def add_gains(lp: Assembly, weighted: Floats, cost: float, *, regrets: bool) -> Gains:
    """Add max_w Σ_s weighted[w,s] v_s in every block, at a cost.

    With ``regrets``, or where gains may be below zero, as x <= Σ_s (max_w' weighted[w',s] -
    weighted[w,s]) v_s for every guess w, which the structured engine keeps apart; else as
    x >= Σ_s weighted[w,s] v_s, which has fewer entries.
    """
    if not regrets and (sparse := lp.gains_rows(weighted, cost)) is not None:
        return Gains(weighted, *sparse, 1.0, 0.0)
    best = weighted.max(axis=0)
    return Gains(weighted, *lp.attack_rows(best - weighted, -cost), -1.0, float(best.sum()))
