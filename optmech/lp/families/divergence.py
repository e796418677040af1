"""f-divergences: pushed distributions as variables, a perspective over them, and its total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import DivergenceMultipliers
from optmech.exact.ratios.generators import generator
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Perspective, Point, Sense
from optmech.lp.families.base import PushedPart, Reader
from optmech.lp.families.lifted import NO_ROOM


@dataclass(frozen=True, eq=False)
class DivergencePart(PushedPart):
    """D_f(left P ‖ right P) <= limit, for the generator called ``name``."""

    number: int
    name: str
    left: Floats
    right: Floats
    limit: Floats

    def write(self, lp: Assembly) -> Reader:
        """u = λ·v for every distribution λ once; p and q, each the u of its own; and w with
        Σ_o w_o <= 1 in units of the limit."""
        count = len(self.limit)
        distinct, back = np.unique(np.vstack([self.left, self.right]), axis=0, return_inverse=True)
        pushed = lp.auxiliary(len(distinct))
        p, q, w = lp.auxiliary(3 * count).reshape(3, count)
        size = int(w[-1]) + 1

        def ones(places: Ints) -> sp.csr_array:
            index = (np.arange(len(places)), places)
            return sp.csr_array((np.ones(len(places)), index), shape=(len(places), size))

        given = sp.coo_array(distinct)
        given.resize(len(distinct), size)
        first, second = back.ravel()[:count], back.ravel()[count:]
        lp.local(sp.coo_array(ones(pushed) - given), equal=True)
        left = lp.local(sp.coo_array(ones(p) - ones(pushed[first])), equal=True)
        right = lp.local(sp.coo_array(ones(q) - ones(pushed[second])), equal=True)
        limit = lp.link(Sense.AT_MOST, np.ones(count), lp.over_blocks(np.ones(count), w))
        lp.perspectives.append(Perspective(self.name, p, q, w, self.limit, left, right, limit))

        def read(point: Point) -> dict[int, Any]:
            price = point.links[limit] / self.limit
            safe = np.where(price > 0, price, 1.0)
            slope = generator(self.name).cut(-point.local[left] / safe[:, None])
            return {self.number: DivergenceMultipliers(price, slope)}

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        spent = generator(self.name).terms(self.left @ matrix, self.right @ matrix).sum(axis=1)
        # rounding of the matrix moves the root of a divergence by about as much
        return float(((np.sqrt(spent) + guard) / np.sqrt(self.limit) - 1).max())

    def tightened(self, margin: float) -> DivergencePart:
        return replace(self, limit=self.limit * (1 - margin))

    @property
    def nearly_equal(self) -> NDArray[np.bool_]:
        return np.asarray(self.limit < NO_ROOM**2)
