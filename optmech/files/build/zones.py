"""Merging nearby points into zones, the same way every time."""

from __future__ import annotations

import numpy as np

from optmech import memory
from optmech.domain import EARTH_RADIUS_KM, Domain, Floats, Ints
from optmech.errors import ProblemError

_FARTHEST = 1e100
"""Squares of distances beyond it are no longer numbers."""


def zones_of(domain: Domain, count: int) -> Ints:
    """Index of the zone of every point: ``count`` clusters of Ward's method.

    Points in degrees are projected to km first (equirectangular, at their mean latitude). Zones
    are numbered in the order in which the points list them.
    """
    size = len(domain)
    if count > size:
        raise ProblemError(
            f"{count} zones of {size} points",
            where="aggregate.zones",
            remedy=f"Give at most {size}",
        )
    if count == size:
        return np.arange(size)
    from scipy.cluster.hierarchy import cut_tree, linkage

    memory.require(
        24.0 * size * size,
        what=f"aggregating {size:,} points",
        where="aggregate",
        remedy="Aggregate beforehand",
    )
    places = _projected(domain)
    if np.abs(places).max() > _FARTHEST:
        raise ProblemError(
            f"coordinates of {np.abs(places).max():.3g} are too far apart to be merged",
            where="aggregate",
            remedy="Give coordinates in another unit",
        )
    raw = cut_tree(linkage(places, method="ward"), n_clusters=[count])[:, 0]
    _, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse])


def merge(domain: Domain, zone: Ints, weights: Floats | None) -> Domain:
    """The zones as a domain: labels 0, 1, ..., points at the weighted centroids.

    A zone without any weight lies at the plain mean of its points.
    """
    points = domain.require_points("aggregate them")
    count = int(zone.max()) + 1
    heavy = np.ones(len(zone)) if weights is None else weights / weights.max()
    bare = np.bincount(zone, weights=heavy, minlength=count) == 0
    heavy = np.where(bare[zone], 1.0, heavy)
    total = np.bincount(zone, weights=heavy, minlength=count)
    centroids = np.column_stack(
        [np.bincount(zone, weights=heavy * x, minlength=count) / total for x in points.T]
    )
    return Domain(range(count), centroids, domain.unit, domain.coordinates)


def _projected(domain: Domain) -> Floats:
    points = domain.require_points("aggregate them")
    if domain.coordinates != "lonlat":
        return points
    radians = np.radians(points)
    stretch = np.array([np.cos(radians[:, 1].mean()), 1.0])
    return np.asarray(EARTH_RADIUS_KM * radians * stretch)
