"""What a page needs to draw as a device would: the packed file of a design, and the client."""

from __future__ import annotations

import base64
import re
from importlib.resources import files
from typing import Any

from optmech.designs.design import Design
from optmech.errors import OptmechError
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
