"""Pushed distributions: ratios λP(o) <= e^{ε d} λ'P(o) for all observables, their (ε, δ) limits,
which are hockey sticks of two outputs, and f-divergences D_f(λP ‖ λ'P) <= ε d; and the average of
these under one limit, mutual information."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, slices
from optmech.base.read_only import ReadOnly, locked, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families.base import (
    Fitting,
    Trusted,
    are_weights,
    is_exact,
    is_mask,
    is_table,
    trusted,
)
from optmech.certificate.families.ratio import SAFE, Scan
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most, bracket, exp_lower, exp_range
from optmech.exact.number import Exact
from optmech.exact.numerators import dot, integers, wholes
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
from optmech.exact.rounding import UNIT


class OfPairs(ReadOnly, Trusted):
    """Families over two pushed distributions λP and λ'P: rows ``left`` and ``right`` (m, S), which
    are meant divided by their sums, and a rate ε with a scale for every pair."""

    agree = "left"
    left: Any
    right: Any
    epsilon: Exact
    scale: Floats

    def fits(self, statement: Statement) -> Fitting:
        shape = (self.left.shape[0], statement.secrets)
        return {
            "epsilon": is_exact(self.epsilon),
            "scale": is_table(self.scale, shape[:1]),
            "left": are_weights(self.left, shape),
            "right": are_weights(self.right, shape),
        }


class Pushed(OfPairs):
    """Inequalities of pairs of distributions that limit ratios."""

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """Floats at most e^{ε scale}, and at least e^{ε scale} Σa / Σb, shape (m,): what
        (aP)/Σa <= e^r (bP)/Σb needs in a check, and in a bound."""
        low, high = exp_range(self.epsilon, self.scale)
        first, second = (np.asarray(s.sum(axis=1)).reshape(-1) for s in (self.left, self.right))
        above = high * (first / second) * (1 + (2 * self.left.shape[1] + 16) * UNIT)
        return locked(low), locked(np.asarray(above))


@trusted
@record
class LiftedRatio(Pushed):
    """(left P)[k,o] <= exp(log_ratio[k]) (right P)[k,o] for all k, o; left, right (m, S). With a
    ``window`` (m, O) where that is true only.

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
    window: Bools | None = None

    def fits(self, statement: Statement) -> Fitting:
        shape = (len(self.scale), statement.observables)
        return super().fits(statement) | {
            "window": self.window is None or is_mask(self.window, shape)
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """Whole numbers A Σb <= e^r B Σa, with A = aN and B = bN on one scale."""
        weights, count = np.vstack([self.left, self.right]), len(self.left)
        both, scale = values.product(weights, high)
        if low is not high:
            both[count:] = values.product(weights, low)[0][count:]
        sums = wholes(integers(weights)[0]).sum(axis=1, keepdims=True)
        unit = 1 << (2 * scale - high.bits)
        left, right = both[:count] * sums[count:], both[count:] * sums[:count]
        if self.window is not None:  # 0 is below anything
            left = np.where(self.window, left, 0)
        sides = ((side / unit).astype(np.float64) for side in (left, right))
        scan, every = Scan(*sides), np.arange(count)
        scan.ends(every, every, self.factors[0] * SAFE)

        def holds(k: int, _: int, o: int) -> bool:
            far = float(self.scale[k])
            kept = at_most(left[k, o], right[k, o], self.epsilon, far)
            if kept or low is high:
                return kept
            # bounds may differ where the sums do not
            exactly = values.pushed(weights[[k, count + k]], high, o)
            return at_most(*exactly, self.epsilon, far)

        words = "largest (λP)(o) / (e^r (λ'P)(o)) = {0:.15g}, inequality {1}, o={3}"
        size = scan.left.size if self.window is None else int(self.window.sum())
        return scan.verdict("distribution privacy", self.index, size, holds, words)

    def charge(self, lagrangian: Lagrangian, given: Floats) -> None:
        value = positive(given)
        if self.window is not None:
            value = np.where(self.window, value, 0.0)
        lagrangian.add_sums(self.left, self.right, self.factors[1], value)

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros((len(self.scale), statement.observables))


_LOST = 1e-280
"""More than underflow costs a sum."""


@record
class ApproximateMultipliers:
    """Weights of (ε, δ) inequalities: ``weight`` (m,) and tests (m, O) with entries in [0, 1].

    The inequality Σ_o max(0, a_o - b_o) <= δ says Σ_o φ_o (a_o - b_o) <= δ for every test φ.
    """

    weight: Floats
    test: Floats


@trusted
@record
class Approximate(Pushed):
    """Σ_o max(0, (left P)[k,o] - exp(log_ratio[k]) (right P)[k,o]) <= delta for all k.

    Exactly: rows of ``left`` and ``right`` (m, S) divided by their sums, and exp(ε scale[k]).
    """

    kind = "approximate"
    named = "delta = {.delta:g}"
    index: int
    left: sp.csr_array
    right: sp.csr_array
    log_ratio: Floats
    delta: Exact
    epsilon: Exact
    scale: Floats

    def fits(self, statement: Statement) -> Fitting:
        return super().fits(statement) | {"delta": is_exact(self.delta)}

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        ends = high.matrix, low.matrix
        allowed = bracket(self.delta)[0]
        # cut, so that no digit lost to underflow is blown up; a lower factor is safe
        factor = np.minimum(self.factors[0], 2.0**100)
        widest = max(np.diff(side.indptr).max() for side in (self.left, self.right))
        slack = (2 * widest + 16) * UNIT
        worst, undecided = 0.0, []
        for part in slices(len(factor), ends[0].size, 2**22):
            left, right = (
                (side[part] @ matrix) / np.asarray(side[part].sum(axis=1))[:, None]
                for side, matrix in zip((self.left, self.right), ends, strict=True)
            )
            over = left * (1 + slack) - right * (factor[part, None] * (1 - slack))
            spent = np.maximum(over, 0.0).sum(axis=1) * (1 + (left.shape[1] + 16) * UNIT) + _LOST
            worst = max(worst, float(spent.max()))
            undecided += (
                part.start + np.flatnonzero(spent > values.rounded_down(allowed))
            ).tolist()
        failed = next((k for k in undecided if not self._spends(k, low, high, allowed)), None)
        detail = f"largest {worst:.9g}, allowed {float(self.delta):.9g}"
        if failed is not None:
            detail += f"; exceeded by pair {failed}"
        elif undecided:
            detail += f"; {len(undecided)} decided in whole numbers"
        return Check("approximate", self.index, len(factor), failed is None, worst, detail)

    def _spends(self, k: int, low: Scaled, high: Scaled, allowed: Fraction) -> bool:
        """Σ_o max(0, A_o Σb - e^r B_o Σa) <= δ Σa Σb 2^bits in whole numbers, with e^r from
        below."""
        (left, first), (right, second) = (
            _combined(self.left, k, high),
            _combined(self.right, k, low),
        )
        factor = exp_lower(self.epsilon, float(self.scale[k]), high.bits + 256)
        a, b = factor.denominator * second, factor.numerator * first
        spent = sum(max(0, a * p - b * q) for p, q in zip(left, right, strict=True))
        return bool(spent <= allowed * (factor.denominator * first * second << high.bits))

    def charge(self, lagrangian: Lagrangian, given: ApproximateMultipliers) -> None:
        factor = self.factors[1]
        weight = np.where(np.isfinite(factor), positive(given.weight), 0.0)
        tests = weight[:, None] * np.clip(given.test, 0.0, 1.0)
        lagrangian.add_sums(self.left, self.right, factor, tests)
        # δ times the sum of the left distribution, which is 1 up to rounding
        sums = np.asarray(self.left.sum(axis=1)).reshape(-1)
        total = math.fsum((weight * sums).tolist()) * (1 + (2 * self.left.shape[1] + 8) * UNIT)
        lagrangian.constant -= Fraction(total) * bracket(self.delta)[1]

    def zeros(self, statement: Statement) -> ApproximateMultipliers:
        count = len(self.scale)
        return ApproximateMultipliers(np.zeros(count), np.zeros((count, statement.observables)))


def _combined(side: sp.csr_array, k: int, released: Scaled) -> tuple[Sequence[int], int]:
    """Row k of a sparse matrix of distributions times N, and its sum, on one scale."""
    chosen = slice(*side.indptr[k : k + 2])
    weights, secrets = side.data[chosen], side.indices[chosen].tolist()
    if len(secrets) == 1:
        return released.rows[secrets[0]], 1
    (whole,), _ = integers(weights[None, :])
    rows = zip(*(released.rows[s] for s in secrets), strict=True)
    return [dot(whole, column) for column in rows], sum(whole)


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
    ``exact.ratios.generators``.
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
            "limit": is_table(self.limit, self.scale.shape)
            and bool((self.limit > 0).all())
            and bool((self.scale * self.epsilon <= LARGEST_RATE).all() or not order_of(self.name)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """By enclosures of the divergence of growing precision."""
        chosen, limits = generator(self.name), self.limits
        rows = values.product(np.vstack([self.left, self.right]), low)[0].tolist()
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

    def charge(self, lagrangian: Lagrangian, given: DivergenceMultipliers) -> None:
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
            "maximum": is_exact(self.maximum) and self.maximum > 0,
            "prior": are_weights(self.prior[None, :], (1, statement.secrets)),
        }

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """By enclosures of growing precision."""
        (marginal,) = values.product(self.prior[None, :], low)[0].tolist()
        used = [s for s, share in enumerate(self.shares) if share]
        parts = [(self.shares[s], low.rows[s], marginal) for s in used]
        holds, top = average_at_most(generator("kl"), parts, bracket(self.maximum)[0])
        detail = f"mutual information {top:.12g}, allowed {float(self.maximum):.12g}"
        return Check("mutual information", self.index, 1, holds, top, detail)

    def charge(self, lagrangian: Lagrangian, given: DivergenceMultipliers) -> None:
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
