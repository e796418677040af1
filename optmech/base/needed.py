"""Packages that only an extra installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from optmech.errors import ProblemError


def needed(module: str, extra: str, *, where: str) -> Any:
    """Import ``module``; raises ProblemError, naming the extra, where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ProblemError(
            f"needs {module.split('.')[0]}, which is not installed",
            where=where,
            remedy=installing(extra),
        ) from error


def installing(extra: str) -> str:
    """What to do where an extra is missing. optmech is on no package index: its source is named."""
    return f"In the source of optmech run: pip install '.[{extra}]'"
