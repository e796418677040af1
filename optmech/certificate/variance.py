"""The variance of a statistic's best unbiased estimate: an upper figure of a released matrix, and a
lower bound of every mechanism's, both decided in whole numbers (theory: "The least variance of a
statistic")."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.exact.number import rounded_up
from optmech.exact.numerators import Numerators, integers

_SHIFTS = (2.0**-20, 2.0**-30, 2.0**-38, 2.0**-44)
"""Taken off the diagonal before a factor is computed, relative to it."""
_DIGITS = 62
"""Bits behind the point of a factor's entries."""
_ROOT_BITS = 128


@record
class Survey(ReadOnly):
    """What is estimated: ``statistic`` C (q, S) of a population θ is Cθ, of whose rows the variance
    counts ``weights`` (q,) times; ``population`` (S,), or None for the worst of all."""

    statistic: Floats
    weights: Floats
    population: Floats | None

    @property
    def gram(self) -> Floats:
        """S = Cᵀ Ω C, rounded, (S, S)."""
        return (self.statistic.T * self.weights) @ self.statistic


class PieceProof(NamedTuple):
    """Multipliers of a piece of the cone of columns: "cone", all of it; "levels", of columns with
    two values; "rays", every extreme ray by itself, without multipliers; "empty", where rows say
    that there is no column.

    ``rows`` (p, 4) has pairs (i, j), (k, l) of rows f_ij v_j - v_i >= 0, and ``weight`` (p,) what
    their products count. Of "levels" the secret numbered S is the lower value. ``label`` is whose
    loss its columns have, and ``guess`` their best guess, where these count; then (S + u, S + u) is
    the row that says that the guess u is no better.
    """

    form: str
    rows: Ints
    weight: Floats
    label: int | None = None
    guess: int | None = None


@record
class VarianceProof(ReadOnly):
    """How reports are counted, and what proves that no mechanism does much better.

    ``estimate`` (S, O) is near a left inverse of the matrix: what makes it one exactly is charged.
    ``pairs`` (p, 2) are the limited pairs of secrets that the bound rests on, any of those that
    there are. ``population`` (S,) is the one of the bound; ``inverse`` (S, S) and ``prices`` (S,)
    are T and λ of the theorem, and ``charges`` (q,) what the limits count: of every ``Limit`` in
    their order one number, or one for every secret.
    """

    estimate: Floats
    population: Floats
    inverse: Floats
    prices: Floats
    pairs: Ints
    pieces: tuple[PieceProof, ...]
    charges: Floats = field(default_factory=lambda: np.zeros(0))


class Limit(NamedTuple):
    """Σ_o Σ_s scale[s] table[k][s] v_o[s] <= most, k the label of o, or the same of ``each`` s; or,
    where ``guessed``, >= most of the best guess k of every column."""

    scale: Floats
    table: Floats
    most: Fraction
    each: bool = False
    guessed: bool = False

    @property
    def charges(self) -> int:
        """How many numbers it is charged with."""
        return len(self.scale) if self.each else 1

    def row(self, k: int) -> list[Fraction]:
        """What a column of a label counts, by secrets, exactly."""
        own = zip(self.scale.tolist(), self.table[k].tolist(), strict=True)
        return [Fraction(a) * Fraction(b) for a, b in own]


class Dyadic(NamedTuple):
    """A matrix of whole numbers over 2^bits."""

    whole: Any
    bits: int

    @classmethod
    def of(cls, values: Floats) -> Dyadic:
        rows, bits = integers(np.atleast_2d(values))
        return cls(flint.fmpz_mat(rows), bits)

    @classmethod
    def exactly(cls, rows: list[list[Fraction]]) -> Dyadic:
        """Of sums of products of floats."""
        bits = max((v.denominator.bit_length() - 1 for row in rows for v in row), default=0)
        return cls(flint.fmpz_mat([[int(v * (1 << bits)) for v in row] for row in rows]), bits)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.whole * other.whole, self.bits + other.bits)

    def __sub__(self, other: Dyadic) -> Dyadic:
        bits = max(self.bits, other.bits)
        return Dyadic(self.raised(bits).whole - other.raised(bits).whole, bits)

    @property
    def turned(self) -> Dyadic:
        return Dyadic(self.whole.transpose(), self.bits)

    def raised(self, bits: int) -> Dyadic:
        """The same over a larger power."""
        return Dyadic(self.whole * flint.fmpz(1 << (bits - self.bits)), bits)

    def fraction(self, value: Any) -> Fraction:
        return Fraction(int(value), 1 << self.bits)

    def diagonal(self) -> list[Fraction]:
        return [self.fraction(self.whole[k, k]) for k in range(self.whole.nrows())]

    @property
    def trace(self) -> Fraction:
        return sum(self.diagonal(), Fraction())


def gram_of(survey: Survey) -> Dyadic:
    """S = Cᵀ Ω C, exactly."""
    c, w = Dyadic.of(survey.statistic), Dyadic.of(np.diag(survey.weights))
    return c.turned @ w @ c


def estimator(matrix: Floats, population: Floats) -> Floats:
    """The best linear unbiased estimate of the histogram from shares of reports, (S, O), at a
    population; in floating point. Rows of a matrix that tells too little are least squares."""
    seen = population @ matrix
    used = seen > 0
    scaled = matrix[:, used] / seen[used]
    out = np.zeros(matrix.shape)
    information = scaled @ matrix[:, used].T
    out[:, used] = np.linalg.pinv(information, rcond=1e-13, hermitian=True) @ scaled
    return out


def spread_value(survey: Survey, matrix: Floats, at: Floats | None = None) -> float:
    """The variance of the best unbiased estimate, in floating point; inf where there is none. Of
    the worst population that of the estimate that is best ``at`` one."""
    people = survey.population
    if at is None:
        at = np.full(len(matrix), 1 / len(matrix)) if people is None else people
    guess = estimator(matrix, at)
    left = guess @ matrix.T - np.eye(len(matrix))
    if float(np.abs(survey.statistic @ left).max()) > 1e-6 * float(np.abs(survey.statistic).max()):
        return math.inf
    square = ((survey.gram @ guess) * guess).sum(axis=0)
    each = matrix @ square
    if people is not None:
        return float(people @ each - people @ survey.gram @ people)
    slopes = survey.gram @ at
    return float((each - 2 * slopes).max() + at @ slopes)


def root_above(value: Fraction) -> Fraction:
    """A number >= the root of one >= 0, within 2^-128 of it relatively."""
    if value <= 0:
        return Fraction(0)
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 2 * _ROOT_BITS - size)
    shift += shift % 2
    scaled = -((-value.numerator << shift) // value.denominator)
    return Fraction(math.isqrt(scaled) + 1, 1 << (shift // 2))


def variance(survey: Survey, released: Numerators, proof: VarianceProof) -> float:
    """An upper figure of N times the total variance of the estimate that ``proof`` has; inf where
    that is no left inverse, nearly.

    With L = (L₀P)⁻¹L₀ of the matrix L₀ given, CL is unbiased exactly. Where E = L₀P - 1 has a norm
    below 1, a norm of CL is at most that of CL₀ and |CE| |L₀| / (1 - |E|).
    """
    gram, near = gram_of(survey), Dyadic.of(proof.estimate)
    matrix = Dyadic(flint.fmpz_mat([list(row) for row in released.rows]), released.bits)
    off = near @ matrix.turned - Dyadic.of(np.eye(len(proof.estimate)))
    size = root_above((off.turned @ off).trace)
    if not size < Fraction(1, 2):
        return math.inf
    lost = root_above((off.turned @ gram @ off).trace) / (1 - size)
    counted, plain = (_squares(near, weight) for weight in (gram, None))
    if survey.population is not None:
        seen = Dyadic.of(survey.population[None]) @ matrix
        level = spread_of(Dyadic.of(survey.population[None]), gram)
        worth = _norms(seen, counted, plain, lost)[0] - level
    else:
        against = Dyadic.of(proof.population[None])
        slopes = against @ gram
        each = _norms(matrix, counted, plain, lost)
        worth = max(v - 2 * slopes.fraction(slopes.whole[0, s]) for s, v in enumerate(each))
        worth += spread_of(against, gram)
    return rounded_up(worth)


def _squares(near: Dyadic, weight: Dyadic | None) -> Dyadic:
    """L_oᵀ S L_o for every report, in a column (O, 1)."""
    pushed = near if weight is None else weight @ near
    a, b = near.whole.tolist(), pushed.whole.tolist()
    sums = [[sum(x * y for x, y in zip(*pair, strict=True))] for pair in
            zip(zip(*a, strict=True), zip(*b, strict=True), strict=True)]  # fmt: skip
    return Dyadic(flint.fmpz_mat(sums), near.bits + pushed.bits)


def _norms(seen: Dyadic, counted: Dyadic, plain: Dyadic, lost: Fraction) -> list[Fraction]:
    """What every row of probabilities says of the squares, with what was lost."""
    first, second = seen @ counted, seen @ plain
    return [
        (root_above(first.fraction(first.whole[k, 0]))
         + lost * root_above(second.fraction(second.whole[k, 0]))) ** 2
        for k in range(seen.whole.nrows())
    ]  # fmt: skip


def spread_of(population: Dyadic, gram: Dyadic) -> Fraction:
    """|Cπ|²."""
    return (population @ gram @ population.turned).trace


def is_positive(form: Dyadic) -> bool:
    """Whether a symmetric form is proved to be positive semidefinite: as the square of a factor and
    a rest whose diagonal is at least the sum of the sizes beside it."""
    rows = [[int(v) for v in row] for row in form.whole.tolist()]
    size = len(rows)
    if any(rows[k][k] < 0 for k in range(size)):
        return False
    kept = [k for k in range(size) if rows[k][k] > 0]
    if any(rows[k][m] for k in range(size) if rows[k][k] == 0 for m in range(size)):
        return False
    # scaled by powers of two to a diagonal between 1/2 and 4
    scale = [-((rows[k][k].bit_length() - 1) // 2) for k in kept]
    least = min(scale, default=0)
    own = [[rows[k][m] << (a + b - 2 * least) for m, b in zip(kept, scale, strict=True)]
           for k, a in zip(kept, scale, strict=True)]  # fmt: skip
    unit = -2 * least
    near = np.array([[math.ldexp(*_short(v, unit)) for v in row] for row in own])
    for shift in _SHIFTS:
        try:
            factor = np.linalg.cholesky(near - shift * np.eye(len(near)))
        except np.linalg.LinAlgError:
            continue
        rounded = [[round(v * 2.0**_DIGITS) for v in row] for row in factor.tolist()]
        low = flint.fmpz_mat(rounded)
        rest = Dyadic(flint.fmpz_mat(own), unit) - Dyadic(low * low.transpose(), 2 * _DIGITS)
        table = rest.whole.tolist()
        if all(2 * row[k] >= sum(map(abs, row)) for k, row in enumerate(table)):
            return True
    return not kept


def _short(value: int, bits: int) -> tuple[float, int]:
    """A whole number over 2^bits as a float and a power of two."""
    drop = max(0, abs(value).bit_length() - 64)
    return float(value >> drop), drop - bits
