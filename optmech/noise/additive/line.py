"""Noise on the real line that is (ε, δ)-private, and the staircase, which is best without δ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.exponentials import exp_bounds
from optmech.exact.number import Number, parse_exact
from optmech.noise.additive.cells import CellNoise, RealLoss, rational
from optmech.noise.additive.design import ApproximateNoise
from optmech.noise.additive.privacy import BITS, hockey_stick

_POLISH = 400
_STEPS = 60


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
    >>> noise = om.noise.real(2, "1/1000", cells=8)
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

    def _bound(self) -> Fraction:
        found = super()._bound()
        degree = {"absolute": 1, "square": 2}.get(self.measure.name)
        if self.delta > 0 or degree is None:
            return found
        power = exp_bounds(self.each, BITS)[1]
        return max(found, staircase_bound(power, degree)[0] * self.sensitivity**degree)

    def privacy(self, shift: Number, *, epsilon: Number | None = None) -> Fraction:
        """A number at or above δ of one release for numbers that differ by ``shift``, at the
        design's own ε or another one; exact but for e^ε, which is rounded. Raises ProblemError for
        a shift above a thousand sensitivities or an ε that is none."""
        rate = self.each if epsilon is None else parse_exact(epsilon, where="epsilon")
        steps = rational(shift, "shift", positive=False) / self.step
        if steps > 1000 * self.cells:
            raise ProblemError("is far beyond the sensitivity", where="shift")
        power = exp_bounds(rate, BITS)[0]
        first = math.floor(steps)
        part = steps - first
        near = hockey_stick(self.law, first, power) if first else max(Fraction(0), 1 - power)
        return (1 - part) * near + (part * hockey_stick(self.law, first + 1, power) if part else 0)


def staircase_bound(power: Fraction, degree: int) -> tuple[Fraction, Fraction]:
    """ν with E|Z|^``degree`` >= ν for all real noise that is ln ``power``-private at sensitivity 1,
    and 1 - γ, where γ is nearly the width of the staircase's first step.

    Geng and Viswanath, The optimal noise-adding mechanism in differential privacy (IEEE
    Transactions on Information Theory 2016). The polynomial Q with Q(t) - e^ε Q(t - 1) =
    νt - t^(degree + 1)/(degree + 1) is to be >= 0 on [-1, 0] and not to fall on t >= 0
    (docs/theory.md); it is convex on [-1, 0], and linear in ν.
    """
    first, second = (_polynomial(power, degree, Fraction(nu)) for nu in (0, 1))
    unit = 1 << _POLISH + 2 * power.__ceil__().bit_length()
    t = Fraction(-1, 2)
    for _ in range(_STEPS):
        nu = staircase_loss(power, degree, t + 1)
        q = [a + nu * (b - a) for a, b in zip(first, second, strict=True)]
        slope = _derived(q)
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
