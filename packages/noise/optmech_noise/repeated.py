"""What one of several releases with the same noise has to keep where all of them together keep
(ε, δ): from an event, its mirror image, and how far the two laws are apart.

Nothing is believed of the noise but that it is even, which loses nothing
(docs/theory/releases.md). Sums are in floats; what is allowed is raised by more than they may be
off.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np
from scipy.special import betainc, betaincinv, gammaln

from optmech.base.arrays import Floats
from optmech.base.bisection import bisected

MOST_WITH_MIRROR, MOST_WITH_DISTANCE = 60, 12
"""Releases: what is listed grows with their square, with their cube."""
_SLOPES = (
    0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3, 1.45, 1.6, 1.8, 2.0, 2.25,
    2.5, 3.0, 4.0, 5.0, 7.0,
)  # fmt: skip
"""Of tangents, in parts of ε over the releases."""
_SAFE = 1e-7
"""By how much δ may be off in floats, relatively."""
_HALVINGS = 34
_TINY = 1e-300
_STEP = 2_000_000
Pairs = list[tuple[float, float]]


class Repeated:
    """Releases of noise that keep (``rate``, ``part``) together."""

    def __init__(self, rate: float, part: float, count: int) -> None:
        self.rate, self.part, self.count = rate, part * (1 + _SAFE), count

    def pairs(self, apart: float = 0.0) -> Pairs:
        """What each release keeps where its two laws are ``apart`` at least in total variation:
        ε and δ, rounded up; nothing where no noise is that far apart."""
        places = self._places
        if apart and self._spent(np.zeros(1), np.zeros(1), apart)[0] > self.part:
            return []
        most = self._largest(places, apart)
        # with an event of a smaller probability no more is allowed than at the place above
        low = places[:-1]
        # an event that is likelier and its mirror image have nothing in common
        p = np.minimum(most[1:], 1 - low)
        # nor more, as tests have a concave curve, than on the line from 0 through the place below
        share = p * low / np.maximum(most[:-1], _TINY)
        q = np.maximum(low, np.minimum(places[1:], share))
        ends = np.minimum(most[:-1], p)
        rates = sorted(
            {*(self.rate / self.count * s for s in _SLOPES if s <= self.count), self.rate}
        )
        slopes = np.exp(rates)[:, None]
        above = np.maximum(p - slopes * q, ends - slopes * low).max(axis=1) * (1 + _SAFE)
        found = zip(rates, above.tolist(), strict=True)
        return [(r, min(1.0, part)) for r, part in found if part > 0]

    @cached_property
    def farthest(self) -> float:
        """At least the total variation of any noise that is allowed."""
        return bisected(
            lambda h: bool(self._spent(np.zeros(1), np.zeros(1), h)[0] > self.part), 0.0, 1.0, 40
        )[1]

    @property
    def _places(self) -> Floats:
        few = self.count <= MOST_WITH_MIRROR
        wide = np.linspace(0.05, 0.5, 300 if few else 800)[1:]
        return np.concatenate([[0.0], np.geomspace(1e-9, 0.05, 600 if few else 3000), wide])

    def _largest(self, q: Floats, apart: float) -> Floats:
        """The largest probability under one law of an event of probability q under the other."""
        if self.count > MOST_WITH_MIRROR:
            return self._counted(q)
        low, high = np.zeros_like(q), np.ones_like(q)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self._spent(q, middle, apart) <= self.part
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return high

    def _counted(self, q: Floats) -> Floats:
        """By how many releases have the event alone: P(B(k, p) >= t) <= e^ε P(B(k, q) >= t) + δ."""
        most, k = np.ones_like(q), self.count
        for t in range(1, k + 1):
            chance = np.minimum(1, math.exp(self.rate) * betainc(t, k - t + 1, q) + self.part)
            most = np.minimum(most, betaincinv(t, k - t + 1, chance))
        return most

    @cached_property
    def _outcomes(self) -> dict[int, tuple[Floats, Floats]]:
        """How often each of three or four cells may occur, and in how many ways."""
        found = {}
        for cells in (3, 4):
            if cells == 4 and self.count > MOST_WITH_DISTANCE:
                continue
            ways = itertools.product(range(self.count + 1), repeat=cells - 1)
            some = np.array([way for way in ways if sum(way) <= self.count], dtype=np.float64)
            every = np.column_stack([some, self.count - some.sum(axis=1)])
            found[cells] = every, gammaln(self.count + 1) - gammaln(every + 1).sum(axis=1)
        return found

    def _spent(self, q: Floats, p: Floats, apart: float) -> Floats:
        """At most δ(ε) of all releases, of which one has an event with the probabilities p and q,
        its mirror image with q and p, and a total variation of ``apart`` at least."""
        p = np.minimum(p, 1 - q)
        if not apart:
            p, q = np.where(p > q, p, 0.0), np.where(p > q, q, 0.0)
            rest = 1 - p - q
            return self._excess([p, rest, q], [q, rest, p])
        far, near = (1 + apart) / 2, (1 - apart) / 2
        # below the straight line to what is known it tells nothing, above the distance all
        known = (p - q >= apart) & (q <= near)
        useless = ((p * near < far * q) | (q >= near)) & ~known
        p, q = np.where(useless, 0.0, p), np.where(useless, 0.0, q)
        half = (1 - p - q) / 2
        more, less = np.where(known, half, far - p), np.where(known, half, near - q)
        return self._excess([p, more, less, q], [q, less, more, p])

    def _excess(self, first: list[Floats], second: list[Floats]) -> Floats:
        """Σ max(0, P - e^ε Q) over all outcomes of the releases."""
        every, ways = self._outcomes[len(first)]
        one, other = (np.log(np.maximum(np.array(law), _TINY)) for law in (first, second))
        out = np.empty(one.shape[1])
        step = max(1, _STEP // len(every))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            p = every @ one[:, part] + ways[:, None]
            lost = every @ (other - one)[:, part] + self.rate
            # where the second law has more nothing is lost
            out[part] = (np.exp(p) * -np.expm1(np.minimum(lost, 0))).sum(axis=0)
        return out
