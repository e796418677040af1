"""Elements of a domain as GeoJSON geometries, as they are drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.needed import needed
from optmech.errors import ProblemError
from optmech.spaces.domain import Domain
from optmech.spaces.layout import layout, plane_of
from optmech.spaces.observables import Suppressible


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
    rings = np.split(drawn.corners / scale + offset, drawn.ring_ends[:-1])
    begin = 0
    for end in drawn.shape_ends.tolist():
        own = [closed(ring) for ring in rings[begin:end]]
        begin = end
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
