"""Outlines that a domain is drawn with: cells of a grid, or what lies nearest to each point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints, unwrapped
from optmech.base.machine import needed
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain, Grid
from optmech.spaces.domain_arguments import Box
from optmech.spaces.observables import Regions, Suppressible

_CORNERS = 24
_REACH = 0.8
"""Cells of points end at this multiple of the distance that most points have to their nearest:
above half the diagonal of a square, so that square lattices are drawn whole."""


@record
class Layout(ReadOnly):
    """A domain in the plane, y growing upwards.

    ``corners`` (v, 2) are those of all rings, one after the other; ``ring_ends`` where each ring
    ends among them, ``shape_ends`` where the rings of each element end.
    """

    centres: Floats
    corners: Floats
    ring_ends: Ints
    shape_ends: Ints
    unit: str
    exact: bool
    """Whether the outlines are the elements' own, and not merely what is nearest."""
    degrees: Box | None = None
    """Longitude and latitude of the plane's origin, and what a degree of each counts for in it;
    None where nothing is known of them."""

    def from_degrees(self, lonlat: Floats) -> Floats:
        """Longitudes and latitudes (n, 2) as points among the corners, on the side of the globe
        where these are; only where ``degrees`` are known."""
        assert self.degrees is not None
        offset, scale = np.split(np.array(self.degrees), 2)
        near = unwrapped(lonlat, self.centres.mean(axis=0) / scale + offset)
        return np.asarray((near - offset) * scale)

    @property
    def shapes(self) -> list[list[Floats]]:
        """The rings of every element."""
        rings = np.split(self.corners, self.ring_ends[:-1])
        starts = [0, *self.shape_ends[:-1].tolist()]
        return [rings[a:b] for a, b in zip(starts, self.shape_ends.tolist(), strict=True)]


def layout(domain: Domain) -> Layout | None:
    """Where and how elements are drawn; None for what has no coordinates in two dimensions.

    Longitudes and latitudes are projected to km (equirectangular at the middle latitude). A
    suppression symbol is left out: it comes last and has no place.
    """
    shown = domain.inner if isinstance(domain, Suppressible) else domain
    if shown.points is None or shown.points.shape[1] != 2:
        return None
    plane = plane_of(shown)
    centres = plane.into(shown.points)
    if type(shown) is Grid:
        signs = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        shapes = [[ring] for ring in centres[:, None, :] + signs * (np.array(shown.cell) / 2)]
    elif isinstance(shown, Regions):
        shapes = [[ring] for ring in shown.boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]]
    elif shown.outlines is not None:
        shapes = [[plane.into(ring) for ring in own] for own in shown.outlines]
    else:
        shapes = [[ring] for ring in _nearest(centres)]
    rings = [ring for own in shapes for ring in own]
    return Layout(
        centres,
        np.vstack(rings),
        np.cumsum([len(ring) for ring in rings]),
        np.cumsum([len(own) for own in shapes]),
        plane.unit,
        isinstance(shown, Grid | Regions) or shown.outlines is not None,
        plane.degrees,
    )


@record
class Plane:
    """How coordinates become those of a picture: times ``stretch``, and where degrees lie there."""

    stretch: tuple[float, float]
    unit: str
    degrees: Box | None

    def into(self, points: Floats) -> Floats:
        """Points (n, 2) in the picture's unit."""
        return np.asarray(points * np.array(self.stretch))

    def from_degrees(self, lonlat: Floats) -> Floats:
        """Longitudes and latitudes (n, 2) in the picture's unit; only where ``degrees`` are
        known."""
        assert self.degrees is not None
        x, y, across, along = self.degrees
        return (lonlat - (x, y)) * (across, along)


def plane_of(domain: Domain) -> Plane:
    """The plane that a domain with two coordinates is drawn in."""
    assert domain.points is not None
    if domain.coordinates == "lonlat":
        return plane_of_degrees(domain.points)
    return Plane((1.0, 1.0), domain.unit, domain._degrees)


def plane_of_degrees(lonlat: Floats) -> Plane:
    """Kilometres around points (n, 2) in degrees: equirectangular at the middle latitude."""
    middle = np.radians((lonlat[:, 1].min() + lonlat[:, 1].max()) / 2)
    across, along = np.radians(EARTH_RADIUS_KM) * np.array([max(np.cos(middle), 0.01), 1.0])
    return Plane((float(across), float(along)), "km", (0.0, 0.0, float(across), float(along)))


def _nearest(centres: Floats) -> list[Floats]:
    """For every point what is nearer to it than to others, up to a common distance."""
    from scipy.spatial import cKDTree

    distinct = np.unique(centres, axis=0)
    extent = float(np.ptp(centres, axis=0).max()) or 1.0
    if len(distinct) == 1:
        return [centre + _circle(0.5 * extent) for centre in centres]
    tree = cKDTree(distinct)
    apart = tree.query(distinct, k=2)[0][:, 1]
    reach = _REACH * float(np.quantile(apart, 0.9))
    around = tree.query_ball_point(centres, 2 * reach)
    return [
        _clipped(centre, distinct[np.array(near)], reach)
        for centre, near in zip(centres, around, strict=True)
    ]


def _circle(radius: float) -> Floats:
    angle = 2 * np.pi * (np.arange(_CORNERS) + 0.5) / _CORNERS
    # the circumscribed polygon, so that corners of square cells are not cut off
    unit = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray(unit * (radius / np.cos(np.pi / _CORNERS)))


def _clipped(centre: Floats, others: Floats, reach: float) -> Floats:
    """The circle around ``centre`` cut by the bisectors to all ``others``."""
    ring = _circle(reach)
    offsets = others - centre
    lengths = np.hypot(*offsets.T)
    for offset in offsets[np.argsort(lengths, kind="stable")]:
        limit = float(offset @ offset) / 2
        if limit == 0:
            continue
        depth = ring @ offset - limit
        if (depth <= 0).all():
            continue
        after = np.roll(ring, -1, axis=0), np.roll(depth, -1)
        kept = []
        for corner, here, following, there in zip(ring, depth, *after, strict=True):
            if here <= 0:
                kept.append(corner)
            if (here <= 0) != (there <= 0):
                kept.append(corner + (following - corner) * here / (here - there))
        ring = np.array(kept)
    return centre + ring


def geometries(domain: Domain, *, degrees: bool = True) -> Iterator[Any]:
    """The outline of every element as a GeoJSON geometry, in longitude and latitude, or with
    ``degrees=False`` in the domain's own coordinates.

    Raises
    ------
    ProblemError
        Where nothing is known of these, and without shapely on outlines of several rings.
    """
    drawn = layout(domain)
    if drawn is None or (degrees and drawn.degrees is None):
        raise ProblemError(
            "the places have no longitudes and latitudes",
            where="domain",
            remedy="Use a grid over bounds in degrees, or points with longitude and latitude",
        )
    shown = domain.inner if isinstance(domain, Suppressible) else domain
    offset, scale = np.zeros(2), np.ones(2)
    if degrees and drawn.degrees is not None:
        offset, scale = np.array(drawn.degrees[:2]), np.array(drawn.degrees[2:])
    elif shown.coordinates == "lonlat":
        scale = np.array(plane_of(shown).stretch)
    for rings in drawn.shapes:
        own = [closed(ring / scale + offset) for ring in rings]
        yield {"type": "Polygon", "coordinates": own} if len(own) == 1 else _even_odd(own)


def closed(ring: Floats) -> list[list[float]]:
    """A ring as GeoJSON has it."""
    area = float(
        (ring[:, 0] * np.roll(ring[:, 1], -1) - ring[:, 1] * np.roll(ring[:, 0], -1)).sum()
    )
    # RFC 7946: outer rings run counterclockwise
    turned = ring if area >= 0 else ring[::-1]
    return np.vstack([turned, turned[:1]]).tolist()  # type: ignore[no-any-return]


def _even_odd(rings: Sequence[list[list[float]]]) -> Any:
    """What lies inside an odd number of rings."""
    shapely = needed("shapely.geometry", "geo", where="domain")
    shape = shapely.Polygon()
    for ring in rings:
        shape = shape.symmetric_difference(shapely.Polygon(ring).buffer(0))
    return json.loads(json.dumps(shapely.mapping(shape)))
