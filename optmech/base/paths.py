"""Names of files, as callers give them."""

from __future__ import annotations

import os
from pathlib import Path

from optmech.errors import ProblemError


def path_of(name: str | Path) -> Path:
    """The path of that name. Raises ProblemError on what names no file, such as None, a number (an
    open file to the system) and a list."""
    if not isinstance(name, str | os.PathLike):
        raise ProblemError(
            f"{type(name).__name__} is no path", where="path", remedy="Give the name of a file"
        )
    return Path(name)
