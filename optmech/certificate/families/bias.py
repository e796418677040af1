"""Means of the reported value that miss the secret's value by at most a stated number."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Trusted, trusted
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.statement import Statement


@trusted
@dataclass(frozen=True, eq=False)
class Bias(ReadOnly, Trusted):
    """|Σ_o reported[o] P[s,o] - meant[s]| <= maximum for every s.

    Multipliers are (2, S): of the means that are too large, and too small.
    """

    kind = "bias"
    named = "bias <= {.maximum:.9g}"
    index: int
    reported: Floats
    meant: Floats
    maximum: Exact

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {
            "maximum": fits.exact(self.maximum) and self.maximum > 0,
            "reported": fits.finite(self.reported, (statement.observables,)),
            "meant": fits.finite(self.meant, (statement.secrets,)),
        }

    def signature(self) -> Hashable:
        return self.kind, self.reported.shape, self.meant.shape

    def decide(self, statement: Statement, released: Numerators) -> Check:
        return self.decide_between(statement, released, released)

    def decide_between(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        rows = np.tile(self.reported, (statement.secrets, 1))
        means = values.means(rows, low)
        off = [abs(m - Fraction(v)) for m, v in zip(means, self.meant.tolist(), strict=True)]
        top = float(max(off))
        detail = f"largest {top:.12g}, allowed {float(self.maximum):.12g}"
        passed = max(off) <= bracket(self.maximum)[0]
        return Check("bias", self.index, 2 * len(off), passed, top, detail)

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: Floats) -> None:
        """a_s (mean - meant - η) <= 0 and b_s (meant - mean - η) <= 0."""
        above, below = positive(given)
        lagrangian.add(
            (above - below)[:, None] * self.reported,
            (above + below)[:, None] * np.abs(self.reported),
            4.0,
        )
        most = bracket(self.maximum)[1]
        for a, b, v in zip(above.tolist(), below.tolist(), self.meant.tolist(), strict=True):
            first, second = Fraction(a), Fraction(b)
            lagrangian.constant -= (first - second) * Fraction(v) + (first + second) * most

    def impossible(self, statement: Statement) -> str:
        allowed = statement.allowed.any(axis=1)
        low = np.where(statement.allowed, self.reported, math.inf).min(axis=1)
        high = np.where(statement.allowed, self.reported, -math.inf).max(axis=1)
        most = bracket(self.maximum)[1]
        for s in np.flatnonzero(allowed).tolist():
            meant = Fraction(self.meant[s])
            if Fraction(low[s]) - most <= meant <= Fraction(high[s]) + most:
                continue
            return (
                f"constraints[{self.index}]: secret {s} has the value {self.meant[s]:.9g}, and "
                f"what it may report has values from {low[s]:.9g} to {high[s]:.9g}: no mean comes "
                f"as near as {float(self.maximum):.9g}. Report more values, or raise the maximum"
            )
        return ""

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros((2, statement.secrets))
