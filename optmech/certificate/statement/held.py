"""Rows of the matrix that a statement fixes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, locked
from optmech.exact.numerators import Numerators


@dataclass(frozen=True, eq=False)
class Held(ReadOnly):
    """P[secrets[k], :] is row k of ``exact``, for the k secrets (k,), in increasing order."""

    secrets: Ints
    exact: Numerators

    @property
    def matrix(self) -> Floats:
        """The nearest floats, (k, O)."""
        return self.exact.matrix

    def free(self, secrets: int) -> Ints:
        """The secrets out of so many whose rows are not fixed."""
        return np.setdiff1d(np.arange(secrets), self.secrets)

    def has(self, secrets: int) -> NDArray[np.bool_]:
        """Which of so many secrets have fixed rows."""
        out = np.zeros(secrets, dtype=bool)
        out[self.secrets] = True
        return locked(out)

    @cached_property
    def rows(self) -> dict[int, tuple[int, ...]]:
        """Every fixed row by its secret, over 2^bits of ``exact``."""
        return dict(zip(self.secrets.tolist(), self.exact.rows, strict=True))


def joined(parts: Iterable[Held]) -> Held | None:
    """The rows that all parts fix, over one power of two; of a secret that two fix, the row of the
    first. None where nothing is fixed."""
    given = list(parts)
    if len(given) < 2:
        return given[0] if given else None
    bits = max(part.exact.bits for part in given)
    rows: dict[int, tuple[int, ...]] = {}
    for part in given:
        shift = bits - part.exact.bits
        for s, row in part.rows.items():
            rows.setdefault(s, tuple(value << shift for value in row))
    order = sorted(rows)
    return Held(np.array(order), Numerators(bits, tuple(rows[s] for s in order)))
