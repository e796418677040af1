"""Long lists of a JSON document as bytes: a tenth of the text, read without parsing numbers.

A list of floats, of whole numbers below 2^32, of hexadecimal texts, or of equally long rows of
floats is written as ``{"list": kind, "shape": [...], "zlib": base64}``: little-endian numbers one
after the other, compressed. ``contracted`` and ``expanded`` are inverse to each other, bit by bit
and type by type.
"""

import base64
import binascii
import math
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.errors import ProblemError

Plain = Any
_MARK = "list"
_SHORTEST = 32
"""Shorter lists stay text."""
_LEVEL = 9
_DEEPEST = 32
_MOST_BYTES = 2**31
"""Of all lists of a document together, expanded."""
_KINDS = {"float64": "<f8", "uint8": "u1", "uint16": "<u2", "uint32": "<u4"}
_WHOLE = ("uint8", "uint16", "uint32")
_HEX = re.compile(r"[1-9a-f][0-9a-f]{0,1023}", re.ASCII)
_WHERE = "list"


def contracted(plain: Plain) -> Plain:
    """The document with its long lists as bytes. Raises ProblemError where it has entries that
    look like such lists already."""
    if isinstance(plain, dict):
        if _MARK in plain:
            raise ProblemError(f"has an entry {_MARK!r}", where=_WHERE)
        return {key: contracted(value) for key, value in plain.items()}
    if not isinstance(plain, list):
        return plain
    found = _contracted(plain)
    return [contracted(value) for value in plain] if found is None else found


def expanded(plain: Plain) -> Plain:
    """The document with lists again. Raises ProblemError on anything that ``contracted`` does not
    write, before more is expanded than is allowed."""
    return _Expansion(_MOST_BYTES).of(plain, 0)


def _contracted(values: list[Plain]) -> Plain:
    kinds = {type(value) for value in values}
    if kinds == {list} and (width := len(values[0])):
        flat = [part for row in values for part in row]
        whole = all(len(row) == width for row in values) and {type(part) for part in flat}
        if len(flat) >= _SHORTEST and whole == {float}:
            return _written("float64", [len(values), width], np.array(flat, "<f8").tobytes())
        return None
    if len(values) < _SHORTEST:
        return None
    if kinds == {float}:
        return _written("float64", [len(values)], np.array(values, "<f8").tobytes())
    if kinds == {int} and min(values) >= 0:
        for kind in _WHOLE:
            if max(values) <= np.iinfo(_KINDS[kind]).max:
                content = np.array(values, _KINDS[kind]).tobytes()
                return _written(kind, [len(values)], content)
    if kinds == {str} and all(map(_HEX.fullmatch, values)):
        width = (max(map(len, values)) + 1) // 2
        content = b"".join(int(value, 16).to_bytes(width, "little") for value in values)
        return _written("hex", [len(values), width], content)
    return None


def _written(kind: str, shape: list[int], content: bytes) -> Plain:
    packed = base64.b64encode(zlib.compress(content, _LEVEL)).decode("ascii")
    return {_MARK: kind, "shape": shape, "zlib": packed}


@dataclass
class _Expansion:
    """How many bytes may still come."""

    left: int

    def of(self, plain: Plain, depth: int) -> Plain:
        if depth > _DEEPEST:
            raise ProblemError("nests too deep", where=_WHERE)
        if isinstance(plain, list):
            return [self.of(value, depth + 1) for value in plain]
        if not isinstance(plain, dict):
            return plain
        if _MARK not in plain:
            return {key: self.of(value, depth + 1) for key, value in plain.items()}
        return self._list(plain)

    def _list(self, plain: dict[str, Plain]) -> Plain:
        if set(plain) != {_MARK, "shape", "zlib"}:
            raise ProblemError("has missing or unknown entries", where=_WHERE)
        kind, shape, text = plain[_MARK], plain["shape"], plain["zlib"]
        good = isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
        ranks = {"float64": (1, 2), "hex": (2,)}.get(kind, (1,)) if isinstance(kind, str) else ()
        if not good or len(shape) not in ranks or not (kind == "hex" or kind in _KINDS):
            raise ProblemError("is of no known kind or shape", where=_WHERE)
        size = math.prod(shape) * (1 if kind == "hex" else np.dtype(_KINDS[kind]).itemsize)
        if size > self.left:
            raise ProblemError("is larger than allowed", where=_WHERE)
        self.left -= size
        content = _unpacked(text, size)
        if kind == "hex":
            width = shape[1]
            parts = (content[k : k + width] for k in range(0, size, width))
            found = [f"{int.from_bytes(part, 'little'):x}" for part in parts]
            if "0" in found:
                raise ProblemError("has a zero where a positive number belongs", where=_WHERE)
            return found
        values = np.frombuffer(content, _KINDS[kind])
        if not np.isfinite(values).all():
            raise ProblemError("has a number that is not finite", where=_WHERE)
        return values.reshape(shape).tolist()


def _unpacked(text: Plain, size: int) -> bytes:
    """Exactly ``size`` bytes, and never more than that in memory."""
    if not isinstance(text, str):
        raise ProblemError("has no text to unpack", where=_WHERE)
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ProblemError(f"cannot be unpacked: {error}", where=_WHERE) from error
    if len(content) != size or not reader.eof or reader.unused_data:
        raise ProblemError(f"does not hold {size:,} bytes", where=_WHERE)
    return content
