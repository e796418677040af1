"""Tables written part by part: CSV and GeoJSON as they come, Parquet at the end."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from optmech.base.labelled import label_text
from optmech.base.machine import needed
from optmech.base.storage import Write, ending, written_in_parts
from optmech.errors import ProblemError
from optmech.protection.sources import Part

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
                    where=str(path),
                    remedy="Write CSV or Parquet",
                )
            others = [name for name in names if name not in places]
            write(b'{"type": "FeatureCollection", "features": [')
            first = [True]
            yield lambda part: write(_features(part, places, others, first))
            write(b"\n]}\n")
        elif kind == ".gz":
            # the default would write the time and the name of the file into it
            with gzip.GzipFile(
                fileobj=cast(Any, _Stream(write)), mode="wb", mtime=0, filename=""
            ) as packed:
                yield from _csv(lambda content: cast(None, packed.write(content)), names)
        else:
            yield from _csv(write, names)


def kind_of(path: str | Path) -> str:
    """The ending that says how to write; raises ProblemError on one that says nothing."""
    kind = ending(path, ".csv")
    if kind == ".gz" and Path(path).stem.lower().endswith(".csv"):
        return kind
    if kind not in (".csv", ".parquet", ".geojson"):
        raise ProblemError(
            "is not the name of a table",
            where=str(path),
            remedy="Use a name that ends in .csv, .csv.gz, .parquet or .geojson",
        )
    if kind == ".parquet":
        needed("pyarrow.parquet", "parquet", where=str(path))
    return kind


class _Stream:
    """What gzip writes to."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def write(self, content: bytes) -> int:
        self._write(bytes(content))
        return len(content)

    def flush(self) -> None:
        return None


def _csv(write: Write, names: Sequence[str]) -> Iterator[Put]:
    def put(part: Part) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(zip(*(_cells(part[name]) for name in names), strict=True))
        write(text.getvalue().encode("utf-8", "surrogatepass"))

    head = io.StringIO(newline="")
    csv.writer(head).writerow(names)
    write(head.getvalue().encode("utf-8", "surrogatepass"))
    yield put


def _cells(column: Any) -> list[str]:
    """A column as texts: numbers as they read back, nothing for NaN."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return ["" if value != value else repr(value) for value in column.tolist()]
    return ["" if value is None else label_text(value) for value in column]


def _features(part: Part, places: Sequence[str], others: Sequence[str], first: list[bool]) -> bytes:
    columns = [part[name] for name in others]
    points = [part[name].tolist() for name in places]
    out = []
    for lon, lat, *values in zip(*points, *columns, strict=True):
        known = {name: _value(value) for name, value in zip(others, values, strict=True)}
        point = None if lon != lon else {"type": "Point", "coordinates": [lon, lat]}
        feature = {"type": "Feature", "properties": known, "geometry": point}
        out.append("\n" + json.dumps(feature, allow_nan=False))
    joined = ",".join(out)
    lead = "" if first[0] or not out else ","
    first[0] = first[0] and not out
    return (lead + joined).encode()


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
        cells: list[Any] = []
        numbers = all(isinstance(p[name], np.ndarray) and p[name].dtype.kind == "f" for p in parts)
        if numbers and parts:
            columns[name] = pa.array(np.concatenate([part[name] for part in parts]))
            continue
        for part in parts:
            cells += [None if v is None else label_text(v) for v in part[name]]
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
        blank = pa.array([None if cell == "" else cell for cell in cells], type=pa.string())
        return blank.cast(pa.type_for_alias(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return texts
