"""Writing files so that an interrupted write never leaves half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from optmech.errors import ProblemError


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write beside ``path`` and rename; raises ProblemError where that cannot be done."""
    target = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
        _settle(target.parent)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise ProblemError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            remedy="Choose a folder that exists, is writable and has room",
        ) from error


def _settle(folder: Path) -> None:
    """Make a renaming last through a loss of power, where the system can be asked to."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
