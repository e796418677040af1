"""Ratios of pushed distributions, λP(o) <= e^{ε d} λ'P(o) for all observables, and their (ε, δ)
limits: hockey sticks of two outputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, slices
from optmech.base.read_only import ReadOnly, locked, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families import fits
from optmech.certificate.families.base import Fitting, Trusted, trusted
from optmech.certificate.families.ratio import SAFE, Scan
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most, bracket, exp_lower, exp_range
from optmech.exact.number import Exact
from optmech.exact.numerators import integers
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
            "epsilon": fits.exact(self.epsilon),
            "scale": fits.table(self.scale, shape[:1]),
            "left": fits.weights(self.left, shape),
            "right": fits.weights(self.right, shape),
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

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
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

        def holds(k: int, _: int, o: int) -> bool:
            far = float(self.scale[k])
            kept = at_most(left[k][o], right[k][o], self.epsilon, far)
            if kept or low is high:
                return kept
            # bounds may differ where the sums do not
            exactly = values.pushed(weights[[k, count + k]], high, o)
            return at_most(*exactly, self.epsilon, far)

        words = "largest (λP)(o) / (e^r (λ'P)(o)) = {0:.15g}, inequality {1}, o={3}"
        return scan.verdict("distribution privacy", self.index, holds, words)

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: Floats) -> None:
        lagrangian.add_sums(self.left, self.right, self.factors[1], positive(given))

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
        return super().fits(statement) | {"delta": fits.exact(self.delta)}

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        ends = high.matrix, low.matrix
        allowed = bracket(self.delta)[0]
        # cut, so that no digit lost to underflow is blown up; a lower factor is safe
        factor = np.minimum(self.factors[0], 2.0**100)
        widest = int(max(np.diff(self.left.indptr).max(), np.diff(self.right.indptr).max()))
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

    def charge(
        self, statement: Statement, lagrangian: Lagrangian, given: ApproximateMultipliers
    ) -> None:
        factor = self.factors[1]
        weight = np.where(np.isfinite(factor), positive(given.weight), 0.0)
        tests = weight[:, None] * np.clip(given.test, 0.0, 1.0)
        lagrangian.add_sums(self.left, self.right, factor, tests)
        # δ times the sum of the left distribution, which is 1 up to rounding
        sums = np.asarray(self.left.sum(axis=1)).reshape(-1)
        total = math.fsum((weight * sums).tolist()) * (1 + (2 * statement.secrets + 8) * UNIT)
        lagrangian.constant -= Fraction(total) * bracket(self.delta)[1]

    def zeros(self, statement: Statement) -> ApproximateMultipliers:
        count = len(self.scale)
        return ApproximateMultipliers(np.zeros(count), np.zeros((count, statement.observables)))


def _combined(side: sp.csr_array, k: int, released: Scaled) -> tuple[Sequence[int], int]:
    """Row k of a sparse matrix of distributions times N, and its sum, on one scale."""
    chosen = slice(int(side.indptr[k]), int(side.indptr[k + 1]))
    weights, secrets = side.data[chosen], side.indices[chosen].tolist()
    if len(secrets) == 1:
        return released.rows[secrets[0]], 1
    (whole,), _ = integers(weights[None, :])
    rows = zip(*(released.rows[s] for s in secrets), strict=True)
    return [sum(map(operator.mul, whole, column)) for column in rows], sum(whole)
