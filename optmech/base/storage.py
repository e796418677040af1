"""Writing results: all of a file or none of it, and nothing destroyed that is not a file.

Every file that optmech writes goes through ``write_atomically``. A regular file is written beside
its place and renamed, so that an interrupted write never leaves half of one; links are followed,
and a file that is there keeps its mode and owner. What is no regular file (a terminal, a pipe,
``/dev/null``) is written to where it is. ``-`` is standard output.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import re
import secrets
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from optmech.errors import ProblemError

STANDARD_OUTPUT = "-"
"""The path that stands for standard output."""

Write = Callable[[bytes], None]

_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/self/fd|proc/thread-self/fd)/([0-9]{1,4})")
_STANDARD = {STANDARD_OUTPUT: 1, "/dev/stdout": 1, "/dev/stderr": 2}
_REMEDY = "Choose a folder that exists, is writable and has room"
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all where it is a regular file. Raises
    ProblemError where that cannot be done, on a folder, a disk or a socket, and on a file that is
    read-only."""
    with written_in_parts(path) as write:
        write(content)


@contextlib.contextmanager
def written_in_parts(path: str | Path) -> Iterator[Write]:
    """A function that takes the parts of a file, in order, for what is larger than memory.

    Where the block is left by an exception, nothing remains of a regular file; to others (standard
    output, a pipe), parts are written as they come. Raises ProblemError as ``write_atomically``.
    """

    def writer(descriptor: int, write: Callable[[int, bytes], None] = write_all) -> Write:
        def written(content: bytes) -> None:
            with _failing(path):
                write(descriptor, content)

        return written

    descriptor = descriptor_of(path)
    if descriptor is not None:
        yield writer(descriptor, write_to_descriptor)
        return
    refuse_unwritable(path)
    with _failing(path):
        target, found = Path(os.path.realpath(path)), status_of(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with _failing(path):
            device = open(path, "wb", buffering=0)  # noqa: SIM115 (closed below)
        with device:
            yield writer(device.fileno())
        return
    own = os.access(target.parent, os.W_OK)
    folder = target.parent if own else Path(tempfile.gettempdir())
    beside = folder / f".{target.name[:100]}.{secrets.token_hex(6)}"
    with removed_on_a_signal(beside), contextlib.ExitStack() as opened:
        opened.callback(beside.unlink, missing_ok=True)
        with _failing(path):
            handle, nameless = _opened(beside, 0o666 if found is None else 0o600)
        opened.callback(os.close, handle)
        yield writer(handle)
        with _failing(path):
            settle_as(handle, found)
            if own and nameless:
                _name(handle, beside, found)
            if not own or not _replaced(beside, target, found):
                _overwrite(target, handle)


def compressed(path: str | Path, content: bytes) -> bytes:
    """The content for a file of that name: packed by gzip where it ends in .gz, else as it is."""
    return gzip.compress(content, mtime=0) if ending(path, "") == ".gz" else content


def refuse_unwritable(path: str | Path) -> None:
    """Refuse what ``write_atomically`` could not write or should not destroy. Raises ProblemError
    on a folder, a disk, a socket, a read-only file, a link to itself and what lies in no folder
    that can be written."""
    if descriptor_of(path) is not None:
        return
    problem, remedy = "", "Choose another path"
    try:
        found = status_of(path)
        if not str(path):
            problem, remedy = "the path is empty", "Name a file"
        elif found is None and str(path).endswith((os.sep, f"{os.sep}.")):
            problem, remedy = "it is the name of a folder", "Name a file"
        elif found is None:
            folder = Path(os.path.realpath(path)).parent
            if os.path.islink(os.path.realpath(path)):
                problem = "it is a link that leads back to itself"
            elif not os.path.isdir(folder):
                problem = f"the folder {str(folder)!r} does not exist"
            elif not os.access(folder, os.W_OK):
                problem = f"the folder {str(folder)!r} is not writable"
        elif stat.S_ISDIR(found.st_mode):
            problem = "it is a folder"
        elif stat.S_ISBLK(found.st_mode) or stat.S_ISSOCK(found.st_mode):
            problem = f"it is a {'disk' if stat.S_ISBLK(found.st_mode) else 'socket'}"
        elif not found.st_mode & 0o222 or not os.access(path, os.W_OK):
            # whoever may write everything (root) still asked for this file not to be written
            problem = "it is read-only"
            remedy = "Make it writable (chmod u+w), or choose another path"
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        raise ProblemError(f"cannot be written: {problem}", where=str(path), remedy=remedy)


def is_standard_output(path: str | Path) -> bool:
    """Whether a path stands for standard output: ``-``, ``/dev/stdout`` and the like."""
    return descriptor_of(path) == 1


def ending(path: str | Path, default: str) -> str:
    """The ending of a path in lower case, which says what to write; ``default`` for what is no
    regular file and so has no ending of its own (``-``, ``/dev/stdout``, a pipe)."""
    if descriptor_of(path) is not None:
        return default
    suffix = Path(path).suffix.lower()
    with contextlib.suppress(OSError, ValueError):
        found = status_of(path)
        if not suffix and found is not None and not stat.S_ISREG(found.st_mode):
            return default
    return suffix


def descriptor_of(path: str | Path) -> int | None:
    """The open file descriptor that a path is a name of."""
    text = str(path)
    if text in _STANDARD:
        return _STANDARD[text]
    found = _DESCRIPTOR.fullmatch(text)
    return None if found is None else int(found[1])


def status_of(path: str | Path) -> os.stat_result | None:
    """Of what the path leads to, links followed; None where there is nothing."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise


def write_to_descriptor(descriptor: int, content: bytes) -> None:
    """Write where a stream stands; through Python's own standard output where that is meant, which
    may have been led elsewhere."""
    stream = {1: sys.stdout, 2: sys.stderr}.get(descriptor)
    if stream is None:
        write_all(descriptor, content)
        return
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(content.decode("utf-8", "backslashreplace"))
    else:
        stream.flush()
        binary.write(content)
        binary.flush()
    stream.flush()


def write_all(descriptor: int, content: bytes) -> None:
    """All of it, however little is taken at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _copy(source: int, descriptor: int) -> None:
    """All that was written to a new file."""
    os.lseek(source, 0, os.SEEK_SET)
    while content := os.read(source, 2**20):
        write_all(descriptor, content)


def _overwrite(target: Path, source: int) -> None:
    """Write over a file whose folder takes no new files, or that is a mount point; its room is
    claimed before its content is touched."""
    descriptor, size = os.open(target, os.O_WRONLY), os.fstat(source).st_size
    try:
        if size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        _copy(source, descriptor)
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(beside: Path, mode: int) -> tuple[int, bool]:
    """A new file, and whether it has no name, where the system can: without one it is gone when its
    process ends, however it ends."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):
            return os.open(beside.parent, os.O_TMPFILE | os.O_RDWR, mode), True
    return os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), False


def _name(nameless: int, beside: Path, found: os.stat_result | None) -> None:
    """Give a file its name, or its content to one with a name."""
    with contextlib.suppress(OSError):
        # the descriptor is named to have the link followed, which os.link does only then
        os.link(f"/proc/self/fd/{nameless}", beside, src_dir_fd=nameless)
        return
    mode = 0o666 if found is None else 0o600
    named = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        _copy(nameless, named)
        settle_as(named, found)
    finally:
        os.close(named)


def _replaced(beside: Path, target: Path, found: os.stat_result | None) -> bool:
    """Rename; False for a file that is a mount point of its own, as in a container, which cannot
    be replaced."""
    try:
        beside.replace(target)
    except OSError as error:
        if error.errno != errno.EBUSY or found is None:
            raise
        return False
    _settle(target.parent)
    return True


def settle_as(descriptor: int, found: os.stat_result | None) -> None:
    """Make a new file look like the one ``found``, and last through a loss of power."""
    if found is not None and hasattr(os, "fchown"):
        # owner, group and mode of the file that is replaced, as far as this user may set them
        with contextlib.suppress(OSError):
            os.fchown(descriptor, found.st_uid, found.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
    os.fsync(descriptor)


@contextlib.contextmanager
def removed_on_a_signal(beside: Path) -> Iterator[None]:
    """Remove a file before the process ends by a signal that nobody else handles."""

    def end(number: int, _: object) -> None:
        beside.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    taken = []
    if threading.current_thread() is threading.main_thread():
        taken = [n for n in _ENDING_SIGNALS if signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _settle(folder: Path) -> None:
    """Make a renaming last through a loss of power, where the system can be asked to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _failing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_standard_output(path):
            raise
        raise ProblemError(
            f"cannot be written: {error.strerror or error}", where=str(path), remedy=_REMEDY
        ) from error
