"""Lines and road networks as meshes of dimension one: roads from graphs, tables and files, checked,
connected and divided.

Lengths are those that are given, and not below the straight line between the ends; where none are
given they are those of the lines. Roads are used both ways: the distance between two points is that
of somebody who may walk against a one-way street, which is not above that of a car.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import label_text
from optmech.base.storage import path_of
from optmech.errors import ProblemError, described
from optmech.exact.arguments import float_or_nan, whole
from optmech.exact.number import Number, float_of, parse_signed
from optmech.reading.bounded import expanded, translated
from optmech.reading.columns import read_features
from optmech.spaces.domain import Coordinates, great_circle
from optmech.spaces.mesh import triangulation
from optmech.spaces.mesh.mesh import MADE
from optmech.spaces.mesh.network import Network

if TYPE_CHECKING:
    import networkx as nx

_SHORT, _NEAR = 1e-3, 1e-6
"""By how much a length may be below the straight line between the ends: relatively, and in km."""
_LONG = 100.0
"""Times as long as the straight lines: lengths in another unit."""
_PER_KM = 1000.0
_NODE = ("node", "id", "osmid", "label")
_ACROSS, _ALONG = ("longitude", "lon", "x"), ("latitude", "lat", "y")
_FROM, _TO = ("source", "u", "from"), ("target", "v", "to")
_LENGTH = ("length", "weight", "km", "metres")
Line = Sequence[Sequence[float]]
Places = dict[Hashable, Sequence[float]]
Given = tuple[Hashable, Hashable, float | None, Line | None]
Read = tuple[Places, list[Given]]
Measure = Callable[[Floats, Floats], Floats]
_LINE = re.compile(r"LINESTRING\s*(?:ZM?|M)?\s*\(([^()]*)\)", re.IGNORECASE)


class Road(NamedTuple):
    """A way between two crossings: its length, and the corners of its line from end to end."""

    start: Hashable
    end: Hashable
    length: float
    line: Floats


def line(low: Number, high: Number, cells: int, unit: str) -> Network:
    """The interval in ``cells`` equal segments."""
    start, end = (float(parse_signed(v, where=w)) for v, w in ((low, "low"), (high, "high")))
    whole(cells, "cells", least=1)
    if not start < end:
        raise ProblemError(f"{start:g} is not below {end:g}", where="low")
    triangulation.refuse_more(cells + 1)
    vertices = start + (end - start) * (np.arange(cells + 1) / cells)
    vertices[-1] = end
    if not (np.diff(vertices) > 0).all():
        raise ProblemError("are too many for numbers of this size", where="cells")
    return Network(vertices[:, None], [range(cells + 1)], unit=unit)


def build(
    source: Any,
    divide: Number | None,
    length: str,
    metres: bool,
    unit: str,
    coordinates: Coordinates,
    largest: bool,
) -> Network:
    """What ``Mesh.roads`` makes."""
    places, roads = _read(source, length)
    measure = _measure(coordinates)
    scale = 1 / _PER_KM if metres else 1.0
    made = [_measured(road, places, measure, scale) for road in roads]
    _require_lengths(made, places, measure)
    kept = _single(made)
    kept = _connected(kept, places, largest)
    if coordinates == "lonlat":
        kept, places = _counted_on(kept, places)
    step = math.inf if divide is None else float_of(divide, "divide", positive=True)
    return _divided(kept, places, step, unit, coordinates)


def _measure(coordinates: Coordinates) -> Measure:
    """Straight lines between points: of the plane, or in km on the globe."""
    if coordinates == "lonlat":
        return great_circle
    return lambda p, q: np.asarray(np.linalg.norm(p - q, axis=-1))


def _measured(road: Given, places: Places, measure: Measure, scale: float) -> Road:
    start, end, length, line = road
    name = f"the road from {label_text(start)} to {label_text(end)}"
    for label in (start, end):
        if label not in places:
            raise ProblemError(f"{name} ends at a crossing without coordinates", where="edges")
    corners = [places[start], places[end]] if line is None else [tuple(p)[:2] for p in line]
    shape = finite_array(corners, where="edges", ndim=2)
    steps = measure(shape[:-1], shape[1:])
    given = float(steps.sum()) if length is None else length * scale
    if not (given > 0 and math.isfinite(given)):
        raise ProblemError(
            f"{name} has no length above 0",
            where="edges",
            remedy="Give a length above 0, or join crossings that are one place",
        )
    return Road(start, end, given, shape)


def _require_lengths(roads: Sequence[Road], places: Places, measure: Measure) -> None:
    if not roads:
        raise ProblemError("there are no roads", where="edges", remedy="Give at least one")
    given = np.array([road.length for road in roads])
    # a line need not begin and end at the crossings
    drawn = np.array([road.line[[0, -1]] for road in roads])
    joined = np.array([[places[road.start], places[road.end]] for road in roads])
    straight = np.maximum(*(measure(ends[:, 0], ends[:, 1]) for ends in (drawn, joined)))
    some = straight > 0
    if some.any() and np.median(given[some] / straight[some]) > _LONG:
        raise ProblemError(
            "lengths are more than a hundred times the straight lines between their ends",
            where="edges",
            remedy="Say metres=True where they are in metres and the coordinates in degrees",
        )
    short = np.flatnonzero(given < straight * (1 - _SHORT) - _NEAR)
    if len(short):
        k = int(short[0])
        raise ProblemError(
            f"the road from {label_text(roads[k].start)} to {label_text(roads[k].end)} has the "
            f"length {given[k]:.6g}, below the {straight[k]:.6g} of the straight line",
            where="edges",
            remedy="Check the unit of lengths, or the order of longitude and latitude",
        )


def _single(roads: Sequence[Road]) -> list[Road]:
    """Each road once, also where it is listed both ways; the shortest of those that join the same
    crossings comes first."""
    out: dict[tuple[frozenset[Hashable], int], Road] = {}
    for road in sorted(roads, key=lambda r: r.length):
        ends = frozenset((road.start, road.end))
        # both directions of a street differ by rounding
        out.setdefault((ends, round(math.log(road.length) * 1e5)), road)
    return list(out.values())


def _connected(roads: list[Road], places: Places, largest: bool) -> list[Road]:
    from scipy.sparse.csgraph import connected_components

    number = {label: k for k, label in enumerate(places)}
    start, end = np.array([[number[road.start], number[road.end]] for road in roads]).T
    graph = sp.csr_array((np.ones(len(roads)), (start, end)), shape=(len(places), len(places)))
    count, part = connected_components(graph, directed=False)
    sizes = np.bincount(part)
    if largest:
        best = max(part[start], key=sizes.__getitem__)
        return [road for road, own in zip(roads, part[start], strict=True) if own == best]
    if count > 1:
        raise ProblemError(
            f"the roads are in {count} parts, of which the largest has {sizes.max():,} of "
            f"{len(places):,} crossings",
            where="edges",
            remedy="Say largest=True for that part: a report tells the part that it comes from",
        )
    return roads


def _divided(
    roads: list[Road],
    places: Places,
    step: float,
    unit: str,
    coordinates: Coordinates,
) -> Network:
    used = {end for road in roads for end in (road.start, road.end)}
    labels: list[Hashable] = [label for label in places if label in used]
    vertices = [list(places[label])[:2] for label in labels]
    number = {label: k for k, label in enumerate(labels)}
    chains: list[list[int]] = []
    lengths: list[float] = []
    beside: Counter[frozenset[Hashable]] = Counter()
    for road in roads:
        ends = frozenset((road.start, road.end))
        before = beside[ends]
        beside[ends] += 1
        # no two segments join the same vertices
        least = 3 if road.start == road.end else 1 + (before > 0)
        wanted = min(road.length / step * (1 - 1e-12), triangulation.MOST + 1.0)
        parts = max(least, math.ceil(wanted))
        triangulation.refuse_more(len(vertices) + parts)
        inner = range(len(vertices), len(vertices) + parts - 1)
        shares = np.arange(1, parts) / parts
        vertices += _along(road.line, shares, _measure(coordinates)).tolist()
        more = (before,) if before else ()
        labels += [(road.start, road.end, f"{j}/{parts}", *more) for j in range(1, parts)]
        chains.append([number[road.start], *inner, number[road.end]])
        lengths += [road.length / parts] * parts
    return Network(
        vertices, chains, lengths=lengths, labels=labels, unit=unit, coordinates=coordinates
    )


def _along(line: Floats, shares: Floats, measure: Measure) -> Floats:
    """The points at these shares of the way along a line, about."""
    at = np.concatenate([[0.0], np.cumsum(measure(line[:-1], line[1:]))])
    return np.column_stack([np.interp(shares * at[-1], at, column) for column in line.T])


def _counted_on(roads: list[Road], places: Places) -> tuple[list[Road], Places]:
    """Longitudes counted on beyond 180 degrees, or from -180, where roads cross that meridian or
    that of 0 degrees."""
    corners = np.concatenate([road.line for road in roads])
    turned: Sequence[Callable[[Floats], Floats]] = (
        lambda x: x,
        lambda x: x + 360 * (x < 0),
        lambda x: x - 360 * (x > 180),
    )
    turn = min(turned, key=lambda way: float(np.ptp(way(corners[:, 0]))))
    if np.ptp(corners[:, 0]) > 180:
        known = np.array(list(places.values()))
        around = np.column_stack([turn(known[:, 0]), known[:, 1]]).tolist()
        places = dict(zip(places, around, strict=True))
        roads = [
            road._replace(line=np.column_stack([turn(road.line[:, 0]), road.line[:, 1]]))
            for road in roads
        ]
    for road in roads:
        if (np.abs(np.diff(road.line[:, 0])) > 180).any():
            raise ProblemError(
                f"the road from {label_text(road.start)} to {label_text(road.end)} goes around "
                "more than half of the globe",
                where="edges",
                remedy="Count longitudes on beyond 180 degrees where roads cross that meridian",
            )
    return roads, places


# -- where they come from ------------------------------------------------------------------------


def _read(source: Any, length: str) -> Read:
    if hasattr(source, "network") and hasattr(source, "domain"):  # what read_osm returns
        points = source.domain.require_points("make a network of them").tolist()
        places = dict(zip(source.domain.labels, points, strict=True))
        edges = source.network.edges(data=True)
        return places, [(u, v, _number(found["weight"]), None) for u, v, found in edges]
    if isinstance(source, str | Path):
        return _from_file(source, length)
    if hasattr(source, "is_directed"):
        return _from_graph(source, length)
    if isinstance(source, tuple) and len(source) == 2:
        return _from_tables(*source, length)
    raise ProblemError(
        f"{type(source).__name__} is no road network",
        where="graph",
        remedy="Give a networkx graph, tables (nodes, edges), or a file of GeoJSON or GraphML",
    )


def _from_file(path: str | Path, length: str) -> Read:
    if path_of(path).suffix.lower() == ".graphml":
        import networkx as nx

        with expanded(path) as stream, translated(path, "is not GraphML", "Save it with osmnx"):
            graph: Any = nx.read_graphml(stream)
        return _from_graph(graph, length)
    lines = []
    for k, (_, geometry) in enumerate(read_features(path)):
        where = f"features[{k}]"
        with translated(where, "is no line", "Give LineStrings or MultiLineStrings"):
            kind, given = geometry["type"], geometry["coordinates"]
            if kind not in ("LineString", "MultiLineString"):
                raise ValueError(kind)
            for line in [given] if kind == "LineString" else given:
                lines.append([(float(p[0]), float(p[1])) for p in line])
                if len(lines[-1]) < 2:
                    raise ValueError("one point")
    return _of_lines(lines)


def _of_lines(lines: list[list[tuple[float, float]]]) -> Read:
    """Lines that meet where they share a corner."""
    met = Counter(corner for line in lines for corner in line)
    ends = {corner for line in lines for corner in (line[0], line[-1])}
    crossings = ends | {corner for corner, count in met.items() if count > 1}
    number = {corner: k for k, corner in enumerate(sorted(crossings))}
    roads: list[Given] = []
    for line in lines:
        cuts = [k for k, corner in enumerate(line) if corner in crossings]
        for a, b in pairwise(cuts):
            piece = line[a : b + 1]
            if len(set(piece)) > 1:
                roads.append((number[line[a]], number[line[b]], None, piece))
    return {k: corner for corner, k in number.items()}, roads


def _from_graph(graph: nx.Graph[Any], length: str) -> Read:
    places: Places = {}
    for node, found in graph.nodes(data=True):
        pair = found.get("pos")
        if pair is None:
            pair = _first(found, _ACROSS), _first(found, _ALONG)
        # layouts of networkx are arrays
        pair = list(pair) if isinstance(pair, np.ndarray) and pair.ndim == 1 else pair
        if not isinstance(pair, list | tuple) or len(pair) != 2 or any(v is None for v in pair):
            raise ProblemError(
                f"crossing {label_text(node)} has no coordinates",
                where="nodes",
                remedy='Give nodes x and y, or "pos", two numbers; of degrees x is the longitude',
            )
        places[node] = [_number(v) for v in pair]
    roads: list[Given] = []
    for u, v, found in graph.edges(data=True):
        given = found.get(length)
        line = _line_of(found.get("geometry"), places[u])
        roads.append((u, v, None if given is None else _number(given), line))
    if any(road[2] is None for road in roads) and any(road[2] is not None for road in roads):
        raise ProblemError(
            f"some edges have {length!r} and some have not",
            where="edges",
            remedy="Give all lengths, or none for those of the lines",
        )
    return places, roads


def _line_of(geometry: Any, start: Sequence[float]) -> Line | None:
    """The corners of a shapely line or of one in words (WKT), from the end that ``start`` is."""
    if geometry is None:
        return None
    with translated("edges", "have a geometry that is no line", "Give LINESTRING (…)"):
        if hasattr(geometry, "geom_type"):
            corners = [tuple(map(float, point[:2])) for point in geometry.coords]
        else:
            found = _LINE.search(str(geometry))
            if found is None:
                raise ValueError(geometry)
            corners = [tuple(map(float, p.split()[:2])) for p in found[1].split(",")]
        if len(corners) < 2 or any(len(corner) != 2 for corner in corners):
            raise ValueError(geometry)
    near = [math.dist(corner, start) for corner in (corners[0], corners[-1])]
    return corners if near[0] <= near[1] else corners[::-1]


def _from_tables(nodes: Any, edges: Any, length: str) -> Read:
    known, ways = _columns(nodes, "nodes"), _columns(edges, "edges")
    named = _first(known, _NODE)
    across, along = _require(known, _ACROSS, "nodes"), _require(known, _ALONG, "nodes")
    labels = range(len(across)) if named is None else named
    _require_names(labels, "nodes")
    points = zip(map(_number, across), map(_number, along), strict=True)
    places: Places = dict(zip(labels, points, strict=True))
    if len(places) != len(across):
        raise ProblemError("two crossings have one name", where="nodes")
    starts, ends = _require(ways, _FROM, "edges"), _require(ways, _TO, "edges")
    _require_names([*starts, *ends], "edges")
    given = ways.get(length, _first(ways, _LENGTH))
    found = [None] * len(starts) if given is None else list(map(_number, given))
    return places, [(u, v, d, None) for u, v, d in zip(starts, ends, found, strict=True)]


def _columns(table: Any, where: str) -> dict[str, list[Any]]:
    """A DataFrame, or a mapping of columns, as lists."""
    try:
        names = list(table.columns) if hasattr(table, "columns") else list(table.keys())
        out = {str(name): _listed(table[name]) for name in names}
    except (AttributeError, TypeError, ValueError) as error:
        raise ProblemError(
            f"{type(table).__name__} is no table", where=where, remedy="Give columns by name"
        ) from error
    if len({len(column) for column in out.values()}) > 1:
        raise ProblemError("has columns of different lengths", where=where)
    return out


def _listed(column: Any) -> list[Any]:
    """The entries of a column as they are: tuples, and texts beside numbers, are names, too."""
    if hasattr(column, "tolist"):
        return list(column.tolist())
    if hasattr(column, "__array__"):
        return list(np.asarray(column).tolist())
    return [v.item() if isinstance(v, np.generic) else v for v in column]


def _require_names(labels: Iterable[Any], where: str) -> None:
    for label in labels:
        try:
            hash(label)
        except TypeError as error:
            raise ProblemError(
                f"{str(label)[:60]} is no name of a crossing",
                where=where,
                remedy="Use texts, numbers, or tuples of them",
            ) from error


def _first(found: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((found[name] for name in names if name in found), None)


def _require(found: Mapping[str, Any], names: Sequence[str], where: str) -> Any:
    column = _first(found, names)
    if column is None:
        raise ProblemError(f"has no column {' or '.join(names)}", where=where)
    return column


def _number(value: Any) -> float:
    number = float_or_nan(value)
    if not math.isfinite(number):
        raise ProblemError(
            f"{described(value)} is no finite number",
            where="edges",
            remedy="Complete coordinates, lengths",
        )
    return number


MADE.update(line=line, roads=build, ways=Network.of_dict)
