"""Reading files that nobody vouches for: regular files only, and nothing without a bound.

Every file that optmech is given is read through here. A pipe, a device or a folder is refused at
once, and a file is never read beyond a number of bytes, counted after decompression. Whatever a
reader of somebody else's makes of the content ends as a ProblemError, inside ``translated``.
"""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from optmech.base.storage import path_of
from optmech.errors import OptmechError, ProblemError

MAX_BYTES = 64 * 2**20
"""Of a document or a table, after decompression."""
_SHOWN = 300

_PACKED: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}


def require_readable(path: str | Path, limit: int = MAX_BYTES) -> None:
    """Refuse a path that is not a regular file of at most ``limit`` bytes."""
    path_of(path)
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    _require_regular(path, found, limit)


def read_bytes(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a regular file of at most ``limit`` bytes, as it is. Raises ProblemError on
    anything else, and on what cannot be read."""
    with opened(path, limit) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise _too_large(path, limit)
    return content


def read_start(path: str | Path, count: int) -> bytes:
    """The first ``count`` bytes of a regular file of any size; see ``read_bytes``."""
    with opened(path, sys.maxsize) as stream:
        return stream.read(count)


def read_text(path: str | Path, limit: int = MAX_BYTES) -> str:
    """The content of a UTF-8 file, with or without a byte order mark; see ``read_bytes``."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"is not UTF-8 text: byte {error.start} does not fit",
            where=path,
            remedy="Save it as UTF-8",
        ) from error


@contextmanager
def expanded(path: str | Path, limit: int = MAX_BYTES) -> Iterator[BinaryIO]:
    """The content of a regular file as a stream, decompressed where its name ends in .gz, .bz2 or
    .xz; reading beyond ``limit`` bytes raises ProblemError.

    What goes wrong inside, in the decompression or in whoever reads the stream, is a ProblemError.
    """
    unpack = _PACKED.get(path_of(path).suffix.lower())
    with opened(path, limit) as stream, translated(path, "is damaged"):
        content = stream if unpack is None else unpack(stream)
        yield cast(BinaryIO, io.BufferedReader(_Counted(content, path, limit), 2**16))


@contextmanager
def translated(where: str | Path, what: str, remedy: str = "Check the file") -> Iterator[None]:
    """Turn whatever is raised inside, by readers that are not optmech's, into a ProblemError that
    says ``what`` is wrong with the file."""
    try:
        yield
    except OptmechError:
        raise
    except Exception as error:
        raise ProblemError(f"{what}: {_words(error)}", where=str(where), remedy=remedy) from error


class _Counted(io.RawIOBase):
    """A stream that refuses to give more than ``limit`` bytes."""

    def __init__(self, stream: IO[bytes], path: str | Path, limit: int) -> None:
        self._stream, self._path, self._limit = stream, path, limit
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        found = self._stream.read(min(len(view), self._left + 1))
        if len(found) > self._left:
            raise _too_large(self._path, self._limit)
        self._left -= len(found)
        view[: len(found)] = found
        return len(found)


class _Ready(io.FileIO):
    """A file that is never waited for: one that has nothing to read yet cannot be read."""

    def readinto(self, buffer: Any) -> int:
        return cast(int, self._found(super().readinto(buffer)))

    def readall(self) -> bytes:
        return cast(bytes, self._found(super().readall()))

    @staticmethod
    def _found(read: object) -> object:
        if read is None:
            raise BlockingIOError(errno.EAGAIN, "it has nothing to read yet")
        return read


@contextmanager
def opened(path: str | Path, limit: int) -> Iterator[BinaryIO]:
    """A regular file opened without ever waiting for it."""
    # what was a file when it was looked at may be a pipe when it is opened
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    require_readable(path, limit)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    with _Ready(descriptor) as raw:
        _require_regular(path, os.fstat(descriptor), limit)
        try:
            yield io.BufferedReader(raw, 2**16)
        except OSError as error:
            raise _unreadable(path, error) from error


def _require_regular(path: str | Path, found: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ProblemError(
            "cannot be read: this is a folder",
            where=path,
            remedy="Name a file in it (of a run of optmech sweep: one of designs/*.json)",
        )
    if not stat.S_ISREG(found.st_mode):
        raise ProblemError(
            "cannot be read: this is not a file",
            where=path,
            remedy="Give the path of a regular file",
        )
    if found.st_size > limit:
        raise ProblemError(
            f"has {found.st_size:,} bytes, more than the {limit:,} allowed",
            where=path,
            remedy="Keep only what is needed, use a coarser domain, or build the problem in Python",
        )


def _too_large(path: str | Path, limit: int) -> ProblemError:
    return ProblemError(
        f"holds more than the {limit:,} bytes allowed",
        where=path,
        remedy="Keep only the rows and columns that are needed",
    )


def _unreadable(path: str | Path, error: OSError | ValueError) -> ProblemError:
    text = str(path)
    shown = text if len(text) <= _SHOWN else f"{text[:60]}... ({len(text):,} characters)"
    reason = getattr(error, "strerror", None) or _words(error)
    return ProblemError(f"cannot be read: {reason}", where=shown, remedy="Check the path")


def _words(error: Exception) -> str:
    """What an error of another library says, on one line."""
    if isinstance(error, MemoryError):
        return "it asks for more memory than there is"
    if isinstance(error, RecursionError):
        return "it nests too deep"
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    # KeyError and their like say only what they looked for
    alone = type(error).__module__ == "builtins" and isinstance(error, LookupError)
    return f"{type(error).__name__} {text}".rstrip() if alone or not text else text
