"""Sums whose rounding is known beforehand, whatever a library does inside.

The unit is 2^-53. Errors are relative to the sum of absolute values.
"""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats

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
