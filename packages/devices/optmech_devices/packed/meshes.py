"""Meshes in packed files, and the weights that a position has in one: docs/packed.md, "Mechanisms
for every point", evaluated as it is written there."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, ends_of, slices
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.network import Network
from optmech_devices.packed.cbor import typed, untyped
from optmech_devices.packed.places import require_near
from optmech_devices.protection.places import Snap

Plain = Any
WEIGHT_BITS = 24
"""Weights of corners are whole numbers over 2^24."""
CORNER_BYTES = WEIGHT_BITS // 8
MOST_CELLS = 2**16
_COMMON = {"vertices", "rows", "unit", "coordinates"}
_KEYS = {
    "mesh": _COMMON | {"triangles", "degree"},
    "network": _COMMON | {"segments", "lengths", "dimension"},
}
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
_MOST_POINTS = 2.0**53
_LEAST = 1e-200
"""Of an area, or of the square of a length."""
_UNIT = 1 << WEIGHT_BITS
_UP = 1 + 2.0**-40


def encode_mesh(weights: Weights, row_of: Ints) -> Plain:
    """A mesh, and the rows (mesh.rows,) of its control points."""
    mesh = weights.mesh
    return {**shape_of(mesh), "rows": typed(row_of[mesh.control].ravel(), 70)}


def shape_of(mesh: Mesh) -> dict[str, Plain]:
    """A mesh as it is written, without rows."""
    cells = typed(mesh.triangles.ravel(), 70)
    out = {"vertices": typed(mesh.vertices.ravel(), 86), "unit": mesh.unit,
           "coordinates": mesh.coordinates}  # fmt: skip
    if not isinstance(mesh, Network):
        return {**out, "triangles": cells, "degree": mesh.degree}
    lengths = None if mesh.lengths is None else typed(mesh.lengths, 86)
    dimension = mesh.vertices.shape[1]
    return {**out, "segments": cells, "lengths": lengths, "dimension": dimension}


def decode_mesh(plain: Plain, kind: str) -> tuple[Weights, Ints]:
    """A mesh of a ``kind``, "mesh" or "network", and the row of every control point. Raises
    ProblemError where triangles do not tile a convex region, or segments are no line or connected
    network, control points that are one have two rows, and on anything else that ``encode_mesh``
    does not write."""
    require_keys(plain, _KEYS[kind], "mesh")
    cells = "triangles" if kind == "mesh" else "segments"
    corners, flat = untyped(plain[cells], 70), untyped(plain["vertices"], 86)
    require_near(flat, "vertices")
    size, dimension = (3, 2) if kind == "mesh" else (2, plain["dimension"])
    if type(dimension) is not int or dimension not in (1, 2) or len(flat) % dimension:
        raise ProblemError("are of another dimension", where="vertices")
    if len(corners) % size or not size <= len(corners) <= size * MOST_CELLS:
        raise ProblemError(f"are no {cells} of vertices", where=cells)
    vertices, corners = np.array(flat.reshape(-1, dimension)), corners.reshape(-1, size)
    mesh = (_region if kind == "mesh" else _network)(plain, vertices, corners)
    if not np.array_equal(mesh.triangles, corners):
        raise ProblemError("do not run counterclockwise, or along the line", where=cells)
    if mesh.unit != plain["unit"]:
        raise ProblemError("is not that of the coordinates", where="unit")
    rows = untyped(plain["rows"], 70)
    if len(rows) != mesh.control.size:
        raise ProblemError(f"{len(rows)} rows of control points", where="mesh")
    row_of = np.zeros(mesh.rows, dtype=np.int64)
    row_of[mesh.control.ravel()] = rows
    if not np.array_equal(row_of[mesh.control.ravel()], rows):
        raise ProblemError("control points that are one have two rows", where="mesh")
    return weights_of(mesh), row_of


def _region(plain: Plain, vertices: Floats, corners: Ints) -> Mesh:
    if type(plain["unit"]) is not str or type(plain["degree"]) is not int:
        raise ProblemError("has a unit or a degree that is none", where="mesh")
    names = ("unit", "coordinates", "degree")
    mesh = Mesh(vertices, corners, **{name: plain[name] for name in names})
    # weights are divided by them
    if not (Areas(mesh).areas > 0).all():
        raise ProblemError("has a triangle without an area in floats", where="mesh")
    return mesh


def _network(plain: Plain, vertices: Floats, ends: Ints) -> Network:
    lengths = plain["lengths"]
    return Network(
        vertices,
        [range(len(vertices))] if vertices.shape[1] == 1 else ends.tolist(),
        lengths=None if lengths is None else untyped(lengths, 86),
        unit=plain["unit"],
        coordinates=plain["coordinates"],
    )


Cells = tuple[Ints, Floats]
"""The cells of positions, (n,), and shares that weights follow from, (n, k)."""


def weights_of(mesh: Mesh) -> Weights:
    """Where positions are in a mesh: in its triangles, or on its segments."""
    return Shares(mesh) if isinstance(mesh, Network) else Areas(mesh)


@record
class Weights(ReadOnly):
    """Where positions are in a mesh."""

    mesh: Mesh

    @cached_property
    @abstractmethod
    def snap(self) -> float:
        """How far a position may be from the point whose weights it gets, along roads from where it
        was matched to: in the mesh's unit, in km for degrees. Raises ProblemError where cells are
        too small for floats to say."""

    @abstractmethod
    def led(self, positions: Floats, outside: str) -> tuple[Floats, Bools, Cells]:
        """Positions (n, k) as they are looked up: led around the globe, and to the border if they
        lie outside and that is not refused; which are refused; their cells and shares."""

    @abstractmethod
    def lattice(self, slack: float) -> Snap | Steps | None:
        """The widest whose moves add at most ``slack`` to a distance; None where it has too many
        points."""

    @abstractmethod
    def _whole(self, shares: Floats) -> Ints:
        """Weights over 2^24 by what ``led`` found."""

    def of(self, positions: Floats, outside: str) -> tuple[Ints, Ints]:
        """The cells of positions (n, k), -1 where one is outside and that is refused, and the
        weights of their corners, whole numbers over 2^24, (n, corners)."""
        found = np.empty(len(positions), dtype=np.int64)
        weights = np.empty((len(positions), self.mesh.triangles.shape[1]), dtype=np.int64)
        for part in slices(len(positions), len(self.mesh.triangles), _AT_ONCE):
            _, lost, (cell, shares) = self.led(positions[part], outside)
            found[part], weights[part] = np.where(lost, -1, cell), self._whole(shares)
        return found, weights

    def _turned(self, positions: Floats) -> tuple[Floats, Bools]:
        """Positions led around the globe, and which are in the box around all vertices."""
        (low, high), places = ends_of(self.mesh.vertices), self.mesh.led_around(positions)
        return places, np.asarray(((places >= low) & (places <= high)).all(axis=1))


@record
class Areas(Weights):
    """Where positions are in the triangles of a region."""

    @cached_property
    def corners(self) -> Floats:
        """The corners of every triangle, (T, 3, 2)."""
        return self.mesh.vertices[self.mesh.triangles]

    @cached_property
    def areas(self) -> Floats:
        """Twice those of the triangles, (T,), as rounded where they are used."""
        a, b, c = self.corners.transpose(1, 0, 2)
        across, up = b - a, c - a
        return np.asarray(across[:, 0] * up[:, 1] - across[:, 1] * up[:, 0])

    @cached_property
    def snap(self) -> float:
        edges = self.corners - self.corners[:, (1, 2, 0)]
        longest = (edges * edges).sum(axis=2).max(axis=1)
        low, high = ends_of(self.mesh.vertices)
        wide = float(((high - low) ** 2).sum())
        thin = not (self.areas > _LEAST).all() or (longest > _NEAR * self.areas).any()
        if thin or (wide > _WIDE * self.areas).any():
            raise ProblemError(
                "has a triangle too thin, or too small beside the region, for positions in float64",
                where="mesh",
                remedy="Use a mesh of equal widths, or give coordinates in a larger unit",
            )
        require_near(self.mesh.vertices, "mesh")
        shares = 2.0**-23 + 2.0**-29 + 2.0**-46 * wide / self.areas
        far = float((np.sqrt(longest) * shares).max())
        if self.mesh.coordinates == "lonlat":
            far = (far + _TURN) * _KILOMETRES
        return far * _UP

    def led(self, positions: Floats, outside: str) -> tuple[Floats, Bools, Cells]:
        places, within = self._turned(positions)
        cells, shares = self._parts(places)
        lost = ~(within & (shares[:, 2] >= -_TOLERANCE))
        if outside == "nearest" and lost.any():
            places[lost] = self.mesh.border.feet(positions[lost])
            cells[lost], shares[lost] = self._parts(places[lost])
            lost[:] = False
        return places, lost, (cells, shares)

    def lattice(self, slack: float) -> Snap | None:
        found = Snap.of(self.mesh, slack)
        wide = np.floor(np.ptp(self.mesh.vertices, axis=0) / found.step + 0.5) + 1
        return found if float(wide[0] * wide[1]) < _MOST_POINTS else None

    def _whole(self, shares: Floats) -> Ints:
        one = np.clip(np.floor(shares[:, 0] * _UNIT), 0, _UNIT)
        two = np.clip(np.floor(shares[:, 1] * _UNIT), 0, _UNIT - one)
        return np.column_stack([one, two, _UNIT - one - two]).astype(np.int64)

    def _parts(self, places: Floats) -> Cells:
        """The first triangle whose least weight is largest; its first two weights and the least."""
        u, v, w = (self.corners[:, k] - places[:, None] for k in range(3))
        parts = [a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0] for a, b in ((v, w), (w, u), (u, v))]
        least = np.minimum(np.minimum(*parts[:2]), parts[2]) / self.areas
        t = least.argmax(axis=1)
        rows = np.arange(len(places))
        first, second = (part[rows, t] / self.areas[t] for part in parts[:2])
        return t, np.column_stack([first, second, least[rows, t]])


@record
class Shares(Weights):
    """Where positions are on the segments of a line or along roads: at the point next to them."""

    mesh: Network

    @cached_property
    def snap(self) -> float:
        require_near(self.mesh.vertices, "mesh")
        longest = float(self.mesh.widths.max())
        if not self.mesh.is_line:
            return longest * 2.0**-WEIGHT_BITS * _UP
        if not float(self.mesh.widths.min()) ** 2 > _LEAST:
            raise ProblemError(
                "has a segment too short for positions in float64",
                where="mesh",
                remedy="Use fewer cells, or give numbers in a smaller unit",
            )
        far = float(np.abs(self.mesh.vertices).max())
        return (longest * (2.0**-WEIGHT_BITS + 2.0**-49) + far * 2.0**-50) * _UP

    def led(self, positions: Floats, outside: str) -> tuple[Floats, Bools, Cells]:
        places, within = self._turned(positions)
        segments, shares = self.mesh.border.shares(positions)
        lost = ~within & (outside != "nearest")
        return places, lost, (segments, shares[:, None])

    def lattice(self, slack: float) -> Steps | None:
        return Steps.of(self.mesh, slack)

    def _whole(self, shares: Floats) -> Ints:
        last = np.floor(shares * _UNIT).astype(np.int64)
        return np.hstack([_UNIT - last, last])


@record
class Steps:
    """Points of a line or of roads on which reports repeat: every segment in ``parts`` equal ones,
    whose ends at a vertex are one point. Two positions count as up to ``slack`` farther apart than
    they are, along the roads."""

    mesh: Network
    parts: int
    slack: float

    @classmethod
    def of(cls, mesh: Network, slack: float) -> Steps | None:
        """The widest whose moves add at most ``slack`` to a distance; None where there are more
        than 2^24 in a segment."""
        longest = float(mesh.widths.max())
        if not longest / slack < _UNIT:
            return None
        parts = max(1, math.ceil(longest / slack))
        return cls(mesh, parts, longest / parts * (1 + 2.0**-20))

    @property
    def shape(self) -> tuple[int]:
        """How many points there are: the vertices, and those inside segments."""
        return (len(self.mesh) + len(self.mesh.segments) * (self.parts - 1),)

    def number(self, segment: int, share: float) -> int:
        """The number of the point next to a share of the way along a segment."""
        step = math.floor(share * self.parts + 0.5)
        if 0 < step < self.parts:
            return len(self.mesh) + segment * (self.parts - 1) + step - 1
        return int(self.mesh.segments[segment, int(step > 0)])

    def point(self, number: int) -> tuple[int, tuple[int, ...]]:
        """The segment of a point, and the weights of its ends there."""
        if number < len(self.mesh):
            segment, end = divmod(int(np.argmax(self.mesh.segments.ravel() == number)), 2)
            return segment, ((0, _UNIT) if end else (_UNIT, 0))
        segment, before = divmod(number - len(self.mesh), self.parts - 1)
        last = (before + 1) * _UNIT // self.parts
        return segment, (_UNIT - last, last)
