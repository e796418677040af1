"""Noise on all whole numbers (theory, "Noise on the integers")."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise, repeat

from optmech_audit.designs import Verdict, agreed_gap
from optmech_audit.document import Body, fraction, integer, keys, listing, members, whole, wholes
from optmech_audit.inequalities import power_bounds
from optmech_audit.losses import read_noise_loss
from optmech_audit.numbers import (
    ONE,
    ZERO,
    Interval,
    Real,
    ceiling,
    exp_bounds,
    log_ratio,
    need,
    paired,
    real,
    rounded_up,
    signed_log,
    up,
)

Sums = tuple[int, list[int], int]  # the first place, masses from there on, what is lost
SLOWEST = 1 - Fraction(1, 1 << 24)  # of ratios of tails: draws take a step for every period


class Claims:
    """What a file says that its noise loses, and that all noise loses at least."""

    proof = "multipliers"  # the entry that proves the second

    def read_claims(self, body: Body) -> None:
        self.multipliers = body[self.proof]
        self.claims = keys(body["claims"], "status loss lower_bound")
        real(body["seconds"], 0)

    def read_masses(self, digits: object, masses: object, most: int, fault: str) -> list[int]:
        """Whole numbers that sum to 2^digits, at most so many."""
        self.bits, found = whole(digits, 4097), wholes(masses)
        need(self.bits > 0 and 0 < len(found) <= most, fault)
        need(sum(found) == 1 << self.bits, "the probabilities do not sum to one")
        return found

    def judged(self, cost: Fraction, least: Fraction, among: str = "") -> str:
        """The claims against what was found, in words."""
        loss = rounded_up(cost)
        claimed = real(self.claims["lower_bound"], 0)
        need(real(self.claims["loss"]) == loss, "the loss is another one")
        need(claimed <= least, "the lower bound is not proved")
        gap = agreed_gap(self.claims["status"], loss, Fraction(claimed))
        return (
            f"expected loss {float(loss):.15g}, and of all noise that is as private{among} "
            f"at least {float(claimed)!r}: a gap of {up(gap)}"
        )


class Noise(Claims):
    """A law z on the integers, symmetric: window[|k|] / 2^bits up to n, and p tails a side beyond,
    each geometric from period to period; what it promises, its loss, and what all noise loses."""

    numbers = "whole numbers"
    entries = "digest format epsilon delta sensitivity loss law multipliers claims seconds"
    others = "releases"
    alike = ""
    dimensions = 1

    def __init__(self, body: Body) -> None:
        keys(body, self.entries, self.others)
        self.epsilon, self.delta = Real.read(body["epsilon"]), Real.read(body["delta"])
        self.releases, self.lattice = 1, 0
        if "releases" in body:
            count, exponent = members(body["releases"], "count exponent")
            self.releases, self.lattice = whole(count, 10_001), whole(exponent, 25)
            need(self.releases > 1, "too few releases")
        # several releases without δ add up to ε
        self.each = self.epsilon
        if self.releases > 1 and self.delta.zero:
            self.each = self.epsilon.scaled(Fraction(1, self.releases))
            self.alike = ", with the same law in every release,"
        need(self.epsilon.nearest <= 64, "ε is too large")
        need(self.delta.bounds().high <= 1, "δ is above 1")
        self.read_law(body)
        need(self.releases == 1 or self.n + self.period <= 50_000, "too many places")

    def read_tails(self, body: Body, names: str) -> list[object]:
        """What the law has under these names beside its tails; these and the claims are read."""
        wanted = f"bits tails ratio ratio_bits {names}"
        bits, tails, ratio, ratio_bits, *others = members(body["law"], wanted)
        self.bits, self.tails = whole(bits, 4097), wholes(tails)
        self.exponent, self.period = whole(ratio_bits, 4097), len(self.tails)
        self.ratio = Fraction(integer(ratio, 0), 1 << self.exponent)
        need(self.ratio <= SLOWEST, "the tails hardly fall")
        need(bool(self.tails) == (self.ratio > 0) == any(self.tails), "tails without their ratio")
        self.read_claims(body)
        return others

    def read_law(self, body: Body) -> None:
        """The sensitivity, the loss, the law and the claims."""
        self.read_scale(body)
        (window,) = self.read_tails(body, "window")
        self.window = wholes(window)
        need(len(self.window) + self.period <= 200_000, "the law is too long")
        need(self.bits > 0 and bool(self.window), "the law is empty")
        total = 2 * sum(self.window) - self.window[0] + 2 * sum(self.tails)
        need(total == 1 << self.bits, "the probabilities do not sum to one")
        self.n = len(self.window) - 1
        # of noise that falls from the centre the largest shift is the worst
        last = self.n + 2 * self.period + 1
        falls = all(self.z(k) >= self.z(k + 1) for k in range(last))
        self.worst = range(self.sensitivity if falls else 1, self.sensitivity + 1)
        terms = (self.n + self.period + self.sensitivity) * len(self.worst)
        need(terms <= 4_000_000, "too many places for the sensitivity")
        need(not 0 < self.period < self.sensitivity, "fewer tails than the sensitivity")

    def read_steps(self, body: Body, most: int = 1001) -> None:
        """The sensitivity, a whole number below ``most``."""
        self.sensitivity = self.grid = whole(body["sensitivity"], most)
        need(self.sensitivity > 0, "the sensitivity is 0")
        self.span = f"{self.sensitivity}"

    def read_scale(self, body: Body) -> None:
        self.read_steps(body)
        self.loss = read_noise_loss(body["loss"])
        self.below = self.loss.below

    def check(self) -> Verdict:
        low, high = self.each.enclosed(ONE, 192)
        worst = self.spent(low)
        need(worst <= self.delta.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
        together = f" of {self.releases} releases together" if self.releases > 1 else ""
        return self.verdict(
            self.lower_bound(high),
            f"(ε, δ) = ({self.epsilon.text}, {self.delta.text}){together} at every shift up to "
            f"{self.span}: δ is {float(worst):.9g}",
        )

    def spent(self, power: Fraction) -> Fraction:
        """δ, or at least that, where e^ε is at least ``power``."""
        if self.releases > 1 and not self.delta.zero:
            return Releases(self).delta()
        shifts = self.worst if power >= 1 else range(1, self.sensitivity + 1)
        return max(self.excess(s, power) for s in shifts)

    def verdict(self, least: Fraction, promise: str) -> Verdict:
        """The claims against what was found."""
        ends = "" if self.period else ", none beyond"
        return [
            f"probabilities of all {self.numbers}, {self.n} to either side one by one{ends}, in "
            f"whole numbers over 2^{self.bits}",
            *self.loss.words,
            promise,
            self.judged(self.expected(), least, self.alike),
        ], "seconds" + ", that the loss is this function" * bool(self.loss.words)

    def scaled(self, found: Fraction) -> Fraction:
        """A bound in the loss's own unit."""
        return found

    @cache  # noqa: B019
    def z(self, k: int) -> Fraction:
        return Fraction(self.window[k], 1 << self.bits) if k <= self.n else self.tail(k)

    def tail(self, k: int) -> Fraction:
        """z beyond the window."""
        if not self.period:
            return ZERO
        block, c = divmod(k - self.n - 1, self.period)
        share = (1 - self.ratio) ** self.dimensions * self.ratio**block
        return Fraction(self.tails[c], 1 << self.bits) * share

    def beyond(self, polynomial: Sequence[Fraction | int]) -> Fraction:
        """What a tail of mass one has on average of a polynomial in how far beyond its start."""
        r = self.ratio
        sums = (1 / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3,
                r * (1 + 4 * r + r * r) / (1 - r) ** 4)  # fmt: skip
        found = [v * self.period**i * sums[i] for i, v in enumerate(polynomial)]
        return (1 - r) ** self.dimensions * sum(found, ZERO)

    def excess(self, s: int, power: Fraction) -> Fraction:
        """Σ_i max(0, z(i) - power z(i + s)): term by term where one of the two places is in the
        window or the tails differ."""
        law = [self.z(k) for k in range(self.n + 2 * s + self.period + 1)]
        unit = math.lcm(1 << self.bits, *(v.denominator for v in law[self.n :]))
        z, (a, b) = [int(v * unit) for v in law], power.as_integer_ratio()

        def terms(places: range) -> Fraction:
            return Fraction(sum(max(0, b * z[abs(i)] - a * z[abs(i + s)]) for i in places))

        return self.everywhere(s, terms) / (b * unit)

    def everywhere(self, s: int, terms: Callable[[range], Fraction]) -> Fraction:
        """A sum over all i of terms of z(i) and z(i + s): a period beyond the window they shrink
        by the ratio."""
        return sum((terms(places) * share for places, share in self.stretches(s)), ZERO)

    def stretches(self, s: int) -> list[tuple[range, Fraction]]:
        """All i by the places of i and i + s: term by term, and a period to either side for all
        that follow."""
        n, p, share = self.n, self.period, 1 / (1 - self.ratio)
        inner, right, left = (
            range(-n - s, n + 1),
            range(n + 1, n + p + 1),
            range(-n - s - p, -n - s),
        )
        return [(inner, ONE), (right, share), (left, share)]

    def expected(self) -> Fraction:
        """Σ c(k) z(k)."""
        total = sum((self.loss.at(k) * v for k, v in enumerate(self.window)), ZERO)
        total = 2 * total - self.loss.at(0) * self.window[0]
        start = self.n - self.loss.last
        need(not self.period or start >= 0, "the window is too short for the loss")
        for c, mass in enumerate(self.tails, 1):
            total += 2 * mass * self.beyond(self.loss.polynomial(start + c))
        return total / (1 << self.bits)

    def lower_bound(self, power: Fraction) -> Fraction:
        """min C(k) - 2 δ Σ λ for the multipliers in the file; 0 without any."""
        if self.multipliers is None:
            return ZERO
        digits, shifts = members(self.multipliers, "bits shifts")
        unit, rows = 1 << whole(digits, 4097), list(map(self.read_row, listing(shifts)))
        need(len({s for s, *_ in rows}) == len(rows) > 0, "no multipliers")
        n = rows[0][1]
        need(all(row[1] == n for row in rows), "windows differ")
        last = max(n + max(s for s, *_ in rows), self.below.last)
        a, b = power.as_integer_ratio()
        # beyond the last place C is a polynomial, known from three
        costs = [self.below.at(k) * unit * b for k in range(last + 4)]
        for s, _, at, _ in rows:
            for k in range(last + 4):
                costs[k] += b * (at(k) + at(-k)) - a * (at(k - s) + at(-k - s))
        *inside, first, second, third = costs
        bend, rise = third - 2 * second + first, second - first
        need(bend >= 0 and (bend > 0 or rise >= 0), "nothing is proved far out")
        # least of first + (rise - bend/2) t + bend/2 t² over t >= 0
        slope = rise - bend / 2
        low = first if slope >= 0 else first - slope * slope / (2 * bend)
        least = min(*inside, low) / (unit * b)
        cost = 2 * self.delta.bounds().high * sum(limit for *_, limit in rows) / unit
        return max(ZERO, least - cost)

    def read_row(self, plain: object) -> tuple[int, int, Callable[[int], int], int]:
        """A shift s, n, y_s, from -n to n one by one and beyond n a polynomial, the limit λ_s."""
        shift, own, beyond, most = members(plain, "shift inner tail limit")
        s, inner, tail, limit = whole(shift, 1001), wholes(own), wholes(beyond), integer(most, 0)
        need(0 < s <= self.grid and len(tail) == 3 and len(inner) % 2 == 1, "a bad shift")
        bent = self.below.curvature > 0
        grows = bent or (tail[2] == 0 and (self.below.slope > 0 or tail[1] == 0))
        need(grows, "multipliers grow faster than the loss")
        if not self.delta.zero:
            need(max(*inner, tail[0]) <= limit and tail[1:] == [0, 0], "a multiplier is too large")
        n = len(inner) // 2

        def at(i: int) -> int:
            if i > n:
                return tail[0] + (tail[1] + tail[2] * (i - n)) * (i - n)
            return inner[i + n] if i >= -n else 0

        return s, n, at, limit


LOG = 256  # binary digits of logarithms


class PowerNoise(Noise):
    """Noise whose promise is D_α(Z ‖ Z + s) <= ε for every |s| up to the sensitivity, for pairs
    (α, ε), or ε = ρα for all α > 1; order 1 is the Kullback-Leibler divergence."""

    entries = "digest format sensitivity loss law tangents claims seconds"
    proof = "tangents"

    def __init__(self, body: Body) -> None:
        self.rho: Real | None = None
        keys(body, f"{self.entries} {'zcdp' if 'zcdp' in body else 'renyi'}")
        if "zcdp" in body:
            most, stated = members(body["zcdp"], "rho orders")
            rho = self.rho = Real.read(most)
            self.bounds = [(order, rho.scaled(order)) for order in map(read_order, listing(stated))]
        else:
            alone = isinstance(body["renyi"], dict)
            rows = [body["renyi"]] if alone else listing(body["renyi"])
            need(alone or len(rows) > 1, "one order is not in a list")
            pairs = [members(row, "order epsilon") for row in rows]
            self.bounds = [(read_order(order), Real.read(rate)) for order, rate in pairs]
        orders = [order for order, _ in self.bounds]
        need(0 < len(orders) <= 32 and sorted(set(orders)) == orders, "orders do not grow")
        for order, rate in self.bounds:
            need(not rate.zero, "an ε is 0")
            need(float(order - 1) * rate.nearest <= 4000, "ε is too large")
        need(self.rho is not None or self.bounds[0][1].nearest <= 64, "ε is too large")
        self.read_law(body)
        wide = self.n + self.period + self.sensitivity
        need(wide * len(self.worst) <= 200_000, "too many places for the sensitivity")
        digits = self.bits + 3 * self.exponent
        shifts = len(self.worst) if self.rho is None else self.sensitivity
        self.largest = max(max(order.numerator, order.denominator) for order in orders)
        terms = wide * shifts * len(orders)
        need(terms * digits * self.largest <= 10**9, "too many digits for the order")

    def check(self) -> Verdict:
        worst = [max(self.power_sum(s, order) for s in self.worst) for order, _ in self.bounds]
        high = []
        for (order, rate), found in paired(self.bounds, worst):
            # with fewer digits than its logarithm has, e^((α-1)ε) would have no upper end
            digits = max(192, math.ceil(float(order - 1) * rate.nearest))
            low, above = rate.bounds(LOG) if order == 1 else rate.enclosed(order - 1, digits)
            need(self.rho is not None or found <= low, "a Rényi divergence is larger than stated")
            high.append(above)
        if self.rho is not None:
            self.at_every_order(worst, self.rho.bounds(LOG).low)
            words = f"zero-concentrated privacy with ρ = {self.rho.text}"
        else:
            words = ", ".join(f"of order {a} at most {rate.text}" for a, rate in self.bounds)
            words = f"Rényi divergence {words}"
        promise = f"{words} at every shift up to {self.span}"
        return self.verdict(self.scaled(self.tangent_bound(high)), promise)

    def at_every_order(self, worst: list[Fraction], rho: Fraction) -> None:
        """(α - 1) D_α is convex in α and at most straight between the orders looked at; it is to be
        at most ρ α (α - 1) there, near 1, and beyond, where it grows no faster than by D_∞."""
        points = [
            (order, signed_log(found, LOG).high)
            for (order, _), found in paired(self.bounds, worst)
            if order > 1
        ]
        need(bool(points), "no order above 1")
        first, value = points[0]
        need(value <= rho * (first - 1), "a divergence near order 1 is larger than stated")
        for (a, low), (b, high) in pairwise(points):
            slope = (high - low) / (b - a)
            at = min(b, max(a, (1 + slope / rho) / 2))
            need(rho * at * (at - 1) >= low + slope * (at - a), f"orders from {a} to {b} are open")
        order, value = points[-1]
        need(value <= rho * order * (order - 1), "a divergence is larger than stated")
        stretches = [(s, places) for s in self.worst for places, _ in self.stretches(s)]
        ratio = max(p / q for s, places in stretches for p, q in self.some(places, s))
        need(signed_log(ratio, LOG).high <= rho * (2 * order - 1), "large orders are open")

    def some(self, places: range, s: int) -> list[tuple[Fraction, Fraction]]:
        """Possible z(i), and z(i + s)."""
        pairs = [(self.z(abs(i)), self.z(abs(i + s))) for i in places]
        need(all(q for p, q in pairs if p), "a place is possible, and its shift is not")
        return [(p, q) for p, q in pairs if p]

    def power_sum(self, s: int, order: Fraction) -> Fraction:
        """At least Σ_i z(i) (z(i) / z(i + s))^(α-1), or Σ_i z(i) ln(z(i) / z(i + s))."""

        def above(ratio: Fraction) -> Fraction:
            if order == 1:
                return signed_log(ratio, LOG).high
            return powers(ratio, order - 1).high

        def terms(places: range) -> Fraction:
            unit = 1 << 700
            products = [p * above(p / q) * unit for p, q in self.some(places, s)]
            return Fraction(sum(map(math.ceil, products)), unit)

        return self.everywhere(s, terms)

    def tangent_bound(self, limits: list[Fraction]) -> Fraction:
        """min C(k), C(k) = c(k) + Σ λ [(g(k) + g(-k))/2 - T] with g(k) = α x(k)^(α-1) -
        (α-1) x(k-s)^α, or 1 + ln x(k) - x(k-s), for the numbers x and λ of the file; 0 without."""
        if self.multipliers is None:
            return ZERO
        bits, price_bits, rows = members(self.multipliers, "bits price_bits shifts")
        unit, scale = (1 << whole(digits, 4097) for digits in (bits, price_bits))
        parts = [keys(part, "shift price inner tail", "bound") for part in listing(rows)]
        shifts = [whole(part["shift"], 1001) for part in parts]
        bounds = [whole(part.get("bound", 0), len(limits)) for part in parts]
        need(all(part.get("bound") != 0 for part in parts), "a bound 0")
        kinds = set(paired(shifts, bounds))
        need(len(kinds) == len(shifts) > 0, "no shifts, or twice the same")
        need(min(shifts) > 0 and max(shifts) <= self.sensitivity, "a bad shift")
        size, *others = {len(listing(part["inner"])) for part in parts}
        need(not others, "windows differ")
        need(size % 2 == 1 and size * len(parts) <= 400_000, "a bad window")
        n = size // 2
        last = max(n + max(shifts), self.below.last) + 1
        # twice C(k) but for the loss, over 2^600: beyond the last place all stays the same
        found, digits = [0] * (last + 1), 0
        for s, k, part in zip(shifts, bounds, parts, strict=True):
            price, ends = integer(part["price"], 0), wholes(part["tail"])
            need(len(ends) == 2, "tails are two numbers")
            places = [ends[1], *wholes(part["inner"]), ends[0]]
            widest = max(unit, *places).bit_length()
            digits += len(places) * widest * self.largest
            need(digits <= 10**9, "too many digits for the order")
            known = {x: self.tangent(x, unit, self.bounds[k][0]) for x in set(places)}
            gains, harms = ([known[x][end] for x in places] for end in (0, 1))
            rest = 2 * math.ceil(limits[k] * 2**600)

            def at(i: int, values: list[int], n: int = n) -> int:
                return values[max(0, min(i + n + 1, len(values) - 1))]

            for i in range(last + 1):
                value = at(i, gains) + at(-i, gains) - at(i - s, harms) - at(-i - s, harms)
                found[i] += price * (value - rest)
        least = min(self.below.at(k) + Fraction(v, scale << 601) for k, v in enumerate(found))
        return max(ZERO, least)

    def tangent(self, x: int, unit: int, order: Fraction) -> tuple[int, int]:
        """What it gives at least, and takes at most, over 2^600."""
        if order == 1:
            need(x > 0, "a logarithm of 0")
            low = signed_log(Fraction(x, unit), LOG).low
            return math.floor((1 + low) * 2**600), ceiling(x << 600, unit)
        low = powers(Fraction(x, unit), order - 1).low
        high = powers(Fraction(x, unit), order).high
        return math.floor(order * low * 2**600), math.ceil((order - 1) * high * 2**600)


def powers(base: Fraction, exponent: Fraction) -> Interval:
    """base^exponent, by a root or, of many digits, by logarithms."""
    if base == 0 or exponent.denominator <= 4:
        return power_bounds(base, exponent)
    low, high = (exp_bounds(exponent * end, LOG) for end in signed_log(base, LOG))
    return Interval(low.low, high.high)


def read_order(value: object) -> Fraction:
    """An order from 1 on."""
    found = fraction(value)
    need(found >= 1, "the order is below 1")
    need(max(found.numerator, found.denominator) <= 64, "the order is too large")
    return found


LATTICE = 65_536  # places of sums of losses, at most
REACH = 131_072  # of the losses of one release
DIGITS = 48
MASS = 10**DIGITS  # masses of losses are whole numbers over this
GRAIN = 1 << 320  # and powers of e over this
LONG = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class Releases:
    """At least δ of several releases: losses of one, rounded up to multiples of h so that both
    laws keep their masses, as a polynomial with whole coefficients; its power, by products of long
    decimals. All roundings, merged ends and what is cut off make losses larger (Theory)."""

    def __init__(self, noise: Noise) -> None:
        self.noise, self.steps = noise, 1 << noise.lattice
        h = Fraction(1, self.steps)
        self.up, self.down = (
            (int(low * GRAIN), int(high * GRAIN) + 1)
            for low, high in (exp_bounds(h, 384), exp_bounds(-h, 384))
        )
        self.spare = int(noise.delta.bounds().low * MASS) // noise.releases >> 20

    def delta(self) -> Fraction:
        together = one = self.trimmed(*self.single())
        for digit in bin(self.noise.releases)[3:]:
            together = self.product(together, together)
            if digit == "1":
                together = self.product(together, one)
        first, found, lost = together
        rate = self.noise.epsilon.bounds(320).low
        start = max(first, int(rate * self.steps))
        power = int(exp_bounds(rate - Fraction(start, self.steps), 320).low * GRAIN)
        total = lost * GRAIN
        for value in found[start - first :]:
            total += value * max(0, GRAIN - power)
            power = power * self.down[0] // GRAIN
        return min(ONE, Fraction(total, GRAIN * MASS))

    def product(self, a: Sums, b: Sums) -> Sums:
        """Of the sum of two independent losses; digits of coefficients do not overlap."""
        width, count = 2 * DIGITS + 8, len(a[1]) + len(b[1]) - 1
        factors = ("".join(f"{v:0{width}d}" for v in values) for _, values, _ in (a, b))
        digits = format(LONG.multiply(*map(decimal.Decimal, factors)), "f").zfill(count * width)
        sums = [ceiling(int(digits[i : i + width]), MASS) for i in range(0, len(digits), width)]
        p, q = min(a[2], MASS), min(b[2], MASS)
        return self.trimmed(a[0] + b[0], sums, p + q - p * q // MASS)

    def trimmed(self, first: int, found: list[int], lost: int) -> Sums:
        """The ends that hold next to nothing: the lower merged with the rest, the upper lost."""
        start, below, end = 0, 0, len(found)
        while start < len(found) - 1 and below + found[start] <= self.spare:
            below, start = below + found[start], start + 1
        above = 0
        while end > start + 1 and above + found[end - 1] <= self.spare:
            above, end = above + found[end - 1], end - 1
        need(end - start <= LATTICE, "losses spread over too many places")
        return first + start, [found[start] + below, *found[start + 1 : end]], lost + above

    def single(self) -> Sums:
        """Of one release: of the largest shift where the noise falls from the centre, and else of
        the pair whose curve is the largest of all shifts', joined between multiples of h."""
        pairs = [self.atoms(s) for s in self.noise.worst]
        far = max((abs(self.place(p, q)) for some in pairs for p, q in some if p and q), default=0)
        reach = far + 3
        need(reach <= REACH, "losses spread over too many places")
        need(reach * len(pairs) <= 4 * REACH, "too many shifts")
        below, above = (
            list(accumulate(repeat(step, reach), lambda a, b: a * b // GRAIN, initial=GRAIN))
            for step in (self.down[0], self.up[0])
        )
        found = [self.spread(some, below[:0:-1] + above, reach) for some in pairs]
        masses, lost = self.largest(found) if len(found) > 1 else found[0]
        return -reach, masses, lost

    def atoms(self, s: int) -> list[tuple[Fraction, Fraction]]:
        """(z(i), z(i + s)): term by term, and all of the tails beyond by their sums."""
        z = self.noise.z
        return [
            (z(abs(i)) * share, z(abs(i + s)) * share)
            for places, share in self.noise.stretches(s)
            for i in places
        ]

    def place(self, p: Fraction, q: Fraction) -> int:
        return math.floor(log_ratio(*(p / q).as_integer_ratio()) * self.steps)

    def spread(
        self, some: list[tuple[Fraction, Fraction]], lows: list[int], reach: int
    ) -> tuple[list[int], int]:
        """Shares (1 - e^{jh} q/p)/(1 - e^-h) of p on the place above, the rest on that below."""
        found, lost = [ZERO] * (2 * reach + 1), ZERO
        for p, q in some:
            if not q:
                lost += p
            elif p:
                j = self.place(p, q) + reach
                while p * GRAIN > lows[j + 1] * q:
                    j += 1
                share = max(ZERO, p * GRAIN - lows[j] * q) / (GRAIN - self.down[1])
                above = min(p, Fraction(ceiling(share.numerator * GRAIN, share.denominator), GRAIN))
                found[j + 1] += above
                found[j] += p - above
        *masses, rest = (ceiling(v.numerator * MASS, v.denominator) for v in (*found, lost))
        return masses, rest

    def largest(self, found: list[tuple[list[int], int]]) -> tuple[list[int], int]:
        """M_j = Σ_{i>j} P_i (1 - e^{(j-i)h}) + P_∞, the largest of all; the masses of its kinks."""
        count = len(found[0][0])
        lows, highs = [0] * (count + 1), [0] * (count + 1)
        for masses, lost in found:
            above, low, high = lost * GRAIN, 0, 0
            for k, mass in reversed(list(enumerate([*masses, 0]))):
                above += mass * GRAIN
                low = (low + mass * GRAIN) * self.down[0] // GRAIN
                high = ceiling((high + mass * GRAIN) * self.down[1], GRAIN)
                lows[k] = max(lows[k], above - high)
                highs[k] = max(highs[k], above - low)
        lost, rest = max(lost for _, lost in found), GRAIN * (self.up[0] - GRAIN)
        curve = zip(highs, lows[1:], [*highs[2:], lost * GRAIN], strict=False)
        kinks = (
            GRAIN * (after - at) + self.up[1] * before - self.up[0] * at
            for before, at, after in curve
        )
        return [max(0, ceiling(kink, rest)) for kink in kinks], lost
