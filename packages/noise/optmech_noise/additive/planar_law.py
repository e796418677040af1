"""A distribution on pairs of whole numbers with the symmetries of the square, tails included, and
losses of their norm."""

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.sampler import Bytes
from optmech_noise.additive.law import MOST_BITS, Tailed, require_falling
from optmech_noise.additive.loss import NAMES, N, NoiseLoss, mean_beyond

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


@record
class PlanarLaw(Tailed):
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

    def __post_init__(self) -> None:
        super().__post_init__()
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

    @cached_property
    def shares(self) -> tuple[int, ...]:
        """Probabilities over 2^(bits + ratio_bits): of the orbits of all places, and of every tail
        τ: a τ (n + c)(1 - r) and a τ p r with a m places at radius m, whose sum is that of
        a τ (1 - r)² r^j (n + c + jp) over j >= 0."""
        return shares(self.shape, self.n, self.core, self.tails, (self.ratio, self.ratio_bits))

    @cached_property
    def _known(self) -> dict[Place, int]:
        return dict(zip(self.places, self.core, strict=True))

    @property
    def count(self) -> int:
        """How many numbers make it up."""
        return len(self.core) + len(self.tails)

    def shell(self, m: int) -> Fraction:
        """z at radius m > n."""
        return self.outside(operator.index(m) - self.n - 1, 2)

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

    def sample(self, count: int, seed: int | None = None) -> Ints:
        """``count`` pairs, shape (count, 2), with exactly these probabilities; from the operating
        system's entropy unless a seed is given, which is unfit for release."""
        drawn, source = self._begun(count, seed)
        out = np.empty((count, 2), dtype=np.int64)
        for row, index in enumerate(drawn.tolist()):
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
        j = self._periods(source)
        if longer:
            j += 1 + self._periods(source)
        m = self.n + 1 + c + j * len(self.tails)
        return on_shell(self.shape, m, _below(around(self.shape) * m, source))


def shares(
    shape: str, n: int, core: Sequence[int], tails: Sequence[int], fall: tuple[int, int]
) -> tuple[int, ...]:
    """Of numbers for the places of a window and for tails, as ``PlanarLaw.shares``."""
    ratio, unit, each = fall[0], 1 << fall[1], around(shape)
    out = [v * len(orbit(place)) * unit for place, v in zip(wedge(shape, n), core, strict=True)]
    for m, mass in enumerate(tails, n + 1):
        out += [each * mass * m * (unit - ratio), each * mass * len(tails) * ratio]
    return tuple(out)


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


_ROOT_BITS = 80


def shell_mean(polynomial: tuple[N, N, N], start: int, period: int, ratio: N) -> N:
    """The mean of m (α + βj + γj²) at radii m = ``start`` + j, as ``mean_beyond``."""
    a, b, g = polynomial
    return mean_beyond((a * start, a + b * start, b + g * start, g), period, ratio)


@record
class PlanarLoss(Shown):
    """c(‖k‖) for an even loss c of one number and the norm "l1", "l2" or "linf". With "l2" c is
    absolute, square or a threshold; roots are enclosed, and sums of losses rounded up."""

    loss: NoiseLoss
    norm: str

    def __post_init__(self) -> None:
        super().__post_init__()
        require_norm(self.norm, "loss_norm")
        if self.norm == "l2" and self.loss.name not in NAMES:
            raise ProblemError(
                "is a loss of whole numbers, which l2 norms are not",
                where="loss",
                remedy="Give absolute, square or threshold, or the norm l1 or linf",
            )

    @property
    def words(self) -> str:
        """The loss in words."""
        size = f"‖noise‖{NORMS[self.norm][1:]}"
        if self.loss.name == "threshold":
            return f"probability of {size} above {self.loss.last - 1}"
        named = {"absolute": f"expected {size}", "square": f"expected {size}²"}
        return named.get(
            self.loss.name, f"expected loss of {self.loss.described}".replace("|noise|", size)
        )

    def bounds(self, place: Place) -> tuple[Fraction, Fraction]:
        """The loss of a place, from below and above; equal but for l2 norms and functions."""
        size = radius(self.norm, *place)
        if self.norm != "l2":
            return self.loss.minorant(size), self.loss(size)
        return self._of_square(size)

    def _of_square(self, size: int) -> tuple[Fraction, Fraction]:
        if self.loss.name == "square":
            return Fraction(size), Fraction(size)
        if self.loss.name == "threshold":
            value = Fraction(size > (self.loss.last - 1) ** 2)
            return value, value
        root = math.isqrt(size << (2 * _ROOT_BITS))
        exact = root * root == size << (2 * _ROOT_BITS)
        unit = 1 << _ROOT_BITS
        return Fraction(root, unit), Fraction(root + (not exact), unit)

    def least_beyond(self, shape: str, m: int) -> Fraction:
        """At most the loss of every place of radius m or more."""
        if self.norm == "l2":
            # ‖k‖₂ is at least ‖k‖∞, and ‖k‖₁/√2
            return self._of_square(m * m if shape == "linf" else -(-m * m // 2))[0]
        start = -(-m // 2) if (shape, self.norm) == ("l1", "linf") else m
        if start >= self.loss.last:
            return self.loss.minorant(start)
        return min(self.loss.values[start:])

    def beyond(self, shape: str, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(α, β, γ) with α + βj + γj² at least the loss of every place of radius ``start`` + j.

        Raises ProblemError where places of that radius lie within a table.
        """
        least = -(-start // 2) if (shape, self.norm) == ("l1", "linf") else start
        if least <= self.loss.last:
            raise ProblemError("the window ends within the table of the loss", where="law")
        grown = Fraction(1)
        if shape == "linf":
            grown = {"l1": Fraction(2), "linf": Fraction(1), "l2": Fraction(3, 2)}[self.norm]
        a, b, g = self.loss.polynomial(self.loss.last)
        # c(last + t) with t = grown (start + j) - last
        at = grown * start - self.loss.last
        return a + b * at + g * at * at, grown * (b + 2 * g * at), g * grown**2
