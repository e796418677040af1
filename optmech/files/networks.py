"""Graphs as sections of files: road networks, edge lists, category trees; and seeded recipes for
data that look real: visit counts, random distributions, road networks.

Everything of these is derived from the raw 64-bit output of PCG64, whose stream numpy keeps stable,
by inverse transforms: the same seed gives the same problem on every machine and version.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, described
from optmech.exchange.geo import read_osm
from optmech.files.place import Listed, labels_from, require_room
from optmech.reading.data import DataFile
from optmech.reading.sections import (
    SORTS,
    Labels,
    NonNegative,
    Point,
    Positive,
    Section,
    Seed,
    Some,
    is_label,
    is_number,
    refusal,
)
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_label

if TYPE_CHECKING:
    import networkx as nx


def _edge(value: object) -> Any:
    edge = value if isinstance(value, list) else []
    if len(edge) not in (2, 3) or not all(map(is_label, edge[:2])):
        raise refusal("is not an edge", 'Write ["from", "to"] or ["from", "to", length]')
    start, end, length, *_ = [*edge, 1.0]
    if not is_number(length) or not 0 <= length < 1e300:
        raise refusal(f"{described(length)} is not a length", "Give a finite number >= 0")
    return [start, end, float(length)]


_END = {"type": ["string", "integer"]}
_EDGE_SCHEMA = {
    "type": "array",
    "prefixItems": [_END, _END, {"type": "number", "minimum": 0}],
    "minItems": 2,
    "maxItems": 3,
}
Edge = Annotated[list[Any], BeforeValidator(_edge), WithJsonSchema(_EDGE_SCHEMA)]
"""[from, to] or [from, to, length]; the length is 1 unless given."""
Edges = Some[Edge]
SORTS["edges"] = Edges


class Network(Section):
    """The nodes of a graph; ``distance = "graph"`` measures along its edges."""

    kind: Literal["graph"]
    nodes: Labels | None = None
    points: Some[Point] | None = None
    edges: Edges | None = None
    file: str | None = None
    roads: Roads | None = None
    osm: str | None = None
    unit: str = ""

    def refuse_misfits(self) -> None:
        forms = (self.edges, self.file, self.roads, self.osm)
        if sum(form is not None for form in forms) != 1:
            raise refusal("needs one of edges, file, roads and osm", "Give exactly one of the four")
        made = self.roads is not None or self.osm is not None
        if made and (self.nodes is not None or self.points is not None):
            raise refusal("roads make their own nodes and points", "Drop nodes and points")
        if self.osm is not None and self.unit not in ("", "km"):
            raise refusal("an OpenStreetMap extract is measured in km", "Drop unit", ("unit",))
        if self.points is not None and self.nodes is None:
            raise refusal("points need nodes", "List the nodes in the order of the points")

    def listed(self, directory: Path) -> Listed:
        """The nodes as a domain, and the graph."""
        if self.roads is not None:
            require_room(self.roads.rows * self.roads.columns, "roads.rows")
            network, positions = self.roads.network()
            return Listed(Domain(network.nodes, positions, self.unit), network=network)
        if self.osm is not None:
            roads = read_osm(DataFile(self.osm).path(directory))
            return Listed(roads.domain, network=roads.network)
        edges = read_edges(self.edges, self.file, directory)
        names = self.nodes
        if names is None:
            names = list(dict.fromkeys(end for a, b, _ in edges for end in (a, b)))
        points = None if self.points is None else np.array(self.points)
        with labels_from("nodes"):
            domain = Domain(names, points, self.unit)
        return Listed(domain, network=connect(edges, domain))


class TreeKeys(Section):
    """A category tree as a table child -> parent; edges have length 1 or the one given."""

    parents: Annotated[dict[str, str], Field(min_length=1)]
    lengths: dict[str, NonNegative] | None = None

    def refuse_misfits(self) -> None:
        import networkx as nx

        for child in self.lengths or ():
            if child not in self.parents:
                raise refusal(
                    f"{child!r} has a length and no parent",
                    "A length belongs to the edge from a child to its parent",
                    ("lengths",),
                )
        with suppress(nx.NetworkXNoCycle):
            (node, _), *_ = nx.find_cycle(nx.DiGraph(list(self.parents.items())))
            raise refusal(
                f"{node!r} is its own ancestor",
                "Give every category one parent, and the root none",
                ("parents",),
            )

    def graph(self, domain: Domain) -> nx.Graph[Any]:
        """The tree, whose nodes are the labels of ``domain`` where they are that."""
        lengths = self.lengths or {}
        return connect([(a, b, lengths.get(a, 1.0)) for a, b in self.parents.items()], domain)


class Tree(TreeKeys):
    """The leaves of a category tree; ``distance = "graph"`` is the path length in the tree."""

    kind: Literal["tree"]

    def listed(self, directory: Path) -> Listed:
        """The leaves as a domain, and the tree."""
        inner = set(self.parents.values())
        domain = Domain([child for child in self.parents if child not in inner])
        return Listed(domain, network=self.graph(domain))


def read_edges(
    edges: list[Any] | None, file: str | None, directory: Path
) -> list[tuple[Any, Any, float]]:
    """Edges given inline, or by the columns source, target and length of a CSV file."""
    if edges is not None:
        return [(a, b, length) for a, b, length in edges]
    source = DataFile(file)
    lengths = source.columns(directory, ["length"], ["length"])
    ends = source.text_columns(directory, ["source", "target"])
    return list(zip(ends["source"], ends["target"], lengths["length"].tolist(), strict=True))


def connect(edges: Iterable[tuple[Any, Any, float]], domain: Domain) -> nx.Graph[Any]:
    """A graph whose nodes are the labels of ``domain`` wherever an end names one."""
    import networkx as nx

    @cache
    def node(end: object) -> Any:
        try:
            return find_label(domain, end)
        except ProblemError:
            return end

    network: nx.Graph[Any] = nx.Graph()
    network.add_nodes_from(domain.labels)
    for k, (*ends, length) in enumerate(edges):
        if not 0 <= length < np.inf:
            raise ProblemError(
                "the length is not a finite number >= 0",
                where=f"edges[{k}]",
                remedy="Correct that edge",
            )
        a, b = map(node, ends)
        if not network.has_edge(a, b) or length < network[a][b]["weight"]:
            network.add_edge(a, b, weight=length)
    return network


class Seeded(Section):
    """A recipe whose data follow from a seed."""

    seed: Seed

    def uniforms(self, count: int) -> Floats:
        """``count`` numbers in the open interval (0, 1)."""
        words = np.random.PCG64(self.seed).random_raw(count)
        return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53)


class Roads(Seeded):
    """A made-up but realistic road network: a jittered street grid with closed roads."""

    rows: Annotated[int, Field(ge=2, le=10**4)]
    columns: Annotated[int, Field(ge=2, le=10**4)]
    spacing: Positive = 1.0
    jitter: Annotated[float, Field(ge=0, le=0.45)] = 0.2
    closed: Annotated[float, Field(ge=0, le=1)] = 0.15

    def network(self) -> tuple[nx.Graph[Any], Floats]:
        """A connected street network and its crossings' positions, shape (rows*columns, 2).

        Crossings of a street grid are displaced by up to ``jitter`` of the spacing. A fraction
        ``closed`` of the streets that are not needed to keep it connected is removed.
        """
        import networkx as nx

        size, columns = self.rows * self.columns, self.columns
        grid = nx.grid_2d_graph(self.rows, columns)
        edges = [(a[0] * columns + a[1], b[0] * columns + b[1]) for a, b in grid.edges]
        draws = self.uniforms(2 * size + len(edges))
        row, column = np.divmod(np.arange(size), columns)
        shift = (draws[: 2 * size].reshape(size, 2) * 2 - 1) * self.jitter
        points = self.spacing * (np.column_stack([column, row]) + shift)
        network: nx.Graph[Any] = nx.Graph()
        network.add_nodes_from(range(size))
        for (a, b), luck in zip(edges, draws[2 * size :].tolist(), strict=True):
            network.add_edge(a, b, weight=float(np.hypot(*(points[a] - points[b]))), luck=luck)
        needed = nx.minimum_spanning_tree(network, weight="luck").edges
        spare = [edge for edge in network.edges if edge not in needed]
        spare.sort(key=lambda edge: float(network.edges[edge]["luck"]))
        network.remove_edges_from(spare[len(spare) - int(self.closed * len(spare)) :])
        return network, points
