"""Where optmech's data lies: inside the wheel, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path

from optmech.errors import OptmechError


def data_folder(name: str) -> Path:
    """The folder ``problems`` or ``solvers``."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "data" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise OptmechError(
        f"the folder {name!r} is missing from this installation",
        where="optmech",
        remedy="Install optmech again",
    )
