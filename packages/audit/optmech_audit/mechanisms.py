"""A mechanism, and a bound on all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from optmech_audit.document import (
    Matrix,
    Rows,
    Vector,
    indices,
    integer,
    listing,
    members,
    together,
    whole,
)
from optmech_audit.numbers import ONE, ZERO, need, number, paired, transposed

LARGEST = Fraction(2**100)  # multipliers are cut to this: any numbers >= 0 are valid
MOST_ENTRIES = 10**7  # of a matrix: more does not fit into memory as fractions
TINY, HUGE = Fraction(1, 2**900), Fraction(2) ** 1024  # sums of guesses that can be divided by
LEAST_WEIGHT, LEAST_MARGIN = Fraction(1, 2**100), Fraction(1, 2**800)  # or they prove nothing
SCALE = 1200  # bits behind the point of the sums in the bound; everything is rounded down
Mask = list[list[bool]]
Shares = dict[int, Fraction]  # a distribution over secrets, by its positive entries


class Pair(NamedTuple):  # two distributions over secrets, and what multiplies ε between them
    a: Shares
    b: Shares
    d: Fraction = ONE


LONGEST = 2**16  # bits of what all places share as a denominator, at most
FINER = 64  # bits that the numbers between which a probability lies have more than it


class Mechanism(NamedTuple):
    """P[s,o] = rows[s][o] / 2^bits; or between that and ``above``, of which the side that is harder
    to keep counts."""

    bits: int
    rows: Rows
    above: Rows | None = None
    shares: list[tuple[list[int], int]] | None = None  # where between: in numbers of each row's own

    def exact(self, s: int) -> tuple[list[int], int]:
        """Row s in whole numbers, and what they are over, but for a power of two of all rows."""
        return (self.rows[s], 1) if self.shares is None else self.shares[s]

    @property
    def own_bits(self) -> int:
        """Of ``exact``."""
        return self.bits - (0 if self.shares is None else FINER)

    @property
    def high(self) -> Rows:
        return self.rows if self.above is None else self.above

    @property
    def common(self) -> tuple[Mechanism, int] | None:
        """All rows in whole numbers over one of their own, times a power of two, exactly; none
        where that is too long, or where they are exact."""
        parts = [(row, total, math.gcd(total, *row)) for row, total in self.shares or ()]
        over = math.lcm(*(total // part for _, total, part in parts))
        if not parts or over.bit_length() > LONGEST:
            return None
        rows = [[v // part * (over * part // total) for v in row] for row, total, part in parts]
        return Mechanism(self.own_bits, rows), over

    def judged(
        self, measure: Callable[[Mechanism], Fraction], fits: Callable[[Fraction], bool]
    ) -> Fraction:
        """A measure of this, and where that does not fit the exact one, if it is not too long."""
        value = measure(self)
        if not fits(value) and (common := self.common):
            value = measure(common[0]) / common[1]
        return value

    def pushed(self, pair: Pair) -> tuple[list[int], list[int], int]:
        """aP and bP in whole numbers, and the number that stands for one."""
        scale = math.lcm(*(v.denominator for side in (pair.a, pair.b) for v in side.values()))
        sides = []
        for side, rows in ((pair.a, self.high), (pair.b, self.rows)):
            parts = [(int(share * scale), rows[s]) for s, share in side.items()]
            sides.append([sum(v * row[o] for v, row in parts) for o in range(len(self.rows[0]))])
        return sides[0], sides[1], scale << self.bits

    def sums(self, pair: Pair, o: int) -> tuple[int, int]:
        """(aP)[o] and (bP)[o] in whole numbers over one, exactly."""
        sides = []
        for side in (pair.a, pair.b):
            rows = ((share, self.exact(s)) for s, share in side.items())
            sides.append(sum((v * Fraction(row[o], total) for v, (row, total) in rows), ZERO))
        x, y = sides
        return x.numerator * y.denominator, y.numerator * x.denominator

    def means(self, values: Matrix) -> Vector:
        """Σ_o values[s][o] P[s,o] for every s, exactly."""
        found = []
        for s, own in enumerate(values):
            row, total = self.exact(s)
            mean = sum((v * p for v, p in paired(own, row) if p), ZERO)
            found.append(mean / (total << self.own_bits))
        return found

    def losses(self, loss: Matrix) -> Vector:
        """Σ_o loss[s][o] P[s,o] for every s, or more; losses are >= 0."""
        return [
            sum((c * p for c, p in paired(*rows) if p), ZERO) / (1 << self.bits)
            for rows in paired(loss, self.high)
        ]

    def distortion(self, w: Matrix) -> Fraction:
        """Σ_o min_t Σ_s w[t][s] P[s,o], or less, w of any sign: the error of the best attack
        (theory, "The statement")."""
        scale = math.lcm(*(v.denominator for row in w for v in row))
        weights = [[int(v * scale) for v in row] for row in w]
        rows, total = [*self.rows], 0
        if self.above is not None:  # of which what is below 0 counts
            rows += self.above
            weights = [[f(v, 0) for f in (max, min) for v in row] for row in weights]
        for column in transposed(rows):
            used = [(s, p) for s, p in enumerate(column) if p]
            total += min(sum(row[s] * p for s, p in used) for row in weights)
        return Fraction(total, scale << self.bits)


def read_mechanism(plain: object, n: int, m: int) -> Mechanism:
    """Rows of whole numbers > 0, in hexadecimal at increasing observables, that sum to 2^bits."""
    (digits, given), rows = members(plain, "bits rows"), []
    bits = whole(digits, 1075)
    need(bits > 0, "the number of bits is out of range")
    for entry in listing(given, n):
        row, before = [0] * m, -1
        for place, value in together(*listing(entry, 2)):
            o = whole(place, m)
            need(o > before, "observables are out of order")
            row[o], before = integer(value, 1), o
        need(sum(row) == 1 << bits, "a row does not sum to one")
        rows.append(row)
    return Mechanism(bits, rows)


Entries = list[tuple[int, int, Fraction]]  # row, column, value
Factor = Callable[[int, int, int], Fraction | None]


class Lagrangian:
    """K + Σ_s min_{o allowed} L[s][o], of multipliers >= 0 that anybody may have chosen; of a row
    that is held the value in the place of the minimum (theory, "Rows held fixed"). If every
    inequality "left - right <= 0" adds its multiple to the objective, this is at most the objective
    of every mechanism (theory, Theorem 1); without an objective a number above 0 proves that there
    is no mechanism (Theorem 2). To leave out an inequality only lowers the bound, and so does to
    round entries down. L is in multiples of 2^-SCALE."""

    def __init__(self, allowed: Mask, held: dict[int, tuple[int, list[int]]] | None = None) -> None:
        self.allowed, self.n, self.m = allowed, len(allowed), len(allowed[0])
        self.held = held or {}  # rows that are given, over powers of two
        self.L, self.K = [[0] * self.m for _ in allowed], ZERO
        self.unit = ONE  # what the objective was multiplied by
        self.paid: list[Vector] = []  # μ of the limits on loss

    def value(self) -> Fraction:
        if self.unit < LEAST_WEIGHT:
            return -HUGE
        rows = enumerate(paired(self.L, self.allowed))
        free = (row for s, row in rows if s not in self.held)
        least = sum(min(v for v, ok in transposed(row) if ok) for row in free)
        known = ZERO  # a row that is held has one value
        for s, (bits, own) in self.held.items():
            known += Fraction(sum(v * p for v, p in paired(self.L[s], own)), 1 << bits)
        return ((least + known) / (1 << SCALE) + self.K) / self.unit

    def add(self, s: int, o: int, value: Fraction, times: Fraction = ONE) -> None:
        # without Fraction's common divisors, which take most of the time
        top, bottom = value.numerator * times.numerator, value.denominator * times.denominator
        self.L[s][o] += (top << SCALE) // bottom

    def add_row(self, s: int, weight: Fraction, costs: Vector) -> None:
        for o, c in enumerate(costs):
            self.add(s, o, weight, c)

    def add_pair(self, pair: Pair, o: int, first: Fraction, second: Fraction) -> None:
        """first · a_s + second · b_s."""
        for side, weight in ((pair.a, first), (pair.b, second)):
            for s, share in side.items():
                self.add(s, o, weight, share)

    def add_ratios(self, plain: object, factor: Factor) -> None:
        """z at (i,o) and f z at (j,o) with f = ``factor`` of the three; nothing without one."""
        for i_, j_, o_, value in together(*members(plain, "i j o value")):
            i, j, o = whole(i_, self.n), whole(j_, self.n), whole(o_, self.m)
            z, f = cut(number(value)), factor(i, j, o)
            if z > 0 and f is not None:
                self.add(i, o, z)
                self.add(j, o, z, f)

    def add_losses(self, weights: Vector, loss: Matrix) -> None:
        """ω_s c(s,o)."""
        for s, (weight, row) in enumerate(paired(weights, loss)):
            self.add_row(s, weight, row)

    def add_attack(self, weight: Fraction, given: Entries, w: Matrix) -> None:
        """-ν Σ_t α(t|o) w[t,s], the attack α(·|o) divided by its sum; any attack will do."""
        guesses: list[Shares] = [{} for _ in range(self.m)]
        for o, t, value in given:
            if value > 0:
                guesses[o][t] = value
        for o, shares in enumerate(guesses):
            total = sum(shares.values(), ZERO)
            if not TINY < total < HUGE:
                shares, total = dict.fromkeys(range(len(w)), ONE), Fraction(len(w))
            for t, value in shares.items():
                share = -weight * value / total
                for s, v in enumerate(w[t]):
                    self.add(s, o, share, v)


def prices(plain: object, count: int) -> Vector:
    """Multipliers: any numbers, cut to [0, 2^100]."""
    return [cut(number(v)) for v in listing(plain, count)]


def cut(value: Fraction) -> Fraction:
    return min(value, LARGEST) if value.numerator > 0 else ZERO


def entries(plain: object, rows: int, columns: int) -> Entries:
    """A sparse matrix: places and values."""
    shape, *given = members(plain, "shape row column value")
    need(indices(shape, MOST_ENTRIES, 2) == [rows, columns], "multipliers of a wrong shape")
    found = [(whole(r, rows), whole(c, columns), number(v)) for r, c, v in together(*given)]
    need(len({(r, c) for r, c, _ in found}) == len(found), "a multiplier is given twice")
    return found
