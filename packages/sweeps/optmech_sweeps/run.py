"""``om.sweep``: every design of a sweep into a run directory, resumable; its table."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

from optmech.base.shown import Shown
from optmech.base.storage import csv_bytes, path_of
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.exact.number import Number
from optmech.pipeline.profiles import Profile, load_profile
from optmech.problem import Problem
from optmech.reading.bounded import read_text, translated
from optmech.reading.columns import TableText
from optmech.reading.sections import is_number
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike
from optmech.spaces.labels import number_of
from optmech.spaces.prior import Prior
from optmech_sweeps.directory import RunDirectory, read_manifest, write_run_file
from optmech_sweeps.plan import Plan, read_plan
from optmech_sweeps.scheduler import Progress, Report, Scheduler, opened
from optmech_sweeps.templates import (
    FIGURES,
    MEASURED,
    OF_REGIONS,
    Axis,
    Cell,
    DocumentTemplate,
    ObjectTemplate,
    Template,
    named,
    simple_axis,
    zipped,
)

Plain: TypeAlias = "Number | bool | Sequence[Plain] | Mapping[str, Plain] | None"
"""What problem files are made of."""
Value: TypeAlias = "Plain | Prior | DistanceLike | Sequence[Value]"
Values: TypeAlias = "Sequence[Value] | Mapping[str, Value]"
Axes: TypeAlias = "Mapping[str | tuple[str, ...], Values]"


@dataclass(frozen=True, repr=False)
class SweepResult(Shown):
    """A run directory and its table, one row per task.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> axes = {"constraints[0].epsilon": [0.5, 1.0]}
    >>> with ThreadPoolExecutor(1) as pool:
    ...     result = om.sweep("line-geometric", axes, "run", executor=pool)
    ...
    >>> len(result.rows), len(result.failed)
    (2, 0)
    >>> om.SweepResult.load("run").design(0).status
    'optimal'
    """

    directory: Path
    rows: tuple[Row, ...]

    @property
    def failed(self) -> tuple[Row, ...]:
        """Rows of tasks without a result; ``reason`` says why."""
        return tuple(row for row in self.rows if row["status"] == "failed")

    def design(self, task: int) -> Design:
        """The design of a task, loaded and checked again.

        Raises
        ------
        ProblemError
            Where the task has none, or one that is not the table's.
        """
        for row in self.rows:
            if row["task"] == task and row["design"] is not None:
                design = Design.load(self.directory / str(row["design"]))
                found = design.summary()
                names = {*FIGURES, *OF_REGIONS} & set(row) - {"engine", "reason"}
                if any(row[name] != found.get(name) for name in names):
                    raise ProblemError(
                        f"the design of task {task!r} has other figures than the table",
                        where=self.directory,
                        remedy="Run the sweep again: tasks that do not fit are done anew",
                    )
                return design
        raise ProblemError(f"task {task!r} has no design", where=self.directory)

    @staticmethod
    @checked_arguments
    def load(directory: str | Path) -> SweepResult:
        """The table of a run directory, as it is now."""
        folder = path_of(directory)
        read_manifest(folder)
        return SweepResult(folder, tuple(read_table(folder / "table.csv")))


@checked_arguments
def sweep(
    problem: str | Path | Problem | Mapping[str, Plain],
    axes: Axes | None = None,
    directory: str | Path | None = None,
    *,
    profile: str | Path | Profile | None = None,
    gap: float | None = None,
    time_limit: float | None = None,
    chain: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Report | None = None,
) -> SweepResult:
    """Solve a problem for every combination of values, each task on its own.

    Parameters
    ----------
    problem:
        Without ``axes`` a sweep file; with them the template: a ``Problem``, the file or gallery
        name of one, or a problem file's content.
    axes:
        Values by place: ``{"constraints[0].epsilon": [0.3, 0.6]}``. A mapping instead of a list
        names the values in the table, as for priors: ``{"prior": {"alice": prior}}``. A tuple
        of places has tuples of values, which move together. The last axis moves fastest.
    directory:
        Where the results go; the same call goes on where an interrupted one was. Without one they
        go to a new folder among the temporary files, which the result names.
    profile, gap, time_limit:
        As for ``solve``, for every task; default what a sweep file says.
    chain:
        Up to how many neighbours on the last axis start from each other's designs; 1 for none.
    executor:
        Any ``concurrent.futures.Executor``; default processes on this machine.
    workers:
        Number of processes (default: the cores at hand), or of tasks that ``executor`` gets at
        once.
    progress:
        Called with short lines of text.

    Returns
    -------
    SweepResult
        Tasks that failed are in it with their reason; nothing is raised for them. An infeasible
        problem is a result.

    Raises
    ------
    ProblemError
        On anything unusable in the sweep, or a directory that is another sweep's, is in use, or
        cannot be written (a full disk: what is done is kept, and the same call goes on).
    KeyboardInterrupt
        On Ctrl-C, with everything done so far kept.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> axes = {"constraints[0].epsilon": [0.5, 1.0]}
    >>> with ThreadPoolExecutor(1) as pool:  # processes of this machine without
    ...     result = om.sweep("line-geometric", axes, "run", executor=pool)
    ...
    >>> [row["status"] for row in result.rows]
    ['optimal', 'optimal']
    >>> losses = [row["loss"] for row in result.rows]
    >>> losses[0] > losses[1]  # a larger ε loses less
    True
    """
    plan = read_plan(problem) if axes is None else _plan(problem, axes)
    chosen = plan.profile if profile is None else load_profile(profile)
    length = plan.chain if chain is None else chain
    plan = replace(plan, profile=chosen.with_limits(gap, time_limit), chain=length)
    folder = Path(mkdtemp(prefix="optmech-sweep-") if directory is None else directory)
    counts = Progress(progress or (lambda _: None), plan.count)
    with RunDirectory.opened(folder, plan) as run:

        def table() -> None:
            """``table.csv``, and ``table.parquet`` where pyarrow is installed."""
            rows = make_rows(run, plan)
            write_run_file(run.path / "table.csv", to_csv(rows))
            if find_spec("pyarrow") is not None:
                write_run_file(run.path / "table.parquet", to_parquet(rows))

        with opened(executor, workers, plan.count) as pool:
            try:
                Scheduler(plan, run, pool, counts).run(table)
            finally:
                pool.close()
                table()
        counts.say(now=True)
        return SweepResult(folder, tuple(make_rows(run, plan)))


def _plan(problem: object, axes: Axes) -> Plan:
    """A plan over a ``Problem``, the name of a file, or the content of one."""
    template: Template
    if isinstance(problem, Problem):
        template = ObjectTemplate(problem)
    elif isinstance(problem, Mapping):
        template = DocumentTemplate(dict(problem), Path.cwd() / "problem")
    elif isinstance(problem, str | Path):
        template = DocumentTemplate.read(problem)
    else:
        raise ProblemError(
            f"{type(problem).__name__} is not a problem",
            where="problem",
            remedy="Give an om.Problem, a problem file, a gallery name or a file's content",
        )
    if not axes or not hasattr(axes, "items"):
        raise ProblemError(
            "is not a mapping of places to values",
            where="axes",
            remedy='Give {"constraints[0].epsilon": [0.3, 0.6]}, for example',
        )
    listed = [_axis(place, values) for place, values in axes.items()]
    plan = Plan(template, named(listed), load_profile("auto"))
    for task in range(0, plan.count, max(1, plan.count // 100)):
        plan.source(task)
    return plan


def _axis(place: str | tuple[str, ...], values: object) -> Axis:
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Mapping | Sequence):
        raise ProblemError(
            f"a {type(values).__name__} is not a list of values",
            where=f"axes[{place!r}]",
            remedy="Give a list",
        )
    if isinstance(place, str):
        return simple_axis(place, values)
    rows = list(values)
    if not all(isinstance(row, Sequence) and len(row) == len(place) for row in rows):
        raise ProblemError(
            f"needs lists of {len(place)} values", where=f"axes[{place!r}]", remedy="Complete them"
        )
    return zipped([simple_axis(one, [row[k] for row in rows]) for k, one in enumerate(place)])


def named_designs(result: SweepResult) -> tuple[list[int], list[str], list[str] | None]:
    """The tasks of a run that have a design, their names from the axes, and the series of each:
    all that differs but the numbers along which a line is drawn; None where that is all.
    """
    listed = read_manifest(result.directory).get("columns")
    known = listed if isinstance(listed, list) else []
    rows = [row for row in result.rows if row.get("design") is not None]
    varying = [
        name for name in known if isinstance(name, str) and len({row.get(name) for row in rows}) > 1
    ]
    # a line runs along the last column of numbers, and of these first an ε
    numbers = [name for name in varying if all(is_number(row[name]) for row in rows)]
    rates = [name for name in numbers if name.rpartition(".")[2] in ("epsilon", "delta")]
    along = (rates or numbers)[-1:]
    others = [name for name in varying if name not in along]
    names = [_text(row, varying) or f"task {row['task']}" for row in rows]
    tasks = [task for row in rows if isinstance(task := row["task"], int)]
    return tasks, names, [_text(row, others) for row in rows] if others else None


def _text(row: Row, names: Sequence[str]) -> str:
    """``user = alice, epsilon = 0.5``; a single name of a thing stands alone."""
    parts = []
    for name in names:
        value = row[name]
        short = f"{value:.6g}" if isinstance(value, float) else str(value)
        parts.append(f"{name.rpartition('.')[2]} = {short}" if is_number(value) else short)
    return ", ".join(parts)


_KEYS = {"task", *FIGURES, "design"}
_TABLE_BYTES = 2**29
_REMEDY = "Run the sweep again: it goes on where it was"

Row = dict[str, Cell]


def make_rows(run: RunDirectory, plan: Plan) -> list[Row]:
    """A row for every task of the plan that has a record."""
    records = run.records()
    more = [name for name in (*MEASURED, *OF_REGIONS) if any(name in record for record in records)]
    return [
        {
            "task": (task := record["task"]),
            **plan.cells(task),
            **{name: record.get(name) for name in (*FIGURES, *more)},
            "start": plan.before(task),
            "design": run.design_name(task) if record["digest"] else None,
            "seconds": record.get("seconds"),
        }
        for record in records
    ]


def to_csv(rows: Sequence[Row]) -> bytes:
    """UTF-8 with a header; nothing where there is no value, floats that read back bit by bit, and
    quotation marks around texts that would read back as something else, such as 007."""
    listed = ([_entry(value) for value in row.values()] for row in rows)
    return csv_bytes([*map(list, rows[:1]), *listed], end="\n")


def _entry(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if _value(value) == value else f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def to_parquet(rows: Sequence[Row]) -> bytes:
    """A table as Parquet; a column of numbers and texts together becomes text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _column([row[name] for row in rows]) for first in rows[:1] for name in first}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def _column(values: list[Cell]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and float in kinds:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [None if value is None else _entry(value) for value in values]
    return values


def read_table(path: Path) -> list[Row]:
    """The rows of a ``table.csv``, numbers as numbers and what is empty as None. Raises
    ProblemError where it cannot be read, or is not a table that ``to_csv`` has written."""
    text = io.StringIO(read_text(path, _TABLE_BYTES), newline="")
    with translated(path, "is no table of a sweep", _REMEDY):
        every = TableText(text, path, header=True, strict=True).rows()
        names, *cells = [row for _, row in every if row] or [[]]
    if not set(names) >= _KEYS or any(len(row) != len(names) for row in cells):
        raise ProblemError("is no table of a sweep", where=path, remedy=_REMEDY)
    found = [dict(zip(names, map(_value, row), strict=True)) for row in cells]
    tasks = {row["task"] for row in found if type(row["task"]) is int}
    if len(tasks) < len(found):
        raise ProblemError("has no task, or one twice", where=path, remedy=_REMEDY)
    return found


def _value(cell: str) -> Cell:
    if cell in ("", "true", "false"):
        return None if cell == "" else cell == "true"
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        return cell[1:-1]
    number = number_of(cell)
    return cell if number is None else number
