"""Noise of any shape, for a promise of several (ε, δ) at once: only upwards, within a range, for
losses that are not even, or even for a whole trade-off curve.

The law has finitely many places. Its promise is Σ_k max(0, z(k) - e^ε z(k + s)) <= δ for every pair
(ε, δ) and every shift, upwards and downwards, decided exactly. For multipliers y >= 0 of a pair and
a shift, at most λ, every law within the support has E c(Z) >= min_k C(k) - Σ δ λ, with C(k) = c(k)
+ Σ y(k) - e^ε y(k - s) (docs/theory/releases.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, Number, parse_exact
from optmech.exact.sampler import Table, draw, seeded_bytes, system_bytes
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.bound import BITS
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.law import MOST_BITS, MOST_ENTRIES
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.real_loss import RealLoss
from optmech_noise.additive.result import MOST_DRAWS, LatticeNoise

Curve = tuple[tuple[Exact, Exact], ...]
"""Pairs (ε, δ), all of which are kept."""
Support = tuple[int | None, int | None]


@record
class ShapedLaw(Shown):
    """z(``low`` + i) = ``masses[i]`` / 2^bits, and nothing elsewhere. Raises ProblemError where
    these are no probabilities that sum to one.

    Examples
    --------
    >>> law = om.noise.ShapedLaw(2, -1, (1, 2, 1))
    >>> print(law.at(0), law.low, law.high, law.n, law.count, law.is_even)
    1/2 -1 1 1 3 True
    >>> print(law.excess(1, law.at(0) * 2))  # Σ max(0, z(k) - z(k + 1))
    1/2
    >>> near, far, bits = law.pairs(1)
    >>> len(near), far, bits, law.sample(3, seed=1).shape
    (5, [], 2, (3,))
    """

    bits: int
    low: int
    masses: tuple[int, ...]

    def __post_init__(self) -> None:
        sound = 0 < self.bits <= MOST_BITS and 0 < len(self.masses) <= MOST_ENTRIES
        if not sound or min(self.masses) < 0 or sum(self.masses) != 1 << self.bits:
            raise ProblemError("the numbers are no probabilities that sum to one", where="law")

    tails = ()
    r = Fraction(0)
    falls = False

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
    def count(self) -> int:
        """How many numbers make it up."""
        return len(self.masses)

    @property
    def is_even(self) -> bool:
        """Whether z(k) = z(-k)."""
        return self.low == -self.high and self.masses == self.masses[::-1]

    def at(self, k: int) -> Fraction:
        """z(k), exactly."""
        inside = self.low <= k <= self.high
        return Fraction(self.masses[k - self.low] if inside else 0, 1 << self.bits)

    def excess(self, shift: int, power: Fraction) -> Fraction:
        """Σ_k max(0, z(k) - ``power`` z(k + shift)), exactly."""
        a, b = power.numerator, power.denominator
        pad = [0] * abs(shift)
        there = [*pad, *self.masses, *pad][abs(shift) + shift :]
        total = sum(d for p, q in zip(self.masses, there, strict=False) if (d := b * p - a * q) > 0)
        return Fraction(total, b << self.bits)

    @cached_property
    def _table(self) -> Table:
        return Table.of([list(self.masses)])

    def sample(self, count: int, seed: int | None = None) -> Ints:
        """``count`` draws with exactly these probabilities."""
        source = system_bytes if seed is None else seeded_bytes(seed)
        return np.asarray(draw(self._table, 0, count, source) + self.low)


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


def shaped_bound(
    loss: SidedLoss | NoiseLoss, curve: Curve, sensitivity: int, support: Support, found: Parts
) -> Fraction:
    """A lower bound of E c(Z) of all noise within the support that keeps every pair; raises
    ProblemError for multipliers of other pairs or shifts."""
    every = found.every
    if any(p.bound >= len(curve) or abs(p.shift) > sensitivity for p in every):
        raise ProblemError("there is a shift beyond the sensitivity", where="multipliers")
    powers = [exp_bounds(rate, BITS)[1] for rate, _ in curve]
    low, high = shaped_range(loss, sensitivity, support, every)
    wide = sensitivity + 1
    gains = [0] * (high - low + 1)
    unit = 1 << found.bits
    harms = [[0] * (high - low + 1) for _ in curve]
    for part in every:
        y = [part.at(k) for k in range(low - wide, high + wide + 1)]
        own = harms[part.bound]
        for i in range(high - low + 1):
            gains[i] += y[i + wide]
            own[i] += y[i + wide - part.shift]
    least: Fraction | None = None
    for k in range(low, high + 1):
        value = loss(k) * unit + gains[k - low]
        value -= sum((a * own[k - low] for a, own in zip(powers, harms, strict=True)), Fraction(0))
        least = value if least is None else min(least, value)
    assert least is not None
    cost = sum((bracket(curve[p.bound][1])[1] * p.price for p in every), Fraction(0))
    return (least - cost) / unit


def shaped_range(
    loss: SidedLoss | NoiseLoss, sensitivity: int, support: Support, every: Sequence[Part]
) -> tuple[int, int]:
    """The places that a bound is looked for at: beyond them all but the loss is constant, and that
    does not fall."""
    wide = sensitivity + 1
    low = min([-loss.last, *(p.first for p in every)]) - wide
    high = max([loss.last, *(p.last for p in every)]) + wide
    return (
        low if support[0] is None else support[0],
        high if support[1] is None else support[1],
    )


class CurveNoise(LatticeNoise):
    """Noise with a law of finitely many places that keeps every pair of a curve."""

    law: Any
    measure: Any
    curve: Curve
    multipliers: Parts | None
    support: Support = (None, None)
    _apart = frozenset({"multipliers", "seconds"})

    @property
    def epsilon(self) -> Exact:  # type: ignore[override]
        """That of the first pair."""
        return self.curve[0][0]

    @property
    def promise(self) -> str:
        """The promise in words."""
        pairs = ", ".join(f"({rate.words}, {part.words})" for rate, part in self.curve)
        ends = ""
        if self.support != (None, None):
            low, high = ("any" if end is None else str(end) for end in self.support)
            ends = f", noise from {low} to {high}"
        many = "" if len(self.curve) == 1 else " all"
        return f"(ε, δ) ={many} {pairs} at sensitivity {float(self.sensitivity):.9g}{ends}"

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        within = "" if self.support == (None, None) else " and within the same range"
        return f"all noise that is as private{within}"

    @property
    def shown(self) -> str:
        """The law in words."""
        return f"whole numbers over 2^{self.law.bits} from {self.law.low} to {self.law.high}"

    @property
    def edge(self) -> str:
        """Where the law ends, in words."""
        return f"from {self.law.low} to {self.law.high}"

    @property
    def within(self) -> str:
        return self.edge

    def at(self, epsilon: Number) -> Fraction:
        """A number at or above δ(ε) of one release, exact but for e^ε, which is rounded; raises
        ProblemError for an ε that is none."""
        return self._largest(parse_exact(epsilon, where="epsilon"))

    def _largest(self, rate: Exact) -> Fraction:
        power = exp_bounds(rate, BITS)[0]
        sides = (1,) if self.law.is_even else (1, -1)
        shifts = [side * s for s in range(1, self.steps + 1) for side in sides]
        found: Fraction = max(self.law.excess(s, power) for s in shifts)
        return found

    @cached_property
    def spent(self) -> tuple[Fraction, ...]:
        """δ at the ε of every pair."""
        return tuple(self._largest(rate) for rate, _ in self.curve)

    @property
    def is_private(self) -> bool:
        """Whether every pair is kept, decided exactly."""
        low, high = self.support
        inside = (low is None or self.law.low >= low) and (high is None or self.law.high <= high)
        pairs = zip(self.spent, self.curve, strict=True)
        return inside and all(found <= bracket(part)[0] for found, (_, part) in pairs)

    @property
    def decided(self) -> tuple[float, str]:
        """The δ of the pairs, and what was decided of them in words."""
        listed = ", ".join(
            f"{float(found):.6g} at ε = {rate.words}"
            for found, (rate, _) in zip(self.spent, self.curve, strict=True)
        )
        return float(max(self.spent)), f"δ is {listed}"

    def _proved(self, found: Parts) -> Fraction:
        low = self.minorant
        return shaped_bound(low, self.curve, self.bounding, self.support, found)

    @property
    def stated(self) -> dict[str, object]:
        pairs = [[rate.text, part.text] for rate, part in self.curve]
        return {"curve": pairs, "sensitivity": float(self.sensitivity), "support": self.support}


@kind("Give what om.noise.optimal(curve=…) or (…, support=…) returns", {"str": LOAD})
@record
class ShapedNoise(CurveNoise):
    """The result of ``om.noise.optimal`` with a ``curve`` or a ``support``, or a loss with two
    sides: noise on the integers with a proof, as ``NoiseDesign`` is.

    Examples
    --------
    >>> padding = om.noise.optimal(1, "1/1000", support=(0, None))  # only adds
    >>> print(padding.law.low, f"{padding.lower_bound:.4f} {padding.loss:.4f}")
    0 6.2026 6.2026
    >>> print(round(float(padding.pmf(0)), 6))  # as much as δ allows
    0.001
    >>> print(float(padding.at(1)) <= 1e-3, padding.sample(seed=1) >= 0)
    True True
    >>> padding.require_private() is padding, padding.drawn(3, seed=1).shape
    (True, (3,))
    """

    law: ShapedLaw
    measure: SidedLoss
    curve: Curve
    sensitivity: int
    support: Support = (None, None)
    multipliers: Parts | None = None
    seconds: float = 0.0

    @property
    def minorant(self) -> Any:
        """The least that the loss may be."""
        return SidedLoss(self.measure.below.minorant, self.measure.above.minorant)

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        law = self.law
        places = enumerate(law.masses, law.low)
        return sum((self.measure(k) * v for k, v in places), Fraction(0)) / (1 << law.bits)

    def _bound(self) -> Fraction:
        return Fraction(0) if self.multipliers is None else self._proved(self.multipliers)

    @property
    def costs(self) -> Any:
        """Not of noise that has two sides."""
        raise NotImplementedError

    def pmf(self, k: int) -> Fraction:
        """P(Z = k), exactly; raises ProblemError unless k is a whole number."""
        return self.law.at(whole(k, "k", None))

    def sample(self, size: int | None = None, *, seed: int | None = None) -> int | Ints:
        """One draw of the noise, or ``size`` of them, with exactly the probabilities of ``pmf``,
        from the operating system's entropy; a seed makes draws reproducible and unfit for release.
        Raises ProblemError for a size that is none."""
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWS)
        drawn = self.law.sample(count, seed)
        return int(drawn[0]) if size is None else drawn


@kind("Give what om.noise.real(curve=…) returns", {"str": LOAD}, "real noise for a curve")
@record
class ShapedRealNoise(CurveNoise, CellNoise):
    """The result of ``om.noise.real`` with a ``curve``: even noise on the real line that keeps
    every pair, with a bound of all real noise that does.

    Examples
    --------
    >>> noise = om.noise.real(curve=[(0, 0.25), (1, 0.01)], cells=8)
    >>> print(noise.gap < 0.02, float(noise.at(1)) <= 0.01)
    True True
    >>> len(noise.sample(size=2, bits=8, seed=1)), noise.drawn(2, seed=1).shape
    (2, (2,))
    """

    law: ShapedLaw  # type: ignore[assignment]
    measure: RealLoss
    curve: Curve
    sensitivity: Fraction
    cells: int = 16
    multipliers: Parts | None = None
    seconds: float = 0.0

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        law = self.law
        places = enumerate(law.masses, law.low)
        total = sum((self.majorant(k) * v for k, v in places), Fraction(0))
        return self.means.unit * total / (1 << law.bits)

    @property
    def shown(self) -> str:
        return f"density constant on {self.law.count} cells of {float(self.step):.6g}"

    @property
    def edge(self) -> str:
        return f"{self.law.high} to either side"


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
