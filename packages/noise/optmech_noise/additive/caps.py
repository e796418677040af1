"""A bound of all noise in the plane or in space, by tests on caps.

For a shift of length s and a point x at the distance r of 0 and ρ of the shift, φ(x) = Σ D(r) over
the caps of that shift with r + s - ρ < τ, D linear in r² between nodes. A law whose promise holds
has E φ(X) <= e^ε E φ(X + v) + δ λ, where φ <= λ. Averaged over rotations that is a bound on the law
of |X| alone: E c(|X|) >= min C(r) - δ Σ λ with

    C(r) = c(r) + Σ D(r) P(ρ > r + s - τ) - e^ε E[D(ρ); ρ < r - s + τ],

ρ the distance of an even point of the sphere of radius r to a point s away
(docs/theory/releases.md). C is enclosed on pieces, by its ends and its derivative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import flint

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import ball_of
from optmech_noise.additive.spheres import Ball, growing, half

DEPTH_BITS = 30
MOST_CAPS, MOST_WEIGHTS, MOST_NODES = 256, 40_000, 4000
MOST_PIECES = 60_000
"""Of which a bound is proved."""
_DEEPEST, _BITS = 48, 128
_ONE = 1 << DEPTH_BITS


@record
class Cap:
    """A test of the shift of length ``shift``, in nodes, on what lies within ``depth`` /
    2^DEPTH_BITS of the farthest from it; the weights of the nodes from ``first`` on."""

    shift: int
    depth: int
    first: int
    weights: tuple[int, ...]

    @property
    def last(self) -> int:
        """The last node."""
        return self.first + len(self.weights) - 1

    def at(self, node: int) -> int:
        """D at a node."""
        return self.weights[node - self.first] if self.first <= node <= self.last else 0


@record
class Caps:
    """Tests with weights over 2^bits, on nodes of which ``nodes`` are one sensitivity, and what C
    is nowhere below, in the same unit. Raises ProblemError for numbers that are none."""

    bits: int
    nodes: int
    level: int
    caps: tuple[Cap, ...]

    def __post_init__(self) -> None:
        names = {(cap.shift, cap.depth) for cap in self.caps}
        sound = min(self.bits, self.level) >= 0 and len(names) == len(self.caps) > 0
        for cap in self.caps:
            sound &= 0 < cap.shift <= self.nodes and 0 < cap.depth <= 2 * cap.shift * _ONE
            sound &= cap.first >= 0 and len(cap.weights) > 0 and min(cap.weights) >= 0
        if not sound:
            raise ProblemError("are not as they must be", where="multipliers")

    @property
    def end(self) -> int:
        """Beyond this nothing is tested."""
        return max(cap.last + cap.shift for cap in self.caps) + 1

    @cached_property
    def limit(self) -> int:
        """Σ λ over the shifts."""
        return sum(
            max(
                sum(cap.at(node) for cap in own) for node in range(max(cap.last for cap in own) + 1)
            )
            for own in ([c for c in self.caps if c.shift == s] for s in self.shifts)
        )

    @property
    def shifts(self) -> list[int]:
        """The shifts that there are tests of."""
        return sorted({cap.shift for cap in self.caps})

    @cached_property
    def ends(self) -> list[list[Fraction]]:
        """For every node the ends of the pieces up to the next: between them no test changes its
        form."""
        found: list[set[Fraction]] = [{Fraction(n), Fraction(n + 1)} for n in range(self.end)]

        def put(place: Fraction) -> None:
            if 0 < place < self.end:
                found[math.floor(place)].add(place)

        for cap in self.caps:
            depth = Fraction(cap.depth, _ONE)
            put(depth / 2)
            put(cap.shift - depth / 2)
            for node in range(cap.first - 1, cap.last + 2):
                put(node + cap.shift - depth)
        return [sorted(places) for places in found]


class _Table(NamedTuple):
    """A cap's weights, how they grow with r² from node to node, and its depth."""

    cap: Cap
    depth: Ball
    weights: dict[int, Ball]
    slopes: dict[int, Ball]

    @classmethod
    def of(cls, cap: Cap) -> _Table:
        nodes = range(cap.first - 1, cap.last + 1)
        slopes = {k: flint.arb(cap.at(k + 1) - cap.at(k)) / (2 * k + 1) for k in nodes}
        weights = {k: flint.arb(v) for k, v in enumerate(cap.weights, cap.first)}
        return cls(cap, ball_of(Fraction(cap.depth, _ONE)), weights, slopes)

    def slope(self, node: int) -> Ball:
        """From a node to the next."""
        return self.slopes.get(node, 0)

    def weight(self, node: int, r: Ball) -> Ball:
        """D after a node."""
        return self.weights.get(node, 0) + self.slopes.get(node, 0) * (r * r - node * node)


class _Near(NamedTuple):
    """A cap about a piece: whether it gains there, and of the harm where the ball is."""

    table: _Table
    gains: bool
    harms: tuple[int, int] | None


class _Bound:
    """C for one set of tests, a promise and a loss."""

    def __init__(self, dimension: int, degree: int, power: Fraction, caps: Caps) -> None:
        self.dimension, self.degree, self.caps = dimension, degree, caps
        self.power, self.unit = ball_of(power), 1 << caps.bits
        self.tables = [_Table.of(cap) for cap in caps.caps]
        self.known: dict[Fraction, Ball] = {}

    def missed(self) -> float | None:
        """A place where C is not proved to be above the level, or None."""
        level = flint.arb(self.caps.level) / self.unit
        if flint.arb(self.caps.end) ** self.degree < level:
            return float(self.caps.end)
        # what is proved of the rest is a matter of smaller pieces
        left = MOST_PIECES
        for places in self.caps.ends:
            for start, end in itertools.pairwise(places):
                near = self._near(start, end)
                # C has no jumps: where a piece ends it is what it is where the next one begins
                self.known = {k: v for k, v in self.known.items() if k == start}
                waiting = [(start, end, 0)]
                while waiting:
                    a, b, depth = waiting.pop()
                    left -= 1
                    if self._piece(a, b, near, level):
                        continue
                    if depth == _DEEPEST or not left > 0:
                        return float(a)
                    middle = (a + b) / 2
                    waiting += [(middle, b, depth + 1), (a, middle, depth + 1)]
        return None

    def _near(self, a: Fraction, b: Fraction) -> list[_Near]:
        middle, out = (a + b) / 2, []
        node = math.floor(middle)
        for table in self.tables:
            cap = table.cap
            depth = Fraction(cap.depth, _ONE)
            gains = cap.first - 1 <= node <= cap.last
            first, end = math.floor(abs(middle - cap.shift)), middle - cap.shift + depth
            harms = None
            if abs(middle - cap.shift) < end and first <= cap.last and end >= cap.first - 1:
                harms = (first, math.floor(end))
            if gains or harms:
                out.append(_Near(table, gains, harms))
        return out

    def _piece(self, a: Fraction, b: Fraction, near: list[_Near], level: Ball) -> bool:
        """Whether C is seen to be at least the level on a piece."""
        if a == 0:
            return bool(self._roughly(b, near) >= level)
        for end in (a, b):
            if end not in self.known:
                self.known[end] = self._value(ball_of(end), near, a)
        ends = self.known[a].min(self.known[b]).lower()
        if not ends >= level:
            return False
        r = ball_of(a).union(ball_of(b))
        slope = self._slope(r, near, a)
        if not slope.is_finite():
            return bool(self._value(r, near, a) >= level)
        spread = slope.upper() - slope.lower()
        return bool(ends - (spread * ball_of(b - a) / 4).upper() >= level)

    def _roughly(self, b: Fraction, near: list[_Near]) -> Ball:
        """At most C from 0 on, by what is monotone."""
        r, total = ball_of(b), flint.arb(0)
        for table, gains, harms in near:
            if gains:
                least = min(table.weight(0, x).lower() for x in (flint.arb(0), r))
                total += least * self._cut(table, r, 1)[0]
            if harms:
                most = max(table.cap.at(k) for k in range(harms[0], harms[1] + 2))
                total -= self.power * most * self._cut(table, r, -1)[0]
        return (total / self.unit).lower()

    def _cut(self, table: _Table, r: Ball, side: int) -> tuple[Ball, Ball, Ball]:
        """P(ρ > r + s - τ) on side 1, P(ρ < r - s + τ) on side -1, what ``half`` has beside it, and
        the derivative by r."""
        s, depth = table.cap.shift, table.depth
        rest = side * (2 * s - depth)
        w = depth / s * (1 + rest / (2 * r))
        turn = -depth * rest / (2 * s * r * r)
        return *half(self.dimension, w), growing(self.dimension, w) * turn

    def _value(self, r: Ball, near: list[_Near], start: Fraction) -> Ball:
        """C at a place."""
        total, node, nodes = flint.arb(0), math.floor(start), self._nodes(r)
        for table, gains, harms in near:
            s = table.cap.shift
            if gains:
                total += table.weight(node, r) * self._cut(table, r, 1)[0]
            if harms:
                share, mean, _ = self._cut(table, r, -1)
                end = r - s + table.depth
                lost = table.weight(harms[1], end) * share
                # E max(0, R² - ρ²)
                above = (end * end - r * r - s * s) * share + 2 * r * s * mean
                for k in range(harms[1], harms[0] - 1, -1):
                    within = nodes(s, k)
                    inner = (k * k - r * r - s * s) * within[0] + 2 * r * s * within[1]
                    lost -= table.slope(k) * (above - inner)
                    above = inner
                total -= self.power * lost
        return r**self.degree + total / self.unit

    def _slope(self, r: Ball, near: list[_Near], start: Fraction) -> Ball:
        """The derivative of C on a piece."""
        total, node, nodes = flint.arb(0), math.floor(start), self._nodes(r)
        for table, gains, harms in near:
            s = table.cap.shift
            if gains:
                share, _, fall = self._cut(table, r, 1)
                total += 2 * r * table.slope(node) * share + table.weight(node, r) * fall
            if harms:
                share, mean, fall = self._cut(table, r, -1)
                lost = table.weight(harms[1], r - s + table.depth) * fall
                before, above = table.slope(harms[1]), -2 * r * share + 2 * s * mean
                lost -= before * above
                for k in range(harms[1], harms[0], -1):
                    within = nodes(s, k)
                    after = table.slope(k - 1)
                    lost += (before - after) * (-2 * r * within[0] + 2 * s * within[1])
                    before = after
                total -= self.power * lost
        return self.degree * r ** (self.degree - 1) + total / self.unit

    def _nodes(self, r: Ball) -> Callable[[int, int], tuple[Ball, Ball]]:
        """``half`` of what lies within a node's radius, by shift and node."""

        @cache
        def within(s: int, node: int) -> tuple[Ball, Ball]:
            return half(self.dimension, (node - r + s) * (node + r - s) / (2 * r * s))

        return within


@lru_cache(maxsize=16)
def unproved(dimension: int, degree: int, power: Fraction, found: Caps) -> float | None:
    """A place where C is not proved to be above the level, or None where it is everywhere;
    ``power`` is at least e^ε."""
    with flint.ctx.workprec(_BITS):
        return _Bound(dimension, degree, power, found).missed()


def caps_bound(
    dimension: int, degree: int, power: Fraction, delta: Fraction, found: Caps
) -> Fraction:
    """A lower bound of E|X|^degree, in nodes, of all laws that keep the promise for shifts of up to
    ``found.nodes``; ``power`` and ``delta`` are at least e^ε and δ. Raises ProblemError where the
    level is not proved."""
    if unproved(dimension, degree, power, found) is not None:
        raise ProblemError("do not prove their level", where="multipliers")
    return (found.level - delta * found.limit) / (1 << found.bits)
