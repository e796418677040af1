"""A file: its entries are what they must be, or refused."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import BinaryIO, ClassVar

from optmech_audit.numbers import Fault, need, paired, real, transposed

FORMAT = "optmech-design/2"
BINARY = "optmech-design/3"  # the same with long lists as bytes
LISTED = {BINARY: FORMAT}
FAMILY = "optmech-targets/2"  # mechanisms with an auxiliary input
NOISE = "optmech-noise/1"  # noise on all whole numbers
DESIGN_KEYS = "digest format problem result mechanism multipliers"  # beside "outer" in some
MOST_BYTES, MOST_LISTS = 2 * 2**30, 5_000_000
FREE_TEXT, TEXT_A_BYTE = 2**25, 8  # what a .gz file may hold, however small, and a byte of it
FREE_ROOM, ROOM_A_BYTE = 2**27, 128  # what its lists may take in memory, likewise
ENTRY = 64  # bytes that an entry takes there, beside four times its own
Body = dict[str, object]
Vector = list[Fraction]
Matrix = list[Vector]
Rows = list[list[int]]
Table = list[list[float]]


def read(path: str) -> Body:
    """A file of one of the formats, whose digest fits, in which no key occurs twice."""
    packed = path.lower().endswith(".gz")
    with stream_of(path) as raw, gzip.GzipFile(fileobj=raw) if packed else raw as stream:
        size = TEXT_A_BYTE * os.fstat(raw.fileno()).st_size if packed else MOST_BYTES
        most = min(MOST_BYTES, FREE_TEXT + size)
        count = require_digest(iter(lambda: part_of(stream, 2**20), b""), most)
        stream.seek(0)
        content = part_of(stream, count)
    require_digest(iter([content]), most)
    opened = content.count(b"[") + content.count(b"{")
    need(opened <= MOST_LISTS, "has too many lists and tables")

    def refuse(constant: str) -> None:
        raise Fault(f"{constant} is not a number")

    def unique(pairs: list[tuple[str, object]]) -> Body:
        need(len(dict(pairs)) == len(pairs), "a key occurs twice")
        return dict(pairs)

    body = json.loads(content, parse_constant=refuse, object_pairs_hook=unique)
    if plain := LISTED.get(str(fields(body).get("format"))):
        keys(body, DESIGN_KEYS, "outer")
        lists = Lists(FREE_ROOM + ROOM_A_BYTE * min(len(content), size))
        body = {**fields(lists.expanded(body)), "format": plain}
    known = fields(body).get("format") in (FORMAT, FAMILY, NOISE)
    need(known, f"is of none of the formats {FORMAT}, {FAMILY} and {NOISE}")
    return fields(body)


def stream_of(path: str, most: int = MOST_BYTES) -> BinaryIO:
    """A regular file of at most so many bytes, opened without waiting for anybody."""
    ready = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(path, os.O_RDONLY | ready), "rb")
    about = os.fstat(stream.fileno())
    need(stat.S_ISREG(about.st_mode), "is not a regular file")
    need(about.st_size <= most, "is too large")
    return stream


def part_of(stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
    """The next bytes; refused where none are there yet, as of the kernel's messages."""
    found: bytes | None = stream.read(size)
    if found is None:
        raise Fault("has nothing to read yet")
    return found


def require_digest(parts: Iterator[bytes], most: int) -> int:
    """How many bytes content has, at most so many; refused unless its first line is the digest of
    the rest."""
    head, line, rest = next(parts, b"").partition(b"\n")
    digest, size = hashlib.sha256(rest), len(head) + len(line) + len(rest)
    for part in parts:
        digest.update(part)
        size += len(part)
        need(size <= most, "is too large")
    same = head == b'{"digest": "sha256:' + digest.hexdigest().encode() + b'",'
    need(size <= most, "is too large")
    need(same, "the digest does not match the content")
    return size


class Lists:
    """Lists that a file holds as compressed bytes, which may take so many bytes in memory."""

    codes: ClassVar = {"float64": "d", "uint8": "B", "uint16": "H", "uint32": "I"}

    def __init__(self, room: int = MOST_BYTES) -> None:
        self.left = room

    def expanded(self, plain: object) -> object:
        if isinstance(plain, list):
            return [self.expanded(part) for part in plain]
        if not isinstance(plain, dict):
            return plain
        if "list" not in plain:
            return {key: self.expanded(part) for key, part in plain.items()}
        kind, stated, packed = members(plain, "list shape zlib")
        shape = listing(stated)
        sizes = [size for size in shape if type(size) is int and size > 0]
        one_row = kind in self.codes and len(shape) == 1
        whole = one_row or (kind in ("hex", "float64") and len(shape) == 2)
        need(whole and len(sizes) == len(shape), "a list of unknown kind or shape")
        code = self.codes.get(str(kind), "B")
        size = math.prod(sizes) * struct.calcsize(f"<{code}")
        self.left -= 4 * size + ENTRY * (sizes[0] if kind == "hex" else math.prod(sizes))
        need(self.left >= 0, "lists that are too large")
        content = self.bytes_of(text(packed, "a list"), size)
        if kind == "hex":
            parts = (content[k : k + sizes[1]] for k in range(0, size, sizes[1]))
            return [f"{int.from_bytes(part, 'little'):x}" for part in parts]
        values = list(struct.unpack(f"<{math.prod(sizes)}{code}", content))
        need(all(map(math.isfinite, values)), "a number that is not finite")
        if len(sizes) == 1:
            return values
        return [values[k : k + sizes[1]] for k in range(0, len(values), sizes[1])]

    @staticmethod
    def bytes_of(packed: str, size: int) -> bytes:
        reader = zlib.decompressobj()
        try:
            content = reader.decompress(base64.b64decode(packed, validate=True), size + 1)
        except zlib.error as error:
            raise Fault(f"a list cannot be unpacked: {error}") from error
        need(len(content) == size and reader.eof and not reader.unused_data, "a list of other size")
        return content


def keys(value: object, wanted: str, optional: str = "") -> Body:
    """``value``, an object with exactly these keys."""
    if not isinstance(value, dict):
        raise Fault("an object is missing")
    wrong = (value.keys() - set(optional.split())) ^ set(wanted.split())
    need(not wrong, f"missing or unknown entries: {sorted(wrong)!a}")
    return value


def members(value: object, wanted: str) -> list[object]:
    """What an object with exactly these keys has under them, in this order."""
    return [keys(value, wanted)[key] for key in wanted.split()]


def fields(value: object) -> Body:
    """An object as it is; of anything else one without entries."""
    return value if isinstance(value, dict) else {}


def listing(value: object, count: int | None = None) -> list[object]:
    if not isinstance(value, list) or count not in (None, len(value)):
        raise Fault("a list is missing, or of another length")
    return value


def together(*lists: object) -> Iterator[tuple[object, ...]]:
    """Entries of lists of one length, side by side."""
    count = len(listing(lists[0]))
    return transposed(listing(part, count) for part in lists)


def text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise Fault(f"{what} is no text")
    return value


def one_of(value: object, known: Iterable[str], what: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise Fault(f"{what} {value!a} is unknown")
    return value


def reals(value: object, count: int | None = None) -> list[float]:
    return [real(v) for v in listing(value, count)]


def fractions(value: object, count: int | None = None, least: float = 0) -> Vector:
    """Floats from ``least`` on, as what they are."""
    return [Fraction(real(v, least)) for v in listing(value, count)]


INFINITE = Fraction(2) ** 9999  # a distance that is more than any float


def matrix(value: object, rows: int, columns: int, infinite: bool = False) -> Matrix:
    """Floats >= 0; null is an infinite one, where there may be such."""
    return [
        [
            INFINITE if v is None and infinite else Fraction(real(v, 0))
            for v in listing(row, columns)
        ]
        for row in listing(value, rows)
    ]


def weighed(rows: Matrix, weights: Vector) -> Matrix:
    """Every row times the weights, entry by entry."""
    return [[v * w for v, w in paired(row, weights)] for row in rows]


def whole(value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Fault(f"{value!a} is no index below {most}")
    return value


def indices(value: object, most: int, count: int | None = None) -> list[int]:
    return [whole(v, most) for v in listing(value, count)]


HEX = re.compile(r"0|-?[1-9a-f][0-9a-f]{0,99999}", re.ASCII)


def integer(value: object, least: int | None = None) -> int:
    """A whole number in hexadecimal."""
    if not isinstance(value, str) or HEX.fullmatch(value) is None:
        raise Fault("a number is no whole one in hexadecimal")
    found = int(value, 16)
    need(least is None or found >= least, "a whole number is too small")
    return found


def wholes(value: object, count: int | None = None) -> list[int]:
    """Whole numbers >= 0."""
    return [integer(v, 0) for v in listing(value, count)]


def fraction(value: object) -> Fraction:
    """A number >= 0, written as a fraction in lowest terms."""
    words = text(value, "a fraction")
    need(re.fullmatch("[0-9]{1,400}(/[0-9]{1,400})?", words) is not None, "no fraction")
    need("/" not in words or int(words.split("/")[1]) > 0, "no fraction")
    found = Fraction(words)
    need(str(found) == words and found < 2**60, "a fraction is written otherwise")
    return found


def distribution(value: object, count: int) -> Vector:
    """Numbers >= 0, one a secret, that sum to one up to rounding."""
    out = fractions(value, count)
    off = math.fsum([*map(float, out), -1.0])
    need(abs(off) <= count * 2.0**-52, "a distribution does not sum to one")
    return out
