"""JSON documents that begin with a digest of all other bytes; long lists in them, as bytes."""

import base64
import binascii
import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optmech.base.storage import path_of
from optmech.errors import OptmechError, ProblemError, VerificationError
from optmech.reading.bounded import expanded, read_bytes, read_start
from optmech.reading.errors import WORDS, Kind, by_ending, kind_of, kind_of_format

MAX_BYTES = 2 * 2**30
_HEAD = 200
_SHOWN = 80
_MOST_LISTS = 5_000_000
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
_OMM = (b"\xd9\xd9\xf7", b"\xd2\x84")
"""How packed mechanisms begin, plain and signed: CBOR's own tag, and COSE's."""
_LONG = 2**20
"""Bytes of a document above which its long lists are not written as text."""


class Format(NamedTuple):
    """A format of sealed documents that are proved when they are read."""

    name: str
    what: str
    """What a file of it holds, in words."""
    command: str
    """What writes one."""
    remedy: str
    """What to do about one that was altered."""
    module: str
    """Whose ``encode`` makes its object of a result, and whose ``decode`` makes a result of the
    object, with the verdict on every claim of it."""
    listed: str = ""
    """The name of its form with long lists as bytes."""


FORMATS = {
    each.name: each
    for each in (
        Format(
            "optmech-design/2",
            "design",
            "optmech solve -o",
            "Solve the problem again and save the design",
            "optmech.designs.file",
            "optmech-design/3",
        ),
        Format(
            "optmech-targets/2",
            "family of coupling mechanisms",
            "optmech transport -o",
            "Make the design again and save it",
            "optmech.mechanisms.targets.file",
        ),
        Format(
            "optmech-noise/1",
            "noise for numbers",
            "optmech noise -o",
            "Make the noise again with optmech noise -o",
            "optmech.noise.additive.file",
        ),
    )
}
"""The formats that are written and read."""
DESIGN, FAMILY, NOISE = FORMATS
_LISTED = {each.listed: each.name for each in FORMATS.values() if each.listed}


def written(body: dict[str, Any]) -> bytes:
    """The document of one of the formats, sealed; the long lists of a long one are no text where
    its format allows that. Raises TypeError or ValueError on what JSON does not have."""
    content = json.dumps(body, allow_nan=False)
    listed = FORMATS[body["format"]].listed
    if listed and len(content) > _LONG:
        with suppress(ProblemError):
            content = json.dumps({**contracted(body), "format": listed}, allow_nan=False)
    return seal(content.encode())


def seal(document: bytes) -> bytes:
    """A JSON object with the digest of its remaining bytes as first entry, on a line of its own.

    The digest is taken over bytes, not values, so that any flipped byte shows.
    """
    rest = document.removeprefix(b"{")
    digest = hashlib.sha256(rest).hexdigest()
    return b'{"digest": "sha256:' + digest.encode() + b'",\n' + rest


def read_sealed(
    path: str | Path, formats: tuple[str, ...], unread: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The object in a file whose ``format`` is one of ``formats``, unpacked where the name ends in
    .gz. Lists are expanded but in the entries ``unread``. Raises ProblemError if the file cannot
    be read or is of another format; VerificationError if it was altered."""
    if path_of(path).suffix.lower() == ".gz":
        with expanded(path, MAX_BYTES) as stream:
            content = stream.read()
    else:
        content = read_bytes(path, MAX_BYTES)
    return parse_sealed(content, str(path), formats, unread)


def parse_sealed(
    content: bytes, where: str, formats: tuple[str, ...], unread: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The object of a sealed file, from its content; ``where`` names it in messages."""
    expected = FORMATS[formats[0]]
    head, _, rest = content.partition(b"\n")
    sealed = head.startswith(b'{"digest": "sha256:')
    if sealed and seal(b"{" + rest) != content:
        raise VerificationError(
            "the content does not match its digest: the file was altered",
            where=where,
            remedy=expected.remedy,
        )
    packed = next((name for magic, name in _PACKED.items() if content.startswith(magic)), None)
    if packed is not None:
        raise ProblemError(
            f"is compressed ({packed})", where=where, remedy="Unpack it and give the file inside"
        )
    if content.startswith(_OMM):
        raise _another("packed", formats, where)
    count = content.count(b"[") + content.count(b"{")
    if count > _MOST_LISTS:
        raise ProblemError(
            f"has {count:,} lists and tables, more than the {_MOST_LISTS:,} allowed", where=where
        )
    try:
        body = json.loads(content, parse_constant=_refuse, object_pairs_hook=distinct)
    except (ValueError, RecursionError, ProblemError) as error:
        if where.lower().endswith(".toml"):
            raise ProblemError(
                "is a file that says what is wanted, and no design",
                where=where,
                remedy=f"Make one with optmech solve {where} -o design.json (or with optmech "
                "sweep, trace or transport)",
            ) from error
        other = by_ending(where)
        if other is not None:
            raise ProblemError(
                f"is {other[0]}, and no design", where=where, remedy=other[1]
            ) from error
        raise ProblemError(
            f"is not JSON, and so no design: {error}",
            where=where,
            remedy=f"Give a file written by {_writers(formats)}",
        ) from error
    table = body if isinstance(body, dict) else {}
    form = table.get("format")
    plain = _LISTED.get(form) if sealed and isinstance(form, str) else None
    if plain is not None:
        table["format"] = form = plain
    if plain in formats:
        with decoding(where, expected.remedy):
            kept = {key: table.pop(key) for key in unread if key in table}
            table = {**unpacked(table), **kept}
    if sealed and form in formats:
        return table
    found = kind_of(table)
    own = [name for name in formats if kind_of_format(name) == found]
    if found is not None and not own:
        raise _another(found, formats, where)
    if own and form not in (*FORMATS, *_LISTED):
        raise ProblemError(
            f"is of format {str(form)[:_SHOWN]!r}, which this version of optmech does not read",
            where=where,
            remedy=FORMATS[own[0]].remedy,
        )
    raise ProblemError(
        f"is no {expected.what} of format {formats[0]!r}, sealed by its digest",
        where=where,
        remedy=f"Give a file written by {_writers(formats)}",
    )


def _another(found: Kind, formats: tuple[str, ...], where: str) -> ProblemError:
    """A file of a kind that is known, and not of those that are read here."""
    what, command = WORDS[found]
    problem = f"this is {what}, and no {FORMATS[formats[0]].what}"
    return ProblemError(problem, where=where, remedy=command)


def _writers(formats: tuple[str, ...]) -> str:
    return " or ".join(FORMATS[name].command for name in formats)


def is_of_format(path: str | Path, name: str) -> bool:
    """Whether a file begins like one of this format, its lists as text or as bytes; False where it
    cannot be read."""
    try:
        if path_of(path).suffix.lower() == ".gz":
            with expanded(path, MAX_BYTES) as stream:
                return begins(stream.read(_HEAD), name)
        return begins(read_start(path, _HEAD), name)
    except ProblemError:
        return False


def begins(content: bytes, name: str) -> bool:
    """Whether a document begins like one of this format."""
    own = filter(None, (name, FORMATS[name].listed))
    return any(f'"format": "{each}"'.encode() in content[:_HEAD] for each in own)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON. Raises ProblemError where a key occurs twice: readers differ in which of two
    they take."""
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        key = next(key for key, count in counts.items() if count > 1)
        raise ProblemError(f"key {key[:_SHOWN]!r} occurs twice", remedy="Keep one of the two")
    return table


@contextmanager
def decoding(where: str, remedy: str) -> Iterator[None]:
    """Turn whatever goes wrong while a document's values are read into a VerificationError."""
    try:
        yield
    except OptmechError as error:
        raise VerificationError(str(error), where=where, remedy=remedy) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise VerificationError(
            f"is not a well-formed design: {type(error).__name__} {error}",
            where=where,
            remedy=remedy,
        ) from error
    except (RecursionError, MemoryError) as error:
        raise VerificationError(
            "is nested too deeply or too large", where=where, remedy=remedy
        ) from error


Plain = Any
_MARK = "list"
_SHORTEST = 32
"""Shorter lists stay text."""
_LEVEL = 9
_DEEPEST = 32
_MOST_BYTES = 2**31
"""Of all lists of a document together, expanded."""
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


def unpacked(plain: Plain) -> Plain:
    """The document with lists again. Raises ProblemError on anything that ``contracted`` does not
    write, before more is expanded than is allowed."""
    return _Expansion(_MOST_BYTES).of(plain, 0)


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


PLAIN_START = b"\xd9\xd9\xf7\x84\x70optmech-packed/"
SIGNED_START = b"\xd2\x84\x43\xa1\x01\x27"
"""How packed files begin, plain and signed, whatever their version (docs/packed.md)."""


def start_of(path: str | Path) -> bytes:
    """The first bytes of a file, which have the format in them, also behind the head of a signed
    one; none where it cannot be read."""
    try:
        return read_start(path, 64)
    except ProblemError:
        return b""


def is_packed_file(path: str | Path) -> bool:
    """Whether a file begins like a packed one of any version, plain or signed; False where it
    cannot be read."""
    return start_of(path).startswith((PLAIN_START, SIGNED_START))
