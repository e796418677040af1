"""Noise with its proof: what it promises, what it costs, and what all such noise costs at least; on
whole numbers, and on the real line, where the staircase is best without δ.

For whole numbers that one person changes by much the sum is rounded after the noise, so that it is
as private. Noise K on the integers that keeps a promise keeps it on the real line with U even on
(-1/2, 1/2) added: bounds of all real noise bound K + U, and E|K + U| = E|K| + P(K = 0)/4,
E(K + U)² = E K² + 1/12 (docs/theory/real-noise.md).
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, Number, from_above, parse_exact
from optmech.spaces.arguments import LOAD, kind
from optmech_noise.additive.bound import (
    BITS,
    NoiseMultipliers,
    hockey_stick,
    largest_delta,
    proved_bound,
)
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.law import Law
from optmech_noise.additive.loss import NoiseLoss
from optmech_noise.additive.real_loss import RealLoss, rational
from optmech_noise.additive.result import ApproximatelyPrivate, CertifiedNoise, LatticeNoise


@record
class ApproximateNoise(ApproximatelyPrivate, LatticeNoise):
    """Noise with a law on the integers that promises (ε, δ) for shifts up to ``sensitivity``, alone
    or of several releases together, and multipliers that bound the loss of all noise that does."""

    law: Law
    measure: Any
    epsilon: Exact
    delta: Exact
    sensitivity: Any
    multipliers: NoiseMultipliers | None = None
    seconds: float = 0.0
    releases: int = 1
    """So many numbers, each with noise of its own, keep ε and δ together."""
    exponent: int = 0
    """Losses are added on multiples of 2^-exponent where there are several releases and δ > 0."""

    @property
    def promise(self) -> str:
        """The promise in words."""
        together = f" of {self.releases:,} releases together, each" if self.releases > 1 else ""
        return f"{self.pair}{together} at sensitivity {float(self.sensitivity):.9g}"

    @property
    def compared(self) -> str:
        """What the lower bound is of, in words."""
        if self.releases > 1 and not self.delta > 0:
            return "all noise that is as private, with the same law in every release"
        least = self.minorant
        if least.is_less_far_out and not least.end and self.loss > 0:
            return f"{super().compared}; noise farther out may lose less still"
        return super().compared

    @property
    def each(self) -> Exact:
        """The ε that bounds one release: of several with the same law and without δ an equal part,
        which is all that each may take, as largest losses add up."""
        if self.releases == 1 or self.delta > 0:
            return self.epsilon
        return self.epsilon.times(Fraction(1, self.releases))

    def _proved(self, found: NoiseMultipliers) -> Fraction:
        # what several releases keep together each keeps by itself
        return proved_bound(self.minorant, self.each, self.delta, self.bounding, found)

    @cached_property
    def largest_delta(self) -> tuple[Fraction, int]:
        """The largest δ of one release over all shifts up to the sensitivity, and the shift it is
        at: at ε, or of several releases without δ at an equal part of it."""
        return largest_delta(self.law, self.each, self.steps)

    @cached_property
    def proved_delta(self) -> Fraction:
        """A number at or above δ(ε) of all releases together; of one release it is that number."""
        if self.releases == 1 or not self.delta > 0:
            return self.largest_delta[0]
        from optmech_noise.additive.pairs import composed_delta

        return composed_delta(
            self.law,
            self.steps,
            self.releases,
            epsilon=self.epsilon,
            delta=self.delta,
            exponent=self.exponent,
        )

    @property
    def is_private(self) -> bool:
        """Whether the noise is as private as promised, decided exactly."""
        return self.proved_delta <= bracket(self.delta)[0]

    @property
    def decided(self) -> tuple[float, str]:
        """The largest δ, and what was decided of it in words."""
        worst, at = float(self.proved_delta), f"at ε = {self.epsilon.words}"
        if self.releases > 1:
            return worst, f"of {self.releases:,} releases {at} δ is at most {from_above(worst, 9)}"
        shift = float(self.largest_delta[1] * Fraction(self.sensitivity) / self.steps)
        return worst, f"{at} δ is {worst:.9g}, at shift {shift:.9g}"

    @property
    def stated(self) -> dict[str, object]:
        return super().stated | {"releases": self.releases}


@kind(
    "Give noise for ε, or ε and δ, as om.noise.optimal(epsilon=…, sensitivity=…) returns",
    {"str": LOAD},
)
@record
class NoiseDesign(ApproximateNoise, CertifiedNoise):
    """The result of ``om.noise.optimal``: noise Z on the integers, to be added to a number that one
    person changes by at most ``sensitivity``, or to each of ``releases`` such numbers.

    Everything is proved by exact arithmetic from ``law`` and ``multipliers``: that the noise is
    (ε, δ)-differentially private, its loss E c(Z), and that no noise whatsoever that is as private
    has a loss below ``lower_bound``, of any support; of several releases without δ no noise with
    the same law in every release.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon="ln 2")
    >>> print(design.status, round(design.loss, 4), round(design.lower_bound, 4))
    optimal 1.3333 1.3333
    >>> 41 + design.sample(seed=1)  # a count, as it is released
    48
    >>> print(round(float(design.pmf(0)), 4), design.quantile(0.95))
    0.3333 4
    >>> design.interval(48), design.most_likely(48, low=0)  # of the count, from its release
    ((44, 52), 48)
    >>> print(round(design.privacy(k_fold=10).epsilon(delta=1e-6).upper, 3))
    6.931
    >>> design.require_private() is design, design.summary()["status"]
    (True, 'optimal')
    >>> design.drawn(3, seed=1).shape, design.gap_to(design.loss, design.lower_bound) <= 1e-6
    ((3,), True)
    """

    measure: NoiseLoss
    sensitivity: int


_POLISH = 400
_STEPS = 60
_FINE = 160
_LARGEST = 10_000
"""Of an ε that is asked about."""


@kind("Give what om.noise.real returns", {"str": LOAD}, "real noise")
@record
class RealNoise(CellNoise, ApproximateNoise):
    """The result of ``om.noise.real``: noise Z on the real line, to be added to a number that one
    person changes by at most ``sensitivity``. Its density is constant on cells of width
    ``step`` = ``sensitivity`` / ``cells`` around the multiples of it, with the masses of ``law``.

    Everything is proved by exact arithmetic: that the noise is (ε, δ)-private at every real shift
    up to the sensitivity, its loss E c(Z), and that no noise on the real line that is as private
    has a loss below ``lower_bound``.

    Examples
    --------
    >>> noise = om.noise.real(2, "1/1000", cells=8, gap=0.02)
    >>> print(noise.step, noise.density(0.0) > noise.density(1.0) > 0)
    1/8 True
    >>> print(float(noise.privacy("1/3")) < float(noise.privacy(1)) <= 1e-3)
    True
    >>> print(float(noise.release(20.5, bits=6, seed=3)))  # as it is given away
    21.578125
    >>> len(noise.sample(size=2, bits=8, seed=1)), noise.drawn(2, seed=1).shape
    (2, (2,))
    """

    measure: RealLoss
    sensitivity: Fraction
    cells: int = 16
    grid: int = 0
    """Steps of a sensitivity on the lattice of the multipliers, where that is not ``cells``."""

    @property
    def bounding(self) -> int:
        return self.grid or self.cells

    def _bound(self) -> Fraction:
        found = super()._bound()
        degree = self.measure.degree
        if degree is None:
            return found
        power = exp_bounds(self.each, BITS)[1]
        if self.delta > 0:
            known = centre_bound(power, degree, bracket(self.delta)[1])
        else:
            known = staircase_bound(power, degree)[0]
        return max(found, known * self.sensitivity**degree)

    def privacy(self, shift: Number, *, epsilon: Number | None = None) -> Fraction:
        """A number at or above δ of one release for numbers that differ by ``shift``, at the
        design's own ε or another one; exact but for e^ε, which is rounded. Raises ProblemError for
        a shift above a thousand sensitivities or an ε that is none."""
        rate = self.each if epsilon is None else parse_exact(epsilon, where="epsilon")
        if rate > _LARGEST:
            raise ProblemError(f"is above {_LARGEST:,}", where="epsilon", remedy="Give less")
        steps = rational(shift, "shift", positive=False) / self.step
        if steps > 1000 * self.cells:
            raise ProblemError("is far beyond the sensitivity", where="shift")
        power = exp_bounds(rate, BITS)[0]
        first = math.floor(steps)
        part = steps - first
        near = hockey_stick(self.law, first, power) if first else max(Fraction(0), 1 - power)
        return (1 - part) * near + (part * hockey_stick(self.law, first + 1, power) if part else 0)


def centre_bound(power: Fraction, degree: int, part: Fraction) -> Fraction:
    """A number at or below E|Z|^``degree`` of all real noise that is (ln ``power``, δ)-private at
    sensitivity 1, ``part`` being at least δ; close to the least where ε is large.

    Multipliers carry what the centre [-a, a] lacks of a^degree to places within 1 of it, in
    proportion to what these can spare; and the more so where shifts hardly reach
    (docs/theory/integer-noise.md).
    """
    a = _centre(power, degree, ends=False)
    least = a**degree
    known = least * (1 - part / (1 - (degree + 1) * least + degree * least * a))
    if not _fits(power, degree, a, ends=True):
        return max(Fraction(0), known)
    a = _centre(power, degree, ends=True)
    least, end = a**degree, _end(power, degree, a)
    spare = _spare(degree, a, 1 - a)
    few = math.floor(8 * a / end).bit_length()
    cost = least / (degree + 1) / spare
    cost += end * a ** (degree - 1) * (Fraction(9, 2) + few * Fraction(7, 20))
    return max(Fraction(0), known, least - part * cost)


@lru_cache(maxsize=64)
def _centre(power: Fraction, degree: int, *, ends: bool) -> Fraction:
    """The largest a that fits, nearly."""
    low, high = 0, 1 << (_FINE - 1)
    if ends:
        low = int(_centre(power, degree, ends=False) * (1 << _FINE))
    while high - low > 1:
        middle = (low + high) // 2
        fits = _fits(power, degree, Fraction(middle, 1 << _FINE), ends)
        low, high = (middle, high) if fits else (low, middle)
    return Fraction(low, 1 << _FINE)


def _fits(power: Fraction, degree: int, a: Fraction, ends: bool) -> bool:
    """Whether the places out there can spare what the centre lacks."""
    end = _end(power, degree, a) if ends else a
    lacks = power * a ** (degree + 1) * degree / (degree + 1)
    return 0 < end <= a < Fraction(1, 2) and lacks <= _spare(degree, a, 1 + a - end)


def _end(power: Fraction, degree: int, a: Fraction) -> Fraction:
    """How far from 1 + a the places end that something is carried to."""
    return 2 * (1 + a) ** degree / (power * a ** (degree - 1))


def _spare(degree: int, a: Fraction, last: Fraction) -> Fraction:
    """∫ x^degree - a^degree from a to ``last``."""
    whole = (last ** (degree + 1) - a ** (degree + 1)) / (degree + 1)
    return whole - a**degree * (last - a)


def staircase_bound(power: Fraction, degree: int) -> tuple[Fraction, Fraction]:
    """ν with E|Z|^``degree`` >= ν for all real noise that is ln ``power``-private at sensitivity 1,
    and 1 - γ, where γ is nearly the width of the staircase's first step.

    Geng and Viswanath, The optimal noise-adding mechanism in differential privacy (IEEE
    Transactions on Information Theory 2016). The polynomial Q with Q(t) - e^ε Q(t - 1) =
    νt - t^(degree + 1)/(degree + 1) is to be >= 0 on [-1, 0] and not to fall on t >= 0
    (docs/theory/integer-noise.md); it is convex on [-1, 0], and linear in ν.
    """
    unit = 1 << _POLISH + 2 * power.__ceil__().bit_length()
    t = Fraction(-1, 2)
    for _ in range(_STEPS):
        nu = staircase_loss(power, degree, t + 1)
        slope = _derived(_polynomial(power, degree, nu))
        new = t - _at(slope, t) / _at(_derived(slope), t)
        new = min(Fraction(0), max(Fraction(-1), Fraction(round(new * unit), unit)))
        if new == t:
            break
        t = new
    nu = nu * (1 - Fraction(1, 1 << 64))
    q = _polynomial(power, degree, nu)
    slope = _derived(q)
    bends = [_at(_derived(slope), Fraction(end)) for end in (-1, 0)]
    holds = (
        min(bends) > 0 and min(q[1:]) >= 0 and _at(q, t) >= _at(slope, t) ** 2 / (2 * min(bends))
    )
    return (nu, -t) if holds else (Fraction(0), -t)


def staircase_loss(power: Fraction, degree: int, step: Fraction) -> Fraction:
    """E|Z|^``degree`` of the staircase whose first step ends at ``step``, at sensitivity 1: where
    Q(step - 1) = 0."""
    first, second = (_at(_polynomial(power, degree, Fraction(nu)), step - 1) for nu in (0, 1))
    return first / (first - second)


def _polynomial(power: Fraction, degree: int, nu: Fraction) -> list[Fraction]:
    """The coefficients of Q, of t^0 first."""
    size = degree + 2
    right = [Fraction(0)] * size
    right[1], right[-1] = nu, Fraction(-1, degree + 1)
    q = [Fraction(0)] * size
    for i in reversed(range(size)):
        more = sum(q[j] * math.comb(j, i) * (-1) ** (j - i) for j in range(i + 1, size))
        q[i] = (right[i] + power * more) / (1 - power)
    return q


def _at(q: Sequence[Fraction], t: Fraction) -> Fraction:
    total = Fraction(0)
    for value in reversed(q):
        total = total * t + value
    return total


def _derived(q: Sequence[Fraction]) -> list[Fraction]:
    return [i * value for i, value in enumerate(q)][1:]
