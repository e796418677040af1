"""Averages of divergences under one limit: mutual information."""

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
from optmech.certificate.families.divergence import DivergenceMultipliers
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators
from optmech.ratios.enclosures import average_at_most, intercepts_below
from optmech.ratios.generators import generator
from optmech.statement import Statement


@trusted
@dataclass(frozen=True, eq=False)
class Information(ReadOnly, Trusted):
    """Σ_s π(s) KL(P[s,:] ‖ πP) <= maximum, in nats, with π the ``prior`` divided by its sum.

    Multipliers are a ``weight`` (1,) and ``slope`` (S, O): I(P) is at least
    Σ_s π(s) Σ_o (α_so P[s,o] - f*(α_so) (πP)_o) for all slopes α, f = t ln t - t + 1.
    """

    kind = "information"
    named = "mutual information <= {.maximum:.9g}"
    index: int
    prior: Floats
    maximum: Exact

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """π, exactly."""
        weights = list(map(Fraction, self.prior.tolist()))
        total = sum(weights, Fraction())
        return tuple(weight / total for weight in weights)

    def fits(self, statement: Statement) -> dict[str, bool]:
        return {
            "maximum": fits.exact(self.maximum) and self.maximum > 0,
            "prior": fits.weights(self.prior[None, :], (1, statement.secrets)),
        }

    def signature(self) -> Hashable:
        return self.kind, self.prior.shape

    def decide(self, statement: Statement, released: Numerators) -> Check:
        """By enclosures of growing precision."""
        ((pushed,), _) = values.product(self.prior[None, :], released)
        marginal = [int(value) for value in pushed]
        used = [s for s, share in enumerate(self.shares) if share]
        parts = [(self.shares[s], released.rows[s], marginal) for s in used]
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
        beta = weights @ intercepts_below(chosen, slope)
        size = weights @ np.abs(intercepts_below(chosen, slope))
        # π does not sum to exactly one: as if every product had that many roundings more, twice
        off = abs(sum(map(Fraction, self.prior.tolist()), Fraction(-1)))
        count = len(self.prior) + 12.0 + 4.0 * math.ceil(off * 2**53)
        lagrangian.add(
            alpha + self.prior[:, None] * beta,
            np.abs(alpha) + self.prior[:, None] * size,
            count,
        )
        lagrangian.constant -= Fraction(price) * bracket(self.maximum)[1]

    def zeros(self, statement: Statement) -> DivergenceMultipliers:
        shape = (statement.secrets, statement.observables)
        return DivergenceMultipliers(np.zeros(1), np.zeros(shape))
