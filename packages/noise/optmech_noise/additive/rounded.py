"""Noise for whole numbers that one person changes by much: real noise, of which the sum is rounded.

Rounding is done after the noise, so that the sum is as private. Noise K on the integers that keeps
a promise keeps it on the real line with U even on (-1/2, 1/2) added: bounds of all real noise bound
K + U, and E|K + U| = E|K| + P(K = 0)/4, E(K + U)² = E K² + 1/12 (docs/theory/real-noise.md).
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.bound import BITS
from optmech_noise.additive.design import RealNoise
from optmech_noise.additive.loss import mean_beyond

WIDEST = 10**9
"""Of sensitivities."""


@kind("Give what om.noise.optimal returns at a large sensitivity", {"str": LOAD}, "rounded noise")
@record
class RoundedNoise(RealNoise):
    """The result of ``om.noise.optimal`` for a whole number that one person changes by more than
    1,000: noise on cells of a real line, of which the exact sum is rounded to a whole number.

    ``loss`` is at least that of the rounded noise, and ``lower_bound`` is of all noise on the
    integers that is as private: what is lost by rounding is part of both.

    Examples
    --------
    >>> noise = om.noise.optimal(2, "1/1000", sensitivity=200_000, gap=0.02)
    >>> print(noise.status, noise.gap < 0.02, noise.numbers)
    feasible True whole numbers
    >>> type(noise.release(1_000_000)), len(noise.sample(3))
    (<class 'int'>, 3)
    """

    numbers = "whole numbers"

    @property
    def measured(self) -> str:
        """The loss in words."""
        if self.measure.name == "threshold":
            return f"probability of noise beyond ±{float(self.measure.width - Fraction(1, 2)):g}"
        return f"{super().measured}, rounded"

    @cached_property
    def exact_loss(self) -> Fraction:
        """A number at or above E c(Z) of the noise as it is rounded."""
        return super().exact_loss + self._rounding

    @property
    def _rounding(self) -> Fraction:
        """What rounding adds at most: an eighth for every unit by which the density falls outwards
        of |noise|, at most t/4 + 5/24 for a fall at t of its square."""
        degree = self.measure.degree
        if degree is None:
            return Fraction(0)
        law, step = self.law, self.step
        period = len(law.tails)
        values, bits = law.whole(law.n + 2 * period + 1)
        falls = [max(0, a - b) for a, b in itertools.pairwise(values)]
        slope, least = (step / 4, Fraction(5, 24)) if degree == 2 else (Fraction(0), Fraction(1, 8))

        def at(k: int) -> Fraction:
            return slope * (k + Fraction(1, 2)) + least

        total = sum((at(k) * fall for k, fall in enumerate(falls[: law.n + 1])), Fraction(0))
        for k in range(law.n + 1, law.n + period + 1):
            # falls go on from period to period
            mean = mean_beyond((at(k), slope, Fraction(0)), period, law.r)
            total += falls[k] * mean / (1 - law.r)
        return 2 * total / step / (1 << bits)

    def _bound(self) -> Fraction:
        found, degree = super()._bound(), self.measure.degree
        if degree is None:
            return found
        if degree == 2:
            return found - Fraction(1, 12)
        # P(K = 0) <= e^ε P(K = s) + δ for the 2Δ shifts s
        power, part = exp_bounds(self.each, BITS)[1], bracket(self.delta)[1]
        shifts = 2 * self.sensitivity
        return found - min(Fraction(1), (power + shifts * part) / (shifts + power)) / 4

    def release(
        self,
        value: Any,
        size: int | None = None,
        *,
        bits: int = 0,
        seed: int | None = None,
    ) -> Any:
        """A whole number plus noise, once or ``size`` times: the exact sum, rounded to a whole
        number. Raises ProblemError for a value that is none, a size that is none, or ``bits``."""
        if bits:
            raise ProblemError("is not 0", where="bits", remedy="Whole numbers are released")
        found = super().release(whole(value, "value", None), size, bits=0, seed=seed)
        return list(map(int, found)) if isinstance(found, list) else int(found)

    def sample(  # type: ignore[override]
        self, size: int | None = None, *, bits: int = 0, seed: int | None = None
    ) -> int | Ints:
        """One draw of the rounded noise, or ``size`` of them, exactly. From the operating system's
        entropy; a seed makes draws reproducible and unfit for release."""
        found: int | Sequence[int] = self.release(0, size, bits=bits, seed=seed)
        return found if isinstance(found, int) else np.array(found, dtype=np.int64)
