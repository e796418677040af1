"""Writes the conformance vectors, in a checkout:
``python packages/devices/tests/packed/make_vectors.py``.

``vectors/*.omm`` and ``vectors/vectors.json``: what every reader of packed files has to answer.
They are committed; the tests compare Python and JavaScript with them and do not write them again.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
from optmech_devices.packed.cbor import Tag, decode, encode, typed

import optmech as om

FOLDER = Path(__file__).parent / "vectors"
KEY = bytes(range(32))


Wanted = tuple[om.Problem, int, str]
"""A problem, and with how many bits it is packed for which positions outside."""


def over_places() -> dict[str, Wanted]:
    """One of every kind of places, at every number of bits."""
    rng = np.random.default_rng(1)
    euclidean, haversine = om.distances.euclidean(), om.distances.haversine()
    cells = om.Grid.geographic(4, 5, (16.3, 48.15, 16.45, 48.25))
    weights = rng.gamma(1.0, size=20)
    grid = om.Problem(
        om.Prior(cells, weights / weights.sum()),
        euclidean,
        constraints=[om.MetricPrivacy("ln 2", euclidean)],
        title="A grid over bounds",
    )
    places = rng.uniform((179.9, -17.1), (180.1, -16.9), (9, 2))
    places[:, 0] = (places[:, 0] + 180) % 360 - 180
    domain = om.Domain.geographic([f"p{k}" for k in range(9)], places)
    points = om.Problem(
        om.Prior.uniform(domain),
        haversine,
        constraints=[om.MetricPrivacy("1/5", haversine)],
        title="Points on both sides of 180 degrees",
    )
    h3 = ["881e15b711fffff", "881e15b713fffff", "881e15b715fffff", "881e15b717fffff"]
    hexagons = om.exchange.from_h3(h3)
    hexagonal = om.Problem(
        om.Prior.uniform(hexagons),
        haversine,
        constraints=[om.MetricPrivacy(2, haversine)],
        title="Hexagons",
    )
    labels = om.Problem(
        om.Prior.uniform(om.Domain(["a", 2, 2.5, None, False, ("b", 3)])),
        om.distances.hamming(),
        title="Labels, reported with certainty",
    )
    field = om.Grid(3, 4, [0.7, 1.3], unit="km", origin=[0.1, -0.2])
    plane = om.Problem(
        om.Prior.uniform(field),
        euclidean,
        constraints=[om.MetricPrivacy(1, euclidean)],
        title="A grid in the plane",
    )
    line = om.Problem(
        om.Prior.uniform(om.Domain.range(6, unit="years")),
        euclidean,
        constraints=[om.MetricPrivacy(1, euclidean)],
        title="A line",
    )
    date_line = om.Problem(
        om.Prior.uniform(om.Grid.geographic(3, 4, (178.5, 61.0, 180.0, 62.0))),
        euclidean,
        constraints=[om.MetricPrivacy("1/10", euclidean)],
        title="A grid that ends at 180 degrees",
    )
    around = om.Problem(
        om.Prior.uniform(om.Grid.geographic(3, 4, (0.0, -80.0, 360.0, -60.0))),
        euclidean,
        constraints=[om.MetricPrivacy("1/1000", euclidean)],
        title="A grid around the globe",
    )
    return {
        "around": (around, 24, "nearest"),
        "dateline": (date_line, 24, "nearest"),
        "grid": (grid, 24, "refuse"),
        "points": (points, 48, "nearest"),
        "hexagons": (hexagonal, 32, "refuse"),
        "labels": (labels, 16, "refuse"),
        "line": (line, 16, "refuse"),
        "plane": (plane, 24, "nearest"),
    }


def everywhere() -> dict[str, Wanted]:
    """For every point of a region or of roads: in the plane, and on both sides of 180 degrees."""
    rng = np.random.default_rng(2)
    euclidean, haversine = om.distances.euclidean(), om.distances.haversine()
    corners = om.Domain(
        range(9), [[0.4 * x, 0.25 * y + 0.05] for x in range(3) for y in range(3)], "km"
    )
    outline = [[0.0, 0.0], [1.0, -0.1], [1.3, 0.4], [0.7, 0.9], [-0.1, 0.7]]
    inner = [[0.4, 0.3], [0.8, 0.41]]
    sides = [[0, 1, 5], [1, 6, 5], [1, 2, 6], [2, 3, 6], [3, 5, 6], [3, 4, 5], [4, 0, 5]]
    mesh = om.Mesh(outline + inner, sides, unit="km", degree=2)
    field = om.Problem(
        om.Prior.uniform(corners),
        euclidean,
        constraints=[om.MetricPrivacy("15/2", euclidean, everywhere=mesh)],
        title="Every point of a field",
    )
    points = rng.uniform((179.6, 47.1), (180.3, 47.6), (6, 2))
    places = om.Domain([f"p{k}" for k in range(6)], points, coordinates="lonlat")
    mesh = om.Mesh.grid([179.5, 47.0, 180.4, 47.7], 40, coordinates="lonlat", degree=3)
    globe = om.Problem(
        om.Prior.uniform(places),
        haversine,
        constraints=[om.MetricPrivacy("1/10", haversine, everywhere=mesh)],
        title="Every point around 180 degrees",
    )
    up = om.Domain.geographic(list("abcd"), [[0.4, 60.1], [3.1, 61.8], [2.0, 61.0], [1.0, 60.6]])
    mesh = om.Mesh.grid([0, 60, 4, 62], 60, coordinates="lonlat", degree=2)
    north = om.Problem(
        om.Prior.uniform(up),
        haversine,
        constraints=[om.MetricPrivacy("1/200", haversine, everywhere=mesh)],
        title="Every point of the north",
    )
    # from 179.8 degrees to 180.3; a loop's segments have no width, two roads are side by side, and
    # one is so long that it has parts
    ends = [[179.8, -17.0], [179.95, -16.9], [180.05, -17.1], [180.3, -16.95], [180.1, -16.8]]
    ways = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 1], [2, 5, 6, 2], [0, 7, 2], [0, 2]]
    beside = [[180.05, -17.1], [180.05, -17.1], [179.925, -17.05]]
    lengths = [20, 25, 32.5, 28, 19.5, 1, 1.5, 1, 14.5, 15, 29.25]
    network = om.Network(ends + beside, ways, lengths=lengths, coordinates="lonlat")
    roads = om.Problem(
        network.prior("length"),
        network.distance,
        om.Domain.geographic(range(5), ends),
        constraints=[om.MetricPrivacy("1/16", everywhere=network)],
        title="Every point of roads around 180 degrees",
    )
    crossings = [[x, y] for x in (-1.0, 0.25, 2.0) for y in (0.0, 0.7, 1.9)]
    ways = [[k, k + 1] for k in (0, 1, 3, 4, 6, 7)] + [[k, k + 3] for k in range(6)] + [[0, 4]]
    lengths = [2 * abs(crossings[a][0] - crossings[b][0]) + abs(crossings[a][1] - crossings[b][1])
               for a, b in ways]  # fmt: skip
    network = om.Network(crossings, ways, lengths=lengths, unit="km")
    streets = om.Problem(
        network.prior("crossings"),
        network.distance,
        om.Domain(range(0, 9, 2), crossings[::2], "km"),
        constraints=[om.MetricPrivacy("3/2", everywhere=network)],
        title="Every point of streets in the plane",
    )
    return {
        "field": (field, 16, "refuse"),
        "globe": (globe, 32, "nearest"),
        "north": (north, 24, "nearest"),
        "roads": (roads, 24, "nearest"),
        "streets": (streets, 16, "refuse"),
    }


def packed(wanted: dict[str, Wanted]) -> dict[str, Any]:
    """The mechanisms, whose files are written."""
    FOLDER.mkdir(exist_ok=True)
    return {
        name: om.pack(
            om.solve(problem), FOLDER / f"{name}.omm", bits=bits, outside=outside, max_loss=1
        )
        for name, (problem, bits, outside) in wanted.items()
    }


def said(found: om.PackedMechanism) -> list[Any]:
    """All sentences about a file."""
    return [list(found.protects), list(found.against), found.region, found.guess]


def mesh_vectors(found: om.PackedEverywhere, rng: random.Random) -> dict[str, Any]:
    """Draws at positions, where positions are, reports, and those that repeat of one file."""
    mesh = found.mesh
    low, high = mesh.vertices.min(axis=0).tolist(), mesh.vertices.max(axis=0).tolist()
    wide = [b - a for a, b in zip(low, high, strict=True)]
    corners = mesh.vertices[mesh.triangles]
    edges = ((corners + np.roll(corners, -1, axis=1)) / 2).reshape(-1, 2).tolist()
    positions = mesh.vertices.tolist() + edges
    for stretch in [0.0] * 80 + [0.7] * 60:
        positions.append(
            [rng.uniform(a - stretch * w, b + stretch * w)
             for a, b, w in zip(low, high, wide, strict=True)]
        )  # fmt: skip
    if mesh.coordinates == "lonlat":
        positions += [[x - 360, y] for x, y in positions[-100:]]
        positions += [[rng.uniform(-360, 360), rng.uniform(-90, 90)] for _ in range(60)]
        positions += [[0.0, 90.0], [77.0, -90.0], [0.0, 47.3], [720.0 + low[0], low[1]]]
    draws = []
    for position in positions:
        entropy = rng.randbytes(found.draw_bytes)
        report = found.report(position, entropy)
        number = -1 if report is None else found.observables.index(report)
        draws.append([position, entropy.hex(), number])
    places = [found.locate(position) for position in positions]
    seen = np.flatnonzero(found.matrix.any(axis=0)).tolist()
    labels = found.observables.labels
    repeated, numbers = om.StickyReports(found, KEY), [found.number(p) for p in positions]
    assert found.lattice is not None
    # corners of the box, which a region need not reach, and anywhere
    columns, count = found.lattice.shape[0], math.prod(found.lattice.shape)
    points = [0, columns - 1, count - columns, count - 1]
    points += [rng.randrange(count) for _ in range(30)]
    points += [number for number in numbers if number is not None][:30]
    sticky = []
    for point in points:
        epoch = rng.choice([0, 1, 20_000, 2**33])
        drawn = repeated.entropy(point, epoch)
        report = found.observables.index(found.report_of(point, drawn))
        sticky.append([point, epoch, drawn.hex(), report])
    return {
        "draws": draws,
        "slack": repeated.snap,
        "said": said(found),
        "charge": om.Ledger(found, None, 1).per_draw,
        "places": [
            [position, -1 if number is None else number]
            for position, number in zip(positions, numbers, strict=True)
        ],
        "sticky": sticky,
        "positions": [
            [position, None if place is None else [place[0], *place[1]]]
            for position, place in zip(positions, places, strict=True)
        ],
        "reports": [[k, found.coordinates(labels[k]), found.accuracy(labels[k])] for k in seen],
    }


def refused_meshes(content: bytes) -> dict[str, str]:
    """Files of meshes that no reader may take, with a digest that fits."""
    form, inner, rows, _ = decode(content).value
    header = decode(inner)

    def changed(**entries: Any) -> str:
        body = {**header, "mesh": {**header["mesh"], **entries}}
        head = encode(Tag(55799, [form, encode(body), rows, bytes(32)]))[:-32]
        return (head + hashlib.sha256(head).digest()).hex()

    def without(**entries: Any) -> str:
        body = {name: value for name, value in {**header, **entries}.items() if value is not ...}
        head = encode(Tag(55799, [form, encode(body), rows, bytes(32)]))[:-32]
        return (head + hashlib.sha256(head).digest()).hex()

    corners = np.frombuffer(header["mesh"]["triangles"].value, "<u4").reshape(-1, 3)
    points = np.frombuffer(header["mesh"]["vertices"].value, "<f8").copy()
    bent, far = points.copy(), points.copy()
    points[-1], far[0] = np.nan, -(2.0**101)
    bent[2:4] = 0.9, 0.3
    torn = np.frombuffer(header["mesh"]["rows"].value, "<u4").copy()
    torn[0] = (torn[0] + 1) % (torn.max() + 1)
    control = header["mesh"]["rows"].value
    return {
        "a mesh whose triangles run clockwise": changed(
            triangles=Tag(70, np.ascontiguousarray(corners[:, (0, 2, 1)]).tobytes())
        ),
        "a mesh with a triangle twice": changed(
            triangles=Tag(70, np.vstack([corners[:-1], corners[:1]]).tobytes())
        ),
        "a mesh with a triangle of two corners": changed(
            triangles=Tag(70, np.vstack([corners[:-1], corners[:1, (0, 0, 1)]]).tobytes())
        ),
        "a mesh with a corner of nothing": changed(
            triangles=Tag(70, corners.tobytes()[:-4] + b"\xff\0\0\0")
        ),
        "a mesh with a vertex of no triangle": changed(
            vertices=Tag(86, header["mesh"]["vertices"].value + bytes(16))
        ),
        "a mesh with half a vertex": changed(
            vertices=Tag(86, header["mesh"]["vertices"].value + bytes(8))
        ),
        "a vertex that is no number": changed(vertices=Tag(86, points.tobytes())),
        "a mesh of another degree": changed(degree=header["mesh"]["degree"] + 1),
        "a mesh of degree zero": changed(degree=0),
        "a mesh of degree seven": changed(degree=7),
        "a control point without a row": changed(rows=Tag(70, control[:-4])),
        "a control point with a row of nothing": changed(
            rows=Tag(70, control[:-4] + b"\xff\xff\0\0")
        ),
        "a mesh on a cube": changed(coordinates="cube"),
        "a mesh that says how wide a degree is": changed(aspect=1.0),
        "control points of one edge with two rows": changed(rows=Tag(70, torn.tobytes())),
        "a mesh with a vertex beyond 2^100": changed(vertices=Tag(86, far.tobytes())),
        "a mesh that covers no convex region": changed(vertices=Tag(86, bent.tobytes())),
        "a mesh in degrees and another unit": changed(
            coordinates="lonlat", unit="m", vertices=header["mesh"]["vertices"]
        ),
        "a mesh that says more": changed(more=1),
        "a mechanism of another kind": without(kind="places"),
        "positions that are moved by less than nothing": without(snap=-1.0),
        "positions that nobody knows how far are moved": without(snap=None),
        "a mesh and places": without(secrets=header["reports"]),
        "no mesh": without(mesh=...),
        "a mesh without reports": without(reports=None),
    }


def refused_roads(content: bytes) -> dict[str, str]:
    """Files of roads that no reader may take, with a digest that fits."""
    form, inner, rows, _ = decode(content).value
    header = decode(inner)
    mesh = header["mesh"]
    ends = np.frombuffer(mesh["segments"].value, "<u4")
    lengths, numbers = mesh["lengths"].value, np.frombuffer(mesh["rows"].value, "<u4")

    def changed(**entries: Any) -> str:
        head = encode({**header, "mesh": {**mesh, **entries}})
        head = encode(Tag(55799, [form, head, rows, bytes(32)]))[:-32]
        return (head + hashlib.sha256(head).digest()).hex()

    def with_ends(*of: int) -> Tag:
        return Tag(70, np.array([*ends[:-2], *of], dtype="<u4").tobytes())

    points = np.frombuffer(mesh["vertices"].value, "<f8")
    first = np.frombuffer(lengths, "<f8")[0]
    bad = {
        "a segment of one vertex": {"segments": with_ends(4, 4)},
        "a segment twice": {"segments": with_ends(0, 1)},
        "a segment and its reverse": {"segments": with_ends(1, 0)},
        "a segment to nothing": {"segments": with_ends(0, 9)},
        "half a segment": {"segments": Tag(70, ends.tobytes()[:-4])},
        "no segments": {"segments": Tag(70, b""), "lengths": Tag(86, b""), "rows": Tag(70, b"")},
        "a vertex of no road": {"vertices": Tag(86, points.tobytes() + bytes(16))},
        "half a vertex": {"vertices": Tag(86, points.tobytes() + bytes(8))},
        "a vertex of roads beyond 2^100": {"vertices": typed([2.0**101, *points[1:]], 86)},
        "roads without lengths": {"lengths": None},
        "a length too few": {"lengths": Tag(86, lengths[8:])},
        "a road of no length": {"lengths": Tag(86, bytes(8) + lengths[8:])},
        "a road of a length below 0": {
            "lengths": Tag(86, np.array([-first]).tobytes() + lengths[8:])
        },
        "a road of a length that is no number": {
            "lengths": Tag(86, np.array([np.nan]).tobytes() + lengths[8:])
        },
        "a vertex with two rows": {
            "rows": Tag(70, np.roll(numbers, 1).astype("<u4").tobytes())
        },
        "an end without a row": {"rows": Tag(70, numbers.tobytes()[:-4])},
        "roads of three dimensions": {"dimension": 3},
        "roads of one dimension": {"dimension": 1},
        "roads of a dimension that is a float": {"dimension": 2.0},
        "roads of a degree": {"degree": 1},
        "roads on a cube": {"coordinates": "cube"},
        "roads in degrees and another unit": {"coordinates": "lonlat", "unit": "m"},
        "roads in degrees beyond the pole": {
            "coordinates": "lonlat", "vertices": typed([*points[:-1], 90.5], 86),
        },
        "roads in degrees around the globe twice": {
            "coordinates": "lonlat", "vertices": typed([-361.0, *points[1:]], 86),
        },
    }  # fmt: skip
    out = {name: changed(**entries) for name, entries in bad.items()}
    for kind in ("mesh", "line"):
        head = encode(Tag(55799, [form, encode({**header, "kind": kind}), rows, bytes(32)]))[:-32]
        out[f"roads that are a {kind}"] = (head + hashlib.sha256(head).digest()).hex()
    return out


def vectors(found: om.PackedMechanism, rng: random.Random) -> dict[str, Any]:
    """Draws, positions, sticky bytes and a ledger of one file."""
    labels = found.secrets.labels
    edges = [bytes(found.draw_bytes), b"\xff" * found.draw_bytes]
    draws = []
    for _ in range(60):
        place = rng.randrange(len(labels))
        entropy = edges.pop() if edges else rng.randbytes(found.draw_bytes)
        report = found.observables.index(found.report(labels[place], entropy))
        draws.append([place, entropy.hex(), report])
    seen = np.flatnonzero(found.matrix.any(axis=0)).tolist()
    reported = [(number, found.observables.labels[number]) for number in seen]
    out: dict[str, Any] = {
        "draws": draws,
        "reports": [[k, found.coordinates(o), found.accuracy(o)] for k, o in reported],
        "positions": [],
        "ledger": None,
    }
    if found.secrets.points is not None:
        box = np.array([found.coordinates(label) for label in labels])
        low, high = box.min(axis=0), box.max(axis=0)
        wide = high - low + 1e-3
        if wide[0] > 180:
            low, high, wide = np.array([-180.0, low[1]]), np.array([180.0, high[1]]), wide / 100
        positions = [[rng.uniform(a - w, b + w) for a, b, w in zip(low, high, wide, strict=True)]
                     for _ in range(40)] + box.tolist()  # fmt: skip
        # far away, on the other side of the globe, at a pole, and a turn further
        positions += [[rng.uniform(-360, 360) for _ in low] for _ in range(40)]
        positions = [[x, *(min(max(y, -90.0), 90.0) for y in rest)] for x, *rest in positions]
        positions += [[2.0**100, *rest] for _, *rest in positions[:2]]
        positions += [[x - 360, *rest] for x, *rest in positions[:5]]
        if getattr(found.secrets, "bounds", None) is not None:
            west, south, east, north = found.secrets.bounds
            # the meridian where both ends meet, on both sides of the region
            positions += [
                [x + turn, y]
                for x in (west, east)
                for turn in (0, -360, 360)
                for y in (south, north, -90.0, -50.0, 0.0, 50.0, 90.0)
            ]
        for position in positions:
            place = found.locate(position)
            out["positions"].append([position, -1 if place is None else labels.index(place)])
    sticky = om.StickyReports(found, KEY)
    out["sticky"] = [
        [place, epoch, sticky.entropy(place, epoch).hex()]
        for place, epoch in ((0, 0), (1, 20_000), (len(labels) - 1, 2**33))
    ]
    out["said"] = said(found)
    if found.header.rate is not None:
        ledger = om.Ledger(found, None, 3.0)
        for place in (0, 1, 1, 2):
            ledger.enter(labels[place])
        out["ledger"] = {
            "epsilon": ledger.epsilon,
            "below": ledger.epsilon * (1 - 1e-9),
            "radius": 3.0,
            "places": [0, 1, 1, 2],
            "plain": ledger.plain,
            "rows": ledger.rows,
            "composed": ledger.composed,
            "state": ledger.to_dict(),
        }
    return out


def refused(content: bytes) -> dict[str, str]:
    """Files that no reader may take, most with a digest that fits."""

    def sealed(head: bytes) -> bytes:
        return head + hashlib.sha256(head).digest()

    _, inner, rows, _ = decode(content).value
    header = decode(inner)

    def changed(rows: bytes = rows, **entries: Any) -> bytes:
        body = {**header, **{name.replace("_", " "): value for name, value in entries.items()}}
        body = {name: value for name, value in body.items() if value is not ...}
        item = Tag(55799, ["optmech-packed/4", encode(body), rows, bytes(32)])
        return sealed(encode(item)[:-32])

    cells = header["secrets"]
    places = {
        "kind": "points",
        "labels": list(range(20)),
        "dimension": 2,
        "points": typed([0.5] * 40, 86),
        "unit": "km",
        "coordinates": "lonlat",
    }
    nested: Any = 0
    for _ in range(9):
        nested = [nested]
    head = content[:-32]
    bad = {
        "a flipped bit": content[:200] + bytes([content[200] ^ 1]) + content[201:],
        "a file that was cut": content[:-1],
        "a byte too many": content + b"\0",
        "nothing": b"",
        "another digest": head + bytes(32),
        **{
            f"format {version}": sealed(head.replace(b"packed/4", f"packed/{version}".encode()))
            for version in (1, 2, 3, 5)
        },
        **{
            f"a promise with {name} {value!r}": changed(
                promises=[{**header["promises"][0], name: value}]
            )
            for name, value in {
                "scope": "all",
                "pairs": "some",
                "repeats": "seldom",
                "epsilon": -1.0,
                "delta": 1,
                "bound": "1",
                "limit": -0.5,
                "measure": {"name": "x", "unit": "km", "course": "up"},
                "details": {"count": -1},
                "kind": None,
            }.items()
        },
        "a promise of another form": changed(promises=[{"kind": "metric_privacy"}]),
        "details of a promise that are a list": changed(
            promises=[{**header["promises"][0], "details": {"near": [1.0]}}]
        ),
        "another kind": changed(kind="mesh"),
        "no kind": changed(kind=...),
        "a prior about no place": changed(prior={**header["prior"], "places": 0}),
        "a prior without an entropy": changed(prior={**header["prior"], "entropy": None}),
        "an objective of no name": changed(loss={**header["loss"], "objective": "least"}),
        "a length that is not the shortest": sealed(head[:3] + b"\x98\x04" + head[4:]),
        "an unknown key": changed(more=1),
        "a missing key": changed(reach=...),
        "bits of another number": changed(bits=20),
        "bits that are a float": changed(bits=24.0),
        "another width": changed(width=4),
        "columns in no order": changed(columns=Tag(70, header["columns"].value[::-1])),
        "a column of nothing": changed(
            columns=Tag(70, header["columns"].value[:-4] + b"\xff\xff\0\0")
        ),
        "a row for too few secrets": changed(row_of=Tag(70, header["row of"].value[:-4])),
        "a row of nothing": changed(row_of=Tag(70, header["row of"].value[:-4] + b"\xff\xff\0\0")),
        "a row beyond all memory": changed(
            row_of=Tag(70, header["row of"].value[:-4] + b"\xff" * 4)
        ),
        "a row that is no distribution": changed(rows=bytes([rows[0] ^ 1]) + rows[1:]),
        "too few rows": changed(rows=rows[:-3]),
        "an accuracy of other columns": changed(
            accuracy={**header["accuracy"], "radius": Tag(86, bytes(8))}
        ),
        "an accuracy that is not finite": changed(
            accuracy={
                **header["accuracy"],
                "radius": Tag(86, b"\0\0\0\0\0\0\xf8\x7f" * (len(header["columns"].value) // 4)),
            }
        ),
        "a reach below zero": changed(reach=-1.0),
        "positions outside that go anywhere": changed(outside="anywhere"),
        "places of no kind": changed(secrets={**header["secrets"], "kind": "cube"}),
        "a grid without rows": changed(secrets={**header["secrets"], "rows": 0}),
        "a grid of too many cells": changed(
            secrets={**header["secrets"], "rows": 2**16, "columns": 2**16}
        ),
        "bounds of other cells": changed(
            secrets={**cells, "bounds": typed([16.3, 48.1, 16.45, 48.2], 86)}
        ),
        "bounds that are no box": changed(
            secrets={**cells, "bounds": typed([16.45, 48.1, 16.3, 48.2], 86)}
        ),
        "cells over bounds that are not in km": changed(secrets={**cells, "unit": "m"}),
        "cells over bounds from elsewhere": changed(
            secrets={**cells, "origin": typed([1.0, 0.0], 86)}
        ),
        "cells that vanish beside their origin": changed(
            secrets={**cells, "bounds": None, "origin": typed([1e30, 0.0], 86)}
        ),
        "cells beyond 2^100": changed(
            secrets={**cells, "bounds": None, "cell": typed([1e200, 1.0], 86)}
        ),
        **{
            f"places {name}": changed(secrets={**places, **entries})
            for name, entries in {
                "that are equal as numbers": {"labels": [True, 1.0, *range(2, 20)]},
                "with lists of equal numbers": {"labels": [[0, 1], [False, 1.0], *range(2, 20)]},
                "with a large number twice": {"labels": [2**60, 2.0**60, *range(2, 20)]},
                "with labels nine levels deep": {"labels": [nested, *range(1, 20)]},
                "in degrees and another unit": {"unit": "m"},
                "in degrees and no unit": {"unit": ""},
                "with an aspect": {"aspect": 1.0},
                "beyond the pole": {"points": typed([0.0, 91.0] * 20, 86)},
                "beyond 2^100": {"coordinates": "plane", "points": typed([1e200] * 40, 86)},
                "in no coordinates": {"coordinates": "globe"},
                "of three coordinates in degrees": {
                    "dimension": 3,
                    "points": typed([0.0] * 60, 86),
                },
            }.items()
        },
        "a title that is a number": changed(title=1),
        "a loss that is no float": changed(loss={**header["loss"], "packed": 1}),
        "a digest of the design that is too short": changed(design=bytes(31)),
    }
    return {name: part.hex() for name, part in bad.items()}


def earth_vectors(earth: om.Earth, rng: random.Random) -> dict[str, Any]:
    """Positions and cells, draws, reports and sticky bytes, as ``files`` of vectors.json has them;
    some draws are on both sides of a ring's sum, or even everywhere."""
    positions = [[0.0, 90.0], [10.0, -90.0], [180.0, 0.0], [-180.0, 0.0], [-1e-20, 1e-300],
                 [359.9999999999, 89.99999], [540.0, -89.99999], [-720.25, 12.0],
                 [2.0**100, 3.0]]  # fmt: skip
    for _ in range(200):
        latitude = math.degrees(math.asin(rng.uniform(-1, 1)))
        positions.append([rng.uniform(-400, 400), latitude])
    places = [earth.locate(position) for position in positions]
    draws = []
    for k, place in enumerate(places * 3):
        drawn = bytearray(rng.randbytes(earth.draw_bytes))
        if k % 3 == 1:
            edge = rng.choice([*earth.rings.sums, 2**64 - 1, 0]) - rng.randrange(2)
            drawn[:8] = (edge % 2**64).to_bytes(8, "little")
        if k % 11 == 1:
            drawn[8:] = rng.choice([b"\0", b"\xff"]) * 11
        draws.append([place, drawn.hex(), earth.report(place, bytes(drawn))])
    sticky = om.StickyReports(earth, KEY)
    reports = sorted({report for _, _, report in draws})[::9]
    epochs = [0, 1, 19_000, 2**64 - 1]
    return {
        "draws": draws,
        "positions": [list(pair) for pair in zip(positions, places, strict=True)],
        "reports": [[n, list(earth.coordinates(n)), earth.accuracy(n)] for n in reports],
        "sticky": [
            [place, str(epoch), sticky.entropy(place, epoch).hex()]
            for place in places[:5]
            for epoch in epochs
        ],
    }


def main() -> None:
    """Writes the files."""
    earth = om.Earth.of("ln 2", cell=0.25)
    earth.save(FOLDER / "earth.omm")
    own = {"key": KEY.hex(), "earth.omm": earth_vectors(earth, random.Random(8))}
    (FOLDER / "earth.json").write_text(json.dumps(own, indent=None) + "\n")
    rng = random.Random(5)
    made, meshes = packed(over_places()), packed(everywhere())
    body = {
        "key": KEY.hex(),
        "files": {f"{name}.omm": vectors(found, rng) for name, found in made.items()},
        "meshes": {f"{name}.omm": mesh_vectors(found, rng) for name, found in meshes.items()},
        "refused": {
            **refused((FOLDER / "grid.omm").read_bytes()),
            **refused_meshes((FOLDER / "field.omm").read_bytes()),
            **refused_roads((FOLDER / "streets.omm").read_bytes()),
        },
    }
    (FOLDER / "vectors.json").write_text(json.dumps(body, indent=None) + "\n")


if __name__ == "__main__":
    main()
