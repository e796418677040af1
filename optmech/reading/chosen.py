"""The columns of a table that say where its rows are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, real_array
from optmech.base.labels import few_columns, is_missing
from optmech.errors import ProblemError, moved
from optmech.reading.columns import require_columns
from optmech.reading.tables import DEGREES, PointTable, Table


@dataclass(frozen=True)
class Chosen:
    """The columns that say where a row is: coordinates, or one with labels."""

    names: tuple[Any, ...]
    labelled: bool

    @classmethod
    def of(cls, x: Hashable, y: Hashable, label: Hashable, known: Sequence[Hashable]) -> Chosen:
        """Raises ProblemError where they do not say it, or are not among the ``known`` columns."""
        if (label is None) == (x is None) or (y is not None and x is None):
            raise ProblemError(
                "no column says where a row is"
                if label is None and y is None
                else "coordinates or labels have to say where a row is, and not both",
                where="label" if label is not None else "x",
                remedy=f"Name x and y, or label; the columns are {few_columns(known)}",
            )
        names = tuple(name for name in (x, y, label) if name is not None)
        require_columns("data", names, known)
        if len(set(names)) < len(names):
            raise ProblemError(f"{x!r} is both x and y", where="y", remedy="Name two columns")
        return cls(names, label is not None)

    def points(self, columns: Sequence[Any]) -> Floats:
        """The coordinates of rows, shape (n, k). Raises ProblemError on columns of no numbers."""
        words = "is not a column of numbers", "Convert it first"
        return np.column_stack(
            [
                real_array(without_missing(column), str(name), *words)
                for name, column in zip(self.names, columns, strict=True)
            ]
        )


def chosen_of(
    table: Table, x: Hashable, y: Hashable, label: Hashable, source: str | Path
) -> Chosen:
    """The columns of a table that say where a row is; errors name the file."""
    if isinstance(table, PointTable):
        for name, column in (("x", x), ("y", y), ("label", label)):
            if column is not None:
                raise ProblemError(
                    "the geometry of GeoJSON says where a point is",
                    where=name,
                    remedy="Leave it out, or give a table",
                )
        return Chosen(DEGREES, False)
    with of_file(source):
        return Chosen.of(x, y, label, table.known)


def of_file(source: str | Path) -> AbstractContextManager[None]:
    """Errors about a table name its file."""
    return moved(lambda own: str(source) if own == "data" else own)


def without_missing(column: Any) -> Any:
    """A column of objects with NaN for those that are missing; any other as it is."""
    if not (isinstance(column, np.ndarray) and column.dtype.kind == "O"):
        return column
    return np.array([np.nan if is_missing(cell) else cell for cell in column], dtype=object)


def column_of(values: list[Any]) -> Any:
    """A column of labels; of grid cells one of tuples, which numpy would take apart."""
    if values and not any(isinstance(value, tuple) for value in values):
        return np.array(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
