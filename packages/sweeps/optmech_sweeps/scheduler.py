"""Hands out the tasks of a plan to processes or an executor, keeps what comes back, and copes with
workers that die."""

import math
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    wait,
)
from contextlib import closing, contextmanager
from pathlib import Path

from optmech.base.machine import cores, duration, own_processes, single_threaded
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech_sweeps import worker
from optmech_sweeps.directory import RunDirectory
from optmech_sweeps.plan import Plan
from optmech_sweeps.worker import Job, Outcome

Report = Callable[[str], None]
_SAY_EVERY = 2.0


class Progress:
    """Counts tasks and says so at most every ``_SAY_EVERY`` seconds."""

    def __init__(self, report: Report, tasks: int) -> None:
        self.report, self.tasks = report, tasks
        self.counts: Counter[str] = Counter()
        """Results by their status, those of earlier runs included."""
        self.here = self.running = 0
        self._started = time.monotonic()
        self._said = -math.inf

    def say(self, *, now: bool = False) -> None:
        """Report, unless that was done just before; ``here`` are the results of this run."""
        moment = time.monotonic()
        if not now and moment - self._said < _SAY_EVERY:
            return
        self._said = moment
        failed, infeasible = self.counts["failed"], self.counts["infeasible"]
        left = self.tasks - self.counts.total()
        text = f"{self.tasks - left - failed} of {self.tasks} tasks done"
        if infeasible:
            text += f" ({infeasible} infeasible)"
        text += f", {self.running} running, {failed} failed"
        if left and self.here:
            text += f", about {duration((moment - self._started) * left / self.here)} left"
        self.report(text)


GIVEN_LIMIT = 64
"""Tasks handed to a foreign executor at once, unless it or the caller says how many it takes."""


class Pool:
    """An executor, and up to how many tasks it gets at once: somebody else's is left as it is."""

    def __init__(self, executor: Executor, limit: int) -> None:
        self.executor, self.limit = executor, limit

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a task."""
        return self.executor.submit(worker.run, job)

    def renew(self) -> bool:
        """False: only the owner of the executor could begin anew after a breakdown."""
        return False

    def close(self) -> None:
        """Nothing: whoever waits for a task cancels it."""


class Processes(Pool):
    """Processes on this machine, started afresh (never forked) and with one thread each."""

    def __init__(self, workers: int) -> None:
        super().__init__(own_processes(workers), workers)

    def submit(self, job: Job) -> Future[Outcome]:
        with _main_that_can_be_loaded():
            return super().submit(job)

    def renew(self) -> bool:
        """New processes for those that died."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = own_processes(self.limit)
        return True

    def close(self) -> None:
        """End the processes; what they were doing is lost."""
        own = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=False, cancel_futures=True)
        for process in own:
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
        yield Pool(executor, workers or int(getattr(executor, "_max_workers", 0) or GIVEN_LIMIT))
        return
    own = Processes(max(1, min(workers or cores(), tasks)))
    with single_threaded(), closing(own):
        yield own


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
        self._done: set[int | None] = {None}
        """Tasks with a design; and None, which stands before the first of a chain."""
        self._alone = False
        self._table_due = time.monotonic() + _TABLE_EVERY

    def run(self, table: Callable[[], None]) -> None:
        """Until every task is settled; ``table`` is called from time to time. An interrupt first
        keeps what has come back, and nothing more is begun."""
        self._begin()
        try:
            while self._ready or self._suspects or self._flying:
                self._submit()
                self._progress.running = len(self._flying)
                self._progress.say()
                wait(self._flying, timeout=_POLL, return_when=FIRST_COMPLETED)
                self._collect()
                if broken := [future for future in self._flying if future.done()]:
                    self._restart(broken)
                if time.monotonic() > self._table_due:
                    began = time.monotonic()
                    table()
                    # a large table takes seconds to write: spend a twentieth of the time on it
                    took = time.monotonic() - began
                    self._table_due = time.monotonic() + max(_TABLE_EVERY, 20 * took)
        except KeyboardInterrupt:
            self._collect()
            raise
        finally:
            for future in self._flying:
                future.cancel()
        self._progress.running = 0

    def _begin(self) -> None:
        """Find what is done; ready are the undone tasks whose predecessor is."""
        plan = self._plan
        for task in range(plan.count):
            record = self._run.read(task)
            if record is not None:
                self._done.add(task)
                self._progress.counts[record["status"]] += 1
        for name in self._run.strays():
            self._progress.report(f"tasks/{name}: is of no task of this sweep, and ignored")
        for doubt in self._run.doubts:
            self._progress.report(doubt)
        for task in range(plan.count):
            if task not in self._done and plan.before(task) in self._done:
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

    def _collect(self) -> None:
        """Keep the results that have come back."""
        for future in list(filter(_has_result, self._flying)):
            del self._flying[future]
            self._keep(future.result())

    def _keep(self, outcome: Outcome) -> None:
        record = self._run.keep(outcome)
        if outcome.design is not None:
            self._done.add(outcome.task)
        self._progress.counts[record["status"]] += 1
        self._progress.here += 1
        self._alone = False
        after = self._plan.after(outcome.task)
        if after is not None and after not in self._done:
            self._ready.appendleft(after)

    def _restart(self, broken: list[Future[Outcome]]) -> None:
        """Put the tasks back whose workers died, or give them up."""
        errors = [future.exception() for future in broken if not future.cancelled()]
        fatal = any(isinstance(error, BrokenExecutor) for error in errors)
        renewed = self._pool.renew() if fatal else True
        reason = next((f"{type(e).__name__}: {e}" for e in errors), "cancelled")
        reason = " ".join(reason.split())
        for future in list(self._flying) if fatal else broken:
            task = self._flying.pop(future)
            if _has_result(future):
                self._keep(future.result())
            elif renewed and self._attempts[task] < ATTEMPTS:
                self._suspects.append(task)
            else:
                end = f"its worker died {self._attempts[task]} times, for lack of memory?"
                end = end if renewed else "the executor does not work any more"
                self._keep(Outcome(task, {}, None, f"{end} ({reason})"))
        self._alone = False


def _has_result(future: Future[Outcome]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
