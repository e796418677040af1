"""A linear program in whole numbers: the simplex method with Bland's rule, and the dual of the
joint transport program written from its definition (CM19 section VI)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Numbers = Sequence[Fraction]


def maximum(objective: Numbers, rows: Sequence[Numbers], limits: Numbers) -> Fraction:
    """max c·x subject to A x <= b, x >= 0, with b >= 0.

    The tableau is kept in whole numbers over one denominator (Edmonds); Bland's rule ends.
    """
    assert min(limits) >= 0
    count = len(objective)
    scaled = [_whole([*row, limit]) for row, limit in zip(rows, limits, strict=True)]
    gain = _whole([*objective, Fraction(0)])
    table = np.zeros((len(rows) + 1, count + 1), dtype=object)
    for k, (row, _) in enumerate(scaled):
        table[k] = row
    table[-1] = gain[0]
    basis, others = list(range(count, count + len(rows))), list(range(count))
    last = 1
    while True:
        entering = [(others[j], j) for j in range(count) if table[-1, j] > 0]
        if not entering:
            return Fraction(-table[-1, -1], last * gain[1])
        j = min(entering)[1]
        ratios = [
            (Fraction(table[i, -1], table[i, j]), basis[i], i)
            for i in range(len(rows))
            if table[i, j] > 0
        ]
        i = min(ratios)[2]
        pivot, row, column = table[i, j], table[i].copy(), table[:, j].copy()
        table = (table * pivot - np.outer(column, row)) // last
        table[i], table[:, j] = row, -column
        table[i, j] = last
        basis[i], others[j] = others[j], basis[i]
        last = pivot


def _whole(values: Numbers) -> tuple[list[int], int]:
    scale = math.lcm(*(value.denominator for value in values))
    return [int(value * scale) for value in values], scale


def joint_optimum(
    lams: Sequence[Numbers],
    distance: Sequence[Numbers],
    weights: Numbers,
    factor: Fraction,
    delta: Fraction = Fraction(0),
) -> Fraction:
    """The least Σ_t w_t Σ γ_t d over plans whose outputs have
    Σ_y max(0, μ_t[y] − factor μ_t'[y]) <= δ for all t, t', from its dual:

    max Σ_t Σ_x λ_t[x] u_t[x] − δ Σ ζ_tt'  subject to
    u_t[x] − Σ_t' (z_tt'[y] − factor z_t't[y]) <= w_t d(x,y),  z_tt'[y] <= ζ_tt',  z, ζ >= 0.
    """
    count, n, m = len(lams), len(distance), len(distance[0])
    pairs = list(itertools.permutations(range(count), 2))
    places = {("z", k, y): i for i, (k, y) in enumerate(itertools.product(pairs, range(m)))}
    for sign, t, x in itertools.product("+-", range(count), range(n)):
        places[sign, t, x] = len(places)
    if delta:
        for pair in pairs:
            places["most", pair] = len(places)
    objective = [Fraction(0)] * len(places)
    for t, lam in enumerate(lams):
        for x, mass in enumerate(lam):
            objective[places["+", t, x]] += mass
            objective[places["-", t, x]] -= mass
    rows, limits = [], []
    for t, x, y in itertools.product(range(count), range(n), range(m)):
        row = [Fraction(0)] * len(places)
        row[places["+", t, x]], row[places["-", t, x]] = Fraction(1), Fraction(-1)
        for other in range(count):
            if other != t:
                row[places["z", (t, other), y]] -= 1
                row[places["z", (other, t), y]] += factor
        rows.append(row)
        limits.append(weights[t] * distance[x][y])
    if delta:
        for pair, y in itertools.product(pairs, range(m)):
            row = [Fraction(0)] * len(places)
            row[places["z", pair, y]], row[places["most", pair]] = Fraction(1), Fraction(-1)
            rows.append(row)
            limits.append(Fraction(0))
        for pair in pairs:
            objective[places["most", pair]] = -delta
    return maximum(objective, rows, limits)
