"""f-divergences of pushed distributions: D_f(λP ‖ λ'P) <= ε d."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Trusted, trusted
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.ratios.enclosures import divergence_at_most, intercepts_below
from optmech.ratios.generators import generator, is_smooth
from optmech.ratios.powers import LARGEST_RATE, growth_of, limit_of, order_of
from optmech.statement import Statement


@dataclass(frozen=True, eq=False)
class DivergenceMultipliers:
    """Weights of divergence inequalities: ``weight`` (m,) and slopes (m, O).

    D_f(p ‖ q) <= limit says Σ_o α_o p_o - f*(α_o) q_o <= limit for all slopes α.
    """

    weight: Floats
    slope: Floats


@trusted
@dataclass(frozen=True, eq=False)
class Divergence(ReadOnly, Trusted):
    """D_f((left P)[k] ‖ (right P)[k]) <= limit[k] for all k, for the generator called ``name``.

    Exactly: rows of ``left`` and ``right`` (m, S) divided by their sums, and ε scale[k] > 0; for
    "renyi:α" the latter is a limit on the Rényi divergence, and D_f and ``limit`` are those of
    ``ratios.powers``.
    """

    kind = "divergence"
    named = "divergence"
    index: int
    name: str
    left: Floats
    right: Floats
    limit: Floats
    epsilon: Exact
    scale: Floats

    @cached_property
    def limits(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Bounds of every ε · scale, or of what that is for the generator of a Rényi divergence."""
        rates = [self.epsilon.times(scale) for scale in self.scale.tolist()]
        order = order_of(self.name)
        return tuple(bracket(r) if order is None else limit_of(order, r) for r in rates)

    @cached_property
    def growth(self) -> Floats:
        """The derivative of every limit in ε, (m,)."""
        order, rates = order_of(self.name), self.scale * self.epsilon
        if order is None:
            return self.scale
        grown = [growth_of(order, rate) for rate in rates.tolist()]
        return np.asarray(self.scale * np.array(grown))

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {
            "name": is_smooth(self.name),
            "epsilon": fits.exact(self.epsilon),
            "scale": fits.table(self.scale, (len(self.left),)),
            "limit": fits.table(self.limit, self.scale.shape)
            and bool((self.limit > 0).all())
            and bool((self.scale * self.epsilon <= LARGEST_RATE).all() or not order_of(self.name)),
            "left": fits.weights(self.left, (len(self.left), statement.secrets)),
            "right": fits.weights(self.right, (len(self.left), statement.secrets)),
        }

    def signature(self) -> Hashable:
        return self.kind, self.name, self.left.shape

    def decide(self, statement: Statement, released: Numerators) -> Check:
        """By enclosures of the divergence of growing precision."""
        chosen, limits = generator(self.name), self.limits
        both, _ = values.product(np.vstack([self.left, self.right]), released)
        rows = [[int(v) for v in row] for row in both]
        pairs = zip(rows[: len(limits)], rows[len(limits) :], limits, strict=True)
        verdicts = [divergence_at_most(chosen, p, q, limit) for p, q, (limit, _) in pairs]
        spent = [top for _, top in verdicts]
        k = max(range(len(spent)), key=lambda k: spent[k] / self.limit[k])
        passed = all(holds for holds, _ in verdicts)
        detail = (
            f"largest {self.name} {spent[k]:.12g}, allowed {self.limit[k]:.12g}, inequality {k}"
            f"{'' if passed else ': too large'}"
        )
        return Check("divergence", self.index, len(limits), passed, spent[k], detail)

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: DivergenceMultipliers
    ) -> None:
        """y (Σ_o α_o (aP)_o + β_o (bP)_o - limit) <= 0 for any floats β <= -f*(α)."""
        chosen = generator(self.name)
        weight = positive(given.weight)
        slope = chosen.cut(given.slope)
        alpha = weight[:, None] * slope
        beta = weight[:, None] * intercepts_below(chosen, slope)
        # the sums of a and b are not exactly one: as if every term had that many roundings more
        rows = [row.tolist() for side in (self.left, self.right) for row in side]
        off = max(abs(sum(map(Fraction, row), Fraction(-1))) for row in rows)
        count = len(weight) + 8.0 + 2.0 * math.ceil(off * 2**53)
        lagrangian.add(
            self.left.T @ alpha + self.right.T @ beta,
            self.left.T @ np.abs(alpha) + self.right.T @ np.abs(beta),
            count,
        )
        for price, (_, high) in zip(weight.tolist(), self.limits, strict=True):
            lagrangian.constant -= Fraction(price) * high

    def zeros(self, statement: Statement) -> DivergenceMultipliers:
        count = len(self.limit)
        return DivergenceMultipliers(np.zeros(count), np.zeros((count, statement.observables)))
