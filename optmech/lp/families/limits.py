"""Limits on losses and biases, rows across blocks; on what an adversary gains or misses by the best
guess in every block (Shokri, PETS 2015, eq. 21b), and its total; linear inequalities over the
probabilities, rows across blocks.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats
from optmech.base.read_only import record
from optmech.certificate.families import AttackMultipliers, Leakage, Linear
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point
from optmech.lp.families.base import LARGEST_LOG, Part, Reader


@record
class LossPart(Part):
    """Σ_so weighted[s,o] P[s,o] <= maximum, or that for every row s where ``per_secret``."""

    number: int
    weighted: Floats
    maximum: float
    per_secret: bool

    def write(self, lp: Assembly) -> Reader:
        rows = lp.weighted_rows(self.weighted, self.per_secret)
        limit = lp.link(np.full(rows.shape[0], float(self.maximum)), rows)

        return lambda point: point.links[limit]

    def violation(self, matrix: Floats, guard: float) -> float:
        per_row = (self.weighted * matrix).sum(axis=1)
        spent = float(per_row.max() if self.per_secret else per_row.sum())
        return (spent - self.maximum) / max(self.maximum, spent, 1e-300) - abs(guard)


@record
class BiasPart(Part):
    """|Σ_o (reported[o] - meant[s]) P[s,o]| <= maximum for every s, as rows sum to one."""

    number: int
    reported: Floats
    meant: Floats
    maximum: float

    def _apart(self) -> Floats:
        return self.reported - self.meant[:, None]

    def write(self, lp: Assembly) -> Reader:
        rows = lp.weighted_rows(self._apart(), per_secret=True)
        most = np.full(lp.secrets, self.maximum)
        above, below = (lp.link(most, sign * rows) for sign in (1, -1))

        return lambda point: np.array([point.links[above], point.links[below]])

    def violation(self, matrix: Floats, guard: float) -> float:
        apart = self._apart()
        off = float(np.abs((apart * matrix).sum(axis=1)).max())
        size = max(self.maximum, float(np.abs(apart).max()), 1e-300)
        return (off - self.maximum) / size - abs(guard)


@record
class DistortionPart(Part):
    """Σ_o min_t Σ_s weighted[t,s] P[s,o] >= minimum; ``prior`` is the adversary's."""

    may_be_slack = True
    number: int
    weighted: Floats
    minimum: float
    prior: Floats

    def write(self, lp: Assembly) -> Reader:
        column, rows = lp.extreme_rows(self.weighted, 0.0)
        total = lp.over_blocks(np.array([-1.0]), np.array([column]))
        limit = lp.link(np.array([-float(self.minimum)]), total)

        return lambda point: AttackMultipliers(float(point.links[limit][0]), point.local[rows].T)

    def violation(self, matrix: Floats, guard: float) -> float:
        visited = np.flatnonzero(self.prior)
        error = float((self.weighted[:, visited] @ matrix[visited]).min(axis=0).sum())
        return (self.minimum - error) / max(self.minimum, 1e-300) - abs(guard)

    def tightened(self, margin: float) -> DistortionPart:
        """Up to the error of an adversary who sees nothing, which none exceeds."""
        blind = float(self.weighted.sum(axis=1).min())
        return replace(self, minimum=min(self.minimum * (1 + margin), blind))

    def weights(self) -> Floats:
        return np.asarray(self.weighted.sum(axis=0))


@record
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
        limit = lp.link(np.array([self.maximum - played.constant]), total)

        def read(point: Point) -> AttackMultipliers:
            weight = float(point.links[limit][0])
            return AttackMultipliers(weight, played.strategy(point, weight))

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


@record
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
    # x >= 0 must cut off nothing
    if not regrets and (weighted >= 0).all(axis=1).any():
        return Gains(weighted, *lp.extreme_rows(weighted, cost, -1.0), 1.0, 0.0)
    best = weighted.max(axis=0)
    return Gains(weighted, *lp.extreme_rows(best - weighted, -cost), -1.0, float(best.sum()))


@record
class LinearPart(Part):
    """lower <= sparse P <= upper, inf where there is no limit; ``equal`` where both are one but
    for the slack that an equality has."""

    number: int
    observables: int
    sparse: sp.csr_array
    lower: Floats
    upper: Floats
    equal: Bools
    size: Floats
    """Of every inequality: what a violation is relative to."""

    @classmethod
    def of(cls, number: int, family: Linear) -> LinearPart:
        slack = np.array([float(v) for v in family.slack])
        lower, upper = (
            np.array([sign * np.inf if v is None else float(v) for v in limits])
            for limits, sign in ((family.lower, -1), (family.upper, 1))
        )
        largest = abs(family.weights).max(axis=1).toarray().ravel()
        stated = np.where(np.isfinite(upper), abs(upper), np.where(np.isfinite(lower), lower, 0))
        size = np.maximum(np.maximum(largest, abs(stated)), 1e-300)
        equal = lower == upper
        return cls(
            number, family.observables, family.weights, lower - slack, upper + slack, equal, size
        )

    def write(self, lp: Assembly) -> Reader:
        above = np.isfinite(self.upper) & ~self.equal
        below = np.isfinite(self.lower) & ~self.equal
        middle = (self.lower + self.upper) / 2
        sides = (above, self.upper, 1.0), (below, -self.lower, -1.0), (self.equal, middle, 0.0)
        parts = [
            (rows, sign, lp.link(limit[rows], self._rows(rows, sign or 1.0), equal=not sign))
            for rows, limit, sign in sides
            if rows.any()
        ]

        def read(point: Point) -> Floats:
            out = np.zeros((2, len(self.upper)))
            for rows, sign, place in parts:
                price = (sign or 1.0) * point.links[place]
                out[:, rows] += np.maximum(price, 0.0), np.maximum(-price, 0.0)
            return out

        return read

    def _rows(self, rows: Bools, sign: float) -> sp.coo_array:
        return sp.coo_array(sign * self.sparse[np.flatnonzero(rows)])

    def violation(self, matrix: Floats, guard: float) -> float:
        value = self.sparse @ matrix.ravel()
        over = np.maximum(value - self.upper, self.lower - value) / self.size
        return float(over.max()) - abs(guard)

    def tightened(self, margin: float) -> LinearPart:
        """By a share of the size, and up to half of the room between two limits."""
        room = np.minimum(margin * self.size, (self.upper - self.lower) / 4)
        return replace(self, lower=self.lower + room, upper=self.upper - room)

    def weights(self) -> Floats:
        total = np.asarray(abs(self.sparse).sum(axis=0)).reshape(-1, self.observables)
        return np.asarray(total.sum(axis=1))
