"""f-divergences of pushed distributions, and mutual information: perspectives, and their totals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import DivergenceMultipliers
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Informed, Perspective, Point, Sense, entries
from optmech.lp.families.base import Part, PushedPart, Reader
from optmech.lp.families.ratios import NO_ROOM
from optmech.ratios.generators import generator


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


@dataclass(frozen=True, eq=False)
class InformationPart(Part):
    """Σ_s π(s) KL(P[s,:] ‖ πP) <= maximum."""

    number: int
    prior: Floats
    maximum: float

    def write(self, lp: Assembly) -> Reader:
        """p = v_s and q = π·v, each copied for its perspective; w with Σ_o w_o <= g_s in units of
        the limit, and Σ_s π(s) g_s <= 1."""
        used = np.flatnonzero(self.prior)
        count = len(used)
        (common,) = lp.auxiliary(1).tolist()
        p, q, w = lp.auxiliary(3 * count).reshape(3, count)
        size = int(w[-1]) + 1
        means = entries(
            (1, size), ([1.0], [0], [common]), (-self.prior[used], np.zeros(count, int), used)
        )
        lp.local(means, equal=True)
        left = lp.local(_equal(p, used, size), equal=True)
        right = lp.local(_equal(q, np.full(count, common), size), equal=True)
        shared = np.array([lp.shared(0.0) for _ in used])
        each = (-np.ones(count), (np.arange(count), shared))
        totals = lp.link(
            Sense.AT_MOST, np.zeros(count), lp.over_blocks(np.ones(count), w), sp.coo_array(each)
        )
        mean = sp.coo_array((self.prior[used], (np.zeros(count, int), shared)))
        none = sp.coo_array((1, lp.secrets * lp.blocks))
        limit = lp.link(Sense.AT_MOST, np.ones(1), none, mean)
        unit = np.full(count, self.maximum)
        lp.informed.append(Informed(self.prior, self.maximum, common, limit))
        lp.perspectives.append(Perspective("kl", p, q, w, unit, left, right, totals))

        def read(point: Point) -> dict[int, Any]:
            price = point.links[totals] / unit
            safe = np.where(price > 0, price, 1.0)
            slope = np.zeros((lp.secrets, lp.blocks))
            slope[used] = generator("kl").cut(-point.local[left] / safe[:, None])
            return {self.number: DivergenceMultipliers(point.links[limit] / self.maximum, slope)}

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        used = np.flatnonzero(self.prior)
        common = np.broadcast_to(self.prior @ matrix, (len(used), matrix.shape[1]))
        spent = float(self.prior[used] @ generator("kl").terms(matrix[used], common).sum(axis=1))
        # as for a divergence: rounding moves the root
        return float((np.sqrt(max(spent, 0.0)) + guard) / np.sqrt(self.maximum) - 1)

    def tightened(self, margin: float) -> InformationPart:
        return replace(self, maximum=self.maximum * (1 - margin))

    def weights(self) -> Floats:
        return self.prior

    def equal_pushes(self) -> list[tuple[Floats, Floats]]:
        """Where next to nothing may be told, every row is the common one."""
        if self.maximum >= NO_ROOM**2:
            return []
        used = np.flatnonzero(self.prior)
        return [(np.eye(len(self.prior))[used], np.tile(self.prior, (len(used), 1)))]


def _equal(first: Ints, second: Ints, size: int) -> sp.coo_array:
    """Variables ``first`` less ``second``, a row for each."""
    k = np.arange(len(first))
    return entries((len(k), size), (np.ones(len(k)), k, first), (-np.ones(len(k)), k, second))
