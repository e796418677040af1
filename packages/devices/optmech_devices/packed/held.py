"""The released numbers of a packed mechanism, as they are held: in words of a machine."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.base.read_only import frozen, locked
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import Table

MOST_BITS = 48
"""Sums of up to 2^15 such numbers fit into 64 bits, and every one is a float64."""
SAMPLED_BITS = 63


@frozen
class FixedNumerators(Numerators):
    """A released matrix from machine words, without a Python number for each until somebody asks.

    ``entries`` has shape (S, O), unsigned 64-bit. Raises ProblemError unless every row sums to
    2^bits, with 1 <= bits <= 48.
    """

    entries: NDArray[np.uint64]

    def __init__(self, bits: int, entries: NDArray[np.uint64]) -> None:
        if not 1 <= bits <= MOST_BITS:
            raise ProblemError(f"{bits} bits; 1 to {MOST_BITS} are possible", where="mechanism")
        if entries.ndim != 2 or not entries.size or entries.shape[1] > 2 ** (63 - MOST_BITS):
            raise ProblemError(f"shape {entries.shape} is not of rows", where="mechanism")
        over = (entries > 1 << bits).any(axis=1)
        over |= entries.sum(axis=1, dtype=np.uint64) != 1 << bits
        if over.any():
            raise ProblemError(
                f"row {int(over.argmax())} is not {entries.shape[1]} numbers with sum 2^{bits}",
                where="mechanism",
            )
        kept = np.array(entries, dtype=np.uint64)
        vars(self).update(bits=bits, entries=locked(kept))

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        """The numerators as Python's numbers."""
        return tuple(map(tuple, self.entries.tolist()))

    @property
    def shape(self) -> tuple[int, int]:
        """Secrets and observables."""
        rows, columns = self.entries.shape
        return rows, columns

    @cached_property
    def matrix(self) -> Floats:
        """The probabilities, which are float64 numbers exactly, shape (S, O)."""
        out: Floats = np.ldexp(self.entries.astype(np.float64), -self.bits)
        return locked(out)

    @cached_property
    def table(self) -> Table:
        """The rows as the sampler needs them."""
        sums: NDArray[Any] = np.cumsum(self.entries, axis=1, dtype=np.uint64)
        steps = sums << np.uint64(SAMPLED_BITS - self.bits)
        return Table(np.ascontiguousarray(steps.T[None]))
