"""Losses and distortions of integer matrices as rational numbers, and stated limits.

All float64 data (prior, distances, losses) count as the binary fractions that they are.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import compress
from typing import Any, Protocol

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.number import rounded_down as rounded_down
from optmech.exact.number import rounded_up as rounded_up
from optmech.exact.numerators import integers
from optmech.statement import Statement

NEAR = Fraction(1, 10**12)
"""A limit that misses the attainable extreme by this much, relatively, means the extreme."""


WholeRow = tuple[tuple[int, ...], int]
"""A row in whole numbers, and what they are over."""


class Scaled(Protocol):
    """Numbers rows[s][o] / 2^bits, such as a released matrix, or bounds of exact ones."""

    @property
    def bits(self) -> int: ...
    @property
    def rows(self) -> tuple[tuple[int, ...], ...]: ...
    @property
    def matrix(self) -> Floats: ...
    @property
    def exact_bits(self) -> int: ...
    def exact(self, s: int) -> WholeRow: ...
    @property
    def common(self) -> tuple[Scaled, int] | None: ...


def product(left: Floats, released: Scaled) -> tuple[list[list[Any]], int]:
    """left N as whole numbers over 2^e, for weights of shape (m, S): the rows, and e."""
    whole, exponent = integers(left)
    out = flint.fmpz_mat(whole) * flint.fmpz_mat([list(row) for row in released.rows])
    return out.table(), exponent + released.bits


def distortion(distance: Floats, prior: Floats, released: Scaled) -> Fraction:
    """The error of the best attack (PG 7): Σ_o min_t Σ_s π(s) d(t,s) p(o|s)."""
    weights, scale = _weighted(distance, prior)
    rows = flint.fmpz_mat(weights) * flint.fmpz_mat([list(row) for row in released.rows])
    total = sum(min(column) for column in rows.transpose().table())
    return Fraction(int(total), 1 << (scale + released.bits))


def blind(distance: Floats, prior: Floats) -> Fraction:
    """d_max, the error of an adversary who sees nothing: min_t Σ_s π(s) d(t,s)."""
    weights, scale = _weighted(distance, prior)
    return Fraction(min(map(sum, weights)), 1 << scale)


def gained(gain: Floats, weights: Floats, released: Scaled) -> Fraction:
    """What the best guesses gain: Σ_o max_w Σ_s π(s) g(w,s) p(o|s), with gains of any sign."""
    return -distortion(-gain, weights, released)


def blind_gain(gain: Floats, weights: Floats) -> Fraction:
    """What the best guess gains without a report: max_w Σ_s π(s) g(w,s)."""
    return -blind(-gain, weights)


def known_gain(gain: Floats, weights: Floats) -> Fraction:
    """What the best guesses gain where the secret is known: Σ_s π(s) max_w g(w,s)."""
    return expected(weights, [Fraction(v) for v in gain.max(axis=0).tolist()])


def losses(loss: Floats, released: Scaled) -> list[Fraction]:
    """Σ_o p(o|s) c(s,o) for every s."""
    found = []
    for costs, row in zip(loss, released.rows, strict=True):
        # of thousands of observables few are reported
        used = list(compress(range(len(row)), row))
        (whole,), exponent = integers(costs[None, used])
        total = sum(c * row[o] for c, o in zip(whole, used, strict=True))
        found.append(Fraction(total, 1 << (exponent + released.bits)))
    return found


def exactly(of: Callable[[Scaled], Fraction], released: Scaled, near: Fraction) -> Fraction:
    """A value in proportion to the matrix, exactly; its bound ``near`` where all rows together
    have too long a denominator."""
    common = released.common
    return near if common is None else of(common[0]) / common[1]


def pushed(pair: Floats, released: Scaled, o: int) -> tuple[int, int]:
    """(aP)(o) Σb and (bP)(o) Σa for the rows a and b (2, S), exactly, in whole numbers of one
    unit."""
    sums = []
    for weights in pair:
        used = [(Fraction(weights[s]), released.exact(s)) for s in np.flatnonzero(weights).tolist()]
        seen = sum((w * Fraction(row[o], total) for w, (row, total) in used), Fraction(0))
        sums.append((seen, sum((w for w, _ in used), Fraction(0))))
    (left, a), (right, b) = sums
    x, y = left * b, right * a
    return x.numerator * y.denominator, y.numerator * x.denominator


def means(numbers: Floats, released: Scaled) -> list[Fraction]:
    """Σ_o p(o|s) v(s,o) for every s, exactly, of numbers of any sign."""
    found = []
    for s, own in enumerate(numbers):
        row, total = released.exact(s)
        used = list(compress(range(len(row)), row))
        (whole,), exponent = integers(own[None, used])
        mean = sum(v * row[o] for v, o in zip(whole, used, strict=True))
        found.append(Fraction(mean, total << (exponent + released.exact_bits)))
    return found


def expected(weights: Floats, values: list[Fraction]) -> Fraction:
    """Σ_s π(s) v_s."""
    return sum((Fraction(w) * v for w, v in zip(weights.tolist(), values, strict=True)), Fraction())


def objective(statement: Statement, released: Scaled) -> Fraction:
    """The exact value of what is minimised: a loss, a gain, or minus the distortion."""
    if statement.target_factors is not None:
        leaks = statement.objective == "minimize_leakage"
        of = gained if leaks else distortion
        return (1 if leaks else -1) * of(*statement.target_factors, released)
    found = losses(statement.loss, released)
    return max(found) if statement.objective == "worst_loss" else expected(statement.prior, found)


def _weighted(distance: Floats, prior: Floats) -> tuple[list[list[int]], int]:
    """π(s) d(t,s) as whole numbers over a power of two."""
    whole, first = integers(distance)
    weights, second = integers(prior[None, :])
    rows = [[d * w for d, w in zip(row, weights[0], strict=True)] for row in whole]
    return rows, first + second
