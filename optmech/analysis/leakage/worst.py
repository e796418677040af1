"""Max-case and privacy-based refinement, decided exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optmech.analysis.leakage.exactly import nonnegative_solution
from optmech.analysis.leakage.hypers import reduced
from optmech.analysis.leakage.joint import fractions
from optmech.errors import VerificationError
from optmech.spaces.mechanism import Mechanism


def refined_in_the_worst_case(
    a: Mechanism, b: Mechanism
) -> tuple[int, tuple[Fraction, ...] | None]:
    """An observable of b whose posterior is no mixture of posteriors of a, with y such that
    Σ_s y(s) b(o|s) > 0 >= Σ_s y(s) a(o'|s) for all o'; (0, None) where there is none.

    A column is a mixture of columns but for its scale: it lies in the cone that they span.
    """
    from scipy.optimize import nnls

    few = reduced(a)
    columns = fractions(few)
    scaled = few.matrix / few.matrix.max(axis=0)
    for o, column in enumerate(zip(*fractions(b), strict=True)):
        if not any(column):
            continue
        wanted = b.matrix[:, o] / b.matrix[:, o].max()
        likely = np.flatnonzero(nnls(scaled, wanted)[0] > 1e-12).tolist()
        row = nonnegative_solution(columns, column, likely, where="refines").farkas
        if row is not None:
            best = max(abs(value) for value in row)
            y = tuple(value / best for value in row)
            earned = [
                sum(v * p for v, p in zip(y, c, strict=True)) for c in zip(*columns, strict=True)
            ]
            if max(earned) > 0 or sum(v * p for v, p in zip(y, column, strict=True)) <= 0:
                raise VerificationError("the separating row does not separate", where="refines")
            return o, y
    return 0, None


def refined_in_privacy(a: Mechanism, b: Mechanism) -> tuple[int, int] | None:
    """Two secrets that b tells apart better than a does, by the largest likelihood ratio."""
    for s in range(len(a.secrets)):
        for t in range(s):
            p, q = _largest_ratio(b, s, t)
            mine, other = _largest_ratio(a, s, t)
            if p * other > q * mine:
                return t, s
    return None


def _largest_ratio(m: Mechanism, s: int, t: int) -> tuple[int, int]:
    """max_o max(p(o|s)/p(o|t), p(o|t)/p(o|s)) as a fraction, over 0 where it is infinite."""
    top, bottom = 1, 1
    rows = m.rational.rows
    mine, other = sum(rows[s]), sum(rows[t])
    for a, b in zip(rows[s], rows[t], strict=True):
        one, two = a * other, b * mine
        high, low = (one, two) if one > two else (two, one)
        if high and low * top < high * bottom:
            top, bottom = high, low
            if not low:
                return 1, 0
    return top, bottom
