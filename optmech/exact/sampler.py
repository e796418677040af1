"""Drawing from rows of whole numbers: exact probabilities, from the operating system's entropy.

A draw takes a whole number X and counts the cumulative sums of the row at or below it. No float is
involved, and the work is the same whatever row is drawn from: the sums of all rows are laid out
beforehand, every one in the same number of 64-bit words; a draw reads all of them to pick its row,
so that what lies in a cache says nothing, and compares X with every sum of that row, word by word
to the last, zeros and the sum of everything included. All rows take the same number of bytes.
"""

from __future__ import annotations

import hashlib
import secrets as entropy
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base import memory
from optmech.base.arrays import Ints
from optmech.base.labels import label_text
from optmech.base.read_only import ReadOnly, locked, record
from optmech.exact.arguments import whole

Words = NDArray[np.uint64]
Bytes = Callable[[int], bytes]
EachBytes = Callable[[Ints, int, int], bytes]
"""Bytes of draws that are told apart: of which ones, how many each, and at which attempt."""
_WORD = 64
_BELOW_FIRST_BIT = np.uint64(2**63 - 1)
_BLOCK = 2**20
"""Words compared at a time."""
_EACH = 2**16
"""Rows drawn for at a time."""


def system_bytes(count: int) -> bytes:
    """Entropy of the operating system."""
    return entropy.token_bytes(count)


def seeded_bytes(seed: int) -> Bytes:
    """Reproducible bytes, unfit for release: who knows the seed knows every draw."""
    return np.random.default_rng(whole(seed, "seed")).bytes


_DRAWN = 24.0
"""Bytes of memory for every draw, at least."""


def bytes_for(size: int | None, seed: int | None) -> tuple[int, Bytes]:
    """How many draws a ``size`` stands for, and where their bytes come from. Raises ProblemError on
    what are no whole numbers."""
    for where, value in (("size", size), ("seed", seed)):
        if value is not None:
            whole(value, where)
    if size is not None:
        memory.require(
            _DRAWN * float(min(size, 2**60)),
            what=f"{min(size, 2**60):,} reports",
            where="size",
            remedy="Draw fewer at a time",
        )
    return 1 if size is None else int(size), system_bytes if seed is None else seeded_bytes(seed)


@record
class Table(ReadOnly):
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
        return cls(locked(np.ascontiguousarray(steps.transpose(2, 1, 0))))

    @cached_property
    def heads(self) -> Words:
        """The first words of all sums, shape (rows, entries)."""
        return np.ascontiguousarray(self.steps[0].T)

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


def draw_each(table: Table, rows: Ints, source: EachBytes) -> Ints:
    """An index for every one of ``rows`` (n,), index o of row r with probability exactly
    row[o] / sum(row).

    The number of steps is the same for all rows and all numbers: a bisection over the first words,
    and a comparison of all words where these leave a tie, which has a probability below the number
    of entries times 2^-63. Unlike with ``draw``, what is read of the memory depends on the row:
    this is for whole tables, drawn where nobody watches the caches.
    """
    heads, (limbs, width, _) = table.heads, table.steps.shape
    out = np.empty(len(rows), dtype=np.int64)
    for begin in range(0, len(rows), _EACH):
        left, attempt = np.arange(begin, min(begin + _EACH, len(rows))), 0
        while len(left):
            content = source(left, 8 * limbs, attempt)
            words = np.frombuffer(content, dtype=">u8").astype(np.uint64).reshape(-1, limbs)
            words[:, 0] &= _BELOW_FIRST_BIT
            found = _at_or_below(heads, rows[left], words[:, 0])
            if limbs > 1:
                last = heads[rows[left], np.maximum(found - 1, 0)]
                for k in np.flatnonzero((found > 0) & (last == words[:, 0])).tolist():
                    steps = table.steps[:, :, rows[left[k]]]
                    found[k] = _steps_at_or_below(words[k : k + 1], steps)[0]
            done = found < width
            out[left[done]] = found[done]
            left, attempt = left[~done], attempt + 1
    return out


def fresh(source: Bytes = system_bytes) -> EachBytes:
    """New bytes for every draw and every attempt."""
    return lambda which, size, attempt: source(len(which) * size)


def _at_or_below(heads: Words, rows: Ints, numbers: Words) -> Ints:
    """How many of the ascending entries of its row are <= each number, by bisection."""
    width = heads.shape[1]
    flat, start = heads.ravel(), rows * width - 1
    found = np.zeros(len(rows), dtype=np.int64)
    step = 1 << width.bit_length() - 1
    while step:
        ahead = found + step
        reached = (ahead <= width) & (flat[start + np.minimum(ahead, width)] <= numbers)
        found[reached] = ahead[reached]
        step >>= 1
    return found


LEAST_KEY = 32
"""Bytes of a key, at least: as many as SHA-256 puts out."""


def framed(parts: Sequence[bytes]) -> bytes:
    """Parts joined so that no other parts give the same bytes: each after its length."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def fingerprint(numbers: NDArray[Any], *labels: Sequence[object]) -> bytes:
    """A digest of numbers with their shape, and of lists of labels as they are written."""
    lists = [
        framed([label_text(label).encode("utf-8", "surrogatepass") for label in listed])
        for listed in labels
    ]
    content = [repr(numbers.shape).encode(), numbers.tobytes(), *lists]
    return hashlib.sha256(framed(content)).digest()
