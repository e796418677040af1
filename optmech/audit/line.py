"""Noise on the real line: even within cells (theory, "Noise on the real line")."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise

from optmech.audit.document import Body, keys, listing, one_of, text, whole
from optmech.audit.losses import NoiseLoss
from optmech.audit.noise import Noise, PowerNoise
from optmech.audit.numbers import ONE, ZERO, need, real

HALF = Fraction(1, 2)


class Cells(Noise):
    """A law on cells of width h around the multiples of h; all else is as on whole numbers, with
    the sensitivity counted in cells."""

    numbers = "cells of the real line"

    def read_scale(self, body: Body) -> None:
        width = fraction(body["sensitivity"])
        self.sensitivity = whole(body["cells"], 50_001)
        need(width > 0 and self.sensitivity > 0, "the sensitivity is 0")
        self.span, self.width = str(width), width
        self.h = width / self.sensitivity
        self.unit, self.charge, self.degree = ONE, ZERO, 0
        plain = body["loss"]
        name = plain.get("name") if isinstance(plain, dict) else None
        if name == "absolute":
            keys(plain, "name")
            # the mean over the cell at 0 is a quarter, others have their middle's
            self.unit, self.degree = self.h, 1
            self.loss = NoiseLoss([Fraction(1, 4), ONE], ONE, ZERO)
            self.below = NoiseLoss([ZERO], ONE, ZERO)
        elif name == "square":
            keys(plain, "name")
            # the mean over a cell is k² + 1/12, and rounding adds a quarter at most
            self.unit, self.degree, self.charge = self.h**2, 2, Fraction(1, 4)
            self.loss = NoiseLoss([Fraction(1, 12)], ZERO, ONE)
            self.below = NoiseLoss([ZERO], ZERO, ONE)
        elif name == "threshold":
            self.threshold(fraction(keys(plain, "name width")["width"]) / self.h)
        else:
            one_of(name, ("corners",), "the loss")
            self.straight(keys(plain, "name corners")["corners"])

    def threshold(self, end: Fraction) -> None:
        """1 beyond ±end: of a cell what lies beyond; below it from the next point on."""
        first = -(-end.numerator // end.denominator)
        need(first < 10_000, "the threshold is too far out")
        shares = [
            sum((max(ZERO, HALF - max(-HALF, end - side * k)) for side in (1, -1)), ZERO)
            for k in range(first + 2)
        ]
        self.loss = NoiseLoss([min(ONE, share) for share in shares], ZERO, ZERO)
        self.below = NoiseLoss([ZERO] * (first + 1) + [ONE], ZERO, ZERO)

    def straight(self, plain: object) -> None:
        """A loss that is straight between corners, of |x|."""
        corners = [(fraction(x), fraction(y)) for x, y in map(listing, listing(plain))]
        need(2 <= len(corners) <= 1000 and corners[0][0] == 0, "no corners")
        need(all(a[0] < b[0] for a, b in pairwise(corners)), "corners are not in order")
        need(corners[-1][1] >= corners[-2][1], "the loss falls at its end")
        ends = [x for x, _ in corners[1:-1]]

        def at(x: Fraction) -> Fraction:
            k = sum(end <= abs(x) for end in ends)
            (a, low), (b, high) = corners[k : k + 2]
            return low + (high - low) / (b - a) * (abs(x) - a)

        def integral(x: Fraction, y: Fraction) -> Fraction:
            """Of at, from x to y >= x >= 0."""
            stops = [x, *(end for end in ends if x < end < y), y]
            return sum(((b - a) * (at(a) + at(b)) / 2 for a, b in pairwise(stops)), ZERO)

        last = -(-(corners[-1][0] / self.h).numerator // (corners[-1][0] / self.h).denominator) + 1
        need(last < 10_000, "the corners are too far out")
        means = [2 * integral(ZERO, self.h / 2) / self.h]
        means += [
            integral((k - HALF) * self.h, (k + HALF) * self.h) / self.h for k in range(1, last + 1)
        ]
        values = [at(k * self.h) for k in range(last + 1)]
        slope = values[-1] - values[-2]
        self.loss = NoiseLoss(means, slope, ZERO)
        self.below = NoiseLoss(values, slope, ZERO)
        for end in ends:
            k = int(end / self.h)
            if k < last:
                part = end / self.h - k
                chord = values[k] * (1 - part) + values[k + 1] * part
                self.charge = max(self.charge, chord - at(end))

    def expected(self) -> Fraction:
        return self.unit * super().expected()

    def scaled(self, found: Fraction) -> Fraction:
        return max(ZERO, self.unit * (found - self.charge))


class RealPowerNoise(Cells, PowerNoise):
    """Real noise of bounded divergences."""

    entries = f"{PowerNoise.entries} cells"


class RealNoise(Cells):
    """Real noise that is (ε, δ)-private."""

    entries = f"{Noise.entries} cells"

    def lower_bound(self, power: Fraction | None) -> Fraction:
        found = self.scaled(super().lower_bound(power))
        claimed = Fraction(real(self.claims["lower_bound"], 0))
        if claimed > found and self.degree and self.delta.zero and power is not None:
            need(self.is_staircase(power, claimed / self.width**self.degree), "nothing proves it")
            return claimed
        return found

    def is_staircase(self, e: Fraction, v: Fraction) -> bool:
        """Whether Q(t) - e Q(t - 1) = v t - t^(d + 1)/(d + 1) has a Q that is >= 0 on [-1, 0] and
        grows beyond."""
        need(e > 1, "without ε there is no staircase")
        f = e - 1
        if self.degree == 1:
            a = 1 / (2 * f)
            b = (2 * a * e - v) / f
            q = [e * (b - a) / f, b, a, ZERO]
        else:
            a = 1 / (3 * f)
            b = 3 * a * e / f
            c = (e * (2 * b - 3 * a) - v) / f
            q = [e * (c - b + a) / f, c, b, a]

        def slope(t: Fraction) -> Fraction:
            return q[1] + 2 * q[2] * t + 3 * q[3] * t * t

        # convex from -1 on, and growing from 0 on
        if min(q[1:]) < 0 or 2 * q[2] < 6 * q[3]:
            return False
        low, high = -ONE, ZERO
        if slope(low) >= 0:
            high = low
        for _ in range(400 if high > low else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        value = q[0] + low * (q[1] + low * (q[2] + low * q[3]))
        return value + min(ZERO, slope(low)) * (high - low) >= 0


def fraction(value: object) -> Fraction:
    """A number >= 0, written as a fraction in lowest terms."""
    words = text(value, "a fraction")
    need(re.fullmatch("[0-9]{1,400}(/[0-9]{1,400})?", words) is not None, "no fraction")
    need("/" not in words or int(words.split("/")[1]) > 0, "no fraction")
    found = Fraction(words)
    need(str(found) == words and found < 2**60, "a fraction is written otherwise")
    return found
