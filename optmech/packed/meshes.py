"""Meshes in packed files, and the weights that a position has in one: docs/packed.md, "Mechanisms
for every point", evaluated as it is written there."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.packed.cbor import typed, untyped
from optmech.spaces.domain import Domain
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.location import border_of
from optmech.spaces.sphere import FAR, Border, turned

Plain = Any
WEIGHT_BITS = 24
"""Weights of corners are whole numbers over 2^24."""
CORNER_BYTES = WEIGHT_BITS // 8
MOST_TRIANGLES = 2**16
_KEYS = {"vertices", "triangles", "degree", "rows", "unit", "coordinates"}
_TOLERANCE = 2.0**-32
"""Weights of positions of the region do not fall further below 0 (theory, "Packed meshes")."""
_NEAR, _WIDE = 2.0**18, 2.0**30
"""How large the square of a triangle's longest edge, and that of the region's diagonal, may be
beside twice the area of a triangle."""
_KILOMETRES = 111.2
"""More than a degree of a great circle counts for."""
_TURN = 2.0**-43
"""More than the rounding of a longitude that is led around the globe, in degrees."""
_AT_ONCE = 2**18
_LEAST_AREA = 1e-200


def encode_mesh(weights: Weights, row_of: Ints) -> Plain:
    """A mesh, and the rows (mesh.rows,) of its control points."""
    mesh = weights.mesh
    return {
        "vertices": typed(mesh.vertices.ravel(), 86),
        "triangles": typed(mesh.triangles.ravel(), 70),
        "degree": mesh.degree,
        "rows": typed(row_of[mesh.control].ravel(), 70),
        "unit": mesh.unit,
        "coordinates": mesh.coordinates,
    }


def decode_mesh(plain: Plain) -> tuple[Weights, Ints]:
    """The inverse. Raises ProblemError where triangles do not tile
    a convex region, the control points of an edge have two rows, and on anything else that
    ``encode_mesh`` does not write."""
    require_keys(plain, _KEYS, "mesh")
    corners = untyped(plain["triangles"], 70).astype(np.int64)
    flat = untyped(plain["vertices"], 86)
    if (np.abs(flat) > FAR).any():
        raise ProblemError("has a vertex beyond 2^100", where="vertices")
    if len(corners) % 3 or not 3 <= len(corners) <= 3 * MOST_TRIANGLES or len(flat) % 2:
        raise ProblemError("are no triangles of vertices", where="triangles")
    if type(plain["unit"]) is not str or type(plain["degree"]) is not int:
        raise ProblemError("has a unit or a degree that is none", where="mesh")
    mesh = Mesh(
        np.array(flat.reshape(-1, 2)),
        corners.reshape(-1, 3),
        unit=plain["unit"],
        coordinates=plain["coordinates"],
        degree=plain["degree"],
    )
    if mesh.unit != plain["unit"]:
        raise ProblemError("is not that of the coordinates", where="unit")
    if not np.array_equal(mesh.triangles, corners.reshape(-1, 3)):
        raise ProblemError("do not run counterclockwise", where="triangles")
    weights = Weights(mesh)
    if not (weights.areas > 0).all():
        raise ProblemError("has a triangle without an area in floats", where="mesh")
    rows = untyped(plain["rows"], 70).astype(np.int64)
    if len(rows) != mesh.control.size:
        raise ProblemError(f"{len(rows)} rows of control points", where="mesh")
    row_of = np.zeros(mesh.rows, dtype=np.int64)
    row_of[mesh.control.ravel()] = rows
    if not np.array_equal(row_of[mesh.control.ravel()], rows):
        raise ProblemError("control points of one edge have two rows", where="mesh")
    return weights, row_of


def vertices_of(mesh: Mesh) -> Domain:
    """The vertices as places."""
    return Domain(range(len(mesh)), mesh.vertices, mesh.unit, coordinates=mesh.coordinates)


Bools = NDArray[np.bool_]


@record
class Weights(ReadOnly):
    """Where positions are in a mesh."""

    mesh: Mesh

    @cached_property
    def corners(self) -> Floats:
        """Of every triangle, (T, 3, 2)."""
        return np.asarray(self.mesh.vertices[self.mesh.triangles])

    @cached_property
    def areas(self) -> Floats:
        """Twice those of the triangles, (T,), as rounded where they are used."""
        a, b, c = self.corners.transpose(1, 0, 2)
        across, up = b - a, c - a
        return np.asarray(across[:, 0] * up[:, 1] - across[:, 1] * up[:, 0])

    @cached_property
    def border(self) -> Border:
        """Where positions outside are led."""
        return border_of(self.mesh)

    @cached_property
    def snap(self) -> float:
        """How far a position may be from the point whose weights it gets: in the mesh's unit, in km
        for degrees. Raises ProblemError where triangles are too thin for floats to say."""
        edges = self.corners - self.corners[:, (1, 2, 0)]
        longest = (edges * edges).sum(axis=2).max(axis=1)
        low, high = self.mesh.vertices.min(axis=0), self.mesh.vertices.max(axis=0)
        wide = float(((high - low) ** 2).sum())
        thin = not (self.areas > _LEAST_AREA).all() or (longest > _NEAR * self.areas).any()
        if thin or (wide > _WIDE * self.areas).any():
            raise ProblemError(
                "has a triangle too thin, or too small beside the region, for positions in float64",
                where="mesh",
                remedy="Use a mesh of equal widths, or give coordinates in a larger unit",
            )
        if (np.abs(self.mesh.vertices) > FAR).any():
            raise ProblemError(
                "has a vertex beyond 2^100", where="mesh", remedy="Use a larger unit of distance"
            )
        shares = 2.0**-23 + 2.0**-29 + 2.0**-46 * wide / self.areas
        far = float((np.sqrt(longest) * shares).max())
        if self.mesh.coordinates == "lonlat":
            far = (far + _TURN) * _KILOMETRES
        return far * (1 + 2.0**-40)

    def of(self, positions: Floats, outside: str) -> tuple[Ints, Ints]:
        """The triangles of positions (n, 2), -1 where one is outside and that is refused, and the
        weights of their corners, whole numbers over 2^24, (n, 3)."""
        found = np.empty(len(positions), dtype=np.int64)
        weights = np.empty((len(positions), 3), dtype=np.int64)
        size = max(1, _AT_ONCE // len(self.areas))
        for begin in range(0, len(positions), size):
            part = slice(begin, begin + size)
            found[part], weights[part] = self._of(positions[part], outside)
        return found, weights

    def led(
        self, positions: Floats, outside: str
    ) -> tuple[Floats, Bools, tuple[Ints, Floats, Floats, Floats]]:
        """Positions (n, 2) as they are looked up: led around the globe, and to the border if they
        lie outside and that is not refused; which are refused; their triangles and weights."""
        vertices = self.mesh.vertices
        (west, south), (east, north) = vertices.min(axis=0), vertices.max(axis=0)
        places = np.array(positions)
        if self.mesh.coordinates == "lonlat":
            places[:, 0] = turned(places[:, 0], west, east)
        within = ((places >= (west, south)) & (places <= (east, north))).all(axis=1)
        parts = self._parts(places)
        lost = ~(within & (parts[3] >= -_TOLERANCE))
        if outside == "nearest" and lost.any():
            places[lost] = self.border.feet(positions[lost])
            for each, own in zip(parts, self._parts(places[lost]), strict=True):
                each[lost] = own
            lost[:] = False
        return places, lost, parts

    def _of(self, positions: Floats, outside: str) -> tuple[Ints, Ints]:
        _, lost, (triangle, first, second, _) = self.led(positions, outside)
        unit = 1 << WEIGHT_BITS
        one = np.clip(np.floor(first * unit), 0, unit)
        two = np.clip(np.floor(second * unit), 0, unit - one)
        weights = np.column_stack([one, two, unit - one - two]).astype(np.int64)
        return np.where(lost, -1, triangle), weights

    def _parts(self, places: Floats) -> tuple[Ints, Floats, Floats, Floats]:
        """The first triangle whose least weight is largest, its first two weights and the least."""
        u, v, w = (self.corners[:, k] - places[:, None] for k in range(3))
        parts = [a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0] for a, b in ((v, w), (w, u), (u, v))]
        least = np.minimum(np.minimum(*parts[:2]), parts[2]) / self.areas
        t = least.argmax(axis=1)
        rows = np.arange(len(places))
        first, second = (part[rows, t] / self.areas[t] for part in parts[:2])
        return t, first, second, least[rows, t]
