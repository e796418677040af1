"""Readers of packed files for other languages, to be taken along: C, JavaScript, and a browser's
extension."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from optmech.base.storage import path_of, write_atomically
from optmech.errors import ProblemError
from optmech.reading.bounded import read_bytes
from optmech_devices.packed.file import MAX_BYTES
from optmech_devices.packed.regions import load_any_packed

CLIENTS = ("c", "js", "extension")
"""The kinds of readers: C99, an npm package, and a folder that browsers load as an extension."""


def copy_client(kind: str, folder: str | Path, mechanism: str | Path | None = None) -> list[Path]:
    """Write one of ``CLIENTS`` into a folder that is new or empty, and a packed file beside it as
    ``mechanism.omm`` where one is named; the files that were written. Raises ProblemError where
    the folder has files or cannot be written, and VerificationError where the packed file cannot be
    used."""
    contents = _contents(kind)
    if mechanism is not None:
        load_any_packed(mechanism)
        contents["mechanism.omm"] = read_bytes(mechanism, MAX_BYTES)
    root = path_of(folder)
    try:
        if root.exists() and any(root.iterdir()):
            raise ProblemError("is not empty", where=root, remedy="Name a new folder")
        for name in contents:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ProblemError(
            f"cannot be used as a folder: {said}",
            where=root,
            remedy="Name a new folder in one that is there and can be written to",
        ) from error
    for name, content in contents.items():
        write_atomically(root / name, content)
    return [root / name for name in contents]


def _contents(kind: str) -> dict[str, bytes]:
    """Names and contents of the files of a client."""
    home = files("optmech_devices")
    own = _texts(home / "client")
    if kind == "extension":
        found = _texts(home / "examples" / kind)
        found |= {f"client/{name}": own[name] for name in own if name.endswith(".js")}
    else:
        found = own if kind == "js" else _texts(home / "client" / kind)
    return found | {"LICENSE": _licence()}


def _licence() -> bytes:
    """The text of the licence, which comes with every installation and not once more in it."""
    try:
        text = distribution("optmech").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise ProblemError(
            "the licence of optmech is not beside it", remedy="Install optmech with pip first"
        )
    return text.encode()


def _texts(folder: Traversable) -> dict[str, bytes]:
    parts = sorted((part for part in folder.iterdir() if part.is_file()), key=lambda p: p.name)
    return {part.name: part.read_bytes() for part in parts}
