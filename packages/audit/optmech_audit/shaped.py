"""Noise of any shape, for several (ε, δ) at once (theory, "Noise of any shape")."""

from __future__ import annotations

import itertools
from fractions import Fraction

from optmech_audit.designs import Verdict
from optmech_audit.document import Body, fields, integer, keys, listing, members, whole, wholes
from optmech_audit.losses import NoiseLoss, read_noise_loss
from optmech_audit.numbers import ONE, ZERO, Real, need
from optmech_audit.pairs import CellNoise

PLACES = 1_000_000_000


class ShapedNoise(CellNoise):
    """A law on finitely many whole numbers from ``low`` on, or cells of the real line: for every
    pair and every shift Σ max(0, z(k) - e^ε z(k + s)) <= δ."""

    def __init__(self, body: Body) -> None:
        self.real = "cells" in body
        own = "cells" if self.real else "support"
        keys(body, f"digest format curve sensitivity loss law multipliers claims seconds {own}")
        rows = [listing(row) for row in listing(body["curve"])]
        need(0 < len(rows) <= 64 and all(len(row) == 2 for row in rows), "no pairs")
        self.pairs = [(Real.read(rate), Real.read(part)) for rate, part in rows]
        rates = [rate.nearest for rate, _ in self.pairs]
        need(all(a < b for a, b in itertools.pairwise(rates)), "ε do not grow")
        need(rates[-1] <= 64, "ε is too large")
        for _, part in self.pairs:
            low, high = part.bounds()
            need(low > 0 and high <= 1, "a δ is not from above 0 to 1")
        self.support: tuple[int | None, int | None] = (None, None)
        self.unit, self.charge = ONE, ZERO
        if self.real:
            self.read_scale(body)
            self.sides = (self.loss, self.loss)
            self.lower = (self.below, self.below)
        else:
            self.read_steps(body)
            start, end = listing(body["support"])
            self.support = (ending(start), ending(end))
            self.sides = self.read_sides(body["loss"])
            self.lower = (self.sides[0].below, self.sides[1].below)
        digits, begin, masses = members(body["law"], "bits low masses")
        self.masses = self.read_masses(digits, masses, 200_000, "the law is empty, or too long")
        first = ending(begin)
        need(first is not None, "the law begins nowhere")
        self.first = first or 0
        terms = (len(self.masses) + self.sensitivity) * self.sensitivity * len(self.pairs)
        need(terms <= 4_000_000, "too many places for the sensitivity")
        last = self.first + len(self.masses) - 1
        low_end, high_end = self.support
        need(low_end is None or self.first >= low_end, "noise below the range")
        need(high_end is None or last <= high_end, "noise above the range")
        even = self.first == -last and self.masses == self.masses[::-1]
        need(even or not self.real, "real noise that is not even")
        self.shifts = list(range(1, self.sensitivity + 1))
        self.shifts += [] if even else [-s for s in self.shifts]
        self.read_claims(body)

    @staticmethod
    def read_sides(plain: object) -> tuple[NoiseLoss, NoiseLoss]:
        """The loss below 0, and above."""
        if "name" in fields(plain):
            both = read_noise_loss(plain)
            return both, both
        below, above = (read_noise_loss(side) for side in members(plain, "below above"))
        need(below != above and below.at(0) == above.at(0), "sides that do not meet, or are one")
        return below, above

    def check(self) -> Verdict:
        listed = []
        for rate, part in self.pairs:
            power = rate.enclosed(ONE, 192).low
            worst = max(self.taken(s, power) for s in self.shifts)
            need(worst <= part.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
            listed.append(f"({rate.text}, {part.text})")
        words = list(dict.fromkeys([*self.sides[0].words, *self.sides[1].words]))
        place = "cells of the real line" if self.real else "whole numbers"
        return [
            f"probabilities of {len(self.masses)} {place} from {self.first} on, none elsewhere, in "
            f"whole numbers over 2^{self.bits}",
            *words,
            f"(ε, δ) = {', '.join(listed)} at every shift up to {self.span}",
            self.judged(self.cost(), self.proved(), ", within the same range,"),
        ], "seconds" + ", that the loss is this function" * bool(words)

    def taken(self, s: int, power: Fraction) -> Fraction:
        a, b = power.as_integer_ratio()
        z, total = self.masses, 0
        for i, v in enumerate(z):
            there = z[i + s] if 0 <= i + s < len(z) else 0
            total += max(0, b * v - a * there)
        return Fraction(total, b << self.bits)

    def cost(self) -> Fraction:
        """Σ c(k) z(k)."""
        total = ZERO
        for k, v in enumerate(self.masses, self.first):
            total += self.sides[k >= 0].at(k) * v
        return (self.own if self.real else ONE) * total / (1 << self.bits)

    def proved(self) -> Fraction:
        """min C(k) - Σ δ λ over the range, C(k) = c(k) + Σ y(k) - e^ε y(k - s); 0 without."""
        if self.multipliers is None:
            return ZERO
        digits, even, rows = members(self.multipliers, "bits even parts")
        need(even is True or even is False, "even is neither true nor false")
        both_open = self.support == (None, None)
        need(not even or (self.sides[0] == self.sides[1] and both_open), "nothing is even here")
        unit = 1 << whole(digits, 4097)
        parts = [Multiplier(row, len(self.pairs), self.sensitivity) for row in listing(rows)]
        need(len({(p.bound, p.shift) for p in parts}) == len(parts), "twice the same")
        need(not even or all(p.shift > 0 for p in parts), "a shift that is there already")
        count = sum(len(p.inner) for p in parts)
        need(count <= 4_000_000, "too many multipliers")
        if even:
            parts += [p.mirror() for p in parts]
        far = max(self.lower[0].last, self.lower[1].last)
        low = min([-far, *(p.first for p in parts)]) - self.sensitivity - 1
        high = max([far, *(p.last for p in parts)]) + self.sensitivity + 1
        # farther out only the loss changes, and it grows
        start, end = self.support
        if start is not None:
            low, high = max(low, start), max(high, start)
        if end is not None:
            low, high = min(low, end), min(high, end)
        need((high - low) * max(1, len(parts)) <= 40_000_000, "too many places")
        highs = [rate.enclosed(ONE, 192).high for rate, _ in self.pairs]
        least = None
        for k in range(low, high + 1):
            value = self.lower[k >= 0].at(k) * unit
            for p in parts:
                value += p.at(k) - highs[p.bound] * p.at(k - p.shift)
            least = value if least is None else min(least, value)
        need(least is not None, "no places")
        paid = sum((self.pairs[p.bound][1].bounds().high * p.limit for p in parts), ZERO)
        found = ((least or ZERO) - paid) / unit
        return max(ZERO, self.unit * (found - self.charge))


class Multiplier:
    """y of a pair and a shift: one by one from ``first`` on, and ``tail`` beyond on its side."""

    def __init__(self, plain: object, pairs: int, most: int) -> None:
        bound, shift, first, inner, tail, limit = members(
            plain, "bound shift first inner tail limit"
        )
        self.bound, self.inner = whole(bound, pairs), wholes(inner)
        s, at = ending(shift), ending(first)
        need(s is not None and at is not None and 0 < abs(s) <= most, "a bad shift")
        self.shift, self.first = s or 0, at or 0
        self.tail, self.limit = integer(tail, 0), integer(limit, 0)
        need(len(self.inner) > 0, "no multipliers")
        need(max(*self.inner, self.tail) <= self.limit, "a multiplier is too large")

    @property
    def last(self) -> int:
        return self.first + len(self.inner) - 1

    def at(self, k: int) -> int:
        if self.first <= k <= self.last:
            return self.inner[k - self.first]
        outside = k > self.last if self.shift > 0 else k < self.first
        return self.tail if outside else 0

    def mirror(self) -> Multiplier:
        other = object.__new__(Multiplier)
        vars(other).update(vars(self), shift=-self.shift, first=-self.last)
        other.inner = self.inner[::-1]
        return other


def ending(plain: object) -> int | None:
    """A whole number, below 0 too, or none."""
    if plain is None:
        return None
    need(type(plain) is int, "is no whole number")
    assert isinstance(plain, int)
    need(abs(plain) <= PLACES, "is too far out")
    return plain
