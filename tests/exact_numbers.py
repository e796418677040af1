"""Numbers for tests from exact fractions and hundreds of digits: shares no code with optmech."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np

DIGITS = 700
"""Squares of differences of 10^-300 still have a hundred."""


def shares(weights: Sequence[float] | np.ndarray) -> list[Fraction]:
    """Floats as the binary fractions that they are, divided by their exact sum."""
    parts = [Fraction(float(x)) for x in weights]
    return [part / sum(parts) for part in parts]


def push(lam: Sequence[Fraction], matrix: np.ndarray) -> list[Fraction]:
    """λP of the matrix as it is, exactly."""
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    return [sum(w * row[o] for w, row in zip(lam, rows, strict=True)) for o in range(len(rows[0]))]


def big(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def log(value: Fraction) -> mpmath.mpf:
    """ln of a fraction; -inf of 0."""
    with mpmath.workdps(DIGITS):
        return mpmath.log(big(value)) if value else -mpmath.inf


def max_divergence(p: Sequence[Fraction], q: Sequence[Fraction]) -> mpmath.mpf:
    """max ln(p/q) where p > 0."""
    with mpmath.workdps(DIGITS):
        return max(log(a / b) if b else mpmath.inf for a, b in zip(p, q, strict=True) if a)


def kl(p: Sequence[Fraction], q: Sequence[Fraction]) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        if any(a and not b for a, b in zip(p, q, strict=True)):
            return mpmath.inf
        return mpmath.fsum(big(a) * log(a / b) for a, b in zip(p, q, strict=True) if a)


def chi2(p: Sequence[Fraction], q: Sequence[Fraction]) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        if any(a and not b for a, b in zip(p, q, strict=True)):
            return mpmath.inf
        return big(sum(((a - b) ** 2 / b for a, b in zip(p, q, strict=True) if b), Fraction(0)))


def tv(p: Sequence[Fraction], q: Sequence[Fraction]) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        return big(sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0))) / 2


def hellinger(p: Sequence[Fraction], q: Sequence[Fraction]) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        roots = [mpmath.sqrt(big(a)) - mpmath.sqrt(big(b)) for a, b in zip(p, q, strict=True)]
        return mpmath.fsum(x * x for x in roots) / 2


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], epsilon: object) -> mpmath.mpf:
    """Σ max(0, p - e^ε q)."""
    with mpmath.workdps(DIGITS):
        factor = mpmath.exp(epsilon)
        terms = [big(a) - factor * big(b) for a, b in zip(p, q, strict=True)]
        return mpmath.fsum(term for term in terms if term > 0)


def least_epsilon(p: Sequence[Fraction], q: Sequence[Fraction], delta: Fraction) -> mpmath.mpf:
    """Least ε >= 0 with Σ max(0, p - e^ε q) <= δ: on each piece between two likelihood ratios one
    linear equation in fractions, all of them tried."""
    excluded = sum((a for a, b in zip(p, q, strict=True) if not b), Fraction(0))
    if excluded > delta:
        return mpmath.inf
    ratios = sorted({a / b for a, b in zip(p, q, strict=True) if b} | {Fraction(1)}, reverse=True)

    def spent(t: Fraction) -> Fraction:
        return sum((max(Fraction(0), a - t * b) for a, b in zip(p, q, strict=True)), Fraction(0))

    for at in ratios:
        if at < 1 or spent(at) > delta:
            break
        good = at
    else:
        return mpmath.mpf(0)
    if at < 1:
        return mpmath.mpf(0)
    # between the last that is enough and the first that is not, spent is linear
    head = sum((a for a, b in zip(p, q, strict=True) if a > at * b), Fraction(0))
    tail = sum((b for a, b in zip(p, q, strict=True) if a > at * b), Fraction(0))
    solved = (head - delta) / tail
    assert at <= solved <= good
    return log(solved)
