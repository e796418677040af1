"""Mutual information: a perspective for every secret over the common law, and the mean of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import DivergenceMultipliers
from optmech.exact.ratios.generators import generator
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Informed, Perspective, Point, Sense, entries
from optmech.lp.families.base import Part, Reader
from optmech.lp.families.lifted import NO_ROOM


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
