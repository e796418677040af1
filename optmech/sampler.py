"""Drawing from a row of whole numbers: exact probabilities, from the operating system's entropy.

A draw takes a whole number below the row's sum and counts the cumulative sums at or below it. No
float is involved, every draw reads the same number of bytes, and every entry of the row is
compared. With a row whose sum is a power of two no draw is ever repeated.
"""

from __future__ import annotations

import secrets as entropy
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from optmech.domain import Ints

Words = NDArray[np.uint64]
Bytes = Callable[[int], bytes]
_WORD = 64
_BLOCK = 2**22
"""Comparisons at a time."""


def system_bytes(count: int) -> bytes:
    """Entropy of the operating system."""
    return entropy.token_bytes(count)


def seeded_bytes(seed: int) -> Bytes:
    """Reproducible bytes, unfit for release: who knows the seed knows every draw."""
    return np.random.default_rng(seed).bytes


def draw(row: Sequence[int], count: int, source: Bytes = system_bytes) -> Ints:
    """``count`` indices, index o with probability row[o] / sum(row) exactly.

    Takes 8·ceil(bits / 64) bytes per draw, bits being those of sum(row) - 1. Where the sum is not
    a power of two, numbers at or above it are drawn again.
    """
    steps = list(accumulate(row))
    total = steps[-1]
    bits = max(1, (total - 1).bit_length())
    limbs = -(-bits // _WORD)
    # the number is the leading ``bits`` of the word
    lift = _WORD * limbs - bits
    full = total == 1 << bits
    # where it is full, steps equal to the total are above every word, and need no comparison
    table = _limbs([step << lift for step in steps if not full or step < total], limbs)
    out = np.empty(count, dtype=np.int64)
    block = max(1, _BLOCK // max(1, len(row)))
    filled = 0
    while filled < count:
        size = min(block, count - filled)
        words = np.frombuffer(source(8 * limbs * size), dtype=">u8").reshape(size, limbs)
        found = _steps_at_or_below(words.astype(np.uint64), table)
        if not full:
            found = found[found < len(row)]
        out[filled : filled + len(found)] = found
        filled += len(found)
    return out


def _limbs(numbers: Sequence[int], limbs: int) -> Words:
    """Numbers as rows of 64-bit words, the most significant first."""
    if not numbers:
        return np.empty((0, limbs), dtype=np.uint64)
    content = b"".join(number.to_bytes(8 * limbs, "big") for number in numbers)
    return np.frombuffer(content, dtype=">u8").reshape(len(numbers), limbs).astype(np.uint64)


def _steps_at_or_below(words: Words, table: Words) -> Ints:
    """How many rows of the table are <= each word, comparing most significant limbs first."""
    above = words[:, :1] > table[None, :, 0]
    counts: Ints = above.sum(axis=1, dtype=np.int64)
    if words.shape[1] == 1:
        counts += (words == table[None, :, 0]).sum(axis=1)
        return counts
    # one word in 2^64 per entry agrees in its first limb
    for k in np.flatnonzero((words[:, :1] == table[None, :, 0]).any(axis=1)):
        counts[k] = sum(tuple(step) <= tuple(words[k].tolist()) for step in table.tolist())
    return counts
