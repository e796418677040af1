"""The tidy table of a run: one row per task, written from the records."""

import csv
import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from optmech.base.storage import csv_bytes
from optmech.errors import ProblemError
from optmech.reading.bounded import read_text, translated
from optmech.spaces.labels import number_of
from optmech.sweeps.axes import FIGURES, MEASURED, OF_REGIONS, Cell
from optmech.sweeps.directory import RunDirectory, write_run_file
from optmech.sweeps.plan import Plan

_KEYS = {"task", *FIGURES, "design"}
_TABLE_BYTES = 2**29
_REMEDY = "Run the sweep again: it goes on where it was"

Row = dict[str, Cell]


def make_rows(run: RunDirectory, plan: Plan) -> list[Row]:
    """A row for every task of the plan that has a record."""
    rows: list[Row] = []
    records = run.records()
    more = [name for name in (*MEASURED, *OF_REGIONS) if any(name in record for record in records)]
    for record in records:
        task = record["task"]
        design = str(run.design_path(task).relative_to(run.path)) if record["digest"] else None
        figures = {name: record.get(name) for name in (*FIGURES, *more)}
        ends = {"start": plan.before(task), "design": design, "seconds": record.get("seconds")}
        rows.append({"task": task, **plan.cells(task), **figures, **ends})
    return rows


def write_tables(run: RunDirectory, rows: Sequence[Row]) -> None:
    """``table.csv``, and ``table.parquet`` where pyarrow is installed."""
    write_run_file(run.path / "table.csv", to_csv(rows))
    if find_spec("pyarrow") is not None:
        write_run_file(run.path / "table.parquet", to_parquet(rows))


def to_csv(rows: Sequence[Row]) -> bytes:
    """UTF-8 with a header; nothing where there is no value, floats that read back bit by bit."""
    listed = ([_text(value) for value in row.values()] for row in rows)
    return csv_bytes([*map(list, rows[:1]), *listed], end="\n")


def _text(value: Cell) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_parquet(rows: Sequence[Row]) -> bytes:
    """The same as Parquet; a column of numbers and texts together becomes text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(rows[0]) if rows else []
    columns = {name: _column([row[name] for row in rows]) for name in names}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _column(values: list[Cell]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and float in kinds:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [None if value is None else _text(value) for value in values]
    return values


def read_table(path: Path) -> list[Row]:
    """The rows of a ``table.csv``, numbers as numbers and what is empty as None. Raises
    ProblemError where it cannot be read, or is not a table that ``to_csv`` has written."""
    text = io.StringIO(read_text(path, _TABLE_BYTES), newline="")
    with translated(path, "is no table of a sweep", _REMEDY):
        rows = list(csv.DictReader(text, strict=True))
    if any(None in row or None in row.values() or not set(row) >= _KEYS for row in rows):
        raise ProblemError("is no table of a sweep", where=str(path), remedy=_REMEDY)
    found = [{name: _value(cell) for name, cell in row.items()} for row in rows]
    tasks = {row["task"] for row in found if type(row["task"]) is int}
    if len(tasks) < len(found):
        raise ProblemError("has no task, or one twice", where=str(path), remedy=_REMEDY)
    return found


def _value(cell: str) -> Cell:
    if cell in ("", "true", "false"):
        return None if cell == "" else cell == "true"
    number = number_of(cell)
    return cell if number is None else number
