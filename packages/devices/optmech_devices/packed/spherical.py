"""A law of reports around a position of the earth, alike wherever that is, and what it keeps.

The density of a report is a step function of its great-circle distance from the position, in rings
of whole probabilities over 2^64, and one whole probability for the whole earth alike.
docs/theory/files.md, "The whole earth in one file", has the proofs of what is enclosed here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech.exact.exponentials import ball_of
from optmech.exact.rounding import above
from optmech.spaces.domain import EARTH_RADIUS_KM

RADIUS = EARTH_RADIUS_KM
TOTAL = 1 << 64
LEAST, MOST = 0.01, 10.0
"""Rates per km that there are laws for."""
RING = 0.02
"""Width of a ring beside 1/ε."""
FARTHEST_KM = 5000.0
MOST_RINGS = 2**15
MOST_BANDS = 2**22
LEAST_BANDS = 64
_SPREAD = 1e-6
"""Probability of a report that says nothing of the position."""
_STEP = 0.005
"""The density of the last ring beside that of the whole earth."""
_BITS = 128
_QUANTILE = 0.95
ROUND = 0.94
"""No point of a cell is further from its centre, in heights of its band."""
_FULL = 0.78
"""Area of a cell, at least, in squares of that height."""


@record
class Rings(ReadOnly):
    """Rings around a position: ring i reaches from height u_i to u_{i+1}, with u = 1 - cos of the
    angle and u_0 = 0, and its reports have probability (S_{i+1} - S_i) / 2^64, with S_0 = 0; the
    rest is that of the whole earth."""

    heights: Floats
    sums: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raises ProblemError where these are no rings."""
        ends, sums = self.heights, (0, *self.sums)
        proper = (
            1 <= len(ends) == len(self.sums) <= MOST_RINGS
            and bool(np.isfinite(ends).all())
            and bool((np.diff(ends, prepend=0.0) > 0).all())
            and all(a < b for a, b in pairwise(sums))
            and sums[-1] < TOTAL
        )
        if not proper or _radius(float(ends[-1])) > FARTHEST_KM:
            raise ProblemError("are no rings", where="heights")

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The sums as an array."""
        return np.array(self.sums, dtype=np.uint64)

    @property
    def content(self) -> bytes:
        """The sums as they are in a file."""
        return self.words.astype("<u8").tobytes()

    @cached_property
    def densities(self) -> tuple[Fraction, ...]:
        """Densities of the rings and of what is beyond, over that of 2^-64 on a cap of height 1:
        exactly."""
        rest = Fraction(TOTAL - self.sums[-1], 2)
        edges = [Fraction(0), *map(Fraction, self.heights.tolist())]
        sums = (0, *self.sums)
        rings = [
            Fraction(sums[k + 1] - sums[k]) / (edges[k + 1] - edges[k]) + rest
            for k in range(len(self.sums))
        ]
        return (*rings, rest)

    def lag(self, rate: float) -> float:
        """The least w in km, rounded up, such that densities at distances r and r' have a log
        ratio of at most rate · (|r - r'| + 2 w)."""
        with flint.ctx.workprec(_BITS):
            speed = flint.arb(rate)
            ends = [_reach(flint.arb(height)) for height in (0.0, *self.heights.tolist())]
            logs = [ball_of(density).log() for density in self.densities]
            worst, high, low = flint.arb(0), flint.arb("-inf"), flint.arb("inf")
            # what is beyond the last ring has no end
            for log, start, end in zip_longest(logs, ends, ends[1:]):
                inner = speed * start
                worst = worst.max((high - (log + inner)).max(log - inner - low))
                if end is not None:
                    high, low = high.max(log + speed * end), low.min(log - speed * end)
            return above(worst / (2 * speed))

    def snap(self, rate: float, bands: int) -> float:
        """How far, in km and rounded up, positions d apart may be told apart beyond d: reports that
        are cells of ``bands`` bands of latitude, drawn for the centres of cells, have log ratios of
        at most rate · (d + 2 snap)."""
        lag = self.lag(rate)
        with flint.ctx.workprec(_BITS):
            own, speed = flint.arb(RADIUS), flint.arb(rate)
            angle = flint.arb.pi() / bands
            height = angle * own
            width = _reach(flint.arb(float(np.diff(self.heights, prepend=0.0).max())))
            # what whole numbers and floats move a report by
            moved = flint.arb(float(_radius(float(self.heights[-1])))) / 2**37 + width / 2**23
            moved += own / 2**44 + own / 2**46 / angle.sin()
            share = moved / height
            lost = (8 * share + flint.arb.pi() * share * share) / flint.arb(_FULL)
            grown = speed * (2 * ROUND * height + 2 * moved + 2 * lag)
            edge = (1 + lost / (1 - lost) * grown.exp()).log()
            alike = (
                flint.arb(1) / 2**46 / (flint.arb(0.49) * angle * angle) + flint.arb(bands) / 2**38
            )
            if not (share < 0.01 and alike < 0.2):
                raise ProblemError("are too many for float64", where="bands")
            round_ = flint.arb(ROUND) * height + moved
            return above(round_ + lag + (edge + 2 * alike) / (2 * speed))

    def quantile(self, share: float = _QUANTILE) -> float:
        """The distance in km, rounded up to a ring's end, within which a report is with this
        probability; half the earth's circumference where only the whole earth is enough."""
        aim = math.ceil(Fraction(share) * TOTAL)
        for height, total in zip(self.heights.tolist(), self.sums, strict=True):
            if total >= aim:
                return _radius(height)
        return math.pi * RADIUS

    def mean(self) -> float:
        """The mean distance in km, at most: every report at the far end of its ring."""
        ends = 2 * RADIUS * np.arcsin(np.sqrt(self.heights / 2))
        shares = np.diff(np.array(self.sums, dtype=np.float64), prepend=0.0) / TOTAL
        rest = (TOTAL - self.sums[-1]) / TOTAL
        return float(shares @ ends + rest * math.pi / 2 * RADIUS) * (1 + 1e-12)


def made(rate: float) -> Rings:
    """Rings of a density that falls like e^(-rate · distance), as far as the probability that says
    nothing is reached. Raises ProblemError for rates that there are no laws for."""
    if not LEAST * (1 - 1e-12) <= rate <= MOST:
        raise ProblemError(
            f"{rate:g} per km is out of range",
            where="epsilon",
            remedy=f"Give {LEAST:g} to {MOST:g} per km",
        )
    # so far that the last ring hardly stands out from what is beyond
    far = math.log(2 * (rate * RADIUS) ** 2 / _SPREAD / _STEP) / rate
    count = math.ceil(far * rate / RING)
    angles = np.arange(1, count + 1) * (RING / rate / RADIUS)
    heights = 2 * np.sin(angles / 2) ** 2
    widths = np.diff(heights, prepend=0.0)
    masses = np.exp(-rate * RADIUS * (angles - angles[0] / 2)) * widths
    masses *= (1 - _SPREAD) / masses.sum()
    sums, total = [], 0
    for mass in masses.tolist():
        total += round(mass * 2.0**64)
        sums.append(total)
    return Rings(heights, tuple(sums))


def least_mean(rate: float) -> float:
    """The mean distance in km of the density e^(-rate · distance) on the earth: the least of all
    laws of the distance alone that keep the rate (docs/theory/files.md)."""
    k = rate * RADIUS
    tail = math.exp(-k * math.pi)
    return RADIUS * (2 * k / (1 + k * k) + math.pi * tail / (1 + tail))


def _radius(height: float) -> float:
    return 2 * RADIUS * math.asin(math.sqrt(min(height, 2.0) / 2))


def _reach(height: Any) -> Any:
    """The distance of a height."""
    return 2 * flint.arb(RADIUS) * (height / 2).sqrt().asin()
