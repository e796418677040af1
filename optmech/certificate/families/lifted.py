"""Ratios of pushed distributions: λP(o) <= e^{ε d} λ'P(o) for all observables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import trusted
from optmech.certificate.families.pushed import Pushed
from optmech.certificate.families.scan import SAFE, Scan, first_failed
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators, integers
from optmech.statement import Statement


@trusted
@dataclass(frozen=True, eq=False)
class LiftedRatio(Pushed):
    """(left P)[k,o] <= exp(log_ratio[k]) (right P)[k,o] for all k, o; left, right (m, S).

    Exactly: rows of ``left`` and ``right`` divided by their sums, and exp(ε scale[k]). Multipliers
    are an array (m, O).
    """

    kind = "lifted"
    named = "distribution privacy"
    index: int
    left: Floats
    right: Floats
    log_ratio: Floats
    epsilon: Exact
    scale: Floats

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {
            "epsilon": fits.exact(self.epsilon),
            "scale": fits.table(self.scale, (len(self.left),)),
            "left": fits.weights(self.left, (len(self.left), statement.secrets)),
            "right": fits.weights(self.right, (len(self.left), statement.secrets)),
        }

    def decide(self, statement: Statement, released: Numerators) -> Check:
        return self.decide_between(statement, released, released)

    def decide_between(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """Whole numbers A Σb <= e^r B Σa, with A = aN and B = bN on one scale."""
        weights, count = np.vstack([self.left, self.right]), len(self.left)
        both, scale = values.product(weights, high)
        if low is not high:
            both = both[:count] + values.product(weights, low)[0][count:]
        sums = [sum(row) for row in integers(weights)[0]]
        unit = 1 << (2 * scale - high.bits)
        left, right = (
            [[int(v) * total for v in row] for row, total in zip(rows, totals, strict=True)]
            for rows, totals in ((both[:count], sums[count:]), (both[count:], sums[:count]))
        )
        sides = (np.array([[v / unit for v in row] for row in rows]) for rows in (left, right))
        scan = Scan(*sides)
        factor = self.factors[0] * SAFE
        for k in range(count):
            scan.row(k, np.array([k]), factor[[k]], None)

        def holds(k: int, o: int) -> bool:
            far = float(self.scale[k])
            if at_most(left[k][o], right[k][o], self.epsilon, far):
                return True
            # bounds may differ where the sums do not
            exactly = values.pushed(weights[[k, count + k]], high, o)
            return low is not high and at_most(*exactly, self.epsilon, far)

        failed = first_failed((holds(k, o), (k, k, o)) for k, _, o in scan.open)
        words = "largest (λP)(o) / (e^r (λ'P)(o)) = {0:.15g}, inequality {1}, o={3}"
        return scan.verdict("distribution privacy", self.index, failed, words)

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: Floats) -> None:
        lagrangian.add_sums(self.left, self.right, self.factors[1], positive(given))

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros((len(self.scale), statement.observables))
