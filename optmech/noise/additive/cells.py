"""Noise that is even within the cells of a lattice on the real line, and its losses.

Rounding a real number to a neighbour on the lattice, up with the probability of its fraction,
commutes with shifts by whole steps: what is proved of all noise on the lattice is proved of all
real noise. Noise that is even within cells has at a shift between two steps the mean of what it has
at these: it is private at every real shift (docs/theory.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import frozen

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.number import Number, parse_exact
from optmech.exact.sampler import Bytes, system_bytes
from optmech.noise.additive.certified import LatticeNoise
from optmech.noise.additive.loss import LARGEST, NAMES, NoiseLoss, require_width

MOST_CELLS = 50_000
"""Of one sensitivity."""
MOST_CORNERS = 1000
MOST_DRAWN = 10**6
_DEEP = 4096
_FARTHEST = 10_000

Corners = tuple[tuple[Fraction, Fraction], ...]


@frozen
class RealLoss(ReadOnly):
    """An even loss of real noise x: |x| ("absolute"), x² ("square"), 1 where |x| > ``width`` and 0
    elsewhere ("threshold"), or straight from corner to corner of (|x|, loss), the first at 0, and
    on with the last slope ("corners").

    Examples
    --------
    >>> loss = om.noise.RealLoss.of([(0, 0), (1, 0), (2, 3)])
    >>> print(loss(-1), loss(4))
    0 9
    >>> cells = loss.on(loss.corners[1][0] / 2)  # on a lattice of step 1/2
    >>> [float(cells.below(k)) for k in range(5)]  # at 0, 1/2, 1, 3/2, 2
    [0.0, 0.0, 0.0, 1.5, 3.0]
    """

    name: str
    width: Fraction = Fraction(0)
    corners: Corners = ()

    @classmethod
    def of(cls, loss: object, width: Number | None = None) -> RealLoss:
        """A loss from its name, or from its corners; raises ProblemError for anything else."""
        if isinstance(loss, RealLoss):
            return loss
        require_width(loss, width)
        if not isinstance(loss, str):
            return cls("corners", corners=_corners(loss))
        if loss not in NAMES:
            raise ProblemError(
                f"{loss[:60]!r} is no loss of noise",
                where="loss",
                remedy=f"Give one of {', '.join(NAMES)}, or corners [(0, c), (x, c), …]",
            )
        return cls(loss) if width is None else cls(loss, rational(width, "width", positive=False))

    def __call__(self, x: Fraction | int) -> Fraction:
        """c(x), exactly."""
        x = abs(Fraction(x))
        if self.name == "absolute":
            return x
        if self.name == "square":
            return x * x
        if self.name == "threshold":
            return Fraction(x > self.width)
        k = max(k for k, (place, _) in enumerate(self.corners) if place <= x)
        (a, low), (b, high) = self.corners[min(k, len(self.corners) - 2) :][:2]
        return low + (high - low) * (x - a) / (b - a)

    @property
    def words(self) -> str:
        """The loss in words."""
        named = {"absolute": "expected |noise|", "square": "expected noise²"}
        if self.name == "threshold":
            return f"probability of noise beyond ±{float(self.width):g}"
        return named.get(self.name, f"expected loss straight between {len(self.corners)} corners")

    def on(self, step: Fraction) -> Cells:
        """What the loss is on a lattice of this step."""
        zero, one, quarter = Fraction(0), Fraction(1), Fraction(1, 4)
        if self.name == "absolute":
            above = NoiseLoss("table", (quarter, one), one, zero)
            return Cells(NoiseLoss.of("absolute"), above, step, zero)
        if self.name == "square":
            above = NoiseLoss("function", (quarter / 3,), zero, one)
            return Cells(NoiseLoss.of("square"), above, step * step, quarter)
        if self.name == "threshold":
            zeros = math.ceil(self.width / step)
            means = [self._beyond(k, self.width / step) for k in range(zeros + 2)]
            below = (zero,) * (zeros + 1) + (one,)
            return Cells(
                NoiseLoss("table", below, zero, zero),
                NoiseLoss("table", tuple(means), zero, zero),
                one,
                zero,
            )
        last = self.corners[-1][0]
        places = [k * step for k in range(math.ceil(last / step) + 2)]
        values = [self(x) for x in places]
        slope = values[-1] - values[-2]
        means = [self._mean(k, step) for k in range(len(places))]
        charge = max((self._over(x, y, step) for x, y in pairwise(places)), default=zero)
        return Cells(
            NoiseLoss("table", tuple(values), slope, zero),
            NoiseLoss("table", tuple(means), slope, zero),
            one,
            charge,
        )

    @staticmethod
    def _beyond(k: int, end: Fraction) -> Fraction:
        """How much of the cell k lies beyond ±end, both in steps."""
        if k == 0:
            return max(Fraction(0), 1 - 2 * end)
        return min(Fraction(1), max(Fraction(0), k + Fraction(1, 2) - end))

    def _mean(self, k: int, step: Fraction) -> Fraction:
        """The mean over the cell k."""
        low, high = (k - Fraction(1, 2)) * step, (k + Fraction(1, 2)) * step
        inner = [x for place, _ in self.corners for x in (-place, place) if low < x < high]
        ends = sorted({low, high, *inner})
        return sum((y - x) * (self(x) + self(y)) / 2 for x, y in pairwise(ends)) / step

    def _over(self, low: Fraction, high: Fraction, step: Fraction) -> Fraction:
        """By how much the chord between neighbours on the lattice is above the loss, at most."""
        a, b = self(low), self(high)
        inner = [x for x, _ in self.corners if low < x < high]
        return max((a + (b - a) * (x - low) / step - self(x) for x in inner), default=Fraction(0))


@frozen
class Cells(ReadOnly):
    """A loss on a lattice, in units of ``unit``: what its points cost at least when all rounded
    noise is charged ``charge`` more than it costs, and the means over cells."""

    below: NoiseLoss
    above: NoiseLoss
    unit: Fraction
    charge: Fraction


class CellNoise(LatticeNoise):
    """Noise Z on the real line with a density that is constant on cells of width ``step`` =
    ``sensitivity`` / ``cells`` around the multiples of it, with the masses of ``law``."""

    measure: RealLoss
    sensitivity: Fraction
    cells: int
    numbers = "real numbers"

    @property
    def steps(self) -> int:
        return self.cells

    @property
    def step(self) -> Fraction:
        """The width of a cell."""
        return self.sensitivity / self.cells

    @cached_property
    def costs(self) -> Cells:
        """The loss on the lattice."""
        return self.measure.on(self.step)

    @property
    def minorant(self) -> NoiseLoss:
        return self.costs.below

    @property
    def majorant(self) -> NoiseLoss:
        return self.costs.above

    @property
    def charged(self) -> NoiseLoss:
        # a bound of the lower one is sharper, and the noise hardly dearer
        return self.costs.below

    @property
    def measured(self) -> str:
        """The loss in words."""
        return self.measure.words

    @cached_property
    def exact_loss(self) -> Fraction:
        """E c(Z), exactly."""
        return self.costs.unit * self.law.expected(self.majorant)

    def _bound(self) -> Fraction:
        return self.costs.unit * (super()._bound() - self.costs.charge)

    @property
    def shown(self) -> str:
        """The law in words."""
        ends = "geometric beyond" if self.law.tails else "none beyond"
        return (
            f"density constant on cells of {float(self.step):.6g}, {self.law.n} to either side, "
            f"{ends}"
        )

    @property
    def described(self) -> tuple[int, str]:
        """How many numbers make up the law, and what they are in words."""
        law = self.law
        tails = f"{len(law.tails)} geometric tails a side" if law.tails else "no tails"
        detail = f"whole numbers over 2^{law.bits} on {2 * law.n + 1} cells, {tails}, of sum one"
        return law.n + 1 + len(law.tails), detail

    @property
    def stated(self) -> dict[str, object]:
        return super().stated | {"sensitivity": float(self.sensitivity), "cells": self.cells}

    def density(self, x: Any) -> Any:
        """The density at a place, or at an array of them, to the nearest float; a place between two
        cells counts for that above. Raises ProblemError for what is not finite."""
        given = finite_array(x, where="x")
        step = self.step
        most = self.law.n + _FARTHEST * len(self.law.tails)

        def at(place: float) -> float:
            k = math.floor(Fraction(place) / step + Fraction(1, 2))
            return float(self.law.at(k) / step) if abs(k) <= most else 0.0

        found: Floats = np.array([at(place) for place in given.ravel().tolist()])
        return float(found[0]) if given.ndim == 0 else found.reshape(given.shape)

    def drawn(self, count: int, seed: int | None) -> Any:
        """The cells of ``count`` draws."""
        return self.law.sample(count, seed)

    def sample(
        self, size: int | None = None, *, bits: int = 64, seed: int | None = None
    ) -> Fraction | list[Fraction]:
        """One draw of the noise, or ``size`` of them, to ``bits`` bits of its cell: the middle of
        one of the 2^bits parts of a cell, each with exactly the probability that the noise lies in
        it.

        To release a number use ``release``, which draws as many bits as its rounding takes. From
        the operating system's entropy; a seed makes draws reproducible and unfit for release.
        Raises ProblemError for a size or bits that are none.
        """
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWN)
        fine = whole(bits, "bits", 0, _DEEP)
        drawn = [draw.within(fine) for draw in self._draws(count, seed)]
        made = [(low + Fraction(1, 2 << fine) - Fraction(1, 2)) * self.step for low in drawn]
        return made[0] if size is None else made

    def release(
        self,
        value: Number | float,
        size: int | None = None,
        *,
        bits: int = 30,
        seed: int | None = None,
    ) -> Fraction | list[Fraction]:
        """``value`` plus noise, rounded to the nearest multiple of 2^-``bits``, once or ``size``
        times: as many bits of the noise are drawn as decide the rounding, so that this is the
        exact sum, rounded. Raises ProblemError for a value that is no finite number, a size or bits
        that are none."""
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWN)
        fine = whole(bits, "bits", 0, 1000)
        true = signed(value)
        made = [draw.rounded(true, self.step, fine) for draw in self._draws(count, seed)]
        return made[0] if size is None else made

    def _draws(self, count: int, seed: int | None) -> list[_Draw]:
        # cells and places within them are independent, also where a seed is given
        source = (
            system_bytes if seed is None else np.random.default_rng((whole(seed, "seed"), 1)).bytes
        )
        return [_Draw(k, source) for k in self.law.sample(count, seed).tolist()]


class _Draw:
    """A place within a cell, bit by bit."""

    def __init__(self, cell: int, source: Bytes) -> None:
        self.cell, self.source, self.known, self.bits = cell, source, 0, 0

    def within(self, bits: int) -> Fraction:
        """Where the part begins that holds the noise, in steps from the cell below."""
        while self.bits < bits:
            self.known = self.known << 8 | self.source(1)[0]
            self.bits += 8
        return self.cell + Fraction(self.known >> (self.bits - bits), 1 << bits)

    def rounded(self, value: Fraction, step: Fraction, bits: int) -> Fraction:
        """The sum with a value to the nearest multiple of 2^-bits; noise exactly between two is of
        probability 0."""
        depth = 32
        while True:
            low = self.within(depth)
            ends = (low, low + Fraction(1, 1 << depth))
            first, last = (
                math.floor((value + (end - Fraction(1, 2)) * step) * 2**bits + Fraction(1, 2))
                for end in ends
            )
            if first == last or depth >= _DEEP:
                return Fraction(first, 1 << bits)
            depth *= 2


def rational(value: Number, where: str, *, positive: bool = True) -> Fraction:
    """A number >= 0 as a fraction; raises ProblemError for one below, for 0 where it must be
    positive, and for logarithms, which are none."""
    number = parse_exact(value, where=where, positive=positive)
    if number.log_of is not None:
        raise ProblemError("is no fraction", where=where, remedy="Give a number such as 5/2")
    if not number.factor < LARGEST:
        raise ProblemError("is above 2^60", where=where, remedy="Count in larger units")
    return number.factor


def signed(value: object) -> Fraction:
    """A finite number of any sign, exactly; raises ProblemError for anything else."""
    if isinstance(value, str):
        minus = value.strip().startswith("-")
        size = rational(value.strip()[minus:], "value", positive=False)
        return -size if minus else size
    if isinstance(value, Fraction | int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, bool):
        raise ProblemError("a truth value is no number", where="value")
    return Fraction(float(finite_array(value, where="value", ndim=0)))  # type: ignore[arg-type]


def _corners(given: object) -> Corners:
    try:
        pairs = [(x, y) for x, y in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise ProblemError(
            "is no loss of real noise",
            where="loss",
            remedy=f"Give one of {', '.join(NAMES)}, or corners [(0, c), (x, c), …]",
        ) from error
    made = tuple(
        (rational(x, f"loss[{k}]", positive=False), rational(y, f"loss[{k}]", positive=False))
        for k, (x, y) in enumerate(pairs)
    )
    require_corners(made)
    return made


def require_corners(made: Corners) -> None:
    """Raise ProblemError for corners that are too few, not in order, or end falling."""
    if not 2 <= len(made) <= MOST_CORNERS:
        raise ProblemError(
            f"has {len(made)} corners", where="loss", remedy=f"Give 2 to {MOST_CORNERS:,}"
        )
    if made[0][0] != 0 or any(a[0] >= b[0] for a, b in pairwise(made)):
        raise ProblemError(
            "has corners that are not in order from 0",
            where="loss",
            remedy="Give (0, c) first, and then places that grow",
        )
    if made[-1][1] < made[-2][1]:
        raise ProblemError(
            "falls at its end, and so would become negative",
            where="loss",
            remedy="End it with a step of 0 or upwards, with which it goes on",
        )
