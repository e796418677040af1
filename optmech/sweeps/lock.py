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
    """Hold the folder's lock inside.

    Raises
    ------
    ProblemError
        Where another process holds it, or the folder cannot be used.
    """
    path = folder / NAME
    try:
        # not inherited by worker processes: a worker that outlives a killed run holds no lock
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ProblemError(
            f"cannot be used: {error.strerror}",
            where=str(folder),
            remedy="Choose a folder that is writable and has room",
        ) from error
    try:
        if not _taken(handle):
            holder = os.read(handle, 20).decode("ascii", "replace").strip() or "unknown"
            raise ProblemError(
                f"another run (process {holder}) is working in this directory",
                where=str(folder),
                remedy="Wait until it ends, or stop it",
            )
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
