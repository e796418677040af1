"""Tables in files, read part by part: CSV of any length, Parquet and GeoJSON within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.paths import path_of
from optmech.errors import ProblemError
from optmech.reading.columns import (
    number_of,
    numbers_of,
    parquet_names,
    read_features,
    read_parquet_table,
)
from optmech.reading.stream import Rows, csv_parts

Part = dict[str, Any]
"""Columns of some rows by name: arrays of numbers, or lists."""
DEGREES = ("longitude", "latitude")
"""The columns that the points of GeoJSON become."""


_AS_TABLE = "Give a table: .csv (also packed), .parquet or .geojson"
_NO_TABLES = {
    ".json": "a document",
    ".toml": "a document",
    ".html": "a page",
    ".png": "a picture",
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".npy": "an array",
    ".nc": "an array",
    ".gpkg": "a database",
    ".shp": "a map in several files",
    ".zip": "an archive",
}


@dataclass
class CsvTable:
    """The rows of a CSV file."""

    known: list[str]
    rows: Iterator[Rows]
    first: int = 0
    """Rows before the part that was read last."""
    lines: list[int] = field(default_factory=list)
    """Those of the file that the rows of this part end on."""

    def parts(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Part]:
        """The columns, ``numbers`` as floats with NaN for what is none."""
        # of columns with the same name the last counts, as elsewhere
        place = {name: k for k, name in enumerate(self.known)}
        for numbered in self.rows:
            self.first += len(self.lines)
            self.lines, rows = [line for line, _ in numbered], [row for _, row in numbered]
            part: Part = {name: [row[place[name]] for row in rows] for name in others}
            part.update({name: numbers_of([row[place[name]] for row in rows]) for name in numbers})
            yield part

    def line_of(self, row: int) -> int | None:
        """The line of a row, counted from 1, of the part that was read last."""
        k = row - self.first - 1
        return self.lines[k] if 0 <= k < len(self.lines) else None

    @property
    def types(self) -> dict[str, str]:
        """Names of the columns' types, where they have any."""
        return {}


@dataclass
class ParquetTable:
    """The columns of a Parquet file."""

    path: Path
    known: list[str]

    def __post_init__(self) -> None:
        self.types: dict[str, str] = {}

    def parts(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Part]:
        """All rows at once."""
        texts, types = read_parquet_table(self.path, others, numbers=False)
        self.types.update(types)
        values, _ = read_parquet_table(self.path, numbers, numbers=True)
        yield texts | {name: numbers_of(column) for name, column in values.items()}


@dataclass
class PointTable:
    """The features of a GeoJSON file, all of them points."""

    path: Path
    known: list[str]
    features: list[tuple[dict[str, Any], Any]]
    types: dict[str, str]

    def parts(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Part]:
        """All features at once; the columns ``DEGREES`` are their coordinates."""
        points = np.array([_point(shape, k, self.path) for k, (_, shape) in self._numbered()])
        part: Part = {name: [row.get(name) for row, _ in self.features] for name in others}
        for k, name in enumerate(DEGREES):
            if name in numbers:
                part[name] = points.reshape(-1, 2)[:, k]
        yield part

    def _numbered(self) -> Iterator[tuple[int, tuple[dict[str, Any], Any]]]:
        return enumerate(self.features)


Table = CsvTable | ParquetTable | PointTable


@contextmanager
def opened_table(path: str | Path, size: int) -> Iterator[Table]:
    """The table in a file, by its ending: .parquet, .geojson, and CSV for all others and for
    standard input (``-``), ``size`` rows of it at a time."""
    file = path_of(path)
    if file.suffix.lower() == ".parquet":
        yield ParquetTable(file, parquet_names(file))
    elif file.suffix.lower() == ".geojson":
        features = read_features(file)
        names = dict.fromkeys(key for properties, _ in features for key in properties)
        taken = next((name for name in DEGREES if name in names), None)
        if taken is not None:
            raise ProblemError(
                f"the features have a property {taken!r} beside their geometry",
                where=str(path),
                remedy="Rename or remove it: the geometry says where a point is",
            )
        yield PointTable(file, [*DEGREES, *names], features, {})
    elif (kind := file.suffix.lower()) in _NO_TABLES:
        raise ProblemError(
            f"is {_NO_TABLES[kind]}, and no table", where=str(path), remedy=_AS_TABLE
        )
    else:
        with csv_parts(path, size) as (header, rows):
            yield CsvTable(header, rows)


def row_words(table: Table, row: int) -> str:
    """How a row, counted from 1, is found in its file: with its line, where that has lines."""
    line = table.line_of(row) if isinstance(table, CsvTable) else None
    return f"row {row}" if line is None else f"row {row} (line {line})"


def _point(geometry: Any, k: int, path: Path) -> list[float]:
    place = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(place, list) or len(place) < 2:
        raise ProblemError(
            f"is a {str(geometry.get('type'))[:40]}, and no point",
            where=f"{path}: features[{k}]",
            remedy="Give a collection of points",
        )
    numbers = [v for v in place[:2] if isinstance(v, int | float) and not isinstance(v, bool)]
    return [number_of(v) for v in numbers] if len(numbers) == 2 else [np.nan, np.nan]
