"""Linear inequalities over the probabilities: rows across blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats
from optmech.base.read_only import record
from optmech.certificate.families import Linear
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Point
from optmech.lp.families.base import Part, Reader


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
        largest = np.asarray(abs(family.weights).max(axis=1).toarray()).ravel()
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
