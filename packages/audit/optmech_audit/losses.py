"""Losses of noise."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

from optmech_audit.document import fields, fractions, keys, one_of, whole
from optmech_audit.numbers import ONE, ZERO, need, paired

Knots = list[tuple[Fraction, Fraction]]
ROUNDED = 1 << 200  # what a convex loss is on a lattice is rounded to, outwards


class NoiseLoss(NamedTuple):
    """c(0), ..., c(m), and c(m) + slope j + curvature j² for k = m + j: of a function at most that,
    and at least the same with the two numbers of ``least``."""

    values: list[Fraction]
    slope: Fraction
    curvature: Fraction
    least: tuple[Fraction, Fraction] | None = None

    @property
    def below(self) -> NoiseLoss:
        return self if self.least is None else NoiseLoss(self.values, *self.least)

    @property
    def words(self) -> list[str]:
        """What the file says of a function; nothing of losses with a name."""
        ends = [
            f"{float(self.values[-1]):.9g} + {float(a):.9g} j + {float(b):.9g} j²"
            for a, b in ([self.least, (self.slope, self.curvature)] if self.least else [])
        ]
        return [f"a function, beyond {self.last} between {' and '.join(ends)}"] * bool(ends)

    @property
    def last(self) -> int:
        return len(self.values) - 1

    def at(self, k: int) -> Fraction:
        j = abs(k) - self.last
        return self.values[abs(k)] if j <= 0 else self.polynomial(j)[0]

    def polynomial(self, j: Fraction | int) -> tuple[Fraction, Fraction, Fraction]:
        """(a, b, g): c(m + j + t) = a + b t + g t²."""
        rise = self.slope + self.curvature * j
        return self.values[-1] + rise * j, rise + self.curvature * j, self.curvature


def read_noise_loss(plain: object) -> NoiseLoss:
    name = fields(plain).get("name")
    if name in ("absolute", "square"):
        keys(plain, "name")
        return NoiseLoss([ZERO], Fraction(name == "absolute"), Fraction(name == "square"))
    if name == "threshold":
        return step_loss(whole(keys(plain, "name width")["width"], 9999))
    if name == "function":
        body = keys(plain, "name values most least")
        values = read_values(body["values"], 1)
        most, least = fractions(body["most"], 2), fractions(body["least"], 2)
        need(all(0 <= a <= b < 2**60 for a, b in paired(least, most)), "it falls")
        return NoiseLoss(values, most[0], most[1], (least[0], least[1]))
    one_of(name, ("table",), "the loss")
    values = read_values(keys(plain, "name values")["values"], 2)
    need(values[-1] >= values[-2], "the loss falls at its end")
    return NoiseLoss(values, values[-1] - values[-2], ZERO)


def step_loss(width: int) -> NoiseLoss:
    """0 up to a width, and 1 beyond."""
    return NoiseLoss([ZERO] * (width + 1) + [ONE], ZERO, ZERO)


def read_values(plain: object, least: int) -> list[Fraction]:
    values = fractions(plain, least=-math.inf)
    need(least <= len(values) <= 10_000, "the loss has no values, or too many")
    need(min(values) >= 0 and max(values) < 2**60, "a loss is out of range")
    return values


class Polyline:
    """Straight from corner to corner, and y + slope j + bend j² beyond the last."""

    def __init__(self, points: Knots, slope: Fraction, bend: Fraction) -> None:
        self.points, self.slopes, self.bend = points, [*slopes_of(points), slope], bend
        parts = [(b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)]
        self.parts = list(accumulate(parts, initial=ZERO))

    def piece(self, x: Fraction) -> tuple[int, Fraction, Fraction]:
        """The last corner up to x, how far x is beyond it, and the bend there."""
        k = bisect_right(self.points, x, key=itemgetter(0)) - 1
        return k, x - self.points[k][0], self.bend if k == len(self.points) - 1 else ZERO

    def at(self, x: Fraction) -> Fraction:
        k, j, bend = self.piece(x)
        return self.points[k][1] + (self.slopes[k] + bend * j) * j

    def area(self, x: Fraction) -> Fraction:
        """The integral from 0 to x."""
        k, j, bend = self.piece(x)
        return self.parts[k] + (self.points[k][1] + (self.slopes[k] / 2 + bend * j / 3) * j) * j


def slopes_of(points: Knots) -> list[Fraction]:
    return [(d - b) / (c - a) for (a, b), (c, d) in pairwise(points)]


def beneath(points: Knots, slopes: list[Fraction]) -> Knots:
    """The higher of the chords before and after, drawn on; of the first piece that after it, and
    from the last point but one on that before."""
    x, y = points[1]
    found = [(ZERO, y - x * slopes[1]), (x, y)]
    for k in range(1, len(slopes) - 1):
        (a, low), (b, high) = points[k], points[k + 1]
        before, after = slopes[k - 1], slopes[k + 1]
        if after > before:
            j = (after * (b - a) - (high - low)) / (after - before)
            if 0 < j < b - a:
                found.append((a + j, low + before * j))
        found.append((b, high))
    return found
