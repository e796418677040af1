"""Laws of any shape on finitely many whole numbers, losses with two sides, and the bound of all
such noise (docs/theory/releases.md)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech_noise.additive.law import Ended
from optmech_noise.additive.loss import NoiseLoss

Curve = tuple[tuple[Exact, Exact], ...]
"""Pairs (ε, δ), all of which are kept."""
Support = tuple[int | None, int | None]


@record
class ShapedLaw(Ended):
    """z(``low`` + i) = ``masses[i]`` / 2^bits, and nothing elsewhere. Raises ProblemError where
    these are no probabilities that sum to one.

    Examples
    --------
    >>> law = om.noise.ShapedLaw(2, -1, (1, 2, 1))
    >>> print(law.at(0), law.low, law.high, law.n, law.count, law.is_even)
    1/2 -1 1 1 3 True
    >>> print(law.excess(1, law.at(0) * 2))  # Σ max(0, z(k) - z(k + 1))
    1/2
    >>> print(law.shares)
    (1, 2, 1)
    >>> near, far, bits = law.pairs(1)
    >>> len(near), far, bits, law.sample(3, seed=1).shape
    (5, [], 2, (3,))
    """

    bits: int
    low: int
    masses: tuple[int, ...]

    r = Fraction(0)
    falls = False

    @property
    def shares(self) -> Sequence[int]:
        return self.masses

    def pairs(self, shift: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
        """z(i) and z(i + ``shift``) as whole numbers over a power of two, of all places i, and its
        exponent; nothing is beyond."""
        pad = [0] * abs(shift)
        here = [*pad, *self.masses, *pad]
        there = [*pad, *here, *pad][abs(shift) + shift :]
        return list(zip(here, there, strict=False)), [], self.bits

    @property
    def high(self) -> int:
        """The last place."""
        return self.low + len(self.masses) - 1

    @property
    def n(self) -> int:
        """How far from 0 it reaches."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_even(self) -> bool:
        """Whether z(k) = z(-k)."""
        return self.low == -self.high and self.masses == self.masses[::-1]

    def shifts(self, most: int) -> list[int]:
        """Those up to a size that may reveal different things, the largest last.

        Examples
        --------
        >>> om.noise.optimal(1, "1/1000", support=(0, None)).law.shifts(2)
        [-1, 1, -2, 2]
        """
        sides = (1,) if self.is_even else (-1, 1)
        return [side * s for s in range(1, most + 1) for side in sides]

    def at(self, k: int) -> Fraction:
        """z(k), exactly."""
        inside = self.low <= k <= self.high
        return Fraction(self.masses[k - self.low] if inside else 0, 1 << self.bits)

    def excess(self, shift: int, power: Fraction) -> Fraction:
        """Σ_k max(0, z(k) - ``power`` z(k + shift)), exactly."""
        near, _, bits = self.pairs(shift)
        a, b = power.numerator, power.denominator
        return Fraction(sum(d for p, q in near if (d := b * p - a * q) > 0), b << bits)

    def sample(self, count: int, seed: int | None = None) -> Ints:
        """``count`` draws with exactly these probabilities."""
        return np.asarray(self._begun(count, seed)[0] + self.low)


@record
class SidedLoss(Shown):
    """A loss of noise below 0 and one of noise above 0. Raises ProblemError where they differ at 0.

    Examples
    --------
    >>> of = om.noise.NoiseLoss.of
    >>> loss = om.noise.SidedLoss(of("absolute"), of([0, 3]))
    >>> print(loss(-2), loss(2), loss.is_even, loss.last)
    2 6 False 1
    """

    below: NoiseLoss
    above: NoiseLoss

    def __post_init__(self) -> None:
        if self.below(0) != self.above(0):
            raise ProblemError("differs between its sides at 0", where="loss")

    def __call__(self, k: int) -> Fraction:
        return self.above(k) if k >= 0 else self.below(-k)

    @property
    def minorant(self) -> SidedLoss:
        """The least that it may be."""
        return SidedLoss(self.below.minorant, self.above.minorant)

    @property
    def last(self) -> int:
        """From here on, either side, it does not fall."""
        return max(self.below.last, self.above.last)

    @property
    def is_even(self) -> bool:
        """Whether both sides are the same."""
        return self.below == self.above

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.is_even:
            return self.above.words
        return f"{self.above.words}; below 0 {self.below.words}"


@record
class Part:
    """Multipliers of the pair ``bound`` and a signed shift: ``inner`` of the places from ``first``
    on; beyond them on the shift's side ``tail``, and 0 elsewhere; none is above ``price``. Of even
    noise -shift has the mirror image."""

    bound: int
    shift: int
    first: int
    inner: tuple[int, ...]
    tail: int
    price: int

    @property
    def last(self) -> int:
        """Where the inner ones end."""
        return self.first + len(self.inner) - 1

    def at(self, k: int) -> int:
        """y(k)."""
        if self.first <= k <= self.last:
            return self.inner[k - self.first]
        return self.tail if (k > self.last) == (self.shift > 0) else 0

    def mirrored(self) -> Part:
        """Of the other shift, for even noise."""
        return Part(self.bound, -self.shift, -self.last, self.inner[::-1], self.tail, self.price)


@record
class Parts:
    """Multipliers over 2^bits, with their mirror images where ``even``. Raises ProblemError for
    numbers that are none."""

    bits: int
    even: bool
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        names = {(part.bound, part.shift) for part in self.parts}
        sound = self.bits >= 0 and len(names) == len(self.parts)
        for part in self.parts:
            least, most = min(*part.inner, part.tail), max(*part.inner, part.tail)
            sound &= least >= 0 and most <= part.price and part.shift != 0
            sound &= part.shift > 0 or not self.even
        if not sound:
            raise ProblemError("are not as they must be", where="multipliers")

    @property
    def every(self) -> list[Part]:
        """All of them."""
        return [*self.parts, *(part.mirrored() for part in self.parts if self.even)]


def require_curve(curve: Sequence[tuple[Exact, Exact]], where: str = "curve") -> None:
    """Raise ProblemError for no pairs, too many, or δ that are 0."""
    if not 1 <= len(curve) <= MOST_PAIRS_OF:
        raise ProblemError(
            f"has {len(curve)} pairs", where=where, remedy=f"Give 1 to {MOST_PAIRS_OF}"
        )
    if any(bracket(part)[0] <= 0 for _, part in curve):
        raise ProblemError(
            "has a δ of 0, which no noise that ends keeps", where=where, remedy="Allow some δ"
        )
    rates = [rate for rate, _ in curve]
    if any(not float(a) < float(b) for a, b in itertools.pairwise(rates)):
        raise ProblemError("has an ε that does not grow", where=where, remedy="Sort the pairs")


MOST_PAIRS_OF = 64
"""Of one promise."""
