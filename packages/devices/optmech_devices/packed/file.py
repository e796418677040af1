"""The layout of a packed mechanism: bytes to checked parts, and back. See docs/packed.md.

Nothing is built from a file before all of it was found to have the form that is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Ints
from optmech.base.machine import needed
from optmech.base.read_only import ReadOnly, record
from optmech.base.storage import write_atomically
from optmech.errors import OptmechError, ProblemError, VerificationError
from optmech.exact.arguments import require_keys
from optmech.problem.promised import Measure
from optmech.reading.bounded import read_bytes, translated
from optmech.reading.sealed import PLAIN_START, SIGNED_START
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mesh import Mesh
from optmech_devices.packed.cbor import Tag, decode, encode, typed, untyped
from optmech_devices.packed.header import (
    COMMON,
    DIGEST,
    Clause,
    Header,
    header_entries,
    read_header,
)
from optmech_devices.packed.meshes import Weights, decode_mesh, encode_mesh
from optmech_devices.packed.places import decode_places, encode_places

Plain = Any
BITS = (16, 24, 32, 48)
MOST_COLUMNS = 2**15
"""So that sums of entries fit into 64 bits whatever a file says."""
TABLE = {"bits", "width", "columns"}
"""Entries of the header that say how the numbers are written."""


@record
class Table(ReadOnly):
    """Rows of whole numbers that sum to 2^bits."""

    bits: int
    columns: Ints
    """Numbers of the reports that have a column, ascending."""
    rows: NDArray[np.uint64]
    """The distinct rows, shape (R, columns)."""

    @property
    def width(self) -> int:
        """Bytes of an entry: one more than the bits take where an entry is 2^bits."""
        return self.bits // 8 + int((self.rows == 1 << self.bits).any())


def encode_table(table: Table) -> tuple[dict[str, Plain], bytes]:
    """The header's entries and the bytes of all rows."""
    words = np.ascontiguousarray(table.rows, dtype="<u8").view(np.uint8)
    rows = words.reshape(*table.rows.shape, 8)[:, :, : table.width].tobytes()
    columns = typed(table.columns, 70)
    return {"bits": table.bits, "width": table.width, "columns": columns}, rows


def decode_table(body: Plain, rows: bytes, count: int, reports: int) -> Table:
    """The table in a file, of ``count`` rows and as many ``reports``. Raises ProblemError unless
    every row is a distribution, in the one form that is written."""
    bits, width = body["bits"], body["width"]
    if bits not in BITS or type(bits) is not int:
        raise ProblemError(f"{str(bits)[:40]} is none of {BITS}", where="bits")
    columns = untyped(body["columns"], 70)
    if not len(columns) or (np.diff(columns) <= 0).any() or columns[-1] >= reports:
        raise ProblemError("are no ascending numbers of reports", where="columns")
    if len(columns) > MOST_COLUMNS:
        raise ProblemError(f"{len(columns):,} are more than {MOST_COLUMNS:,}", where="columns")
    if type(width) is not int or len(rows) != count * len(columns) * width:
        raise ProblemError(f"{len(rows):,} bytes do not fit {count} rows", where="rows")
    if width not in (bits // 8, bits // 8 + 1):
        raise ProblemError(f"{width} bytes for {bits} bits", where="width")
    octets = np.frombuffer(rows, np.uint8).reshape(count, len(columns), width)
    entries = little_endian(octets)
    if (entries > 1 << bits).any():
        raise ProblemError(f"has an entry above 2^{bits}", where="rows")
    if (entries.sum(axis=1, dtype=np.uint64) != 1 << bits).any():
        raise ProblemError(f"has a row that does not sum to 2^{bits}", where="rows")
    found = Table(bits, columns, entries)
    if width != found.width:
        raise ProblemError("are wider than they need be", where="width")
    return found


def little_endian(octets: NDArray[np.uint8]) -> NDArray[Any]:
    """The numbers of up to eight bytes each along the last axis."""
    words = np.zeros((*octets.shape[:-1], 8), dtype=np.uint8)
    words[..., : octets.shape[-1]] = octets
    return words.view("<u8")[..., 0].astype(np.uint64)


def one_draw(entropy: object, size: int) -> NDArray[np.uint8]:
    """A row of the bytes of a draw. Raises ProblemError unless there are so many."""
    if not isinstance(entropy, bytes) or len(entropy) != size:
        raise ProblemError(f"a draw takes {size} bytes", where="entropy")
    return np.frombuffer(entropy, np.uint8)[None]


def used_rows(numbers: Ints, most: int, where: str) -> int:
    """How many rows ``numbers`` speak of. Raises ProblemError where some row is not used, or there
    are more than ``most``."""
    count = int(numbers.max(initial=-1)) + 1
    # a number that is too large is refused before anything of that size is made
    if count > most or not np.array_equal(np.unique(numbers), np.arange(count)) or not count:
        raise ProblemError("does not use every one of the rows", where=where)
    return count


FORMAT = "optmech-packed/4"
MAX_BYTES = 64 * 2**20
_OLD = tuple(f"optmech-packed/{version}" for version in (1, 2, 3))
_CBOR, _SIGNED = 55799, 18
_PROTECTED = b"\xa1\x01\x27"
"""The map {1: -8} in CBOR: Ed25519, by its number in COSE."""
_REMEDY = "Pack the design again"
_MESH = COMMON | TABLE | {"mesh", "reports", "snap"}
KEYS = {
    "places": COMMON | TABLE | {"secrets", "reports", "row of", "reach"},
    "mesh": _MESH,
    "network": _MESH,
    "earth": COMMON | {"bands", "heights", "snap"},
}
"""Entries of the headers of files of every kind."""


@record
class Parts(ReadOnly):
    """All of a packed file."""

    header: Header
    places: Domain | Weights
    """The secrets; of a mechanism for every point, where positions are in the mesh."""
    reports: Domain
    row_of: Ints
    """The row of every secret, or of every control point of the mesh."""
    table: Table
    digest: bytes = b""
    """Of the file that they were read from."""

    @property
    def mesh(self) -> Mesh | None:
        """The mesh of a mechanism for every point; None of others."""
        return self.places.mesh if isinstance(self.places, Weights) else None

    @property
    def held(self) -> Domain | Mesh:
        """The secrets, or the mesh."""
        return self.places.mesh if isinstance(self.places, Weights) else self.places


def encode_parts(parts: Parts) -> bytes:
    """The content of a file. Raises ProblemError where something cannot be written."""
    reports = encode_places(parts.reports)
    numbers, rows = encode_table(parts.table)
    body = {**header_entries(parts.header), **numbers, "reports": reports}
    if isinstance(parts.places, Weights):
        body["kind"] = "mesh" if parts.places.mesh.is_region else "network"
        body["mesh"] = encode_mesh(parts.places, parts.row_of)
        body["snap"] = parts.header.snap
    else:
        secrets = encode_places(parts.places)
        body["kind"], body["secrets"], body["row of"] = "places", secrets, typed(parts.row_of, 70)
        body["reach"] = parts.header.reach
        if encode(reports) == encode(secrets):
            body["reports"] = None
    return sealed(body, rows)


def sealed(body: Plain, rows: bytes) -> bytes:
    """A file, with its digest."""
    head = encode(Tag(_CBOR, [FORMAT, encode(body), rows, bytes(DIGEST)]))[:-DIGEST]
    return head + hashlib.sha256(head).digest()


def unsealed(content: bytes) -> tuple[Plain, bytes]:
    """The header of a file, which has the keys of its kind, and its rows. Raises ProblemError on
    one of another format."""
    item = decode(content) if content.startswith(PLAIN_START) else None
    if not isinstance(item, Tag) or item.tag != _CBOR or type(item.value) is not list:
        raise ProblemError("is no packed mechanism")
    form, *parts = item.value or [None]
    if form in _OLD:
        raise ProblemError(f"is of format {form}, which is read no more")
    if form != FORMAT or len(parts) != 3 or not all(isinstance(part, bytes) for part in parts):
        raise ProblemError(f"is no file of format {FORMAT}")
    inner, rows, digest = parts
    if digest != hashlib.sha256(content[:-DIGEST]).digest():
        raise ProblemError("the content does not match its digest: the file was altered")
    body = decode(inner)
    kind = body.get("kind") if type(body) is dict else None
    if type(kind) is not str or kind not in KEYS:
        raise ProblemError("is of no known kind", where="kind")
    require_keys(body, KEYS[kind], "header")
    return body, rows


@contextmanager
def verified(where: str, kind: str, remedy: str = _REMEDY) -> Iterator[None]:
    """Turn whatever goes wrong while a file of a kind is read into a VerificationError."""
    try:
        yield
    except OptmechError as error:
        place = ": ".join(filter(None, (where, error.where)))
        raise VerificationError(error.message, where=place, remedy=remedy) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = f"is no {kind}: {type(error).__name__} {str(error)[:200]}"
        raise VerificationError(said, where=where, remedy=remedy) from error


def decode_parts(content: bytes, where: str) -> Parts:
    """The parts of a plain file's content; ``where`` names it. Raises VerificationError unless it
    is exactly as specified."""
    with verified(where, "packed mechanism"):
        return _decoded(content)


def envelope(payload: bytes, signature: bytes) -> bytes:
    """COSE_Sign1 (RFC 9052) around a plain file."""
    return encode(Tag(_SIGNED, [_PROTECTED, {}, payload, signature]))


def signed_bytes(payload: bytes) -> bytes:
    """What is signed: the Sig_structure of RFC 9052, section 4.4."""
    return encode(["Signature1", _PROTECTED, b"", payload])


def opened(content: bytes, where: str) -> tuple[bytes, bytes] | None:
    """Payload and signature of a signed file, not verified; None of one that is not signed.
    Raises VerificationError where it is neither."""
    if not content.startswith(SIGNED_START):
        return None
    with verified(where, "signed file"):
        protected, unprotected, payload, signature = decode(content).value
        proper = protected == _PROTECTED and unprotected == {} and isinstance(payload, bytes)
        if not proper or not isinstance(signature, bytes) or len(signature) != 64:
            raise ProblemError("is signed in another way than with Ed25519")
        return payload, signature


def _decoded(content: bytes) -> Parts:
    body, rows = unsealed(content)
    kind = body["kind"]
    if kind == "earth":
        raise ProblemError("is a file for the whole earth, which om.devices.Earth.load reads")
    places: Domain | Weights
    if kind == "places":
        places = same = decode_places(body["secrets"])
        row_of = untyped(body["row of"], 70)
        if len(row_of) != len(places):
            raise ProblemError("does not give every secret one of the rows", where="row of")
    else:
        places, row_of = decode_mesh(body["mesh"], kind)
        same = None
    reports = same if same and body["reports"] is None else decode_places(body["reports"])
    count = used_rows(row_of, len(row_of), "mesh" if same is None else "row of")
    table = decode_table(body, rows, count, len(reports))
    header = read_header(body, len(table.columns))
    if same is None and header.snap is None:
        raise ProblemError("is missing", where="snap")
    parts = Parts(header, places, reports, row_of, table, content[-DIGEST:])
    require_grounded(header.promises, parts.held)
    return parts


def require_grounded(promises: Sequence[Clause], held: Domain | Mesh | None) -> None:
    """Raise ProblemError where promises are said to hold between what the file does not have, or by
    another distance or unit than those of its places or its mesh; None stands for the earth."""
    mesh = held if isinstance(held, Mesh) else None
    for clause in promises:
        every, own = clause.scope == "every point", clause.measure
        cells = clause.scope == "cells"
        nowhere = every and mesh is None and held is not None
        if nowhere or (cells and not isinstance(held, Grid)):
            raise ProblemError("hold between what is not there", where="promises")
        if clause.scope == "use" and clause.epsilon is not None:
            raise ProblemError("state an ε of what is for use alone", where="promises")
        if own is None or held is None or (mesh is not None and not every):
            continue
        if not _proper(own, held):
            raise ProblemError("are by another distance or unit than places", where="promises")


def _proper(own: Measure, held: Domain | Mesh) -> bool:
    """Whether there is such a distance between places, or points of a mesh."""
    if isinstance(held, Mesh):
        if own.name != held.measure[0]:
            return False
    elif own.name in ("euclidean", "manhattan", "haversine"):
        if (own.name == "haversine") != (held.coordinates == "lonlat"):
            return False
    elif own.name in ("graph", "roads"):
        # no length between positions; the edges of a policy have no unit
        return own.unit in ("", held.unit) and not own.course
    else:
        return not own.unit and not own.course
    unit = "km" if own.name == "haversine" else held.unit
    return own == Measure.called(own.name, unit, held)


_MOST_KEY = 2**16


def sign(payload: bytes, key: str | Path) -> bytes:
    """A plain file inside its signature with an unencrypted private key. Raises ProblemError where
    that is no such key, or cryptography is not installed."""
    private = _key(key, "private", "sign", "genpkey", password=None)
    return envelope(payload, private.sign(signed_bytes(payload)))


def write_file(path: str | Path, content: bytes, key: str | Path | None) -> None:
    """Write a plain file, or one signed with the private key of a file where one is named. Raises
    ProblemError where that cannot be done."""
    write_atomically(path, content if key is None else sign(content, key))


def verify(payload: bytes, signature: bytes, key: str | Path, where: str) -> None:
    """Raises VerificationError unless the signature is of this public key."""
    public = _key(key, "public", "signer", "pkey -pubout")
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, signed_bytes(payload))
    except InvalidSignature as error:
        raise VerificationError(
            "the signature is not that of the key given",
            where=where,
            remedy=f"Do not use the file, or check that {key} is its signer's key",
        ) from error


def _key(path: str | Path, kind: str, where: str, command: str, **options: Any) -> Any:
    """The "private" or "public" key of a file that openssl makes by a command; ``where`` is the
    argument that asks for it."""
    needed("cryptography", "sign", where=where, home="./packages/devices")
    from cryptography.hazmat.primitives import serialization

    remedy = "Make one with openssl {} (-algorithm ed25519)"
    with translated(path, f"holds no {kind} key in PEM form", remedy.format(command)):
        load = getattr(serialization, f"load_pem_{kind}_key")
        key = load(read_bytes(path, _MOST_KEY), **options)
    if "Ed25519" not in type(key).__name__:
        raise ProblemError("is no Ed25519 key", where=path, remedy=remedy.format("genpkey"))
    return key


def payload_of(path: str | Path, signer: str | Path | None) -> bytes:
    """The plain file's bytes, after the signature was verified where there is one or has to be."""
    content, where = read_bytes(path, MAX_BYTES), str(path)
    found = opened(content, where)
    if found is None:
        if signer is None:
            return content
        raise VerificationError(
            "is not signed, and a signature was asked for",
            where=where,
            remedy="Pack the design with --sign",
        )
    if signer is None:
        raise ProblemError(
            "is signed, and there is no key to verify that with",
            where=where,
            remedy="Give the signer's public key (--signer, signer=)",
        )
    verify(*found, signer, where)
    return found[0]
