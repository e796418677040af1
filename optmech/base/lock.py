"""A lock between threads and processes that the system takes back when its holder dies, however."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

from optmech.errors import ProblemError

_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
_AGAIN = 0.01
"""Seconds between two tries, where a system cannot be waited for."""
_OPEN: set[int] = set()
"""The handles of locks that are held or waited for by this process."""


class Mutex:
    """A lock between the threads of one process, which may be taken again inside. A process that
    is forked while another thread holds it has a free one."""

    def __init__(self) -> None:
        self._own = threading.RLock()
        _MUTEXES.add(self)

    def __enter__(self) -> None:
        self._own.acquire()

    def __exit__(self, *_: object) -> None:
        self._own.release()

    def renew(self) -> None:
        """Be free, in a process where nobody else is."""
        self._own = threading.RLock()


_MUTEXES: WeakSet[Mutex] = WeakSet()


def _let_go() -> None:
    """A process that is forked holds no lock of its parent, which it would keep from everybody."""
    for handle in _OPEN:
        os.close(handle)
    _OPEN.clear()
    for mutex in _MUTEXES:
        mutex.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[Callable[[], bool]]:
    """Hold the lock of that file inside; what is given says whether the file still has its name, so
    that nobody else can hold it. Raises ProblemError where it cannot be used, and, unless the
    caller would ``wait``, where another process holds it."""
    handle = _acquired(path, wait)
    try:
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise _unusable(path, error) from error
        yield lambda: handle in _OPEN and _has_its_name(handle, path)
    finally:
        if handle in _OPEN:
            _release(handle)


def _acquired(path: Path, wait: bool) -> int:
    """A handle of the file that has that name, locked. Who waited for a file that was removed
    meanwhile goes on to the one that has its name now, as everybody else does."""
    while True:
        handle = _opened(path)
        try:
            while not _taken(handle, wait, path):
                if not wait:
                    holder = os.read(handle, 20).decode("ascii", "replace").strip() or "unknown"
                    raise ProblemError(
                        f"another run (process {holder}) is working in this directory",
                        where=path.parent,
                        remedy="Wait until it ends, or stop it",
                    )
                time.sleep(_AGAIN)
            if _has_its_name(handle, path):
                return handle
        except BaseException:
            if handle in _OPEN:
                _release(handle)
            raise
        _release(handle)


def _opened(path: Path) -> int:
    # a link is not followed, as what it leads to would lose its content
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        # not inherited by worker processes: a worker that outlives a killed run holds no lock
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        raise _unusable(path, error) from error
    _OPEN.add(handle)
    return handle


def _has_its_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _unusable(path: Path, error: OSError) -> ProblemError:
    if error.errno in _NO_LOCKS:
        return ProblemError(
            f"this file system has no locks ({error.strerror}), which keep two processes apart",
            where=path,
            remedy="Choose a folder on a local disk, or have locks turned on (Lustre: -o flock; "
            "NFS: lockd)",
        )
    return ProblemError(
        f"cannot be used: {error.strerror}",
        where=path,
        remedy="Choose a folder that is writable and has room; what is done is kept",
    )


def _release(handle: int) -> None:
    """Whatever processes were forked meanwhile."""
    if sys.platform != "win32":
        import fcntl

        # where there are no locks there is none to let go
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    _OPEN.discard(handle)
    os.close(handle)


def _taken(handle: int, wait: bool, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            raise _unusable(path, error) from error
        return False
    return True
