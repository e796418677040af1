"""JSON documents that begin with a digest of the rest of their bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optmech.errors import OptmechError, ProblemError, VerificationError

MAX_BYTES = 2 * 2**30
_HEAD = 200
DESIGN = "optmech-design/2"
FAMILY = "optmech-targets/1"
_WRITERS = {DESIGN: "optmech solve -o", FAMILY: "optmech transport -o"}


def seal(document: bytes) -> bytes:
    """A JSON object with the digest of its remaining bytes as first entry, on a line of its own.

    The digest is taken over bytes, not values, so that any flipped byte shows.
    """
    rest = document.removeprefix(b"{")
    digest = hashlib.sha256(rest).hexdigest()
    return b'{"digest": "sha256:' + digest.encode() + b'",\n' + rest


def read_sealed(path: str | Path, formats: tuple[str, ...], remedy: str) -> dict[str, Any]:
    """The object in a file whose ``format`` is one of ``formats``.

    Raises
    ------
    ProblemError
        If the file cannot be read or is of another format.
    VerificationError
        If it was altered; ``remedy`` says what to do then.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ProblemError(f"is larger than {MAX_BYTES:,} bytes", where=str(path))
        content = file.read_bytes()
    except OSError as error:
        raise ProblemError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="Check the path"
        ) from error
    return parse_sealed(content, str(path), formats, remedy)


def parse_sealed(
    content: bytes, where: str, formats: tuple[str, ...], remedy: str
) -> dict[str, Any]:
    """As ``read_sealed``, from a file's content; ``where`` names it in messages."""
    head, _, rest = content.partition(b"\n")
    sealed = head.startswith(b'{"digest": "sha256:')
    if sealed and seal(b"{" + rest) != content:
        raise VerificationError(
            "the content does not match its digest: the file was altered",
            where=where,
            remedy=remedy,
        )
    try:
        body = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if where.lower().endswith(".toml"):
            raise ProblemError(
                "is a file that says what is wanted, and no design",
                where=where,
                remedy=f"Make one with optmech solve {where} -o design.json (or with optmech "
                "sweep, trace or transport)",
            ) from error
        raise ProblemError(f"is not JSON: {error}", where=where) from error
    if not sealed or not isinstance(body, dict) or body.get("format") not in formats:
        raise ProblemError(
            f"is not a design file of format {formats[0]!r}",
            where=where,
            remedy=f"Give a file written by {' or '.join(_WRITERS[name] for name in formats)}",
        )
    return body


def is_of_format(path: str | Path, name: str) -> bool:
    """Whether a file begins like one of this format; False where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return f'"format": "{name}"'.encode() in stream.read(_HEAD)
    except OSError:
        return False


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


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
