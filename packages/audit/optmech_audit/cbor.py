"""The bytes of a packed mechanism: one item of CBOR (docs/packed.md)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from io import BytesIO
from typing import ClassVar

from optmech_audit.document import text
from optmech_audit.numbers import Fault, need

MOST_ITEMS = 2**20
CONSTANTS, FLOATS = (False, True, None), {25: ">e", 26: ">f", 27: ">d"}  # from 20 on


class Typed(list[float]):
    """Numbers as the bytes of an array, under a tag of RFC 8746."""

    codes: ClassVar = {70: "I", 71: "Q", 86: "d"}

    def __init__(self, values: Iterable[float], tag: int) -> None:
        super().__init__(values)
        self.tag = tag


class Content(BytesIO):
    """Bytes, and how many items were read from them."""

    items = 0


def array(value: object, tag: int) -> list[float]:
    if not isinstance(value, Typed) or value.tag != tag:
        raise Fault(f"an array under tag {tag} is missing")
    need(all(map(math.isfinite, value)), "a number that is not finite")
    return value


def parsed(content: bytes, count: int = 1) -> list[object]:
    """So many items of CBOR; whether they are deterministic shows when they are written again."""
    stream = Content(content)
    found = [item(stream, 0) for _ in range(count)]
    need(not stream.read(1), "bytes after the end")
    return found


def require_bytes(stream: Content, count: int) -> None:
    need(count <= stream.getbuffer().nbytes - stream.tell(), "ends in the middle of an item")


def take(stream: Content, count: int) -> bytes:
    require_bytes(stream, count)
    return stream.read(count)


def item(stream: Content, depth: int) -> object:
    need(depth <= 16, "nests too deep")
    stream.items += 1
    need(stream.items <= MOST_ITEMS, "has too many items")
    first = take(stream, 1)[0]
    major, count = first >> 5, first & 31
    if major == 7:
        if 20 <= count <= 22:
            return CONSTANTS[count - 20]
        need(count in FLOATS, "an unknown simple value")
        code = FLOATS[count]
        value = float(struct.unpack(code, take(stream, struct.calcsize(code)))[0])
        need(math.isfinite(value), "a number that is not finite")
        return value
    if count >= 24:
        need(count <= 27, "an indefinite length")
        count = int.from_bytes(take(stream, 1 << count - 24), "big")
    if major < 2:
        return count if major == 0 else -1 - count
    if major == 6:
        code, content = Typed.codes.get(count, ""), item(stream, depth + 1)
        if not code or not isinstance(content, bytes):
            raise Fault("an unknown tag")
        size, rest = divmod(len(content), struct.calcsize(f"<{code}"))
        need(rest == 0, "an array that ends in the middle of a number")
        return Typed(struct.unpack(f"<{size}{code}", content), count)
    if major < 4:
        return take(stream, count) if major == 2 else take(stream, count).decode()
    require_bytes(stream, count)
    if major == 4:
        return [item(stream, depth + 1) for _ in range(count)]
    pairs = [
        (text(item(stream, depth + 1), "a key"), item(stream, depth + 1)) for _ in range(count)
    ]
    need(len(dict(pairs)) == count, "a key twice")
    return dict(pairs)


def cbor(value: object) -> bytes:
    """The deterministic form of RFC 8949, section 4.2.1."""
    if isinstance(value, bool | None):
        return bytes([7 << 5 | 20 + CONSTANTS.index(value)])
    if isinstance(value, int):
        return head_of(0, value) if value >= 0 else head_of(1, -1 - value)
    if isinstance(value, float):
        for count, code in FLOATS.items():
            try:
                short = struct.pack(code, value)
            except OverflowError:
                continue
            if struct.unpack(code, short)[0] == value:
                return bytes([7 << 5 | count]) + short
    if isinstance(value, bytes):
        return head_of(2, len(value)) + value
    if isinstance(value, str):
        return head_of(3, len(value.encode())) + value.encode()
    if isinstance(value, Typed):
        packed = struct.pack(f"<{len(value)}{Typed.codes[value.tag]}", *value)
        return head_of(6, value.tag) + cbor(packed)
    if isinstance(value, list | tuple):
        return head_of(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, dict):
        pairs = sorted((cbor(key), cbor(part)) for key, part in value.items())
        return head_of(5, len(pairs)) + b"".join(key + part for key, part in pairs)
    raise Fault(f"{value!a} has no form in a file")


def head_of(major: int, argument: int) -> bytes:
    if argument < 24:
        return bytes([major << 5 | argument])
    size = next(k for k in range(4) if argument < 1 << (8 << k))
    return bytes([major << 5 | 24 + size]) + argument.to_bytes(1 << size, "big")


def depth(label: object) -> int:
    return 1 + max(map(depth, label), default=0) if isinstance(label, list) else 0
