"""The variance of a statistic's best unbiased estimate: an upper figure of a released matrix, and a
lower bound of every mechanism's, both decided in whole numbers (theory: "The least variance of a
statistic")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.exact.number import rounded_down, rounded_up
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
        return np.asarray((self.statistic.T * self.weights) @ self.statistic)


class PieceProof(NamedTuple):
    """Multipliers of a piece of the cone of columns: "cone", all of it; "levels", of columns with
    two values; "facet", of columns with v_i = f_ij v_j for its ``facet`` (i, j); "empty", where
    rows say that there is no column.

    ``rows`` (p, 4) has pairs (i, j), (k, l) of rows f_ij v_j - v_i >= 0, and ``weight`` (p,) what
    their products count. Of "levels" the secret numbered S is the lower value. ``label`` is whose
    loss its columns have, and ``guess`` their best guess, where these count; then (S + u, S + u) is
    the row that says that the guess u is no better.
    """

    form: str
    facet: tuple[int, int] | None
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
    def count(self) -> int:
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
        level = _spread(Dyadic.of(survey.population[None]), gram)
        worth = _norms(seen, counted, plain, lost)[0] - level
    else:
        against = Dyadic.of(proof.population[None])
        slopes = against @ gram
        each = _norms(matrix, counted, plain, lost)
        worth = max(v - 2 * slopes.fraction(slopes.whole[0, s]) for s, v in enumerate(each))
        worth += _spread(against, gram)
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


def _spread(population: Dyadic, gram: Dyadic) -> Fraction:
    """|Cπ|²."""
    return (population @ gram @ population.turned).trace


def variance_bound(
    survey: Survey, proof: VarianceProof, factors: Floats, limits: Sequence[Limit] = ()
) -> float:
    """What no mechanism's variance can be below, as the multipliers prove; -inf where they prove
    nothing. ``factors`` (S, S) are at least what ratios of pairs may be, inf without a limit;
    ``limits`` are of sums over reports."""
    n = len(factors)
    prior = proof.population
    stated = survey.population
    if stated is not None:
        if not np.array_equal(stated, prior):
            return -math.inf
    elif sum(map(Fraction, prior.tolist()), Fraction()) != 1:
        return -math.inf
    given = _charged(proof.charges, limits)
    if (prior < 0).any() or given is None:
        return -math.inf
    factor = np.full((n, n), np.inf)
    factor[proof.pairs[:, 0], proof.pairs[:, 1]] = factors[tuple(proof.pairs.T)]
    guessed = [
        limit for limit, price in zip(limits, given, strict=True) if limit.guessed and price[0]
    ]
    if len(guessed) > 1 or not _covered(factor, proof.pieces, limits, guessed):
        return -math.inf
    gram, inverse = gram_of(survey), Dyadic.of(proof.inverse)
    curve = inverse @ gram @ inverse.turned
    for piece in proof.pieces:
        prices = _prices(proof.prices, piece, limits, given)
        if any(v < 0 and not w for v, w in zip(prices, prior.tolist(), strict=True)):
            return -math.inf
        outer = Dyadic.exactly([[v] for v in prices]) @ Dyadic.of(prior[None])
        turned = Dyadic(outer.whole + outer.whole.transpose(), outer.bits + 1)
        if not _holds(turned - curve, piece, factor, n, guessed[0] if guessed else None):
            return -math.inf
    value = 2 * (inverse @ gram).trace - sum(map(Fraction, proof.prices.tolist()), Fraction())
    for limit, price in zip(limits, given, strict=True):
        value += sum(price) * (limit.most if limit.guessed else -limit.most)
    return rounded_down(value - _spread(Dyadic.of(prior[None]), gram))


def _charged(charges: Floats, limits: Sequence[Limit]) -> list[list[Fraction]] | None:
    """The numbers >= 0 of every limit; all 0 where none are given, None where others are."""
    counts = [limit.count for limit in limits]
    if not len(charges):
        return [[Fraction()] * count for count in counts]
    if len(charges) != sum(counts) or not np.isfinite(charges).all():
        return None
    ends = np.cumsum([0, *counts]).tolist()
    exact = [max(Fraction(v), Fraction()) for v in charges.tolist()]
    return [exact[a:b] for a, b in itertools.pairwise(ends)]


def _prices(
    prices: Floats, piece: PieceProof, limits: Sequence[Limit], given: list[list[Fraction]]
) -> list[Fraction]:
    """λ of the columns of a piece: with what a label's loss costs, less what a guess misses."""
    out = list(map(Fraction, prices.tolist()))
    for limit, charge in zip(limits, given, strict=True):
        k = piece.guess if limit.guessed else piece.label
        if k is not None and any(charge):
            sign = -1 if limit.guessed else 1
            own = zip(limit.row(k), charge * (1 if limit.each else len(out)), strict=True)
            out = [v + sign * a * y for v, (a, y) in zip(out, own, strict=True)]
    return out


def _covered(
    factor: Floats, pieces: tuple[PieceProof, ...], limits: Sequence[Limit], guessed: list[Limit]
) -> bool:
    """Whether every column that counts lies in a piece: extreme rays, or all where guesses count,
    of every label and every best guess."""
    losses = [limit.table for limit in limits if not limit.guessed]
    count = len(losses[0]) if losses else 0
    if any(p.label is not None and not 0 <= p.label < count for p in pieces):
        return False
    guesses: Sequence[int | None] = range(len(guessed[0].table)) if guessed else [None]
    if guessed and any(p.form not in ("cone", "empty") or p.guess not in guesses for p in pieces):
        return False
    if not guessed and any(p.form == "empty" for p in pieces):
        return False
    named = {k: tuple(table[k].tobytes() for table in losses) for k in range(count)}
    plain = tuple(p for p in pieces if p.label is None)
    kinds = set(named.values()) or {()}
    for kind in kinds:
        own = plain + tuple(p for p in pieces if p.label is not None and named[p.label] == kind)
        for t in guesses:
            if not complete(factor, tuple(p for p in own if t is None or p.guess == t)):
                return False
    return True


def complete(factor: Floats, pieces: tuple[PieceProof, ...]) -> bool:
    """Whether every extreme ray of the columns lies in a piece. A proof of fewer is none."""
    forms = {piece.form for piece in pieces}
    n = len(factor)
    if forms in ({"cone"}, {"empty"}):
        return True
    if forms == {"levels"}:
        off = factor[~np.eye(n, dtype=bool)]
        return n > 1 and np.isfinite(off[0]) and bool((off == off[0]).all()) and off[0] > 1
    if forms != {"facet"}:
        return False
    listed = {piece.facet for piece in pieces if piece.facet is not None}
    return any(wanted <= listed for s in range(n) if (wanted := facets(factor, s)))


def facets(factor: Floats, s: int) -> set[tuple[int, int]]:
    """The rows of a secret, both ways; one of them is tight at every extreme ray. Empty where there
    are none of either way, as then it need not be so."""
    to = [(s, j) for j in limited(factor)[s].nonzero()[0].tolist()]
    back = [(i, s) for i in limited(factor)[:, s].nonzero()[0].tolist()]
    return {*to, *back} if to and back else set()


def limited(factor: Floats) -> Bools:
    """Pairs of different secrets with a limit."""
    return np.isfinite(factor) & ~np.eye(len(factor), dtype=bool)


def _holds(
    slack: Dyadic, piece: PieceProof, factor: Floats, n: int, guessed: Limit | None = None
) -> bool:
    """Whether the slack, less what the piece's products take, is positive semidefinite on it."""
    if piece.guess is not None and guessed is not None:
        rows, table = _products(piece, factor, n, guessed)
        if piece.form == "empty":
            sums = [sum(table[k][k] * row[s] for k, row in enumerate(rows)) for s in range(n)]
            return max(sums) < 0
        if not rows:
            return is_positive(slack)
        basis = Dyadic.exactly(rows)
        return is_positive(slack - (basis.turned @ Dyadic.exactly(table) @ basis))
    size = n
    if piece.form == "levels":
        size = n + 1
        level = factor[0, 1]
        factor = np.pad(factor, (0, 1), constant_values=level)
        factor[n] = 1.0
    rows, weights = piece.rows, np.where(np.isfinite(piece.weight), piece.weight, 0.0)
    i, j, k, m = rows.T
    free = (i == m) & (j == k) if piece.form == "levels" else np.zeros(len(i), dtype=bool)
    free &= (i == n) | (j == n)
    used = (free | (weights > 0)) & np.isfinite(factor[i, j]) & np.isfinite(factor[k, m])
    used &= (i != j) & (k != m)
    i, j, k, m, weights = i[used], j[used], k[used], m[used], weights[used]
    ones = np.ones(len(i))
    # weight (f_ij v_j - v_i)(f_km v_m - v_k), twice
    numbers = [Dyadic.of(np.atleast_2d(v)) for v in (weights, factor[i, j], factor[k, m], ones)]
    weight, left, right, _ = (
        [int(v) for v in own.whole.tolist()[0]] if len(i) else [] for own in numbers
    )
    a, b = (numbers[1].bits, numbers[2].bits) if len(i) else (0, 0)
    bits = (numbers[0].bits if len(i) else 0) + a + b
    table = [[0] * size for _ in range(size)]
    for p, (w, f, g) in enumerate(zip(weight, left, right, strict=True)):
        x, y, z, t = int(i[p]), int(j[p]), int(k[p]), int(m[p])
        table[y][t] += w * f * g
        table[y][z] -= w * f << b
        table[x][t] -= w * g << a
        table[x][z] += w << (a + b)
    taken = Dyadic(flint.fmpz_mat(table), bits + 1)
    taken = Dyadic(taken.whole + taken.whole.transpose(), taken.bits)
    padded = slack
    if size > n:
        whole = slack.whole.tolist()
        padded = Dyadic(flint.fmpz_mat([*([*row, 0] for row in whole), [0] * size]), slack.bits)
    rest = padded - taken
    if piece.facet is not None:
        rest = _on_facet(rest, *piece.facet, float(factor[piece.facet]))
    return is_positive(rest)


def _products(
    piece: PieceProof, factor: Floats, n: int, guessed: Limit
) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """A and N of the rows of ratios, and of guesses that are no better than the piece's."""
    assert piece.guess is not None
    own, errors = guessed.row(piece.guess), guessed.table
    places: dict[tuple[int, int], int] = {}
    rows: list[list[Fraction]] = []
    used = []
    for ends, weight in zip(piece.rows.tolist(), piece.weight.tolist(), strict=True):
        both = []
        for i, j in (ends[:2], ends[2:]):
            row: list[Fraction] | None = None
            if i == j and 0 <= i - n < len(errors):
                row = [a - b for a, b in zip(guessed.row(i - n), own, strict=True)]
            elif i != j and max(i, j) < n and np.isfinite(factor[i, j]):
                row = [Fraction()] * n
                row[i], row[j] = Fraction(-1), Fraction(float(factor[i, j]))
            if row is not None:
                if (i, j) not in places:
                    places[i, j] = len(rows)
                    rows.append(row)
                both.append(places[i, j])
        if len(both) == 2 and 0 < weight < math.inf:
            used.append((*both, Fraction(weight)))
    table = [[Fraction()] * len(rows) for _ in rows]
    for a, b, value in used:
        table[a][b] += value / 2
        table[b][a] += value / 2
    return rows, table


def _on_facet(form: Dyadic, i: int, j: int, factor: float) -> Dyadic:
    """A form where v_i = f v_j."""
    size = form.whole.nrows()
    onto = np.delete(np.eye(size), i, axis=1)
    onto[i, j - (j > i)] = factor
    basis = Dyadic.of(onto)
    return basis.turned @ form @ basis


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
