"""Who does the tasks of a large table: this process, several of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import contextmanager
from typing import Any

from optmech.base.machine import cores, dask_executor, own_processes, single_threaded
from optmech.errors import ProblemError
from optmech.exact.arguments import whole


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
