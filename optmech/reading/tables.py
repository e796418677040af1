"""Tables in files, read and written part by part: CSV of any length, GeoJSON and Parquet within
bounds."""

import io
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from optmech.base.labels import label_text
from optmech.base.machine import needed
from optmech.base.storage import Write, csv_bytes, ending, path_of, written_in_parts
from optmech.errors import ProblemError
from optmech.reading.columns import (
    Rows,
    csv_parts,
    number_of,
    numbers_by,
    numbers_of,
    parquet_names,
    read_features,
    read_parquet_table,
    require_columns,
)

T = TypeVar("T")
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
    ".gpx": "a track",
    ".kml": "a map",
    ".xml": "a document",
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
    separator: str = ","
    path: str | Path = ""
    types: dict[str, str] = field(default_factory=dict)
    """Names of the columns' types, where they have any."""

    def parts(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Part]:
        """The columns, ``numbers`` as floats with NaN for what is none."""
        require_columns(self.path, [*numbers, *others], self.known)
        place = {name: k for k, name in enumerate(self.known)}
        own = {
            name: numbers_by(self.separator, f"the column {name!r}", self.path) for name in numbers
        }
        for numbered in self.rows:
            self.first += len(self.lines)
            self.lines, rows = [line for line, _ in numbered], [row for _, row in numbered]
            part: Part = {name: [row[place[name]] for row in rows] for name in others}
            for name, read in own.items():
                cells: Any = [row[place[name]] for row in rows]
                part[name] = numbers_of(cells if self.separator == "," else list(map(read, cells)))
            yield part


@dataclass
class ParquetTable:
    """The columns of a Parquet file."""

    path: Path
    known: list[str]
    types: dict[str, str] = field(default_factory=dict)

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
    types: dict[str, str] = field(default_factory=dict)

    def parts(self, numbers: Sequence[str], others: Sequence[str]) -> Iterator[Part]:
        """All features at once; the columns ``DEGREES`` are their coordinates."""
        numbered = enumerate(self.features)
        points = np.array([_point(shape, k, self.path) for k, (_, shape) in numbered])
        part: Part = {name: [row.get(name) for row, _ in self.features] for name in others}
        for k, name in enumerate(DEGREES):
            if name in numbers:
                part[name] = points.reshape(-1, 2)[:, k]
        yield part

    def middles(self) -> str:
        """What to say of features that are no points where their middles are taken; "" of none."""
        kinds = Counter(str(g.get("type"))[:40] for _, g in self.features if g is not None)
        del kinds["Point"]
        said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        return f"the middles of features that are no points are taken: {said}" if said else ""


Table = CsvTable | ParquetTable | PointTable


@contextmanager
def opened_table(path: str | Path, size: int) -> Iterator[Table]:
    """The table in a file, by its ending: .parquet, .geojson, and CSV for all others and for
    standard input (``-``), ``size`` rows of it at a time."""
    file = path_of(path)
    kind = file.suffix.lower()
    if kind == ".parquet":
        yield ParquetTable(file, parquet_names(file))
    elif kind == ".geojson":
        features = read_features(file, empty=True)
        names = dict.fromkeys(key for properties, _ in features for key in properties)
        taken = next((name for name in DEGREES if name in names), None)
        if taken is not None:
            raise ProblemError(
                f"the features have a property {taken!r} beside their geometry",
                where=path,
                remedy="Rename or remove it: the geometry says where a point is",
            )
        yield PointTable(file, [*DEGREES, *names], features)
    elif kind in _NO_TABLES:
        raise ProblemError(f"is {_NO_TABLES[kind]}, and no table", where=path, remedy=_AS_TABLE)
    else:
        with csv_parts(path, size) as (separator, header, rows):
            yield CsvTable(header, rows, separator=separator, path=path)


def separator_words(table: Table) -> str:
    """What separates the columns of a table of text, where that are no commas; else ""."""
    names = {";": "semicolons", "\t": "tabs"}
    name = names.get(table.separator) if isinstance(table, CsvTable) else None
    return f"columns are separated by {name}: numbers may have decimal commas" if name else ""


def row_words(table: Table, row: int) -> str:
    """How a row, counted from 1, is found in its file: with its line, where that has lines."""
    if isinstance(table, CsvTable) and 0 <= (k := row - table.first - 1) < len(table.lines):
        return f"row {row} (line {table.lines[k]})"
    return f"row {row}"


def _point(geometry: Any, k: int, path: Path) -> list[float]:
    place = None if geometry is None else geometry.get("coordinates")
    # null, or a point of no numbers, is a row without coordinates
    if geometry is None or (geometry.get("type") == "Point" and place == []):
        return [np.nan, np.nan]
    if geometry.get("type") != "Point" or not isinstance(place, list) or len(place) < 2:
        raise ProblemError(
            f"is a {str(geometry.get('type'))[:40]}, and no point",
            where=f"{path}: features[{k}]",
            remedy="Give a collection of points",
        )
    numbers = [v for v in place[:2] if isinstance(v, int | float) and not isinstance(v, bool)]
    return [number_of(v) for v in numbers] if len(numbers) == 2 else [np.nan, np.nan]


Put = Callable[[Part], None]


@contextmanager
def opened_sink(
    path: str | Path, names: Sequence[str], places: Sequence[str] | None, types: dict[str, str]
) -> Iterator[Put]:
    """A function that takes parts with the columns ``names``, and writes them to a file by its
    ending: .csv, .csv.gz, .parquet, .geojson (whose points are the two columns ``places``), and CSV
    to standard output.

    ``types`` are those that the columns of a Parquet file had. Raises ProblemError on another
    ending, and where there are no points for GeoJSON.
    """
    kind = kind_of(path)
    with written_in_parts(path) as write:
        if kind == ".parquet":
            kept: list[Part] = []
            yield kept.append
            write(_parquet(kept, names, types))
        elif kind == ".geojson":
            if places is None:
                raise ProblemError(
                    "the reports have no longitude and latitude",
                    where=path,
                    remedy="Write CSV or Parquet",
                )
            yield from _geojson(write, names, places)
        elif kind == ".gz":
            # the form of gzip, without a time or a name
            packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS + 16)
            yield from _csv(lambda content: write(packer.compress(content)), names)
            write(packer.flush())
        else:
            yield from _csv(write, names)


def kind_of(path: str | Path) -> str:
    """The ending that says how to write; raises ProblemError on one that says nothing."""
    kind = ending(path, ".csv")
    if kind == ".gz" and path_of(path).stem.lower().endswith(".csv"):
        return kind
    if kind not in (".csv", ".parquet", ".geojson"):
        raise ProblemError(
            "is not the name of a table",
            where=path,
            remedy="Use a name that ends in .csv, .csv.gz, .parquet or .geojson",
        )
    if kind == ".parquet":
        needed("pyarrow.parquet", "parquet", where=str(path))
    return kind


def _csv(write: Write, names: Sequence[str]) -> Iterator[Put]:
    def put(part: Part) -> None:
        write(csv_bytes(zip(*(_cells(part[name]) for name in names), strict=True)))

    write(csv_bytes([names]))
    yield put


def _cells(column: Any) -> list[str]:
    """A column as texts, nothing for NaN; coordinates of reports with twelve digits."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return _each(column, lambda value: "" if value != value else repr(value))
    return ["" if value is None else _text(value) for value in column]


def _text(value: Any) -> str:
    return value if type(value) is str else label_text(value)


def _each(column: Any, read: Callable[[float], T]) -> list[T]:
    """What numbers are read as, with twelve digits, a tenth of a millimetre of degrees: those
    beyond come of sums. Few numbers are different ones."""
    values, back = np.unique(column, return_inverse=True, equal_nan=True)
    known = [read(float(f"{value:.12g}")) for value in values.tolist()]
    return [known[k] for k in back.ravel().tolist()]


def _geojson(write: Write, names: Sequence[str], places: Sequence[str]) -> Iterator[Put]:
    others = [name for name in names if name not in places]
    before = chain(["\n"], repeat(",\n"))

    def feature(lon: float, lat: float, *values: Any) -> str:
        known = {name: _value(value) for name, value in zip(others, values, strict=True)}
        point = None if lon != lon else {"type": "Point", "coordinates": [lon, lat]}
        found = {"type": "Feature", "properties": known, "geometry": point}
        return next(before) + json.dumps(found, allow_nan=False)

    def put(part: Part) -> None:
        points = [_each(part[name], float) for name in places]
        rows = zip(*points, *map(part.__getitem__, others), strict=True)
        write("".join(feature(*row) for row in rows).encode())

    write(b'{"type": "FeatureCollection", "features": [')
    yield put
    write(b"\n]}\n")


def _value(value: Any) -> Any:
    """A cell as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return label_text(value) if isinstance(value, tuple) else value


def _parquet(parts: list[Part], names: Sequence[str], types: dict[str, str]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for name in names:
        found = [part[name] for part in parts]
        if found and all(isinstance(own, np.ndarray) and own.dtype.kind == "f" for own in found):
            columns[name] = pa.array(np.concatenate(found))
        else:
            cells = [None if v is None else _text(v) for v in chain.from_iterable(found)]
            columns[name] = _typed(cells, types.get(name))
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _typed(cells: list[Any], kind: str | None) -> Any:
    """Texts as the type that they were read from, where they can be that again."""
    import pyarrow as pa

    texts = pa.array(cells, type=pa.string())
    if kind is None or kind in ("string", "large_string"):
        return texts
    try:
        blank = texts
        if "" in cells:
            blank = pa.array([None if cell == "" else cell for cell in cells], type=pa.string())
        return blank.cast(pa.type_for_alias(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return texts
