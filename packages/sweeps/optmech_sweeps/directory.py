"""A run directory: one certified design and one record per task; a table that follows from them.

    sweep.json             which sweep this is: digests by part
    designs/000012.json    the design of task 12, as optmech solve -o writes it
    tasks/000012.json      its values and figures, and the digest of the design's file
    table.csv              all records, one line each (table.parquet where pyarrow is there)

A task is done when its record is there and its design is, passes the check again and is one of the
task's own problem; the figures are then the design's, whatever the record says. The design is
written before the record, each beside its place and then renamed, so a run that ends at any
instant, whatever ends it, leaves tasks that are done or not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optmech.base.lock import locked
from optmech.base.storage import path_of, plain_values, write_atomically
from optmech.designs.design import Design
from optmech.errors import OptmechError, ProblemError
from optmech.reading.bounded import read_bytes
from optmech.reading.sealed import MAX_BYTES as DESIGN_BYTES
from optmech_sweeps.plan import FORMAT, Plan
from optmech_sweeps.templates import same_problem
from optmech_sweeps.undisturbed import undisturbed
from optmech_sweeps.worker import Outcome, figures_of

MANIFEST = "sweep.json"
_DESIGNS, _TASKS = "designs", "tasks"
_RECORD_BYTES = 4 * 2**20
_WORDS = {
    "problem": "the problem",
    "axes": "the axes",
    "profile": "the profile, gap or time limit",
    "chain": "the chain length",
    "tasks": "the number of tasks",
}

Record = dict[str, Any]


class RunDirectory:
    """The files of one run. Made by ``opened``, which holds the lock."""

    def __init__(self, path: str | Path, plan: Plan) -> None:
        self.path = path_of(path)
        self.doubts: list[str] = []
        """What was found and not believed, in words."""
        self._plan = plan
        self._kept: dict[int, Record] = {}

    @classmethod
    @contextmanager
    def opened(cls, path: str | Path, plan: Plan) -> Iterator[RunDirectory]:
        """The directory of a plan, made where there is none, locked inside. Raises ProblemError
        where it belongs to another sweep or holds other files, another run is working in it, or it
        cannot be written."""
        run = cls(path, plan)
        try:
            run.path.mkdir(exist_ok=True)
        except (OSError, ValueError) as error:
            raise ProblemError(
                f"cannot be made: {getattr(error, 'strerror', None) or error}",
                where=run.path,
                remedy="Choose a directory whose parent exists and is writable",
            ) from error
        with locked(run.path / ".lock"):
            run._claim()
            run._tidy()
            yield run

    def design_name(self, task: int) -> str:
        """Where the design of a task is, below the directory."""
        return str(Path(_DESIGNS, f"{task:06d}.json"))

    def design_path(self, task: int) -> Path:
        """Where the design of a task is."""
        return self.path / self.design_name(task)

    def keep(self, outcome: Outcome) -> Record:
        """Write what came of a task; a failure too, which the next run tries again."""
        task, design = outcome.task, outcome.design
        record: Record = {
            "task": task,
            **self._plan.cells(task),
            "status": "failed",
            **outcome.figures,
            "reason": outcome.reason,
            "digest": "" if design is None else hashlib.sha256(design).hexdigest(),
        }
        if design is not None:
            write_run_file(self.design_path(task), design)
        columns = list(self._plan.columns)
        kept = plain_values({"record": record, "columns": columns})
        content = json.dumps(kept, allow_nan=False)
        # an interrupt in between would leave a record that the table does not know
        with undisturbed():
            write_run_file(self._record_path(task), content.encode())
            self._kept[task] = record
        return record

    def read(self, task: int) -> Record | None:
        """A task's record with the figures of its design, read and checked again; None where
        there is none, or one that is not of the task's problem."""
        record = self._record(task)
        if record is None:
            return None
        if record["status"] == "failed":
            reason = str(record.get("reason", ""))
            self._kept[task] = {"task": task, "status": "failed", "reason": reason, "digest": ""}
            return None
        try:
            content = self.design(task)
        except ProblemError:
            return None
        digest = hashlib.sha256(content).hexdigest()
        if digest != record["digest"]:
            return None
        try:
            design = Design.of_document(content, str(self.design_path(task)))
            same = same_problem(design.problem, self._plan.source(task).build())
            doubt = "" if same else "its design is of another problem"
        except OptmechError as error:
            doubt = " ".join(str(error).split())
        if doubt:
            self.doubts.append(f"task {task} is done again: {doubt}")
            return None
        found = {"task": task, **self._plan.cells(task), **figures_of(design), "digest": digest}
        self._kept[task] = found
        return found

    def design(self, task: int) -> bytes:
        """The content of a done task's design file."""
        return read_bytes(self.design_path(task), DESIGN_BYTES)

    def records(self) -> list[Record]:
        """What is known of the tasks in their order, failures too."""
        return [self._kept[task] for task in sorted(self._kept)]

    def strays(self) -> list[str]:
        """Records of no task of the plan; they are left alone."""
        known = {self._record_path(task).name for task in range(self._plan.count)}
        names = {path.name for path in (self.path / _TASKS).glob("*.json")}
        return sorted(names - known)

    def _record_path(self, task: int) -> Path:
        return self.path / _TASKS / f"{task:06d}.json"

    def _record(self, task: int) -> Record | None:
        try:
            record = _read_json(self._record_path(task))["record"]
            fits = record["task"] == task and isinstance(record["status"], str)
            return record if fits and isinstance(record["digest"], str) else None
        except (TypeError, LookupError):
            return None

    def _claim(self) -> None:
        """Write the manifest, or see that it is this plan's."""
        plan = self._plan
        wanted = plan.identity()
        manifest = self.path / MANIFEST
        if not os.path.exists(manifest):
            if any(not entry.name.startswith(".") for entry in self.path.iterdir()):
                raise ProblemError(
                    "is neither empty nor the directory of a sweep",
                    where=self.path,
                    remedy="Choose another directory",
                )
            about = {"title": plan.title, "columns": list(plan.columns)}
            write_run_file(manifest, json.dumps({**about, **wanted}, indent=1).encode())
        found = read_manifest(self.path)
        other = [words for key, words in _WORDS.items() if found.get(key) != wanted[key]]
        if other:
            raise ProblemError(
                f"is the directory of another sweep: {' and '.join(other)} differ",
                where=self.path,
                remedy="Choose another directory, or run the sweep that it belongs to",
            )

    def _tidy(self) -> None:
        """Remove what writes left that were cut short."""
        try:
            for name in (_DESIGNS, _TASKS):
                (self.path / name).mkdir(exist_ok=True)
            for folder in (self.path, self.path / _DESIGNS, self.path / _TASKS):
                for entry in folder.glob(".*.*"):
                    entry.unlink()
        except OSError as error:
            raise ProblemError(
                f"cannot be written: {error.strerror}",
                where=self.path,
                remedy="Choose a folder that is writable and has room",
            ) from error


def write_run_file(path: Path, content: bytes) -> None:
    """Write a file of a run directory, and to nothing but a file: a pipe would wait for a reader.
    Raises ProblemError where that cannot be done."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ProblemError(
            "cannot be written: it is no regular file",
            where=path,
            remedy="Remove it, and run the sweep again",
        )
    write_atomically(path, content)


def _read_json(path: Path) -> Any:
    """The content of a small file; None where it cannot be read."""
    try:
        return json.loads(read_bytes(path, _RECORD_BYTES))
    except (ProblemError, ValueError, RecursionError):
        return None


def read_manifest(path: Path) -> Mapping[str, Any]:
    """The manifest of a run directory; raises ProblemError where there is none."""
    found = _read_json(path / MANIFEST)
    if isinstance(found, dict) and found.get("format") == FORMAT:
        return found
    raise ProblemError(
        "is not the directory of a sweep",
        where=path,
        remedy="Give a directory that optmech sweep has written",
    )
