"""What k independent reports of one secret give away (QIF chapter 8: composition)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from operator import mul

import numpy as np

from optmech.analysis.leakage.gains import IDENTITY, Gain, gain_of
from optmech.analysis.leakage.hypers import reduced
from optmech.analysis.leakage.joint import probabilities, shares
from optmech.analysis.leakage.losses import delta_of_pair
from optmech.analysis.leakage.types import exactly_earned, nearly_earned
from optmech.analysis.leakage.vulnerability import posterior_vulnerability
from optmech.analysis.measures import weights_over
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.number import Exact, Interval, Number, parse_exact, rounded_down, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, evaluate
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution, Prior
from optmech.spaces.rationals import Shares

_MOST = 1000
_TYPES, _PRODUCTS = 20_000, 4_000_000
"""Multisets of reports, and terms over all guesses, up to which sums are fractions."""


@dataclass(frozen=True, eq=False, repr=False)
class Repeated(Shown):
    """k independent reports about the same secret."""

    mechanism: Mechanism
    """One report, reduced: proportional observables are one."""
    k: int

    @property
    def epsilon(self) -> float:
        """The least ε of differential privacy for all pairs: k times that of one report, exactly
        (reports that are all the most telling one occur). An ``Exact`` unless infinite."""
        best = Fraction(1)
        for column in probabilities(self.mechanism).columns:
            if min(column) == 0:
                return math.inf
            best = max(best, Fraction(max(column), min(column)))
        return Exact(Fraction(self.k), best)

    def delta(self, epsilon: Number, *, points: int = 4096) -> Interval:
        """Bounds of the least δ of (ε, δ)-differential privacy for all pairs of secrets: of the
        largest Σ max(0, p^k - e^ε q^k) over the pairs of rows.

        The distribution of the privacy loss of k reports is kept on a grid of about ``points``
        losses, split for the upper and merged for the lower bound; more of them bring the two
        closer together.
        """
        rate = parse_exact(epsilon, where="epsilon")
        fine = whole(points, "points", least=16, most=2**17)
        found = probabilities(self.mechanism)
        low, high = 0.0, {}
        coarse = min(fine, 256)
        for i, j in permutations(range(len(found.rows)), 2):
            bounds = delta_of_pair(
                found.rows[i], found.rows[j], found.total, rate, k=self.k, points=coarse
            )
            low, high[i, j] = max(low, bounds[0]), bounds[1]
        if coarse < fine:
            for i, j in sorted(high, key=lambda pair: -high[pair]):
                if high[i, j] > low:
                    bounds = delta_of_pair(
                        found.rows[i], found.rows[j], found.total, rate, k=self.k, points=fine
                    )
                    low, high[i, j] = max(low, bounds[0]), min(high[i, j], bounds[1])
        return Interval(low, max(high.values(), default=0.0))

    def distribution_delta(
        self, first: Distribution, second: Distribution, epsilon: Number, *, points: int = 4096
    ) -> Interval:
        """Bounds of the least δ of (ε, δ)-distribution privacy, both ways, of k reports about k
        independent members of a population whose secrets follow ``first`` or ``second`` (DP19 Def.
        8): Σ max(0, (λP)^k - e^ε (λ'P)^k) over the sequences of reports. ``points`` as in
        ``delta``.
        """
        rate = parse_exact(epsilon, where="epsilon")
        fine = whole(points, "points", least=16, most=2**17)
        found = probabilities(self.mechanism)
        rows = []
        for where, given in (("first", first), ("second", second)):
            if isinstance(given, Prior):
                weights_over(self.mechanism, given, where)
            drawn = Shares.of(given, where)
            if len(drawn) != len(found.rows):
                raise ProblemError(
                    f"{len(drawn)} weights for {len(found.rows)} secrets", where=where
                )
            sums = [sum(map(mul, drawn.units, column)) for column in found.columns]
            rows.append((sums, found.total * drawn.total))
        total = math.lcm(rows[0][1], rows[1][1])
        p, q = ([value * (total // own) for value in sums] for sums, own in rows)
        ways = [
            delta_of_pair(a, b, total, rate, k=self.k, points=fine) for a, b in ((p, q), (q, p))
        ]
        return Interval(max(low for low, _ in ways), max(high for _, high in ways))

    def vulnerability(self, prior: Prior, gain: Gain = IDENTITY) -> Interval:
        """What the best guess after k reports earns, V_g[π, P^k] = Σ max_w Σ_s π(s) g(w,s) p^k,
        summed over the multisets of reports.

        The floats on both sides of the exact number for up to 20,000 multisets (fewer with many
        guesses); beyond that the likeliest ones are summed, and the others bounded by all that
        they can earn.
        """
        return self._earned(prior, gain)

    def error(self, prior: Prior, distance: DistanceLike) -> Interval:
        """The expected error of the optimal attack after k reports (PG 7), in the unit of the
        distance d(t, s); estimates range over the secrets."""
        m = self.mechanism
        values = evaluate(distance, m.secrets, m.secrets, where="distance")
        found = self._earned(prior, -values)
        return Interval(0.0 - found.upper, 0.0 - found.lower)

    def _earned(self, prior: Prior, gain: Gain) -> Interval:
        m = self.mechanism
        drawn, stated = shares(m, prior), gain_of(gain, len(m.secrets))
        n = len(m.secrets)
        rows = (
            [[Fraction(int(w == s)) for s in range(n)] for w in range(n)]
            if stated is None
            else [[Fraction(v, stated.total) for v in row] for row in stated.rows]
        )
        weighted = [[v * pi for v, pi in zip(row, drawn.fractions, strict=True)] for row in rows]
        if self.k == 1 or self._is_small(self.k, len(rows)):
            found = self._exactly(self.k, weighted, prior, gain)
            return Interval(rounded_down(found), rounded_up(found))
        # a number for each secret, added to all guesses, changes what is earned by its mean
        least = [min(column) for column in zip(*weighted, strict=True)]
        shifted = [[v - low for v, low in zip(row, least, strict=True)] for row in weighted]
        low, high = nearly_earned(m.matrix, np.array(shifted, dtype=float), self.k)
        moved = sum(least, Fraction(0))
        # fewer reports earn no more
        fewer = max((j for j in range(2, self.k) if self._is_small(j, len(rows))), default=1)
        known = self._exactly(fewer, weighted, prior, gain)
        return Interval(
            rounded_down(max(known, Fraction(low) + moved)), rounded_up(Fraction(high) + moved)
        )

    def _exactly(
        self, k: int, weighted: list[list[Fraction]], prior: Prior, gain: Gain
    ) -> Fraction:
        if k == 1:
            return posterior_vulnerability(self.mechanism, prior, gain).factor
        return exactly_earned(probabilities(self.mechanism), weighted, k)

    def _is_small(self, k: int, guesses: int) -> bool:
        types = math.comb(k + len(self.mechanism.observables) - 1, k)
        return types <= _TYPES and types * guesses * len(self.mechanism.secrets) <= _PRODUCTS


@checked_arguments
def repeated(m: Mechanism, k: int) -> Repeated:
    """k independent reports of ``m`` about one secret (``repeated_independent`` of libqif), as an
    object with ``epsilon``, ``delta(ε)``, ``vulnerability(prior, gain)`` and
    ``error(prior, distance)``.

    Raises
    ------
    ProblemError
        Unless k is a whole number from 1 to 1000.
    """
    return Repeated(reduced(m), whole(k, "k", least=1, most=_MOST))
