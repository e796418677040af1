"""What is done beside a verified mechanism or after it, which must never cost it: bounds, rows for
nobody, notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from optmech.errors import OptmechError

T = TypeVar("T")


def attempted(work: Callable[[], T], what: str) -> tuple[T | None, tuple[str, ...]]:
    """What ``work`` returns; or, where it fails in whatever way, None and a note in which ``what``
    failed. Ctrl-C is none of its failures."""
    try:
        return work(), ()
    except Exception as error:
        return None, (f"{what} failed: {told(error)}",)


def told(error: Exception) -> str:
    """An exception in a line."""
    if isinstance(error, OptmechError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
