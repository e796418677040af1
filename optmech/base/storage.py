"""Names of files; writing results: all of a file or none, and nothing destroyed that is no file.

Every file that optmech writes goes through ``write_atomically`` or ``written_in_parts``. A regular
file is written beside its place and renamed, so that an interrupted write never leaves half of one;
links are followed, and a file that is there keeps its mode and owner. What is no regular file (a
terminal, a pipe, ``/dev/null``) is written to where it is. ``-`` is standard output.
"""

from __future__ import annotations

import csv
import errno
import io
import math
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from optmech.errors import ProblemError

Write = Callable[[bytes], None]
STANDARD_OUTPUT = "-"
"""The path that stands for standard output."""

_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/self/fd|proc/thread-self/fd)/([0-9]{1,4})")
_STANDARD = {STANDARD_OUTPUT: 1, "/dev/stdout": 1, "/dev/stderr": 2}
_REMEDY = "Choose a folder that exists, is writable and has room"
_IN_MEMORY, _PART = 2**26, 2**20
"""Bytes that are kept for a file whose folder takes no others, and that are copied at a time."""
_ENDING_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def csv_bytes(rows: Iterable[Iterable[object]], end: str = "\r\n") -> bytes:
    """Rows as CSV in UTF-8; halves of surrogate pairs, of texts that were read so, stay."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``, whole or not at all where it is a regular file. Raises
    ProblemError where that cannot be done, on a folder, a disk or a socket, and on a file that is
    read-only."""
    with written_in_parts(path) as write:
        write(content)


def _heard(path: str, flags: int) -> int:
    """Opens for writing; a pipe where somebody reads it, instead of waiting for ever."""
    descriptor = os.open(path, flags | (unblocked := getattr(os, "O_NONBLOCK", 0)))
    if unblocked:
        os.set_blocking(descriptor, True)
    return descriptor


@contextmanager
def written_in_parts(path: str | Path) -> Iterator[Write]:
    """A function that takes the parts of a file, in order.

    A regular file is written beside its place and renamed at the end; where the block is left by
    an exception, nothing of it remains. To what is no regular file (standard output, a pipe), parts
    are written as they come. Raises ProblemError as ``write_atomically``.
    """
    descriptor = descriptor_of(path)
    if descriptor is not None:
        yield _telling(path, partial(write_to_descriptor, descriptor))
        return
    refuse_unwritable(path)
    with writing(path):
        target, found = Path(os.path.realpath(path)), status_of(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with writing(path), open(path, "wb", buffering=0, opener=_heard) as device:
            yield _telling(path, partial(write_all, device.fileno()))
    elif os.access(target.parent, os.W_OK):
        beside = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}"
        with removed_on_a_signal(beside):
            try:
                with _beside(path, beside, found) as write:
                    yield write
                with writing(path):
                    _rename(beside, target, found)
            finally:
                beside.unlink(missing_ok=True)
    else:
        with SpooledTemporaryFile(_IN_MEMORY) as kept:
            yield _telling(path, kept.write)
            with writing(path):
                _overwrite(target, kept)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """What the system says of a file or folder that cannot be written, as a ProblemError."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) and is_standard_output(path):
            raise
        raise ProblemError(
            f"cannot be written: {error.strerror or error}", where=path, remedy=_REMEDY
        ) from error


def _telling(path: str | Path, write: Callable[[bytes], object]) -> Write:
    def told(content: bytes) -> None:
        with writing(path):
            write(content)

    return told


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
        raise ProblemError(f"cannot be written: {problem}", where=path, remedy=remedy)


def is_standard_output(path: str | Path) -> bool:
    """Whether a path stands for standard output: ``-``, ``/dev/stdout`` and the like."""
    return descriptor_of(path) == 1


def ending(path: str | Path, default: str) -> str:
    """The ending of a path in lower case, which says what to write; ``default`` for what is no
    regular file and so has no ending of its own (``-``, ``/dev/stdout``, a pipe)."""
    if descriptor_of(path) is not None:
        return default
    suffix = path_of(path).suffix.lower()
    with suppress(OSError, ValueError):
        found = status_of(path)
        if not suffix and found is not None and not stat.S_ISREG(found.st_mode):
            return default
    return suffix


def descriptor_of(path: str | Path) -> int | None:
    """The open file descriptor that a path is a name of."""
    path_of(path)
    text = str(path)
    if text in _STANDARD:
        return _STANDARD[text]
    found = _DESCRIPTOR.fullmatch(text)
    return None if found is None else int(found[1])


def status_of(path: str | Path) -> os.stat_result | None:
    """The status of what the path leads to, links followed; None where there is nothing."""
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


def _overwrite(target: Path, source: IO[bytes]) -> None:
    """Write over a file that cannot be replaced; its room is claimed before its content is
    touched."""
    size = source.seek(0, os.SEEK_END)
    source.seek(0)
    with open(target, "r+b", buffering=0) as stream:
        if size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(stream.fileno(), 0, size)
        while part := source.read(_PART):
            write_all(stream.fileno(), part)
        stream.truncate()
        os.fsync(stream.fileno())


def _rename(beside: Path, target: Path, found: os.stat_result | None) -> None:
    try:
        beside.replace(target)
    except OSError as error:
        # a file that is a mount point of its own, as in a container, cannot be replaced
        if error.errno != errno.EBUSY or found is None:
            raise
        with open(beside, "rb") as source:
            _overwrite(target, source)
    # the renaming is to last through a loss of power, where the system can be asked for that
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _beside(path: str | Path, beside: Path, found: os.stat_result | None) -> Iterator[Write]:
    """Write a new file that looks like the one ``found``. Where the system can, it has no name
    until it is whole: without one it is gone when its process ends, however it ends."""
    mode = 0o666 if found is None else 0o600
    handle, named = -1, False
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):
            handle = os.open(beside.parent, os.O_TMPFILE | os.O_RDWR, mode)
    if handle < 0:
        with writing(path):
            handle, named = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), True
    try:
        yield _telling(path, partial(write_all, handle))
        with writing(path):
            settle_as(handle, found)
            if not named:
                _name(handle, beside, mode, found)
    finally:
        os.close(handle)


def _name(handle: int, beside: Path, mode: int, found: os.stat_result | None) -> None:
    """Give a file without a name one; where the system cannot, a copy of it."""
    with suppress(OSError):
        # the descriptor is named to have the link followed, which os.link does only then
        os.link(f"/proc/self/fd/{handle}", beside, src_dir_fd=handle)
        return
    copy = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        while part := os.read(handle, _PART):
            write_all(copy, part)
        settle_as(copy, found)
    finally:
        os.close(copy)


def settle_as(descriptor: int, found: os.stat_result | None) -> None:
    """Make a new file look like the one ``found``, and last through a loss of power."""
    if found is not None and hasattr(os, "fchown"):
        # owner, group and mode of the file that is replaced, as far as this user may set them
        with suppress(OSError):
            os.fchown(descriptor, found.st_uid, found.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
    os.fsync(descriptor)


@contextmanager
def removed_on_a_signal(beside: Path) -> Iterator[None]:
    """Remove a file or a folder before the process ends by a signal that nobody else handles."""

    def end(number: int, _: object) -> None:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
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


def plain_values(value: Any) -> Any:
    """A value with nan and infinities as None, for JSON."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    return value


def path_of(name: str | Path) -> Path:
    """The path of that name. Raises ProblemError on what names no file, such as None, a number (an
    open file to the system) and a list."""
    if not isinstance(name, str | os.PathLike):
        raise ProblemError(
            f"{type(name).__name__} is no path", where="path", remedy="Give the name of a file"
        )
    return Path(name)
