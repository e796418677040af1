"""f-divergences of pushed distributions, and mutual information: perspectives, and their totals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.certificate.families import DivergenceMultipliers
from optmech.exact.ratios.generators import generator
from optmech.lp.assembly import Assembly
from optmech.lp.blocks import Informed, Perspective, Point, entries
from optmech.lp.families.base import Part, PushedPart, Reader
from optmech.lp.families.ratios import NO_ROOM


@record
class DivergencePart(PushedPart):
    """D_f(left P ‖ right P) <= limit, for the generator called ``name``."""

    limited_by = "limit"
    number: int
    name: str
    left: Floats
    right: Floats
    limit: Floats

    def write(self, lp: Assembly) -> Reader:
        """u = λ·v for every distribution λ once; p and q, each the u of its own; and w with
        Σ_o w_o <= 1 in units of the limit."""
        distinct, back = np.unique(np.vstack([self.left, self.right]), axis=0, return_inverse=True)
        pushed = lp.auxiliary(len(distinct))
        given, k = sp.coo_array(distinct), np.arange(len(distinct))
        own = np.ones(len(k)), k, pushed
        lp.local(
            entries((len(k), int(pushed[-1]) + 1), own, (-given.data, *given.coords)), equal=True
        )
        ends = pushed[back.reshape(2, -1)]
        read = _perspectives(lp, self.name, ends, self.limit, np.ones(len(self.limit)))
        return lambda point: DivergenceMultipliers(*read(point))

    def violation(self, matrix: Floats, guard: float) -> float:
        spent = generator(self.name).terms(self.left @ matrix, self.right @ matrix).sum(axis=1)
        # rounding of the matrix moves the root of a divergence by about as much
        return float(((np.sqrt(spent) + guard) / np.sqrt(self.limit) - 1).max())

    @property
    def nearly_equal(self) -> Bools:
        return self.limit < NO_ROOM**2


@record
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
        mean = -self.prior[used], np.zeros(count, int), used
        lp.local(entries((1, common + 1), ([1.0], [0], [common]), mean), equal=True)
        shared = np.array([lp.shared(0.0) for _ in used])
        each = (-np.ones(count), (np.arange(count), shared))
        ends, unit = np.array([used, np.full(count, common)]), np.full(count, self.maximum)
        slopes = _perspectives(lp, "kl", ends, unit, np.zeros(count), sp.coo_array(each))
        total = sp.coo_array((self.prior[used], (np.zeros(count, int), shared)))
        none = sp.coo_array((1, lp.secrets * lp.blocks))
        limit = lp.link(np.ones(1), none, total)
        lp.informed.append(Informed(self.prior, self.maximum, common, limit))

        def read(point: Point) -> DivergenceMultipliers:
            slope = np.zeros((lp.secrets, lp.blocks))
            slope[used] = slopes(point)[1]
            return DivergenceMultipliers(point.links[limit] / self.maximum, slope)

        return read

    def violation(self, matrix: Floats, guard: float) -> float:
        used = np.flatnonzero(self.prior)
        common = np.broadcast_to(self.prior @ matrix, (len(used), matrix.shape[1]))
        spent = float(self.prior[used] @ generator("kl").terms(matrix[used], common).sum(axis=1))
        # as for a divergence: rounding moves the root
        return float((np.sqrt(max(spent, 0.0)) + guard) / np.sqrt(self.maximum) - 1)

    def weights(self) -> Floats:
        return self.prior

    def equal_pushes(self) -> list[tuple[Floats, Floats]]:
        """Where next to nothing may be told, every row is the common one."""
        if self.maximum >= NO_ROOM**2:
            return []
        used = np.flatnonzero(self.prior)
        return [(np.eye(len(self.prior))[used], np.tile(self.prior, (len(used), 1)))]


def _perspectives(
    lp: Assembly,
    kind: str,
    ends: Ints,
    unit: Floats,
    most: Floats,
    shared: sp.coo_array | None = None,
) -> Callable[[Point], tuple[Floats, Floats]]:
    """Add perspectives of p and q, copies of the variables ``ends`` (2, m), and Σ_o w_o <= ``most``
    with what is ``shared``; the prices (m,) and slopes (m, O) of a point."""
    count, k = len(unit), np.arange(len(unit))
    p, q, w = lp.auxiliary(3 * count).reshape(3, count)

    def equal(copy: Ints, end: Ints) -> int:
        one, other = (np.ones(count), k, copy), (-np.ones(count), k, end)
        return lp.local(entries((count, int(copy[-1]) + 1), one, other), equal=True)

    left, right = equal(p, ends[0]), equal(q, ends[1])
    total = lp.link(most, lp.over_blocks(np.ones(count), w), shared)
    lp.perspectives.append(Perspective(kind, p, q, w, unit, left, right, total))

    def read(point: Point) -> tuple[Floats, Floats]:
        price = point.links[total] / unit
        safe = np.where(price > 0, price, 1.0)
        return price, generator(kind).cut(-point.local[left] / safe[:, None])

    return read
