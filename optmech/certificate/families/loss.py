"""Means of at most a stated number: of losses, expected or of every secret, and of what the
reported value misses the secret's value by."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Fitting, Plain, Trusted, trusted
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact


@trusted
@record
class LossLimit(ReadOnly, Trusted):
    """Σ_so weighted[s,o] P[s,o] <= maximum, or that for every row s where ``per_secret``.

    ``weighted`` is the rounded product of the prior and ``loss``, or ``loss`` itself. Multipliers
    are one number, or one for every secret.
    """

    kind = "loss"
    named = "loss <= {.maximum:.9g}"
    agree = "per_secret loss"
    index: int
    weighted: Floats
    maximum: float
    per_secret: bool
    loss: Floats

    @property
    def written(self) -> str:
        return "loss_limits"

    def least(self, statement: Statement) -> Fraction:
        """What the best allowed observables cost: no mechanism stays below. A secret that the
        support leaves none costs nothing here; ``support_reason`` says that nothing is feasible
        then."""

        def compute() -> Fraction:
            cheapest = np.where(statement.allowed, self.loss, np.inf).min(axis=1)
            cheapest = np.where(np.isfinite(cheapest), cheapest, 0.0)
            if self.per_secret:
                return Fraction(float(cheapest.max()))
            return values.expected(statement.prior, [Fraction(v) for v in cheapest.tolist()])

        return statement.once(self, compute)

    def most(self, statement: Statement) -> tuple[Fraction, Fraction]:
        """Bounds of the stated q; the least possible loss where q falls short of it by no more
        than 10^-12 of it."""
        low, high = bracket(self.maximum)
        least = self.least(statement)
        return (least, least) if low < least <= low * (1 + values.NEAR) else (low, high)

    def fits(self, statement: Statement) -> Fitting:
        weighted = self.loss if self.per_secret else self.loss * statement.prior[:, None]
        return {
            "maximum": fits.exact(self.maximum),
            "loss": fits.table(self.loss, statement.loss.shape),
            "weighted": np.array_equal(self.weighted, weighted),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # losses and weights are >= 0
        if self.per_secret:
            spent = values.means(self.loss, high)
        else:
            mean = partial(self._mean, statement)
            value = mean(high)
            if low is not high and mean(low) <= self.most(statement)[0] < value:
                value = values.exactly(mean, high, value)
            spent = [value]
        top = float(max(spent))
        detail = f"largest {top:.12g}, allowed {float(self.maximum):.12g}"
        passed = max(spent) <= self.most(statement)[0]
        return Check("loss bound", self.index, len(spent), passed, top, detail)

    def _mean(self, statement: Statement, released: Scaled) -> Fraction:
        return values.expected(statement.prior, values.losses(self.loss, released))

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: Floats) -> None:
        prices = positive(np.atleast_1d(given))
        value = np.broadcast_to(prices if self.per_secret else prices[:1], (statement.secrets,))
        part = value[:, None] * self.weighted
        lagrangian.add(part, part, 2.0)
        spent = value if self.per_secret else value[:1]
        total = math.nextafter(math.fsum(spent.tolist()), math.inf) if spent.any() else 0.0
        lagrangian.constant -= Fraction(total) * self.most(statement)[1]

    def impossible(self, statement: Statement) -> str:
        maximum, cheapest = self.most(statement)[1], self.least(statement)
        if cheapest <= maximum:
            return ""
        least = values.rounded_up(cheapest)
        return (
            f"constraints[{self.index}]: a loss of at most {float(maximum):.9g} is asked "
            f"for, and the best observables alone cost {least:.9g}. "
            f"Raise the maximum to at least {least:.9g}"
        )

    def note(self, statement: Statement) -> str:
        if self.most(statement)[0] <= bracket(self.maximum)[1]:
            return ""
        return (
            f"constraints[{self.index}]: the maximum falls short of the least possible loss "
            "by rounding only; the least possible loss is meant"
        )

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros(statement.secrets if self.per_secret else 1)

    def encode(self, given: Floats | None, statement: Statement) -> Plain:
        return super().encode(None if given is None else np.atleast_1d(given), statement)


@trusted
@record
class Bias(ReadOnly, Trusted):
    """|Σ_o reported[o] P[s,o] - meant[s]| <= maximum for every s.

    Multipliers are (2, S): of the means that are too large, and too small.
    """

    kind = "bias"
    named = "bias <= {.maximum:.9g}"
    agree = "reported meant"
    index: int
    reported: Floats
    meant: Floats
    maximum: Exact

    def fits(self, statement: Statement) -> Fitting:
        return {
            "maximum": fits.exact(self.maximum) and self.maximum > 0,
            "reported": fits.finite(self.reported, (statement.observables,)),
            "meant": fits.finite(self.meant, (statement.secrets,)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
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
