"""Triangles that tile a convex region: where privacy is promised at every point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.base.arrays import (
    Bools,
    Floats,
    Ints,
    coordinate_rows,
    ends_of,
    finite_array,
    unwrapped,
)
from optmech.base.labels import refuse_latitude_first
from optmech.base.read_only import ReadOnly, locked, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import nonnegative, whole
from optmech.exact.number import Number
from optmech.exact.numerators import integers
from optmech.spaces.arguments import checked_arguments, kind
from optmech.spaces.distances import Distance, euclidean, haversine
from optmech.spaces.domain import Coordinates, Domain
from optmech.spaces.domain_arguments import require_lonlat, unit_text
from optmech.spaces.mesh import elements, files, triangulation
from optmech.spaces.mesh.covering import (
    Corners,
    Place,
    covering_flaw,
    doubled_area,
    kilometres_per_degree,
    least_share,
)
from optmech.spaces.mesh.triangulation import (
    Locator,
    both_rational,
    corners_of,
    scale_of,
    widths_of,
)
from optmech.spaces.sphere import INWARD, Border, squares, turned

_REFINED = 0.3
"""Share of the indicator's sum that the triangles refined at a time hold."""
_PASSES = 60
_BORDER = 1e-9
"""Of a weight, and of the width of a region: so near to its border floats may be wrong."""
_ROUNDING = 2.0**-46
"""Of a corner's weight, beside the square of the region's width over the triangle's area."""
_FARTHEST = 1e150
"""Squares of coordinates are to be floats."""
MADE: dict[str, Callable[..., Any]] = {}
"""What makes a ``Network``: a "line", "roads", and "ways" of plain values."""


@kind("Make one with om.Mesh.grid or om.Mesh.around")
@record
class Mesh(SameFields, ReadOnly):
    """Vertices, and triangles that tile a convex region edge to edge; decided exactly.

    Parameters
    ----------
    vertices:
        Coordinates, shape (V, 2), in ``unit``; with ``coordinates="lonlat"`` longitude and latitude
        in degrees. They count as the binary fractions that they are.
    triangles:
        Indices of three vertices each, shape (T, 3), in either sense.
    unit, coordinates:
        As of a ``Domain``.
    degree:
        Of the polynomials that mechanisms are in every triangle: 1 for functions that are linear
        there, up to 6. With the same number of rows, a higher degree on larger triangles comes
        much nearer to e^{ε d} than linear functions do (see ``rows``).

    Raises
    ------
    ProblemError
        On vertices or triangles of another shape, and where the triangles overlap, leave a gap or
        a vertex on another's edge, or cover no convex region; in degrees also on a region beyond
        85 degrees of latitude or of continental size.

    Examples
    --------
    >>> mesh = om.Mesh([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [1, 3, 2]], unit="km")
    >>> len(mesh.vertices), len(mesh.triangles), mesh.flaw()
    (4, 2, '')
    >>> mesh.with_degree(2).rows  # vertices and middles of edges
    9
    >>> om.Mesh.grid((0, 0, 2, 1), width=1).triangles.shape
    (4, 3)
    >>> triangle, weights = mesh.locate([[0.25, 0.25], [5, 5]])
    >>> triangle.tolist(), weights[0].tolist()  # -1: outside
    ([0, -1], [0.5, 0.25, 0.25])
    >>> triangle, weights = mesh.locate_exactly((0.25, 0.25))  # whole numbers
    >>> [weight / sum(weights) for weight in weights]
    [0.5, 0.25, 0.25]
    >>> mesh.inside((0.25, 0.25)) == (triangle, weights)  # an error outside of the region
    True
    >>> mesh.listed((0.25, 0.25)).tolist()
    [[0.25, 0.25]]
    >>> mesh.holds(np.array([[0.25, 0.25], [5, 5]])).tolist()  # exactly
    [True, False]
    >>> mesh.nearest(np.array([[0.5, 5.0]])).round(6).tolist()  # inside, next to the border
    [[0.5, 1.0]]
    >>> print(mesh.interpolation([[0.25, 0.25]]).toarray())
    [[0.5  0.25 0.25 0.  ]]
    >>> mesh.led_around(np.array([[0.25, 0.25]])).tolist()  # other points only of degrees
    [[0.25, 0.25]]
    >>> mesh.require_region()  # an error of lines and networks
    >>> len(mesh.refine([1, 0]).triangles)
    4
    >>> om.Mesh.from_dict(mesh.to_dict()) == mesh
    True
    >>> mesh.write("square.json")
    >>> om.Mesh.read("square.json") == mesh
    True
    >>> people = np.random.default_rng(1).normal(size=(200, 2))
    >>> om.Mesh.around(people, width=1, unit="km").flaw()
    ''
    """

    pieces: ClassVar[Literal["triangles", "segments"]] = "triangles"
    """What it is made of."""
    _outside: ClassVar = ("lies outside of the region", "Use a mesh around all of the points")
    vertices: Floats
    triangles: Ints
    unit: str = ""
    coordinates: Coordinates = "plane"
    degree: int = 1

    def __init__(
        self,
        vertices: ArrayLike,
        triangles: ArrayLike,
        *,
        unit: str = "",
        coordinates: Coordinates = "plane",
        degree: int = 1,
    ) -> None:
        named = unit_text(unit, coordinates)
        places = finite_array(vertices, where="vertices", ndim=2)
        if places.shape[1] != 2 or len(places) < 3:
            raise ProblemError(
                f"shape {places.shape} is not that of three or more places in the plane",
                where="vertices",
            )
        triangulation.refuse_more(len(places))
        if np.abs(places).max() > _FARTHEST:
            raise ProblemError(
                "floating point has no areas of triangles between coordinates of this size",
                where="vertices",
                remedy="Use a larger unit",
            )
        if coordinates == "lonlat":
            require_lonlat(places)
        vars(self).update(
            vertices=places, unit=named, coordinates=coordinates,
            degree=elements.degree_of(degree), triangles=corners_of(triangles, len(places)),
        )  # fmt: skip
        vars(self).update(triangles=self._counterclockwise())
        flaw = self.flaw()
        if flaw:
            raise ProblemError(
                flaw, where="mesh", remedy="Tile a convex region with triangles, edge to edge"
            )
        if coordinates == "lonlat":
            _ = self.units

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def grid(
        cls,
        bounds: Sequence[float],
        width: Number,
        *,
        unit: str = "",
        coordinates: Coordinates = "plane",
        degree: int = 1,
    ) -> Mesh:
        """The rectangle ``bounds`` = (x0, y0, x1, y1) in squares of at most ``width``, halved.

        With ``coordinates="lonlat"`` bounds are (west, south, east, north) in degrees and the
        width is in km. ``degree`` as of a ``Mesh``.
        """
        box = finite_array(bounds, where="bounds")
        if box.shape != (4,) or not (box[:2] < box[2:]).all():
            raise ProblemError(
                "is not a box", where="bounds", remedy="Give (x0, y0, x1, y1), x0 < x1, y0 < y1"
            )
        step = widths_of(width, box.reshape(2, 2), coordinates)
        counts = np.maximum(1.0, np.ceil((box[2:] - box[:2]) / step * (1 - 1e-12)))
        triangulation.refuse_more(float(np.prod(counts + 1)))
        steps = int(counts[0]), int(counts[1])
        west, south, east, north = box.tolist()
        made = triangulation.rectangle((west, south, east, north), steps)
        return cls(*made, unit=unit, coordinates=coordinates, degree=degree)

    @classmethod
    def around(
        cls,
        points: Domain | ArrayLike,
        width: Number,
        *,
        vertices: int | None = None,
        weights: ArrayLike | None = None,
        unit: str = "",
        coordinates: Coordinates = "plane",
        degree: int = 1,
    ) -> Mesh:
        """A convex region of up to eight sides around points, in triangles of about ``width``.

        Parameters
        ----------
        points:
            A domain with coordinates in the plane or in degrees (whose unit is taken), or an array
            of shape (n, 2).
        width:
            Distance of neighbouring vertices, in the unit of the points; in km for degrees.
        vertices:
            With it triangles are halved, those first that have most ``weights`` times width,
            until there are about so many vertices.
        weights:
            Mass of the points, shape (n,); equal by default.
        degree:
            As of a ``Mesh``.
        """
        if isinstance(points, Domain):
            unit, coordinates = points.unit, points.coordinates
            points = points.require_points("make a mesh around them")
        places = finite_array(points, where="points", ndim=2, observations=True)
        if places.shape[1] != 2 or not len(places):
            raise ProblemError(f"shape {places.shape} is not (n, 2)", where="points")
        box = np.array(ends_of(places))
        step = widths_of(width, box, coordinates)
        lattice = triangulation.lattice_around(places, step)
        found = _triangulated(lattice, unit, coordinates, elements.degree_of(degree))
        if vertices is None:
            return found
        mass = np.ones(len(places))
        if weights is not None:
            mass = nonnegative(weights, "weights", mass.shape)
        return by_mass(found, places, mass, whole(vertices, "vertices", least=3))

    @staticmethod
    @checked_arguments
    def line(low: Number, high: Number, cells: int, *, unit: str = "") -> Any:
        """The interval from ``low`` to ``high`` in ``cells`` equal segments: a ``Network``, a mesh
        of dimension one, whose points are numbers.

        Its vertices are the places of a problem, ``line.domain``. Reports are drawn from any number
        in between, and ``om.DifferentialPrivacy`` and ``om.MetricPrivacy`` hold for all of them.

        Raises
        ------
        ProblemError
            Where ``low`` is not below ``high``, or there is no segment, or there are more than
            numbers of this size can tell apart.

        Examples
        --------
        >>> line = om.Mesh.line(0, 1, 20, unit="km")
        >>> line
        Mesh(the line from 0 to 1 km in 20 segments)
        """
        return MADE["line"](low, high, cells, unit)

    @staticmethod
    def roads(
        graph: Any,
        divide: Number | None = None,
        *,
        length: str = "length",
        metres: bool = False,
        unit: str = "",
        coordinates: Coordinates = "lonlat",
        largest: bool = False,
    ) -> Any:
        """A road network: crossings joined by roads, a ``Network``, on which distances are measured
        along the roads, both ways.

        Its vertices, ``roads.domain``, are the places of a problem; reports are drawn from every
        point of every road, ``design.mechanism.sample_at((u, v, share))``.

        Parameters
        ----------
        graph:
            A networkx graph whose nodes have x and y (or "pos") and whose edges may have a length
            and a "geometry" (a shapely line, or one in words), as osmnx makes them; what
            ``om.exchange.read_osm`` returns; two tables, of nodes (node, longitude, latitude) and
            of edges (source, target, length); or a file: GeoJSON lines, which meet where they
            share a corner, or GraphML as osmnx writes it.
        divide:
            Segments are at most so long: longer roads are cut into equal parts, whose ends are
            vertices as well, and what is attained comes nearer to the bound. None divides nothing.
        length:
            The attribute or column with the length of every road; straight lines where it is
            missing everywhere.
        metres:
            Lengths are in metres, and counted in km.
        unit, coordinates:
            As of a ``Domain``; with "lonlat", the default, lengths are in km.
        largest:
            Keep the largest connected part; otherwise a network of several is refused.

        Raises
        ------
        ProblemError
            On a length below the straight line between the ends of a road, or in another unit, on
            several parts, and on what is no network.

        Examples
        --------
        >>> nodes = {"node": ["a", "b", "c"], "x": [0, 1, 1], "y": [0, 0, 2]}
        >>> edges = {"source": ["a", "b"], "target": ["b", "c"]}
        >>> roads = om.Mesh.roads((nodes, edges), divide="1/2", unit="km", coordinates="plane")
        >>> roads
        Mesh(a network of 6 segments between 7 vertices)
        >>> promise = om.MetricPrivacy("ln 3", everywhere=roads)
        >>> problem = om.Problem(roads.prior("crossings"), roads.distance, constraints=[promise])
        >>> design = om.solve(problem)
        >>> print(round(design.loss, 3), round(design.lower_bound, 3))
        0.553 0.45
        >>> design.mechanism.at([("a", "b", 0.3), ("b", "c", "1/3")]).shape
        (2, 7)
        """
        return MADE["roads"](graph, divide, length, metres, unit, coordinates, largest)

    def refine(self, indicator: ArrayLike, most: int | None = None) -> Mesh:
        """Halve the longest edges of the triangles with the largest ``indicator`` (T,), as many as
        hold 30 % of its sum and at most ``most``, and triangulate again."""
        values = nonnegative(indicator, "indicator", (len(self.triangles),))
        marked = triangulation.largest(values, _REFINED, most)
        more = triangulation.halves(self.vertices, self.triangles, marked, self.scale)
        if not len(more):
            return self
        vertices = np.vstack([self.vertices, more])
        return _triangulated(vertices, self.unit, self.coordinates, self.degree)

    def with_degree(self, degree: int) -> Mesh:
        """A mesh of these triangles, with polynomials of another degree."""
        own = self.vertices, self.triangles
        return Mesh(*own, unit=self.unit, coordinates=self.coordinates, degree=degree)

    # -- what it is --------------------------------------------------------------------------

    @cached_property
    def domain(self) -> Domain:
        """The vertices as a domain, named by their numbers."""
        places = self.vertices, self.unit
        return Domain(range(len(self)), *places, coordinates=self.coordinates)

    def __len__(self) -> int:
        """The number of vertices."""
        return len(self.vertices)

    def __repr__(self) -> str:
        unit = f" in {self.unit}" if self.unit and self.coordinates == "plane" else ""
        degrees = ", longitude and latitude" if self.coordinates == "lonlat" else ""
        degree = f" of degree {self.degree}" if self.degree > 1 else ""
        return f"Mesh({len(self)} vertices, {len(self.triangles)} triangles{degree}{unit}{degrees})"

    @property
    def is_region(self) -> bool:
        """Whether it is of triangles; a line or network is of dimension one."""
        return True

    @property
    def is_line(self) -> bool:
        """Whether its points are numbers."""
        return False

    @property
    def measure(self) -> tuple[str, Distance]:
        """The distance between its points, and its name."""
        if self.coordinates == "lonlat":
            return "haversine", haversine()
        return "euclidean", euclidean()

    @property
    def is_linear(self) -> bool:
        """Whether promises are stated of functions that are linear in every piece, and not of the
        coefficients that these or others have."""
        return self.degree == 1 and self.coordinates == "plane"

    @property
    def size_words(self) -> str:
        """How large it is, in a few words."""
        return f"{len(self)} vertices, degree {self.degree}"

    def require_region(self) -> None:
        """Raise ProblemError where it is a line or network, and what is asked for is not."""

    @property
    def words(self) -> str:
        """The region and its triangles, in a sentence."""
        degree = f", by polynomials of degree {self.degree}" if self.degree > 1 else ""
        return f"a region of {len(self.triangles)} triangles with {len(self)} corners{degree}"

    def flaw(self) -> str:
        """Why the triangles do not tile a convex region; empty where they do."""
        return covering_flaw(self.whole[0], self.corners)

    @cached_property
    def whole(self) -> tuple[tuple[Place, ...], int]:
        """The vertices as whole numbers over 2^e, and e, exactly."""
        rows, exponent = integers(self.vertices)
        return tuple((x, y) for x, y in rows), exponent

    @cached_property
    def corners(self) -> tuple[Corners, ...]:
        """The triangles as Python's numbers."""
        return tuple((a, b, c) for a, b, c in self.triangles.tolist())

    @cached_property
    def control(self) -> Ints:
        """The control points of every triangle, (T, n), in the order of ``elements.indices``; its
        corners where the degree is 1."""
        return self._numbered[0]

    @property
    def rows(self) -> int:
        """The number of control points, each of which has a row of a mechanism's matrix: the
        vertices first, then ``degree`` − 1 points inside every edge, then those inside triangles.
        """
        return self._numbered[1]

    @cached_property
    def _numbered(self) -> tuple[Ints, int]:
        return elements.numbering(self.triangles, len(self), self.degree)

    @cached_property
    def units(self) -> Floats:
        """What a unit of each coordinate counts for in every triangle, at most; shape (T, 2).

        Ones in the plane. In degrees kilometres, with all that the map distorts charged: a
        segment's length, measured so, is at most the great-circle distance of its ends.
        """
        if self.coordinates == "plane":
            return np.ones((len(self.triangles), 2))
        return kilometres_per_degree(self.vertices, self.triangles)

    @property
    def distortion(self) -> float:
        """The largest part of a distance that the map of degrees gives away; 0 in the plane."""
        if self.coordinates == "plane":
            return 0.0
        latitude = np.radians(np.abs(self.vertices[:, 1][self.triangles]))
        local = np.cos(latitude.max(axis=1)) / np.cos(latitude.min(axis=1))
        return float(1 - least_share(self.vertices) * local.min())

    @property
    def scale(self) -> Floats:
        """What a unit of each coordinate is about, (2,): for looks, such as Delaunay's circles."""
        return np.asarray(self.units.mean(axis=0))

    @cached_property
    def widths(self) -> Floats:
        """The longest edge of every triangle, in the unit of distance, (T,)."""
        edges = self.vertices[self.triangles] - self.vertices[self.triangles[:, (1, 2, 0)]]
        return np.asarray(np.linalg.norm(edges * self.units[:, None, :], axis=2).max(axis=1))

    # -- where points are --------------------------------------------------------------------

    def locate(self, points: ArrayLike) -> tuple[Ints, Floats]:
        """The triangle of every row of ``points`` (k, 2), -1 outside of the region, and the row's
        weights at the triangle's corners, (k, 3), which are >= 0 and sum to one.

        In floating point: what lies on an edge may be found on either side of it.
        """
        places = coordinate_rows(points, 2)
        if self.coordinates == "lonlat":
            refuse_latitude_first(points, where="points")
            places = unwrapped(places, self.vertices.mean(axis=0))
        return self._locator.floats(places)

    def interpolation(self, points: ArrayLike) -> sp.csr_array:
        """What every row of a mechanism's matrix counts for at points (n, 2), shape (n, rows):
        barycentric weights of the vertices, or Bernstein's polynomials in these.

        Raises
        ------
        ProblemError
            On a point outside of the region.
        """
        triangle, weights = self.locate(points)
        outside = np.flatnonzero(triangle < 0).tolist()
        if outside:
            more = f", and so do {len(outside) - 1} more" if len(outside) > 1 else ""
            where, remedy = self._outside
            raise ProblemError(
                f"{where}{more}",
                where=f"points[{outside[0]}]",
                remedy=remedy,
            )
        values, control = elements.basis(weights, self.degree), self.control[triangle]
        places = np.repeat(np.arange(len(values)), values.shape[1]), control.ravel()
        return sp.csr_array((values.ravel(), places), shape=(len(values), self.rows))

    def locate_exactly(
        self, point: Sequence[float | Fraction]
    ) -> tuple[int, tuple[int, int, int]] | None:
        """A triangle with the point, and the point's weights there as whole numbers >= 0 over
        their sum, exactly; None outside of the region.

        Coordinates are fractions, or floats, which count as the binary fractions that they are.
        """
        x, y = both_rational(point)
        if self.coordinates == "lonlat":
            middle = Fraction(float(self.vertices[:, 0].mean()))
            x -= 360 * round((x - middle) / 360)
        places, exponent = self.whole
        return self._locator.exactly((x, y), places, exponent, self.corners)

    def listed(self, points: ArrayLike) -> Any:
        """Points one by one: finite coordinates, (k, 2)."""
        return finite_array(coordinate_rows(points, 2), where="points")

    def inside(self, point: Any, k: int | None = None) -> tuple[int, tuple[int, ...]]:
        """``locate_exactly`` of a point, number ``k`` of those given; ProblemError outside."""
        found = self.locate_exactly(point)
        if found is None:
            outside, remedy = self._outside
            where = "point" if k is None else f"points[{k}]"
            degrees = self.coordinates == "lonlat" and len(point) == 2
            if degrees and self.locate_exactly(point[::-1]) is not None:
                remedy = "It may be the other way around: longitude first"
            raise ProblemError(outside, where=where, remedy=remedy)
        return found

    def led_around(self, points: Floats) -> Floats:
        """The points (n, k), of degrees led around the globe to where the mesh is."""
        places = np.array(points)
        if self.coordinates == "lonlat":
            west, east = self.vertices[:, 0].min(), self.vertices[:, 0].max()
            places[:, 0] = turned(places[:, 0], float(west), float(east))
        return places

    def holds(self, points: Floats) -> Bools:
        """Which of the points (n, k) it reports from, decided exactly."""
        places = coordinate_rows(points, 2)
        triangles, weights = self.locate(places)
        inside = triangles >= 0
        # floats find what is next to the border on either side of it: decided exactly there
        unsure = self._near(places) & (~inside | (weights.min(axis=1) < _BORDER))
        for k in np.flatnonzero(unsure).tolist():
            inside[k] = self.locate_exactly(places[k].tolist()) is not None
        return inside

    def _near(self, points: Floats) -> Bools:
        """Points that are not beyond the box around the region."""
        lonlat = self.coordinates == "lonlat"
        places = unwrapped(points, self.vertices.mean(axis=0)) if lonlat else points
        low, high = ends_of(self.vertices)
        margin = _BORDER * (high - low)
        # numbers that are none compare false
        return np.asarray(((places >= low - margin) & (places <= high + margin)).all(axis=1))

    def nearest(self, points: Floats) -> Floats:
        """A point next to each of ``points`` (k, n), on the sphere for degrees: on the region's
        border, led inwards by a billionth of its width, and a vertex where even that is outside."""
        feet: Floats = self.border.feet(self.listed(points))
        feet = feet + INWARD * (self.vertices.mean(axis=0) - feet)
        low, high = ends_of(self.vertices)
        corners = self.vertices[self.triangles]
        areas = np.linalg.det(corners[:, 1:] - corners[:, :1])
        sure = _ROUNDING * squares(high - low) / areas.min()
        # floats are sure of what is well inside; many feet are one corner
        unsure = self.locate(feet)[1].min(axis=1) < sure
        distinct, back = np.unique(feet[unsure], axis=0, return_inverse=True)
        for k, foot in enumerate(distinct.tolist()):
            if self.locate_exactly(foot) is None:
                distinct[k] = self.vertices[squares(self.vertices - foot).argmin()]
        feet[unsure] = distinct[back.ravel()]
        return feet

    @cached_property
    def border(self) -> Border:
        """For positions outside: the edges of one triangle only, in the order of the triangles."""
        alone = self._locator.beside[:, (2, 0, 1)] < 0
        ends = self.triangles, self.triangles[:, (1, 2, 0)]
        start, end = (self.vertices[part[alone]] for part in ends)
        return Border.of(start, end, self.coordinates == "lonlat")

    @cached_property
    def _locator(self) -> Locator:
        return Locator(self.vertices, self.triangles, self.scale)

    def _counterclockwise(self) -> Ints:
        places, rows = self.whole[0], self.triangles
        turned = [doubled_area(places[a], places[b], places[c]) < 0 for a, b, c in rows.tolist()]
        out = np.where(np.array(turned)[:, None], rows[:, (0, 2, 1)], rows)
        return locked(out)

    # -- files -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as design files hold them; the numbers read back as they were."""
        out = {
            "vertices": self.vertices.tolist(),
            "triangles": self.triangles.tolist(),
            "unit": self.unit,
            "coordinates": self.coordinates,
        }
        return out if self.degree == 1 else {**out, "degree": self.degree}

    @classmethod
    def _of(cls, content: object) -> Mesh:
        """The mesh or network of plain values."""
        if isinstance(content, dict) and "ways" in content:
            network: Mesh = MADE["ways"](content)
            return network
        return cls(**files.arguments(content))

    @classmethod
    def from_dict(cls, content: object, where: str = "mesh") -> Mesh:
        """The mesh of ``to_dict``; ProblemError, at ``where``, on anything else."""
        with inside(where):
            return cls._of(content)

    @classmethod
    @checked_arguments
    def read(
        cls, path: str | Path, *, unit: str = "", coordinates: Coordinates | None = None
    ) -> Mesh:
        """A mesh from GeoJSON (triangles as polygons; degrees unless ``coordinates`` says else),
        from the JSON that ``write`` makes, or from a format of meshio (.vtk, .vtu, .msh,
        .obj, .off, .ply, .mesh, .inp) with triangles."""
        try:
            return cls._of(files.read(path, unit, coordinates))
        except ProblemError as error:
            raise error if error.where.startswith(str(path)) else error.at(str(path)) from error

    @checked_arguments
    def write(self, path: str | Path) -> None:
        """Write GeoJSON (.geojson), JSON (.json), or what meshio makes of the path's ending; of
        these JSON alone keeps the degree."""
        files.write(path, self.to_dict())


def _triangulated(vertices: Floats, unit: str, coordinates: Coordinates, degree: int) -> Mesh:
    """Delaunay's triangles that have an area, exactly."""
    triangles = triangulation.delaunay(vertices, scale_of(vertices, coordinates))
    places = [(x, y) for x, y in integers(vertices)[0]]
    kept = [doubled_area(places[a], places[b], places[c]) != 0 for a, b, c in triangles.tolist()]
    return Mesh(vertices, triangles[kept], unit=unit, coordinates=coordinates, degree=degree)


def by_mass(mesh: Mesh, points: Floats, mass: Floats, vertices: int) -> Mesh:
    """Halve the triangles with most ``mass`` (n,) of ``points`` (n, 2) times width until there are
    about ``vertices``."""
    for _ in range(_PASSES):
        if len(mesh) >= vertices:
            break
        held = np.bincount(mesh.locate(points)[0], mass, minlength=len(mesh.triangles))
        mesh = mesh.refine(held * mesh.widths, most=vertices - len(mesh))
    return mesh
