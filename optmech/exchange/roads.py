"""Road networks from OpenStreetMap extracts."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from optmech.distances import Distance, graph
from optmech.domain import EARTH_RADIUS_KM, Domain, Floats
from optmech.errors import ProblemError
from optmech.files.source import require_readable

if TYPE_CHECKING:
    import networkx as nx

DRIVABLE = (
    "motorway",
    "trunk",
    "primary",
    "secondary",
    "tertiary",
    "unclassified",
    "residential",
    "living_street",
    "motorway_link",
    "trunk_link",
    "primary_link",
    "secondary_link",
    "tertiary_link",
)
"""Values of ``highway`` that cars use."""

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True, eq=False)
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


def read_osm(path: str | Path, kinds: tuple[str, ...] = DRIVABLE) -> Roads:
    """The roads of an OpenStreetMap XML extract (``.osm``, also ``.gz`` or ``.bz2``).

    Ways whose ``highway`` is among ``kinds`` are taken; the largest connected part is kept. A
    road's length is the sum of great-circle distances between its nodes.

    Raises
    ------
    ProblemError
        On a file that is no such extract, or holds no road of these kinds.
    """
    source = Path(path)
    require_readable(source)
    try:
        with _OPENERS.get(source.suffix, open)(source, "rb") as stream:
            places, ways = _elements(stream, kinds)
    except (ElementTree.ParseError, OSError, EOFError, ValueError, KeyError) as error:
        raise ProblemError(
            f"is not an OpenStreetMap XML extract: {error}",
            where=str(path),
            remedy="Give a file as the export of openstreetmap.org writes it",
        ) from error
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


def _elements(
    stream: IO[bytes], kinds: tuple[str, ...]
) -> tuple[dict[int, tuple[float, float]], list[list[int]]]:
    places: dict[int, tuple[float, float]] = {}
    ways: list[list[int]] = []
    for _, element in ElementTree.iterparse(stream):
        if element.tag == "node":
            found = element.attrib
            places[int(found["id"])] = float(found["lon"]), float(found["lat"])
        elif element.tag == "way":
            tags = {tag.get("k"): tag.get("v") for tag in element.iter("tag")}
            if tags.get("highway") in kinds:
                ways.append([int(ref.attrib["ref"]) for ref in element.iter("nd")])
        if element.tag in ("node", "way", "relation"):
            element.clear()
    return places, ways


def _network(places: dict[int, tuple[float, float]], ways: list[list[int]]) -> nx.Graph[Any]:
    import networkx as nx

    network: nx.Graph[Any] = nx.Graph()
    for a, b in _steps(ways):
        # extracts cut at their border name nodes that they do not hold
        if a in places and b in places and a != b:
            length = _length(np.array([places[a], places[b]]))
            network.add_edge(a, b, weight=length)
    return network


def _steps(ways: list[list[int]]) -> Iterator[tuple[int, int]]:
    for way in ways:
        yield from pairwise(way)


def _length(ends: Floats) -> float:
    lon, lat = np.radians(ends).T
    half = np.sin((lat[1] - lat[0]) / 2) ** 2
    half += np.cos(lat[0]) * np.cos(lat[1]) * np.sin((lon[1] - lon[0]) / 2) ** 2
    return float(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(min(half, 1.0))))


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
