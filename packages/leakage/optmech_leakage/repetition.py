"""What the best guess earns after k independent reports about one secret: exactly, by the types of
reports, or between bounds, the least likely left out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optmech.analysis.probabilities import Scaled
from optmech.base.arrays import Floats, Ints
from optmech.exact.numerators import dot
from optmech.exact.rounding import UNIT

_NUMBERS = 8_000_000
"""Entries of an array of multisets."""
_FORGOTTEN = 1e-20
"""A partial multiset that is less likely than this, for every secret, is left out."""
_SMALL = 1e-280
"""Products below it lose digits, and count as 0."""


def exactly_earned(found: Scaled, weighted: Scaled, k: int) -> Fraction:
    """Σ_types max_w Σ_s weighted(w,s) p^k(type|s)."""
    columns = found.columns
    # how many reports are left to the observables that follow, and what the others weigh
    partial = [(k, [1] * len(found.rows))]
    for column in columns[:-1]:
        partial = [
            (left - n, [ways * mass * p**n for mass, p in zip(masses, column, strict=True)])
            for left, masses in partial
            for n, ways in ((n, math.comb(left, n)) for n in range(left + 1))
        ]
    total = 0
    for left, masses in partial:
        every = [mass * p**left for mass, p in zip(masses, columns[-1], strict=True)]
        total += max(dot(row, every) for row in weighted.rows)
    return Fraction(total, weighted.total * found.total**k)


def nearly_earned(matrix: Floats, weighted: Floats, k: int) -> tuple[float, float]:
    """Bounds of the same for weights >= 0, shape (W, S), both arguments floats next to the exact
    numbers. Multisets are made one observable after the other, and the least likely left out."""
    secrets, seen = matrix.shape
    most = max(1000, _NUMBERS // secrets)
    tails = np.cumsum(matrix[:, ::-1], axis=1)[:, ::-1]
    left, masses = np.array([k]), np.ones((1, secrets))
    ways, row = np.zeros((k + 1, k + 1)), [1]
    for r in range(k + 1):
        # the floats next to the binomial coefficients
        ways[r, : r + 1] = row
        row = [1, *map(sum, pairwise(row)), 1]
    complete, count = list[Floats](), 0
    for o in range(seen - 1):
        room = max(1000, most - count)
        kept = _likeliest(left, masses, tails[:, o], room)
        left, masses = _extended(left[kept], masses[kept], ways, _powers(matrix[:, o], k))
        complete.append(masses[left == 0])
        count += len(complete[-1])
        left, masses = left[left > 0], masses[left > 0]
    complete.append(masses * _powers(matrix[:, -1], k)[left])
    told = np.concatenate(complete)
    told[told < _SMALL] = 0.0
    # every factor p^n is off by 2n units, every product and binomial by one
    error = (2 * k + 3 * seen + secrets + 16) * UNIT * 1.001
    best = [(part @ weighted.T).max(axis=1) for part in np.array_split(told, 1 + len(told) // 4096)]
    earned = math.fsum(np.concatenate(best).tolist())
    summed = np.array([math.fsum(column) for column in told.T.tolist()])
    missing = np.maximum(0.0, 1 - summed * (1 - error) * (1 - UNIT)) * (1 + 2 * UNIT)
    open_ = math.fsum((missing * weighted.max(axis=0)).tolist()) * (1 + 4 * UNIT)
    return earned * (1 - error), earned * (1 + error) + open_ * (1 + error)


def _likeliest(left: Ints, masses: Floats, tail: Floats, room: int) -> Ints:
    """Partial multisets that lead to at most ``room`` others, the likeliest for some secret."""
    likely = (masses * np.minimum(tail[None, :] ** left[:, None], 1.0)).max(axis=1)
    order = np.argsort(-likely, kind="stable")
    order = order[likely[order] > _FORGOTTEN]
    most = int(np.searchsorted(np.cumsum(left[order] + 1), room, side="right"))
    return np.asarray(order[:most])


def _powers(column: Floats, k: int) -> Floats:
    """p(o|s)^n by repeated products, shape (k + 1, S)."""
    out = np.ones((k + 1, len(column)))
    np.cumprod(np.broadcast_to(column, (k, len(column))), axis=0, out=out[1:])
    out[out < _SMALL] = 0.0
    return out


def _extended(left: Ints, masses: Floats, ways: Floats, powers: Floats) -> tuple[Ints, Floats]:
    """Every partial multiset with every number of the next observable that still fits."""
    sizes = left + 1
    source = np.repeat(np.arange(len(left)), sizes)
    count = np.arange(len(source)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    more = masses[source] * (ways[left[source], count][:, None] * powers[count])
    more[more < _SMALL] = 0.0
    return left[source] - count, more
