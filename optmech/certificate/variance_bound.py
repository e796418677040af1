"""A lower bound of every mechanism's variance from multipliers, decided in whole numbers (theory:
"A bound of every mechanism", "Pieces of the cone")."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import flint
import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.certificate.variance import (
    Dyadic,
    Limit,
    PieceProof,
    Survey,
    VarianceProof,
    gram_of,
    is_positive,
    spread_of,
)
from optmech.exact.number import rounded_down

LISTED = 9
"""Secrets up to which all extreme rays are listed."""
_UNIT = 30
"""Bits behind the point of the logarithms of factors, rounded up."""
_FAR, _NONE = 1 << 60, 1 << 61
_RAY_BITS = 128


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
    guessed = [a for a, price in zip(limits, given, strict=True) if a.guessed and price[0]]
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
    return rounded_down(value - spread_of(Dyadic.of(prior[None]), gram))


def _charged(charges: Floats, limits: Sequence[Limit]) -> list[list[Fraction]] | None:
    """The numbers >= 0 of every limit; all 0 where none are given, None where others are."""
    counts = [limit.charges for limit in limits]
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
    # with limits both ways between any two, along others too
    chain = limited(factor) | np.eye(n, dtype=bool)
    return forms == {"rays"} and n <= LISTED and bool(np.linalg.matrix_power(chain, n).all())


def _above(value: flint.arb) -> int:
    """The least whole number that no number of a ball is above."""
    man, exp = map(int, value.upper().man_exp())
    return man << exp if exp >= 0 else -(-man >> -exp)


def steps_of(factor: Floats) -> Ints:
    """Whole numbers k, the least >= 0 with e^{k 2^-30} >= factor, (S, S)."""
    out = np.full(factor.shape, _FAR)
    with flint.ctx.workprec(_RAY_BITS):
        for i, j in np.argwhere(limited(factor)):
            out[i, j] = _above(flint.arb(max(float(factor[i, j]), 1.0)).log() * (1 << _UNIT))
    return out


def extreme_levels(steps: Ints) -> Ints:
    """All vertices of {x: x_0 = 0, x_i <= x_j + steps_ij}, (m, S): their tight limits connect all,
    so that one after the other stands at the end of a limit to those that stand already."""
    n = len(steps)
    now = np.full((1, n), _NONE)
    now[0, 0] = 0
    for _ in range(n - 1):
        grown = [np.zeros((0, n), dtype=np.int64)]
        for j in range(n):
            own = now[now[:, j] == _NONE]
            there = own != _NONE
            most = np.where(there, own + steps[j], _FAR).min(axis=1)
            least = np.where(there, own - steps[:, j], -_FAR).max(axis=1)
            for end in (most, least):
                fresh = own[(least <= most) & (np.abs(end) < _FAR // 2)].copy()
                fresh[:, j] = end[(least <= most) & (np.abs(end) < _FAR // 2)]
                grown.append(fresh)
        now = np.vstack(grown)
        now = now[np.lexsort(now.T)]
        now = now[np.r_[True, (now[1:] != now[:-1]).any(axis=1)]]
    return now


def listed_rays(factor: Floats) -> Floats:
    """The same as floats e^{x 2^-30}, the largest entry of each 1."""
    levels = extreme_levels(steps_of(factor))
    return np.asarray(np.exp((levels - levels.max(axis=1)[:, None]) * 2.0**-_UNIT))


@lru_cache(maxsize=1)
def _listed(factors: bytes, n: int) -> flint.fmpz_mat:
    """Extreme rays e^{x 2^-30}, the largest entry of each 1, within 2 units of 2^-128."""
    levels = extreme_levels(steps_of(np.frombuffer(factors).reshape(n, n)))
    down = levels - levels.max(axis=1)[:, None]
    with flint.ctx.workprec(2 * _RAY_BITS):
        own = {
            v: _above((flint.arb(v) / (1 << _UNIT)).exp() * (1 << _RAY_BITS))
            for v in set(down.ravel().tolist())
        }
    return flint.fmpz_mat([[own[v] for v in row] for row in down.tolist()])


def _holds_on_rays(form: Dyadic, factor: Floats) -> bool:
    """Whether vᵀHv >= 0 for every extreme ray v."""
    rays = _listed(factor.tobytes(), len(factor))
    sides = zip((rays * form.whole).tolist(), rays.tolist(), strict=True)
    lost = sum(abs(int(v)) for v in form.whole.entries()) << (_RAY_BITS + 3)
    return all(sum(map(operator.mul, *pair)) >= lost for pair in sides)


def limited(factor: Floats) -> Bools:
    """Pairs of different secrets with a limit."""
    return np.isfinite(factor) & ~np.eye(len(factor), dtype=bool)


def _holds(
    slack: Dyadic, piece: PieceProof, factor: Floats, n: int, guessed: Limit | None = None
) -> bool:
    """Whether the slack, less what the piece's products take, is positive semidefinite on it."""
    if piece.form == "rays":
        return _holds_on_rays(slack, factor)
    size = n
    if piece.form == "levels":
        size = n + 1
        factor = np.pad(factor, (0, 1), constant_values=factor[0, 1])
        factor[n] = 1.0
    rows, used = _products(piece, factor, size, guessed)
    if piece.form == "empty":
        own = [[Fraction(weight) * v for v in rows[a]] for a, b, weight in used if a == b]
        return all(sum(column) < 0 for column in zip(*own, strict=True)) and bool(own)
    whole, weights = slack.whole.tolist(), Dyadic.of(np.array([[0.0, *(w for *_, w in used)]]))
    rows_of = [row + [0] * (size - n) for row in whole + [[0] * n] * (size - n)]
    rest = Dyadic(flint.fmpz_mat(rows_of), slack.bits)
    table = [[0] * len(rows) for _ in rows]
    for (a, b, _), weight in zip(used, weights.whole.tolist()[0][1:], strict=True):
        table[a][b] += weight
        table[b][a] += weight
    basis = Dyadic.exactly(rows)
    taken = basis.turned @ Dyadic(flint.fmpz_mat(table), weights.bits + 1) @ basis
    return is_positive(rest - taken if rows else rest)


def _products(
    piece: PieceProof, factor: Floats, size: int, guessed: Limit | None
) -> tuple[list[list[Fraction]], list[tuple[int, int, float]]]:
    """Rows of ratios, and of guesses that are no better than the piece's, and what every product of
    two of them counts."""
    places: dict[tuple[int, int], int] = {}
    rows: list[list[Fraction]] = []
    used: list[tuple[int, int, float]] = []
    known = limited(factor)
    for (i, j, k, m), weight in zip(piece.rows.tolist(), piece.weight.tolist(), strict=True):
        for pair in ((i, j), (k, m)):
            row: list[Fraction] | None = None
            if pair in places:
                continue
            if max(pair) < size and known[pair]:
                row = [Fraction()] * size
                row[pair[0]], row[pair[1]] = Fraction(-1), Fraction(float(factor[pair]))
            elif guessed and piece.guess is not None and 0 <= pair[0] - size < len(guessed.table):
                two = guessed.row(pair[0] - size), guessed.row(piece.guess)
                row = [a - b for a, b in zip(*two, strict=True)] if pair[0] == pair[1] else None
            places[pair] = -1 if row is None else len(rows)
            rows += [] if row is None else [row]
        free = piece.form == "levels" and (i, j) == (m, k) and size - 1 in (i, j)
        both = places[i, j], places[k, m]
        if min(both) >= 0 and math.isfinite(weight) and (free or weight > 0):
            used.append((*both, weight))
    return rows, used
