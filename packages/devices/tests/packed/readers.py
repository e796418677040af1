"""The five readers of packed files on altered ones:
``python packages/devices/tests/packed/readers.py``.

Files of every kind (places of all kinds, regions, the whole earth, signed ones) are altered in
their bytes or in what they say, half of them with a digest (and a signature) that fits.
``om.load_packed``, the client in Node and the reader in C (under sanitizers, where there is a
compiler) have to read the same ones and give the same places, draws and words;
``om.check_packed`` and ``optmech_audit`` have to pass the same ones of those that are read, and no
others. Of the whole earth ``om.Earth.load`` passes what it reads, as it proves its promise too. A
ledger of what is read charges the same in Python and JavaScript, or is refused by both, and charges
no less than the largest log ratio of drawn positions within its radius.
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import optmech_audit as audit
import optmech_devices
from optmech_devices.packed.cbor import Tag, decode, encode
from optmech_devices.packed.file import envelope, signed_bytes

import optmech as om
from optmech.errors import OptmechError
from optmech.spaces.domain import great_circle

sys.path.insert(0, str(Path(__file__).parents[1]))
from packed.native import Native, answers, built, compiler

HERE = Path(__file__).parent
CLIENT = Path(optmech_devices.__file__).parent / "client"
BATCH = 500
SIZES = {70: "I", 71: "Q", 86: "d"}
FORGED = 0.2
"""Share of files that have another promise, and nothing else that cannot be read."""
RADIUS = 0.35
"""Of the ledgers: in units of places, km on the globe."""
STRANGE = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**53 + 1,
    0.0,
    1.0,
    -1.0,
    1e300,
    360.0,
    "",
    "km",
    b"",
    [],
    {},
)


@dataclass
class Source:
    """A file, its design and who signed it."""

    name: str
    content: bytes
    design: Any
    """None of a file for the whole earth, which needs none."""
    path: Path
    """Of the design's file."""
    signed: bool = False


@dataclass
class Key:
    """A pair of keys of Ed25519."""

    private: Any
    pem: Path
    raw: bytes

    @classmethod
    def made(cls, folder: Path) -> Key:
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        own = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        public = own.public_key()
        pem = folder / "key.pem"
        form = forms.PublicFormat.SubjectPublicKeyInfo
        pem.write_bytes(public.public_bytes(forms.Encoding.PEM, form))
        return cls(own, pem, public.public_bytes(forms.Encoding.Raw, forms.PublicFormat.Raw))

    def sign(self, payload: bytes) -> bytes:
        return envelope(payload, self.private.sign(signed_bytes(payload)))

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether a signature of this key is that of a message."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.private.public_key().verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass
class Altered:
    """A file to read."""

    source: Source
    content: bytes
    path: Path
    positions: list[list[float]]
    entropy: list[str]


@dataclass
class Count:
    """What was seen."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def sources(folder: Path) -> list[Source]:
    """The files of the conformance vectors, with their designs."""
    from packed.make_vectors import everywhere, over_places

    out = []
    for name, (problem, bits, outside) in {**over_places(), **everywhere()}.items():
        design, own = om.solve(problem), folder / f"{name}.json"
        design.save(own)
        om.pack(design, folder / f"{name}.omm", bits=bits, outside=outside, max_loss=1)
        content = (folder / f"{name}.omm").read_bytes()
        out.append(Source(name, content, om.Design.load(own), own))
    own = folder / "earth.omm"
    om.Earth.of("ln 2", cell=0.25).save(own)
    out.append(Source("earth", own.read_bytes(), None, own))
    signed = [part for part in out if part.name in ("grid", "north", "earth")]
    return out + [Source(f"signed {s.name}", s.content, s.design, s.path, True) for s in signed]


# -- altering ------------------------------------------------------------------------------------


def sealed(form: str, inner: bytes, rows: bytes) -> bytes:
    head = encode(Tag(55799, [form, inner, rows, bytes(32)]))[:-32]
    return head + hashlib.sha256(head).digest()


def in_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bits flipped, bytes cut, inserted, doubled or replaced."""
    data, place = bytearray(content), rng.randrange(len(content) - 32)
    kind = rng.randrange(6)
    if kind == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[place : place + rng.randrange(1, 40)]
    elif kind == 2:
        data[place:place] = rng.randbytes(rng.randrange(1, 40))
    elif kind == 3:
        data = data[:place]
    elif kind == 4:
        data[place:place] = data[place : place + rng.randrange(1, 40)]
    else:
        data[place] = rng.choice([0x00, 0x1B, 0x5B, 0x7F, 0x9B, 0xBB, 0xDB, 0xFB, 0xFF])
    return bytes(data)


def in_rows(rows: bytes, width: int, rng: random.Random) -> bytes:
    """Units moved between two entries, so that most sums stay as they are; or exchanged entries."""
    data = bytearray(rows)
    a, b = (rng.randrange(len(rows) // width) * width for _ in range(2))
    if rng.random() < 0.5:
        b = min(a + width * rng.randrange(1, 4), len(rows) - width)
    first, second = (int.from_bytes(data[k : k + width], "little") for k in (a, b))
    moved = rng.choice([1, 1, 2, first // 2, first])
    if rng.random() < 0.3:
        first, second = second, first
    elif a != b and moved <= first and second + moved < 1 << 8 * width:
        first, second = first - moved, second + moved
    data[a : a + width] = first.to_bytes(width, "little")
    data[b : b + width] = second.to_bytes(width, "little")
    return bytes(data)


def other(value: Any, rng: random.Random) -> Any:
    """Something else in the place of a value, more often than not of its kind."""
    if rng.random() < 0.15:
        return rng.choice(STRANGE)
    if isinstance(value, bool | None):
        return rng.choice([None, True, False, 1, 0])
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, float(value), value * 2, 2**16, 2**32])
    if isinstance(value, float):
        return other_float(value, rng)
    if isinstance(value, str):
        texts = [value + " ", value[:-1], "plane", "lonlat", "m", "refuse", "nearest", "1e-9"]
        return rng.choice(texts)
    if isinstance(value, bytes):
        return bytes(value[:-1]) if rng.random() < 0.3 else bytes(b ^ 1 for b in value)
    if isinstance(value, Tag):
        return other_array(value, rng)
    if isinstance(value, list):
        return other_list(value, rng)
    return other_map(value, rng)


def other_float(value: float, rng: random.Random) -> float:
    ways = [value * (1 + 2.0**-52), value * (1 + 1e-6), value / 2, -value, value + 1, value + 360]
    found = rng.choice([*ways, value * 1e-300, value * 1000])
    return found if abs(found) < 1e308 else 0.0


def other_array(value: Tag, rng: random.Random) -> Tag:
    code = SIZES.get(value.tag)
    if code is None or not isinstance(value.value, bytes) or rng.random() < 0.1:
        return Tag(rng.choice([70, 71, 86, 64]), value.value)
    count = len(value.value) // struct.calcsize(f"<{code}")
    numbers = list(struct.unpack(f"<{count}{code}", value.value))
    if rng.random() < 0.15 or not numbers:
        numbers = rng.choice([numbers[:-1], numbers * 2, numbers[::-1], []])
    else:
        k = rng.randrange(len(numbers))
        if code == "d":
            numbers[k] = other_float(numbers[k], rng)
        else:
            numbers[k] = rng.choice([*numbers, max(numbers[k] - 1, 0), numbers[k] + 1])
    return Tag(value.tag, struct.pack(f"<{len(numbers)}{code}", *numbers))


def other_list(value: list[Any], rng: random.Random) -> list[Any]:
    out = list(value)
    kind = rng.randrange(5)
    if kind == 0 or not out:
        return [*out, rng.choice([*out, *STRANGE])]
    k = rng.randrange(len(out))
    if kind == 1:
        del out[k]
    elif kind == 2:
        out[k] = rng.choice([float(out[k]) if type(out[k]) is int else out[k], [out[k]], *out])
    else:
        out[k] = other(out[k], rng)
    return out


def other_map(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    out, kind = dict(value), rng.randrange(12)
    if kind == 0 or not out:
        return {**out, rng.choice(["more", "", "aspect", "reach"]): rng.choice(STRANGE)}
    name = rng.choice(sorted(out, key=str))
    if kind == 1:
        del out[name]
    else:
        out[name] = other(out[name], rng)
    return out


def forged(header: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Another promise than the design has, or another distance, or positions moved by less."""
    promises = [dict(part) for part in header["promises"]]
    for part in promises:
        changes: list[dict[str, Any]] = [
            {"epsilon": factor * (part["epsilon"] or 1.0)}
            for factor in (1e-6, 0.5, 0.9, 1 - 1e-7, 1 - 1e-9, 1.1, 3.0)
        ]
        changes += [{"measure": None}, {"kind": "differential_privacy"}, {"delta": 0.1}]
        changes += [{"pairs": pairs} for pairs in ("near", "reached", "joined", "listed")]
        changes += [{"repeats": rule} for rule in ("adds", "complement", "unknown", "none")]
        changes += [{"scope": scope} for scope in ("every point", "cells", "places", "use")]
        if part["measure"] is not None:
            courses = ("straight", "great circle", "flat", "roads", "manhattan", "")
            changes += [{"measure": {**part["measure"], "course": course}} for course in courses]
            changes += [{"measure": {**part["measure"], "unit": unit}} for unit in ("m", "km", "")]
        part |= rng.choice(changes)
    out = {**header, "promises": promises * rng.choice([1, 1, 1, 2])}
    if "snap" in out and rng.random() < 0.3:
        out["snap"] *= rng.choice([0.0, 0.5, 1 - 1e-7, 2.0])
    return out


def in_promises(content: bytes, rng: random.Random) -> bytes:
    """Another promise with a digest that fits, half of the time of other numbers."""
    form, inner, rows, _ = decode(content).value
    header = decode(inner)
    if rng.random() < 0.5:
        rows = in_rows(rows, header.get("width", 8), rng)
    return sealed(form, encode(forged(header, rng)), rows)


def in_words(content: bytes, rng: random.Random) -> bytes:
    """What the file says changed, in one or two places; or said in another order or form."""
    form, inner, rows, _ = decode(content).value
    header = decode(inner)
    # sums of the earth's rings have eight bytes
    width = header.get("width", 8)
    if rng.random() < 0.25:
        return sealed(form, inner, in_rows(rows, width, rng))
    for _ in range(rng.choice([1, 1, 1, 2])):
        header = other_map(header, rng)
    inner = encode(header)
    if rng.random() < 0.05:
        pairs = [encode(name) + encode(value) for name, value in header.items()]
        inner = inner[: 1 if len(pairs) < 24 else 2] + b"".join(reversed(pairs))
    if rng.random() < 0.03:
        form = rng.choice(["optmech-packed/1", "optmech-packed/2", "optmech-packed/5"])
    return sealed(form, inner, rows)


def altered(source: Source, key: Key, rng: random.Random, share: float) -> bytes:
    if rng.random() < share:
        content = in_promises(source.content, rng)
        return key.sign(content) if source.signed else content
    if rng.random() < 0.5:
        try:
            content = in_words(source.content, rng)
        except OptmechError:
            content = in_words(source.content, random.Random(0))
        fits = rng.random() < 0.9
        content = content if fits else content[:-32] + rng.randbytes(32)
    else:
        content = in_bytes(source.content, rng)
        if rng.random() < 0.2 and len(content) > 32:
            content = content[:-32] + hashlib.sha256(content[:-32]).digest()
    if not source.signed:
        return content
    whole = key.sign(content)
    return whole if rng.random() < 0.7 else in_bytes(whole, rng)


# -- what draws are charged ----------------------------------------------------------------------


def charged(found: Any) -> float | str:
    """What a ledger charges a draw of a file, at its own rate or at 1 where it states none."""
    for epsilon in (None, 1.0):
        try:
            return om.Ledger(found, epsilon, RADIUS).per_draw
        except om.ProblemError:
            continue
        except OptmechError:
            break
    return "refused"


def shown(found: Any, rng: random.Random) -> float:
    """The largest log ratio of two positions, or places, within the radius, of some drawn ones."""
    if isinstance(found, om.Earth):
        return of_rings(found, rng)
    if not isinstance(found, om.PackedEverywhere):
        return of_places(found)
    mesh, most = found.mesh, 0.0
    for _ in range(40):
        cell = rng.randrange(len(mesh.triangles))
        corners = mesh.vertices[mesh.triangles[cell]]
        shares = np.array([rng.expovariate(1.0) for _ in corners])
        one = shares @ corners / shares.sum()
        near = rng.choice([corners[rng.randrange(len(corners))], one + step(found, rng)])
        other = one + (near - one) * min(1.0, RADIUS / max(apart(found, one, near), 1e-9))
        if apart(found, one, other) > RADIUS * (1 + 1e-9):
            continue
        try:
            p, q = found.at([one, other])
        except om.ProblemError:
            continue
        most = max(most, largest(p, q))
    return most


def step(found: om.PackedEverywhere, rng: random.Random) -> np.ndarray:
    """Some way off; along roads nowhere, as the nearest road may be another one."""
    wide = 0.0 if found.mesh.vertices.shape[1] == 2 and not found.mesh.is_region else RADIUS
    scale = 111.2 if found.mesh.coordinates == "lonlat" else 1.0
    return np.array([rng.uniform(-wide, wide) / scale for _ in found.mesh.vertices[0]])


def apart(found: om.PackedEverywhere, one: np.ndarray, other: np.ndarray) -> float:
    """The distance of two positions: of roads along the segment that both are matched to."""
    mesh = found.mesh
    if mesh.is_region and mesh.coordinates == "lonlat":
        return float(great_circle(one[None], other[None])[0])
    if mesh.is_region or mesh.vertices.shape[1] == 1:
        return float(np.sqrt(((one - other) ** 2).sum()))
    try:
        places = [found.locate(place.tolist()) for place in (one, other)]
    except om.ProblemError:
        return math.inf
    if None in places or places[0][0] != places[1][0]:
        return math.inf
    (cell, (share, _)), (_, (own, _)) = places
    return abs(share - own) / 2**24 * float(mesh.widths[cell])


def of_places(found: om.PackedMechanism) -> float:
    """Of places; of labels all."""
    domain, rows = found.secrets, found.matrix
    if domain.points is None:
        return max((largest(p, q) for p in rows for q in rows), default=0.0)
    globe = domain.coordinates == "lonlat"
    most = 0.0
    for k, one in enumerate(domain.points):
        if isinstance(domain, om.Grid):
            row, column = np.divmod(np.arange(len(domain)), domain.columns)
            sides = np.column_stack([column - column[k], row - row[k]]) * np.array(domain.cell)
            away = np.hypot(*sides.T)
        elif globe:
            away = great_circle(domain.points, one[None])
        else:
            away = np.sqrt(((domain.points - one) ** 2).sum(axis=1))
        most = max([most, *(largest(rows[k], rows[j]) for j in np.flatnonzero(away <= RADIUS))])
    return most


def of_rings(found: om.Earth, rng: random.Random) -> float:
    """Of a report at two distances from places that are the radius apart."""
    ends = [0.0, *(2 * 6371.0088 * np.arcsin(np.sqrt(found.rings.heights / 2))).tolist()]
    logs = [math.log(density) for density in found.rings.densities]
    most = 0.0
    for _ in range(200):
        far = rng.uniform(0, ends[-1])
        one, other = (bisect.bisect_right(ends, at) - 1 for at in (far, far + RADIUS))
        most = max(most, abs(logs[one] - logs[other]))
    return most


def largest(p: np.ndarray, q: np.ndarray) -> float:
    used = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return float(np.abs(np.log(p[used]) - np.log(q[used])).max())


def undercharged(part: Altered, own: Any, theirs: Any) -> str:
    """What is wrong with the charges of Python and JavaScript of one file, or nothing: they have to
    be the same, and no less than what two positions show."""
    signed = part.source.signed
    if part.source.design is None:
        # what Python reads is proved: JavaScript may charge for more files, and no less
        same = own in ("refused", theirs) or close(own, theirs)
    else:
        same = own == theirs or close(own, theirs)
    if not same:
        return f"Python charges {own}, JavaScript {theirs}"
    if theirs == "refused":
        return ""
    content = decode(part.content).value[2] if signed else part.content
    path = part.path.with_suffix(".charged")
    path.write_bytes(content)
    with mock.patch("optmech_devices.packed.earth._require_proved"):
        found = om.load(path)
    path.unlink()
    most = shown(found, random.Random(part.path.stem))
    return "" if most <= theirs * (1 + 1e-9) else f"{theirs} is charged for {most}"


def close(own: Any, theirs: Any) -> bool:
    """On the globe the largest distance comes from sines of libraries."""
    both = isinstance(own, float | int) and isinstance(theirs, float | int)
    return both and math.isclose(own, theirs, rel_tol=3e-9)


# -- reading -------------------------------------------------------------------------------------


def in_region(
    found: om.PackedEverywhere, positions: list[list[float]], data: list[bytes]
) -> dict[str, Any]:
    """Draws at positions, and at the points of the lattice where reports repeat."""
    number = {label: k for k, label in enumerate(found.observables.labels)}
    draws, places, repeated = list[Any](), list[Any](), list[Any]()
    for k, position in enumerate(positions):
        try:
            place = found.locate(position)
            drawn = found.report(position, data[k % len(data)])
            where = None if place is None else [place[0], *place[1]]
            draws.append([where, -1 if place is None else number[drawn]])
        except om.ProblemError:
            draws.append("refused")
        try:
            point = found.number(position)
            places.append(-1 if point is None else point)
            report = "refused" if point is None else found.report_of(point, data[k % len(data)])
            repeated.append("refused" if point is None else number[report])
        except om.ProblemError:
            places.append("refused")
            repeated.append("refused")
    return {"draws": draws, "places": places, "repeated": repeated}


def in_python(part: Altered, signer: Path | None) -> Any:
    """What ``readers.mjs`` answers, from Python."""
    try:
        found = opened(part, signer)
    except OptmechError:
        return "refused"
    except Exception as error:
        return f"crashed: {error!r}"
    header = found.header
    words = {
        "title": [header.title, header.outside],
        "said": [list(found.protects), list(found.against), found.region, found.guess],
        "promises": [promised(clause) for clause in header.promises],
    }
    if isinstance(found, om.Earth):
        return {**words, **on_earth(found, part), "charge": on_the_globe(part, signer)}
    words["charge"] = charged(found)
    labels = found.observables.labels
    number = {label: k for k, label in enumerate(labels)}
    data = [bytes.fromhex(text)[: found.draw_bytes] for text in part.entropy]
    reports = []
    for k in found._parts.table.columns.tolist():
        where = found.coordinates(labels[k])
        reports.append([k, None if where is None else list(where), found.accuracy(labels[k])])
    if isinstance(found, om.PackedEverywhere):
        at = in_region(found, part.positions, data)
        return {**words, "reports": reports, **at}
    secrets = found.secrets.labels
    draws = [number[found.report(secrets[k * 7 % len(secrets)], own)] for k, own in enumerate(data)]
    places: list[Any] = []
    points = found.secrets.points
    for position in [] if points is None else part.positions:
        try:
            label = found.locate(position[: points.shape[1]])
            places.append(-1 if label is None else found.secrets.index(label))
        except om.ProblemError:
            places.append("refused")
    return {**words, "reports": reports, "draws": draws, "places": places}


def on_the_globe(part: Altered, signer: Path | None) -> float | str:
    """What a file for the whole earth is charged where its promise is proved."""
    try:
        return charged(om.Earth.load(part.path, signer=signer))
    except OptmechError:
        return "refused"


def promised(clause: Any) -> list[Any]:
    """What the reader in C says of a promise."""
    measure = ["", ""] if clause.measure is None else [clause.measure.unit, clause.measure.course]
    words = [clause.kind, clause.scope, clause.pairs, clause.repeats]
    return [*words, *measure, clause.epsilon, clause.delta or 0.0]


def opened(part: Altered, signer: Path | None) -> Any:
    """A file of any kind; of one for the whole earth only its form counts, as that is all that
    other languages decide: whether its promise is kept is asked by ``checked``."""
    if part.source.design is not None:
        return om.load_packed(part.path, signer=signer)
    with mock.patch("optmech_devices.packed.earth._require_proved"):
        return om.Earth.load(part.path, signer=signer)


def on_earth(found: om.Earth, part: Altered) -> dict[str, Any]:
    """The cells of positions, draws for them, and what is said of these."""
    places = [found.locate(position) for position in part.positions]
    data = [bytes.fromhex(text)[: found.draw_bytes] for text in part.entropy]
    draws = [found.report(place, data[k % len(data)]) for k, place in enumerate(places)]
    # a file that is not proved need not have one
    radius = None if found.header.accuracy is None else found.header.accuracy.radius[0]
    reports = [[n, list(found.coordinates(n)), radius] for n in draws]
    return {"reports": reports, "draws": draws, "places": places}


def checked(part: Altered, signer: Path | None) -> bool:
    try:
        if part.source.design is None:
            return om.Earth.load(part.path, signer=signer).check().passed
        return om.check_packed(part.path, part.source.design, signer=signer).passed
    except OptmechError:
        return False


def audited(part: Altered) -> bool:
    """Of a signed file the plain one, as the audit knows no keys."""
    path = part.path
    if part.source.signed:
        payload = decode(part.content).value[2]
        path = part.path.with_suffix(".plain")
        path.write_bytes(payload)
    try:
        audit.judge(str(path), *([] if part.source.design is None else [str(part.source.path)]))
    except audit.Fault:
        return False
    return True


def positions(source: Source, rng: random.Random) -> list[list[float]]:
    """Inside, around and far from the region; corners of floats."""
    if source.design is None:
        poles = [[rng.uniform(-400, 400), rng.choice([-90.0, 90.0])], [180.0, rng.uniform(-80, 80)]]
        return poles + [[rng.uniform(-400, 400), rng.uniform(-90, 90)] for _ in range(6)]
    mechanism = om.load_packed(source.path.with_suffix(".omm"))
    points = getattr(getattr(mechanism, "secrets", mechanism.observables), "points", None)
    if points is None:
        return []
    # what is more than places have is left out where they are asked for; of meshes it is refused
    wide = 0 if isinstance(mechanism, om.PackedEverywhere) else 3 - points.shape[1]
    bounds = getattr(getattr(mechanism, "secrets", None), "bounds", None)
    low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    if bounds is not None:
        low, high = list(bounds[:2]), list(bounds[2:])
    out = [[rng.uniform(2 * a - b - 0.1, 2 * b - a + 0.1) for a, b in zip(low, high, strict=True)]
           for _ in range(6)]  # fmt: skip
    out += [[rng.uniform(-400, 400), rng.uniform(-95, 95)] for _ in range(3)]
    out += [rng.choice([[1e200, 0.0], [2.0**100, 1.0], [0.0, -90.0], [-0.0, 0.0], [180.0, 5e-324]])]
    return [position + [0.5] * wide for position in out]


def batch(
    known: list[Source], key: Key, folder: Path, numbers: range, seed: int, share: float
) -> Iterator[Altered]:
    for number in numbers:
        rng = random.Random(seed * 1_000_003 + number)
        source = known[number % len(known)]
        content = altered(source, key, rng, share)
        path = folder / f"{number}.omm"
        path.write_bytes(content)
        entropy = [rng.randbytes(32).hex() for _ in range(4)]
        yield Altered(source, content, path, positions(source, rng), entropy)


def differing(own: Any, found: Any) -> str:
    """Where Python and C are not of one mind."""
    if not (isinstance(own, dict) and isinstance(found, dict)):
        return f"Python {str(own)[:300]}, C {str(found)[:300]}"
    pairs = [(name, own.get(name), found[name]) for name in found]
    return "; ".join(f"{name}: Python {a!s:.300}, C {b!s:.300}" for name, a, b in pairs if a != b)


def compare(parts: list[Altered], key: Key, count: Count, reader: Native | None) -> None:
    questions = [
        [
            str(part.path),
            key.raw.hex() if part.source.signed else None,
            part.positions,
            part.entropy,
        ]
        for part in parts
    ]
    asked = parts[0].path.with_name("questions.json")
    asked.write_text(json.dumps(questions))
    node = ["node", str(HERE / "readers.mjs"), str(CLIENT), str(asked)]
    found = json.loads(subprocess.run(node, capture_output=True, check=True).stdout)
    for part, javascript in zip(parts, found, strict=True):
        signer = key.pem if part.source.signed else None
        own = json.loads(json.dumps(in_python(part, signer)))
        passed, proved = checked(part, signer), isinstance(own, dict) and audited(part)
        if not isinstance(own, dict) and not part.source.signed:
            proved = audited(part)
        count.seen["read" if isinstance(own, dict) else str(own)[:7]] += 1
        count.seen["passed"] += passed
        where = f"{part.source.name} {part.path.stem}"
        if isinstance(own, dict) and isinstance(javascript, dict):
            charges = own.pop("charge"), javascript.pop("charge")
            count.seen["charged"] += charges[1] != "refused"
            if wrong := undercharged(part, *charges):
                count.wrong.append(f"{where}: {wrong}")
        if own != javascript:
            count.wrong.append(
                f"{where}: Python {str(own)[:300]}, JavaScript {str(javascript)[:300]}"
            )
        if reader is not None:
            count.seen["in C"] += 1
            found = answers(reader, part.path, part.source.signed, part.positions, part.entropy)
            known = {k: own[k] for k in found if k in own} if isinstance(found, dict) else found
            if (known if isinstance(own, dict) else own) != found:
                count.wrong.append(f"{where}: {differing(own, found)}")
        if passed != proved or (passed and not isinstance(own, dict)):
            count.wrong.append(f"{where}: check {passed}, audit {proved}")


def run(
    files: int, seed: int, first: int = 0, keep: Path | None = None, share: float = FORGED
) -> Count:
    """Alter and read ``files`` files, of which a share have another promise."""
    count = Count()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if keep is None else keep
        key, known = Key.made(folder), sources(folder)
        reader = Native(built(folder), key.signed) if compiler() else None
        for begin in range(first, first + files, BATCH):
            numbers = range(begin, min(begin + BATCH, first + files))
            parts = list(batch(known, key, folder, numbers, seed, share))
            compare(parts, key, count, reader)
            for part in parts if keep is None else ():
                part.path.unlink()
        if reader is not None:
            reader.close()
    return count


def main() -> int:
    """0 where all readers agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--keep", type=Path, help="a folder for the files")
    parser.add_argument("--forged", type=float, default=FORGED, help="share of forged promises")
    args = parser.parse_args()
    begun = time.process_time()
    count = run(args.files, args.seed, args.first, args.keep, args.forged)
    print("\n".join(count.wrong))
    seconds = time.process_time() - begun
    words = f"{dict(count.seen)}; readers differ on {len(count.wrong)}"
    print(f"{args.files:,} files, seed {args.seed}: {words}; {seconds:.0f} s")
    return 1 if count.wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    sys.exit(main())
