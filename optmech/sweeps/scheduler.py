"""Hands out the tasks of a plan, keeps what comes back, and copes with workers that die."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED as FIRST
from concurrent.futures import BrokenExecutor, Future, wait

from optmech.sweeps.directory import RunDirectory
from optmech.sweeps.plan import Plan
from optmech.sweeps.pools import Pool
from optmech.sweeps.progress import Progress
from optmech.sweeps.worker import Job, Outcome

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
            self._progress.tell(f"tasks/{name}: is of no task of this sweep, and ignored")
        for doubt in self._run.doubts:
            self._progress.tell(doubt)
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
