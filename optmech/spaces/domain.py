"""Finite domains: any labelled set, points in the plane or on the globe, rectangular grids."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base import memory
from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array, unwrapped
from optmech.base.labels import first_of, is_name, refuse_latitude_first, rows_in_order
from optmech.base.read_only import ReadOnly, frozen, record
from optmech.base.shown import SameFields, card
from optmech.errors import ProblemError, described
from optmech.exact.arguments import whole
from optmech.spaces import sphere
from optmech.spaces.arguments import kind
from optmech.spaces.domain_arguments import (
    Box,
    Outlines,
    box_of,
    pair_of,
    require_labels,
    require_lonlat,
    rings_of,
    unit_text,
)

Coordinates = Literal["plane", "lonlat"]
_CLOSE, _COSINE = 1e-12, 1e-15

EARTH_RADIUS_KM = 6371.0088
"""Mean Earth radius (IUGG), in km."""


def flattened(lonlat: Floats, centre: Floats) -> Floats:
    """Kilometres east and north of a place, equirectangularly: good to about 1 % over 100 km."""
    away = unwrapped(lonlat, centre) - centre
    return np.asarray(away * np.radians(EARTH_RADIUS_KM) * [np.cos(np.radians(centre[1])), 1.0])


_LABELLED = 100.0
"""Bytes of memory for every place, at least."""


@kind(
    "Make one with om.Domain(labels)",
    {"int": "Make one with om.Domain.range({value})"},
)
@record
class Domain(SameFields, ReadOnly):
    """A finite set with distinct labels and, where it has them, coordinates.

    Parameters
    ----------
    labels:
        Distinct hashable labels, in index order; of a table of pandas its rows, as tuples.
    points:
        Coordinates, shape (n, k), in ``unit``; or None. With ``coordinates="lonlat"``,
        columns are longitude and latitude in degrees (WGS 84).
    unit:
        Unit of the coordinates, for reports ("km", "years", ...). With ``coordinates="lonlat"``
        distances are measured in km, and no other unit is possible.
    coordinates:
        ``"plane"`` or ``"lonlat"``.
    outlines:
        For drawing only: for every label its rings, arrays of shape (k, 2) in the coordinates of
        the points, holes included (an area is inside where an odd number of rings holds it).

    Raises
    ------
    ProblemError
        On no labels, duplicate labels, points that are not finite or of the wrong shape, points
        with an index that has some of the labels and not all, unknown coordinates, a unit that is
        no text, or outlines that are no rings.

    Examples
    --------
    >>> shops = om.Domain(["bakery", "bank"], points=[[0.0, 0.0], [0.3, 0.4]], unit="km")
    >>> len(shops), shops.index("bank")
    (2, 1)
    >>> print(om.distances.euclidean()(shops, shops)[0, 1])
    0.5
    >>> om.Domain.range(3, unit="years").labels
    (0, 1, 2)
    >>> towns = om.Domain.geographic(["Paris", "Lyon"], [[2.35, 48.86], [4.84, 45.76]])
    >>> towns.locate([[2.3, 48.9], [4.8, 45.7]], max_distance=50).tolist()  # within 50 km
    [0, 1]
    >>> towns.index_evenly("Lyon"), towns.require_points("measure").shape
    (1, (2, 2))
    """

    _apart = frozenset({"outlines"})
    labels: tuple[Hashable, ...]
    points: Floats | None = None
    unit: str = ""
    coordinates: Coordinates = "plane"
    outlines: Outlines | None = None

    def __init__(
        self,
        labels: Iterable[Hashable],
        points: ArrayLike | None = None,
        unit: str = "",
        *,
        coordinates: Coordinates = "plane",
        outlines: Iterable[Iterable[ArrayLike]] | None = None,
    ) -> None:
        columns = getattr(labels, "columns", None)
        try:
            # of a table the rows, and not the names of its columns
            rows = labels if columns is None else labels.itertuples(index=False, name=None)  # type: ignore[attr-defined]
            listed = tuple(rows)
            if columns is not None and len(columns) == 1:
                listed = tuple(row[0] for row in listed)
        except TypeError:
            raise ProblemError(
                f"{described(labels)} is not a list of labels",
                where="labels",
                remedy="Give the labels, or use Domain.range(count)",
            ) from None
        named = unit_text(unit, coordinates)
        require_labels(listed)
        array = None
        if points is not None:
            if coordinates == "lonlat":
                refuse_latitude_first(points, where="points")
            ordered = rows_in_order(points, listed)
            array = finite_array(ordered, where="points", observations=True)
            if array.ndim == 1:
                array = array[:, None]
            if array.ndim != 2 or len(array) != len(listed) or not array.shape[1]:
                raise ProblemError(
                    f"shape {array.shape} does not fit {len(listed)} labels",
                    where="points",
                    remedy=f"Give an array of shape ({len(listed)}, k)",
                )
        if coordinates == "lonlat":
            require_lonlat(array)
        rings = None if outlines is None else rings_of(outlines, array)
        vars(self).update(
            labels=listed, points=array, unit=named, coordinates=coordinates, outlines=rings
        )

    @classmethod
    def geographic(cls, labels: Iterable[Hashable], lonlat: ArrayLike) -> Domain:
        """Points with longitude and latitude in degrees, shape (n, 2)."""
        return Domain(labels, points=lonlat, unit="km", coordinates="lonlat")

    @classmethod
    def range(cls, count: int, unit: str = "") -> Domain:
        """The points 0, 1, ..., count - 1 on a line."""
        whole(count, "count", least=1)
        memory.require(
            _LABELLED * float(min(count, 2**60)),
            what=f"{min(count, 2**60):,} places",
            where="count",
            remedy="Use fewer",
        )
        return Domain(range(count), points=np.arange(count, dtype=float), unit=unit)

    @classmethod
    def product(cls, *parts: Iterable[Hashable]) -> Domain:
        """All combinations of the labels of the parts, as tuples, the last part varying fastest.
        Raises ProblemError where there are none, or too many for memory.

        Examples
        --------
        >>> om.Domain.product(["<30", ">=30"], ["cook", "nurse"]).labels
        (('<30', 'cook'), ('<30', 'nurse'), ('>=30', 'cook'), ('>=30', 'nurse'))
        """
        if wrong := [k for k, part in enumerate(parts) if not isinstance(part, Iterable | Domain)]:
            raise ProblemError(
                "is no list of labels", where=f"parts[{wrong[0]}]", remedy="Give one"
            )
        listed = [tuple(getattr(part, "labels", part)) for part in parts]
        count = math.prod(map(len, listed))
        memory.require(
            _LABELLED * float(count), what=f"{count:,} labels", where="parts", remedy="Use fewer"
        )
        return Domain(product(*listed) if listed else ())

    def __len__(self) -> int:
        return len(self.labels)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((type(self).__qualname__, self.labels, self.unit, self.coordinates))

    @property
    def frame(self) -> tuple[Hashable, ...]:
        """What its plane coordinates are measured from: two domains with different ones share
        none. Empty where nothing is known of it."""
        return ()

    @property
    def _degrees(self) -> Box | None:
        """Longitude and latitude of its plane's origin, and what a degree of each counts for there;
        None where nothing is known of them."""
        return None

    def __repr__(self) -> str:
        places = ""
        if self.points is not None:
            flat = f"{self.points.shape[1]}-dimensional points{self._unit_text()}"
            places = f", {flat if self.coordinates == 'plane' else 'longitude and latitude'}"
        return f"{type(self).__name__}({len(self)} labels: {self._labels_text()}{places})"

    def _repr_html_(self) -> str:
        return card(type(self).__name__, self._facts())

    def _facts(self) -> list[tuple[str, object]]:
        """What a notebook shows."""
        found: list[tuple[str, object]] = [(f"{len(self)} labels", self._labels_text())]
        if self.points is not None:
            found.append(("coordinates", f"{self.coordinates}{self._unit_text()}"))
        return found

    def _labels_text(self) -> str:
        shown = [repr(label)[:40] for label in self.labels[:3]]
        if len(self) > 4:
            shown.append("...")
        return ", ".join([*shown, *(repr(label)[:40] for label in self.labels[3:][-1:])])

    def _unit_text(self) -> str:
        # a unit of a file may be anything
        unit = self.unit[:40] if self.unit.isprintable() else ascii(self.unit[:40])
        return f" in {unit}" if unit and self.coordinates == "plane" else ""

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.labels)}

    def index(self, label: Hashable) -> int:
        """Index of ``label``; raises ProblemError when there is none."""
        try:
            return self._index[label]
        except (KeyError, TypeError):
            counted = isinstance(label, int | np.integer) and 0 <= label < len(self)
            remedy = f"; the label at index {label} is labels[{label}]" if counted else ""
            named = is_name(label)
            raise ProblemError(
                f"{f'there is no {label!r} among' if named else f'{described(label)} is none of'} "
                f"the {len(self)} labels",
                where="label",
                remedy=f"{first_of(self.labels)}{remedy}",
            ) from None

    def index_evenly(self, label: Hashable) -> int:
        """Index of a label, found after every label was looked up, so that the time does not depend
        on which of them lies in a cache."""
        list(map(self._index.__getitem__, self.labels))
        return self.index(label)

    def locate(self, xy: Any, max_distance: float | None = None) -> Any:
        """Where positions are: of one, (x, y), the label of its place, None for nowhere; of many,
        shape (m, k), or the points of a GeoPandas table, their indices, -1 for nowhere.

        That is the nearest place, no farther away than ``max_distance``; of a grid or of regions
        the cell that holds a position. ``Mechanism.sample`` takes the label, ``Mechanism.draws``
        indices.

        Examples
        --------
        >>> cells = om.Grid(2, 2, unit="km")
        >>> cells.locate((1.5, 0.5)), cells.locate((9, 9))
        ((0, 1), None)
        >>> cells.locate([[1.5, 0.5], [9, 9]]).tolist()
        [1, -1]
        """
        found = self.located(self.coordinates_of(xy), max_distance)
        alone = not hasattr(xy, "geometry") and np.ndim(xy) == 1 and len(found) == 1
        if not alone or (self.points is not None and self.points.shape[1] == 1):
            return found
        return None if found[0] < 0 else self.labels[int(found[0])]

    def coordinates_of(self, xy: Any) -> ArrayLike:
        """Positions as ``locate`` reads them; of a GeoPandas table its points, in degrees where
        this domain reads degrees. Raises ProblemError on other shapes, and on degrees for a plane.

        Examples
        --------
        >>> om.Grid(2, 2, unit="km").coordinates_of([[1.5, 0.5]])
        [[1.5, 0.5]]
        """
        geometry = getattr(xy, "geometry", None)
        if geometry is None or not hasattr(geometry, "geom_type"):
            return xy  # type: ignore[no-any-return]
        if set(geometry.geom_type) - {"Point"}:
            raise ProblemError("are not all points", where="points", remedy="Give points only")
        degrees = self.coordinates == "lonlat" or bool(self.frame)
        if geometry.crs is not None and degrees:
            geometry = geometry.to_crs(4326)
        elif geometry.crs is not None and geometry.crs.is_geographic:
            raise ProblemError(
                "are in degrees, and the places are in a plane",
                where="points",
                remedy="Convert them with to_crs, to the projection of the places",
            )
        return np.column_stack([geometry.x, geometry.y])

    def located(self, xy: ArrayLike, max_distance: float | None = None) -> Ints:
        """Index of the nearest point for each row of ``xy``, or -1 beyond ``max_distance``.

        Distances are Euclidean in the plane and great-circle in km for ``lonlat``; of several
        nearest points the first counts. Rows with a missing coordinate, one beyond 2^100 or a
        latitude beyond 90 degrees are nowhere: -1.

        Examples
        --------
        >>> stops = om.Domain("ab", points=[[0, 0], [3, 4]], unit="km")
        >>> stops.located([[1, 1], [9, 9]], max_distance=5).tolist()
        [0, -1]
        """
        own = self.require_points("locate points")
        globe = self.coordinates == "lonlat"
        if globe:
            refuse_latitude_first(xy, where="points")
        query = coordinate_rows(xy, own.shape[1])
        inside = sphere.is_position(query, globe)
        lifted = query[inside]
        limit = np.inf
        if max_distance is not None:
            limit = float(finite_array(max_distance, where="max_distance", ndim=0))
        if globe:
            own, lifted = sphere.vectors(own), sphere.vectors(lifted)
            limit = 2 * np.sin(min(limit / EARTH_RADIUS_KM, np.pi) / 2)
        index, apart = sphere.nearest(own, lifted)
        found = np.full(len(query), -1, dtype=np.int64)
        found[inside] = np.where(np.sqrt(apart) <= limit, index, -1)
        return found

    def nearest(self, points: Floats) -> Floats:
        """The nearest points (n, k) of the rectangle that a grid or regions cover, for points
        outside: on the sphere for degrees. Other domains have no outside.

        Examples
        --------
        >>> om.Grid(2, 2, unit="km").nearest(np.array([[1.5, 0.5], [1.5, -3.0]])).tolist()
        [[1.5, 0.5], [1.5, 0.0]]
        """
        return points

    def nearest_index(self, points: Floats) -> Ints:
        """The indices (n,) of what holds the nearest points. A grid around the globe has one
        meridian at both ends, where longitudes that are turned again would be at the other.

        Examples
        --------
        >>> om.Grid(2, 2, unit="km").nearest_index(np.array([[1.5, 0.5], [1.5, -3.0]])).tolist()
        [1, 1]
        """
        return self._holding(self.nearest(points))

    def _holding(self, query: Floats) -> Ints:
        """Index of what holds each row of ``query``, or -1; longitudes count as written."""
        return self.located(query)

    def require_points(self, purpose: str) -> Floats:
        """The coordinates; raises ProblemError, naming ``purpose``, where there are none."""
        if self.points is None:
            raise ProblemError(
                f"this domain has no coordinates, and they are needed to {purpose}",
                where="points",
                remedy="Give points, or use a distance that needs none: hamming, graph or matrix",
            )
        return self.points


def part_of(domain: Domain, chosen: Sequence[int]) -> Domain:
    """Some elements of a domain, by their indices."""
    points = None if domain.points is None else domain.points[chosen]
    labels = [domain.labels[k] for k in chosen]
    return Domain(labels, points, domain.unit, coordinates=domain.coordinates)


@frozen
class Tiles(Domain):
    """Rectangles that tile one."""

    _takes: ClassVar[str] = "a grid takes"

    @property
    def _box(self) -> Box:
        """(west, south, east, north) of all, as positions have them."""
        raise NotImplementedError

    def nearest(self, points: Floats) -> Floats:
        west, south, east, north = self._box
        low, high = np.array([west, south]), np.array([east, north])
        inside = points
        if self.frame:
            inside = np.column_stack([sphere.turned(points[:, 0], west, east), points[:, 1]])
            out = ((inside < low) | (inside > high)).any(axis=1)
            if out.any():
                border = sphere.Border.around(west, south, east, north)
                inside[out] = border.feet(points[out])
        inside = np.clip(inside, low, high)
        # what rounding has led beyond the border of regions again comes back
        lost = self._holding(inside) < 0
        inward = inside + sphere.INWARD * ((low + high) / 2 - inside)
        return np.where(lost[:, None], inward, inside)

    def located(self, xy: ArrayLike, max_distance: float | None = None) -> Ints:
        """Index of the rectangle that holds each row of ``xy``, or -1 outside.

        Rows are (x, y) in the domain's unit, or (longitude, latitude) where it is over degrees.
        Rectangles are closed on the low side; the outer border belongs to them. Longitudes count
        whichever way around the globe they are written.
        """
        if max_distance is not None:
            raise ProblemError(f"{self._takes} no max_distance", where="max_distance")
        if self.frame:
            refuse_latitude_first(xy, where="points")
        query = coordinate_rows(xy, 2)
        if self.frame:
            west, _, east, _ = self._box
            query = np.column_stack([sphere.turned(query[:, 0], west, east), query[:, 1]])
        return self._holding(query)


@kind("Make one with om.Grid(rows, columns)")
@record
class Grid(Tiles):
    """A rectangular grid of cells: label (row, column), index row * columns + column.

    Points are the cell centres, x growing with the column and y with the row. Cells have
    ``cell`` = (width, height) in ``unit``, by default 1 x 1; the corner of cell (0, 0) lies at
    ``origin``, by default (0, 0).

    Over ``bounds`` = (west, south, east, north) in degrees the grid is measured in km, and cells,
    unit and origin follow. Cells are rectangles of the equirectangular projection at the middle
    latitude, an approximation good to about 1 % for boxes of up to 100 km away from the poles.
    Only ``locate`` reads degrees; coordinates and distances are plane, in km from the south-west
    corner.

    Raises
    ------
    ProblemError
        On sizes, cells or bounds that are none, too many cells, or a cell, unit or origin that is
        not that of the bounds.

    Examples
    --------
    >>> cells = om.Grid(rows=2, columns=3, cell=(1.0, 1.0), unit="km")
    >>> cells.labels[-1], cells.points[-1].tolist()  # the centre of the last cell
    ((1, 2), [2.5, 1.5])
    >>> cells.locate([[2.9, 0.1], [9.0, 9.0]]).tolist()  # -1 lies outside
    [2, -1]
    >>> paris = om.Grid.geographic(4, 4, (2.2, 48.8, 2.4, 48.9))
    >>> paris.labels[paris.locate([[2.35, 48.86]])[0]]
    (2, 3)
    """

    rows: int = 1
    columns: int = 1
    cell: tuple[float, float] = (1.0, 1.0)
    origin: tuple[float, float] = (0.0, 0.0)
    bounds: Box | None = field(default=None)

    def __init__(
        self,
        rows: int,
        columns: int,
        cell: float | Sequence[float] | None = None,
        *,
        unit: str | None = None,
        origin: Sequence[float] | None = None,
        bounds: Sequence[float] | None = None,
    ) -> None:
        rows, columns = whole(rows, "rows", least=1), whole(columns, "columns", least=1)
        if rows * columns > 10**7:
            raise ProblemError(
                f"{rows} x {columns} is {rows * columns:,} cells",
                where="rows",
                remedy="Use larger cells",
            )
        box = None if bounds is None else box_of(bounds)
        given = {"cell": cell, "unit": unit, "origin": origin}
        own, km = (1.0, 1.0), ""
        if box is not None:
            cosine = float(np.cos(np.radians((box[1] + box[3]) / 2)))
            own, km = _cell_in_km(box, rows, columns, cosine), "km"
        width, height = own if cell is None else pair_of(cell, "cell")
        if width <= 0 or height <= 0:
            raise ProblemError(
                f"cell {width} x {height} must have a positive width and height", where="cell"
            )
        x0, y0 = (0.0, 0.0) if origin is None else pair_of(origin, "origin")
        for start, count, side in ((x0, columns, width), (y0, rows, height)):
            if not start < start + count * side < math.inf:
                raise ProblemError(
                    f"cells of {width:g} x {height:g} are too small beside their origin, or too "
                    "large",
                    where="cell",
                    remedy="Use another unit of distance, or an origin near the cells",
                )
        named = km if unit is None else unit_text(unit, "plane")
        close = box is None or _has_cells(box, rows, columns, (width, height))
        if box is not None and not (close and named == km and (x0, y0) == (0, 0)):
            others = [f"{key} = {value!r}" for key, value in given.items() if value is not None]
            raise ProblemError(
                f"a grid over bounds is measured in km, in cells of {own[0]:.6g} x {own[1]:.6g} "
                f"here, and {', '.join(others)} is not that",
                where="bounds",
                remedy="Drop cell, unit and origin, or drop the bounds",
            )
        vars(self).update(rows=rows, columns=columns, bounds=box)
        vars(self).update(cell=(width, height), origin=(x0, y0))
        row, column = np.divmod(np.arange(rows * columns), columns)
        centres = np.column_stack([x0 + (column + 0.5) * width, y0 + (row + 0.5) * height])
        labels = zip(row.tolist(), column.tolist(), strict=True)
        super().__init__(labels, points=centres, unit=named)

    @classmethod
    def geographic(  # type: ignore[override]
        cls, rows: int, columns: int, bounds: Sequence[float]
    ) -> Grid:
        """A grid over (west, south, east, north) in degrees, measured in km: the same as with
        ``bounds``."""
        return cls(rows, columns, bounds=bounds)

    @property
    def frame(self) -> tuple[Hashable, ...]:
        """The bounds that its km are measured from."""
        return () if self.bounds is None else ("bounds", *self.bounds)

    @property
    def _degrees(self) -> Box | None:
        if self.bounds is None:
            return None
        west, south, east, north = self.bounds
        width, height = self.columns * self.cell[0], self.rows * self.cell[1]
        return west, south, width / (east - west), height / (north - south)

    def __repr__(self) -> str:
        width, height = self.cell
        over = "" if self.bounds is None else f", bounds={self.bounds}"
        away = f", origin={self.origin}" if any(self.origin) else ""
        return (
            f"Grid({self.rows} x {self.columns} cells of {width:.6g} x {height:.6g}"
            f"{self._unit_text().removeprefix(' in')}{away}{over})"
        )

    def _facts(self) -> list[tuple[str, object]]:
        width, height = self.cell
        size = f"{width:.6g} x {height:.6g}{self._unit_text().removeprefix(' in')}"
        over: list[tuple[str, object]] = [] if self.bounds is None else [("bounds", self.bounds)]
        return [("cells", f"{self.rows} x {self.columns} of {size}"), *super()._facts(), *over]

    @property
    def _box(self) -> Box:
        if self.bounds is not None:
            return self.bounds
        (x, y), (width, height) = self.origin, self.cell
        return x, y, x + self.columns * width, y + self.rows * height

    def _holding(self, query: Floats) -> Ints:
        return cells_holding(query, self._box, self.rows, self.columns)


def cells_holding(query: Floats, box: Sequence[float], rows: int, columns: int) -> Ints:
    """Of the equal cells of a box, in rows from below, the number of the one that holds each row of
    ``query``, shape (n, 2), or -1 outside."""
    x0, y0, x1, y1 = box
    with np.errstate(invalid="ignore"):
        inside = (query >= (x0, y0)).all(axis=1) & (query <= (x1, y1)).all(axis=1)
    unit = (query[inside] - (x0, y0)) / (x1 - x0, y1 - y0)
    cells = np.minimum((unit * (columns, rows)).astype(np.int64), (columns - 1, rows - 1))
    found = np.full(len(query), -1, dtype=np.int64)
    found[inside] = cells[:, 1] * columns + cells[:, 0]
    return found


def great_circle(p: Floats, q: Floats) -> Floats:
    """Distances in km between longitudes and latitudes in degrees, shapes (..., 2), broadcast."""
    p, q = np.radians(p), np.radians(q)
    dlon, dlat = p[..., 0] - q[..., 0], p[..., 1] - q[..., 1]
    cosines = np.cos(p[..., 1]) * np.cos(q[..., 1])
    # no square may underflow
    half = np.hypot(np.sin(dlat / 2), np.sqrt(np.maximum(cosines, 0)) * np.sin(dlon / 2))
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(half, 1)))


def _cell_in_km(box: Box, rows: int, columns: int, cosine: float) -> tuple[float, float]:
    """Width and height of the cells of a box, whose middle latitude has the cosine."""
    west, south, east, north = box
    degree = np.pi / 180 * EARTH_RADIUS_KM
    return (east - west) * degree * cosine / columns, (north - south) * degree / rows


def _has_cells(box: Box, rows: int, columns: int, cell: tuple[float, float]) -> bool:
    """Whether cells are those of a box up to the rounding of another machine's cosine, which near a
    pole is large beside it: decided in the order of docs/packed.md, alike by every reader."""
    cosine = float(sphere.sines(np.array([(box[1] + box[3]) / 2]))[1][0])
    width, height = _cell_in_km(box, rows, columns, cosine)
    off = abs(width - cell[0]) * cosine
    return bool(
        off <= (_CLOSE * cosine + _COSINE) * cell[0] and abs(height - cell[1]) <= _CLOSE * cell[1]
    )
