"""The part of CBOR that packed mechanisms use, in the deterministic form of RFC 8949, 4.2.1.

Integers of 64 bits, byte and text strings, arrays, maps with texts or integers as keys, tags, the
simple values and floats. Whatever is not written in the one form that ``encode`` gives is refused.
"""

from __future__ import annotations

import contextlib
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.errors import ProblemError

Plain = Any
_DEPTH = 16
_SIMPLE = {False: 20, True: 21, None: 22}
_VALUES = {code: value for value, code in _SIMPLE.items()}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_ARRAYS = {70: "<u4", 71: "<u8", 86: "<f8"}
"""Tags of RFC 8746 and the numbers they stand for."""


@dataclass(frozen=True)
class Tag:
    """A tagged item."""

    number: int
    value: Plain


def typed(values: NDArray[Any] | list[Any], tag: int) -> Tag:
    """Numbers as a typed array of RFC 8746, under one of the tags 70, 71 and 86."""
    return Tag(tag, np.ascontiguousarray(values, dtype=_ARRAYS[tag]).tobytes())


def untyped(item: Plain, tag: int) -> NDArray[Any]:
    """The inverse; one-dimensional. Raises ProblemError on anything else, and on numbers that are
    not finite."""
    kind = np.dtype(_ARRAYS[tag])
    whole = isinstance(item, Tag) and item.number == tag and isinstance(item.value, bytes)
    if not whole or len(item.value) % kind.itemsize:
        raise ProblemError(f"is not an array under tag {tag}")
    found = np.frombuffer(item.value, dtype=kind)
    if not np.isfinite(found).all():
        raise ProblemError("holds a number that is not finite")
    return found


def encode(value: Plain) -> bytes:
    """The one encoding of a value. Raises ProblemError on what has none."""
    if value is None or value is True or value is False:
        return bytes([0xE0 | _SIMPLE[value]])
    if isinstance(value, int):
        if not -(2**64) <= value < 2**64:
            raise ProblemError(f"an integer of {value.bit_length()} bits does not fit into 64")
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        try:
            text = value.encode()
        except UnicodeEncodeError as error:
            raise ProblemError(f"the text {value[:40]!a} is not Unicode") from error
        return _head(3, len(text)) + text
    if isinstance(value, list | tuple):
        return _head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        pairs = sorted((encode(key), encode(part)) for key, part in value.items())
        return _head(5, len(pairs)) + b"".join(key + part for key, part in pairs)
    if isinstance(value, Tag):
        return _head(6, value.number) + encode(value.value)
    raise ProblemError(f"a {type(value).__name__} has no encoding")


def decode(content: bytes) -> Plain:
    """The inverse: arrays as lists. Raises ProblemError on bytes that ``encode`` never gives."""
    found = _Reader(content).item(0)
    if encode(found) != content:
        raise ProblemError("is not in the one form that is written, or goes on after its end")
    return found


def _head(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes([major << 5 | argument])
    size = next(k for k in range(4) if argument < 1 << (8 << k))
    return bytes([major << 5 | 24 + size]) + argument.to_bytes(1 << size, "big")


def _float(value: float) -> bytes:
    if not math.isfinite(value):
        raise ProblemError(f"{value!r} is not finite")
    for code, form in _FLOATS.items():
        with contextlib.suppress(OverflowError):
            short = struct.pack(form, value)
            if struct.unpack(form, short)[0] == value:
                return bytes([0xE0 | code]) + short
    raise AssertionError("every float64 is one")


class _Reader:
    """A place in some bytes. Whether these are the one form of what they say shows when that is
    written again."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def require(self, count: int) -> None:
        """Raise ProblemError unless so many bytes are left."""
        if count > len(self.content) - self.at:
            raise ProblemError("ends in the middle of an item")

    def take(self, count: int) -> bytes:
        """The next bytes, which must be there."""
        self.require(count)
        self.at += count
        return self.content[self.at - count : self.at]

    def item(self, depth: int) -> Plain:
        if depth > _DEPTH:
            raise ProblemError(f"nests deeper than {_DEPTH} levels")
        first = self.take(1)[0]
        major, short = first >> 5, first & 31
        if major == 7:
            return self._simple(short)
        if short > 27:
            raise ProblemError("has an item of indefinite or reserved length")
        count = short
        if short >= 24:
            count = int.from_bytes(self.take(1 << short - 24), "big")
        if major < 2:
            return count if major == 0 else -1 - count
        if major == 2:
            return self.take(count)
        if major == 3:
            try:
                return self.take(count).decode()
            except UnicodeDecodeError as error:
                raise ProblemError("has text that is not UTF-8") from error
        if major == 6:
            return Tag(count, self.item(depth + 1))
        # every item takes a byte at least
        self.require(count)
        if major == 4:
            return [self.item(depth + 1) for _ in range(count)]
        pairs = [(self.item(depth + 1), self.item(depth + 1)) for _ in range(count)]
        if not all(type(key) in (str, int) for key, _ in pairs):
            raise ProblemError("has a map whose keys are no texts")
        return dict(pairs)

    def _simple(self, code: int) -> Plain:
        if code in _VALUES:
            return _VALUES[code]
        if code not in _FLOATS:
            raise ProblemError(f"has the simple value {code}, which means nothing here")
        form = _FLOATS[code]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]
