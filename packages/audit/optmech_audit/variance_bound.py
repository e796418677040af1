"""Of designs for statistics: a bound of every mechanism's variance, from multipliers of pieces
of the cone of columns (theory, "A bound of every mechanism", "Pieces of the cone")."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from operator import mul
from typing import NamedTuple

from optmech_audit.document import Matrix, Rows, Vector
from optmech_audit.numbers import ONE, ZERO, ceiling, exp_bounds, log_bounds, need, paired
from optmech_audit.variance import (
    Dyadic,
    Limit,
    Piece,
    Proof,
    RowPair,
    Survey,
    dyadic,
    is_positive,
    spread,
)

MOST_LISTED = 9  # secrets up to which all extreme rays are
RAY_UNIT, OF_RAYS, RAY_BITS = 1 << 30, 1 << 128, 160


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
    factor holds for all pairs, each has two values; and each is listed where secrets are few, with
    limits both ways between any two, along others too."""
    forms = {piece.form for piece in pieces}
    need(len(forms) == 1, "pieces of several forms, or none")
    if forms == {"levels"}:
        values = set(known.values())
        need(
            len(known) == n * (n - 1) > 0 and len(values) == 1, "columns with more than two values"
        )
        need(min(values) > 1, "columns that are all alike")
    if forms == {"rays"}:
        need(n <= MOST_LISTED, "columns that are too many")
        for side in (0, 1):
            met = {0}
            for _ in range(n):
                met |= {pair[1 - side] for pair in known if pair[side] in met}
            need(len(met) == n, "columns of a secret that no limit leads to")


@lru_cache(maxsize=1)
def rays_of(known: tuple[tuple[RowPair, Fraction], ...], n: int) -> Rows:
    """Extreme rays e^{x 2^-30} in whole numbers over 2^128, the largest 2^128, within 2. What is
    tight at one connects all secrets, so x is found one secret at a time, at the end of a limit to
    those that are there."""
    steps = {
        pair: ceiling(*(log_bounds(max(f, ONE), RAY_BITS).high * RAY_UNIT).as_integer_ratio())
        for pair, f in known
    }
    now: set[tuple[int | None, ...]] = {(0, *[None] * (n - 1))}
    for _ in range(n - 1):
        grown = set()
        for x in now:
            there = [(i, v) for i, v in enumerate(x) if v is not None]
            for j in (j for j in range(n) if x[j] is None):
                most = min((v + steps[j, i] for i, v in there if (j, i) in steps), default=None)
                least = max((v - steps[i, j] for i, v in there if (i, j) in steps), default=None)
                if most is None or least is None or least <= most:
                    ends = (end for end in (most, least) if end is not None)
                    grown |= {(*x[:j], end, *x[j + 1 :]) for end in ends}
        now = grown
    power = cache(lambda down: int(exp_bounds(Fraction(-down, RAY_UNIT), RAY_BITS).low * OF_RAYS))
    levels = ([v for v in x if v is not None] for x in now)
    return [[power(max(x) - v) for v in x] for x in levels]


def holds(
    slack: Dyadic, piece: Piece, known: dict[RowPair, Fraction], n: int, guess: Limit | None
) -> bool:
    """Whether the slack, less what products of limits take, is positive semidefinite there."""
    if guess is not None:
        guessed = Guessed(piece, known, n, guess)
        if piece.form == "empty":
            return max(guessed.sums()) < 0
        return is_positive(slack.less(dyadic(guessed.products())))
    if piece.form == "rays":
        lost = 8 * OF_RAYS * sum(abs(v) for row in slack.rows for v in row)
        return all(
            sum(v * sum(map(mul, row, ray)) for v, row in paired(ray, slack.rows)) >= lost
            for ray in rays_of(tuple(known.items()), n)
        )
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
    padded = [[*row, *[0] * (size - n)] for row in slack.rows] + [[0] * size] * (size - n)
    return is_positive(Dyadic(padded, slack.bits).less(dyadic(halved(table))))


def halved(table: Matrix) -> Matrix:
    """The symmetric part."""
    size = range(len(table))
    return [[(table[a][b] + table[b][a]) / 2 for b in size] for a in size]


class Guessed(NamedTuple):
    """A piece of a best guess, of ``guess``."""

    piece: Piece
    known: dict[RowPair, Fraction]
    n: int
    guess: Limit

    def row(self, ends: RowPair) -> Vector | None:
        """What is >= 0 of every column of the piece: of (i, j) the limit of a ratio; of
        (n + u, n + u) that the guess u is no better than that of the piece."""
        (i, j), best, n = ends, self.piece.guess, self.n
        if i == j and 0 <= i - n < len(self.guess.table) and best is not None:
            return [a - b for a, b in paired(self.guess.row(i - n), self.guess.row(best))]
        if ends not in self.known:
            return None
        return [self.known[ends] * (s == j) - (s == i) for s in range(n)]

    def sums(self) -> Vector:
        """What weights of rows add up to; where that is below 0 everywhere there is no column."""
        sums = [ZERO] * self.n
        for (i, j, k, m), weight in paired(self.piece.rows, self.piece.weight):
            row = self.row((i, j)) if (i, j) == (k, m) else None
            if row is not None and weight > 0:
                sums = [a + weight * b for a, b in paired(sums, row)]
        return sums

    def products(self) -> Matrix:
        """What products of those rows take."""
        # of every row the sum of what it is multiplied with
        rows: dict[RowPair, Vector | None] = {}
        beside: dict[RowPair, Vector] = {}
        for (i, j, k, m), weight in paired(self.piece.rows, self.piece.weight):
            for ends in ((i, j), (k, m)):
                if ends not in rows:
                    rows[ends] = self.row(ends)
            other = rows[k, m]
            if rows[i, j] is None or other is None or not weight > 0:
                continue
            own = beside.setdefault((i, j), [ZERO] * self.n)
            beside[i, j] = [a + weight * b if b else a for a, b in paired(own, other)]
        table = [[ZERO] * self.n for _ in range(self.n)]
        for ends, own in beside.items():
            for a, x in enumerate(rows[ends] or []):
                if x:
                    table[a] = [v + x * y if y else v for v, y in paired(table[a], own)]
        return halved(table)
