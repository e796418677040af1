"""What k releases with the same noise reveal, between proved bounds: δ(ε) and ε(δ).

Every release has noise of its own, and a person may change every one of the numbers by up to the
sensitivity, in any direction and depending on what was released before. The privacy losses of k
releases add up; each loss is spread over its two neighbours on a lattice so that the masses of both
laws stay, which can only make the laws easier to tell apart (Jensen's inequality in e^-loss), and
by how much is bounded through the probability of sums near ε (docs/theory/integer-noise.md). The
law of the sum is a power of a discrete Fourier transform, with its error bounded by norms.
"""

import math
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from optmech.base.bisection import reached
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import probability
from optmech.exact.number import Interval, Number, parse_exact, rounded_down, rounded_up
from optmech.exact.ratios.hockey_stick import Pair
from optmech.exact.rounding import UNIT, depth
from optmech.mechanisms.hockey_sum import CyclicSums, spread_reach
from optmech_noise.additive.bound import largest_delta
from optmech_noise.additive.law import Law
from optmech_noise.additive.pairs import dominating, single

MOST_RELEASES = 100_000
LARGEST_RATE = 10**6
NODES = 2**19
"""Length of the lattice."""
least_rate = partial(reached, low=0.0, high=1.0, steps=40, close=1e-9)
"""Numbers around the ε from which on something holds."""


class _Sums(CyclicSums):
    """The law of the sum of losses, where none is infinite."""

    def __init__(self, pair: Pair, releases: int, nodes: int) -> None:
        self.pair, self.copies = pair, releases
        if not len(pair.losses):
            return
        losses, chances = pair.losses, pair.chances
        enough = 4 * (2 * releases + 4)
        nodes = nodes if enough <= nodes else 1 << enough.bit_length()
        super().__init__(losses, chances, releases, nodes, 1e-12)
        below = np.floor(losses / self.step)
        # of an atom, at the lower neighbour, for p and p e^-loss to stay
        away = (below + 1) * self.step - losses
        share = np.clip(np.expm1(away) / math.expm1(self.step), 0.0, 1.0)
        places = np.append(below, below + 1).astype(np.int64)
        self.atoms, back = np.unique(places, return_inverse=True)
        weights = np.append(chances * share, chances * (1 - share))
        self.crowd = int(np.bincount(back).max())
        self.mass = np.bincount(back, weights=weights).astype(np.float64)

    def delta(self, rate: float) -> Interval:
        """Bounds on P(some loss is infinite) + E max(0, 1 - e^{rate - S})."""
        n = self.copies
        if not len(self.pair.losses):
            return self.impossible
        lost = self._lost
        places, h = self.law[0], self.step
        value = np.where(places > rate, -np.expm1(np.minimum(rate - places, 0.0)), 0.0)
        mean, blur = self.expected(value)
        size = float(np.abs(self.pair.losses).max()) + h
        # losses to 8 units each, and max(0, 1 - e^-x) changes by at most as much as x
        noise = 16 * n * UNIT * size + n * self.pair.error + 2 * depth(self.nodes) * UNIT
        noise += (self.crowd + 16) * n * UNIT
        slack = blur + self.outside[0] + noise
        return Interval(lost + mean - slack - self._excess(rate), lost + mean + slack)

    @property
    def _lost(self) -> float:
        lost = self.pair.lost
        return -math.expm1(self.copies * math.log1p(-lost)) if lost < 1 else 1.0

    @property
    def impossible(self) -> Interval:
        """The chance of what one of two neighbours never gives: no ε leaves less."""
        slack = self.copies * (self.pair.error + 16 * UNIT)
        return Interval(self._lost - slack, self._lost + slack)

    def _excess(self, rate: float) -> float:
        """Bounds what the spreading adds.

        With V = e^-Ξ, E V = 1 given the sum S, the excess at S is E (1 - wV)⁺ - (1 - w)⁺ for
        w = e^{rate - S}: nothing where wV and w are on one side of 1, and at most
        w E|V - 1| / 2 <= w √n h e^{nh²} / 2 anywhere.
        """
        n, h = self.copies, self.step
        far, beyond = spread_reach(n, h)
        drift = n * h * h / 8
        away = far + drift
        near = np.abs(self.law[0] - rate) <= 2 * away
        chance = sum(self.expected(near.astype(np.float64)))
        chance = min(1.0, chance + self.outside[0] + 2 * beyond)
        deviation = math.sqrt(max(0.0, math.expm1(n * math.log1p(h * h * math.exp(2 * h) / 4))))
        return math.exp(2 * away) * deviation / 2 * chance + beyond


@record
class ComposedPrivacy(Shown):
    """Privacy of ``releases`` numbers, each with noise of its own from ``law``.

    Examples
    --------
    >>> law = om.noise.optimal(epsilon="ln 2", gap=1e-3).law
    >>> ten = om.noise.ComposedPrivacy(law, sensitivity=1, releases=10, nodes=2**14)
    >>> print(round(ten.epsilon(delta=1e-6).upper, 3), "of", round(10 * np.log(2), 3))
    6.933 of 6.931
    >>> print(round(ten.delta(epsilon=7).upper, 6))
    0.0
    """

    law: Law
    sensitivity: int
    releases: int = 1
    nodes: int = NODES

    def delta(self, epsilon: Number) -> Interval:
        """Bounds on δ(ε) of all releases together; raises ProblemError unless ε is a number from
        0 to a million."""
        rate = parse_exact(epsilon, where="epsilon")
        if rate > LARGEST_RATE:
            raise ProblemError(
                f"is above {LARGEST_RATE:,}", where="epsilon", remedy="Ask for a smaller ε"
            )
        if self.releases == 1:
            exact = largest_delta(self.law, rate, self.sensitivity)[0]
            return Interval(
                max(0.0, rounded_down(exact * (1 - Fraction(UNIT)))), min(1.0, rounded_up(exact))
            )
        upper = self._above.delta(float(rate)).upper
        lower = max(sums.delta(float(rate)).lower for sums in self._below)
        return Interval(max(0.0, lower), min(1.0, upper))

    def epsilon(self, delta: Number) -> Interval:
        """Bounds on the least ε >= 0 with δ(ε) <= ``delta``, to about nine digits; infinite above
        where none is found up to 10,000, and below where there is none. Raises ProblemError unless
        δ is from 0 to 1."""
        limit = float(probability(delta))
        upper = least_rate(lambda rate: self.delta(rate).upper <= limit, most=10_000)[1]
        if upper == math.inf and any(sums.impossible.lower > limit for sums in self._below):
            return Interval(math.inf, math.inf)
        lower = least_rate(lambda rate: self.delta(rate).lower <= limit, most=10_000)[0]
        return Interval(lower, upper)

    @cached_property
    def _above(self) -> _Sums:
        """Sums of losses of a pair that dominates all shifts."""
        return _Sums(dominating(self.law, self.sensitivity), self.releases, self.nodes)

    @cached_property
    def _below(self) -> list[_Sums]:
        """Sums of losses of single shifts, which a person can cause."""
        if self.sensitivity == 1 or self.law.falls:
            return [self._above]
        shifts = {self.sensitivity, self.sensitivity - 1}
        pairs = [single(self.law, shift) for shift in shifts]
        return [_Sums(pair, self.releases, self.nodes) for pair in pairs]
