"""Bounds that no library is trusted for: floats around balls, exponentials and logarithms of floats
rounded outward, and sums whose rounding is known beforehand.

Conversion of a ball (python-flint) to a float rounds to the nearest, and may so leave the ball by
half a unit in the last place: one step outwards is always enough. e^x is computed with additions,
multiplications and scalings by powers of two only, which IEEE arithmetic rounds correctly, so that
its error is known; logarithms are proposed by the library and decided by that exponential
(docs/theory/populations.md, "Carrying a guarantee over to distributions"). Errors of sums are in
units of 2^-53, relatively to the sum of absolute values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints

UNIT = 2.0**-53
"""Relative error of a float that is rounded to the nearest, at most."""


def below(ball: Any) -> float:
    """A float <= every number in a ball."""
    return math.nextafter(float(ball.lower()), -math.inf)


def above(ball: Any) -> float:
    """A float >= every number in a ball."""
    return math.nextafter(float(ball.upper()), math.inf)


_HIGH = 0x2C5C85FDF47 * 2.0**-42
"""The first 42 bits of ln 2: its products with whole numbers below 2^11 are exact."""
_LOW = 5.497923018708371e-14
"""ln 2 - ``_HIGH``, to nearest."""
_LN2_DOWN, _LN2_UP = 0.6931471805599453, 0.6931471805599454
_COEFFICIENTS = [1 / math.factorial(k) for k in range(14)]
_ERROR = 2.0**-49
"""Covers the relative error of ``_power``."""
_SMALL, _LARGE = -700.0, 700.0


def exp_up(x: Floats) -> Floats:
    """Floats >= e^x elementwise: e^-700 at least, and inf above 700."""
    with np.errstate(over="ignore"):
        out = _power(np.clip(x, _SMALL, _LARGE)) * (1 + _ERROR)
    return np.where(x > _LARGE, np.inf, out)


def exp_down(x: Floats) -> Floats:
    """Floats <= e^x elementwise: 0 below -700, and e^700 at most."""
    out = _power(np.clip(x, _SMALL, _LARGE)) * (1 - _ERROR)
    return np.where(x < _SMALL, 0.0, out)


def log_range(mantissa: Floats, exponent: Ints) -> tuple[Floats, Floats]:
    """Floats below and above ln(mantissa · 2^exponent), the mantissas 0 or from ½ to 1; -inf where
    they are 0."""
    some = mantissa > 0
    held = np.where(some, mantissa, 1.0)
    proposed = np.log(held)
    low, high = proposed - 2.0**-48, proposed + 2.0**-48
    low = np.where(_power(low) * (1 + _ERROR) <= held, low, -_LN2_UP)
    high = np.where(_power(high) * (1 - _ERROR) >= held, high, 0.0)
    scale = exponent.astype(np.float64)
    rising = scale >= 0
    low = down(low + down(scale * np.where(rising, _LN2_DOWN, _LN2_UP)))
    high = up(high + up(scale * np.where(rising, _LN2_UP, _LN2_DOWN)))
    return np.where(some, low, -np.inf), np.where(some, high, -np.inf)


def log_floats(values: Floats) -> tuple[Floats, Floats]:
    """Floats that enclose the logarithms of floats >= 0."""
    mantissa, exponent = np.frexp(values)
    return log_range(mantissa, exponent)


def up(values: Floats) -> Floats:
    """The floats after ``values``, which a sum or product rounded to nearest cannot exceed;
    infinities stay, as logarithms of true zeros or of nothing known."""
    return np.where(np.isinf(values), values, np.nextafter(values, np.inf))


def down(values: Floats) -> Floats:
    """The floats before ``values``; infinities stay."""
    return np.where(np.isinf(values), values, np.nextafter(values, -np.inf))


def _power(x: Floats) -> Floats:
    """e^x for -701 <= x <= 701, by e^x = 2^k e^f with |f| <= 0.35 and 14 terms of the series.

    In units of 2^-53, relatively to e^x: k ``_HIGH`` is exact, and its difference to x but for half
    a unit (Sterbenz); the next two roundings lose less than another half, the series after 14
    terms less than a tenth. In Horner's rule the last addition loses one, the one before 0.35, and
    with the products all lose less than four: less than ``_ERROR``, which is sixteen.
    """
    k = np.rint(x * (1 / math.log(2)))
    f = (x - k * _HIGH) - k * _LOW
    out = np.full(np.shape(x), _COEFFICIENTS[-1])
    for coefficient in reversed(_COEFFICIENTS[:-1]):
        out = out * f + coefficient
    return np.asarray(np.ldexp(out, k.astype(np.int64)))


_BLOCK = 512


def total(terms: Floats) -> Floats:
    """Sums along the last axis, by halves: off by at most ``depth(n)`` units."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        paired = terms[..., :half] + terms[..., half : 2 * half]
        odd = terms.shape[-1] % 2
        terms = np.concatenate([paired, terms[..., -1:]], axis=-1) if odd else paired
    return np.asarray(terms.sum(axis=-1))


def depth(count: int) -> int:
    """Additions that a term of ``total`` goes through at most."""
    return math.ceil(math.log2(max(count, 1)))


def suffix_depth(count: int) -> int:
    """Additions that a term of ``suffix_sums`` goes through at most."""
    return min(count, _BLOCK) + count // _BLOCK + 2


def suffix_sums(terms: Floats) -> Floats:
    """Σ of all terms from each one on, and 0 after the last, shape (n + 1,), by blocks: off by at
    most ``suffix_depth(n)`` units."""
    count = len(terms)
    blocks = np.zeros(-(-count // _BLOCK) * _BLOCK)
    blocks[len(blocks) - count :] = terms
    table = blocks.reshape(-1, _BLOCK)
    inner = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    later = np.append(np.cumsum(inner[::-1, 0])[::-1][1:], 0.0)
    whole = (inner + later[:, None]).ravel()
    return np.append(whole[len(whole) - count :], 0.0)
