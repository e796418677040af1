"""Long lists of a document as compressed bytes, and back, within what its size allows."""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from typing import Any

import numpy as np

from optmech.base import memory
from optmech.errors import ProblemError

Plain = Any
_MARK = "list"
_SHORTEST = 32
"""Shorter lists stay text."""
_LEVEL = 9
_DEEPEST = 32
_ENTRY, _FREE, _FACTOR = 64, 2**27, 128
"""Bytes that an entry takes in memory at most, beside four times its own; that the lists of a
document may take, however short it is; and that they may take for each of its bytes. Those of
designs take 15 to 50 times the file, and what zlib can hide in it 64,000 times."""
_KINDS = {"float64": "<f8", "uint8": "u1", "uint16": "<u2", "uint32": "<u4"}
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


def require_room(plain: Plain, size: int) -> None:
    """Raise ProblemError where the lists of a contracted document of ``size`` bytes would take
    more than such a document may, are of no known form, or are nested too deep; TooLargeError
    where the machine has not got that."""
    needed = _room(plain, 0)
    if needed > _FREE + _FACTOR * size:
        said = f"its lists would take {memory.readable(needed)}, of {memory.readable(size)}"
        raise ProblemError(said, where=_WHERE)
    memory.require(needed, what="the document", where=_WHERE, remedy="Use a machine with more")


def unpacked(plain: Plain) -> Plain:
    """The document with lists again, all of which ``require_room`` let pass. Raises ProblemError
    on anything that ``contracted`` does not write."""
    if isinstance(plain, list):
        return [unpacked(value) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if _MARK not in plain:
        return {key: unpacked(value) for key, value in plain.items()}
    return _list(plain)


def _contracted(values: list[Plain]) -> Plain:
    kinds = {type(value) for value in values}
    if kinds == {list} and (width := len(values[0])):
        whole = all(len(row) == width for row in values)
        numbers = whole and all(type(part) is float for row in values for part in row)
        long = len(values) * width >= _SHORTEST
        return _written("float64", np.array(values, "<f8")) if long and numbers else None
    if len(values) < _SHORTEST:
        return None
    if kinds == {float}:
        return _written("float64", np.array(values, "<f8"))
    if kinds == {int} and min(values) >= 0:
        kind = np.min_scalar_type(max(values)).name
        return _written(kind, np.array(values, _KINDS[kind])) if kind in _KINDS else None
    if kinds == {str} and all(map(_HEX.fullmatch, values)):
        width = (max(map(len, values)) + 1) // 2
        content = b"".join(int(value, 16).to_bytes(width, "little") for value in values)
        return _written("hex", np.frombuffer(content, "u1").reshape(-1, width))
    return None


def _written(kind: str, values: np.ndarray) -> Plain:
    packed = base64.b64encode(zlib.compress(values.tobytes(), _LEVEL)).decode("ascii")
    return {_MARK: kind, "shape": list(values.shape), "zlib": packed}


def _room(plain: Plain, depth: int) -> int:
    """Bytes that the lists of a document take in memory, at most."""
    if depth > _DEEPEST:
        raise ProblemError("nests too deep", where=_WHERE)
    if isinstance(plain, list):
        return sum(_room(value, depth + 1) for value in plain)
    if not isinstance(plain, dict):
        return 0
    if _MARK not in plain:
        return sum(_room(value, depth + 1) for value in plain.values())
    kind, shape, size = _form(plain)
    return _ENTRY * (shape[0] if kind == "hex" else math.prod(shape)) + 4 * size


def _form(plain: dict[str, Plain]) -> tuple[str, list[int], int]:
    """The kind of a list, its shape, and how many bytes it stands for."""
    if set(plain) != {_MARK, "shape", "zlib"}:
        raise ProblemError("has missing or unknown entries", where=_WHERE)
    kind, shape = plain[_MARK], plain["shape"]
    good = isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape)
    ranks = {"float64": (1, 2), "hex": (2,)}.get(kind, (1,)) if isinstance(kind, str) else ()
    if not good or len(shape) not in ranks or not (kind == "hex" or kind in _KINDS):
        raise ProblemError("is of no known kind or shape", where=_WHERE)
    each = 1 if kind == "hex" else np.dtype(_KINDS[kind]).itemsize
    return kind, shape, math.prod(shape) * each


def _list(plain: dict[str, Plain]) -> Plain:
    kind, shape, size = _form(plain)
    content = _content(plain["zlib"], size)
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


def _content(text: Plain, size: int) -> bytes:
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
