"""Standard streams as they may be: closed before the start, full, or a pipe that nobody reads."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

from optmech.errors import ProblemError

_FIRST_FREE = 3
"""The descriptors below belong to standard streams, open or closed."""


class _Stream:
    """A text stream, after whose first failure nothing is written any more."""

    def __init__(self, stream: TextIO, lose: Callable[[OSError], None]) -> None:
        self._stream, self._lose = stream, lose
        self._lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write all of it."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        if self._lost:
            return
        try:
            action()
        except OSError as error:
            self._lost = True
            # what is in the buffer would fail again when Python ends
            with contextlib.suppress(OSError, ValueError):
                _lead_nowhere(self._stream.fileno())
            self._lose(error)


def _refuse(error: OSError) -> None:
    """Standard output raises ProblemError, once, where the system takes no more."""
    if isinstance(error, BrokenPipeError):
        raise error
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or error
    raise ProblemError(
        f"cannot be written: {reason}",
        where="standard output",
        remedy="Lead it to a file or a pipe that takes what is printed",
    ) from error


def install() -> None:
    """Put streams in the place of Python's that fail in words.

    What was closed before the start is opened, for nothing to be read or written: a file opened
    later would get its number, and what is printed.
    """
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) < _FIRST_FREE:
            pass
        os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    sys.stdout = cast(TextIO, _Stream(_opened(sys.stdout, 1), _refuse))
    # of standard error nobody can be told: the exit status says how a command ended
    sys.stderr = cast(TextIO, _Stream(_opened(sys.stderr, 2), lambda error: None))


def settle() -> None:
    """Hand on what is left in both, or lose it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ProblemError, OSError):
            stream.flush()


def _opened(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream, or one that takes nothing in the place of a closed one."""
    if stream is None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", write_through=True)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
