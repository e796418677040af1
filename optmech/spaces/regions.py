"""Population-balanced regions: a grid refined by recursive quadrisection (Kawamoto and Murakami,
ESORICS 2019, §7.1).
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import field

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array
from optmech.base.labels import refuse_other_rows
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain, Grid, Tiles
from optmech.spaces.domain_arguments import Box
from optmech.spaces.prior import Prior

__all__ = ["Regions", "attribute_distributions", "quadrisect"]
__dir__ = __all__.copy


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
    >>> split = om.regions.quadrisect(grid, [[0.1, 0.1], [0.2, 0.9], [1.5, 0.5]], regions=5)
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
    >>> parts = om.regions.quadrisect(grid, [[1, 1], [1.5, 1], [3, 3]], regions=4)
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
    >>> by_age = om.regions.attribute_distributions(om.Grid(1, 2), where, ["old", "young", "young"])
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
