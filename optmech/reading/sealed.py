"""JSON documents that begin with a digest of all other bytes."""

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from optmech.base.extensions import FILES, extension
from optmech.base.storage import path_of
from optmech.errors import OptmechError, ProblemError, VerificationError, moved
from optmech.exact.arguments import require_keys
from optmech.reading import bounded
from optmech.reading.bounded import expanded, read_start
from optmech.reading.errors import WORDS, Kind, by_ending, kind_of, kind_of_format
from optmech.reading.lists import contracted, require_room, unpacked

MAX_BYTES = 2 * 2**30
_FREE, _FACTOR = 2**25, 8
"""Bytes that a file whose name ends in .gz may hold, however small it is, and that it may hold for
each of its own. Documents compress 1.4 to 4 times, zeros a thousand times."""
_HEAD, _PART = 200, 2**20
_SEALED = b'{"digest": "sha256:'
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
    listed: str = ""
    """The name of its form with long lists as bytes."""
    keys: frozenset[str] = frozenset()
    """What has to stand in a file of that form, beside what may."""
    rare: str = ""
    """What may stand there."""


FORMATS = {
    each.name: each
    for each in (
        Format(
            "optmech-design/2",
            "design",
            "optmech solve -o",
            "Solve the problem again and save the design",
            "optmech-design/3",
            frozenset({"digest", "format", "problem", "result", "mechanism", "multipliers"}),
            "outer",
        ),
        Format(
            "optmech-targets/2",
            "family of coupling mechanisms",
            "optmech transport -o",
            "Make the design again and save it",
        ),
        Format(
            "optmech-noise/1",
            "noise for numbers",
            "optmech noise -o",
            "Make the noise again with optmech noise -o",
        ),
    )
}
"""The formats that are written and read, each by the module that is stated for it under
``optmech.formats`` (``optmech.base.extensions``): its ``encode`` makes an object of a result, and
its ``decode`` a result of the object, with the verdict on every claim of it."""
DESIGN, FAMILY, NOISE = FORMATS
_LISTED = {each.listed: each.name for each in FORMATS.values() if each.listed}


def written(body: dict[str, Any]) -> bytes:
    """The document of one of the formats, sealed; the long lists of a long one are no text where
    its format allows that. Raises TypeError or ValueError on what JSON does not have."""
    content = json.dumps(body, allow_nan=False)
    listed = FORMATS[body["format"]].listed
    if listed and len(content) > _LONG:
        with suppress(ProblemError):
            short = {**contracted(body), "format": listed}
            shorter = json.dumps(short, allow_nan=False)
            require_room(short, len(shorter))
            content = shorter
    return seal(content.encode())


def compressed(path: str | Path, content: bytes) -> bytes:
    """A document for a file of that name: packed by gzip where it ends in .gz, and only so far as
    its reader takes for honest; else as it is."""
    if not _is_packed(path):
        return content
    found = gzip.compress(content, mtime=0)
    honest = len(content) <= max(_LONG, _FACTOR * len(found))
    return found if honest else gzip.compress(content, 0, mtime=0)


def seal(document: bytes) -> bytes:
    """A JSON object with the digest of its remaining bytes as first entry, on a line of its own.

    The digest is taken over bytes, not values, so that any flipped byte shows. Raises ValueError on
    what has one: it would be refused for its two digests, whatever else it says.
    """
    if document.startswith(_SEALED):
        raise ValueError("has a digest already")
    rest = document.removeprefix(b"{")
    return _head(hashlib.sha256(rest)) + rest


def _head(digest: Any) -> bytes:
    written: str = digest.hexdigest()
    return _SEALED + written.encode() + b'",\n'


def read_sealed(
    path: str | Path, formats: tuple[str, ...], unread: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The object in a file whose ``format`` is one of ``formats``, unpacked where the name ends in
    .gz. Lists are expanded but in the entries ``unread``. Raises ProblemError if the file cannot
    be read or is of another format; VerificationError if it was altered."""
    where = str(path)
    bounded.require_readable(path, MAX_BYTES)
    size = _FACTOR * os.stat(path).st_size if _is_packed(path) else MAX_BYTES
    most = min(MAX_BYTES, _FREE + size)
    with _opened(path, most) as stream:
        head = stream.readline(_HEAD)
        is_sealed = head.startswith(_SEALED)
        if is_sealed:
            digest, count = hashlib.sha256(), len(head)
            while part := stream.read(_PART):
                digest.update(part)
                count += len(part)
            _require_same(head, digest, where, formats)
    # what is no such file is only looked at
    with _opened(path, most) as stream:
        content = stream.read(count if is_sealed else bounded.MAX_BYTES)
    return parse_sealed(content, where, formats, unread, size)


def _is_packed(path: str | Path) -> bool:
    return path_of(path).suffix.lower() == ".gz"


def _opened(path: str | Path, most: int) -> AbstractContextManager[BinaryIO]:
    """The document of a file as a stream of at most so many bytes."""
    return expanded(path, most) if _is_packed(path) else bounded.opened(path, most)


def _require_same(head: bytes, digest: Any, where: str, formats: tuple[str, ...]) -> None:
    if head != _head(digest):
        raise VerificationError(
            "the content does not match its digest: the file was altered",
            where=where,
            remedy=FORMATS[formats[0]].remedy,
        )


def parse_sealed(
    content: bytes,
    where: str,
    formats: tuple[str, ...],
    unread: tuple[str, ...] = (),
    size: int = MAX_BYTES,
) -> dict[str, Any]:
    """The object of a sealed file, from its content; ``where`` names it in messages. Its lists may
    take what a document of at most ``size`` bytes may."""
    expected = FORMATS[formats[0]]
    sealed = content.startswith(_SEALED)
    if sealed:
        head = content[:_HEAD].partition(b"\n")[0] + b"\n"
        _require_same(head, hashlib.sha256(memoryview(content)[len(head) :]), where, formats)
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
            require_keys(table, expected.keys, "file", expected.rare)
            kept = {key: table.pop(key) for key in unread if key in table}
            require_room(table, min(len(content), size))
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
        said = f"no entry {error}" if isinstance(error, KeyError) else "an entry of another form"
        raise VerificationError(
            f"is not a well-formed design: {said}", where=where, remedy=remedy
        ) from error
    except (RecursionError, MemoryError) as error:
        raise VerificationError(
            "is nested too deeply or too large", where=where, remedy=remedy
        ) from error


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


def packed_reader(path: str | Path, needed: bool = False) -> Any:
    """What reads a packed file; None where the file is none, and is not ``needed`` to be one.
    Raises ProblemError where what reads it is not installed."""
    if not (needed or is_packed_file(path)):
        return None
    with moved(lambda _: str(path)):
        return extension(FILES, "packed")
