"""Linear inequalities over the probabilities, with weights and limits of any sign (theory:
"Linear")."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats
from optmech.base.read_only import ReadOnly, locked, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families.base import Fitting, Trusted, is_exact, trusted
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, from_above, from_below
from optmech.exact.numerators import integers

_MANY = 20_000
"""Inequalities of which each is not looked at for a proof by arithmetic."""
Limits = tuple[Exact | None, ...]
Parts = dict[Fraction | None, Fraction]
"""A number as Σ_b c_b ln b, None standing for e."""


@trusted
@record
class Linear(ReadOnly, Trusted):
    """lower[k] - slack[k] <= Σ_so weights[k, s·O + o] P[s,o] <= upper[k] + slack[k] for all k,
    where there is such a limit.

    ``exact`` has the weights that are no floats, by their place among the entries, of which the
    others are exact. Multipliers are (2, m): of what is too large, and too small.
    """

    kind = "linear"
    named = "a linear inequality"
    agree = "weights"
    index: int
    observables: int
    weights: sp.csr_array
    exact: tuple[tuple[int, Exact], ...]
    lower: Limits
    upper: Limits
    slack: tuple[Fraction, ...]

    def __len__(self) -> int:
        return len(self.upper)

    def fits(self, statement: Statement) -> Fitting:
        given, count = self.weights, len(self.upper)
        sound = isinstance(given, sp.csr_array) and given.has_canonical_format
        limits = [v for v in (*self.lower, *self.upper) if v is not None]
        return {
            "observables": self.observables == statement.observables,
            "weights": sound
            and given.shape == (count, statement.loss.size)
            and given.dtype == np.float64
            and bool(np.isfinite(given.data).all()),
            "exact": all(
                type(k) is int
                and 0 <= k < given.nnz
                and is_exact(v, signed=True)
                and given.data[k] == float(v)
                for k, v in self.exact
            ),
            "lower": len(self.lower) == count and all(is_exact(v, signed=True) for v in limits),
            "slack": len(self.slack) == count
            and all(type(v) is Fraction and v >= 0 for v in self.slack),
        }

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Floats that are at most, and at least, every weight: the weight where it is one."""
        low, high = np.array(self.weights.data), np.array(self.weights.data)
        for k, number in self.exact:
            below, above = bracket(number)
            low[k], high[k] = values.rounded_down(below), values.rounded_up(above)
        return locked(low), locked(high)

    def _sums(self, released: Scaled) -> Iterator[Parts]:
        """The left side of every inequality."""
        start, at = self.weights.indptr.tolist(), self.weights.indices
        plain, known = np.array(self.weights.data), dict(self.exact)
        plain[list(known)] = 0.0
        secret, report = np.divmod(at, self.observables)
        for k in range(len(self)):
            own = range(*start[k : k + 2])
            found: Parts = {}
            tops: dict[int, int] = {}
            (whole,), exponent = integers(plain[None, own.start : own.stop])
            for place, weight in zip(own, whole, strict=True):
                if weight == 0 and place not in known:
                    continue
                row, total = released.exact(int(secret[place]))
                value = row[int(report[place])]
                if not value:
                    continue
                if weight:
                    tops[total] = tops.get(total, 0) + weight * value
                else:
                    number = known[place]
                    share = number.factor * value / (total << released.exact_bits)
                    _add(found, number.log_of, share)
            for total, top in tops.items():
                _add(found, None, Fraction(top, total << (exponent + released.exact_bits)))
            yield found

    def _over(self, found: Parts, k: int) -> Iterator[tuple[str, Fraction]]:
        """By how much an inequality misses each of its limits, or more, and how it then is."""
        for limit, sign in ((self.upper[k], 1), (self.lower[k], -1)):
            if limit is None:
                continue
            parts = {log_of: sign * value for log_of, value in found.items()}
            _add(parts, limit.log_of, -sign * limit.factor)
            _add(parts, None, -self.slack[k])
            yield "too large" if sign > 0 else "too small", _above(parts)

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        # exactly, of the numbers that both are bounds of
        worst, failed, count = -np.inf, "", 0
        for k, found in enumerate(self._sums(high)):
            for said, over in self._over(found, k):
                count += 1
                worst = max(worst, float(over))
                if over > 0 and not failed:
                    failed = f"; the sum of inequality {k} is {said}"
        detail = f"the largest excess is {worst:.9g}{failed}"
        return Check("linear", self.index, count, not failed, worst, detail)

    def charge(self, lagrangian: Lagrangian, given: Floats) -> None:
        """a_k (w_k P - u_k) <= 0 and b_k (l_k - w_k P) <= 0."""
        above, below = positive(given)
        above = np.where([v is not None for v in self.upper], above, 0.0)
        below = np.where([v is not None for v in self.lower], below, 0.0)
        low, high = (self._with(end) for end in self.ends)
        size = self._with(np.maximum(*map(np.abs, self.ends)))
        net = above - below
        # P >= 0: the end of a weight that makes the term small
        part = low.T @ np.maximum(net, 0.0) - high.T @ np.maximum(-net, 0.0)
        counts = np.bincount(self.weights.indices, minlength=self.weights.shape[1])
        shape = lagrangian.terms.shape
        lagrangian.add(
            np.reshape(part, shape),
            np.reshape(size.T @ (above + below), shape),
            np.reshape(counts, shape).astype(np.float64) + 4.0,
        )
        for limits, prices, sign in ((self.upper, above, 1), (self.lower, below, -1)):
            for k in np.flatnonzero(prices).tolist():
                limit = limits[k]
                assert limit is not None
                ends = bracket(limit)
                most = (ends[1] if sign > 0 else -ends[0]) + self.slack[k]
                lagrangian.constant -= Fraction(float(prices[k])) * most

    def _with(self, data: Floats) -> sp.csr_array:
        return sp.csr_array(
            (data, self.weights.indices, self.weights.indptr), shape=self.weights.shape
        )

    def impossible(self, statement: Statement) -> str:
        allowed = statement.allowed
        if len(self) > _MANY or not allowed.any(axis=1).all():
            return ""
        low, high = self.ends
        sides = (
            (self.upper, self._least(allowed, low), 1),
            (self.lower, self._least(allowed, -high), -1),
        )
        for k in range(len(self)):
            for limits, least, sign in sides:
                if (limit := limits[k]) is None:
                    continue
                total = sum(map(Fraction, least[k]), Fraction())
                most = bracket(limit)[1] if sign > 0 else -bracket(limit)[0]
                if total > most + self.slack[k]:
                    side_words = "at least" if sign > 0 else "at most"
                    sided = from_below if sign > 0 else from_above
                    return (
                        f"constraints[{self.index}]: inequality {k} cannot hold: its left side is "
                        f"{side_words} {sided(float(sign * total), 9)} for every mechanism, and "
                        f"the limit is {float(limit):.9g}. Move the limit"
                    )
        return ""

    def _least(self, allowed: Bools, side: Floats) -> list[list[float]]:
        """Of every inequality the least weight of each secret that has some, over the reports that
        are allowed, of which those that have none weigh 0."""
        secrets, observables = allowed.shape
        start, at = self.weights.indptr, self.weights.indices
        group = np.repeat(np.arange(len(self)), np.diff(start)) * secrets + at // observables
        first = np.flatnonzero(np.diff(group, prepend=-1))
        row, secret = np.divmod(group[first], secrets)
        inside = allowed.ravel()[at]
        whole = np.add.reduceat(inside.astype(np.int64), first) == allowed.sum(axis=1)[secret]
        least = np.minimum.reduceat(np.where(inside, side, np.inf), first)
        found = np.where(whole, least, np.minimum(least, 0.0))
        ends = np.searchsorted(row, np.arange(len(self) + 1)).tolist()
        return [found[a:b].tolist() for a, b in pairwise(ends)]

    def zeros(self, statement: Statement) -> Floats:
        return np.zeros((2, len(self)))


def _add(parts: Parts, log_of: Fraction | None, value: Fraction) -> None:
    parts[log_of] = parts.get(log_of, Fraction()) + value


def _above(parts: Parts) -> Fraction:
    """A number >= Σ_b c_b ln b, equal where it is rational."""
    high = parts.get(None, Fraction())
    for log_of, value in parts.items():
        if log_of is not None and value:
            high += max(value * end for end in bracket(Exact(Fraction(1), log_of)))
    return high
