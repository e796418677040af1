"""What this machine and this installation have: processors, packages, data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from optmech.errors import OptmechError, ProblemError

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
