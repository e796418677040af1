"""Errors that the best attack makes at least (PG 7)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Trusted, trusted
from optmech.certificate.lagrangian import LARGEST, Lagrangian, attack
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import bracket
from optmech.exact.numerators import Numerators
from optmech.statement import Statement


@dataclass(frozen=True, eq=False)
class AttackMultipliers:
    """Weight of a distortion inequality and the attack it is played with: q(t|o), (O, S)."""

    weight: float
    strategy: Floats


@trusted
@dataclass(frozen=True, eq=False)
class Distortion(ReadOnly, Trusted):
    """Σ_o min_t Σ_s weighted[t,s] P[s,o] >= minimum, with weighted[t,s] = π(s) d(t,s), the
    rounded product of ``distance`` and ``prior``."""

    kind = "distortion"
    named = "distortion >= {.minimum:.9g}"
    index: int
    weighted: Floats
    minimum: float
    distance: Floats
    prior: Floats

    @cached_property
    def blind(self) -> Fraction:
        """d_max: the error of an adversary who sees nothing, the largest possible distortion."""
        return values.blind(self.distance, self.prior)

    @cached_property
    def least(self) -> tuple[Fraction, Fraction]:
        """Bounds of the stated d_m (equal if it is rational); d_max itself where d_m exceeds it by
        no more than 10^-12: a d_m computed as d_max in floating point is meant to be d_max."""
        low, high = bracket(self.minimum)
        largest = self.blind
        near = largest < high <= largest * (1 + values.NEAR)
        return (largest, largest) if near else (low, high)

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {
            "minimum": fits.exact(self.minimum),
            "prior": fits.table(self.prior, (statement.secrets,)),
            "distance": fits.table(self.distance, (statement.secrets,) * 2),
            "weighted": np.array_equal(self.weighted, self.distance * self.prior),
        }

    def signature(self) -> Hashable:
        return self.kind, self.weighted.shape

    def decide(self, statement: Statement, released: Numerators) -> Check:
        return self.decide_between(statement, released, released)

    def decide_between(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # distances and weights are >= 0
        distortion = partial(values.distortion, self.distance, self.prior)
        value = distortion(low)
        if low is not high and value < self.least[1] <= distortion(high):
            value = values.exactly(distortion, low, value)
        passed = value >= self.least[1]
        detail = f"distortion {float(value):.12g}, required {float(self.minimum):.12g}"
        return Check("distortion", self.index, 1, passed, float(value), detail)

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: AttackMultipliers
    ) -> None:
        price = min(max(float(given.weight), 0.0), LARGEST)
        part = price * (attack(given.strategy) @ self.weighted).T
        lagrangian.add(-part, part, statement.secrets + 5.0)
        lagrangian.constant += Fraction(price) * self.least[0]

    def impossible(self, statement: Statement) -> str:
        minimum = self.least[0]
        if minimum <= self.blind:
            return ""
        least, most = float(minimum), values.rounded_down(self.blind)
        return (
            f"constraints[{self.index}]: distortion privacy of at least "
            f"d_m = {least:.9g} is asked for, and d_max = {most:.9g} is the "
            "error of an adversary who sees nothing: no mechanism can exceed it. "
            f"Lower the minimum to at most {most:.9g}"
        )

    def note(self, statement: Statement) -> str:
        if self.least[0] >= bracket(self.minimum)[0]:
            return ""
        return (
            f"constraints[{self.index}]: the minimum exceeds d_max by rounding only; d_max "
            "itself is meant"
        )

    def zeros(self, statement: Statement) -> AttackMultipliers:
        return AttackMultipliers(0.0, np.zeros((statement.observables, statement.secrets)))
