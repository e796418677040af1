"""A symmetric distribution on all integers in finitely many whole numbers, tails included."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import checked, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.sampler import Bytes, Table, draw, seeded_bytes, system_bytes
from optmech_noise.additive.loss import NoiseLoss, mean_beyond

MOST_BITS = 4096
MOST_ENTRIES = 200_000
SLOWEST = 24
"""Ratios of tails are up to 1 - 2^-24: a draw takes a step for every period it goes out."""


Places = tuple[int, int]


_FARTHEST = 10**7
"""Places that are looked at one by one."""


def _listed(given: object) -> tuple[int, ...]:
    """Numbers in a row."""
    if not isinstance(given, tuple | list):
        raise ProblemError("are no numbers in a row", remedy="Give a tuple of them")
    return tuple(given)


class Drawn(Shown):
    """What laws in finitely many whole numbers share: draws."""

    bits: int

    @property
    @abstractmethod
    def shares(self) -> Sequence[int]:
        """How likely the parts are that draws begin with, over 2^bits."""

    @cached_property
    def _table(self) -> Table:
        return Table.of([list(self.shares)])

    def _begun(self, count: int, seed: int | None) -> tuple[Ints, Bytes]:
        """The parts of ``count`` draws, and the bytes for what remains of them."""
        source = system_bytes if seed is None else seeded_bytes(seed)
        return draw(self._table, 0, count, source), source

    def _require_sound(self, count: int) -> None:
        """Raise ProblemError where so many numbers are no probabilities of sum one."""
        sound = 0 < self.bits <= MOST_BITS and 0 < count <= MOST_ENTRIES
        if not sound or min(self.shares) < 0 or sum(self.shares) != 1 << self.bits:
            raise ProblemError("the numbers are no probabilities that sum to one", where="law")


class Ended(Drawn):
    """A law that is its shares. Raises ProblemError where these are no probabilities of sum one."""

    tails = ()

    def __post_init__(self) -> None:
        self._require_sound(len(self.shares))

    @property
    def count(self) -> int:
        """How many numbers make it up."""
        return len(self.shares)


class Tailed(Drawn):
    """A law with tails, and the ratio in which they fall."""

    tails: tuple[int, ...]
    ratio: int
    ratio_bits: int

    @property
    def r(self) -> Fraction:
        """The ratio of the tails; 0 without tails."""
        return Fraction(self.ratio, 1 << self.ratio_bits)

    def outside(self, k: int, dimensions: int = 1) -> Fraction:
        """What lies k places beyond the first of the tails, from 0 on: the share (1 - r)^d r^j of
        a tail in the period j.

        Examples
        --------
        >>> design = om.noise.optimal(epsilon="ln 2")
        >>> print(round(float(design.law.outside(1) / design.law.outside(0)), 6))  # e^-ε
        0.5
        """
        if not self.tails:
            return Fraction(0)
        block, c = divmod(k, len(self.tails))
        share = (1 - self.r) ** dimensions * self.r**block
        return Fraction(self.tails[c], 1 << self.bits) * share

    def _periods(self, source: Bytes) -> int:
        """A geometric number: how many numbers in a row are below the ratio."""
        size = -(-self.ratio_bits // 8)
        drop = 8 * size - self.ratio_bits
        steps = 0
        while int.from_bytes(source(size), "big") >> drop < self.ratio:
            steps += 1
        return steps


@record
class Law(Tailed):
    """z(k) = z(-k) = ``window[k]`` / 2^bits for |k| <= n, and geometric tails beyond.

    ``tails[c - 1]`` / 2^bits is all the probability of n + c, n + c + p, n + c + 2p, …, on either
    side (p tails, 1 <= c <= p): the share (1 - r) r^j of it is that of n + c + jp, with
    r = ``ratio`` / 2^ratio_bits < 1. Without tails the noise never exceeds n.

    Raises ProblemError where these are no probabilities that sum to one.

    Examples
    --------
    >>> law = om.noise.optimal(epsilon="ln 2", gap=1e-3).law
    >>> print(round(float(law.at(0)), 4), round(float(law.at(1)), 4))  # 1/3 and 1/6
    0.3333 0.1667
    >>> print(round(float(law.upper_tail(1)), 4))  # P(Z >= 1)
    0.3333
    >>> print(round(float(law.expected(om.noise.NoiseLoss.of("absolute"))), 3))
    1.333
    >>> values, bits = law.whole(2)
    >>> [value / 2**bits == float(law.at(k)) for k, value in enumerate(values)]
    [True, True, True]
    >>> near, far, bits = law.pairs(shift=1)
    >>> max(a / b for a, b in near + far) <= 2  # e^ε
    True
    >>> law.sample(3, seed=1).shape
    (3,)
    """

    bits: int
    window: tuple[int, ...] = checked(_listed)
    tails: tuple[int, ...] = checked(_listed, default=())
    ratio: int = 0
    ratio_bits: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = (self.bits, self.ratio, self.ratio_bits, *self.window, *self.tails)
        if any(type(number) is not int for number in given):
            raise ProblemError("the numbers of a law are whole", where="law", remedy="Give ints")
        self._require_sound(self.count if self.window else 0)
        require_falling(self.tails, self.ratio, self.ratio_bits)

    @property
    def n(self) -> int:
        """Where the window ends."""
        return len(self.window) - 1

    @property
    def count(self) -> int:
        """How many numbers make it up."""
        return len(self.window) + len(self.tails)

    def at(self, k: int) -> Fraction:
        """z(k), exactly."""
        k = abs(whole(k, "k", None))
        if k <= self.n:
            return Fraction(self.window[k], 1 << self.bits)
        return self.outside(k - self.n - 1)

    def whole(self, last: int) -> tuple[list[int], int]:
        """z(0), …, z(last) as whole numbers over a power of two, and its exponent."""
        last = whole(last, "last", 0, _FARTHEST)
        period = len(self.tails)
        blocks = -(-max(0, last - self.n) // period) if period else 0
        width = self.ratio_bits * blocks
        out = [value << width for value in self.window[: last + 1]]
        rest = (1 << self.ratio_bits) - self.ratio
        for block in range(blocks):
            shift = self.ratio_bits * (blocks - block - 1)
            out += [value * rest * self.ratio**block << shift for value in self.tails]
        out += [0] * (last + 1 - len(out))
        return out[: last + 1], self.bits + width

    def pairs(self, shift: int) -> tuple[list[Places], list[Places], int]:
        """z(i) and z(i + ``shift``) as whole numbers over a power of two, and its exponent: of all
        places i by themselves, and of the first period of the tails on either side, whose sums
        over all periods are 1/(1 - r) times theirs; shift >= 1."""
        shift = whole(shift, "shift", 1, _FARTHEST)
        n, period = self.n, len(self.tails)
        values, bits = self.whole(n + 2 * shift + 2 * period)
        both, centre = values[:0:-1] + values, len(values) - 1

        def between(first: int, end: int) -> list[Places]:
            begin, stop = centre + first, centre + end
            return [*zip(both[begin:stop], both[begin + shift : stop + shift], strict=True)]

        right, left = n + 1, -n - shift
        far = between(right, right + period) + between(left - period, left)
        return between(left, right), far, bits

    def shifts(self, most: int) -> list[int]:
        """Those up to a size that may reveal the most, the largest last: only that where the law
        falls from the centre.

        Examples
        --------
        >>> om.noise.optimal(epsilon="ln 2", gap=1e-3).law.shifts(3)
        [3]
        """
        return [most] if self.falls else list(range(1, most + 1))

    @cached_property
    def falls(self) -> bool:
        """Whether z(0) >= z(1) >= z(2) >= …, tails included."""
        values, _ = self.whole(self.n + 2 * len(self.tails) + 1)
        return all(a >= b for a, b in pairwise(values))

    def expected(self, loss: NoiseLoss) -> Fraction:
        """E c(Z), exactly. The window must reach to where the loss is a polynomial."""
        if not isinstance(loss, NoiseLoss):
            raise ProblemError("is no NoiseLoss", where="loss", remedy="Give NoiseLoss.of(…)")
        if self.n < loss.last and self.tails:
            raise ProblemError("the window ends within the table of the loss", where="law")
        inner = sum(loss(k) * value for k, value in enumerate(self.window))
        total = 2 * inner - loss(0) * self.window[0]
        # the mean is linear in the polynomial
        powers = [Fraction(0)] * 3
        for k, mass in enumerate(self.tails, self.n + 1):
            powers = [a + mass * b for a, b in zip(powers, loss.polynomial(k), strict=True)]
        total += 2 * mean_beyond(powers, len(self.tails), self.r)
        return total / (1 << self.bits)

    @cached_property
    def floats(self) -> Floats:
        """z(0), …, z(n + p), nearly."""
        return np.array([float(self.at(k)) for k in range(self.n + len(self.tails) + 1)])

    def upper_tail(self, k: int) -> Fraction:
        """P(Z >= k) for k >= 1, exactly."""
        k = whole(k, "k", 1)
        inner = sum(self.window[k:])
        if not self.tails:
            return Fraction(inner, 1 << self.bits)
        beyond = max(0, k - self.n - 1)
        block, c = divmod(beyond, len(self.tails))
        mass = sum(self.tails[c:]) + self.r * sum(self.tails[:c])
        return (inner + mass * self.r**block) / (1 << self.bits)

    @property
    def shares(self) -> Sequence[int]:
        """Probabilities of the places from one end to the other over 2^bits, and of the tails."""
        return [*self.tails[::-1], *self.window[:0:-1], *self.window, *self.tails]

    def sample(self, count: int, seed: int | None = None) -> Ints:
        """``count`` draws with exactly these probabilities, from the operating system's entropy
        unless a seed is given, which is unfit for release."""
        out, source = self._begun(whole(count, "count", 0, _FARTHEST), seed)
        out = out - (self.n + len(self.tails))
        outside = np.flatnonzero(np.abs(out) > self.n)
        steps = np.array([self._periods(source) for _ in outside], dtype=np.int64)
        out[outside] += np.sign(out[outside]) * steps * len(self.tails)
        return out


def certain(place: int = 0) -> Law:
    """The law of never anything but ±``place``."""
    return Law(1, (*(0,) * place, 1)) if place else Law(1, (2,))


def require_falling(tails: tuple[int, ...], ratio: int, bits: int) -> None:
    """Raise ProblemError for tails with a ratio that is none, or that no draw would come to an end
    with."""
    if not (0 <= bits <= MOST_BITS and 0 <= ratio < 1 << bits):
        raise ProblemError("the ratio of the tails is not from 0 to below 1", where="law")
    if (1 << bits) - ratio < 1 << max(0, bits - SLOWEST):
        raise ProblemError(f"the ratio of the tails is above 1 - 2^-{SLOWEST}", where="law")
    if bool(tails) != bool(ratio) or (tails and not any(tails)):
        raise ProblemError("there is a ratio where there are tails, only", where="law")
