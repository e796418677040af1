"""The layout of a packed mechanism: bytes to checked parts, and back. See docs/packed.md.

Nothing is built from a file before all of it was found to have the form that is written.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.read_only import ReadOnly
from optmech.errors import OptmechError, ProblemError, VerificationError
from optmech.exact.checked import require_keys
from optmech.packed.cbor import Tag, decode, encode, typed, untyped
from optmech.packed.header import COMMON, DIGEST, Header, header_entries, read_header
from optmech.packed.meshes import Weights, decode_mesh, encode_mesh
from optmech.packed.places import decode_places, encode_places
from optmech.packed.table import TABLE, Table, decode_table, encode_table, used_rows
from optmech.spaces.domain import Domain

Plain = Any
FORMAT, MESH_FORMAT = "optmech-packed/1", "optmech-packed/2"
MAX_BYTES = 64 * 2**20
_CBOR, _SIGNED = 55799, 18
_PROTECTED = encode({1: -8})
_PLAIN_START = b"\xd9\xd9\xf7\x84\x70optmech-packed/"
_SIGNED_START = b"\xd2\x84\x43\xa1\x01\x27"
_REMEDY = "Pack the design again"
_KEYS = {
    FORMAT: COMMON | TABLE | {"secrets", "reports", "row of", "reach"},
    MESH_FORMAT: COMMON | TABLE | {"kind", "mesh", "reports", "snap"},
}


@dataclass(frozen=True, eq=False)
class Parts(ReadOnly):
    """All of a packed file."""

    header: Header
    places: Domain | Weights
    """The secrets; of a mechanism for every point of a region, where positions are in the mesh."""
    reports: Domain
    row_of: Ints
    """The row of every secret, or of every control point of the mesh."""
    table: Table
    digest: bytes = b""
    """Of the file that they were read from."""


def encode_parts(parts: Parts) -> bytes:
    """The content of a file. Raises ProblemError where something cannot be written."""
    reports = encode_places(parts.reports)
    numbers, rows = encode_table(parts.table)
    body = {**header_entries(parts.header), **numbers, "reports": reports}
    if isinstance(parts.places, Weights):
        form = MESH_FORMAT
        body["kind"], body["mesh"] = "mesh", encode_mesh(parts.places, parts.row_of)
        body["snap"] = parts.header.snap
    else:
        form, secrets = FORMAT, encode_places(parts.places)
        body["secrets"], body["row of"] = secrets, typed(parts.row_of, 70)
        body["reach"] = parts.header.reach
        if encode(reports) == encode(secrets):
            body["reports"] = None
    head = encode(Tag(_CBOR, [form, encode(body), rows, bytes(DIGEST)]))[:-DIGEST]
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


def _decoded(content: bytes) -> Parts:
    if not content.startswith(_PLAIN_START):
        raise ProblemError("is no packed mechanism")
    item = decode(content)
    if not isinstance(item, Tag) or item.number != _CBOR or type(item.value) is not list:
        raise ProblemError("is no packed mechanism")
    if not item.value or item.value[0] not in _KEYS:
        raise ProblemError(f"is no file of format {FORMAT} or {MESH_FORMAT}")
    form, inner, rows, digest = item.value
    if not all(isinstance(part, bytes) for part in (inner, rows, digest)):
        raise ProblemError("is no packed mechanism")
    if digest != hashlib.sha256(content[:-DIGEST]).digest():
        raise ProblemError("the content does not match its digest: the file was altered")
    body = decode(inner)
    require_keys(body, _KEYS[form], "header")
    places: Domain | Weights
    if form == MESH_FORMAT:
        if body["kind"] != "mesh":
            raise ProblemError("is of another kind", where="kind")
        places, row_of = decode_mesh(body["mesh"])
        same = None
    else:
        places = same = decode_places(body["secrets"])
        row_of = untyped(body["row of"], 70).astype(np.int64)
        if len(row_of) != len(places):
            raise ProblemError("does not give every secret one of the rows", where="row of")
    reports = same if same and body["reports"] is None else decode_places(body["reports"])
    count = used_rows(row_of, len(row_of), "mesh" if same is None else "row of")
    table = decode_table(body, rows, count, len(reports))
    header = read_header(body, len(table.columns))
    if same is None and header.snap is None:
        raise ProblemError("is missing", where="snap")
    return Parts(header, places, reports, row_of, table, digest)
