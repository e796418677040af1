"""The layout of a packed mechanism: bytes to checked parts, and back. See docs/packed.md.

Nothing is built from a file before all of it was found to have the form that is written.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.errors import OptmechError, ProblemError, VerificationError
from optmech.exact.checked import require_keys
from optmech.packed.cbor import Tag, decode, encode, typed, untyped
from optmech.packed.places import decode_places, encode_places
from optmech.spaces.domain import Domain

Plain = Any
FORMAT = "optmech-packed/1"
MAX_BYTES = 64 * 2**20
MOST_COLUMNS = 2**15
"""So that sums of entries fit into 64 bits whatever a file says."""
BITS = (16, 24, 32, 48)
OUTSIDE = ("refuse", "nearest")
_CBOR, _SIGNED = 55799, 18
_PROTECTED = encode({1: -8})
_PLAIN_START = b"\xd9\xd9\xf7\x84\x70optmech-packed/"
_SIGNED_START = b"\xd2\x84\x43\xa1\x01\x27"
_DIGEST = 32
_REMEDY = "Pack the design again"
_KEYS = {
    "title", "protects", "does not promise", "constraints", "region", "prior", "loss", "design",
    "bits", "width", "secrets", "reports", "columns", "row of", "outside", "reach", "accuracy",
}  # fmt: skip


@dataclass(frozen=True)
class Loss:
    """What the mechanism costs: the ``design``'s value of the objective, that of the ``packed``
    numbers (rounded to the safe side), and the relative ``increase``."""

    objective: str
    design: float
    packed: float
    increase: float


@dataclass(frozen=True)
class Accuracy:
    """For every column the ``radius`` within which the secret lies with probability ``quantile``,
    given that report, under the design's prior."""

    quantile: float
    radius: tuple[float, ...]


@dataclass(frozen=True)
class Header:
    """What a packed file says of itself, beside places and numbers."""

    title: str
    protects: tuple[str, ...]
    does_not_promise: tuple[str, ...]
    constraints: tuple[dict[str, Any], ...]
    region: str
    prior: str
    prior_date: str | None
    loss: Loss
    design: str
    """SHA-256 of the design's problem and mechanism, in hexadecimal digits."""
    outside: str
    reach: float | None
    accuracy: Accuracy | None


@dataclass(frozen=True, eq=False)
class Parts:
    """All of a packed file."""

    header: Header
    secrets: Domain
    reports: Domain
    bits: int
    columns: Ints
    """Numbers of the reports that have a column, ascending."""
    row_of: Ints
    rows: NDArray[np.uint64]
    """The distinct rows, shape (R, columns)."""
    digest: bytes = b""
    """Of the file that they were read from."""


def encode_parts(parts: Parts) -> bytes:
    """The content of a file. Raises ProblemError where something cannot be written."""
    header, width = parts.header, _width(parts)
    secrets, reports = encode_places(parts.secrets), encode_places(parts.reports)
    accuracy = header.accuracy
    body = {
        "title": header.title,
        "protects": list(header.protects),
        "does not promise": list(header.does_not_promise),
        "constraints": list(header.constraints),
        "region": header.region,
        "prior": {"words": header.prior, "date": header.prior_date},
        "loss": vars(header.loss),
        "design": bytes.fromhex(header.design),
        "bits": parts.bits,
        "width": width,
        "secrets": secrets,
        "reports": None if encode(reports) == encode(secrets) else reports,
        "columns": typed(parts.columns, 70),
        "row of": typed(parts.row_of, 70),
        "outside": header.outside,
        "reach": header.reach,
        "accuracy": None
        if accuracy is None
        else {"quantile": accuracy.quantile, "radius": typed(list(accuracy.radius), 86)},
    }
    words = np.ascontiguousarray(parts.rows, dtype="<u8").view(np.uint8)
    rows = words.reshape(*parts.rows.shape, 8)[:, :, :width].tobytes()
    head = encode(Tag(_CBOR, [FORMAT, encode(body), rows, bytes(_DIGEST)]))[:-_DIGEST]
    return head + hashlib.sha256(head).digest()


def decode_parts(content: bytes, where: str) -> Parts:
    """The parts of a plain file's content; ``where`` names it. Raises VerificationError unless it
    is exactly as specified."""
    try:
        return _decoded(content)
    except OptmechError as error:
        place = f"{where}: {error.where}" if error.where else where
        raise VerificationError(error.message, where=place, remedy=_REMEDY) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = f"is no packed mechanism: {type(error).__name__} {str(error)[:200]}"
        raise VerificationError(said, where=where, remedy=_REMEDY) from error


def is_packed(content: bytes) -> bool:
    """Whether some bytes begin like a packed file of any version, plain or signed."""
    return content.startswith((_PLAIN_START, _SIGNED_START))


def envelope(payload: bytes, signature: bytes) -> bytes:
    """COSE_Sign1 (RFC 9052) around a plain file."""
    return encode(Tag(_SIGNED, [_PROTECTED, {}, payload, signature]))


def signed_bytes(payload: bytes) -> bytes:
    """What is signed: the Sig_structure of RFC 9052, section 4.4."""
    return encode(["Signature1", _PROTECTED, b"", payload])


def opened(content: bytes, where: str) -> tuple[bytes, bytes] | None:
    """Payload and signature of a signed file, not verified; None of one that is not signed.
    Raises VerificationError where it is neither."""
    if not content.startswith(_SIGNED_START):
        return None
    try:
        item = decode(content).value
        protected, unprotected, payload, signature = item
        proper = protected == _PROTECTED and unprotected == {} and isinstance(payload, bytes)
        if not proper or not isinstance(signature, bytes) or len(signature) != 64:
            raise ProblemError("is signed in another way than with Ed25519")
    except (OptmechError, TypeError, ValueError) as error:
        said = error.message if isinstance(error, OptmechError) else "is no signed file"
        raise VerificationError(said, where=where, remedy=_REMEDY) from error
    return payload, signature


def _width(parts: Parts) -> int:
    """Bytes of an entry: one more than the bits take where an entry is 2^bits."""
    return parts.bits // 8 + int((parts.rows == 1 << parts.bits).any())


def _decoded(content: bytes) -> Parts:
    if not content.startswith(_PLAIN_START):
        raise ProblemError("is no packed mechanism")
    item = decode(content)
    if not isinstance(item, Tag) or item.number != _CBOR or type(item.value) is not list:
        raise ProblemError("is no packed mechanism")
    if item.value[:1] != [FORMAT]:
        raise ProblemError(f"is no file of format {FORMAT}")
    _, inner, rows, digest = item.value
    if not all(isinstance(part, bytes) for part in (inner, rows, digest)):
        raise ProblemError("is no packed mechanism")
    if digest != hashlib.sha256(content[:-_DIGEST]).digest():
        raise ProblemError("the content does not match its digest: the file was altered")
    body = decode(inner)
    require_keys(body, _KEYS, "header")
    bits = body["bits"]
    if bits not in BITS or type(bits) is not int:
        raise ProblemError(f"{str(bits)[:40]} is none of {BITS}", where="bits")
    secrets = decode_places(body["secrets"])
    reports = secrets if body["reports"] is None else decode_places(body["reports"])
    columns = untyped(body["columns"], 70).astype(np.int64)
    row_of = untyped(body["row of"], 70).astype(np.int64)
    if not len(columns) or (np.diff(columns) <= 0).any() or columns[-1] >= len(reports):
        raise ProblemError("are no ascending numbers of reports", where="columns")
    if len(columns) > MOST_COLUMNS:
        raise ProblemError(f"{len(columns):,} are more than {MOST_COLUMNS:,}", where="columns")
    count = int(row_of.max(initial=-1)) + 1
    # a number that is too large is refused before anything of that size is made
    proper = count <= len(row_of) == len(secrets)
    if not proper or not np.array_equal(np.unique(row_of), np.arange(count)):
        raise ProblemError("does not give every secret one of the rows", where="row of")
    width = body["width"]
    if type(width) is not int or len(rows) != count * len(columns) * width:
        raise ProblemError(f"{len(rows):,} bytes do not fit {count} rows", where="rows")
    if width not in (bits // 8, bits // 8 + 1):
        raise ProblemError(f"{width} bytes for {bits} bits", where="width")
    words = np.zeros((count, len(columns), 8), dtype=np.uint8)
    words[:, :, :width] = np.frombuffer(rows, np.uint8).reshape(count, len(columns), width)
    entries: NDArray[np.uint64] = words.view("<u8")[:, :, 0].astype(np.uint64)
    if (entries > 1 << bits).any():
        raise ProblemError(f"has an entry above 2^{bits}", where="rows")
    if (entries.sum(axis=1, dtype=np.uint64) != 1 << bits).any():
        raise ProblemError(f"has a row that does not sum to 2^{bits}", where="rows")
    parts = Parts(
        _header(body, len(columns)), secrets, reports, bits, columns, row_of, entries, digest
    )
    if width != _width(parts):
        raise ProblemError("are wider than they need be", where="width")
    return parts


def _header(body: Plain, columns: int) -> Header:
    prior, loss, accuracy = body["prior"], body["loss"], body["accuracy"]
    require_keys(prior, {"words", "date"}, "prior")
    require_keys(loss, {"objective", "design", "packed", "increase"}, "loss")
    if accuracy is not None:
        require_keys(accuracy, {"quantile", "radius"}, "accuracy")
        radius = _nonnegative(untyped(accuracy["radius"], 86), "accuracy")
        if len(radius) != columns:
            raise ProblemError(f"{len(radius)} radii for {columns} columns", where="accuracy")
        accuracy = Accuracy(_of(float, accuracy["quantile"], "quantile"), tuple(radius.tolist()))
        if not 0 < accuracy.quantile < 1:
            raise ProblemError("is not between 0 and 1", where="quantile")
    if body["outside"] not in OUTSIDE:
        raise ProblemError("is neither refuse nor nearest", where="outside")
    reach = None if body["reach"] is None else _of(float, body["reach"], "reach")
    if reach is not None and reach < 0:
        raise ProblemError("is below 0", where="reach")
    figures = {name: _of(float, loss[name], "loss") for name in ("design", "packed", "increase")}
    if len(_of(bytes, body["design"], "design")) != _DIGEST:
        raise ProblemError("is no digest", where="design")
    return Header(
        title=_of(str, body["title"], "title"),
        protects=_texts(body["protects"], "protects"),
        does_not_promise=_texts(body["does not promise"], "does not promise"),
        constraints=tuple(
            _constraint(part) for part in _of(list, body["constraints"], "constraints")
        ),
        region=_of(str, body["region"], "region"),
        prior=_of(str, prior["words"], "prior"),
        prior_date=None if prior["date"] is None else _of(str, prior["date"], "prior"),
        loss=Loss(_of(str, loss["objective"], "loss"), **figures),
        design=body["design"].hex(),
        outside=body["outside"],
        reach=reach,
        accuracy=accuracy,
    )


def _constraint(plain: Plain) -> dict[str, Any]:
    require_keys(plain, {"kind", "promise", "epsilon", "per"}, "constraints")
    for name in ("kind", "promise", "per"):
        _of(str, plain[name], "constraints")
    if plain["epsilon"] is not None and not _of(float, plain["epsilon"], "constraints") >= 0:
        raise ProblemError("has an ε below 0", where="constraints")
    return dict(plain)


def _of(kind: Callable[..., Any], value: Plain, where: str) -> Any:
    if type(value) is not kind:
        raise ProblemError(f"has a {type(value).__name__} where another value belongs", where=where)
    return value


def _texts(value: Plain, where: str) -> tuple[str, ...]:
    return tuple(_of(str, part, where) for part in _of(list, value, where))


def _nonnegative(values: Floats, where: str) -> Floats:
    if (values < 0).any() or not all(map(math.isfinite, values.tolist())):
        raise ProblemError("has a number below 0", where=where)
    return values
