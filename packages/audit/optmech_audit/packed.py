"""Packed mechanisms, against the design that they were packed from.

One item of CBOR (docs/packed.md): 55799([format, header, rows, digest]). Whatever follows from
the design is made again here, in the words and bytes of a file, and compared; figures that
machines round differently are compared to nine digits.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from fractions import Fraction

from optmech_audit.cbor import Typed, array, cbor, depth, parsed
from optmech_audit.designs import Verdict, promises_of
from optmech_audit.document import (
    FORMAT,
    Body,
    Table,
    fields,
    indices,
    keys,
    listing,
    members,
    one_of,
    part_of,
    read,
    reals,
    stream_of,
    text,
    whole,
)
from optmech_audit.mechanisms import Mechanism, read_mechanism
from optmech_audit.numbers import Fault, need, paired, real, rounded_up, transposed
from optmech_audit.places import DEGREE_KM, Places, between, spans
from optmech_audit.promises import clauses_of, objective
from optmech_audit.regions import Everywhere, Region
from optmech_audit.statements import Statement

PACKED = b"\xd9\xd9\xf7\x84\x70optmech-packed/"
FORMAT_NUMBER = b"4"
COMMON = "kind title promises prior loss design outside accuracy"
NUMBERED = f"{COMMON} bits width reports columns"
HEADERS = {
    "places": f"{NUMBERED} secrets reach row-of",
    "mesh": f"{NUMBERED} mesh snap",
    "network": f"{NUMBERED} mesh snap",
    "earth": f"{COMMON} bands heights snap",
}
PACKED_WORDS = "title, date of the prior, whether positions outside are refused"
QUANTILE = 0.95
SAME = 1e-9  # of figures that rest on cosines
MOST_PLACES, MOST_COLUMNS, DEEPEST = 2**16, 2**15, 8


def whole_array(value: object, most: int) -> list[int]:
    return indices(array(value, 70), most)


def require_same(head: Body, own: Body, source: str = "design") -> None:
    """Raise Fault where an entry is not, byte by byte, what follows from the design."""
    for name, value in own.items():
        need(cbor(head[name]) == cbor(value), f"{name} is not that of the {source}")


def require_near(said: object, own: float | None, what: str) -> None:
    """Fail where a figure, which machines round differently, is not that of the design."""
    right = said is None if own is None else math.isclose(real(said), own, rel_tol=SAME)
    need(right, f"{what} is not that of the design")


def content_of(path: str, most: int) -> bytes:
    with stream_of(path, most) as stream:
        return part_of(stream, most + 1)


def opened(content: bytes) -> tuple[Body, bytes]:
    """The header of a file, which has the entries of its kind, and its rows."""
    need(content.startswith(PACKED), "is no plain packed mechanism")
    start = len(PACKED) + 1
    version = content[len(PACKED) : start]
    need(version not in (b"1", b"2", b"3"), "is of a format that is read no more: pack it again")
    need(version == FORMAT_NUMBER, "is of an unknown format")
    inner, rows, digest = parsed(content[start:], 3)
    need(digest == hashlib.sha256(content[:-32]).digest(), "the digest does not match the content")
    if not isinstance(inner, bytes) or not isinstance(rows, bytes):
        raise Fault("is not a packed mechanism")
    again = b"".join(map(cbor, (inner, rows, digest)))
    need(again == content[start:], "is not in the one form that is written")
    (head,) = parsed(inner)
    need(cbor(head) == inner, "is not in the one form that is written")
    entries = HEADERS[one_of(fields(head)["kind"], tuple(HEADERS), "the kind")]
    wanted = sorted(name.replace("-", " ") for name in entries.split())
    if not isinstance(head, dict) or sorted(head) != wanted:
        raise Fault("the header is missing, or has other entries")
    text(head["title"], "the title")
    return head, rows


def judge_packed(path: str, design: str) -> Verdict:
    """The design's statement on the packed numbers, and what the file says of both."""
    head, rows = opened(content_of(path, 64 * 2**20))
    need(head["kind"] != "earth", "is a file for the whole earth, which has no design")
    body = read(design)
    mesh = any("everywhere" in c for c in promises_of(body))
    need(body["format"] == FORMAT and mesh == (head["kind"] != "places"), "another kind of design")
    one_of(head["outside"], ("refuse", "nearest"), "what is done outside")
    own = {name: body[name] for name in ("mechanism", "problem")}
    written = json.dumps(own, sort_keys=True, separators=(",", ":")).encode()
    require_same(head, {"design": hashlib.sha256(written).digest()})
    judge = judge_packed_mesh if head["kind"] == "mesh" else judge_packed_places
    lines = judge(head, rows, body)
    return lines, f"{PACKED_WORDS}; and the design itself"


def judge_packed_places(head: Body, rows: bytes, body: Body) -> list[str]:
    """Judge a mechanism on places, or on a line or roads, whose vertices are the places of the
    statement."""
    lines: list[str] = []
    stated, problem = Statement(body["problem"], lines), fields(body["problem"])
    if "mesh" in head:
        head = written_roads(head, stated)
    else:
        require_same(head, {"secrets": written_places(problem["secrets"], stated.secrets)})
        require_near(head["reach"], reach_of(stated.secrets), "reach")
    mechanism = packed_rows(head, rows, stated.n, stated.m)
    same_reports(head, problem, stated)
    lines += stated.check(mechanism)
    original = read_mechanism(body["mechanism"], stated.n, stated.m)
    before, after = (stated.value(p) for p in (original, mechanism))
    sign = -1 if stated.objective == "distortion" else 1
    change = (after - before) / abs(before) if before else after - before
    figures = {
        "objective": objective(problem["objective"]),
        "design": sign * float(rounded_up(before)),
        "packed": sign * float(rounded_up(after)),
        "increase": float(rounded_up(change)),
    }
    require_same(head, {"loss": figures})
    masses = [
        [p * row[o] / (1 << mechanism.bits) for o in whole_array(head["columns"], stated.m)]
        for p, row in paired(map(float, stated.prior), mechanism.rows)
    ]
    same_promises(head, problem, stated, masses)
    check_accuracy(head, stated, masses)
    lines.append(f"packed over 2^{mechanism.bits}: objective {sign * float(after):.15g}")
    lines.append(f"relative change from the design {float(change):.3g}")
    return lines


def written_roads(head: Body, stated: Statement) -> Body:
    """The header with the rows of the vertices; the network of the design is the file's too."""
    if stated.roads is None:
        raise Fault("is of another kind of design")
    plain, roads = fields(stated.roads[0]), stated.roads[1]
    ends = [k for a, b, _ in roads.steps for k in (a, b)]
    vertices = [reals(v) for v in listing(plain["vertices"])]
    own = {
        "segments": Typed(ends, 70),
        "dimension": len(vertices[0]),
        "lengths": None if roads.line else Typed(map(float, reals(plain["lengths"])), 86),
    }
    longest = float(max(length for *_, length in roads.steps))
    most = max(abs(v) for p in vertices for v in p)
    line = longest * (2.0**-24 + 2.0**-49) + most * 2.0**-50
    require_near(head["snap"], line if roads.line else longest * 2.0**-24, "snap")
    return with_rows(head, "network", plain, ends, own)


def with_rows(head: Body, kind: str, plain: Body, control: list[int], own: Body) -> Body:
    """The header with the rows of a mesh's control points, which the file has for every corner of
    its cells; its mesh has to be that of the design, with its ``own`` entries beside those of every
    mesh."""
    points = (v for p in listing(plain["vertices"]) for v in reals(p))
    unit = "km" if plain["coordinates"] == "lonlat" else plain["unit"]
    own |= {"vertices": Typed(points, 86), "unit": unit, "coordinates": plain["coordinates"]}
    mesh = keys(head["mesh"], " ".join([*own, "rows"]))
    row_of = dict(paired(control, whole_array(mesh["rows"], len(control))))
    rows = Typed((row_of[k] for k in control), 70)
    require_same(head, {"kind": kind, "mesh": {**own, "rows": rows}})
    return {**head, "row of": Typed((row_of[k] for k in range(len(row_of))), 70)}


def judge_packed_mesh(head: Body, rows: bytes, body: Body) -> list[str]:
    """The gradients of the packed numbers on the design's mesh, what they are at the places, the
    loss, and how far positions are moved (docs/packed.md, "Mechanisms for every point")."""
    design = Everywhere(body)
    region, problem = design.region, fields(body["problem"])
    stated = fields(next(c for c in promises_of(body) if "everywhere" in c)["everywhere"])
    vertices = [reals(p, 2) for p in listing(stated["vertices"])]
    control = [k for part in region.control for k in part]
    triangles = Typed((k for corners in region.triangles for k in corners), 70)
    own = {"triangles": triangles, "degree": region.degree}
    head = with_rows(head, "mesh", stated, control, own)
    mechanism = packed_rows(head, rows, region.count, design.stated.m)
    same_reports(head, problem, design.stated)
    lines = [region.words, *design.check(mechanism)]
    if design.mechanism is None:
        raise Fault("is of a design without a mechanism")
    before, after = map(design.expected, (design.mechanism, mechanism))
    loss = keys(head["loss"], "objective design packed increase")
    need(loss["objective"] == "expected_loss", "the objective is another one")
    for name, found in (("packed", after), ("design", before)):
        known = [float(rounded_up(end)) for end in found]
        need(real(loss[name]) in known, f"the loss, {name}, is another one")
    change = after.high - before.low
    if before.low:
        change /= before.low if change > 0 else before.high
    # of nothing but the rounding of the sums
    least = Fraction(1, 2**250)
    right = abs(Fraction(real(loss["increase"])) - rounded_up(change)) <= least
    need(right, "the increase is another one")
    masses = []
    for (places, weights), mass, _ in design.places():
        unit = float(mass) / (sum(weights) << mechanism.bits)
        columns = whole_array(head["columns"], design.stated.m)
        own_rows = [mechanism.rows[k] for k in places]
        masses.append(
            [unit * sum(w * row[o] for w, row in paired(weights, own_rows))
             for o in columns]
        )  # fmt: skip
    require_near(head["snap"], moved_by(region, vertices), "snap")
    same_promises(head, problem, design.stated, masses)
    check_accuracy(head, design.stated, masses)
    lines.append(f"packed over 2^{mechanism.bits}: loss {float(after.high):.15g}")
    outside = "; others count as the nearest point of its border" * (head["outside"] == "nearest")
    lines.append(f"positions of the region are moved by at most {head['snap']}{outside}")
    return lines


def packed_rows(head: Body, rows: bytes, n: int, m: int) -> Mechanism:
    """Entries of ``width`` bytes, little-endian; rows that several secrets share stand once."""
    bits, width = whole(head["bits"], 49), whole(head["width"], 8)
    need(bits in (16, 24, 32, 48) and width in (bits // 8, bits // 8 + 1), "bits out of range")
    columns, row_of = whole_array(head["columns"], m), whole_array(head["row of"], n)
    need(bool(columns) and sorted(set(columns)) == columns, "columns are out of order")
    need(len(columns) <= MOST_COLUMNS and len(row_of) == n, "too many columns, or rows for others")
    count, step = max(row_of) + 1, width * len(columns)
    need(set(row_of) == set(range(count)), "a row is used by no secret")
    need(len(rows) == step * count, "the rows have another length")
    found, certain = [], False
    for at in range(0, len(rows), step):
        out = [0] * m
        for o, k in paired(columns, range(at, at + step, width)):
            out[o] = int.from_bytes(rows[k : k + width], "little")
        need(sum(out) == 1 << bits, "a row does not sum to one")
        certain |= 1 << bits in out
        found.append(out)
    need(certain == (width > bits // 8), "entries are wider than they need be")
    return Mechanism(bits, [found[row] for row in row_of])


def same_reports(head: Body, problem: Body, stated: Statement) -> None:
    reports = head["secrets"] if head["reports"] is None else head["reports"]
    own = written_places(problem["observables"], stated.observables)
    require_same({"reports": reports}, {"reports": own})


def written_places(plain: object, places: Places) -> Body:
    """Places as a packed file has them, from those of a design."""
    stated = fields(plain)
    need(len(places.labels) <= MOST_PLACES, "too many places")
    if "grid" in stated:
        rows, columns = listing(stated["grid"], 2)
        sides = {side: Typed(reals(stated[side], 2), 86) for side in ("cell", "origin")}
        bounds = None if places.bounds is None else Typed(places.bounds, 86)
        return {"kind": "grid", "rows": rows, "columns": columns, **sides, "unit": places.unit,
                "bounds": bounds}  # fmt: skip
    need(all(depth(label) <= DEEPEST for label in listing(stated["labels"])), "a label is too deep")
    if places.points is None:
        return {"kind": "labels", "labels": stated["labels"], "unit": places.unit}
    points = Typed((v for p in places.points for v in p), 86)
    names = [v for v in places.labels if isinstance(v, str) and re.fullmatch("8[0-9a-f]{14}", v)]
    if places.globe and len(names) == len(places.labels):  # the numbers of cells of H3
        cells = Typed((int(name, 16) for name in names), 71)
        return {"kind": "h3", "cells": cells, "points": points}
    return {
        "kind": "points",
        "labels": stated["labels"],
        "dimension": len(places.points[0]),
        "points": points,
        "unit": "km" if places.globe else places.unit,
        "coordinates": stated["coordinates"],
    }


def same_promises(head: Body, problem: Body, stated: Statement, masses: Table) -> None:
    """What is said of constraints and prior, as it follows from the design and the packed numbers;
    ``masses`` are those of secrets and columns together."""
    require_same(head, {"promises": clauses_of(problem["constraints"], stated)})
    prior = keys(head["prior"], "places entropy seen blind date")
    need(prior["date"] is None or isinstance(prior["date"], str), "the date is no text")
    require_same({"prior": prior["places"]}, {"prior": stated.n})
    weights = list(map(float, stated.prior))
    figures = {
        "entropy": abs(math.fsum(p * math.log2(p) for p in weights if p)),
        "seen": math.fsum(map(max, transposed(masses))),
        "blind": max(weights),
    }
    for name, figure in figures.items():
        right = math.isclose(real(prior[name], 0), figure, rel_tol=SAME, abs_tol=SAME**2)
        need(right, f"prior, {name}, is not that of the design")


def check_accuracy(head: Body, stated: Statement, masses: Table) -> None:
    """Every radius is the least within which a secret lies with probability ``quantile``, given a
    report; ``masses`` are those of secrets and columns together."""
    secrets, reports = stated.secrets, stated.observables
    a, b = secrets.points, reports.points
    if a is None or b is None or (secrets.globe, len(a[0])) != (reports.globe, len(b[0])):
        need(head["accuracy"] is None, "an accuracy of places without common coordinates")
        return
    quantile, within = members(head["accuracy"], "quantile radius")
    need(quantile == QUANTILE, "the quantile is another one")
    columns, radii = whole_array(head["columns"], stated.m), array(within, 86)
    need(len(radii) == len(columns), "an accuracy of other columns")
    scale = 1000 if secrets.globe or secrets.bounds is not None else 1
    half = scale * math.hypot(*secrets.size[2:]) / 2 if secrets.size is not None else 0.0
    name = "haversine" if secrets.globe else "euclidean"
    for o, radius, own in zip(columns, radii, transposed(masses), strict=True):
        away = [scale * between(name, p, b[o]) + half for p in a]
        slack, wanted = SAME * radius, QUANTILE * math.fsum(own)
        reached = math.fsum(v for v, d in paired(own, away) if d <= radius + slack)
        closer = math.fsum(v for v, d in paired(own, away) if d < radius - slack)
        right = any(abs(d - radius) <= slack for d in away)
        right &= wanted * (1 - SAME) <= reached
        right &= closer <= wanted * (1 + SAME) if wanted else radius + slack >= max(away)
        need(right, "accuracy is not that of the design")


def reach_of(places: Places) -> float | None:
    """The largest distance from a place to its nearest neighbour, in degrees on the globe."""
    points = places.points
    if points is None or places.size is not None or len(points) < 2:
        return None
    name, degree = ("haversine", DEGREE_KM) if places.globe else ("euclidean", 1.0)
    return max(
        min(between(name, p, q) for j, q in enumerate(points) if j != k) / degree
        for k, p in enumerate(points)
    )


def moved_by(region: Region, vertices: Table) -> float:
    """How far the weights of a position may be from it (theory, "Packed meshes"), in floats that
    err by far less than the last term allows."""
    wide = sum((high - low) ** 2 for low, high in spans(vertices))
    most = 0.0
    for corners in region.triangles:
        a, b, c = (vertices[k] for k in corners)
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        longest = max((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in ((a, b), (b, c), (c, a)))
        need(longest <= 2.0**18 * area and wide <= 2.0**30 * area, "a triangle is too thin")
        most = max(most, math.sqrt(longest) * (2.0**-23 + 2.0**-29 + 2.0**-46 * wide / area))
    return (most + 2.0**-43) * 111.2 if region.globe else most
