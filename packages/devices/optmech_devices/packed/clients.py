"""Readers of packed files for other languages, to be taken along: C, JavaScript, and a browser's
extension; and what a page needs to draw as a device would: the packed file of a design, and the
client.
"""

from __future__ import annotations

import base64
import re
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from optmech.base.storage import path_of, write_atomically
from optmech.designs.design import Design
from optmech.errors import OptmechError, ProblemError
from optmech.reading.bounded import read_bytes
from optmech_devices.packed.documents import load_any_packed
from optmech_devices.packed.file import MAX_BYTES
from optmech_devices.packed.make import MAX_LOSS, packed_content

_LEFT_OUT = re.compile(
    r'^export \{[^}]*\} from "\./(?:charges|geolocation|ledger|sticky)\.js";$', re.MULTILINE
)
_AGAIN = re.compile(r'^export \{ (\w+) \} from "\./(\w+)\.js";$', re.MULTILINE)
_NEEDED = re.compile(r'^(?:im|ex)port \{[^}]*\} from "\./(\w+)\.js";$', re.MULTILINE)
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:class|function|const) (\w+))", re.MULTILINE)
_BITS = (24, 48)
_MOST = 2**17
"""Probabilities of a mechanism that is embedded once more."""


def sampler(design: Design) -> dict[str, Any] | None:
    """The packed file of a design, and at what loss; None where it is large, or no whole numbers
    were found that keep its promises at a similar loss."""
    if design.exact is None or design.exact.shape[0] * design.exact.shape[1] > _MOST:
        return None
    for bits in _BITS:
        try:
            content, found = packed_content(design, bits, MAX_LOSS, outside="nearest")
        except OptmechError:
            continue
        return {
            "file": base64.b64encode(content).decode("ascii"),
            "bits": bits,
            "increase": found.header.loss.increase,
        }
    return None


def client_script() -> str:
    """``const client = …;``, with what the client's ``index.js`` exports but for sticky reports."""
    folder = files("optmech_devices") / "client"
    parts: dict[str, str] = {}

    def take(name: str) -> None:
        """The module, after all that it imports."""
        source = _LEFT_OUT.sub("", (folder / f"{name}.js").read_text(encoding="utf-8"))
        for needed in dict.fromkeys(_NEEDED.findall(source)):
            if needed not in parts:
                take(needed)
        source = _IMPORT.sub(r"const \1 = module_\2;", source)
        named = {own: own for _, own in _EXPORT.findall(source)}
        named |= {own: f"module_{other}.{own}" for own, other in _AGAIN.findall(source)}
        source = _EXPORT.sub(r"\1", _AGAIN.sub("", source))
        assert not re.search(r"^(import|export)\b", source, re.MULTILINE), name
        exported = ", ".join(f"{own}: {value}" for own, value in named.items())
        parts[name] = f"const module_{name} = (() => {{\n{source}\nreturn {{ {exported} }};\n}})();"

    take("index")
    return "\n".join([*parts.values(), "const client = module_index;"])


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
