"""Seeded recipes for data that look real: visit counts, random distributions, road networks.

Everything is derived from the raw 64-bit output of PCG64, whose stream numpy keeps stable, by
inverse transforms: the same seed gives the same problem on every machine and version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from optmech.base.arrays import Floats
from optmech.reading.sections import Positive, Section, Seed

if TYPE_CHECKING:
    import networkx as nx


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
