"""The loss along segments between secrets, on which the mechanism is linear (theory: "The worst
loss on an interval").

At the share t of the way from a to b the row is (1 - t) P[a] + t P[b], and the loss of a report
counts as (1 - t) c(a,o) + t c(b,o) - t (1 - t) κ. The expected loss is a quadratic in t, of which
every value is linear in the matrix.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.certificate.statement import Segments

_LEAST = 2.0**-800
"""Weights below it are none: products of them could underflow."""
_NEAREST = 2.0**-53
"""Shares of the way below it are none, for the same reason."""


@record
class Charge(ReadOnly):
    """What a point of every segment with a weight charges: the rows (S, O) of costs, the sums
    of their absolute values, the roundings of each, and the weight of all points."""

    terms: Floats
    magnitude: Floats
    roundings: float
    weight: Fraction


def charged(segments: Segments, loss: Floats, weights: Floats) -> Charge:
    """What ``weights`` (2E,) charge, finite and >= 0: α for the first end of every segment, then β
    for the second, of the point at the share β / (α + β) with the weight α + β."""
    first, second = weights.reshape(2, -1)
    total = first + second
    kept = total >= _LEAST
    total = np.where(kept, total, 0.0)
    share = np.where(kept, second, 0.0) / np.where(kept, total, 1.0)
    share = np.where(share < _NEAREST, 0.0, share)
    rest = 1.0 - share
    a, b = segments.ends.T
    terms, magnitude = np.zeros_like(loss), np.zeros_like(loss)
    for rows, own in ((a, rest), (b, share)):
        weight = (total * own)[:, None]
        straight = weight * rest[:, None] * loss[a] + weight * share[:, None] * loss[b]
        bent = (total * own * rest * share * segments.bends)[:, None]
        np.add.at(terms, rows, straight - bent)
        np.add.at(magnitude, rows, straight + bent)
    roundings = 3.0 * np.bincount(segments.ends.ravel()).max() + 8.0
    mass = sum(map(Fraction, total.tolist()), Fraction())
    return Charge(terms, magnitude, roundings, mass)


def coefficients(segments: Segments, loss: Floats, matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """In floats, of every segment (E,), the coefficients of its expected loss in Bernstein's form:
    the loss at both ends, and between them a number that need be no value of it."""
    a, b = segments.ends.T
    at = (loss * matrix).sum(axis=1)
    crossed = (loss[a] * matrix[b] + loss[b] * matrix[a]).sum(axis=1)
    return at[a], (crossed - segments.bends) / 2, at[b]


def shares(low: Floats, middle: Floats, high: Floats) -> Floats:
    """Where between the ends quadratics with these coefficients are largest, (E,); nan where they
    are at an end."""
    inside = middle > np.maximum(low, high)
    bend = np.where(inside, 2 * middle - low - high, 1.0)
    return np.where(inside, (middle - low) / bend, np.nan)


def values_at(low: Floats, middle: Floats, high: Floats, share: Floats) -> Floats:
    """The quadratics at these shares of the way."""
    rest = 1.0 - share
    return np.asarray(rest * rest * low + 2 * rest * share * middle + share * share * high)


def largest(low: Fraction, middle: Fraction, high: Fraction) -> Fraction:
    """The largest value of a quadratic for t in [0, 1], exactly.

    Where the middle coefficient is none of the largest it is at an end; else the quadratic is
    concave, with its vertex inside.
    """
    if middle <= max(low, high):
        return max(low, high)
    return (middle * middle - low * high) / (2 * middle - low - high)
