"""What privacy noise gives, decided exactly: Σ_i max(0, z(i) - e^ε z(i + s)) <= δ for every shift.

Beyond the window every term is a geometric sequence from one period of the tails to the next, so
that the infinite sum is a finite one (docs/theory.md).
"""

from __future__ import annotations

from fractions import Fraction

from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact
from optmech.noise.additive.law import Law

BITS = 192
"""Of the enclosures of e^ε."""


def hockey_stick(law: Law, shift: int, power: Fraction) -> Fraction:
    """Σ_i max(0, z(i) - ``power`` z(i + shift)) over all whole numbers i, exactly; shift >= 1.

    As z is symmetric it is the same for -shift.
    """
    near, far, bits = law.pairs(shift)
    a, b = power.numerator, power.denominator
    inner, outer = (sum(max(0, b * p - a * q) for p, q in part) for part in (near, far))
    return (inner + outer / (1 - law.r)) / (b << bits)


def largest_delta(law: Law, epsilon: Exact, sensitivity: int) -> tuple[Fraction, int]:
    """A number at or above δ(ε), the largest of the sums over all shifts up to ``sensitivity``, and
    a shift of it. It is above only by what e^ε is known to (2^-192, relatively)."""
    power = exp_bounds(epsilon, BITS)[0]
    # noise that falls from the centre loses most at the largest shift
    first = sensitivity if power >= 1 and law.falls else 1
    found = ((hockey_stick(law, shift, power), shift) for shift in range(first, sensitivity + 1))
    return max(found, key=lambda pair: (pair[0], -pair[1]))


def is_private(law: Law, epsilon: Exact, delta: Exact, sensitivity: int) -> bool:
    """Whether the noise is (ε, δ)-differentially private at this sensitivity: every such sum is at
    most δ. Never true where it is not."""
    return largest_delta(law, epsilon, sensitivity)[0] <= bracket(delta)[0]
