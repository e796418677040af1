"""Noise that is the same in every direction of the plane or of space (theory, "Radial noise")."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

from optmech_audit.designs import Verdict
from optmech_audit.document import (
    Body,
    fraction,
    integer,
    keys,
    listing,
    members,
    one_of,
    whole,
    wholes,
)
from optmech_audit.globe import half_turn
from optmech_audit.noise import Claims
from optmech_audit.numbers import ONE, ZERO, Real, ceiling, need

POINT = 144  # binary digits of ends
UNIT = 1 << POINT
DEEP = 1 << 30  # depths of caps are over this
STEEP_BITS = 192
ATANS = 256


class Span:
    """Between two multiples of 2^-POINT."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    @classmethod
    def of(cls, value: Fraction | int) -> Span:
        top, bottom = value.numerator << POINT, value.denominator
        return cls(top // bottom, ceiling(top, bottom))

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Span) -> Span:
        return Span(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Span) -> Span:
        a, b, c, d = self.low, self.high, other.low, other.high
        ends = (a * c, a * d, b * c, b * d) if a < 0 or c < 0 else (a * c, b * d)
        return Span(min(ends) >> POINT, -(-max(ends) >> POINT))

    def times(self, by: int) -> Span:
        a, b = self.low * by, self.high * by
        return Span(a, b) if by >= 0 else Span(b, a)

    def over(self, other: Span) -> Span:
        """Divided by what is above 0."""
        bottoms = (other.low, other.high)
        low = min((self.low << POINT) // b for b in bottoms)
        return Span(low, max(ceiling(self.high << POINT, b) for b in bottoms))

    def root(self) -> Span:
        return Span(
            math.isqrt(max(0, self.low) << POINT), math.isqrt(max(0, self.high) << POINT) + 1
        )

    def joined(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))


NIL, FULL = Span(0, 0), Span(UNIT, UNIT)


@cache
def table(k: int) -> Span:
    """atan(k / ATANS)."""
    if k == ATANS:
        return Span((pi().low) // 4, ceiling(pi().high, 4))
    return series((k << POINT) // ATANS)


def series(t: int) -> Span:
    """atan t, 0 <= t <= 1, by t - t³/3 + …: terms are within three units each."""
    if t > UNIT // 2:
        # atan t = atan(1/2) + atan((t - 1/2) / (1 + t/2))
        first, rest = series(UNIT // 2), ((t - UNIT // 2) << POINT) // (UNIT + t // 2)
        second = series(rest)
        return Span(first.low + second.low - 2, first.high + second.high + 2)
    total, power, n, square = 0, t, 1, t * t >> POINT
    while power:
        total += power // n if n % 4 == 1 else -(power // n)
        power, n = power * square >> POINT, n + 2
    return Span(total - 2 * n - 4, total + 2 * n + 4)


@cache
def pi() -> Span:
    low, high = (end * UNIT for end in half_turn())
    return Span(math.floor(low), math.ceil(high))


def arc(t: int) -> Span:
    """atan t, 0 <= t <= 1."""
    k = (t * ATANS) >> POINT
    known = table(k)
    rest = series(max(0, ((t * ATANS - (k << POINT)) << POINT) // (ATANS * UNIT + k * t)))
    return Span(known.low + rest.low - 4, known.high + rest.high + 4)


def angle(w: int) -> Span:
    """arccos(1 - w) / π, 0 <= w <= 2."""
    if w > UNIT:
        other = angle(2 * UNIT - w)
        return Span(UNIT - other.high, UNIT - other.low)
    t = math.isqrt((w << 2 * POINT) // (2 * UNIT - w))
    found = arc(min(t, UNIT))
    # t is within two units, and atan grows no faster
    return Span(2 * found.low - 8, 2 * found.high + 8).over(pi())


def bump_of(low: int, high: int) -> Span:
    """w(2 - w), for w between two ends."""
    ends = [Span(e, e) * Span(2 * UNIT - e, 2 * UNIT - e) for e in (low, high)]
    bump = ends[0].joined(ends[1])
    return bump.joined(FULL) if low < UNIT < high else bump


def half(dimension: int, w: Span) -> tuple[Span, Span]:
    """Of an even point of the sphere: how likely its first coordinate is above 1 - w, and a mean
    that goes with it: √(w(2 - w))/π in the plane, w(2 - w)/4 in space."""
    if w.high <= 0:
        return NIL, NIL
    if w.low >= 2 * UNIT:
        return FULL, NIL
    low, high = max(0, w.low), min(2 * UNIT, w.high)
    bump = bump_of(low, high)
    if dimension == 3:
        return Span(low // 2, ceiling(high, 2)), Span(bump.low // 4, ceiling(bump.high, 4))
    share = Span(max(0, angle(low).low), min(UNIT, angle(high).high))
    return share, bump.root().over(pi())


def growth(dimension: int, w: Span) -> Span | None:
    """The derivative of the first by w, where it is finite."""
    if w.high <= 0 or w.low >= 2 * UNIT:
        return NIL
    if dimension == 3:
        return Span(UNIT // 2, UNIT // 2)
    if w.low <= 0 or w.high >= 2 * UNIT:
        return None
    below = bump_of(w.low, w.high).root() * pi()
    return FULL.over(below) if below.low > 0 else None


class Cap:
    """Weights D of nodes, linear in r² between them and 0 beyond, for one shift and depth."""

    def __init__(self, plain: object, nodes: int) -> None:
        shift, depth, first, weights = members(plain, "shift depth first weights")
        self.shift, self.given = whole(shift, nodes + 1), integer(depth, 1)
        need(self.shift > 0 and self.given <= 2 * self.shift * DEEP, "a bad cap")
        self.first, self.weights = whole(first, 100_001), wholes(weights)
        need(bool(self.weights), "a cap without weights")
        self.last = self.first + len(self.weights) - 1
        self.depth = Fraction(self.given, DEEP)
        self.reach = Span.of(self.depth)

    def at(self, k: int) -> int:
        return self.weights[k - self.first] if self.first <= k <= self.last else 0

    def slope(self, k: int) -> Span:
        """By r² from a node on."""
        top, bottom = (self.at(k + 1) - self.at(k)) << POINT, 2 * k + 1
        return Span(top // bottom, ceiling(top, bottom))

    def weight(self, k: int, r: Span) -> Span:
        """D after a node."""
        return Span.of(self.at(k)) + self.slope(k) * (r * r - Span.of(k * k))


Near = tuple[Cap, bool, tuple[int, int] | None]


class RadialNoise(Claims):
    """A mixture of even laws on balls of radii h, 2h, …, h a part of the sensitivity."""

    def __init__(self, body: Body) -> None:
        own = "epsilon delta sensitivity dimension cells loss law multipliers claims seconds"
        keys(body, f"digest format {own}")
        self.rate, self.part = Real.read(body["epsilon"]), Real.read(body["delta"])
        need(self.rate.nearest <= 64, "ε is too large")
        low, high = self.part.bounds()
        need(low >= 0 and high <= 1, "δ is not from 0 to 1")
        self.span = fraction(body["sensitivity"])
        need(self.span > 0, "the sensitivity is 0")
        self.dimension, self.cells = whole(body["dimension"], 4), whole(body["cells"], 1001)
        need(self.dimension > 1 and self.cells > 0, "neither plane nor space, or no rings")
        (name,) = members(body["loss"], "name")
        self.degree = 2 if one_of(name, ("absolute", "square"), "the loss") == "square" else 1
        digits, balls = members(body["law"], "bits balls")
        self.balls = self.read_masses(digits, balls, 4000, "no law, or too many balls")
        self.read_claims(body)

    def check(self) -> Verdict:
        worst = self.spent()
        need(worst <= self.part.bounds().low, f"δ is {float(worst):.9g}, and more than stated")
        d, h = self.dimension, self.span / self.cells
        total = sum(w * k**self.degree for k, w in enumerate(self.balls, 1))
        loss = h**self.degree * Fraction(d * total, (d + self.degree) << self.bits)
        place = "the plane" if d == 2 else "space"
        return [
            f"probabilities of {len(self.balls)} balls of {place}, in whole numbers over "
            f"2^{self.bits}",
            f"(ε, δ) = ({self.rate.text}, {self.part.text}) at every shift of length up to "
            f"{float(self.span):.9g}",
            self.judged(loss, self.proved()),
        ], "seconds"

    def spent(self) -> Fraction:
        """One less what the balls have in common that a density and e^ε times its shift are above
        some level on."""
        power = self.rate.enclosed(ONE, 192).low
        a, b = power.as_integer_ratio()
        n, heights, total = len(self.balls), [0] * len(self.balls), 0
        for k in range(n, 0, -1):
            total += (self.balls[k - 1] << STEEP_BITS) // k**self.dimension
            heights[k - 1] = total
        levels = sorted({0, *(b * v for v in heights), *(a * v for v in heights)})
        own = far = n
        shared = 0
        for low, high in pairwise(levels):
            while own and b * heights[own - 1] <= low:
                own -= 1
            while far and a * heights[far - 1] <= low:
                far -= 1
            shared += (high - low) * self.common(own, far)
        return max(ZERO, 1 - Fraction(shared, b << (self.bits + STEEP_BITS + POINT)))

    def common(self, one: int, other: int) -> int:
        """At most what two balls have in common, over the unit ball, in units of 2^-POINT."""
        d, apart = self.dimension, self.cells
        if not one or not other or one + other <= apart:
            return 0
        if abs(one - other) >= apart:
            return int(min(one, other) ** d) << POINT
        total = NIL
        for own, far in ((one, other), (other, one)):
            w = Span.of(Fraction(far * far - (own - apart) ** 2, 2 * apart * own))
            share, mean = half(d, w)
            total += (share - (FULL - w) * mean).times(own**d)
        return max(0, total.low)

    def proved(self) -> Fraction:
        """The level of C less δ Σ λ; 0 without."""
        if self.multipliers is None:
            return ZERO
        digits, nodes, level, rows = members(self.multipliers, "bits nodes level caps")
        unit, self.level = 1 << whole(digits, 4097), integer(level, 0)
        count = whole(nodes, 65)
        caps = [Cap(row, count) for row in listing(rows)]
        need(0 < len(caps) <= 256, "no caps, or too many")
        need(len({(c.shift, c.given) for c in caps}) == len(caps), "twice the same")
        need(sum(len(c.weights) for c in caps) <= 40_000, "too many weights")
        end = max(c.last + c.shift for c in caps) + 1
        need(end <= 4000, "too many nodes")
        self.caps, self.goal = caps, self.level << POINT
        self.scale = unit
        self.power = Span.of(self.rate.enclosed(ONE, 192).high)
        need(end**self.degree * unit >= self.level, "the level is above the loss at the end")
        cuts = {Fraction(n) for n in range(end + 1)}
        for cap in caps:
            cuts |= {cap.depth / 2, cap.shift - cap.depth / 2}
            cuts |= {n + cap.shift - cap.depth for n in range(cap.first - 1, cap.last + 2)}
        ends = sorted(x for x in cuts if 0 <= x <= end)
        self.left = 60_000
        for a, b in pairwise(ends):
            self.above(a, b)
        limit = 0
        for shift in {c.shift for c in caps}:
            own = [c for c in caps if c.shift == shift]
            last = max(c.last for c in own)
            limit += max(sum(c.at(k) for c in own) for k in range(last + 1))
        found = (self.level - self.part.bounds().high * limit) / unit
        return max(ZERO, (self.span / count) ** self.degree * found)

    def above(self, start: Fraction, end: Fraction) -> None:
        """C is at least the level between places where no cap changes its form."""
        middle, near = (start + end) / 2, []
        for cap in self.caps:
            gains = cap.first - 1 <= middle < cap.last + 1
            first, edge = math.floor(abs(middle - cap.shift)), middle - cap.shift + cap.depth
            harms = abs(middle - cap.shift) < edge and first <= cap.last and edge >= cap.first - 1
            if gains or harms:
                near.append((cap, gains, (first, math.floor(edge)) if harms else None))
        node, waiting = math.floor(middle), [(start, end, 0)]

        @cache
        def least(x: Fraction) -> int:
            return self.value(Span.of(x), node, near).low

        while waiting:
            a, b, depth = waiting.pop()
            self.left -= 1
            if self.holds(a, b, node, near, least):
                continue
            need(depth < 48 and self.left > 0, "the level is not proved")
            waiting += [((a + b) / 2, b, depth + 1), (a, (a + b) / 2, depth + 1)]

    def holds(
        self,
        a: Fraction,
        b: Fraction,
        node: int,
        near: list[Near],
        least: Callable[[Fraction], int],
    ) -> bool:
        left, right = Span.of(a), Span.of(b)
        if a == 0:
            return self.rough(right, near) >= self.goal
        ends = [least(a), least(b)]
        if min(ends) < self.goal:
            return False
        piece = left.joined(right)
        slope = self.slope(piece, node, near)
        if slope is None:
            return self.value(piece, node, near).low >= self.goal
        bent = (slope.high - slope.low) * (right.high - left.low) >> POINT
        return min(ends) - bent // 4 - 1 >= self.goal

    def rough(self, r: Span, near: list[Near]) -> int:
        """From 0 on, by what is monotone."""
        total = 0
        for cap, gains, harms in near:
            if gains:
                least = min(cap.at(0) << POINT, cap.weight(0, r).low)
                total += (Span(least, least) * self.cut(cap, r, 1)[0]).low
            if harms:
                most = max(cap.at(k) for k in range(harms[0], harms[1] + 2))
                total -= (self.power * self.cut(cap, r, -1)[0]).times(most).high
        return total

    def cut(self, cap: Cap, r: Span, side: int) -> tuple[Span, Span, Span | None]:
        """P(ρ > r + s - τ) on side 1, P(ρ < r - s + τ) on side -1, the mean beside it, and the
        derivative."""
        s, rest = cap.shift, Span.of(2 * cap.shift - cap.depth)
        w = cap.reach.over(Span.of(s)) * (FULL + rest.over(r.times(2)).times(side))
        grown = growth(self.dimension, w)
        turn = (cap.reach * rest).over((r * r).times(2 * s))
        return *half(self.dimension, w), None if grown is None else (grown * turn).times(-side)

    def nodes(self, r: Span) -> Callable[[int, int], tuple[Span, Span]]:
        """What is within the radius of a node, of a shift s away."""

        @cache
        def node(s: int, k: int) -> tuple[Span, Span]:
            near, far = Span.of(k + s) - r, Span.of(k - s) + r
            return half(self.dimension, (near * far).over(r.times(2 * s)))

        return node

    def value(self, r: Span, node: int, near: list[Near]) -> Span:
        """C, in the unit of the weights."""
        total, square, within = NIL, r * r, self.nodes(r)
        for cap, gains, harms in near:
            s = cap.shift
            if gains:
                total += cap.weight(node, r) * self.cut(cap, r, 1)[0]
            if harms:
                share, mean, _ = self.cut(cap, r, -1)
                edge = r - Span.of(s) + cap.reach
                lost = cap.weight(harms[1], edge) * share
                before = square + Span.of(s * s)
                above = (edge * edge - before) * share + (r * mean).times(2 * s)
                for k in range(harms[1], harms[0] - 1, -1):
                    share, mean = within(s, k)
                    inner = (Span.of(k * k) - before) * share + (r * mean).times(2 * s)
                    lost -= cap.slope(k) * (above - inner)
                    above = inner
                total -= self.power * lost
        return total + (r if self.degree == 1 else square).times(self.scale)

    def slope(self, r: Span, node: int, near: list[Near]) -> Span | None:
        """The derivative of C, where it is finite."""
        total = FULL.times(self.scale) if self.degree == 1 else r.times(2 * self.scale)
        within = self.nodes(r)
        for cap, gains, harms in near:
            s = cap.shift
            if gains:
                share, _, fall = self.cut(cap, r, 1)
                if fall is None:
                    return None
                total += (r * cap.slope(node) * share).times(2) + cap.weight(node, r) * fall
            if harms:
                share, mean, rise = self.cut(cap, r, -1)
                if rise is None:
                    return None
                lost = cap.weight(harms[1], r - Span.of(s) + cap.reach) * rise
                steep = cap.slope(harms[1])
                lost -= steep * (mean.times(2 * s) - (r * share).times(2))
                for k in range(harms[1], harms[0], -1):
                    share, mean = within(s, k)
                    other = cap.slope(k - 1)
                    lost += (steep - other) * (mean.times(2 * s) - (r * share).times(2))
                    steep = other
                total -= self.power * lost
        return total
