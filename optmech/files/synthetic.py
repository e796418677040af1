"""Seeded recipes for data that look real: visit counts, random distributions, road networks.

Everything is derived from the raw 64-bit output of PCG64, whose stream numpy keeps stable, by
inverse transforms: the same seed gives the same problem on every machine and version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.spaces import distances
from optmech.spaces.domain import Domain

if TYPE_CHECKING:
    import networkx as nx


def uniforms(seed: int, count: int) -> Floats:
    """``count`` numbers in the open interval (0, 1)."""
    words = np.random.PCG64(seed).random_raw(count)
    return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53)


def visit_counts(
    domain: Domain,
    *,
    seed: int,
    visits: int,
    hotspots: int,
    exponent: float,
    reach: float,
    background: float,
    noise: float,
    empty: float,
) -> Floats:
    """Whole visit counts, shape (n,), around hotspots of popularity 1/rank^exponent.

    Attraction decays exponentially with the distance to a hotspot, by e within ``reach``. A share
    ``background`` is spread evenly, log-normal ``noise`` is laid over all, and the least
    visited fraction ``empty`` of the domain gets nothing.
    """
    from scipy.special import ndtri

    size = len(domain)
    draws = uniforms(seed, hotspots + 2 * size)
    centres = (draws[:hotspots] * size).astype(np.int64)
    points = domain.require_points("spread visits around hotspots")
    places = Domain(range(hotspots), points[centres], domain.unit, coordinates=domain.coordinates)
    measure = distances.haversine() if domain.coordinates == "lonlat" else distances.euclidean()
    popularity = np.arange(1, hotspots + 1, dtype=np.float64) ** -exponent
    attraction = np.exp(-measure(domain, places) / reach) @ popularity
    share = _normal(attraction) * (1 - background) + background / size
    share = _normal(share * np.exp(noise * ndtri(draws[hotspots : hotspots + size])))
    counts = np.floor(visits * share + draws[hotspots + size :])
    counts[np.argsort(share, kind="stable")[: int(empty * size)]] = 0.0
    return counts


def dirichlet(size: int, *, seed: int, concentration: float) -> Floats:
    """Weights of a symmetric Dirichlet distribution, shape (size,)."""
    from scipy.special import gammaincinv

    return np.asarray(gammaincinv(concentration, uniforms(seed, size)))


def roads(
    *, seed: int, rows: int, columns: int, spacing: float, jitter: float, closed: float
) -> tuple[nx.Graph[Any], Floats]:
    """A connected street network and its crossings' positions, shape (rows*columns, 2).

    Crossings of a street grid are displaced by up to ``jitter`` of the spacing. A fraction
    ``closed`` of the streets that are not needed to keep it connected is removed.
    """
    import networkx as nx

    size = rows * columns
    grid = nx.grid_2d_graph(rows, columns)
    edges = [(a[0] * columns + a[1], b[0] * columns + b[1]) for a, b in grid.edges]
    draws = uniforms(seed, 2 * size + len(edges))
    row, column = np.divmod(np.arange(size), columns)
    shift = (draws[: 2 * size].reshape(size, 2) * 2 - 1) * jitter
    points = spacing * (np.column_stack([column, row]) + shift)
    luck = draws[2 * size :]
    network: nx.Graph[Any] = nx.Graph()
    network.add_nodes_from(range(size))
    for (a, b), draw in zip(edges, luck.tolist(), strict=True):
        network.add_edge(a, b, weight=float(np.hypot(*(points[a] - points[b]))), luck=draw)
    needed = nx.minimum_spanning_tree(network, weight="luck").edges
    spare = [edge for edge in network.edges if edge not in needed]
    spare.sort(key=lambda edge: float(network.edges[edge]["luck"]))
    network.remove_edges_from(spare[len(spare) - int(closed * len(spare)) :])
    return network, points


def _normal(values: Floats) -> Floats:
    total = float(values.sum())
    if not (np.isfinite(total) and total > 0):
        raise ProblemError(
            "the visits vanish everywhere",
            remedy="Give a larger reach, or some background",
        )
    return values / total
