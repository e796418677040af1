"""Zones, places and hexagons from GeoJSON, GeoPandas and H3, as domains in degrees; roads from
OpenStreetMap."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from optmech.base.arrays import Floats, unwrapped
from optmech.base.machine import needed
from optmech.base.numerals import float_of_text, int_of_text
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.reading.bounded import expanded, translated
from optmech.reading.columns import read_features, require_columns, shapes_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import Distance, graph
from optmech.spaces.domain import Domain, great_circle

if TYPE_CHECKING:
    import geopandas as gpd
    import networkx as nx


@checked_arguments
def read_geojson(path: str | Path, label: str | None = None) -> Domain:
    """A domain from a GeoJSON feature collection of polygons or points.

    Labels are the property ``label`` of each feature, as text where it is not a whole number;
    without one 0, 1, .... Polygons lie at their centroids (of the equirectangular projection)
    and keep their outlines for drawing. Distances are great-circle: ``om.distances.haversine()``.

    Raises
    ------
    ProblemError
        Without shapely, or on what is no collection of such features.

    Examples
    --------
    >>> import json, pathlib
    >>> point = {"type": "Point", "coordinates": [8.54, 47.38]}
    >>> feature = {"type": "Feature", "geometry": point, "properties": {"name": "lake"}}
    >>> collection = {"type": "FeatureCollection", "features": [feature]}
    >>> _ = pathlib.Path("stops.geojson").write_text(json.dumps(collection))
    >>> stops = om.exchange.read_geojson("stops.geojson", label="name")
    >>> stops.labels, stops.points.tolist()
    (('lake',), [[8.54, 47.38]])
    """
    features = read_features(path)
    shapes = shapes_of([geometry for _, geometry in features], path)
    properties = [row for row, _ in features]
    names = None if label is None else [_name(row, label, path) for row in properties]
    return _domain(shapes, names, str(path))


def from_geopandas(frame: gpd.GeoDataFrame, label: str | None = None) -> Domain:
    """A domain from a GeoDataFrame, in any coordinate reference system that it names.

    Without one, coordinates are taken to be longitude and latitude.

    Examples
    --------
    >>> import geopandas
    >>> points = geopandas.points_from_xy([2600000, 2601000], [1200000, 1200000])
    >>> frame = geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=points, crs="EPSG:2056")
    >>> stops = om.exchange.from_geopandas(frame, label="name")
    >>> print(stops.points.round(3))  # longitude, latitude: Bern
    [[ 7.439 46.951]
     [ 7.452 46.951]]
    """
    if not hasattr(frame, "geometry") or not hasattr(frame, "to_crs"):
        raise ProblemError(f"{type(frame).__name__} is not a GeoDataFrame", where="frame")
    degrees = frame if frame.crs is None else frame.to_crs(4326)
    names = None
    if label is not None:
        require_columns("label", [label], list(frame.columns))
        names = [_label(value) for value in frame[label].tolist()]
    return _domain(list(degrees.geometry), names, "frame")


def _name(row: dict[str, Any], label: str, path: str | Path) -> Any:
    if label not in row:
        raise ProblemError(
            f"a feature has no property {label!r}",
            where=path,
            remedy=f"Its properties are {', '.join(map(repr, list(row)[:20])) or 'none'}",
        )
    return _label(row[label])


def _label(value: object) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _domain(shapes: list[Any], names: list[Any] | None, where: str) -> Domain:
    kinds = {None if shape is None else shape.geom_type for shape in shapes}
    if not shapes or not kinds <= {"Point", "Polygon", "MultiPolygon"}:
        listed = ", ".join(sorted(map(str, kinds))) or "nothing"
        raise ProblemError(
            f"holds {listed}", where=where, remedy="Give polygons, or points, and at least one"
        )
    empty = next((k for k, shape in enumerate(shapes) if shape.is_empty), None)
    if empty is not None:
        raise ProblemError(f"geometry {empty} is empty", where=where, remedy="Remove it")
    with translated(where, "has a geometry that cannot be used"):
        centres = np.array([shape.centroid.coords[0][:2] for shape in shapes])
        outlines = [_rings(shape) for shape in shapes] if "Point" not in kinds else None
    labels = range(len(shapes)) if names is None else names
    return Domain(labels, centres, "km", coordinates="lonlat", outlines=outlines)


def _rings(shape: Any) -> list[Floats]:
    parts = shape.geoms if shape.geom_type == "MultiPolygon" else [shape]
    rings = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    return [np.array(ring.coords)[:-1, :2] for ring in rings]


_INDEX = re.compile(r"[0-9a-fA-F]{1,16}")


@checked_arguments
def from_h3(cells: Iterable[str]) -> Domain:
    """A domain of H3 cells: labelled by their indices, placed at their centres, in degrees.

    Distances between them are great-circle distances, ``om.distances.haversine()``, in km.
    Outlines for drawing are the cells' own.

    Raises
    ------
    ProblemError
        Without h3, or on something that is not an H3 cell.

    Examples
    --------
    >>> import h3
    >>> cells = om.exchange.from_h3(h3.grid_disk(h3.latlng_to_cell(47.38, 8.54, 8), 1))
    >>> len(cells), cells.unit
    (7, 'km')
    """
    h3 = needed("h3", "geo", where="from_h3")
    labels = list(cells)
    for k, cell in enumerate(labels):
        if not isinstance(cell, str) or not _INDEX.fullmatch(cell) or not h3.is_valid_cell(cell):
            raise ProblemError(
                f"{repr(cell)[:60]} is not an H3 cell",
                where=f"cells[{k}]",
                remedy="Give indices such as 862baad27ffffff",
            )
    centres = np.array([h3.cell_to_latlng(cell) for cell in labels]).reshape(-1, 2)[:, ::-1]
    outlines = [
        [unwrapped(np.array(h3.cell_to_boundary(cell))[:, ::-1], centre)]
        for cell, centre in zip(labels, centres, strict=True)
    ]
    return Domain(labels, centres, "km", coordinates="lonlat", outlines=outlines)


_MAJOR = ("motorway", "trunk", "primary", "secondary", "tertiary")
_LINKS = tuple(f"{kind}_link" for kind in _MAJOR)
DRIVABLE = (*_MAJOR, "unclassified", "residential", "living_street", *_LINKS)
"""Values of ``highway`` that cars use."""


_MOST_ELEMENTS = 3_000_000
"""64 MiB as openstreetmap.org writes them have about half of that."""


@record
class Roads:
    """Crossings and dead ends of a road network, and the roads between them."""

    domain: Domain
    """Labels are OpenStreetMap's node numbers, places in degrees."""
    network: nx.Graph[Any]
    """Edges have their length in km as ``weight``; nodes on the way are merged into edges."""

    @property
    def distance(self) -> Distance:
        """Length of the shortest way, in km, one-way streets used both ways."""
        return graph(self.network)

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        """Straight lines between crossings as GeoJSON: a backdrop of ``om.report`` and
        ``om.plots``, and what shapely and GeoPandas read."""
        points = self.domain.require_points("draw the roads").tolist()
        places = dict(zip(self.domain.labels, points, strict=True))
        lines = [[places[a], places[b]] for a, b in self.network.edges]
        return {"type": "MultiLineString", "coordinates": lines}


@checked_arguments
def read_osm(path: str | Path, kinds: tuple[str, ...] = DRIVABLE) -> Roads:
    """The roads of an OpenStreetMap XML extract (``.osm``, also ``.gz``, ``.bz2`` or
    ``.xz``; at most 64 MiB of XML).

    Ways whose ``highway`` is among ``kinds`` are taken; the largest connected part is kept. A
    road's length is the sum of great-circle distances between its nodes.

    Raises
    ------
    ProblemError
        On a file that is no such extract, or holds no road of these kinds.

    Examples
    --------
    >>> import pathlib
    >>> xml = '<osm><node id="1" lat="47.0" lon="8.0"/><node id="2" lat="47.01" lon="8.0"/>'
    >>> xml += '<way id="9"><nd ref="1"/><nd ref="2"/><tag k="highway" v="primary"/></way></osm>'
    >>> _ = pathlib.Path("map.osm").write_text(xml)
    >>> roads = om.exchange.read_osm("map.osm")
    >>> print(len(roads.domain), roads.distance(roads.domain, roads.domain).max().round(3))  # km
    2 1.112
    """
    what = "is not an OpenStreetMap XML extract"
    remedy = "Give a file as the export of openstreetmap.org writes it"
    with expanded(path) as stream, translated(path, what, remedy):
        extract = _Extract(kinds)
        parser = ElementTree.XMLParser(target=extract)
        # in one piece: given in several, the parser begins a long attribute again with each
        parser.feed(stream.read())
        parser.close()
        places, ways = extract.places, extract.ways
    network = _network(places, ways)
    if network.number_of_edges() == 0:
        raise ProblemError(
            f"holds no road among {', '.join(kinds[:4])}, ...",
            where=path,
            remedy="Use an extract with roads, or other kinds",
        )
    network = _merged(network)
    nodes = sorted(network)
    return Roads(Domain.geographic(nodes, [places[node] for node in nodes]), network)


class _Extract:
    """Takes the nodes and roads out of an extract as they go by; no tree is kept."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self.kinds = kinds
        self.places: dict[int, tuple[float, float]] = {}
        self.ways: list[list[int]] = []
        self._count = 0
        self._refs: list[int] | None = None
        self._kind: str | None = None

    def start(self, tag: str, found: dict[str, str]) -> None:
        """Called at the beginning of an element."""
        self._count += 1
        if self._count > _MOST_ELEMENTS:
            raise ValueError(f"it has more than the {_MOST_ELEMENTS:,} elements allowed")
        if tag == "node":
            self.places[_number(found["id"])] = _degrees(found["lon"]), _degrees(found["lat"])
        elif tag == "way":
            self._refs, self._kind = [], None
        elif self._refs is not None:
            if tag == "nd":
                self._refs.append(_number(found["ref"]))
            elif tag == "tag" and found.get("k") == "highway":
                self._kind = found.get("v")

    def end(self, tag: str) -> None:
        """Called at the end of an element."""
        if tag == "way" and self._refs is not None:
            if self._kind in self.kinds:
                self.ways.append(self._refs)
            self._refs = None


def _number(text: str) -> int:
    number = int_of_text(text) if len(text) <= 20 else 0
    if not 0 < abs(number) < 2**63:
        raise ValueError("a reference is not the number of a node")
    return number


def _degrees(text: str) -> float:
    value = float_of_text(text)
    if not abs(value) <= 180:
        raise ValueError("a coordinate is not a number of degrees")
    return value


def _network(places: dict[int, tuple[float, float]], ways: list[list[int]]) -> nx.Graph[Any]:
    """The largest connected part of the roads."""
    import networkx as nx

    # extracts cut at their border name nodes that they do not hold
    steps = [
        (a, b)
        for a, b in chain.from_iterable(map(pairwise, ways))
        if a in places and b in places and a != b
    ]
    ends = np.array([(places[a], places[b]) for a, b in steps]).reshape(-1, 2, 2)
    network: nx.Graph[Any] = nx.Graph()
    for (a, b), length in zip(steps, great_circle(ends[:, 0], ends[:, 1]).tolist(), strict=True):
        network.add_edge(a, b, weight=length)
    parts = nx.connected_components(network)
    largest = max(parts, key=lambda part: (len(part), -min(part)), default=set[int]())
    return network.subgraph(largest).copy()


def _merged(network: nx.Graph[Any]) -> nx.Graph[Any]:
    """Nodes that merely bend a road replaced by the road's length; distances stay the same. Of two
    roads between the same crossings one keeps a node, so that both are there."""
    for node in sorted(network):
        around = sorted(network[node])
        if len(around) != 2 or network.number_of_nodes() <= 2:
            continue
        a, b = around
        if network.has_edge(a, b):
            continue
        length = network[node][a]["weight"] + network[node][b]["weight"]
        network.remove_node(node)
        network.add_edge(a, b, weight=length)
    return network
