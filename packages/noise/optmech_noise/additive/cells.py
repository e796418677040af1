"""Noise that is even within the cells of a lattice on the real line, and its losses.

Rounding a real number to a neighbour on the lattice, up with the probability of its fraction,
commutes with shifts by whole steps: what is proved of all noise on the lattice is proved of all
real noise. Noise that is even within cells has at a shift between two steps the mean of what it has
at these: it is private at every real shift (docs/theory/real-noise.md).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import finite_array
from optmech.exact.arguments import whole
from optmech.exact.number import Number
from optmech.exact.sampler import Bytes, system_bytes
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.real_loss import Cells, RealLoss, signed
from optmech_noise.additive.result import Divided, LatticeNoise

MOST_CELLS = 50_000
"""Of one sensitivity."""
MOST_DRAWN = 10**6
DEEP = 4096
_FARTHEST = 10_000


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
        """The sum with a value to the nearest multiple of 2^-bits."""

        def ends(depth: int) -> list[tuple[Fraction, Fraction]]:
            low = self.within(depth) - Fraction(1, 2)
            return [(low, low + Fraction(1, 1 << depth))]

        return rounded_sum([value], ends, step, bits)[0]


def rounded_sum(
    value: list[Fraction], ends: Callable[[int], list[tuple[Fraction, Fraction]]], step: Fraction,
    bits: int,
) -> list[Fraction]:  # fmt: skip
    """Numbers plus noise that lies between ``ends`` of so many bits, in units of ``step``, each to
    the nearest multiple of 2^-bits; noise exactly between two is of probability 0."""
    depth = 32
    while True:
        sums = [
            [math.floor((v + end * step) * 2**bits + Fraction(1, 2)) for end in place]
            for v, place in zip(value, ends(depth), strict=True)
        ]
        if all(low == high for low, high in sums) or depth >= DEEP:
            return [Fraction(low, 1 << bits) for low, _ in sums]
        depth *= 2


def evaluated(at: Callable[[float], float], places: Any, where: str) -> Any:
    """A function of a place, or of an array of them; raises ProblemError for what is not finite."""
    given = finite_array(places, where=where)
    found = np.vectorize(at, otypes=[np.float64])(given)
    return found if given.ndim else float(found)


@kind("Give what om.noise.real returns", {"str": LOAD}, "noise for a real number")
class CellNoise(Divided, LatticeNoise):
    """Noise Z on the real line with a density that is constant on cells of width ``step`` =
    ``sensitivity`` / ``cells`` around the multiples of it, with the masses of ``law``."""

    measure: RealLoss
    numbers = "real numbers"

    @cached_property
    def costs(self) -> Cells:
        return self.measure.on(self.sensitivity / self.bounding)

    @cached_property
    def means(self) -> Cells:
        return self.measure.on(self.step)

    @property
    def charged(self) -> NoiseLoss:
        # a bound of the lower one is sharper, and the noise hardly dearer
        return self.costs.below

    @property
    def shown(self) -> str:
        """The law in words."""
        ends = "geometric" if self.law.tails else "none"
        return f"density constant on cells of {float(self.step):.6g}, {self.edge}, {ends} beyond"

    @property
    def edge(self) -> str:
        """Where the window of the law ends, in words."""
        return f"{self.law.n} to either side"

    @property
    def within(self) -> str:
        """What the window of the law is, in words."""
        return f"on {2 * self.law.n + 1} cells"

    @property
    def stated(self) -> dict[str, object]:
        return super().stated | {"sensitivity": float(self.sensitivity), "cells": self.cells}

    def density(self, x: Any) -> Any:
        """The density at a place, or at an array of them, to the nearest float; a place between two
        cells counts for that above. Raises ProblemError for what is not finite."""
        step = self.step
        most = self.law.n + _FARTHEST * len(self.law.tails)

        def at(place: float) -> float:
            k = math.floor(Fraction(place) / step + Fraction(1, 2))
            return float(self.law.at(k) / step) if abs(k) <= most else 0.0

        return evaluated(at, x, "x")

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
        fine = whole(bits, "bits", 0, DEEP)
        middle = Fraction(1, 2 << fine) - Fraction(1, 2)
        return self._each(size, seed, lambda draw: (draw.within(fine) + middle) * self.step)

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
        fine, true = whole(bits, "bits", 0, 1000), signed(value, "value")
        return self._each(size, seed, lambda draw: draw.rounded(true, self.step, fine))

    def _each(
        self, size: int | None, seed: int | None, made: Callable[[_Draw], Fraction]
    ) -> Fraction | list[Fraction]:
        """What is made of one draw, or of ``size`` of them."""
        count = 1 if size is None else whole(size, "size", 0, MOST_DRAWN)
        # cells and places within them are independent, also where a seed is given
        source = (
            system_bytes if seed is None else np.random.default_rng((whole(seed, "seed"), 1)).bytes
        )
        found = [made(_Draw(k, source)) for k in self.law.sample(count, seed).tolist()]
        return found[0] if size is None else found
