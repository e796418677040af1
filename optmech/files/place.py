"""Where the sections of a file stand, and what they have to know of each other to be built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.designs.file import rows_of_design
from optmech.errors import ProblemError
from optmech.problem.space import GivenRows
from optmech.reading.data import DataFile
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

if TYPE_CHECKING:
    import networkx as nx


_BYTES_PER_PAIR = 100.0
"""Of secrets, to build a problem: measured with 400 and 800 of them, loss and one distance."""


@record
class Listed:
    """The secrets as the file lists them, before any aggregation."""

    domain: Domain
    rows: Ints | None = None
    """Index of the secret of every listed row, where rows are listed."""
    table: DataFile | None = None
    network: nx.Graph[Any] | None = None
    outside: int | None = None
    """Rows that lie beyond all secrets, where that is counted."""
    missing: int = 0
    """Rows without usable coordinates, where those beyond are counted."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.domain) if self.rows is None else len(self.rows)

    def by_secret(self, weights: Floats) -> Floats:
        """Weights of the rows added up by secret."""
        return weights if self.rows is None else _totals(self.rows, weights, len(self.domain))


@record
class Place:
    """Where a section stands: the file's folder, and what was built of the sections before it."""

    directory: Path
    listed: Listed
    secrets: Domain
    """Those of the problem: as listed, or their zones."""
    zone: Ints | None
    """Index of the zone of every listed point, where points are aggregated."""
    prior: Prior
    observed: Domain

    @classmethod
    def of(cls, directory: Path, listed: Listed, zones: tuple[Domain, Ints] | None = None) -> Place:
        """With a uniform prior, and the secrets themselves for reports."""
        domain, zone = (listed.domain, None) if zones is None else zones
        return cls(directory, listed, domain, zone, Prior.uniform(domain), domain)

    def per_secret(self, weights: Floats) -> Floats:
        """Weights of the listed points added up by zone."""
        return weights if self.zone is None else _totals(self.zone, weights, len(self.secrets))

    def rows(
        self, file: str, values: list[list[float]] | None = None, key: str = "", *,
        infinite: bool = False,
    ) -> Floats:  # fmt: skip
        """Rows of numbers >= 0 of one length, which may be ``infinite``, of a CSV ``file``, or the
        ``values`` of a ``key``."""
        rows: Sequence[Sequence[float] | Floats] = (
            DataFile(file).matrix(self.directory) if values is None else values
        )
        place = "file" if values is None else key
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise ProblemError(
                    f"row {i} has {len(row)} entries and row 0 has {len(rows[0])}",
                    where=place,
                    remedy="Give rows of one length",
                )
            numbers = np.asarray(row, dtype=np.float64)
            bad = np.flatnonzero(~((numbers >= 0) & (infinite | np.isfinite(numbers))))
            if len(bad):
                raise ProblemError(
                    f"the entry at [{i}][{bad[0]}] is no {'finite ' * (not infinite)}number >= 0",
                    where=place,
                    remedy=f"Give {'' if infinite else 'finite '}numbers >= 0",
                )
        if not rows:
            raise ProblemError("is empty", where=place, remedy="Give rows of numbers")
        return np.array(rows, dtype=np.float64)

    def numbers(self, file: str, name: str | None) -> Any:
        """Rows of numbers of any sign of a CSV file, or an array of a NumPy one."""
        if file.lower().endswith((".npz", ".npy")):
            return DataFile(file).arrays(self.directory, name)
        rows = DataFile(file).matrix(self.directory)
        if not rows or len({len(row) for row in rows}) != 1:
            raise ProblemError(
                "has rows of different lengths" if rows else "is empty",
                where="file",
                remedy="Give rows of one length",
            )
        return np.array(rows, dtype=np.float64)

    def kept_rows(self, design: str) -> GivenRows:
        """The rows of a design's file."""
        return rows_of_design(self.directory / design)


def _totals(group: Ints, weights: Floats, count: int) -> Floats:
    return np.bincount(group, weights=weights, minlength=count).astype(np.float64)


_DESIGN_BYTES = 1000.0
"""For every probability of a design that is searched for: less than any search was seen to take
(2,300 at 600 places, 6,000 at 1,024)."""


def require_room(
    count: int, where: str, *, observables: int = 1, places: int | None = None
) -> None:
    """Refuse a domain whose matrices cannot fit, before its labels are made.

    ``observables`` is a number of which it is known that there are as many. ``places`` is how many
    of the secrets lie at different coordinates, where that is known.
    """
    remedy = "Use a coarser domain"
    if places is not None and places < count:
        remedy = (
            f"They lie at {places:,} different places: write distinct = true to make one secret "
            "of each"
        )
    memory.require(
        max(_BYTES_PER_PAIR * count * count, _DESIGN_BYTES * count * observables),
        what=f"a problem of {count:,} secrets",
        where=where,
        remedy=remedy,
    )


@contextmanager
def labels_from(key: str, *, merging: bool = False) -> Iterator[None]:
    """Report errors of labels at the key that they come from; ``merging`` says that rows of one
    label can be merged there."""
    try:
        yield
    except ProblemError as error:
        place = f"{key}{error.where[6:]}" if error.where.startswith("labels") else error.where
        remedy = error.remedy
        if merging and "occurs twice" in error.message:
            remedy = "Write distinct = true to make one secret of each label"
        raise ProblemError(error.message, where=place, remedy=remedy) from error
