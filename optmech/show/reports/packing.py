"""Arrays and text inside an HTML page: compact, exact, and unable to end the script they are in."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats

Plain = Any

_TYPES = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u16": "<u2"}
_ESCAPES = {letter: f"\\u{ord(letter):04x}" for letter in "<>&"}


class Store:
    """Arrays by content, so that designs of one problem share theirs.

    ``entries`` maps a name to little-endian numbers in base64; ``double`` says whether matrices
    are kept exactly, ``light`` that there are too many designs for their mechanisms.
    """

    def __init__(self, double: bool = True) -> None:
        self.entries: dict[str, Plain] = {}
        self.double = double
        self.light = False

    def put(self, values: ArrayLike, kind: str) -> str:
        """Keep an array as ``kind`` ("f64", "f32", "u32" or "u16"); returns its name."""
        array = np.ascontiguousarray(values, dtype=_TYPES[kind])
        raw = array.tobytes()
        name = f"{kind}-{hashlib.sha256(raw).hexdigest()[:16]}-{array.size}"
        if name not in self.entries:
            self.entries[name] = {"kind": kind, "base64": base64.b64encode(raw).decode("ascii")}
        return name

    def matrix(self, values: Floats) -> Plain:
        """Keep probabilities, as they are or as logarithms (relative error below 1e-5)."""
        if self.double:
            return {"array": self.put(values, "f64"), "form": "p"}
        with np.errstate(divide="ignore"):
            return {"array": self.put(np.log(values), "f32"), "form": "log"}


def number(value: float) -> Plain:
    """A float for JSON, which has no infinities: these become text, nan becomes null."""
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def script_json(value: Plain) -> str:
    """JSON that can stand inside a ``<script>`` element whatever text it holds."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for letter, escape in _ESCAPES.items():
        text = text.replace(letter, escape)
    return text
