"""How much memory there is, and refusing what cannot fit before it is tried."""

from __future__ import annotations

import os
from pathlib import Path

from optmech.errors import TooLargeError


def available_bytes() -> int:
    """Memory that a new allocation may use: free memory, or less where a control group says so."""
    bounds = [_system_bytes()]
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            bounds.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return max(0, min(bounds))


def _system_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 4 * 2**30


def require(
    needed: float, *, what: str, where: str, remedy: str, available: int | None = None
) -> None:
    """Raise TooLargeError when ``needed`` bytes exceed 90 % of what is available: on this machine,
    or ``available`` elsewhere."""
    if available is None:
        available = available_bytes()
    if needed > 0.9 * available:
        raise TooLargeError(
            f"{what} needs about {readable(needed)} of memory and "
            f"{readable(available)} are available",
            where=where,
            remedy=remedy,
        )


def is_exhausted(error: Exception) -> bool:
    """Whether an error says that memory ran out, here or (PyTorch's own) on a device."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def readable(count: float) -> str:
    """A number of bytes in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.4g} TiB"
