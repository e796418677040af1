"""Drawing from rows of whole numbers: exact probabilities, from the operating system's entropy.

A draw takes a whole number X and counts the cumulative sums of the row at or below it. No float is
involved, and the work is the same whatever row is drawn from: the sums of all rows are laid out
beforehand, every one in the same number of 64-bit words; a draw reads all of them to pick its row,
so that what lies in a cache says nothing, and compares X with every sum of that row, word by word
to the last, zeros and the sum of everything included. All rows take the same number of bytes.
"""

from __future__ import annotations

import secrets as entropy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from optmech.base import memory
from optmech.base.arrays import Ints

Words = NDArray[np.uint64]
Bytes = Callable[[int], bytes]
_WORD = 64
_BELOW_FIRST_BIT = np.uint64(2**63 - 1)
_BLOCK = 2**20
"""Words compared at a time."""


def system_bytes(count: int) -> bytes:
    """Entropy of the operating system."""
    return entropy.token_bytes(count)


def seeded_bytes(seed: int) -> Bytes:
    """Reproducible bytes, unfit for release: who knows the seed knows every draw."""
    return np.random.default_rng(seed).bytes


@dataclass(frozen=True, eq=False)
class Table:
    """The cumulative sums of every row, scaled to at most 2^(64·limbs - 1)."""

    steps: Words
    """Shape (limbs, entries, rows), the most significant word first."""

    @property
    def limbs(self) -> int:
        """Words of every number."""
        return len(self.steps)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], limbs: int = 1) -> Table:
        """Rows of whole numbers >= 0 with positive sums, in at least ``limbs`` words.

        Sums that are powers of two fill the range, and no draw is repeated. Others are multiplied
        until they leave less than 2^-64 of it, so that no row has its draws repeated more often
        than that. Raises TooLargeError where there is no memory for it.
        """
        limbs = max(limbs, limbs_for(rows))
        width = len(rows[0])
        memory.require(
            16.0 * len(rows) * width * limbs,
            what=f"sampling from {len(rows):,} rows of {width:,}",
            where="sample",
            remedy="Use a coarser domain",
        )
        span = 1 << _WORD * limbs - 1
        steps = np.empty((len(rows), width, limbs), dtype=np.uint64)
        for k, row in enumerate(rows):
            scale = span // sum(row)
            content = b"".join(
                (step * scale).to_bytes(8 * limbs, "big") for step in accumulate(row)
            )
            steps[k] = np.frombuffer(content, dtype=">u8").reshape(width, limbs)
        return cls(np.ascontiguousarray(steps.transpose(2, 1, 0)))

    def row(self, index: int) -> Words:
        """The sums of one row, shape (limbs, entries): all are read, and all but one times 0."""
        chosen = np.zeros(self.steps.shape[2], dtype=np.uint64)
        chosen[index] = 1
        found: Words = np.einsum("lor,r->lo", self.steps, chosen)
        return found


def limbs_for(rows: Sequence[Sequence[int]]) -> int:
    """Words that a draw from any of these rows needs."""
    totals = [sum(row) for row in rows]
    bits = max((total - 1).bit_length() for total in totals)
    whole = all(total & (total - 1) == 0 for total in totals)
    return (bits if whole else bits + _WORD) // _WORD + 1


def draw(table: Table, row: int, count: int, source: Bytes = system_bytes) -> Ints:
    """``count`` indices, index o with probability row[o] / sum(row) exactly.

    Takes 8·limbs bytes per draw, of which the first bit is not used. A number at or above the last
    sum is drawn again.
    """
    steps = table.row(row)
    limbs, width = steps.shape
    out = np.empty(count, dtype=np.int64)
    block = max(1, _BLOCK // (limbs * width))
    filled = 0
    while filled < count:
        size = min(block, count - filled)
        words = np.frombuffer(source(8 * limbs * size), dtype=">u8").astype(np.uint64)
        words = words.reshape(size, limbs)
        words[:, 0] &= _BELOW_FIRST_BIT
        found = _steps_at_or_below(words, steps)
        found = found[found < width]
        out[filled : filled + len(found)] = found
        filled += len(found)
    return out


def _steps_at_or_below(words: Words, steps: Words) -> Ints:
    """How many sums are <= each number: all words of all of them are compared, without branches."""
    reached = steps[-1] <= words[:, -1:]
    for limb in range(len(steps) - 2, -1, -1):
        mine = words[:, limb : limb + 1]
        reached &= steps[limb] == mine
        reached |= steps[limb] < mine
    counts: Ints = reached.sum(axis=1, dtype=np.int64)
    return counts
