"""One run per directory: a lock that the system takes back when its holder dies, however."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optmech.errors import ProblemError

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside. Raises ProblemError where another process holds it, or the
    folder cannot be used."""
    path = folder / NAME
    # a link is not followed, as what it leads to would lose its content
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        # not inherited by worker processes: a worker that outlives a killed run holds no lock
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        raise _unusable(folder, error) from error
    try:
        if not _taken(handle):
            holder = os.read(handle, 20).decode("ascii", "replace").strip() or "unknown"
            raise ProblemError(
                f"another run (process {holder}) is working in this directory",
                where=str(folder),
                remedy="Wait until it ends, or stop it",
            )
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise _unusable(folder, error) from error
        yield
    finally:
        os.close(handle)


def _unusable(folder: Path, error: OSError) -> ProblemError:
    return ProblemError(
        f"cannot be used: {error.strerror}",
        where=str(folder / NAME),
        remedy="Choose a folder that is writable and has room; what is done is kept",
    )


def _taken(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
