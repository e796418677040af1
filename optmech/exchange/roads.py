"""Road networks from OpenStreetMap extracts."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.reading.bounded import expanded, translated
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import Distance, graph
from optmech.spaces.domain import Domain, great_circle

if TYPE_CHECKING:
    import networkx as nx

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
        places = dict(zip(self.domain.labels, self._places, strict=True))
        lines = [[places[a], places[b]] for a, b in self.network.edges]
        return {"type": "MultiLineString", "coordinates": lines}

    @property
    def _places(self) -> list[list[float]]:
        found: list[list[float]] = self.domain.require_points("draw the roads").tolist()
        return found


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
            where=str(path),
            remedy="Use an extract with roads, or other kinds",
        )
    network = _merged(_largest(network))
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

    def close(self) -> None:
        """Called at the end of the file."""


def _number(text: str) -> int:
    number = int(text) if len(text) <= 20 else 0
    if not 0 < abs(number) < 2**63:
        raise ValueError(f"{text[:40]!r} is not the number of a node")
    return number


def _degrees(text: str) -> float:
    value = float(text)
    if not abs(value) <= 180:
        raise ValueError(f"{text[:40]!r} is not a number of degrees")
    return value


def _network(places: dict[int, tuple[float, float]], ways: list[list[int]]) -> nx.Graph[Any]:
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
    return network


def _largest(network: nx.Graph[Any]) -> nx.Graph[Any]:
    import networkx as nx

    parts = sorted(nx.connected_components(network), key=lambda part: (-len(part), min(part)))
    return network.subgraph(parts[0]).copy()


def _merged(network: nx.Graph[Any]) -> nx.Graph[Any]:
    """Nodes that merely bend a road replaced by the road's length; distances stay the same."""
    for node in sorted(network):
        around = sorted(network[node])
        if len(around) != 2 or network.number_of_nodes() <= 2:
            continue
        a, b = around
        length = network[node][a]["weight"] + network[node][b]["weight"]
        if network.has_edge(a, b):
            length = min(length, network[a][b]["weight"])
        network.remove_node(node)
        network.add_edge(a, b, weight=length)
    return network
