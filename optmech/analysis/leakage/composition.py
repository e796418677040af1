"""What two independent reports about one secret give away, of two mechanisms (QIF chapter 8:
parallel composition), such as two versions of a design."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.analysis.leakage.gains import IDENTITY, Gain, gain_of
from optmech.analysis.leakage.hypers import reduced
from optmech.analysis.leakage.joint import Scaled, probabilities, shares
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Interval, rounded_down, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, evaluate
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior

_PRODUCTS = 2_000_000
"""Terms over all guesses, secrets and pairs of reports up to which sums are fractions."""
_UNIT = 2.0**-53
_LOST = 1e-280
"""More than underflow takes from a sum."""
_NEAR = 1e-9
"""Logarithms that may belong to the largest ratio, relatively: these are compared exactly."""


@dataclass(frozen=True, eq=False, repr=False)
class Parallel(Shown):
    """One report of each of two mechanisms about the same secret, drawn independently."""

    first: Mechanism
    second: Mechanism

    @cached_property
    def _scaled(self) -> tuple[Scaled, Scaled]:
        return probabilities(self.first), probabilities(self.second)

    @cached_property
    def _logs(self) -> tuple[Floats, Floats]:
        """ln of the numerators, (S, O), -inf for zero."""

        def logs(found: Scaled) -> Floats:
            return np.array([[math.log(v) if v else -math.inf for v in row] for row in found.rows])

        one, other = (logs(found) for found in self._scaled)
        return one, other

    @cached_property
    def epsilons(self) -> Floats:
        """ε of every ordered pair of secrets, shape (S, S): max ln p(o|s) p'(o'|s) / p(o|t)
        p'(o'|t) over both reports, which is the sum of the two mechanisms' own; floats."""
        return np.asarray(sum(_largest(logs) for logs in self._logs))

    def epsilon_between(self, s: Hashable, t: Hashable) -> float:
        """The same of one pair, exactly: an ``Exact`` unless infinite. Both reports can be the most
        telling ones at once, so that nothing less holds."""
        i, j = (self.first.secrets.index(label) for label in (s, t))
        return self._exactly(i, j)

    def _exactly(self, i: int, j: int) -> float:
        ratio = self._ratio(i, j)
        return math.inf if ratio is None else Exact(Fraction(1), ratio)

    def _ratio(self, i: int, j: int) -> Fraction | None:
        """The largest of both reports; None where it is infinite."""
        ratio = Fraction(1)
        for found, logs in zip(self._scaled, self._logs, strict=True):
            if any(a and not b for a, b in zip(found.rows[i], found.rows[j], strict=True)):
                return None
            with np.errstate(invalid="ignore"):
                apart = np.where(np.isneginf(logs[i]), -np.inf, logs[i] - logs[j])
            top = float(apart.max())
            near = np.flatnonzero(apart >= top - _NEAR * (1 + abs(top))).tolist()
            ratio *= max(Fraction(found.rows[i][o], found.rows[j][o]) for o in near)
        return ratio

    @cached_property
    def worst(self) -> tuple[Hashable, Hashable]:
        """The ordered pair of secrets that both reports together tell apart best."""
        i, j = self._worst
        return self.first.secrets.labels[i], self.first.secrets.labels[j]

    @cached_property
    def _worst(self) -> tuple[int, int]:
        top = float(self.epsilons.max())
        with np.errstate(invalid="ignore"):
            near = self.epsilons >= (top if math.isinf(top) else top - _NEAR * (1 + top))
        pairs = [(int(i), int(j)) for i, j in np.argwhere(near)]
        if math.isinf(top):
            return pairs[0]
        return max(pairs, key=lambda pair: self._ratio(*pair) or 0)

    @property
    def epsilon(self) -> float:
        """The least ε of differential privacy for all pairs of secrets, exactly: an ``Exact``
        unless infinite. At most the sum of the two mechanisms' own: their worst pairs may be
        others."""
        return self._exactly(*self._worst)

    def epsilon_per(self, distance: DistanceLike) -> float:
        """The least ε with ε_st <= ε d(s,t) for all pairs: that of metric privacy. A float next to
        it."""
        m = self.first
        apart = evaluate(distance, m.secrets, m.secrets, where="distance")
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.epsilons > 0, self.epsilons / apart, 0.0)
        return float(found.max())

    def vulnerability(self, prior: Prior, gain: Gain = IDENTITY) -> Interval:
        """What the best guess after both reports earns: Σ_{o,o'} max_w Σ_s π(s) g(w,s) p(o|s)
        p'(o'|s). The floats on both sides of the exact number for small mechanisms, else bounds
        within rounding."""
        return self._earned(prior, gain)

    def error(self, prior: Prior, distance: DistanceLike) -> Interval:
        """The expected error of the optimal attack that sees both reports (PG 7); estimates range
        over the secrets."""
        m = self.first
        values = evaluate(distance, m.secrets, m.secrets, where="distance")
        found = self._earned(prior, -values)
        return Interval(0.0 - found.upper, 0.0 - found.lower)

    def _earned(self, prior: Prior, gain: Gain) -> Interval:
        count = len(self.first.secrets)
        drawn, stated = shares(self.first, prior), gain_of(gain, count)
        rows = (
            [[Fraction(int(w == s)) for s in range(count)] for w in range(count)]
            if stated is None
            else [[Fraction(v, stated.total) for v in row] for row in stated.rows]
        )
        weighted = [[v * pi for v, pi in zip(row, drawn.fractions, strict=True)] for row in rows]
        seen = len(self.first.observables) * len(self.second.observables)
        if len(rows) * count * seen <= _PRODUCTS:
            found = self._summed(weighted)
            return Interval(rounded_down(found), rounded_up(found))
        # a number for each secret, added to all guesses, changes what is earned by its mean
        least = [min(column) for column in zip(*weighted, strict=True)]
        shifted = np.array(
            [[float(v - low) for v, low in zip(row, least, strict=True)] for row in weighted]
        )
        one, other = self.first.matrix, self.second.matrix
        parts = (
            float(((shifted * one[:, o]) @ other).max(axis=0).sum()) for o in range(one.shape[1])
        )
        earned = math.fsum(parts)
        # products of terms >= 0 that are off by a unit each, and a sum over secrets, then reports
        error = 1.01 * (count + other.shape[1] + 12) * _UNIT
        moved = sum(least, Fraction(0))
        low, high = max(0.0, earned * (1 - error) - _LOST), earned * (1 + error) + _LOST
        return Interval(rounded_down(Fraction(low) + moved), rounded_up(Fraction(high) + moved))

    def _summed(self, weighted: list[list[Fraction]]) -> Fraction:
        scale = math.lcm(*(value.denominator for row in weighted for value in row))
        gains = [[int(value * scale) for value in row] for row in weighted]
        one, other = self._scaled
        total = 0
        for own in one.columns:
            here = [[g * p for g, p in zip(row, own, strict=True)] for row in gains]
            for column in other.columns:
                total += max(sum(g * q for g, q in zip(row, column, strict=True)) for row in here)
        return Fraction(total, scale * one.total * other.total)


@checked_arguments
def parallel(first: Mechanism, second: Mechanism) -> Parallel:
    """One report of each of two mechanisms about one secret, drawn independently, as an object with
    ``epsilon``, ``epsilon_between(s, t)``, ``vulnerability(prior, gain)`` and
    ``error(prior, distance)``.

    Raises
    ------
    ProblemError
        Where the two have other secrets, or the same in another order.
    """
    require_mechanism(first, "first")
    require_mechanism(second, "second")
    if first.secrets.labels != second.secrets.labels:
        raise ProblemError(
            "has other secrets than the first",
            where="second",
            remedy="Give mechanisms over the same secrets; om.leakage.versions compares those of "
            "two versions of a design",
        )
    return Parallel(reduced(first), reduced(second))


def require_mechanism(given: object, where: str) -> None:
    """Raise ProblemError on anything but a mechanism."""
    if not isinstance(given, Mechanism):
        raise ProblemError(
            f"{type(given).__name__} is not a Mechanism",
            where=where,
            remedy="Give one, such as the mechanism of a design",
        )


def _largest(logs: Floats) -> Floats:
    """max_o of logs[s,o] - logs[t,o] over what s reports, (S, S)."""
    out = np.zeros((len(logs),) * 2)
    for s, row in enumerate(logs):
        seen = ~np.isneginf(row)
        out[s] = (row[seen] - logs[:, seen]).max(axis=1)
    return np.maximum(out, 0.0)
