"""Meshes in packed files, and the weights that a position has in one: docs/packed.md, "Mechanisms
for every point", evaluated as it is written there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.mesh import Mesh
from optmech.mesh.covering import Corners
from optmech.packed.cbor import typed, untyped
from optmech.packed.places import cosine_of_middle
from optmech.spaces.domain import Domain

Plain = Any
WEIGHT_BITS = 24
"""Weights of corners are whole numbers over 2^24."""
CORNER_BYTES = WEIGHT_BITS // 8
MOST_TRIANGLES = 2**16
_KEYS = {"vertices", "triangles", "degree", "rows", "unit", "coordinates", "aspect"}
_TOLERANCE = 2.0**-32
"""Weights of positions of the region do not fall further below 0 (theory, "Packed meshes")."""
_NEAR, _WIDE = 2.0**18, 2.0**30
"""How large the square of a triangle's longest edge, and that of the region's diagonal, may be
beside twice the area of a triangle."""
_KILOMETRES = 111.2
"""More than a degree of a great circle counts for."""
_TURN = 2.0**-43
"""More than the rounding of a longitude that is led around the globe, in degrees."""
FAR = 2.0**100
"""Coordinates beyond this are none: products of four of them are still floats."""
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
        "aspect": weights.aspect,
    }


def decode_mesh(plain: Plain) -> tuple[Weights, Ints]:
    """The inverse, with the aspect that is written. Raises ProblemError where triangles do not tile
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
    if type(plain["aspect"]) is not float or not 0 < plain["aspect"] <= 1:
        raise ProblemError("is no cosine above 0", where="aspect")
    if not math.isclose(plain["aspect"], aspect(mesh), rel_tol=1e-12):
        raise ProblemError("is not the cosine of the middle latitude", where="aspect")
    rows = untyped(plain["rows"], 70).astype(np.int64)
    if len(rows) != mesh.control.size:
        raise ProblemError(f"{len(rows)} rows of control points", where="mesh")
    row_of = np.zeros(mesh.rows, dtype=np.int64)
    row_of[mesh.control.ravel()] = rows
    if not np.array_equal(row_of[mesh.control.ravel()], rows):
        raise ProblemError("control points of one edge have two rows", where="mesh")
    return Weights(mesh, plain["aspect"]), row_of


def aspect(mesh: Mesh) -> float:
    """What a degree of longitude is in degrees of latitude, in the middle; 1.0 in the plane."""
    return 1.0 if mesh.coordinates == "plane" else cosine_of_middle(mesh.vertices[:, 1])


def vertices_of(mesh: Mesh) -> Domain:
    """The vertices as places."""
    return Domain(range(len(mesh)), mesh.vertices, mesh.unit, coordinates=mesh.coordinates)


@dataclass(frozen=True, eq=False)
class Weights(ReadOnly):
    """Where positions are in a mesh; ``aspect``: of a unit of x in units of y."""

    mesh: Mesh
    aspect: float

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
    def border(self) -> tuple[Floats, Floats]:
        """The ends of the edges of one triangle only, (E, 2) each."""
        edges = [(a, b) for t in self.mesh.corners for a, b in zip(t, t[1:] + t[:1], strict=True)]
        known = set(edges)
        outer = np.array([edge for edge in edges if edge[::-1] not in known])
        return self.mesh.vertices[outer[:, 0]], self.mesh.vertices[outer[:, 1]]

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

    def of(self, position: tuple[float, float], outside: str) -> tuple[int, Corners] | None:
        """The triangle of a position and the weights of its corners, whole numbers over 2^24; None
        where it is outside, and that is refused."""
        x, y = self._unwrapped(position[0]), position[1]
        (west, south), (east, north) = (
            self.mesh.vertices.min(axis=0),
            self.mesh.vertices.max(axis=0),
        )
        parts, least = self._parts(x, y)
        within = west <= x <= east and south <= y <= north
        if not (within and least.max() >= -_TOLERANCE):
            if outside != "nearest":
                return None
            parts, least = self._parts(*self._foot(x, y))
        t = int(least.argmax())
        unit = 1 << WEIGHT_BITS
        first = min(max(math.floor(parts[0][t] / self.areas[t] * unit), 0), unit)
        second = min(max(math.floor(parts[1][t] / self.areas[t] * unit), 0), unit - first)
        return t, (first, second, unit - first - second)

    def _unwrapped(self, x: float) -> float:
        if self.mesh.coordinates == "plane":
            return x
        across = self.mesh.vertices[:, 0]
        middle = (float(across.min()) + float(across.max())) / 2
        return x - 360 if x - middle > 180 else x + 360 if x - middle < -180 else x

    def _parts(self, x: float, y: float) -> tuple[list[Floats], Floats]:
        """Twice the areas towards every corner, (T,) each, and the least over the whole."""
        u, v, w = (self.corners - np.array([x, y])).transpose(1, 2, 0)
        parts = [
            v[0] * w[1] - v[1] * w[0],
            w[0] * u[1] - w[1] * u[0],
            u[0] * v[1] - u[1] * v[0],
        ]
        return parts, np.minimum(np.minimum(*parts[:2]), parts[2]) / self.areas

    def _foot(self, x: float, y: float) -> tuple[float, float]:
        """The nearest point of the border."""
        start, end = self.border
        k = self.aspect
        along, up = (end[:, 0] - start[:, 0]) * k, end[:, 1] - start[:, 1]
        ahead, over = (x - start[:, 0]) * k, y - start[:, 1]
        share = np.clip((ahead * along + over * up) / (along * along + up * up), 0.0, 1.0)
        foot = (
            start[:, 0] + share * (end[:, 0] - start[:, 0]),
            start[:, 1] + share * (end[:, 1] - start[:, 1]),
        )
        m, n = (x - foot[0]) * k, y - foot[1]
        nearest = int((m * m + n * n).argmin())
        return float(foot[0][nearest]), float(foot[1][nearest])
