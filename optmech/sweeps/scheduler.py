"""Hands out the tasks of a plan to processes or an executor, keeps what comes back, and copes with
workers that die."""

import gc
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED as FIRST,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from optmech.base.machine import cores, installing
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.sweeps import worker
from optmech.sweeps.directory import RunDirectory
from optmech.sweeps.plan import Plan
from optmech.sweeps.worker import Job, Outcome


@contextmanager
def dask_executor(address: str | None) -> Iterator[Executor | None]:
    """The executor of the cluster whose scheduler is at ``address``; None for no address. Raises
    ProblemError where distributed is not installed or no scheduler answers."""
    if address is None:
        yield None
        return
    if find_spec("distributed") is None:
        raise ProblemError("Dask is not installed", where="dask", remedy=installing("dask"))
    client, reason = _connected(address)
    if client is None:
        raise ProblemError(
            f"no scheduler answers at {address!r}: {reason}",
            where="dask",
            remedy="Start one with dask scheduler, and give its address",
        )
    with client:
        yield client.get_executor(pure=False, retries=2)


def _connected(address: str) -> tuple[Any, str]:
    """A client, or None and the reason. A client that could not be made complains of itself when
    it is taken down: that happens here, unheard."""
    from distributed import Client

    heard, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        return Client(address, timeout="10s", set_as_default=False), ""
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
    finally:
        # the error holds the client until here
        gc.collect()
        sys.unraisablehook = heard
    return None, reason


Report = Callable[[str], None]


@dataclass(eq=False)
class Progress:
    """Counts tasks and says so at most every ``every`` seconds."""

    report: Report
    tasks: int
    done: int = 0
    """Tasks with a result, those of earlier runs included."""
    infeasible: int = 0
    failed: int = 0
    running: int = 0
    every: float = 2.0
    _here: int = 0
    _started: float = field(default_factory=time.monotonic)
    _said: float = -1e9

    def found(self, status: str) -> None:
        """A result of an earlier run."""
        self.done += 1
        self.infeasible += status == "infeasible"

    def finished(self, status: str) -> None:
        """A result of this run."""
        self._here += 1
        if status == "failed":
            self.failed += 1
        else:
            self.found(status)

    def say(self, *, now: bool = False) -> None:
        """Report, unless that was done just before."""
        moment = time.monotonic()
        if now or moment - self._said >= self.every:
            self._said = moment
            self.report(self.line(moment - self._started))

    def line(self, seconds: float) -> str:
        """The line after so many seconds of this run."""
        done = f"{self.done} of {self.tasks} tasks done"
        if self.infeasible:
            done += f" ({self.infeasible} infeasible)"
        left = self.tasks - self.done - self.failed
        text = f"{done}, {self.running} running, {self.failed} failed"
        if left and self._here:
            text += f", about {duration(seconds * left / self._here)} left"
        return text


def duration(seconds: float) -> str:
    """Seconds in words: 45 s, 12 min, 3.5 h, 2.0 days."""
    for limit, size, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


GIVEN_LIMIT = 64
"""Tasks handed to a foreign executor at once, unless it or the caller says how many it takes."""


class Processes:
    """Processes on this machine, started afresh (never forked) and with one thread each."""

    def __init__(self, workers: int) -> None:
        self.limit = workers
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self.limit, mp_context=get_context("spawn"), initializer=worker.prepare
        )

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a task."""
        with _main_that_can_be_loaded():
            return self._pool.submit(worker.run, job)

    def renew(self) -> bool:
        """New processes for those that died."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._made()
        return True

    def close(self) -> None:
        """End the processes; what they were doing is lost."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


@contextmanager
def _main_that_can_be_loaded() -> Iterator[None]:
    """Hide a main module from new processes, which would run it again: one that is no file (a
    script on standard input, say), and a script that does not ask whether it is the main one, and
    would begin the sweep once more."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    plain = getattr(main, "__spec__", None) is None
    if main is None or path is None or not plain or _asks_for_main(path):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


def _asks_for_main(path: str) -> bool:
    """Whether a script can be read and tells being the main one from being imported."""
    try:
        return b"__main__" in Path(path).read_bytes()
    except OSError:
        return False


class Given:
    """Somebody else's executor, which is left as it is."""

    def __init__(self, executor: Executor, limit: int | None) -> None:
        self._executor = executor
        self._futures: set[Future[Outcome]] = set()
        self.limit = limit or int(getattr(executor, "_max_workers", 0) or GIVEN_LIMIT)

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a task."""
        future = self._executor.submit(worker.run, job)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def renew(self) -> bool:
        """False: only the owner of the executor could begin anew after a breakdown."""
        return False

    def close(self) -> None:
        """Cancel what has not begun."""
        for future in list(self._futures):
            future.cancel()


Pool = Processes | Given
"""Runs up to ``limit`` tasks at once."""


@contextmanager
def opened(executor: Executor | None, workers: int | None, tasks: int) -> Iterator[Pool]:
    """The pool to use, stopped at the end. Raises ProblemError on an executor that is none, or a
    number of workers below one."""
    if workers is not None:
        whole(workers, "workers", least=1)
    if executor is not None:
        if not hasattr(executor, "submit"):
            raise ProblemError(
                f"{type(executor).__name__} is not an Executor",
                where="executor",
                remedy="Give a concurrent.futures.Executor, or client.get_executor() of Dask",
            )
        with closing(Given(executor, workers)) as given:
            yield given
        return
    former = {name: os.environ.get(name) for name in worker.SINGLE}
    # read when the new processes load their numeric libraries
    os.environ.update(dict.fromkeys(worker.SINGLE, "1"))
    try:
        with closing(Processes(max(1, min(workers or cores(), tasks)))) as own:
            yield own
    finally:
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


ATTEMPTS = 3
"""How often a task is begun before it counts as failed because its workers die."""
_POLL = 0.5
_TABLE_EVERY = 10.0


class Scheduler:
    """One run over the tasks that are not done yet.

    A task is ready when the one before it in its chain is settled, and starts from that one's
    design; where that one failed, from the nearest done task before it in the chain.
    """

    def __init__(self, plan: Plan, run: RunDirectory, pool: Pool, progress: Progress) -> None:
        self._plan, self._run, self._pool, self._progress = plan, run, pool, progress
        self._ready: deque[int] = deque()
        self._suspects: deque[int] = deque()
        self._attempts: Counter[int] = Counter()
        self._flying: dict[Future[Outcome], int] = {}
        self._done: set[int] = set()
        self._alone = False
        self._table_due = time.monotonic() + _TABLE_EVERY

    def run(self, table: Callable[[], None]) -> None:
        """Until every task is settled; ``table`` is called from time to time. An interrupt first
        keeps what has come back."""
        self._begin()
        try:
            self._loop(table)
        except KeyboardInterrupt:
            for future in self._flying:
                if future.done() and not future.cancelled() and future.exception() is None:
                    self._keep(future.result())
            raise
        self._progress.running = 0

    def _loop(self, table: Callable[[], None]) -> None:
        while self._ready or self._suspects or self._flying:
            self._submit()
            self._progress.running = len(self._flying)
            self._progress.say()
            finished, _ = wait(self._flying, timeout=_POLL, return_when=FIRST)
            broken = [future for future in finished if not self._settled(future)]
            if broken:
                self._restart(broken)
            if time.monotonic() > self._table_due:
                began = time.monotonic()
                table()
                # a large table takes seconds to write: spend a twentieth of the time on it
                took = time.monotonic() - began
                self._table_due = time.monotonic() + max(_TABLE_EVERY, 20 * took)

    def _begin(self) -> None:
        """Find what is done; ready are the undone tasks whose predecessor is."""
        plan = self._plan
        for task in range(plan.count):
            record = self._run.read(task)
            if record is not None:
                self._done.add(task)
                self._progress.found(record["status"])
        for name in self._run.strays():
            self._progress.report(f"tasks/{name}: is of no task of this sweep, and ignored")
        for doubt in self._run.doubts:
            self._progress.report(doubt)
        for task in range(plan.count):
            before = plan.before(task)
            if task not in self._done and (before is None or before in self._done):
                self._ready.append(task)

    def _submit(self) -> None:
        """Hand out what may run. A task whose worker died before runs with no other beside it:
        if that happens again, it was its fault."""
        while self._ready and not self._alone and len(self._flying) < self._pool.limit:
            self._start(self._ready.popleft())
        if self._suspects and not self._ready and not self._flying:
            self._alone = True
            self._start(self._suspects.popleft())

    def _start(self, task: int) -> None:
        self._attempts[task] += 1
        job = Job(task, self._plan.source(task), self._plan.profile, self._neighbour(task))
        try:
            future = self._pool.submit(job)
        except (BrokenExecutor, RuntimeError) as error:
            future = Future()
            future.set_exception(error)
        self._flying[future] = task

    def _neighbour(self, task: int) -> bytes | None:
        before = self._plan.before(task)
        while before is not None and before not in self._done:
            before = self._plan.before(before)
        return None if before is None else self._run.design(before)

    def _settled(self, future: Future[Outcome]) -> bool:
        """Keep the result of a task; False where there is none because the machinery failed."""
        if future.cancelled() or future.exception() is not None:
            return False
        del self._flying[future]
        self._alone = False
        self._keep(future.result())
        return True

    def _keep(self, outcome: Outcome) -> None:
        record = self._run.keep(outcome)
        if outcome.design is not None:
            self._done.add(outcome.task)
        self._progress.finished(record["status"])
        after = self._plan.after(outcome.task)
        if after is not None and after not in self._done:
            self._ready.appendleft(after)

    def _restart(self, broken: list[Future[Outcome]]) -> None:
        """Put the tasks back whose workers died, or give them up."""
        errors = [future.exception() for future in broken if not future.cancelled()]
        fatal = any(isinstance(error, BrokenExecutor) for error in errors)
        if fatal:
            broken = list(self._flying)
        renewed = self._pool.renew() if fatal else True
        reason = next((f"{type(e).__name__}: {e}" for e in errors), "cancelled")
        reason = " ".join(reason.split())
        for future in broken:
            task = self._flying.pop(future)
            if not future.cancelled() and future.done() and future.exception() is None:
                self._keep(future.result())
            elif renewed and self._attempts[task] < ATTEMPTS:
                self._suspects.append(task)
            else:
                end = f"its worker died {self._attempts[task]} times, for lack of memory?"
                end = end if renewed else "the executor does not work any more"
                self._keep(Outcome(task, {}, None, f"{end} ({reason})"))
        self._alone = False
