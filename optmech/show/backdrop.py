"""Lines behind a map: coasts, districts or roads of any GeoJSON, simplified to a bounded size;
and a mechanism for every point of a region, evaluated on a lattice: what is drawn of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Bools, Floats, ends_of
from optmech.base.read_only import record
from optmech.base.storage import path_of
from optmech.errors import ProblemError
from optmech.reading.bounded import MAX_BYTES, expanded, translated
from optmech.reading.data import DataFile
from optmech.spaces.domain import EARTH_RADIUS_KM
from optmech.spaces.domain_arguments import Box
from optmech.spaces.layout import Plane, plane_of, plane_of_degrees
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.prior import Prior
from optmech.spaces.sphere import INWARD

MOST = 20_000
"""Corners of a backdrop."""
_MOST_GIVEN = 5_000_000
_FINEST = 1 / 4000
"""Share of the longer side of the picture that nobody can see."""
_COARSER = 1.6
_DEEPEST = 12
_COLLECTIONS = {"FeatureCollection": "features", "GeometryCollection": "geometries"}
_DEPTHS = {"Point": 0, "MultiPoint": 1, "LineString": 0, "MultiLineString": 1, "Polygon": 1,
           "MultiPolygon": 2}  # fmt: skip
"""How deep the lines, rings and points of a geometry lie in its coordinates."""
Source = str | Path | Mapping[str, Any] | Any
"""A file of GeoJSON (also .gz, .bz2, .xz), ``package:resource`` of an installed package, the
content of such a file, or whatever has a ``__geo_interface__`` in degrees, as GeoPandas and shapely
have."""


@record
class Backdrop:
    """Lines in longitude and latitude, each an array (k, 2); points are lines of length 0."""

    lines: tuple[Floats, ...]
    tolerance: float
    """Kilometres by which a line may lie off; 0 where nothing was left out."""
    given: int
    """Corners before lines were cut off and simplified."""

    @property
    def corners(self) -> int:
        """Corners of all lines."""
        return sum(map(len, self.lines))


def backdrop_of(source: Source, box: Box) -> Backdrop:
    """The lines of a source within ``box`` = (west, south, east, north) in degrees, simplified to
    at most 20,000 corners.

    Outlines of polygons, lines and points are taken, whatever they stand for.

    Raises
    ------
    ProblemError
        On what is no GeoJSON, has none of these or more than five million corners, or lies
        elsewhere.
    """
    name, rings = _rings(source)
    given = sum(map(len, rings))
    west, south, east, north = box
    inside = [part for ring in rings for part in _clipped(ring, box)]
    if not inside:
        whole = np.vstack(rings)
        (x0, y0), (x1, y1) = whole.min(axis=0), whole.max(axis=0)
        raise ProblemError(
            f"lies at {x0:.4g} to {x1:.4g}, {y0:.4g} to {y1:.4g}, and the design at {west:.4g} to "
            f"{east:.4g}, {south:.4g} to {north:.4g} (longitude, latitude)",
            where=name,
            remedy="Give a backdrop of the same place, in longitude and latitude",
        )
    scale = np.array([np.cos(np.radians((south + north) / 2)), 1.0])
    tolerance = _FINEST * float(max((east - west) * scale[0], north - south))
    lines = [_simplified(part, scale, tolerance) for part in inside]
    while sum(map(len, lines)) > MOST:
        tolerance *= _COARSER
        # what is shorter than can be told is a point: of these the last go first
        lines = [_simplified(part, scale, tolerance) for part in inside]
        lines = [
            part
            for part in lines
            if len(part) > 2 or np.ptp(part * scale, axis=0).max() > tolerance
        ]
    return Backdrop(tuple(lines), float(np.radians(tolerance) * EARTH_RADIUS_KM), given)


def require_backdrop(source: Source) -> None:
    """Raise ProblemError on what ``backdrop_of`` could read for no place at all."""
    _rings(source)


def _rings(source: Source) -> tuple[str, list[Floats]]:
    """What a source is called, and its lines."""
    name, content = _content(source)
    with translated(name, "is not GeoJSON", "Export it as a GeoJSON feature collection"):
        rings = [np.asarray(line, dtype=np.float64)[:, :2] for line in _lines(content, 0)]
        given = sum(map(len, rings))
        finite = all(np.isfinite(ring).all() for ring in rings)
    if not rings or not finite:
        raise ProblemError(
            "holds no lines" if finite else "has coordinates that are not finite",
            where=name,
            remedy="Give polygons, lines or points in longitude and latitude",
        )
    if given > _MOST_GIVEN:
        raise ProblemError(f"has {given:,} corners, more than {_MOST_GIVEN:,}", where=name)
    return name, rings


def _content(source: Source) -> tuple[str, Any]:
    if isinstance(source, str | Path):
        package, colon, resource = str(source).partition(":")
        known = bool(colon) and not os.path.exists(source) and package.isidentifier()
        path = path_of(source)
        if known and len(package) > 1:
            path = DataFile(package=package, resource=resource).path(Path())
        with expanded(path) as stream:
            raw = stream.read(MAX_BYTES)
        with translated(path, "is not GeoJSON", "Export it as a GeoJSON feature collection"):
            return str(source), json.loads(raw.decode("utf-8-sig"))
    content = getattr(source, "__geo_interface__", source)
    crs = getattr(source, "crs", None)
    if crs is not None and hasattr(source, "to_crs"):
        content = source.to_crs(4326).__geo_interface__
    if not isinstance(content, Mapping):
        raise ProblemError(
            f"a {type(source).__name__} is no backdrop",
            where="backdrop",
            remedy="Give a file of GeoJSON, its content, or a GeoDataFrame",
        )
    return "backdrop", content


def _lines(node: Any, depth: int) -> Iterator[Any]:
    """The coordinates of every line, ring and point."""
    if node is None:
        return
    kind = node["type"]
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind == "Feature":
        yield from _lines(node["geometry"], depth + 1)
    elif kind in _COLLECTIONS:
        for part in node[_COLLECTIONS[kind]]:
            yield from _lines(part, depth + 1)
    else:
        deeper, parts = _DEPTHS[kind], [node["coordinates"]]
        for _ in range(deeper):
            parts = [inner for part in parts for inner in part]
        if kind.endswith("Point"):
            parts = [[place] * 2 for place in parts]
        yield from (part for part in parts if len(part) > 1)


def _clipped(line: Floats, box: Box) -> Iterator[Floats]:
    """The parts of a line inside of a box (Liang and Barsky's bounds of every segment)."""
    start, step = line[:-1], np.diff(line, axis=0)
    enter, leave = np.zeros(len(start)), np.ones(len(start))
    for axis, low, high in ((0, box[0], box[2]), (1, box[1], box[3])):
        for sign, limit in ((-1.0, low), (1.0, high)):
            rate, room = sign * step[:, axis], sign * (limit - start[:, axis])
            with np.errstate(divide="ignore", invalid="ignore"):
                share = room / rate
            enter = np.where(rate < 0, np.maximum(enter, share), enter)
            leave = np.where(rate > 0, np.minimum(leave, share), leave)
            leave = np.where((rate == 0) & (room < 0), -1.0, leave)
    kept = np.flatnonzero(enter <= leave)
    if not len(kept):
        return
    first, last = start + enter[:, None] * step, start + leave[:, None] * step
    # a run goes on where a segment ends and the next begins inside
    joined = (np.diff(kept) == 1) & (leave[kept[:-1]] == 1) & (enter[kept[1:]] == 0)
    for run in np.split(kept, np.flatnonzero(~joined) + 1):
        yield np.vstack([first[run[:1]], last[run]])


def _simplified(line: Floats, scale: Floats, tolerance: float) -> Floats:
    """The line without corners that lie within the tolerance of what is left (Douglas, Peucker)."""
    places = line * scale
    kept = np.zeros(len(line), dtype=bool)
    kept[[0, -1]] = True
    stack = [(0, len(line) - 1)]
    while stack:
        a, b = stack.pop()
        if b - a < 2:
            continue
        away, along = places[a + 1 : b] - places[a], places[b] - places[a]
        length = float(along @ along)
        share = np.clip(away @ along / length, 0.0, 1.0) if length else np.zeros(b - a - 1)
        off = np.linalg.norm(away - share[:, None] * along, axis=1)
        k = int(off.argmax())
        if off[k] > tolerance:
            kept[a + 1 + k] = True
            stack += [(a, a + 1 + k), (a + 1 + k, b)]
    return line[kept]


MOST = 300_000
"""Probabilities of a lattice."""
_SIDE = 97
"""Points along the longer side of the region: meshes of 2, 3, 4, … squares fit into 96 steps."""
_LEAST_SIDE = 13


@record
class Lattice:
    """Probabilities at ``x`` (columns,) times ``y`` (rows,), in the coordinates of the mesh.

    ``values`` (rows, columns, O); at points outside of the region they are those of the point of
    the region that is nearest to them, so that what is interpolated up to its border is continuous.
    """

    x: Floats
    y: Floats
    values: Floats
    inside: Bools
    """(rows, columns)."""

    def error(self, mechanism: MeshMechanism) -> float:
        """The largest difference to the mechanism of what is bilinear between the lattice's points,
        at the middles of the mesh's triangles."""
        from scipy.interpolate import RegularGridInterpolator

        middles = mechanism.mesh.vertices[mechanism.mesh.triangles].mean(axis=1)
        between = RegularGridInterpolator((self.y, self.x), self.values)
        return float(np.abs(between(middles[:, ::-1]) - mechanism.at(middles)).max())


def lattice_of(mechanism: MeshMechanism, most: int = MOST) -> Lattice:
    """The mechanism on a lattice of at most about ``most`` probabilities over the region's box."""
    mesh, reports = mechanism.mesh, len(mechanism.observables)
    low, high = ends_of(mesh.vertices)
    sides = (high - low) * mesh.scale
    share = sides / sides.max()
    room = np.sqrt(most / reports / share.prod())
    longest = max(_LEAST_SIDE, min(_SIDE, int(room)))
    columns, rows = (max(3, round((longest - 1) * part) + 1) for part in share.tolist())
    x, y = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    inside = mesh.locate(points)[0] >= 0
    # points outside are moved to those of the region that are nearest, a hair inside
    feet = mesh.border.feet(points[~inside])
    points[~inside] = feet + INWARD * (border(mesh).mean(axis=0) - feet)
    values = mechanism.at(points).reshape(rows, columns, reports)
    return Lattice(x, y, values, inside.reshape(rows, columns))


def border(mesh: Mesh) -> Floats:
    """The corners of the region (k, 2), counterclockwise."""
    from scipy.spatial import ConvexHull

    return np.asarray(mesh.vertices[ConvexHull(mesh.vertices * mesh.scale).vertices])


def plane_of_mesh(mesh: Mesh, prior: Prior) -> Plane:
    """The plane that the region is drawn in: that of the places, or kilometres of its own."""
    return (
        plane_of_degrees(mesh.vertices) if mesh.coordinates == "lonlat" else plane_of(prior.domain)
    )
