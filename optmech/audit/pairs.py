"""Noise on pairs of whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

from optmech.audit.designs import Verdict
from optmech.audit.document import Body, integer, keys, listing, one_of, whole
from optmech.audit.losses import read_noise_loss, wholes
from optmech.audit.noise import SLOWEST, Noise
from optmech.audit.numbers import ONE, ZERO, Real, ceiling, need, real


class PlanarNoise(Noise):
    """Noise on pairs of whole numbers with the symmetries of the square: core / 2^bits up to a
    radius, shells τ (1 - r)² r^j / 2^bits beyond. Radii are l1 norms for changes in l1, else l∞."""

    numbers = "pairs of whole numbers"

    def __init__(self, body: Body) -> None:
        entries = "epsilon delta sensitivity norm loss law multipliers claims seconds"
        keys(body, f"digest format {entries}")
        self.epsilon, self.delta = Real.read(body["epsilon"]), Real.read(body["delta"])
        need(self.epsilon.nearest <= 64, "ε is too large")
        need(self.delta.bounds().high <= 1, "δ is above 1")
        self.sensitivity = whole(body["sensitivity"], 41)
        need(self.sensitivity > 0, "the sensitivity is 0")
        self.norm = one_of(body["norm"], ("l1", "l2", "linf"), "the norm")
        need(isinstance(body["loss"], dict), "no loss")
        loss = dict(cast("Body", body["loss"]))
        self.measured = one_of(loss.pop("norm", None), ("l1", "l2", "linf"), "the loss")
        self.kind = loss.get("name")
        need(self.measured != "l2" or self.kind not in ("table", "function"), "a bad loss")
        self.loss = read_noise_loss(loss)
        law = keys(body["law"], "width bits core tails ratio ratio_bits")
        self.n, self.bits = whole(law["width"], 301), whole(law["bits"], 4097)
        core, self.tails = wholes(law["core"]), wholes(law["tails"])
        exponent = whole(law["ratio_bits"], 4097)
        self.ratio = Fraction(integer(law["ratio"], 0), 1 << exponent)
        need(self.bits > 0 and self.ratio <= SLOWEST, "no law")
        need(bool(self.tails) == (self.ratio > 0) == any(self.tails), "tails without their ratio")
        self.period, self.sides = len(self.tails), 4 if self.norm == "l1" else 8
        need(self.period <= self.sensitivity, "too many tails")
        places = self.quarter(self.n)
        need(len(places) == len(core) <= 40_000, "another number of places")
        self.core = dict(zip(places, core, strict=True))
        total = sum((Fraction(v * self.images(k)) for k, v in self.core.items()), ZERO)
        for c, v in enumerate(self.tails, 1):
            total += self.sides * v * ((self.n + c) * (1 - self.ratio) + self.period * self.ratio)
        need(total == 1 << self.bits, "the probabilities do not sum to one")
        d = self.sensitivity
        self.shifts = [
            (x, y) for x in range(1, d + 1) for y in range(x + 1)
            if (x + y <= d, x * x + y * y <= d * d, True)[("l1", "l2", "linf").index(self.norm)]
        ]  # fmt: skip
        size = (2 * (self.n + d) + 1) ** 2
        need(size * len(self.shifts) <= 6_000_000, "too many places")
        blocks = ceiling(d, self.period) + 2 if self.period else 0
        need(size * (self.bits + blocks * exponent) <= 4 * 10**8, "too many digits")
        self.multipliers = body["multipliers"]
        self.claims = keys(body["claims"], "status loss lower_bound")
        real(body["seconds"], 0)

    def quarter(self, n: int) -> list[tuple[int, int]]:
        """x >= y >= 0 of radius up to n."""
        if self.norm == "l1":
            return [(x, y) for x in range(n + 1) for y in range(min(x, n - x) + 1)]
        return [(x, y) for x in range(n + 1) for y in range(x + 1)]

    @staticmethod
    def folded(x: int, y: int) -> tuple[int, int]:
        return max(abs(x), abs(y)), min(abs(x), abs(y))

    @staticmethod
    def images(k: tuple[int, int]) -> int:
        return 1 if k == (0, 0) else 4 if k[1] == 0 or k[0] == k[1] else 8

    def radius(self, x: int, y: int) -> int:
        return abs(x) + abs(y) if self.norm == "l1" else max(abs(x), abs(y))

    def shell(self, m: int) -> Fraction:
        """z at radius m > n."""
        if not self.period:
            return ZERO
        block, c = divmod(m - self.n - 1, self.period)
        return Fraction(self.tails[c], 1 << self.bits) * (1 - self.ratio) ** 2 * self.ratio**block

    def cost(self, k: tuple[int, int], up: bool) -> Fraction:
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
            return Fraction(square > (len(self.loss.values) - 2) ** 2)
        low = math.isqrt(square << 160)
        return Fraction(low + (up and low * low != square << 160), 1 << 80)

    def check(self) -> Verdict:
        power = self.epsilon.exp(ONE, 192)
        worst = self.largest(power[0])
        need(worst <= self.delta.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
        return self.verdict(
            self.lower_bound(power[1]),
            f"(ε, δ) = ({self.epsilon.text}, {self.delta.text}) at every shift up to "
            f"{self.sensitivity} in {self.norm}: δ is {float(worst):.9g}",
        )

    def largest(self, power: Fraction) -> Fraction:
        """The largest Σ_k max(0, z(k) - power z(k + v)): terms are zero where both lie beyond."""
        n, d = self.n, self.sensitivity
        for m in range(n + 1, n + self.period + 1):
            for t in range(1, d + 1):
                pair = self.shell(m), self.shell(m + t)
                need(max(pair) <= power * min(pair), "the tails do not keep ε")
        found = {k: Fraction(v, 1 << self.bits) for k, v in self.core.items()}
        found |= {k: self.shell(self.radius(*k)) for k in self.quarter(n + d) if k not in found}
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
        r, p, last = self.ratio, self.period, len(self.loss.values) - 1
        sums = (1 / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3,
                r * (1 + 4 * r + r * r) / (1 - r) ** 4)  # fmt: skip
        for c, v in enumerate(self.tails, 1):
            start = self.n + c
            half = (self.norm, self.measured) == ("l1", "linf")
            need((start + 1) // 2 > last if half else start > last, "the window is too short")
            grown = ONE
            if self.norm != "l1":
                grown = {"l1": Fraction(2), "l2": Fraction(3, 2), "linf": ONE}[self.measured]
            at = grown * start - last
            x = self.loss.values[-1] + self.loss.slope * at + self.loss.curvature * at * at
            y = grown * (self.loss.slope + 2 * self.loss.curvature * at)
            w = grown * grown * self.loss.curvature
            powers = (x * start, x + y * start, y + w * start, w)
            found = sum(
                (q * p**i * s for i, (q, s) in enumerate(zip(powers, sums, strict=True))), ZERO
            )
            total += self.sides * v * (1 - r) ** 2 * found
        return total / (1 << self.bits)

    def lower_bound(self, power: Fraction | None) -> Fraction:
        """min C - δ Σ λ, C the mean over images of k of c(k) + Σ_v y_v(k) - e^ε y_v(k - v)."""
        if self.multipliers is None:
            return ZERO
        assert power is not None
        body = keys(self.multipliers, "bits width shifts")
        unit, n = 1 << whole(body["bits"], 4097), whole(body["width"], 301)
        parts = [keys(part, "shift values limit") for part in listing(body["shifts"])]
        need((2 * (n + self.sensitivity) + 1) ** 2 * len(parts) <= 6_000_000, "too many places")
        shifts = []
        for part in parts:
            first, second = listing(part["shift"], 2)
            shifts.append((whole(first, 41), whole(second, 41)))
        need(len(set(shifts)) == len(shifts) > 0 and set(shifts) <= set(self.shifts), "bad shifts")
        own: dict[tuple[int, int], int] = {}
        others: dict[tuple[int, int], int] = {}
        limits = 0
        for v, part in zip(shifts, parts, strict=True):
            values, limit = wholes(part["values"]), integer(part["limit"], 0)
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
                    own[k] = own.get(k, 0) + price
                    others[other] = others.get(other, 0) + price
            need(count == len(values), "too many multipliers")
        reach = n + self.sensitivity
        least = self.nearest_beyond(reach + 1)
        for k in self.quarter(reach):
            gain = own.get(k, 0) - power * others.get(k, 0)
            least = min(least, self.cost(k, False) + Fraction(gain) / (unit * self.images(k)))
        cost = self.delta.bounds().high * limits / unit
        return max(ZERO, least - (ZERO if self.delta.zero else cost))

    def nearest_beyond(self, m: int) -> Fraction:
        """At most the loss of every place of radius m or more."""
        if self.measured == "l2":
            return self.rooted(m * m if self.norm != "l1" else (m * m + 1) // 2, False)
        start = (m + 1) // 2 if (self.norm, self.measured) == ("l1", "linf") else m
        values = self.loss.values
        return self.loss.below.at(start) if start >= len(values) - 1 else min(values[start:])
