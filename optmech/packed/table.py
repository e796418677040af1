"""The numbers of a packed file: distinct rows of whole numbers with fixed widths, and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Ints
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.packed.cbor import typed, untyped

Plain = Any
BITS = (16, 24, 32, 48)
MOST_COLUMNS = 2**15
"""So that sums of entries fit into 64 bits whatever a file says."""
TABLE = {"bits", "width", "columns"}
"""Entries of the header that say how the numbers are written."""


@dataclass(frozen=True, eq=False)
class Table(ReadOnly):
    """Rows of whole numbers that sum to 2^bits."""

    bits: int
    columns: Ints
    """Numbers of the reports that have a column, ascending."""
    rows: NDArray[np.uint64]
    """The distinct rows, shape (R, columns)."""

    @property
    def width(self) -> int:
        """Bytes of an entry: one more than the bits take where an entry is 2^bits."""
        return self.bits // 8 + int((self.rows == 1 << self.bits).any())


def encode_table(table: Table) -> tuple[dict[str, Plain], bytes]:
    """The header's entries and the bytes of all rows."""
    words = np.ascontiguousarray(table.rows, dtype="<u8").view(np.uint8)
    rows = words.reshape(*table.rows.shape, 8)[:, :, : table.width].tobytes()
    columns = typed(table.columns, 70)
    return {"bits": table.bits, "width": table.width, "columns": columns}, rows


def decode_table(body: Plain, rows: bytes, count: int, reports: int) -> Table:
    """The inverse, for ``count`` rows and as many ``reports``. Raises ProblemError unless every
    row is a distribution, in the one form that is written."""
    bits, width = body["bits"], body["width"]
    if bits not in BITS or type(bits) is not int:
        raise ProblemError(f"{str(bits)[:40]} is none of {BITS}", where="bits")
    columns = untyped(body["columns"], 70).astype(np.int64)
    if not len(columns) or (np.diff(columns) <= 0).any() or columns[-1] >= reports:
        raise ProblemError("are no ascending numbers of reports", where="columns")
    if len(columns) > MOST_COLUMNS:
        raise ProblemError(f"{len(columns):,} are more than {MOST_COLUMNS:,}", where="columns")
    if type(width) is not int or len(rows) != count * len(columns) * width:
        raise ProblemError(f"{len(rows):,} bytes do not fit {count} rows", where="rows")
    if width not in (bits // 8, bits // 8 + 1):
        raise ProblemError(f"{width} bytes for {bits} bits", where="width")
    words = np.zeros((count, len(columns), 8), dtype=np.uint8)
    words[:, :, :width] = np.frombuffer(rows, np.uint8).reshape(count, len(columns), width)
    entries: NDArray[np.uint64] = words.view("<u8")[:, :, 0].astype(np.uint64)
    if (entries > 1 << bits).any():
        raise ProblemError(f"has an entry above 2^{bits}", where="rows")
    if (entries.sum(axis=1, dtype=np.uint64) != 1 << bits).any():
        raise ProblemError(f"has a row that does not sum to 2^{bits}", where="rows")
    found = Table(bits, columns, entries)
    if width != found.width:
        raise ProblemError("are wider than they need be", where="width")
    return found


def used_rows(numbers: Ints, most: int, where: str) -> int:
    """How many rows ``numbers`` speak of. Raises ProblemError where some row is not used, or there
    are more than ``most``."""
    count = int(numbers.max(initial=-1)) + 1
    # a number that is too large is refused before anything of that size is made
    if count > most or not np.array_equal(np.unique(numbers), np.arange(count)) or not count:
        raise ProblemError("does not use every one of the rows", where=where)
    return count
