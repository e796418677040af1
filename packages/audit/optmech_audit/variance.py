"""Of designs for statistics: the variance of an estimate, and a bound of every mechanism's
(theory, "The least variance of a statistic").

A symmetric form is proved to be positive semidefinite as L Lᵀ and a rest whose diagonal is at least
the sum of the sizes beside it. L comes from floats, and whether it will do is decided exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
)
from optmech_audit.mechanisms import MOST_ENTRIES, Mechanism
from optmech_audit.numbers import ONE, ZERO, Fault, dot, need, number, paired, transposed
from optmech_audit.places import Places

NAMES = ("histogram", "cdf", "ranges", "marginals", "mean")
FORMS = ("cone", "levels", "facet", "empty")
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
    facet: RowPair | None
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
    body = keys(plain, " ".join(["form facet rows weight", *own]))
    form, facet, rows, weight = (body[name] for name in ("form", "facet", "rows", "weight"))
    label = indices([body["label"]], m, 1)[0] if "label" in own else None
    guess = indices([body["guess"]], n, 1)[0] if "guess" in own else None
    form = one_of(form, FORMS, "the form of a piece")
    need((form == "facet") == (facet is not None), "a piece with a facet that it has not")
    ends = None
    if facet is not None:
        i, j = indices(facet, n, 2)
        need(i != j, "a facet is no pair of secrets")
        ends = i, j
    found = indices(rows, n + (form == "levels") if guess is None else 2 * n)
    weights = [number(v) for v in listing(weight)]
    need(len(found) == 4 * len(weights), "lists of a piece have different lengths")
    fours = [(found[k], found[k + 1], found[k + 2], found[k + 3]) for k in range(0, len(found), 4)]
    return Piece(form, ends, fours, weights, label, guess)


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


def bound_of(
    survey: Survey, proof: Proof, factor: Callable[[int, int], Fraction | None],
    limits: list[Limit],
) -> Fraction:  # fmt: skip
    """What no mechanism's variance is below; ``factor`` is above the ratio of a limited pair.
    Refused where the multipliers prove nothing."""
    people, n = proof.population, len(proof.population)
    if survey.population is not None:
        need(people == survey.population, "the bound is of another population")
    else:
        need(sum(people, ZERO) == 1, "the population of the bound does not sum to one")
    need(min(people) >= 0, "a population below zero")
    known = {(i, j): f for i, j in proof.pairs if i != j and (f := factor(i, j)) is not None}
    charged = charges_of(proof.charges, limits, n)
    guesses = [limit for limit, price in charged if limit.guessed and price[0]]
    need(len(guesses) <= 1, "two attacks are charged")
    require_covered(known, proof.pieces, limits, guesses, n)
    gram, inverse = dyadic(survey.gram), dyadic(proof.inverse)
    curve = inverse.times(gram).times(inverse.turned)
    for k, piece in enumerate(proof.pieces):
        prices = list(proof.prices)
        for limit, price in charged:
            at = piece.guess if limit.guessed else piece.label
            if at is not None and any(price):
                sign = -1 if limit.guessed else 1
                prices = [v + sign * a * y for v, a, y in
                          zip(prices, limit.row(at), price, strict=True)]  # fmt: skip
        need(all(w > 0 or v >= 0 for w, v in paired(people, prices)), "a price below zero")
        halves = [[(a * q + b * w) / 2 for b, q in paired(prices, people)]
                  for a, w in paired(prices, people)]  # fmt: skip
        slack = dyadic(halves).less(curve)
        guess = guesses[0] if guesses else None
        need(holds(slack, piece, known, n, guess), f"the multipliers of piece {k} prove nothing")
    value = 2 * inverse.times(gram).trace - sum(proof.prices, ZERO)
    for limit, price in charged:
        paid = sum(price, ZERO) if limit.each else price[0]
        value += paid * (limit.most if limit.guessed else -limit.most)
    return value - spread(people, survey.gram)


def charges_of(given: Vector, limits: list[Limit], n: int) -> list[tuple[Limit, Vector]]:
    """Every limit with what it counts of each secret; nothing where none are given."""
    wanted = sum(n if limit.each else 1 for limit in limits)
    need(len(given) in (0, wanted), "another number of charges")
    left = [max(v, ZERO) for v in given] or [ZERO] * wanted
    out = []
    for limit in limits:
        count = n if limit.each else 1
        out.append((limit, left[:count] * (1 if limit.each else n)))
        left = left[count:]
    return out


def require_covered(
    known: dict[RowPair, Fraction], pieces: list[Piece], limits: list[Limit],
    guesses: list[Limit], n: int,
) -> None:  # fmt: skip
    """Every column that counts lies in a piece: of every label's loss, and of every best guess,
    where all columns count, and not only extreme ones."""
    tables = [limit.table for limit in limits if not limit.guessed]
    count = len(tables[0]) if tables else 0
    need(all(p.label is None or p.label < count for p in pieces), "a label without a loss")
    if guesses:
        forms = ("cone", "empty")
        need(all(p.form in forms and p.guess is not None for p in pieces), "a piece of no guess")
    else:
        need(all(p.form != "empty" for p in pieces), "a piece without columns")
    losses = [[table[k] for table in tables] for k in range(count)]
    for wanted in losses or [[]]:
        for t in range(len(guesses[0].table)) if guesses else (None,):
            own = [p for p in pieces if p.label is None or losses[p.label] == wanted]
            require_complete(known, [p for p in own if t is None or p.guess == t], n)


def require_complete(known: dict[RowPair, Fraction], pieces: list[Piece], n: int) -> None:
    """Every extreme ray of the columns lies in a piece: all of them in the whole cone; where one
    factor holds for all pairs, each has two values; and on a limit of any secret, of either way,
    where it has limits both ways."""
    forms = {piece.form for piece in pieces}
    need(len(forms) == 1, "pieces of several forms, or none")
    if forms == {"levels"}:
        values = set(known.values())
        need(
            len(known) == n * (n - 1) > 0 and len(values) == 1, "columns with more than two values"
        )
        need(min(values) > 1, "columns that are all alike")
    if forms == {"facet"}:
        listed = {piece.facet for piece in pieces}
        for s in range(n):
            to, back = ({pair for pair in known if pair[side] == s} for side in (0, 1))
            if to and back and to | back <= listed:
                return
        raise Fault("limits of a secret are missing among the pieces")


def holds(
    slack: Dyadic, piece: Piece, known: dict[RowPair, Fraction], n: int, guess: Limit | None
) -> bool:
    """Whether the slack, less what products of limits take, is positive semidefinite there."""
    if guess is not None:
        if piece.form == "empty":
            return max(guessed_sums(piece, known, n, guess)) < 0
        return is_positive(slack.less(dyadic(guessed_products(piece, known, n, guess))))
    factors, size = dict(known), n
    if piece.form == "levels":
        size, level = n + 1, next(iter(known.values()))
        factors |= {(n, i): ONE for i in range(n)} | {(i, n): level for i in range(n)}
    table = [[ZERO] * size for _ in range(size)]
    for (i, j, k, m), weight in paired(piece.rows, piece.weight):
        free = piece.form == "levels" and (i, j) == (m, k) and n in (i, j)
        f, g = factors.get((i, j)), factors.get((k, m))
        if f is None or g is None or not (free or weight > 0):
            continue
        for a, x in ((j, f), (i, -ONE)):
            for b, y in ((m, g), (k, -ONE)):
                table[a][b] += weight * x * y
    both = [[(table[a][b] + table[b][a]) / 2 for b in range(size)] for a in range(size)]
    padded = [[*row, *[0] * (size - n)] for row in slack.rows] + [[0] * size] * (size - n)
    rest = Dyadic(padded, slack.bits).less(dyadic(both))
    if piece.facet is not None:
        i, j = piece.facet
        left = [s for s in range(size) if s != i]
        onto = [[Fraction(s == t) for t in left] for s in range(size)]
        onto[i][left.index(j)] = factors[piece.facet]
        basis = dyadic(onto)
        rest = basis.turned.times(rest).times(basis)
    return is_positive(rest)


def guessed_row(
    ends: RowPair, piece: Piece, known: dict[RowPair, Fraction], n: int, guess: Limit
) -> Vector | None:
    """What is >= 0 of every column of a piece: of (i, j) the limit of a ratio; of (n + u, n + u)
    that the guess u is no better than that of the piece."""
    (i, j), best = ends, piece.guess
    if i == j and 0 <= i - n < len(guess.table) and best is not None:
        return [a - b for a, b in paired(guess.row(i - n), guess.row(best))]
    if ends not in known:
        return None
    return [known[ends] * (s == j) - (s == i) for s in range(n)]


def guessed_sums(piece: Piece, known: dict[RowPair, Fraction], n: int, guess: Limit) -> Vector:
    """What weights of rows add up to; where that is below 0 everywhere there is no column."""
    sums = [ZERO] * n
    for (i, j, k, m), weight in paired(piece.rows, piece.weight):
        row = guessed_row((i, j), piece, known, n, guess) if (i, j) == (k, m) else None
        if row is not None and weight > 0:
            sums = [a + weight * b for a, b in paired(sums, row)]
    return sums


def guessed_products(piece: Piece, known: dict[RowPair, Fraction], n: int, guess: Limit) -> Matrix:
    """What products of those rows take."""
    # of every row the sum of what it is multiplied with
    rows: dict[RowPair, Vector | None] = {}
    beside: dict[RowPair, Vector] = {}
    for (i, j, k, m), weight in paired(piece.rows, piece.weight):
        for ends in ((i, j), (k, m)):
            if ends not in rows:
                rows[ends] = guessed_row(ends, piece, known, n, guess)
        other = rows[k, m]
        if rows[i, j] is None or other is None or not weight > 0:
            continue
        own = beside.setdefault((i, j), [ZERO] * n)
        beside[i, j] = [a + weight * b if b else a for a, b in paired(own, other)]
    table = [[ZERO] * n for _ in range(n)]
    for ends, own in beside.items():
        for a, x in enumerate(rows[ends] or []):
            if x:
                table[a] = [v + x * y if y else v for v, y in paired(table[a], own)]
    return [[(table[a][b] + table[b][a]) / 2 for b in range(n)] for a in range(n)]


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
