"""What this machine and this installation have: processors, packages, data."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.errors import OptmechError, ProblemError

if TYPE_CHECKING:
    from concurrent.futures import Executor, ProcessPoolExecutor

_SINGLE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that keep numeric libraries to one thread, where they are set before loading."""


@contextmanager
def single_threaded() -> Iterator[None]:
    """Processes that are started here compute in one thread each."""
    former = {name: os.environ.get(name) for name in _SINGLE}
    os.environ.update(dict.fromkeys(_SINGLE, "1"))
    try:
        yield
    finally:
        for name, value in former.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def prepare_worker() -> None:
    """Set up a process of our own: no Ctrl-C, and no life after its parent's."""
    # which only such processes need, and takes a while
    from multiprocessing import connection, parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def follow() -> None:
            connection.wait([sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def own_processes(count: int) -> ProcessPoolExecutor:
    """So many processes of our own on this machine, started afresh and never forked."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=prepare_worker)


@contextmanager
def dask_executor(address: str, home: str = ".") -> Iterator[Executor]:
    """The executor of the cluster whose scheduler is at ``address``, for the distribution in the
    folder ``home``. Raises ProblemError where distributed is not installed or no scheduler
    answers."""
    if find_spec("distributed") is None:
        raise ProblemError("Dask is not installed", where="dask", remedy=installing("dask", home))
    from distributed import Client

    reason = ""
    # a client that could not be made complains of itself when it is taken down: here, unheard
    heard, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
    finally:
        # the error holds the client until here
        gc.collect()
        sys.unraisablehook = heard
    if reason:
        raise ProblemError(
            f"no scheduler answers at {address!r}: {reason}",
            where="dask",
            remedy="Start one with dask scheduler, and give its address",
        )
    with client:
        yield client.get_executor(pure=False, retries=2)


def duration(seconds: float) -> str:
    """Seconds in words: 45 s, 12 min, 3.5 h, 2.0 days."""
    for limit, size, unit in ((120.0, 1.0, "s"), (7200.0, 60.0, "min")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def cores() -> int:
    """Processors that this process may run on, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def needed(module: str, extra: str, *, where: str, home: str = ".") -> Any:
    """Import a ``module`` that only an extra installs, of the distribution in the folder ``home``;
    raises ProblemError, naming the extra, where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ProblemError(
            f"needs {module.split('.')[0]}, which is not installed",
            where=where,
            remedy=installing(extra, home),
        ) from error


def installing(extra: str, home: str = ".") -> str:
    """What to do where an extra is missing. optmech is on no package index: its source is named."""
    return f"In the source of optmech run: pip install '{home}[{extra}]'"


def data_folder(name: str) -> Path:
    """The folder ``problems`` or ``solvers``: inside the wheel, or beside the package in a
    checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "data" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise OptmechError(
        f"the folder {name!r} is missing from this installation",
        where="optmech",
        remedy="Install optmech again",
    )
