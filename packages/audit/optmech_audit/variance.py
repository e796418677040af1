"""Of designs for statistics: the variance of an estimate, and a bound of every mechanism's
(theory, "The least variance of a statistic").

A symmetric form is proved to be positive semidefinite as L Lᵀ and a rest whose diagonal is at least
the sum of the sizes beside it. L comes from floats, and whether it will do is decided exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from optmech_audit.document import (
    Body,
    Matrix,
    Rows,
    Vector,
    distribution,
    fractions,
    indices,
    keys,
    listing,
    one_of,
    whole,
)
from optmech_audit.mechanisms import MOST_ENTRIES, Mechanism
from optmech_audit.numbers import ONE, ZERO, Fault, dot, need, number, paired, transposed
from optmech_audit.places import Places

NAMES = ("histogram", "cdf", "ranges", "marginals", "mean")
FORMS = ("cone", "levels", "rays", "empty")
SHIFTS = (2.0**-20, 2.0**-30, 2.0**-38, 2.0**-44)
OF_FACTOR = 62
ROOT_BITS = 128
RowPair = tuple[int, int]


class Survey(NamedTuple):
    """Cθ is estimated, whose rows count so many times, at a population or at the worst."""

    statistic: Matrix
    weights: Vector
    population: Vector | None

    @property
    def gram(self) -> Matrix:
        """S = Cᵀ Ω C."""
        columns = list(map(list, transposed(self.statistic)))
        heavy = [[v * w for v, w in paired(column, self.weights)] for column in columns]
        return [[dot(a, b) for b in columns] for a in heavy]


class Piece(NamedTuple):
    form: str
    rows: list[tuple[int, int, int, int]]
    weight: Vector
    label: int | None  # whose loss its columns have
    guess: int | None  # the best of an adversary


class Limit(NamedTuple):
    """Σ_o row(label of o) · v_o <= most, or that of each secret; or of the best guess, >= most."""

    scale: Vector
    table: Matrix  # by labels or guesses
    most: Fraction
    each: bool
    guessed: bool

    def row(self, k: int) -> Vector:
        return [a * b for a, b in paired(self.scale, self.table[k])]


class Proof(NamedTuple):
    estimate: Matrix
    population: Vector
    inverse: Matrix
    prices: Vector
    pairs: list[RowPair]
    pieces: list[Piece]
    charges: Vector


def read_survey(goal: Body, prior: Vector, secrets: Places) -> Survey:
    """The objective of a problem."""
    keys(goal, "statistic population weights")
    n, said = len(prior), goal["statistic"]
    if isinstance(said, str):
        rows = named(one_of(said, NAMES, "the statistic"), secrets)
    else:
        rows = [fractions(row, n, -math.inf) for row in listing(said)]
        need(any(map(any, rows)), "a statistic of nothing")
    need(0 < len(rows) * n <= MOST_ENTRIES, "a statistic of nothing, or a large one")
    weights = [ONE] * len(rows)
    if goal["weights"] is not None:
        weights = fractions(goal["weights"], len(rows))
        need(any(weights), "no row counts")
    if goal["population"] == "worst":
        return Survey(rows, weights, None)
    people = prior if goal["population"] is None else distribution(goal["population"], n)
    return Survey(rows, weights, people)


def named(name: str, secrets: Places) -> Matrix:
    """The matrix of a named statistic."""
    every, n = range(len(secrets.labels)), len(secrets.labels)
    if name == "histogram":
        return [[Fraction(s == t) for s in every] for t in every]
    if name == "cdf":
        return [[Fraction(s <= t) for s in every] for t in every]
    if name == "ranges":
        ends = ((a, b) for a in every for b in range(a, n))
        return [[Fraction(a <= s <= b) for s in every] for a, b in ends]
    if name == "mean":
        if secrets.points is None:
            raise Fault("a mean of secrets without coordinates")
        return [list(map(Fraction, row)) for row in transposed(secrets.points)]
    places = [label if isinstance(label, tuple) else (label,) for label in secrets.labels]
    sizes = {len(place) for place in places}
    need(len(sizes) == 1 and min(sizes) > 1, "marginals of what is no product")
    parts: Matrix = []
    for axis in range(min(sizes)):
        own = [place[axis] for place in places]
        parts += [[Fraction(v == each) for v in own] for each in dict.fromkeys(own)]
    return parts


def read_proof(plain: object, n: int, m: int) -> Proof:
    """The multipliers of the file."""
    wanted = "estimate population inverse prices pairs pieces"
    body = keys(plain, wanted, "charges")
    estimate, people, inverse, prices, pairs, pieces = (body[name] for name in wanted.split())
    ends = indices(pairs, n)
    need(len(ends) % 2 == 0, "a pair is incomplete")
    return Proof(
        [numbers(row, m) for row in listing(estimate, n)],
        numbers(people, n),
        [numbers(row, n) for row in listing(inverse, n)],
        numbers(prices, n),
        list(paired(ends[::2], ends[1::2])),
        [read_piece(part, n, m) for part in listing(pieces)],
        [number(v) for v in listing(body.get("charges", []))],
    )


def numbers(value: object, count: int) -> Vector:
    """Floats or whole numbers, as what they are."""
    return [number(v) for v in listing(value, count)]


def read_piece(plain: object, n: int, m: int) -> Piece:
    own = [name for name in ("label", "guess") if isinstance(plain, dict) and name in plain]
    body = keys(plain, " ".join(["form rows weight", *own]))
    form, rows, weight = (body[name] for name in ("form", "rows", "weight"))
    label = whole(body["label"], m) if "label" in own else None
    guess = whole(body["guess"], n) if "guess" in own else None
    form = one_of(form, FORMS, "the form of a piece")
    found = indices(rows, n + (form == "levels") if guess is None else 2 * n)
    weights = [number(v) for v in listing(weight)]
    need(len(found) == 4 * len(weights), "lists of a piece have different lengths")
    fours = [(found[k], found[k + 1], found[k + 2], found[k + 3]) for k in range(0, len(found), 4)]
    return Piece(form, fours, weights, label, guess)


class Dyadic(NamedTuple):
    """A matrix of whole numbers over 2^bits."""

    rows: Rows
    bits: int

    def times(self, other: Dyadic) -> Dyadic:
        columns = list(transposed(other.rows))
        rows = [[sum(x * y for x, y in paired(row, c) if x) for c in columns] for row in self.rows]
        return Dyadic(rows, self.bits + other.bits)

    def less(self, other: Dyadic) -> Dyadic:
        bits = max(self.bits, other.bits)
        a, b = bits - self.bits, bits - other.bits
        rows = [
            [(x << a) - (y << b) for x, y in paired(*pair)]
            for pair in paired(self.rows, other.rows)
        ]
        return Dyadic(rows, bits)

    @property
    def turned(self) -> Dyadic:
        return Dyadic(list(map(list, transposed(self.rows))), self.bits)

    @property
    def trace(self) -> Fraction:
        return Fraction(sum(row[k] for k, row in enumerate(self.rows)), 1 << self.bits)


def dyadic(values: Matrix) -> Dyadic:
    """Floats, or sums and products of them."""
    bits = max((v.denominator.bit_length() - 1 for row in values for v in row), default=0)
    return Dyadic([[int(v * (1 << bits)) for v in row] for row in values], bits)


def root_above(value: Fraction) -> Fraction:
    """A number >= the root of one >= 0, and hardly above."""
    if value <= 0:
        return ZERO
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 2 * ROOT_BITS - size)
    shift += shift % 2
    return Fraction(
        math.isqrt(-((-value.numerator << shift) // value.denominator)) + 1, 1 << shift // 2
    )


def figure(survey: Survey, p: Mechanism, proof: Proof) -> Fraction:
    """An upper figure of the variance. With L = (L₀P)⁻¹L₀ the estimate CL is unbiased; where
    E = L₀P - 1 is small, CL is within |CE| |L₀| / (1 - |E|) of CL₀."""
    n, gram, near = len(proof.estimate), dyadic(survey.gram), dyadic(proof.estimate)
    matrix = Dyadic(p.rows, p.bits)
    unit = Dyadic([[int(s == t) for s in range(n)] for t in range(n)], 0)
    off = near.times(matrix.turned).less(unit)
    size = root_above(off.turned.times(off).trace)
    need(size < Fraction(1, 2), "what is counted is no left inverse")
    lost = root_above(off.turned.times(gram).times(off).trace) / (1 - size)
    counted, plain = squares(near, gram), squares(near, unit)

    def norm(seen: Vector) -> Fraction:
        return (root_above(dot(seen, counted)) + lost * root_above(dot(seen, plain))) ** 2

    rows = [[Fraction(v, 1 << p.bits) for v in row] for row in p.rows]
    if survey.population is not None:
        seen = [dot(column, survey.population) for column in transposed(rows)]
        return norm(seen) - spread(survey.population, survey.gram)
    slopes = [dot(row, proof.population) for row in survey.gram]
    each = (norm(row) - 2 * slope for row, slope in paired(rows, slopes))
    return max(each) + spread(proof.population, survey.gram)


def squares(near: Dyadic, weight: Dyadic) -> Vector:
    """L_oᵀ S L_o for every report."""
    pushed = weight.times(near)
    over = 1 << (near.bits + pushed.bits)
    sides = paired(transposed(near.rows), transposed(pushed.rows))
    return [Fraction(sum(x * y for x, y in paired(*side)), over) for side in sides]


def spread(people: Vector, gram: Matrix) -> Fraction:
    """|Cπ|²."""
    return dot(people, [dot(row, people) for row in gram])


def is_positive(form: Dyadic) -> bool:
    """Whether a symmetric form is proved to be positive semidefinite."""
    rows = form.rows
    if any(row[k] < 0 or (row[k] == 0 and any(row)) for k, row in enumerate(rows)):
        return False
    kept = [k for k, row in enumerate(rows) if row[k]]
    scale = [-((rows[k][k].bit_length() - 1) // 2) for k in kept]
    unit = -2 * min(scale, default=0)
    sides = list(paired(kept, scale))
    own = [[rows[k][m] << (a + b + unit) for m, b in sides] for k, a in sides]
    near = [[scaled(v, unit) for v in row] for row in own]
    for shift in SHIFTS:
        low = factored(near, shift)
        if low is None:
            continue
        square = Dyadic(low, OF_FACTOR).times(Dyadic(low, OF_FACTOR).turned)
        rest = Dyadic(own, unit).less(square)
        if all(2 * row[k] >= sum(map(abs, row)) for k, row in enumerate(rest.rows)):
            return True
    return not kept


def scaled(value: int, bits: int) -> float:
    drop = max(0, abs(value).bit_length() - 64)
    return math.ldexp(float(value >> drop), drop - bits)


def factored(near: list[list[float]], shift: float) -> Rows | None:
    """Cholesky's factor of a form less the shift, rounded; none where it breaks off."""
    low: list[list[float]] = []
    for k, row in enumerate(near):
        new: list[float] = []
        for m in range(k):
            left = row[m] - math.fsum(x * y for x, y in zip(new, low[m], strict=False))
            new.append(left / low[m][m])
        rest = row[k] - shift - math.fsum(x * x for x in new)
        if not rest > 0:
            return None
        low.append([*new, math.sqrt(rest)])
    size = len(near)
    return [[*(round(v * 2.0**OF_FACTOR) for v in row), *[0] * (size - len(row))] for row in low]
