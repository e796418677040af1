"""Bytes that some work takes at most."""

from __future__ import annotations

import ctypes
import gc
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

PROCESS = Path("/proc/self")


def taken(work: Callable[[], object]) -> int:
    """By the largest size of this process where the system counts it (Linux): Python's own account
    makes work with millions of objects ten times as long, and does not see what C takes."""
    gc.collect()
    before = _counted()
    if before is None:
        return _traced(work)
    work()
    return _size("VmHWM") - before


def _counted() -> int | None:
    """The size of this process, whose largest is counted from now on; None where that is not."""
    try:
        # what is free already would not be seen where it is taken again
        ctypes.CDLL(None).malloc_trim(0)
        (PROCESS / "clear_refs").write_text("5")
        size = _size("VmRSS")
        return size if _size("VmHWM") < size + 2**20 else None
    except (OSError, AttributeError):
        return None


def _size(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text())
    if found is None:
        raise OSError(name)
    return int(found[1]) * 1024


def _traced(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
