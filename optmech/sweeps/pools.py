"""Where tasks run: processes of our own, or any ``concurrent.futures.Executor``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import get_context

from optmech.base.machine import cores
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.sweeps import worker
from optmech.sweeps.worker import Job, Outcome

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
    """Hide a main module that is no file (a script on standard input, say) from new processes,
    which would try to load it again and end with a traceback."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    plain = getattr(main, "__spec__", None) is None
    if main is None or path is None or not plain or os.path.exists(path):
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


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
