"""Columns of CSV, Parquet and GeoJSON files, with errors that name the file and the column."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from optmech.domain import Floats
from optmech.errors import ProblemError
from optmech.needed import needed


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, Floats]:
    """Read the named columns of a CSV file (plain or .gz, UTF-8, with a header) as float64; or of
    a Parquet or GeoJSON file, see ``read_text_columns``.

    Cells that are empty or not numbers become NaN: the caller counts and reports them.
    """
    return {name: _numbers(cells) for name, cells in read_text_columns(path, names).items()}


def read_text_columns(path: str | Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read the named columns of a CSV file as text.

    Of ``.parquet`` files the columns of the table are read. Of ``.geojson`` files the columns are
    the features' properties, and ``longitude`` and ``latitude`` of their centroids in degrees.
    """
    file = Path(path)
    special = {".parquet": _parquet, ".geojson": _geojson}.get(file.suffix.lower())
    if special is not None:
        return special(file, names)
    columns: dict[str, list[str]] = {name: [] for name in names}
    opener: Callable[..., TextIO] = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            header = reader.fieldnames or []
            _require_columns(file, names, list(header))
            for row in reader:
                for name in names:
                    columns[name].append(row[name] or "")
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProblemError(
            f"cannot be read: {reason}", where=str(file), remedy="Check the path"
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"is not a UTF-8 CSV file: {error}", where=str(file)) from error
    return columns


def _parquet(file: Path, names: Sequence[str]) -> dict[str, list[str]]:
    parquet = needed("pyarrow.parquet", "parquet", where=str(file))
    try:
        table = parquet.ParquetFile(file)
        _require_columns(file, names, table.schema_arrow.names)
        read = table.read(columns=list(names))
    except (OSError, ValueError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"is not a Parquet file: {error}", where=str(file)) from error
    return {
        name: ["" if cell is None else str(cell) for cell in read[name].to_pylist()]
        for name in names
    }


def _geojson(file: Path, names: Sequence[str]) -> dict[str, list[str]]:
    try:
        features = json.loads(file.read_text(encoding="utf-8-sig"))["features"]
        rows = [dict(feature.get("properties") or {}) for feature in features]
        geometries = [feature["geometry"] for feature in features]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProblemError("is not a GeoJSON feature collection", where=str(file)) from error
    if {"longitude", "latitude"} & set(names):
        shapely = needed("shapely.geometry", "geo", where=str(file))
        for row, geometry in zip(rows, geometries, strict=True):
            try:
                centre = shapely.shape(geometry).centroid
                row["longitude"], row["latitude"] = centre.x, centre.y
            except Exception as error:
                raise ProblemError(f"a geometry is unusable: {error}", where=str(file)) from error
    known = list(dict.fromkeys(key for row in rows for key in row))
    _require_columns(file, names, known)
    cells = {name: [row.get(name) for row in rows] for name in names}
    return {
        name: ["" if cell is None else str(cell) for cell in column]
        for name, column in cells.items()
    }


def _require_columns(file: Path, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ProblemError(
                f"there is no column {name!r}",
                where=str(file),
                remedy=f"The columns are {', '.join(map(repr, known)) or 'none'}",
            )


def _numbers(cells: Iterable[str]) -> Floats:
    def number(cell: str) -> float:
        try:
            return float(cell)
        except ValueError:
            return float("nan")

    return np.array([number(cell) for cell in cells], dtype=np.float64)
