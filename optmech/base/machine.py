"""What this machine and this installation have: processors, packages, data."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from optmech.errors import OptmechError, ProblemError


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
