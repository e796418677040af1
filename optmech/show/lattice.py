"""A mechanism for every point of a region, evaluated on a lattice: what is drawn of it."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Bools, Floats, ends_of
from optmech.base.read_only import record
from optmech.spaces.layout import Plane, plane_of, plane_of_degrees
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.prior import Prior

MOST = 300_000
"""Probabilities of a lattice."""
_SIDE = 97
"""Points along the longer side of the region: meshes of 2, 3, 4, … squares fit into 96 steps."""
_LEAST_SIDE = 13
_INWARD = 1e-9


@record
class Lattice:
    """Probabilities at ``x`` (columns,) times ``y`` (rows,), in the coordinates of the mesh.

    ``values`` (rows, columns, O); at points outside of the region they are those of the point of
    the region that is nearest to them, so that what is interpolated up to its border is continuous.
    """

    x: Floats
    y: Floats
    values: Floats
    inside: Bools
    """(rows, columns)."""

    def error(self, mechanism: MeshMechanism) -> float:
        """The largest difference to the mechanism of what is bilinear between the lattice's points,
        at the middles of the mesh's triangles."""
        from scipy.interpolate import RegularGridInterpolator

        middles = mechanism.mesh.vertices[mechanism.mesh.triangles].mean(axis=1)
        between = RegularGridInterpolator((self.y, self.x), self.values)
        return float(np.abs(between(middles[:, ::-1]) - mechanism.at(middles)).max())


def lattice_of(mechanism: MeshMechanism, most: int = MOST) -> Lattice:
    """The mechanism on a lattice of at most about ``most`` probabilities over the region's box."""
    mesh, reports = mechanism.mesh, len(mechanism.observables)
    low, high = ends_of(mesh.vertices)
    sides = (high - low) * mesh.scale
    share = sides / sides.max()
    room = np.sqrt(most / reports / share.prod())
    longest = max(_LEAST_SIDE, min(_SIDE, int(room)))
    columns, rows = (max(3, round((longest - 1) * part) + 1) for part in share.tolist())
    x, y = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    inside = mesh.locate(points)[0] >= 0
    # points outside are moved to those of the region that are nearest, a hair inside
    feet = mesh.border.feet(points[~inside])
    points[~inside] = feet + _INWARD * (border(mesh).mean(axis=0) - feet)
    values = mechanism.at(points).reshape(rows, columns, reports)
    return Lattice(x, y, values, inside.reshape(rows, columns))


def border(mesh: Mesh) -> Floats:
    """The corners of the region (k, 2), counterclockwise."""
    from scipy.spatial import ConvexHull

    return np.asarray(mesh.vertices[ConvexHull(mesh.vertices * mesh.scale).vertices])


def plane_of_mesh(mesh: Mesh, prior: Prior) -> Plane:
    """The plane that the region is drawn in: that of the places, or kilometres of its own."""
    return (
        plane_of_degrees(mesh.vertices) if mesh.coordinates == "lonlat" else plane_of(prior.domain)
    )
