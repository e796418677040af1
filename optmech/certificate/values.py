"""Losses and distortions of integer matrices as rational numbers, and stated limits; mechanisms at
the places that their control points are spread over (theory: "Joint constraints of mechanisms on a
mesh").

All float64 data (prior, distances, losses) count as the binary fractions that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from itertools import compress
from typing import Protocol

import flint
import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate.segments import largest
from optmech.certificate.statement import Spread, Statement
from optmech.exact.number import rounded_down as rounded_down, rounded_up as rounded_up
from optmech.exact.numerators import Numerators, Wholes, dot, integers, wholes

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


def product(left: Floats, released: Scaled) -> tuple[Wholes, int]:
    """left N as whole numbers over 2^e, for weights of shape (m, S): the rows, and e."""
    whole, exponent = integers(left)
    out = flint.fmpz_mat(whole) * flint.fmpz_mat([list(row) for row in released.rows])
    return wholes([list(map(int, row)) for row in out.table()]), exponent + released.bits


def distortion(distance: Floats, prior: Floats, released: Scaled) -> Fraction:
    """The error of the best attack (Shokri, PETS 2015, eq. 7): Σ_o min_t Σ_s π(s) d(t,s) p(o|s)."""
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
    return _sums(loss, ((row, 1) for row in released.rows), released.bits)


def _sums(numbers: Floats, rows: Iterable[WholeRow], bits: int) -> list[Fraction]:
    found = []
    for own, (row, total) in zip(numbers, rows, strict=True):
        # of thousands of observables few are reported
        used = list(compress(range(len(row)), row))
        (whole,), exponent = integers(own[None, used])
        top = dot(whole, compress(row, row))
        found.append(Fraction(top, total << (exponent + bits)))
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
    return _sums(numbers, map(released.exact, range(len(numbers))), released.exact_bits)


def expected(weights: Floats, values: list[Fraction]) -> Fraction:
    """Σ_s π(s) v_s."""
    return Fraction(dot(map(Fraction, weights.tolist()), values))


def objective(statement: Statement, released: Numerators) -> tuple[Fraction, Fraction]:
    """Bounds of what is minimised: a loss, a gain, or minus the distortion. They are equal but for
    rows that are spread over the secrets."""
    if statement.spread is not None:
        return expected_loss(statement.spread, statement.prior, statement.loss, released)
    if statement.regrets is not None:
        value = -distortion(*statement.regrets, released)
    elif statement.objective == "worst_loss":
        value = worst_loss(statement, released)
    else:
        value = expected(statement.prior, losses(statement.loss, released))
    return value, value


def worst_loss(statement: Statement, released: Scaled) -> Fraction:
    """The largest expected loss of all secrets, and of all points of the segments between them."""
    at = losses(statement.loss, released)
    if statement.segments is None:
        return max(at)
    a, b = statement.segments.ends.T
    crossed = (
        _sums(statement.loss[costs], ((released.rows[k], 1) for k in rows.tolist()), released.bits)
        for costs, rows in ((a, b), (b, a))
    )
    bends = map(Fraction, statement.segments.bends.tolist())
    parts = zip(a.tolist(), b.tolist(), *crossed, bends, strict=True)
    between = (largest(at[i], (x + y - bend) / 2, at[j]) for i, j, x, y, bend in parts)
    return max(*at, *between)


def _weighted(distance: Floats, prior: Floats) -> tuple[list[list[int]], int]:
    """π(s) d(t,s) as whole numbers over a power of two."""
    whole, first = integers(distance)
    weights, second = integers(prior[None, :])
    return (wholes(whole) * wholes(weights)).tolist(), first + second


_FINER = 64
"""Bits that numbers at the places have more than the released ones."""
_LONGEST = 2**16
"""Bits of a denominator that all places share, at most."""
_SHARE_BITS = 320


@record
class Enclosed(ReadOnly):
    """Whole numbers over 2^bits, at most or at least those that ``shares`` has exactly."""

    bits: int
    rows: tuple[tuple[int, ...], ...]
    shares: tuple[WholeRow, ...]
    exact_bits: int

    def exact(self, s: int) -> WholeRow:
        """Row s in whole numbers, and what they are over, but for 2^exact_bits of all rows."""
        return self.shares[s]

    @cached_property
    def common(self) -> tuple[Scaled, int] | None:
        """All rows in whole numbers over one, times 2^exact_bits; none where it is too long."""
        over = math.lcm(*(total for _, total in self.shares))
        if over.bit_length() > _LONGEST:
            return None
        rows = tuple(tuple(v * (over // total) for v in row) for row, total in self.shares)
        return Enclosed(self.exact_bits, rows, self.shares, self.exact_bits), over

    @cached_property
    def matrix(self) -> Floats:
        """The nearest floats, (places, O)."""
        unit = 1 << self.bits
        return np.array([[value / unit for value in row] for row in self.rows])


def at_places(spread: Spread, released: Numerators) -> tuple[Enclosed, Enclosed]:
    """Lower and upper bounds of Q (places, O), equal or one unit apart.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    low, high, shares = [], [], []
    rows = wholes(released.rows)
    for control, own in spread.weights:
        share, total = wholes(own) @ rows[list(control)], sum(own)
        low.append(tuple((share << _FINER) // total))
        high.append(tuple(-(-(share << _FINER) // total)))
        common = math.gcd(total, *share)
        shares.append((tuple(share // common), total // common))
    bits, exact = released.bits + _FINER, tuple(shares)
    below, above = (Enclosed(bits, tuple(rows), exact, released.bits) for rows in (low, high))
    return below, above


def expected_loss(
    spread: Spread, weights: Floats, costs: Floats, released: Numerators
) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of Σ_x w_x Σ_o Q[x,o] c(x,o), which differ by less than 2^-319 a place.

    ``weights`` (n,) and ``costs`` (n, O) are numbers >= 0, as the binary fractions that they are.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    (mass,), mass_bits = integers(weights[None, :])
    cost, cost_bits = integers(costs)
    rows, low, high = wholes(released.rows), 0, 0
    for (control, own), unit, paid in zip(spread.weights, mass, wholes(cost), strict=True):
        # Σ_α B_α Σ_o c_o N[α, o], the values B_α over their sum
        top = unit * (wholes(own) @ (rows[list(control)] @ paid)) << _SHARE_BITS
        share, rest = divmod(top, sum(own))
        low, high = low + share, high + share + (rest > 0)
    total = 1 << (released.bits + mass_bits + cost_bits + _SHARE_BITS)
    return Fraction(low, total), Fraction(high, total)
