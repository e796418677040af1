"""From a folder of parts to a folder of parts, by several processes or on a cluster.

Persons have rows in many parts, and a person's rows are decided in their order. So rows are dealt
out twice, as sorting on disk does it: the parts draw reports and deal them out by persons; then all
rows of a person are in one place, where budgets are kept and counted, and are dealt out by chance
(or back to their parts); then the parts to come are shuffled and written. No task has more in
memory than a part, or the persons of one. What waits on disk has no place and no name: persons, and
places that repeat, are digests under a key that is forgotten.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.labels import few_columns
from optmech.base.machine import cores, dask_executor, duration, own_processes, single_threaded
from optmech.base.storage import refuse_unwritable, removed_on_a_signal, writing
from optmech.errors import ProblemError, moved
from optmech.exact.arguments import whole
from optmech.exact.sampler import seeded_bytes
from optmech.reading.tables import Part, opened_sink, opened_table
from optmech_devices.protection.files import Columns, columns_of, numbered
from optmech_devices.protection.flow import Flow, Rows
from optmech_devices.protection.persons import is_key
from optmech_devices.protection.reporter import Counts
from optmech_devices.protection.spending import Spending
from optmech_devices.protection.spool import (
    Dealing,
    Digests,
    Order,
    Segment,
    joined,
    length,
    read,
    several,
    taken,
)


@contextmanager
def workers(processes: int | None, address: str | None, tasks: int) -> Iterator[Executor | None]:
    """What tasks are handed to; None for this process, which does them itself where one is asked
    for. Raises ProblemError where no Dask scheduler answers."""
    if processes is not None:
        whole(processes, "processes", least=1)
    if address is not None:
        with dask_executor(address, "packages/devices") as executor:
            yield executor
        return
    count = min(processes or cores(), tasks)
    if count == 1:
        yield None
        return
    with single_threaded():
        pool = own_processes(count)
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def results(
    executor: Executor | None, task: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """What a task returns for each of ``calls``, with its number, in the order in which they are
    done. Raises ProblemError where one does, and where a process dies."""
    if executor is None:
        yield from ((k, task(*call)) for k, call in enumerate(calls))
        return
    futures = {}
    try:
        futures = {executor.submit(task, *call): k for k, call in enumerate(calls)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenExecutor as error:
        raise ProblemError(
            "a process ended, for lack of memory perhaps",
            where="processes",
            remedy="Give fewer processes, or smaller parts",
        ) from error
    finally:
        for future in futures:
            future.cancel()


KINDS = (".parquet", ".csv", ".csv.gz", ".csv.bz2", ".csv.xz")
"""Endings of parts."""
_AT_ONCE = 100_000
"""Rows that are drawn at a time."""
_WHOLE = 1_000_000
"""Rows of a part to come, at most, where they are shuffled."""
_WEIGHTS = (6, 2, 3)
"""Of the time of the three stages, about."""
Told = Callable[[str], None]


@dataclass
class Job:
    """What every task has to know."""

    flow: Flow
    columns: Columns
    parts: list[str]
    folder: str
    kind: str
    """Of the parts to come."""
    shuffled: bool
    seed: int | None
    secret: bytes
    """Under which persons and places are digests."""
    buckets: int

    def order(self, *which: int) -> Order:
        """Chance for one task."""
        return Order(None if self.seed is None else _seed(self.seed, *which))


@dataclass
class Found:
    """What a task says: where rows wait by their buckets, and what it counted."""

    waiting: list[list[tuple[str, int]]]
    spending: Spending
    counts: list[Counts] = field(default_factory=list)
    """Of rows, for every place of a row."""
    types: dict[str, str] = field(default_factory=dict)


def parts_of(folder: str | Path) -> tuple[list[Path], str]:
    """The parts in a folder, by their names, and their ending. Raises ProblemError where there are
    none, or of several kinds."""
    root = Path(folder)
    names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    known = sorted(n for n in names if not any(piece[0] in "._" for piece in n.parts))
    kinds = {next((k for k in KINDS if n.name.lower().endswith(k)), "") for n in known}
    if len(kinds) != 1 or "" in kinds:
        found = few_columns(sorted(kind or "others" for kind in kinds))
        raise ProblemError(
            f"has files of several kinds: {found}" if known else "has no parts of a table",
            where=folder,
            remedy="Give a folder with parts of one kind: .parquet, .csv or .csv.gz",
        )
    (kind,) = kinds
    return [root / name for name in known], kind


def claim_folder(path: str | Path, source: str | Path) -> None:
    """Raise ProblemError where a folder of reports cannot be written."""
    target = Path(path)
    if str(path) == "-":
        raise ProblemError(
            "the parts of a folder become those of another",
            where="--output",
            remedy="Name a folder that is not there yet",
        )
    if os.path.exists(target) and (not target.is_dir() or any(target.iterdir())):
        raise ProblemError(
            f"{path}: is there already", where="--output", remedy="Name another folder"
        )
    if Path(source).resolve() in target.resolve().parents:
        raise ProblemError(
            f"{path}: lies among the parts", where="--output", remedy="Name another folder"
        )
    if not os.path.exists(target):
        refuse_unwritable(target)


def protect_folder(
    flow: Flow,
    source: str | Path,
    target: str | Path,
    *,
    shuffled: bool,
    seed: int | None,
    processes: int | None,
    address: str | None,
    told: Told,
    noted: Told,
) -> tuple[list[str], list[str]]:
    """Write a report for every row of the parts in the folder ``source`` to parts in the folder
    ``target``, as ``protect_file`` does it for a file.

    Tasks run in ``processes``, or on the Dask cluster whose scheduler is at ``address``, and whose
    workers find both folders under the same names. Parts are taken in the order of their names, and
    decisions about a person are those of one table with all rows in that order. Rows are shuffled
    over all parts, unless they stay in their own, of the same number. Nothing is in ``target``
    before all is done.

    Raises
    ------
    ProblemError
        As ``protect_file``; and on folders that are none, or are not empty.
    """
    parts, ending = parts_of(source)
    claim_folder(target, source)
    kind = ".csv.gz" if ending in KINDS[2:] else ending
    with opened_table(parts[0], 1) as table:
        columns = columns_of(flow, table, parts[0], kind, noted)
    if flow.spending.rows_are_people and (tying := list(filter(is_key, flow.asked.keep))):
        raise ProblemError(
            f"{few_columns(tying)} may say whose a row is, and rows are people",
            where="keep",
            remedy="Leave it out, or name it with --per",
        )
    with writing(target), _aside(Path(target)) as work:
        names = [str(part.absolute()) for part in parts]
        job = Job(
            flow, columns, names, str(work), kind, shuffled, seed, secrets.token_bytes(32),
            len(parts),
        )  # fmt: skip
        path = work / "job"
        path.write_bytes(pickle.dumps(job))
        with workers(processes, address, len(parts)) as pool:
            run = _Run(pool, job, str(path), told)
            run.draw()
            run.settle()
            flow.end()
            made = run.write()
        for each in made:
            Path(each).replace(Path(target) / Path(each).name)
    return columns.written, columns.left


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """A folder in ``target`` for what waits, that nobody else may read; of a target that was made
    nothing remains where the block is left by an exception."""
    made = not target.exists()
    target.mkdir(exist_ok=True)
    work = target / f".{secrets.token_hex(6)}"
    with removed_on_a_signal(target if made else work):
        try:
            work.mkdir(mode=0o700)
            yield work
        except BaseException:
            shutil.rmtree(target if made else work, ignore_errors=True)
            raise
        shutil.rmtree(work, ignore_errors=True)


class _Run:
    """The stages of one job, and what is told of them."""

    def __init__(self, pool: Executor | None, job: Job, path: str, told: Told) -> None:
        self._pool, self._job, self._path, self._told = pool, job, path, told
        self._began = time.monotonic()
        self._rows = 0
        self._waiting: list[list[Segment]] = []
        self._types: dict[str, str] = {}

    def draw(self) -> None:
        """Reports for all parts."""
        job, flow = self._job, self._job.flow
        found = self._all(0, draw_part, [(k,) for k in range(len(job.parts))], "parts are drawn")
        self._waiting = [[] for _ in range(job.buckets)]
        for part, told in enumerate(found):
            self._wait(part, told)
            for place, counts in zip(flow.places, told.counts, strict=True):
                place.reporter.add(counts)
            self._types |= told.types

    def settle(self) -> None:
        """What persons spend; and where their rows go."""
        job = self._job
        ahead = len(job.parts)
        if job.shuffled:
            ahead = max(ahead, -(-self._rows // _WHOLE))
        calls = [(bucket, self._waiting[bucket], ahead) for bucket in range(job.buckets)]
        found = self._all(1, settle_bucket, calls, "groups of persons are counted")
        self._waiting = [[] for _ in range(ahead)]
        for bucket, told in enumerate(found):
            self._wait(bucket, told)

    def _wait(self, source: int, told: Any) -> None:
        """What a task left for the next stage, and what was spent."""
        for to, segments in enumerate(told.waiting):
            self._waiting[to] += [(source, *segment) for segment in segments]
        self._job.flow.spending.add(told.spending)

    def write(self) -> list[str]:
        """The parts to come."""
        calls = [(k, segments, self._types) for k, segments in enumerate(self._waiting)]
        return self._all(2, write_part, calls, "parts are written")

    def _all(
        self, stage: int, task: Callable[..., Any], calls: Sequence[tuple[Any, ...]], what: str
    ) -> list[Any]:
        """What a task returns for each of ``calls``. Raises ProblemError where one does, and where
        a process dies."""
        found: list[Any] = [None] * len(calls)
        given = [(self._path, *call) for call in calls]
        for done, (k, result) in enumerate(results(self._pool, task, given), start=1):
            found[k] = result
            if stage == 0:
                self._rows += result.counts[0].rows
            self._tell(stage, done, len(calls), what)
        return found

    def _tell(self, stage: int, done: int, of: int, what: str) -> None:
        passed = time.monotonic() - self._began
        share = (sum(_WEIGHTS[:stage]) + _WEIGHTS[stage] * done / of) / sum(_WEIGHTS)
        rate = f", {self._rows / passed:,.0f} rows a second" if stage == 0 and passed else ""
        rest = f", about {duration(passed * (1 / share - 1))} left" if share < 1 else ""
        self._told(f"{done:,} of {of:,} {what}{rate}{rest}")


# -- tasks: what they return says where rows wait --------------------------------------------------


def draw_part(path: str, part: int) -> Found:
    """Reports for the rows of a part, dealt out by persons."""
    job = _job(path)
    flow, source = job.flow, job.parts[part]
    if job.seed is not None:
        bytes_ = seeded_bytes(_seed(job.seed, part))
        for place in flow.places:
            place.reporter.draw_from(bytes_)
    digest = Digests(job.secret)
    with (
        moved(lambda own: f"{source}: {own}" if own.startswith("row ") else own),
        opened_table(source, _AT_ONCE) as table,
        Dealing(job.folder, f"drawn-{part}", job.buckets) as dealing,
    ):
        for whole in table.parts(job.columns.numbers, job.columns.others):
            for begin in range(0, length(whole), _AT_ONCE):
                some = {name: cells[begin : begin + _AT_ONCE] for name, cells in whole.items()}
                before = flow.reporter.rows
                with moved(partial(numbered, table)):
                    flow.judge(some.__getitem__)
                    rows = flow.draw(some.__getitem__)
                    kept = flow.all_kept(some.__getitem__, rows.at)
                columns, bucket = _waiting_rows(rows, digest, part, job.buckets)
                columns["at"] = rows.at + before
                dealing.put(columns | {f"kept:{name}": own for name, own in kept.items()}, bucket)
    counts = [place.reporter.counts() for place in flow.places]
    return Found(dealing.waiting, flow.spending.tally(), counts, table.types)


def settle_bucket(path: str, bucket: int, segments: Sequence[Segment], ahead: int) -> Found:
    """What some persons spend, part after part; their rows are dealt out by chance, or back."""
    job = _job(path)
    spending, order = job.flow.spending, job.order(bucket, 1)
    with Dealing(job.folder, f"settled-{bucket}", ahead) as dealing:
        for part, rows in read(segments):
            reports = several(rows, "report")
            who = rows.pop("who", None)
            days, keys = rows.pop("day", None), several(rows, "key")
            left, _ = spending.take(
                who,
                None if days is None else days.tolist(),
                [own.tolist() for own in keys] or None,
                reports,
            )
            used = np.flatnonzero(left)
            rows |= {f"report:{k}": own for k, own in enumerate(reports)}
            to = order.words(len(used)) % ahead if job.shuffled else np.full(len(used), part)
            dealing.put(taken(rows, used), to)
    return Found(dealing.waiting, spending.tally())


def write_part(path: str, number: int, segments: Sequence[Segment], types: dict[str, str]) -> str:
    """A part to come, in an order by chance, or in its own."""
    job = _job(path)
    found = [rows for _, rows in read(segments)]
    rows = {name: joined([each[name] for each in found]) for name in found[0]} if found else {}
    at = np.zeros(0, dtype=np.int64)
    if rows:
        own = np.argsort(rows["at"], kind="stable")
        at = job.order(number, 2).permutation(len(own)) if job.shuffled else own
    target = str(Path(job.folder) / f"part-{number:05}{job.kind}")
    with opened_sink(target, job.columns.written, None, types) as put:
        for begin in range(0, len(at) or 1, _AT_ONCE):
            some = taken(rows, at[begin : begin + _AT_ONCE])
            reports = several(some, "report") or [np.zeros(0, np.int64) for _ in job.flow.places]
            kept = {name: some.get(f"kept:{name}", []) for name in job.flow.asked.keep}
            put(kept | job.flow.columns(np.arange(len(reports[0])), reports))
    return target


def _waiting_rows(rows: Rows, digest: Digests, part: int, buckets: int) -> tuple[Part, Ints]:
    """The columns of rows that wait, and the bucket of each: that of its person."""
    columns: Part = {f"report:{k}": own for k, own in enumerate(rows.reports)}
    bucket = np.full(len(rows.at), part % buckets)
    if rows.who is not None:
        columns["who"], bucket = digest.persons(rows.who, buckets)
    if rows.days is not None:
        columns["day"] = np.array(rows.days, dtype=np.int64)
    for k, own in enumerate(rows.keys or ()):
        columns[f"key:{k}"] = digest.of(own)
    return columns, bucket


def _job(path: str) -> Job:
    """What ``protect_folder`` wrote, into a folder that only its user reads."""
    job: Job = pickle.loads(Path(path).read_bytes())
    return job


def _seed(seed: int, *which: int) -> int:
    """Another seed for every task, the same wherever it runs."""
    content = ",".join(map(str, (seed, *which))).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "big")
