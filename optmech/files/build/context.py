"""What the sections of one file have to know of each other while they are built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech import memory
from optmech.domain import Domain, Floats, Ints
from optmech.errors import ProblemError
from optmech.files.data import DataFile

if TYPE_CHECKING:
    import networkx as nx


_BYTES_PER_PAIR = 100.0
"""Of secrets, to build a problem: measured with 400 and 800 of them, loss and one distance."""


@dataclass(frozen=True, eq=False)
class Listed:
    """The secrets as the file lists them, before any aggregation."""

    domain: Domain
    table: DataFile | None = None
    network: nx.Graph[Any] | None = None


@dataclass(frozen=True, eq=False)
class Context:
    """The built secrets, and where the file and its data are."""

    directory: Path
    listed: Listed
    domain: Domain
    """The secrets of the problem: as listed, or their zones."""
    zone: Ints | None = None
    """Index of the zone of every listed point, where points are aggregated."""

    def per_secret(self, weights: Floats) -> Floats:
        """Weights of the listed points added up by zone."""
        if self.zone is None:
            return weights
        totals = np.bincount(self.zone, weights=weights, minlength=len(self.domain))
        return totals.astype(np.float64)


def require_room(count: int, where: str) -> None:
    """Refuse a domain whose matrices cannot fit, before its labels are made."""
    memory.require(
        _BYTES_PER_PAIR * count * count,
        what=f"a problem of {count:,} secrets",
        where=where,
        remedy="Use a coarser domain",
    )


@contextmanager
def labels_from(key: str) -> Iterator[None]:
    """Report errors of labels at the key that they come from."""
    try:
        yield
    except ProblemError as error:
        place = f"{key}{error.where[6:]}" if error.where.startswith("labels") else error.where
        raise ProblemError(error.message, where=place, remedy=error.remedy) from error
