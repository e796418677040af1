"""How many kilometres a degree counts for, at most: distances on the globe measured along straight
lines of the map of longitudes and latitudes, with all that is lost charged (theory: "Privacy at
every point").
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.errors import ProblemError
from optmech.exact.rounding import below
from optmech.spaces.domain import EARTH_RADIUS_KM

_BITS = 128
_POLEWARD = 85.0
"""Degrees of latitude; beyond them a map of degrees is no map."""


def kilometres_per_degree(vertices: Floats, triangles: Ints) -> Floats:
    """For every triangle, floats that a degree of longitude and of latitude count for, (T, 2).

    With them the length of any segment of the region, measured triangle by triangle, is at most
    the great-circle distance of its ends on a sphere of radius 6371.0088 km.

    Raises
    ------
    ProblemError
        On a region beyond 85 degrees of latitude, or so large that a straight line of the map
        says nothing about a distance.
    """
    poleward = np.abs(vertices[:, 1])
    with flint.ctx.workprec(_BITS):
        share = _share(vertices) * flint.arb(EARTH_RADIUS_KM) * flint.arb.pi() / 180
        top = poleward[triangles].max(axis=1)
        distinct, back = np.unique(top, return_inverse=True)
        across = np.array([below(share * _radians(d).cos()) for d in distinct.tolist()])
        along = below(share)
    return np.column_stack([across[back], np.full(len(triangles), along)])


def least_share(vertices: Floats) -> float:
    """A float that no great-circle distance within the box of the vertices falls below, relative
    to the length of the straight line of the map between the same points."""
    with flint.ctx.workprec(_BITS):
        return below(_share(vertices))


def _share(vertices: Floats) -> Any:
    """A ball whose lower end is at most distance over length for all segments: Schur's comparison
    of a curve of geodesic curvature at most (4/3)√(2/3) tan φ with an arc of a circle."""
    west, south = vertices.min(axis=0).tolist()
    east, north = vertices.max(axis=0).tolist()
    top = max(abs(south), abs(north))
    least = 0.0 if south <= 0 <= north else min(abs(south), abs(north))
    if top > _POLEWARD or east - west >= 180:
        raise _too_large()
    across = (_radians(east) - _radians(west)) * _radians(least).cos()
    along = _radians(north) - _radians(south)
    length = (across * across + along * along).sqrt()
    curvature = (1 + (_radians(top).tan() ** 2) * 32 / 27).sqrt()
    turn = curvature * length
    if not turn < 3:
        raise _too_large()
    half = (turn / 2).sin() / curvature
    return 2 * half.asin() / length


def _radians(degrees: float) -> Any:
    return flint.arb(degrees) * flint.arb.pi() / 180


def _too_large() -> ProblemError:
    return ProblemError(
        "the region is too large, or too close to a pole, for a map of degrees",
        where="mesh",
        remedy="Mesh a smaller region, or project the points to a plane",
    )
