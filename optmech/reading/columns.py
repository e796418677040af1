"""Columns of CSV, Parquet and GeoJSON files, with errors that name the file and the column."""

import csv
import io
import json
import re
import sys
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.labels import few_columns
from optmech.base.machine import needed
from optmech.base.numerals import are_numerals, float_of_cell, float_of_text
from optmech.base.storage import STANDARD_OUTPUT, path_of
from optmech.errors import ProblemError
from optmech.reading.bounded import MAX_BYTES, expanded, read_text, require_readable, translated
from optmech.reading.sandbox import Found, read_isolated

MAX_ROWS = 5_000_000
_LONGEST_LINE = 2**20
_MOST_FEATURES = 200_000
_NO_CSV = ("is not a UTF-8 CSV file", "Save it as UTF-8 CSV")

Row = tuple[int, list[str]]
"""The number of its last line, and its cells."""
Rows = list[Row]


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, Floats]:
    """Read the named columns of a CSV file (plain, .gz, .bz2 or .xz; UTF-8, with a header) as
    float64; or of a Parquet or GeoJSON file, see ``read_text_columns``. Columns may be separated by
    semicolons or tabs too, and then numbers may have decimal commas.

    Cells that are empty or not numbers become NaN: the caller counts and reports them.
    """
    columns = _columns(path_of(path), names, numbers=True)
    return {name: numbers_of(cells) for name, cells in columns.items()}


def read_text_columns(path: str | Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Read the named columns of a CSV file as text.

    Of ``.parquet`` files the columns of the table are read. Of ``.geojson`` files the columns are
    the features' properties, and ``longitude`` and ``latitude`` of their centroids in degrees.
    Raises ProblemError on what is no such file, without one of the columns, or holds more than 64
    MiB or five million rows, after decompression.
    """
    return _columns(path_of(path), names, numbers=False)


def _columns(file: Path, names: Sequence[str], numbers: bool) -> dict[str, Any]:
    if file.suffix.lower() == ".parquet":
        return read_parquet_table(file, names, numbers=numbers)[0]
    if file.suffix.lower() == ".geojson":
        return _geojson(file, names)
    # texts of numbers would take ten times the memory
    columns: dict[str, Any] = {name: array("d") if numbers else [] for name in names}
    with _csv(file) as (separator, rows):
        _, header = next(rows, (0, list[str]()))
        require_columns(file, names, header)
        readers = [
            numbers_by(separator, f"the column {name!r}", file) if numbers else str
            for name in names
        ]
        wanted = [(columns[name].append, header.index(name)) for name in names]
        for _, row in rows:
            for (keep, k), read in zip(wanted, readers, strict=True):
                # what a row lacks is empty
                keep(read(row[k] if k < len(row) else ""))
    return columns


@contextmanager
def _csv(path: Path, *, numbers: bool = False) -> Iterator[tuple[str, Iterator[Row]]]:
    """What separates the columns of a CSV file, and its rows, empty lines left out; of ``numbers``
    the first line is no header. See ``read_text_columns`` for what is refused."""
    with _text(path, MAX_BYTES) as text, translated(path, *_NO_CSV):
        lines = TableText(text, path, header=not numbers)

        def rows() -> Iterator[Row]:
            for count, (line, row) in enumerate(lines.rows()):
                if count > MAX_ROWS:
                    raise ProblemError(
                        f"has more than the {MAX_ROWS:,} rows allowed",
                        where=path,
                        remedy="Keep only the rows that are needed, or count equal ones",
                    )
                if row:
                    yield line, row

        yield lines.separator, rows()


@contextmanager
def _text(path: str | Path, limit: int) -> Iterator[TextIO]:
    with (
        expanded(path, limit) as content,
        io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as text,
    ):
        yield text


def read_rows(path: Path) -> list[Floats]:
    """The rows of a CSV file of numbers without a header, of any lengths."""
    with _csv(path, numbers=True) as (separator, rows):
        read = float_of_text if separator == "," else numbers_by(separator, "the file", path)

        def number(cell: str, line: int) -> float:
            with suppress(ValueError):
                found = read(cell)
                # a cell may say nan, and with decimal commas it stands for what is none
                if separator == "," or found == found:
                    return found
            raise ProblemError(
                f"line {line} has a cell that is not a number",
                where=path,
                remedy="Give rows of numbers, without a header",
            )

        return [np.array([number(cell, line) for cell in cells]) for line, cells in rows]


_QUOTED = re.compile('"[^"]*"')
_DIGITS = re.compile("[-+]?[0-9.,]+")


class TableText:
    """The lines of a table of text, and what separates its columns, by its first line that is not
    empty: semicolons or tabs, where there are more of them than of commas."""

    def __init__(
        self, text: TextIO, path: str | Path, *, header: bool, strict: bool = False
    ) -> None:
        self.path, self.header, self.strict = path, header, strict
        self._row: list[str] = []
        lines = bounded_lines(text, path)
        head: list[str] = []
        for line in lines:
            head.append(line)
            if line.strip():
                break
        marks = _QUOTED.sub("", head[-1] if head else "")
        # a line of numbers may have more decimal commas than columns
        commas = marks.count(",") if header else 0
        most = max(("\t", ";"), key=marks.count)
        self.separator = most if marks.count(most) > commas else ","
        self._lines = chain(head, lines)

    def _kept(self) -> Iterator[str]:
        for line in self._lines:
            self._row.append(line)
            if len(self._row) > _MOST_LINES:
                raise ProblemError(
                    f"has a row of more than {_MOST_LINES:,} lines",
                    where=self.path,
                    remedy="Close the quotation mark that is open",
                )
            yield line

    def rows(self) -> Iterator[Row]:
        """All rows. Raises ProblemError on a cell that is too long, and on rows of many lines."""
        reader = csv.reader(self._kept(), delimiter=self.separator, strict=self.strict)
        count, end = 0, 0
        try:
            for row in reader:
                self._row.clear()
                count, end = count + bool(row), reader.line_num
                yield end, row
        except csv.Error as error:
            column = _long_cell("".join(self._row), self.separator)
            if column is None:
                raise
            at = f"row {count + (not self.header)} (line {end + 1})"
            raise ProblemError(
                f"{at if count or not self.header else 'the header'} has more than "
                f"{csv.field_size_limit():,} characters in column {column}",
                where=self.path,
                remedy="Close a quotation mark that is open there, or leave the long text out",
            ) from error


def _long_cell(row: str, separator: str) -> int | None:
    """The number of the first cell of a row that is longer than a reader of CSV takes."""
    cell = re.compile(f'(?:"(?:[^"]|"")*+"?)?[^{separator}]*')
    most, column, at = csv.field_size_limit(), 1, 0
    while at <= len(row):
        end = max(cell.match(row, at).end(), at)  # type: ignore[union-attr]
        if end - at > most:
            return column
        column, at = column + 1, end + 1
    return None


def numbers_by(separator: str, name: str, path: str | Path) -> Callable[[str], float]:
    """What reads cells as floats, NaN for none: where columns are not separated by commas, numbers
    may have decimal commas, all of them or none. Raises ProblemError where both marks are used."""
    if separator == ",":
        return number_of
    seen: list[str] = []

    def read(cell: str) -> float:
        mark = "," if "," in cell else "." if "." in cell else ""
        found = number_of(cell.replace(",", ".", 1)) if mark == "," else number_of(cell)
        like = found == found or (mark == "," and _DIGITS.fullmatch(cell.strip()))
        if not mark or not like:
            return found
        if found != found or seen not in ([], [mark]):
            raise ProblemError(
                f"{name} has numbers with points and with commas, or marks between thousands",
                where=path,
                remedy="Write all of them with one decimal mark, and nothing between thousands",
            )
        seen[:] = [mark]
        return found

    return read


def bounded_lines(text: TextIO, path: str | Path) -> Iterator[str]:
    """The lines of a text; raises ProblemError on one that is too long."""
    lines = iter(partial(text.readline, _LONGEST_LINE + 1), "")
    for number, line in enumerate(lines, start=1):
        if len(line) > _LONGEST_LINE:
            raise ProblemError(
                f"line {number} has more than {_LONGEST_LINE:,} characters",
                where=path,
                remedy="Check that the file is a table, and give shorter rows",
            )
        yield line


def parquet_names(path: str | Path) -> list[str]:
    """The names of the columns of a Parquet file, the first thousand."""
    return [str(name) for name in _read_parquet(path_of(path), [], False).values["columns"]]


def read_parquet_table(
    path: str | Path, names: Sequence[str], *, numbers: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """The named columns of a Parquet file, as ``read_columns`` or ``read_text_columns`` have them,
    and the names of their types."""
    answer = _read_parquet(path_of(path), names, numbers)
    require_columns(path_of(path), names, answer.values["columns"])
    columns: dict[str, Any] = {}
    for name, found in zip(names, answer.values["found"], strict=True):
        if "numbers" in found:
            columns[name] = answer.arrays[found["numbers"]]
            continue
        # the last text stands for the place -1, of what is missing
        texts = [*found["texts"], ""]
        columns[name] = [texts[k] for k in answer.arrays[found["places"]].tolist()]
    return columns, dict(zip(names, answer.values["types"], strict=True))


def _read_parquet(file: Path, names: Sequence[str], numbers: bool) -> Found:
    needed("pyarrow.parquet", "parquet", where=str(file))
    require_readable(file)
    return read_isolated("parquet", file, columns=list(names), most_rows=MAX_ROWS, numbers=numbers)


def read_features(path: str | Path, *, empty: bool = False) -> list[tuple[dict[str, Any], Any]]:
    """Properties and geometry of every feature of a GeoJSON feature collection; where ``empty``,
    the geometry may be null, None here. Raises ProblemError on what is none, or has too many."""
    text = read_text(path)
    with translated(path, "is not a GeoJSON feature collection", "Export it as one"):
        collection = json.loads(text)
    features = collection.get("features") if isinstance(collection, dict) else None
    if not isinstance(features, list):
        raise ProblemError(
            "is not a GeoJSON feature collection", where=path, remedy="Export it as one"
        )
    if len(features) > _MOST_FEATURES:
        raise ProblemError(
            f"has {len(features):,} features, more than the {_MOST_FEATURES:,} allowed",
            where=path,
            remedy="Keep those that are needed",
        )
    return [_feature(each, f"{path}: features[{k}]", empty) for k, each in enumerate(features)]


def _feature(feature: object, where: str, empty: bool) -> tuple[dict[str, Any], Any]:
    geometry = feature.get("geometry", "") if isinstance(feature, dict) else ""
    without = empty and geometry is None
    if not isinstance(feature, dict) or not (without or isinstance(geometry, dict)):
        raise ProblemError(
            "is not a GeoJSON feature with a geometry", where=where, remedy="Export it as one"
        )
    properties = feature.get("properties")
    if properties is None:
        properties = {}
    if not isinstance(properties, dict):
        raise ProblemError(
            f"the properties are a {type(properties).__name__}",
            where=where,
            remedy="Give a table of names and values, or null",
        )
    return properties, geometry


def shapes_of(geometries: Sequence[Any], path: str | Path) -> list[Any]:
    """The geometries of features as shapely has them, with finite coordinates. Raises ProblemError
    without shapely, or on one that is not to be read."""
    shapely = needed("shapely.geometry", "geo", where=str(path))
    shapes = []
    for k, geometry in enumerate(geometries):
        where = f"{path}: features[{k}]"
        with translated(where, "has a geometry that cannot be read", "Correct that feature"):
            shape = shapely.shape(geometry)
            finite = shape.is_empty or np.isfinite(shape.bounds).all()
        if not finite:
            raise ProblemError(
                "has coordinates that are not finite", where=where, remedy="Correct that feature"
            )
        shapes.append(shape)
    return shapes


_NOWHERE = {"type": "GeometryCollection", "geometries": list[Any]()}


def _geojson(file: Path, names: Sequence[str]) -> dict[str, list[str]]:
    features = read_features(file, empty=True)
    rows = [dict(properties) for properties, _ in features]
    if {"longitude", "latitude"} & set(names):
        # what has no geometry is nowhere, as a row with empty cells
        geometries = [geometry or _NOWHERE for _, geometry in features]
        for row, shape in zip(rows, shapes_of(geometries, file), strict=True):
            with translated(file, "a geometry is unusable"):
                centre = None if shape.is_empty else shape.centroid
                row["longitude"] = None if centre is None else centre.x
                row["latitude"] = None if centre is None else centre.y
    known = list(dict.fromkeys(key for row in rows for key in row))
    require_columns(file, names, known)
    cells = {name: [row.get(name) for row in rows] for name in names}
    return {
        name: ["" if cell is None else str(cell) for cell in column]
        for name, column in cells.items()
    }


def require_columns(
    where: str | Path, names: Sequence[Hashable], known: Sequence[Hashable]
) -> None:
    """Raise ProblemError on a name that no column has, or several have."""
    for name in names:
        if (count := known.count(name)) > 1:
            raise ProblemError(
                f"has {'two' if count == 2 else count} columns {name!r}",
                where=str(where),
                remedy="Rename all but one of them",
            )
        if name not in known:
            raise ProblemError(
                f"there is no column {name!r}",
                where=str(where),
                remedy=f"The columns are {few_columns(known)}",
            )


def number_of(cell: str | float) -> float:
    """A cell as a float, NaN for what is none; a whole number beyond all floats is infinite."""
    try:
        return float_of_cell(cell)
    except ValueError:
        return float("nan")
    except OverflowError:
        return float("inf")


def numbers_of(cells: Any) -> Floats:
    """Cells as float64, NaN for what is no number."""
    if not isinstance(cells, np.ndarray | array):
        texts = [cell for cell in cells if isinstance(cell, str)]
        try:
            # blanks of other scripts around a number are left to the reader of single cells
            cells = list(map(float if are_numerals(texts) else float_of_cell, cells))
        except (ValueError, OverflowError):
            cells = [number_of(cell) for cell in cells]
    return np.asarray(cells, dtype=np.float64)


STANDARD_INPUT = STANDARD_OUTPUT
"""The path that stands for standard input: ``-``."""
_LONGEST_FILE = 2**44
_MOST_LINES = 1000
"""Of one row, whose quoted cells may hold line breaks: an open quotation mark ends somewhere."""


@contextmanager
def csv_parts(path: str | Path, size: int) -> Iterator[tuple[str, list[str], Iterator[Rows]]]:
    """What separates the columns of a CSV file (plain, .gz, .bz2 or .xz; UTF-8), its header, and
    its rows, ``size`` at a time.

    Every row has the number of its line, and a cell for every column; what it lacks is empty. ``-``
    is standard input. Only a part is in memory at any time. Raises ProblemError on what is no such
    file, on a row with more cells than columns, and on lines of more than a million characters.
    """
    wrong = _NO_CSV
    if path_of(path).suffix.lower() in (".gz", ".bz2", ".xz"):
        wrong = ("is no UTF-8 CSV file packed as its name says", "Pack it again, or give it plain")
    with _opened(path) as text, translated(path, *wrong):
        lines = TableText(text, path, header=True)
        rows = lines.rows()
        header = next((row for _, row in rows if row), None)
        if not header:
            raise ProblemError(
                "is empty", where=path, remedy="Give a table with the names of its columns"
            )
        yield lines.separator, header, _parts(rows, len(header), size, path)


def _parts(found: Iterator[Row], width: int, size: int, path: str | Path) -> Iterator[Rows]:
    def rows() -> Iterator[Row]:
        for line, row in found:
            if len(row) == width:
                yield line, row
            elif row:
                if len(row) > width:
                    raise ProblemError(
                        f"line {line} has {len(row)} cells, and there are {width} columns",
                        where=path,
                        remedy="Quote the cells that have commas in them",
                    )
                yield line, row + [""] * (width - len(row))

    every = rows()
    while part := list(islice(every, size)):
        yield part


@contextmanager
def _opened(path: str | Path) -> Iterator[TextIO]:
    if str(path) != STANDARD_INPUT:
        with _text(path, _LONGEST_FILE) as text:
            yield text
        return
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        yield sys.stdin
        return
    wrapped = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        yield wrapped
    finally:
        # the stream itself belongs to Python
        wrapped.detach()
