"""Writing a file part by part, for what is larger than memory: whole or not at all, as ``storage``
has it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from optmech.base import storage
from optmech.errors import ProblemError

Write = Callable[[bytes], None]


@contextlib.contextmanager
def written_in_parts(path: str | Path) -> Iterator[Write]:
    """A function that takes the parts of a file, in order.

    A regular file is written beside its place and renamed at the end; where the block is left by
    an exception, nothing of it remains. To what is no regular file (standard output, a pipe), parts
    are written as they come. Raises ProblemError as ``storage.write_atomically``.
    """
    descriptor = storage.descriptor_of(path)
    if descriptor is not None:
        yield lambda content: storage.write_to_descriptor(descriptor, content)
        return
    storage.refuse_unwritable(path)
    with _failing(path):
        target, found = Path(os.path.realpath(path)), storage.status_of(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        with _failing(path), open(path, "wb", buffering=0) as device:
            yield lambda content: storage.write_all(device.fileno(), content)
        return
    own = os.access(target.parent, os.W_OK)
    folder = target.parent if own else Path(tempfile.gettempdir())
    beside = folder / f".{target.name[:100]}.{secrets.token_hex(6)}"
    with storage.removed_on_a_signal(beside):
        try:
            mode = 0o666 if found is None else 0o600
            with _failing(path):
                handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb", buffering=2**20) as stream:

                def write(content: bytes) -> None:
                    with _failing(path):
                        stream.write(content)

                yield write
                with _failing(path):
                    stream.flush()
                    storage.settle_as(stream.fileno(), found)
            with _failing(path):
                _put(beside, target, own)
        finally:
            beside.unlink(missing_ok=True)


def _put(beside: Path, target: Path, own: bool) -> None:
    """Rename, or copy where the folder takes no new files or the file is a mount point."""
    if own:
        try:
            beside.replace(target)
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
    with open(beside, "rb") as source, open(target, "r+b") as stream:
        shutil.copyfileobj(source, stream, 2**20)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def _failing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProblemError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="Choose a folder that exists, is writable and has room",
        ) from error
