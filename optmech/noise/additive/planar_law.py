"""A distribution on pairs of whole numbers with the symmetries of the square, tails included."""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import cached_property

import numpy as np
from attrs import frozen

from optmech.base.arrays import Ints
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.exact.sampler import Bytes, Table, draw, seeded_bytes, system_bytes
from optmech.noise.additive.law import MOST_BITS, geometric, require_falling

Place = tuple[int, int]
NORMS = {"l1": "l₁", "l2": "l₂", "linf": "l∞"}
"""The norms of pairs, and how they are written."""
MOST_PLACES = 40_000
"""Places of the window up to symmetry."""


def representative(x: int, y: int) -> Place:
    """The place x >= y >= 0 that (x, y) is a rotation or mirror image of."""
    x, y = abs(x), abs(y)
    return (x, y) if x >= y else (y, x)


def require_norm(norm: str, where: str) -> None:
    """Raise ProblemError for what is no norm."""
    if norm not in tuple(NORMS):
        remedy = f"Give one of {', '.join(NORMS)}"
        raise ProblemError(f"{str(norm)[:40]!r} is no norm", where=where, remedy=remedy)


def radius(norm: str, x: int, y: int) -> int:
    """The norm of a place, squared for "l2"."""
    x, y = abs(x), abs(y)
    if norm == "l2":
        return x * x + y * y
    return x + y if norm == "l1" else max(x, y)


def wedge(shape: str, n: int) -> list[Place]:
    """The places x >= y >= 0 of norm at most n, in order."""
    return [
        (x, y)
        for x in range(n + 1)
        for y in range((min(x, n - x) if shape == "l1" else x) + 1)
    ]  # fmt: skip


def orbit(place: Place) -> list[Place]:
    """All rotations and mirror images of a place."""
    x, y = place
    around = {(a * p, b * q) for a, b in ((x, y), (y, x)) for p in (1, -1) for q in (1, -1)}
    return sorted(around)


def around(shape: str) -> int:
    """A shell of radius m has so many times m places."""
    return 4 if shape == "l1" else 8


@frozen(eq=False)
class PlanarLaw(SameFields):
    """z of all places with the same distances to the axes, up to their order, is the same.

    ``core`` has 2^bits z(x, y) for x >= y >= 0 of norm ``shape`` at most ``n``, in the order of
    ``wedge``; z(k) = ``tails[c - 1]`` (1 - r)² r^j / 2^bits at radius n + c + jp, with p tails,
    1 <= c <= p and r = ``ratio`` / 2^ratio_bits < 1; without tails z is zero there.

    Raises ProblemError where these are no probabilities that sum to one.
    """

    shape: str
    n: int
    bits: int
    core: tuple[int, ...]
    tails: tuple[int, ...] = ()
    ratio: int = 0
    ratio_bits: int = 0

    def __attrs_post_init__(self) -> None:
        require_falling(self.tails, self.ratio, self.ratio_bits)
        fits = (
            self.shape in ("l1", "linf")
            and 0 < self.bits <= MOST_BITS
            and len(self.core) + len(self.tails) <= MOST_PLACES
            and 0 <= self.n <= MOST_PLACES
            and min((*self.core, *self.tails), default=-1) >= 0
        )
        if not fits or len(self.places) != len(self.core):
            raise ProblemError("the numbers are no probabilities", where="law")
        if sum(self.shares) != 1 << (self.bits + self.ratio_bits):
            raise ProblemError("the probabilities do not sum to one", where="law")

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The places that ``core`` is about."""
        return tuple(wedge(self.shape, self.n))

    @property
    def r(self) -> Fraction:
        """The ratio of the tails; 0 without tails."""
        return Fraction(self.ratio, 1 << self.ratio_bits)

    @cached_property
    def shares(self) -> tuple[int, ...]:
        """Probabilities over 2^(bits + ratio_bits): of the orbits of all places, and of every tail
        τ: a τ (n + c)(1 - r) and a τ p r with a m places at radius m, whose sum is that of
        a τ (1 - r)² r^j (n + c + jp) over j >= 0."""
        unit = 1 << self.ratio_bits
        out = [
            value * len(orbit(place)) * unit
            for place, value in zip(self.places, self.core, strict=True)
        ]
        each, p = around(self.shape), len(self.tails)
        for c, mass in enumerate(self.tails, 1):
            out += [each * mass * (self.n + c) * (unit - self.ratio), each * mass * p * self.ratio]
        return tuple(out)

    @cached_property
    def _known(self) -> dict[Place, int]:
        return dict(zip(self.places, self.core, strict=True))

    def shell(self, m: int) -> Fraction:
        """z at radius m > n."""
        if not self.tails:
            return Fraction(0)
        block, c = divmod(operator.index(m) - self.n - 1, len(self.tails))
        return Fraction(self.tails[c], 1 << self.bits) * (1 - self.r) ** 2 * self.r**block

    def at(self, x: int, y: int) -> Fraction:
        """z(x, y), exactly."""
        x, y = operator.index(x), operator.index(y)
        m = radius(self.shape, x, y)
        if m > self.n:
            return self.shell(m)
        return Fraction(self._known[representative(x, y)], 1 << self.bits)

    def whole(self, reach: int) -> tuple[dict[Place, int], int]:
        """z of all places x >= y >= 0 of norm up to ``reach`` as whole numbers over a power of two,
        and its exponent."""
        period = len(self.tails)
        blocks = -(-max(0, reach - self.n) // period) + 2 if period else 0
        bits = self.bits + blocks * self.ratio_bits
        shells = {m: int(self.shell(m) * (1 << bits)) for m in range(self.n + 1, reach + 1)}
        out = {}
        for place in wedge(self.shape, reach):
            m = radius(self.shape, *place)
            inside = m <= self.n
            out[place] = self._known[place] << (bits - self.bits) if inside else shells[m]
        return out, bits

    @cached_property
    def _table(self) -> Table:
        return Table.of([self.shares])

    def sample(self, count: int, seed: int | None = None) -> Ints:
        """``count`` pairs, shape (count, 2), with exactly these probabilities; from the operating
        system's entropy unless a seed is given, which is unfit for release."""
        source = system_bytes if seed is None else seeded_bytes(seed)
        drawn = draw(self._table, 0, count, source).tolist()
        out = np.empty((count, 2), dtype=np.int64)
        for row, index in enumerate(drawn):
            if index < len(self.core):
                images = orbit(self.places[index])
                out[row] = images[_below(len(images), source)]
            else:
                c, longer = divmod(index - len(self.core), 2)
                out[row] = self._far(c, longer, source)
        return out

    def _far(self, c: int, longer: int, source: Bytes) -> Place:
        """A place in a tail: of the first share j is geometric, of the second one more than the sum
        of two geometric numbers; each place of a shell is as likely as another."""
        j = geometric(source, self.ratio, self.ratio_bits)
        if longer:
            j += 1 + geometric(source, self.ratio, self.ratio_bits)
        m = self.n + 1 + c + j * len(self.tails)
        return on_shell(self.shape, m, _below(around(self.shape) * m, source))


def on_shell(shape: str, m: int, index: int) -> Place:
    """The places of radius m >= 1, numbered 0, 1, … around the centre."""
    side, along = divmod(index, m if shape == "l1" else 2 * m)
    x, y = (m - along, along) if shape == "l1" else (m, along - m)
    for _ in range(side):
        x, y = -y, x
    return x, y


def _below(limit: int, source: Bytes) -> int:
    """A number below the limit, each as likely."""
    bits = (limit - 1).bit_length()
    size = -(-bits // 8)
    while True:
        found = int.from_bytes(source(size), "big") >> (8 * size - bits) if bits else 0
        if found < limit:
            return found


def shifts_within(norm: str, sensitivity: int) -> list[Place]:
    """The shifts x >= y >= 0 but zero of norm at most the sensitivity: all others are images."""
    most = sensitivity**2 if norm == "l2" else sensitivity
    places = ((x, y) for x in range(1, sensitivity + 1) for y in range(x + 1))
    return [place for place in places if radius(norm, *place) <= most]
