"""Graphs: road networks, edge lists, category trees."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.errors import ProblemError
from optmech.exchange.roads import read_osm
from optmech.files import synthetic
from optmech.files.make.context import labels_from, require_room
from optmech.reading.data import DataFile, complete_numbers
from optmech.sections import domains as schema
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_label

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[Any, Any, float]


def build_network(spec: schema.Network, directory: Path) -> tuple[Domain, nx.Graph[Any]]:
    """The nodes as a domain, and the graph."""
    if spec.roads is not None:
        require_room(spec.roads.rows * spec.roads.columns, "roads.rows")
        network, positions = synthetic.roads(**spec.roads.model_dump())
        return Domain(network.nodes, positions, spec.unit), network
    if spec.osm is not None:
        roads = read_osm(DataFile(spec.osm).path(directory))
        return roads.domain, roads.network
    edges = read_edges(spec.edges, spec.file, directory)
    names = spec.nodes
    if names is None:
        names = list(dict.fromkeys(end for a, b, _ in edges for end in (a, b)))
    points = None if spec.points is None else np.array(spec.points)
    with labels_from("nodes"):
        domain = Domain(names, points, spec.unit)
    return domain, connect(edges, domain)


def read_edges(edges: list[Any] | None, file: str | None, directory: Path) -> list[Edge]:
    """Edges given inline, or by the columns source, target and length of a CSV file."""
    if edges is not None:
        return [(a, b, length) for a, b, length in edges]
    source = DataFile(file)
    lengths = source.columns(directory, ["length"])
    complete_numbers(lengths, ["length"], source)
    ends = source.text_columns(directory, ["source", "target"])
    return list(zip(ends["source"], ends["target"], lengths["length"].tolist(), strict=True))


def connect(edges: Iterable[Edge], domain: Domain) -> nx.Graph[Any]:
    """A graph whose nodes are the labels of ``domain`` wherever an end names one."""
    import networkx as nx

    known: dict[Any, Any] = {}
    network: nx.Graph[Any] = nx.Graph()
    network.add_nodes_from(domain.labels)
    for k, (*ends, length) in enumerate(edges):
        if not 0 <= length < np.inf:
            raise ProblemError(
                f"the length {length!r} is not a finite number >= 0",
                where=f"edges[{k}]",
                remedy="Correct that edge",
            )
        for end in ends:
            if end not in known:
                known[end] = _node(domain, end)
        a, b = (known[end] for end in ends)
        if not network.has_edge(a, b) or length < network[a][b]["weight"]:
            network.add_edge(a, b, weight=length)
    return network


def build_leaves(spec: schema.TreeKeys) -> tuple[Domain, nx.Graph[Any]]:
    """The leaves of a tree as a domain, and the tree."""
    inner = set(spec.parents.values())
    leaves = [child for child in spec.parents if child not in inner]
    _refuse_cycle(spec.parents)
    domain = Domain(leaves)
    return domain, build_tree(spec, domain)


def build_tree(spec: schema.TreeKeys, domain: Domain) -> nx.Graph[Any]:
    """The tree of a category table child -> parent, edges of length 1 or as given."""
    lengths = spec.lengths or {}
    for child in lengths:
        if child not in spec.parents:
            raise ProblemError(
                f"{child!r} has a length and no parent",
                where="lengths",
                remedy="A length belongs to the edge from a child to its parent",
            )
    _refuse_cycle(spec.parents)
    edges = [(child, parent, lengths.get(child, 1.0)) for child, parent in spec.parents.items()]
    return connect(edges, domain)


def _refuse_cycle(parents: dict[str, str]) -> None:
    settled: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in settled:
            if node in path:
                raise ProblemError(
                    f"{node!r} is its own ancestor",
                    where="parents",
                    remedy="Give every category one parent, and the root none",
                )
            path[node] = None
            node = parents.get(node)
        settled.update(path)


def _node(domain: Domain, end: object) -> Any:
    try:
        return find_label(domain, end)
    except ProblemError:
        return end
