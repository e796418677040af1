"""f-divergences of pushed distributions, D_f(λP ‖ λ'P) <= ε d, and their average under one limit:
mutual information."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Fitting, Trusted, trusted
from optmech.certificate.families.pushforward import OfPairs
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.ratios.generators import (
    LARGEST_RATE,
    average_at_most,
    generator,
    growth_of,
    intercepts_below,
    is_smooth,
    limit_of,
    order_of,
)


@record
class DivergenceMultipliers:
    """Weights of divergence inequalities: ``weight`` (m,) and slopes (m, O).

    D_f(p ‖ q) <= limit says Σ_o α_o p_o - f*(α_o) q_o <= limit for all slopes α.
    """

    weight: Floats
    slope: Floats


@trusted
@record
class Divergence(OfPairs):
    """D_f((left P)[k] ‖ (right P)[k]) <= limit[k] for all k, for the generator called ``name``.

    Exactly: rows of ``left`` and ``right`` (m, S) divided by their sums, and ε scale[k] > 0; for
    "renyi:α" the latter is a limit on the Rényi divergence, and D_f and ``limit`` are those of
    ``exact.ratios.powers``.
    """

    kind = "divergence"
    alone = True
    named = "divergence"
    agree = "name left"
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

    def fits(self, statement: Statement) -> Fitting:
        return super().fits(statement) | {
            "name": is_smooth(self.name),
            "limit": fits.table(self.limit, self.scale.shape)
            and bool((self.limit > 0).all())
            and bool((self.scale * self.epsilon <= LARGEST_RATE).all() or not order_of(self.name)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """By enclosures of the divergence of growing precision."""
        chosen, limits = generator(self.name), self.limits
        both, _ = values.product(np.vstack([self.left, self.right]), low)
        rows = [[int(v) for v in row] for row in both]
        pairs = zip(rows[: len(limits)], rows[len(limits) :], limits, strict=True)
        verdicts = [
            average_at_most(chosen, [(Fraction(1), p, q)], limit) for p, q, (limit, _) in pairs
        ]
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
        count = len(weight) + 8.0 + 2.0 * max(map(_missed, [*self.left, *self.right]))
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


def _missed(weights: Floats) -> int:
    """By how many roundings the sum of weights misses one."""
    return math.ceil(abs(sum(map(Fraction, weights.tolist()), Fraction(-1))) * 2**53)


@trusted
@record
class Information(ReadOnly, Trusted):
    """Σ_s π(s) KL(P[s,:] ‖ πP) <= maximum, in nats, with π the ``prior`` divided by its sum.

    Multipliers are a ``weight`` (1,) and ``slope`` (S, O): I(P) is at least
    Σ_s π(s) Σ_o (α_so P[s,o] - f*(α_so) (πP)_o) for all slopes α, f = t ln t - t + 1.
    """

    kind = "information"
    alone = True
    named = "mutual information <= {.maximum:.9g}"
    agree = "prior"
    index: int
    prior: Floats
    maximum: Exact

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """π, exactly."""
        weights = list(map(Fraction, self.prior.tolist()))
        total = sum(weights, Fraction())
        return tuple(weight / total for weight in weights)

    def fits(self, statement: Statement) -> Fitting:
        return {
            "maximum": fits.exact(self.maximum) and self.maximum > 0,
            "prior": fits.weights(self.prior[None, :], (1, statement.secrets)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """By enclosures of growing precision."""
        ((pushed,), _) = values.product(self.prior[None, :], low)
        marginal = [int(value) for value in pushed]
        used = [s for s, share in enumerate(self.shares) if share]
        parts = [(self.shares[s], low.rows[s], marginal) for s in used]
        holds, top = average_at_most(generator("kl"), parts, bracket(self.maximum)[0])
        detail = f"mutual information {top:.12g}, allowed {float(self.maximum):.12g}"
        return Check("mutual information", self.index, 1, holds, top, detail)

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: DivergenceMultipliers
    ) -> None:
        """y (Σ_s π(s) Σ_o (α_so P[s,o] + β_so (πP)_o) - limit) <= 0 for any floats
        β <= -f*(α)."""
        chosen = generator("kl")
        price = float(positive(given.weight)[0])
        slope = chosen.cut(given.slope)
        weights = price * self.prior
        alpha = weights[:, None] * slope
        below = intercepts_below(chosen, slope)
        beta, size = weights @ below, weights @ np.abs(below)
        # π does not sum to exactly one: as if every product had that many roundings more, twice
        count = len(self.prior) + 12.0 + 4.0 * _missed(self.prior)
        lagrangian.add(
            alpha + self.prior[:, None] * beta,
            np.abs(alpha) + self.prior[:, None] * size,
            count,
        )
        lagrangian.constant -= Fraction(price) * bracket(self.maximum)[1]

    def zeros(self, statement: Statement) -> DivergenceMultipliers:
        shape = (statement.secrets, statement.observables)
        return DivergenceMultipliers(np.zeros(1), np.zeros(shape))
