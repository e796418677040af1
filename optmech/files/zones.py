"""Merging nearby points into zones, the same way every time."""

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Floats, Ints, unwrapped
from optmech.errors import ProblemError
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain


def distinct_places(points: Floats) -> tuple[Ints, Ints]:
    """Of every place the first row that lies there, and of every row its place; in their order."""
    _, first, inverse = np.unique(points + 0.0, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), np.asarray(rank[inverse.reshape(-1)])


def places_of(domain: Domain) -> tuple[Ints, Ints]:
    """``distinct_places`` of a domain."""
    return distinct_places(domain.require_points("aggregate them"))


def zones_of(domain: Domain, count: int) -> Ints:
    """Index of the zone of every point: ``count`` clusters of Ward's method.

    Points at the same place are one point. Points in degrees are projected to km first
    (equirectangular, at their mean latitude). Zones are numbered in the order in which the points
    list them.
    """
    first, place = places_of(domain)
    size = len(first)
    if count > size:
        others = f" at {size:,} different places" if size < len(domain) else ""
        raise ProblemError(
            f"{count} zones of {len(domain):,} points{others}",
            where="aggregate.zones",
            remedy=f"Give at most {size}",
        )
    if count == size:
        return place
    from scipy.cluster.hierarchy import cut_tree, linkage

    memory.require(
        24.0 * size * size,
        what=f"aggregating {size:,} points",
        where="aggregate",
        remedy="Aggregate beforehand",
    )
    near = _projected(domain)[first]
    # divided by a power of two, which changes no comparison, so that squares do not overflow
    near = np.ldexp(near, -_scale(near))
    raw = cut_tree(linkage(near, method="ward"), n_clusters=[count])[:, 0]
    return distinct_places(raw[place][:, None].astype(np.float64))[1]


def _scale(points: Floats) -> int:
    return int(np.frexp(np.abs(points).max())[1])


def merge(domain: Domain, zone: Ints, weights: Floats | None) -> Domain:
    """The zones as a domain: labels 0, 1, ..., points at the weighted centroids.

    A zone without any weight lies at the plain mean of its points.
    """
    points = domain.require_points("aggregate them")
    count = int(zone.max()) + 1
    first = points[np.unique(zone, return_index=True)[1]][zone]
    if domain.coordinates == "lonlat":
        points = unwrapped(points, first)
    heavy = np.ones(len(zone)) if weights is None else weights / weights.max()
    bare = np.bincount(zone, weights=heavy, minlength=count) == 0
    heavy = np.where(bare[zone], 1.0, heavy)
    total = np.bincount(zone, weights=heavy, minlength=count)
    share = heavy / total[zone]
    scale = _scale(points)
    # as differences from each zone's first point, which equal points leave as it is
    away = np.ldexp(points, -scale) - np.ldexp(first, -scale)
    moved = [np.bincount(zone, weights=share * x, minlength=count) for x in away.T]
    starts = points[np.unique(zone, return_index=True)[1]]
    centroids = starts + np.ldexp(np.column_stack(moved), scale)
    return Domain(range(count), centroids, domain.unit, coordinates=domain.coordinates)


def _projected(domain: Domain) -> Floats:
    points = domain.require_points("aggregate them")
    if domain.coordinates != "lonlat":
        return points
    radians = np.radians(unwrapped(points, points[0]))
    stretch = np.array([np.cos(radians[:, 1].mean()), 1.0])
    return np.asarray(EARTH_RADIUS_KM * radians * stretch)
