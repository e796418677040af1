"""Noise on pairs of whole numbers, and on the real line (theory, "Noise on the real line")."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import pairwise

from optmech_audit.document import (
    Body,
    fields,
    fraction,
    indices,
    integer,
    keys,
    listing,
    members,
    one_of,
    whole,
    wholes,
)
from optmech_audit.losses import (
    ROUNDED,
    NoiseLoss,
    Polyline,
    beneath,
    read_noise_loss,
    slopes_of,
    step_loss,
)
from optmech_audit.noise import Noise, PowerNoise
from optmech_audit.numbers import ONE, ZERO, bisected, ceiling, need, paired, real

Place = tuple[int, int]


class PlanarNoise(Noise):
    """Noise on pairs of whole numbers with the symmetries of the square: core / 2^bits up to a
    radius, shells τ (1 - r)² r^j / 2^bits beyond. Radii are l1 norms for changes in l1, else l∞."""

    numbers = "pairs of whole numbers"
    entries = f"{Noise.entries} norm"
    others = ""
    dimensions = 2

    def read_law(self, body: Body) -> None:
        self.read_steps(body, 41)
        self.norm = one_of(body["norm"], ("l1", "l2", "linf"), "the norm")
        self.span += f" in {self.norm}"
        need(isinstance(body["loss"], dict), "no loss")
        loss = dict(fields(body["loss"]))
        self.measured = one_of(loss.pop("norm", None), ("l1", "l2", "linf"), "the loss")
        self.kind = loss.get("name")
        need(self.measured != "l2" or self.kind not in ("table", "function"), "a bad loss")
        self.loss = read_noise_loss(loss)
        width, places = self.read_tails(body, "width core")
        self.n, core = whole(width, 301), wholes(places)
        need(self.bits > 0, "no law")
        self.sides = 4 if self.norm == "l1" else 8
        need(self.period <= self.sensitivity, "too many tails")
        quarter = self.quarter(self.n)
        need(len(quarter) == len(core) <= 40_000, "another number of places")
        self.core = dict(paired(quarter, core))
        total = sum((Fraction(v * self.images(k)) for k, v in self.core.items()), ZERO)
        for c, v in enumerate(self.tails, 1):
            total += self.sides * v * self.beyond((self.n + c, 1))
        need(total == 1 << self.bits, "the probabilities do not sum to one")
        d = self.sensitivity
        self.shifts = [
            (x, y) for x in range(1, d + 1) for y in range(x + 1)
            if (x + y <= d, x * x + y * y <= d * d, True)[("l1", "l2", "linf").index(self.norm)]
        ]  # fmt: skip
        size = (2 * (self.n + d) + 1) ** 2
        need(size * len(self.shifts) <= 6_000_000, "too many places")
        blocks = ceiling(d, self.period) + 2 if self.period else 0
        need(size * (self.bits + blocks * self.exponent) <= 4 * 10**8, "too many digits")

    def quarter(self, n: int) -> list[Place]:
        """x >= y >= 0 of radius up to n."""
        every = ((x, y) for x in range(n + 1) for y in range(x + 1))
        return [k for k in every if self.radius(*k) <= n]

    @staticmethod
    def folded(x: int, y: int) -> Place:
        return max(abs(x), abs(y)), min(abs(x), abs(y))

    @staticmethod
    def images(k: Place) -> int:
        return 1 if k == (0, 0) else 4 if k[1] == 0 or k[0] == k[1] else 8

    def radius(self, x: int, y: int) -> int:
        return abs(x) + abs(y) if self.norm == "l1" else max(abs(x), abs(y))

    def cost(self, k: Place, up: bool) -> Fraction:
        """c(k), of roots a bound."""
        x, y = k
        if self.measured != "l2":
            loss = self.loss if up else self.loss.below
            return loss.at(x + y if self.measured == "l1" else x)
        return self.rooted(x * x + y * y, up)

    def rooted(self, square: int, up: bool) -> Fraction:
        if self.kind == "square":
            return Fraction(square)
        if self.kind == "threshold":
            return Fraction(square > (self.loss.last - 1) ** 2)
        low = math.isqrt(square << 160)
        return Fraction(low + (up and low * low != square << 160), 1 << 80)

    def spent(self, power: Fraction) -> Fraction:
        """The largest Σ_k max(0, z(k) - power z(k + v)): terms are zero where both lie beyond."""
        n, d = self.n, self.sensitivity
        for m in range(n + 1, n + self.period + 1):
            for t in range(1, d + 1):
                pair = self.tail(m), self.tail(m + t)
                need(max(pair) <= power * min(pair), "the tails do not keep ε")
        found = {k: Fraction(v, 1 << self.bits) for k, v in self.core.items()}
        found |= {k: self.tail(self.radius(*k)) for k in self.quarter(n + d) if k not in found}
        unit = math.lcm(*(v.denominator for v in found.values()))
        a, b = power.numerator, power.denominator
        near = {k: int(v * unit) * b for k, v in found.items()}
        far = {k: int(v * unit) * a for k, v in found.items()}
        ends = range(-n - d, n + d + 1)
        every = [(x, y) for x in ends for y in ends if self.radius(x, y) <= n + d]
        worst = 0
        for v in self.shifts:
            total = 0
            for x, y in every:
                other = self.folded(x + v[0], y + v[1])
                if other in far:
                    total += max(0, near[self.folded(x, y)] - far[other])
            worst = max(worst, total)
        return Fraction(worst, b * unit)

    def expected(self) -> Fraction:
        """At least Σ c(k) z(k): beyond the window every place costs as much as the norm can be."""
        total = sum((self.cost(k, True) * self.images(k) * v for k, v in self.core.items()), ZERO)
        last = self.loss.last
        for c, v in enumerate(self.tails, 1):
            start = self.n + c
            half = (self.norm, self.measured) == ("l1", "linf")
            need((start + 1) // 2 > last if half else start > last, "the window is too short")
            grown = ONE
            if self.norm != "l1":
                grown = {"l1": Fraction(2), "l2": Fraction(3, 2), "linf": ONE}[self.measured]
            x, rise, bend = self.loss.polynomial(grown * start - last)
            y, w = grown * rise, grown * grown * bend
            total += self.sides * v * self.beyond((x * start, x + y * start, y + w * start, w))
        return total / (1 << self.bits)

    def lower_bound(self, power: Fraction) -> Fraction:
        """min C - δ Σ λ, C the mean over images of k of c(k) + Σ_v y_v(k) - e^ε y_v(k - v)."""
        if self.multipliers is None:
            return ZERO
        bits, width, rows = members(self.multipliers, "bits width shifts")
        unit, n = 1 << whole(bits, 4097), whole(width, 301)
        parts = [members(part, "shift values limit") for part in listing(rows)]
        need((2 * (n + self.sensitivity) + 1) ** 2 * len(parts) <= 6_000_000, "too many places")
        shifts = [tuple(indices(shift, 41, 2)) for shift, _, _ in parts]
        need(len(set(shifts)) == len(shifts) > 0 and set(shifts) <= set(self.shifts), "bad shifts")
        own, others, limits = Counter[Place](), Counter[Place](), 0
        for v, (_, prices, most) in paired(shifts, parts):
            values, limit = wholes(prices), integer(most, 0)
            need(self.delta.zero or max(values, default=0) <= limit, "a multiplier is too large")
            limits += limit
            count = 0
            for k in self.quarter(n):
                around = {(a * p, b * q) for a, b in (k, k[::-1]) for p in (1, -1) for q in (1, -1)}
                moved = [self.folded(x + v[0], y + v[1]) for x, y in around]
                for other in sorted(set(moved)):
                    need(count < len(values), "too few multipliers")
                    price = values[count] * moved.count(other)
                    count += 1
                    own[k] += price
                    others[other] += price
            need(count == len(values), "too many multipliers")
        reach = n + self.sensitivity
        least = self.nearest_beyond(reach + 1)
        for k in self.quarter(reach):
            gain = own[k] - power * others[k]
            least = min(least, self.cost(k, False) + Fraction(gain) / (unit * self.images(k)))
        return max(ZERO, least - self.delta.bounds().high * limits / unit)

    def nearest_beyond(self, m: int) -> Fraction:
        """At most the loss of every place of radius m or more."""
        if self.measured == "l2":
            return self.rooted(m * m if self.norm != "l1" else (m * m + 1) // 2, False)
        start = (m + 1) // 2 if (self.norm, self.measured) == ("l1", "linf") else m
        values = self.loss.values
        return self.loss.below.at(start) if start >= self.loss.last else min(values[start:])


HALF = Fraction(1, 2)


class CellNoise(Noise):
    """A law on cells of width h around the multiples of h; all else is as on whole numbers, with
    the sensitivity counted in cells."""

    numbers = "cells of the real line"

    def read_scale(self, body: Body) -> None:
        width = fraction(body["sensitivity"])
        self.sensitivity = whole(body["cells"], 50_001)
        need(width > 0 and self.sensitivity > 0, "the sensitivity is 0")
        self.span, self.width = str(width), width
        self.grid = whole(body["grid"], 1001) if "grid" in body else self.sensitivity
        need(self.grid > 0, "the lattice has no steps")
        self.costs(body["loss"], width / self.sensitivity)
        self.own = self.unit
        if "grid" in body:
            # the bound is of another lattice
            law = self.loss
            self.costs(body["loss"], width / self.grid)
            self.loss = law

    def costs(self, plain: object, h: Fraction) -> None:
        """The loss within cells of a width, and on the lattice of their middles."""
        self.h = h
        self.unit, self.charge, self.degree = ONE, ZERO, 0
        name = fields(plain).get("name")
        if name in ("absolute", "square"):
            self.below = read_noise_loss(plain)
            # the mean over the cell at 0 is a quarter, others have their middle's
            self.unit, self.degree = h, 1
            self.loss = NoiseLoss([Fraction(1, 4), ONE], ONE, ZERO)
            if name == "square":
                # the mean over a cell is k² + 1/12, and rounding adds a quarter at most
                self.unit, self.degree, self.charge = h**2, 2, Fraction(1, 4)
                self.loss = NoiseLoss([Fraction(1, 12)], ZERO, ONE)
        elif name == "threshold":
            self.threshold(fraction(keys(plain, "name width")["width"]) / self.h)
        else:
            one_of(name, ("corners", "convex"), "the loss")
            self.straight(keys(plain, f"name corners{' most' * (name == 'convex')}"))

    def threshold(self, end: Fraction) -> None:
        """1 beyond ±end: of a cell what lies beyond; below it from the next point on."""
        first = math.ceil(end)
        need(first < 10_000, "the threshold is too far out")
        shares = [
            sum((max(ZERO, HALF - max(-HALF, end - side * k)) for side in (1, -1)), ZERO)
            for k in range(first + 2)
        ]
        self.loss = NoiseLoss([min(ONE, share) for share in shares], ZERO, ZERO)
        self.below = step_loss(first)

    def straight(self, plain: Body) -> None:
        """A loss of |x| that is straight between corners, or convex and known there: below its
        chords, and above the neighbouring ones drawn on."""
        points = [(fraction(x), fraction(y)) for x, y in map(listing, listing(plain["corners"]))]
        need(2 <= len(points) <= 1000 and points[0][0] == 0, "no corners")
        need(all(a[0] < b[0] for a, b in pairwise(points)), "corners are not in order")
        need(points[-1][1] >= points[-2][1], "the loss falls at its end")
        slopes = slopes_of(points)
        slope, bend, low, rise = slopes[-1], ZERO, points, slopes[-1]
        if "most" in plain:
            need(len(points) > 3 and slopes == sorted(slopes), "the loss is not convex")
            slope, bend = map(fraction, listing(plain["most"]))
            need(slope >= slopes[-1] and slopes[-2] >= 0, "the loss goes on otherwise")
            low, rise = beneath(points, slopes), slopes[-2]
        upper, lower = Polyline(points, slope, bend), Polyline(low, rise, ZERO)
        end, h = points[-1][0], self.h
        last = math.ceil(end / h) + 1
        need(last < 10_000, "the corners are too far out")
        edges = [upper.area((k - HALF) * h) for k in range(1, last + 2)]
        means = [(b - a) / h for a, b in pairwise([-edges[0], *edges])]
        values = [lower.at(k * h) for k in range(last + 1)]
        chords = Polyline([(k * h, v) for k, v in enumerate(values)], rise, ZERO)
        # of a cell between points what its chord is above the loss
        above = defaultdict[int, Fraction](Fraction)
        for x, y in low:
            above[int(x / h)] = max(above[int(x / h)], chords.at(x) - y)
        lows = [v - max(above[k - 1], above[k]) for k, v in enumerate(values)]
        self.charge = max(ZERO, -min(lows))
        lows = [v + self.charge for v in lows]
        if "most" in plain:
            lows = [Fraction(math.floor(v * ROUNDED), ROUNDED) for v in lows]
            means = [Fraction(math.ceil(v * ROUNDED), ROUNDED) for v in means]
        self.loss = NoiseLoss(means, (slope + 2 * bend * (last * h - end)) * h, bend * h * h)
        self.below = NoiseLoss(lows, rise * h, ZERO)

    def expected(self) -> Fraction:
        return self.own * super().expected()

    def scaled(self, found: Fraction) -> Fraction:
        return max(ZERO, self.unit * (found - self.charge))


class RealPowerNoise(CellNoise, PowerNoise):
    """Real noise of bounded divergences."""

    entries = f"{PowerNoise.entries} cells"


class RealNoise(CellNoise):
    """Real noise that is (ε, δ)-private."""

    entries = f"{Noise.entries} cells"
    others = "releases grid rounded"

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.rounded = "rounded" in body
        if self.rounded:
            self.numbers = "whole numbers, rounded"
            need(body["rounded"] is True, "rounded is not true")
            whole_span = self.width.denominator == 1 and self.width <= 10**9
            need(whole_span, "the sensitivity is no whole number")
            loss = fields(body["loss"])
            half = loss["name"] == "threshold" and fraction(loss["width"]).denominator == 2
            need(bool(self.degree) or half, "the loss is not known after rounding")

    def expected(self) -> Fraction:
        """Of rounded noise at most: what it costs unrounded, and for every fall J of the density,
        at a distance t outwards, J/8, or J (t/4 + 5/24) of the square."""
        total = super().expected()
        if not (self.rounded and self.degree):
            return total
        h = self.width / self.sensitivity
        a, b = (Fraction(1, 8), ZERO) if self.degree == 1 else (Fraction(5, 24), h / 4)
        rest = 1 - self.ratio
        for k in range(self.n + self.period + 1):
            fall = max(ZERO, self.z(k) - self.z(k + 1)) / h
            each = a + b * (k + Fraction(1, 2))
            if k > self.n:
                # again and again, smaller by the ratio, a period farther out
                each = each / rest + b * self.period * self.ratio / rest**2
            total += 2 * fall * each
        return total

    def lower_bound(self, power: Fraction) -> Fraction:
        """Of whole numbers K: K + U with U even on (-1/2, 1/2) is real noise, and costs more."""
        more = ZERO
        if self.rounded and self.degree == 2:
            more = Fraction(1, 12)
        elif self.rounded and self.degree:
            shifts, part = 2 * self.width, self.delta.bounds().high
            more = min(ONE, (power + shifts * part) / (shifts + power)) / 4
        return max(ZERO, self.real_bound(power, more) - more)

    def real_bound(self, power: Fraction, more: Fraction) -> Fraction:
        found = self.scaled(super().lower_bound(power))
        claimed = Fraction(real(self.claims["lower_bound"], 0)) + more
        if claimed > found and self.degree:
            unit = self.width**self.degree
            if not self.delta.zero:
                return max(found, unit * self.centre(power))
            need(self.is_staircase(power, claimed / unit), "nothing proves it")
            return claimed
        return found

    def centre(self, e: Fraction) -> Fraction:
        """What the centre |x| < a lacks of v = a^d, e ∫ v - |x|^d, is carried to places x beyond,
        up to 1 or to 1 + a - end, which can spare x^d - v; at most what δ costs."""
        d, delta, unit = self.degree, self.delta.bounds().high, 1 << 200

        def spare(a: Fraction, x: Fraction) -> Fraction:
            """∫ t^d - a^d, from a to x."""
            return (x ** (d + 1) - a ** (d + 1)) / (d + 1) - a**d * (x - a)

        def end(a: Fraction) -> Fraction:
            return 2 * (1 + a) ** d / (e * a ** (d - 1))

        def largest(low: int, ends: bool) -> Fraction:
            def fits(k: int) -> bool:
                a = Fraction(k, unit)
                last = 1 + a - end(a) if ends else ONE
                return last >= 1 and e * d * a ** (d + 1) <= (d + 1) * spare(a, last)

            return Fraction(bisected(fits, low, unit // 2), unit)

        a = largest(0, False)
        best = a**d * (1 - delta / ((d + 1) * spare(a, ONE))) if a else ZERO
        if not a or end(a) > a:
            return best
        a = largest(int(a * unit), True)
        few = (8 * a / end(a)).__floor__().bit_length()
        cost = a**d / ((d + 1) * spare(a, 1 - a))
        cost += end(a) * a ** (d - 1) * (Fraction(9, 2) + few * Fraction(7, 20))
        return max(best, a**d - delta * cost)

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
        grain = Fraction(1, 1 << 400)
        low = grain * bisected(lambda k: slope(k * grain) < 0, -(1 << 400), 0)
        value = q[0] + low * (q[1] + low * (q[2] + low * q[3]))
        return value + min(ZERO, slope(low)) * grain >= 0
