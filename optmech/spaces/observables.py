"""Observables that are not the secrets: coarser cells, regions that hold about as many people each
(Kawamoto and Murakami, ESORICS 2019, §7.1), subsets, a suppression symbol.

Each function returns a ``Domain`` to be given as ``Problem(observables=...)``; ``losses`` has
the matching losses.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array, unwrapped
from optmech.base.labels import refuse_other_rows
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain, Grid, Tiles
from optmech.spaces.domain_arguments import Box
from optmech.spaces.prior import Prior

__all__ = [
    "Regions",
    "Subsets",
    "Suppressible",
    "attribute_distributions",
    "coarser",
    "quadrisect",
    "subsets",
    "suppressible",
]
__dir__ = __all__.copy


@record
class Subsets(Domain):
    """Observables that stand for sets of elements of ``base`` (Shokri, PETS 2015, section 3.1).

    Where the base has coordinates, a subset lies at the mean of its members.

    Examples
    --------
    >>> halves = om.observables.coarser(om.Grid(1, 4), 1, 2)
    >>> halves.labels, [list(map(int, m)) for m in halves.members]
    (((0, 0), (0, 1)), [[0, 1], [2, 3]])
    """

    base: Domain = None  # type: ignore[assignment]
    members: tuple[tuple[int, ...], ...] = ()

    @checked_arguments
    def __init__(
        self, base: Domain, labels: Iterable[Hashable], members: Iterable[Iterable[int]]
    ) -> None:
        groups = tuple(tuple(group) for group in members)
        for k, group in enumerate(groups):
            if not group:
                raise ProblemError("the subset is empty", where=f"observables[{k}]")
            if not all(0 <= member < len(base) for member in group):
                raise ProblemError(
                    f"{group} are not indices of the {len(base)} elements",
                    where=f"observables[{k}]",
                    remedy=f"Indices run from 0 to {len(base) - 1}",
                )
        points = None
        if base.points is not None:
            own = [base.points[list(group)] for group in groups]
            if base.coordinates == "lonlat":
                own = [unwrapped(members, members[0]) for members in own]
            points = [members.mean(axis=0) for members in own]
        super().__init__(labels, points, base.unit, coordinates=base.coordinates)
        if len(groups) != len(self.labels):
            raise ProblemError(
                f"{len(groups)} subsets for {len(self.labels)} labels", where="observables"
            )
        vars(self).update(base=base, members=groups)

    @property
    def frame(self) -> tuple[Hashable, ...]:
        """What the coordinates of the base are measured from."""
        return self.base.frame

    @property
    def _degrees(self) -> Box | None:
        return self.base._degrees


@record
class Suppressible(Domain):
    """The observables of ``inner`` and, last, a symbol that says nothing.

    Examples
    --------
    >>> om.observables.suppressible(om.Domain(["a", "b"]), symbol="no report").labels
    ('a', 'b', 'no report')
    """

    inner: Domain = None  # type: ignore[assignment]

    @checked_arguments
    def __init__(self, inner: Domain, symbol: Hashable = "suppressed") -> None:
        super().__init__((*inner.labels, symbol))
        object.__setattr__(self, "inner", inner)

    def __repr__(self) -> str:
        return f"{self.inner!r} or {self.labels[-1]!r}"


@checked_arguments
def coarser(grid: Grid, rows: int, columns: int) -> Subsets:
    """Merge blocks of ``rows`` x ``columns`` cells; blocks at the far border may be smaller.

    Labels are the (row, column) of the block.

    Examples
    --------
    >>> om.observables.coarser(om.Grid(2, 4), rows=2, columns=2).points.tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """
    for name, value in (("rows", rows), ("columns", columns)):
        whole(value, f"coarser.{name}", least=1)
    groups: dict[Hashable, list[int]] = {}
    for k in range(len(grid)):
        row, column = divmod(k, grid.columns)
        groups.setdefault((row // rows, column // columns), []).append(k)
    return Subsets(grid, groups.keys(), groups.values())


@checked_arguments
def subsets(base: Domain, groups: Mapping[Hashable, Iterable[Hashable]]) -> Subsets:
    """Named subsets of ``base``: a mapping from observable label to member labels.

    Examples
    --------
    >>> wards = om.Domain(["a", "b", "c"])
    >>> om.observables.subsets(wards, {"west": ["a", "b"], "east": ["c"]}).labels
    ('west', 'east')
    """
    return Subsets(
        base,
        groups.keys(),
        [[base.index(label) for label in members] for members in groups.values()],
    )


@checked_arguments
def suppressible(inner: Domain, symbol: Hashable = "suppressed") -> Suppressible:
    """Add a suppression symbol after the observables of ``inner``.

    Examples
    --------
    >>> line = om.Domain.range(2)
    >>> len(om.observables.suppressible(line))
    3
    """
    return Suppressible(inner, symbol)


def data_coordinates(domain: Domain) -> Floats | None:
    """The points of a domain as ``locate`` reads data: longitude and latitude in degrees where it
    was made over degrees, else its own, shape (n, k); NaN for what is nowhere, as a symbol for
    suppression; None where there are none at all."""
    if isinstance(domain, Suppressible):
        inner = data_coordinates(domain.inner)
        return None if inner is None else np.vstack([inner, np.full((1, inner.shape[1]), np.nan)])
    if domain.points is None:
        return None
    places = np.array(domain.points)
    if domain._degrees is not None:
        corner, scale = np.split(np.array(domain._degrees), 2)
        places = places / scale + corner
    if domain.coordinates == "lonlat" or domain.frame:
        # a region across the antimeridian may be stated by longitudes beyond 180
        places[:, 0] -= 360 * np.round(places[:, 0] / 360)
    return places


_PLAIN: Box = (0.0, 0.0, 1.0, 1.0)
"""Of coordinates that are those of the plane."""
_DEEPEST = 12


@record
class Regions(Tiles):
    """Rectangles that tile an area: label (row, column, quarters), point the centre.

    ``quarters`` is "" for a whole cell of the grid, else one digit per split: 0 south-west,
    1 south-east, 2 north-west, 3 north-east. ``boxes`` holds (west, south, east, north), shape
    (n, 4), in ``unit``.

    Examples
    --------
    >>> grid = om.Grid(1, 2, unit="km")
    >>> split = om.observables.quadrisect(grid, [[0.1, 0.1], [0.2, 0.9], [1.5, 0.5]], regions=5)
    >>> split.labels
    ((0, 0, '0'), (0, 0, '1'), (0, 0, '2'), (0, 0, '3'), (0, 1, ''))
    >>> split.locate([[0.1, 0.1], [9, 9]]).tolist()  # -1: outside
    [0, -1]
    """

    _takes = "regions take"
    boxes: Floats = field(default_factory=lambda: np.zeros((0, 4)))
    scale: Box = _PLAIN

    def __init__(
        self,
        labels: list[tuple[int, int, str]],
        boxes: ArrayLike,
        *,
        unit: str = "",
        scale: Box = _PLAIN,
    ) -> None:
        edges = finite_array(boxes, where="boxes", ndim=2)
        vars(self).update(boxes=edges, scale=scale)
        super().__init__(labels, (edges[:, :2] + edges[:, 2:]) / 2, unit)

    @property
    def frame(self) -> tuple[Hashable, ...]:
        """The corner and scale of the grid that was refined, where that reads degrees."""
        return () if self.scale == _PLAIN else ("scale", *self.scale)

    @property
    def _degrees(self) -> Box | None:
        return self.scale if self.frame else None

    @property
    def _box(self) -> Box:
        x, y, sx, sy = self.scale
        (west, south), (east, north) = self.boxes[:, :2].min(axis=0), self.boxes[:, 2:].max(axis=0)
        return x + west / sx, y + south / sy, x + east / sx, y + north / sy

    def _holding(self, query: Floats) -> Ints:
        x0, y0, sx, sy = self.scale
        plane = (query - (x0, y0)) * (sx, sy)
        low, high = np.split(self.boxes, 2, axis=1)
        # the outer border belongs to them, and of several the first counts
        high = np.where(high == high.max(axis=0), np.nextafter(high, np.inf), high)
        found = np.full(len(plane), -1, dtype=np.int64)
        for k in reversed(range(len(low))):
            found[((plane >= low[k]) & (plane < high[k])).all(axis=1)] = k
        return found


@checked_arguments
def quadrisect(grid: Grid, xy: ArrayLike, regions: int) -> Regions:
    """Split the cell with the most points into four, again and again, while at most ``regions``
    remain (Kawamoto and Murakami, ESORICS 2019, §7.1: 11 × 10 squares become 276 regions).

    ``xy`` are observations, shape (m, 2), as ``grid.locate`` reads them; those outside are
    ignored. A cell is split at most 12 times, and only where it holds more than one point.

    Raises
    ------
    ProblemError
        When ``regions`` is below the number of cells, or no point lies inside the grid.

    Examples
    --------
    >>> grid = om.Grid(1, 1, cell=(4.0, 4.0), unit="km")
    >>> parts = om.observables.quadrisect(grid, [[1, 1], [1.5, 1], [3, 3]], regions=4)
    >>> print(parts.boxes)
    [[0. 0. 2. 2.]
     [2. 0. 4. 2.]
     [0. 2. 2. 4.]
     [2. 2. 4. 4.]]
    """
    if regions < len(grid):
        raise ProblemError(
            f"{regions} regions are fewer than the grid's {len(grid)} cells",
            where="regions",
            remedy="Use a coarser grid",
        )
    scale = grid._degrees or _PLAIN
    points = coordinate_rows(xy, 2)
    cells = grid.locate(points)
    if not (cells >= 0).any():
        raise ProblemError("no point lies inside the grid", where="xy")
    plane = (points - scale[:2]) * scale[2:]
    heap: list[tuple[int, int, str, tuple[float, ...], Ints]] = []
    for k, edges in enumerate(grid_boxes(grid).tolist()):
        mine = np.flatnonzero(cells == k)
        heap.append((-len(mine), k, "", tuple(edges), mine))
    heapq.heapify(heap)
    while len(heap) + 3 <= regions:
        count, k, quarters, box, mine = heap[0]
        if count >= -1 or len(quarters) >= _DEEPEST:
            break
        heapq.heappop(heap)
        west, south, east, north = box
        x, y = (west, (west + east) / 2, east), (south, (south + north) / 2, north)
        right, upper = (plane[mine] >= (x[1], y[1])).T
        for digit in range(4):
            j, i = divmod(digit, 2)
            part = mine[(right == i) & (upper == j)]
            quarter = x[i], y[j], x[i + 1], y[j + 1]
            heapq.heappush(heap, (-len(part), k, f"{quarters}{digit}", quarter, part))
    heap.sort(key=lambda entry: (entry[1], entry[2]))
    labels = [(k // grid.columns, k % grid.columns, quarters) for _, k, quarters, _, _ in heap]
    return Regions(labels, [entry[3] for entry in heap], unit=grid.unit, scale=scale)


@checked_arguments
def attribute_distributions(
    domain: Domain, xy: ArrayLike, attribute: ArrayLike
) -> dict[str, Prior]:
    """λ_t for every value t of an attribute: where its observations lie (Kawamoto and Murakami,
    ESORICS 2019, §7.1).

    ``xy`` as ``domain.locate`` reads it, shape (m, 2); ``attribute`` m values, named by ``str``.
    Observations outside the domain are counted in each prior's ``binning``.

    Examples
    --------
    >>> where = [[0.5, 0.5], [1.5, 0.5], [1.2, 0.1]]
    >>> ages = ["old", "young", "young"]
    >>> by_age = om.observables.attribute_distributions(om.Grid(1, 2), where, ages)
    >>> {age: prior.weights.tolist() for age, prior in by_age.items()}
    {'old': [1.0, 0.0], 'young': [0.0, 1.0]}
    """
    refuse_other_rows(xy, attribute, where="attribute")
    values = np.asarray(attribute).astype(str)
    points = coordinate_rows(xy, 2)
    if values.shape != (len(points),):
        raise ProblemError(f"{values.size} values for {len(points)} points", where="attribute")
    return {
        str(value): Prior.from_points(domain, points[values == value])
        for value in np.unique(values)
    }


def grid_boxes(grid: Grid) -> Floats:
    """(west, south, east, north) of every cell of a grid, in its unit, shape (n, 4)."""
    row, column = np.divmod(np.arange(len(grid)), grid.columns)
    (x0, y0), (width, height) = grid.origin, grid.cell
    low, high = ((x0 + (column + k) * width, y0 + (row + k) * height) for k in (0, 1))
    return np.column_stack([*low, *high])
