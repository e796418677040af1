"""What several independent reports about one secret give away (QIF chapter 8): k of one mechanism,
and one of each of two mechanisms, such as two versions of a design."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from fractions import Fraction
from functools import cached_property
from itertools import permutations

import numpy as np

from optmech.analysis.probabilities import IDENTITY, Gain, Scaled, gain_of, probabilities, shares
from optmech.analysis.repetition import delta_of_pair
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.number import Exact, Interval, Number, parse_exact, rounded_down, rounded_up
from optmech.exact.numerators import dot, steepest
from optmech.exact.rounding import UNIT
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, between
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior
from optmech_leakage.repetition import exactly_earned, nearly_earned
from optmech_leakage.vulnerability import posterior_vulnerability, reduced

_MOST = 1000
_TYPES, _PRODUCTS = 20_000, 4_000_000
"""Multisets of reports, and terms over all guesses, up to which sums are fractions."""
_PAIR_PRODUCTS = 2_000_000
"""Terms over all guesses, secrets and pairs of reports up to which sums are fractions."""
_LOST = 1e-280
"""More than underflow takes from a sum."""
_NEAR = 1e-9
"""Logarithms that may belong to the largest ratio, relatively: these are compared exactly."""


class _Reports(Shown):
    """Independent reports about the same secret."""

    @property
    @abstractmethod
    def _mechanism(self) -> Mechanism:
        """One of them."""

    @abstractmethod
    def _exactly(self, weighted: Scaled, prior: Prior, gain: Gain) -> Fraction | None:
        """What the best guess earns where π(s) g(w,s) is ``weighted``, a row for every guess; None
        where the sums are too long for fractions."""

    @abstractmethod
    def _nearly(self, weighted: Floats) -> tuple[float, float]:
        """Bounds of the same, for weights >= 0."""

    def _fewer(self, weighted: Scaled, prior: Prior, gain: Gain) -> list[Fraction]:
        """What fewer of the reports earn, which is no more, where that is known."""
        return []

    @checked_arguments
    def vulnerability(self, prior: Prior, gain: Gain = IDENTITY) -> Interval:
        """What the best guess after all reports earns: the sum over what may be reported of
        max_w Σ_s π(s) g(w,s) p(reports|s).

        The floats on both sides of the exact number where the sum is short; else bounds within
        rounding, and with more than 20,000 multisets of k reports (fewer with many guesses) within
        all that the least likely ones can earn.
        """
        m = self._mechanism
        count = len(m.secrets)
        drawn = shares(m, prior)
        stated = gain_of(gain, count) or Scaled(np.eye(count, dtype=int).tolist(), 1)
        weighted = Scaled(
            [[v * unit for v, unit in zip(row, drawn.units, strict=True)] for row in stated.rows],
            stated.total * drawn.total,
        )
        found = self._exactly(weighted, prior, gain)
        if found is not None:
            return Interval(rounded_down(found), rounded_up(found))
        # a number for each secret, added to all guesses, changes what is earned by its mean
        least, total = [min(column) for column in weighted.columns], weighted.total
        shifted = [
            [(v - low) / total for v, low in zip(row, least, strict=True)] for row in weighted.rows
        ]
        low, high = self._nearly(np.array(shifted))
        moved = Fraction(sum(least), total)
        known = max([Fraction(low) + moved, *self._fewer(weighted, prior, gain)])
        return Interval(rounded_down(known), rounded_up(Fraction(high) + moved))

    @checked_arguments
    def error(self, prior: Prior, distance: DistanceLike) -> Interval:
        """The expected error of the optimal attack that sees all reports (Shokri, PETS 2015, eq.
        7), in the unit of the distance d(t, s); estimates range over the secrets."""
        secrets = self._mechanism.secrets
        found = self.vulnerability(prior, -between(distance, secrets))
        return Interval(0.0 - found.upper, 0.0 - found.lower)


@record
class Repeated(_Reports):
    """k independent reports about the same secret.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> ten = om.leakage.repeated(om.mechanisms.randomized_response(sides, "ln 3"), 10)
    >>> print(round(float(ten.epsilon), 4))  # 10 ln 3
    10.9861
    >>> print(round(ten.delta(epsilon=2).upper, 3))
    0.776
    >>> found = ten.distribution_delta([0.6, 0.4], [0.4, 0.6], epsilon=0.5)
    >>> print(0 < found.lower <= found.upper < 1)
    True
    """

    mechanism: Mechanism
    """One report, reduced: proportional observables are one."""
    k: int

    @property
    def epsilon(self) -> float:
        """The least ε of differential privacy for all pairs: k times that of one report, exactly
        (reports that are all the most telling one occur). An ``Exact`` unless infinite."""
        columns = probabilities(self.mechanism).columns
        top, bottom = steepest((max(column), min(column)) for column in columns)
        return Exact(Fraction(self.k), Fraction(top, bottom)) if bottom else math.inf

    def delta(self, epsilon: Number, *, points: int = 4096) -> Interval:
        """Bounds of the least δ of (ε, δ)-differential privacy for all pairs of secrets: of the
        largest Σ max(0, p^k - e^ε q^k) over the pairs of rows.

        The distribution of the privacy loss of k reports is kept on a grid of about ``points``
        losses, split for the upper and merged for the lower bound; more of them bring the two
        closer together.
        """
        rate, fine = _read(epsilon, points)
        found = probabilities(self.mechanism)
        low, high = 0.0, dict.fromkeys(permutations(range(len(found.rows)), 2), 1.0)
        # those that are far from the worst are looked at coarsely only
        for grid in sorted({min(fine, 256), fine}):
            for i, j in sorted(high, key=lambda pair: -high[pair]):
                if high[i, j] > low:
                    p, q = found.rows[i], found.rows[j]
                    bounds = delta_of_pair(p, q, found.total, rate, k=self.k, points=grid)
                    low, high[i, j] = max(low, bounds[0]), min(high[i, j], bounds[1])
        return Interval(low, max(high.values(), default=0.0))

    def distribution_delta(
        self, first: Distribution, second: Distribution, epsilon: Number, *, points: int = 4096
    ) -> Interval:
        """Bounds of the least δ of (ε, δ)-distribution privacy, both ways, of k reports about k
        independent members of a population whose secrets follow ``first`` or ``second`` (Kawamoto
        and Murakami, ESORICS 2019, Def. 8): Σ max(0, (λP)^k - e^ε (λ'P)^k) over the sequences of
        reports. ``points`` as in ``delta``."""
        rate, fine = _read(epsilon, points)
        found = probabilities(self.mechanism)
        one, other = (
            shares(self.mechanism, first, "first"),
            shares(self.mechanism, second, "second"),
        )
        p = [dot(one.units, column) * other.total for column in found.columns]
        q = [dot(other.units, column) * one.total for column in found.columns]
        total = one.total * other.total * found.total
        low, high = zip(
            *(delta_of_pair(a, b, total, rate, k=self.k, points=fine) for a, b in ((p, q), (q, p))),
            strict=True,
        )
        return Interval(max(low), max(high))

    @property
    def _mechanism(self) -> Mechanism:
        return self.mechanism

    def _exactly(self, weighted: Scaled, prior: Prior, gain: Gain) -> Fraction | None:
        if self.k == 1:
            return posterior_vulnerability(self.mechanism, prior, gain).factor
        return self._summed(self.k, weighted) if self._is_small(self.k, weighted) else None

    def _nearly(self, weighted: Floats) -> tuple[float, float]:
        return nearly_earned(self.mechanism.matrix, weighted, self.k)

    def _fewer(self, weighted: Scaled, prior: Prior, gain: Gain) -> list[Fraction]:
        small = [k for k in range(2, self.k) if self._is_small(k, weighted)]
        if small:
            return [self._summed(small[-1], weighted)]
        return [posterior_vulnerability(self.mechanism, prior, gain).factor]

    def _summed(self, k: int, weighted: Scaled) -> Fraction:
        return exactly_earned(probabilities(self.mechanism), weighted, k)

    def _is_small(self, k: int, weighted: Scaled) -> bool:
        types = math.comb(k + len(self.mechanism.observables) - 1, k)
        size = types * len(weighted.rows) * len(self.mechanism.secrets)
        return types <= _TYPES and size <= _PRODUCTS


def _read(epsilon: Number, points: int) -> tuple[Exact, int]:
    return parse_exact(epsilon, where="epsilon"), whole(points, "points", least=16, most=2**17)


@checked_arguments
def repeated(m: Mechanism, k: int) -> Repeated:
    """k independent reports of ``m`` about one secret (``repeated_independent`` of libqif), as an
    object with ``epsilon``, ``delta(ε)``, ``vulnerability(prior, gain)`` and
    ``error(prior, distance)``.

    Raises
    ------
    ProblemError
        Unless k is a whole number from 1 to 1000.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> three = om.leakage.repeated(m, 3)
    >>> print(three.vulnerability(om.Prior.uniform(sides)).upper)  # the majority is right: 27/32
    0.84375
    """
    return Repeated(reduced(m), whole(k, "k", least=1, most=_MOST))


@record
class Parallel(_Reports):
    """One report of each of two mechanisms about the same secret, drawn independently.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> two = om.leakage.parallel(m, m)
    >>> print(round(float(two.epsilon), 4))  # 2 ln 3
    2.1972
    >>> print(round(float(two.epsilon_between("left", "right")), 4))
    2.1972
    >>> print(round(float(two.epsilon_per(om.distances.hamming())), 4))
    2.1972
    >>> even = om.Prior.uniform(sides)
    >>> print(round(two.vulnerability(even).upper, 6))  # two reports help no more than one
    0.75
    >>> print(round(two.error(even, om.distances.hamming()).upper, 6))
    0.25
    """

    first: Mechanism
    second: Mechanism

    @cached_property
    def _scaled(self) -> tuple[Scaled, Scaled]:
        return probabilities(self.first), probabilities(self.second)

    @cached_property
    def epsilons(self) -> Floats:
        """ε of every ordered pair of secrets, shape (S, S): max ln p(o|s) p'(o'|s) / p(o|t)
        p'(o'|t) over both reports, which is the sum of the two mechanisms' own; floats."""
        return np.asarray(sum(map(_largest, self._scaled)))

    def epsilon_between(self, s: Hashable, t: Hashable) -> float:
        """The largest log ratio of one pair, exactly: an ``Exact`` unless infinite. Both reports
        can be the most telling ones at once, so that nothing less holds."""
        ratio = self._ratio(*map(self.first.secrets.index, (s, t)))
        return math.inf if ratio is None else Exact(Fraction(1), ratio)

    def _ratio(self, i: int, j: int) -> Fraction | None:
        """The largest of both reports; None where it is infinite."""
        (a, b), (c, d) = (
            steepest(zip(found.rows[i], found.rows[j], strict=True)) for found in self._scaled
        )
        return Fraction(a * c, b * d) if b and d else None

    @cached_property
    def worst(self) -> tuple[Hashable, Hashable]:
        """The ordered pair of secrets that both reports together tell apart best."""
        top = float(self.epsilons.max())
        with np.errstate(invalid="ignore"):
            near = self.epsilons >= (top if math.isinf(top) else top - _NEAR * (1 + top))
        pairs = [(int(i), int(j)) for i, j in np.argwhere(near)]
        i, j = pairs[0]
        if math.isfinite(top):
            i, j = max(pairs, key=lambda pair: self._ratio(*pair) or 0)
        return self.first.secrets.labels[i], self.first.secrets.labels[j]

    @property
    def epsilon(self) -> float:
        """The least ε of differential privacy for all pairs of secrets, exactly: an ``Exact``
        unless infinite. At most the sum of the two mechanisms' own: their worst pairs may be
        others."""
        return self.epsilon_between(*self.worst)

    def epsilon_per(self, distance: DistanceLike) -> float:
        """The least ε with ε_st <= ε d(s,t) for all pairs: that of metric privacy. A float next to
        it."""
        m = self.first
        apart = between(distance, m.secrets)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.epsilons > 0, self.epsilons / apart, 0.0)
        return float(found.max())

    @property
    def _mechanism(self) -> Mechanism:
        return self.first

    def _exactly(self, weighted: Scaled, prior: Prior, gain: Gain) -> Fraction | None:
        seen = len(self.first.observables) * len(self.second.observables)
        if len(weighted.rows) * len(self.first.secrets) * seen > _PAIR_PRODUCTS:
            return None
        one, other = self._scaled
        total = 0
        for own in one.columns:
            here = [[g * p for g, p in zip(row, own, strict=True)] for row in weighted.rows]
            for column in other.columns:
                total += max(dot(row, column) for row in here)
        return Fraction(total, weighted.total * one.total * other.total)

    def _nearly(self, weighted: Floats) -> tuple[float, float]:
        one, other = self.first.matrix, self.second.matrix
        parts = (
            float(((weighted * one[:, o]) @ other).max(axis=0).sum()) for o in range(one.shape[1])
        )
        earned = math.fsum(parts)
        # products of terms >= 0 that are off by a unit each, and a sum over secrets, then reports
        error = 1.01 * (len(one) + other.shape[1] + 12) * UNIT
        return max(0.0, earned * (1 - error) - _LOST), earned * (1 + error) + _LOST


@checked_arguments
def parallel(first: Mechanism, second: Mechanism) -> Parallel:
    """One report of each of two mechanisms about one secret, drawn independently, as an object with
    ``epsilon``, ``epsilon_between(s, t)``, ``vulnerability(prior, gain)`` and
    ``error(prior, distance)``.

    Raises
    ------
    ProblemError
        Where the two have other secrets, or the same in another order.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.mechanisms.randomized_response(sides, "ln 3")
    >>> b = om.mechanisms.randomized_response(sides, "ln 2")
    >>> print(round(float(om.leakage.parallel(a, b).epsilon), 4))  # ln 6
    1.7918
    """
    if first.secrets.labels != second.secrets.labels:
        raise ProblemError(
            "has other secrets than the first",
            where="second",
            remedy="Give mechanisms over the same secrets; om.leakage.versions compares those of "
            "two versions of a design",
        )
    return Parallel(reduced(first), reduced(second))


def _largest(found: Scaled) -> Floats:
    """max_o ln p(o|s) / p(o|t) over what s reports, (S, S)."""
    logs = np.array([[math.log(v) if v else -math.inf for v in row] for row in found.rows])
    out = np.zeros((len(logs),) * 2)
    for s, row in enumerate(logs):
        seen = ~np.isneginf(row)
        out[s] = (row[seen] - logs[:, seen]).max(axis=1)
    return np.maximum(out, 0.0)
