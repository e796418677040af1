"""Places on a lattice as a section of files: those of fixes, counted where they are, without a
secret for every row of a table."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from optmech.base.arrays import Floats, Ints
from optmech.errors import ProblemError
from optmech.files.place import Listed, require_room
from optmech.reading.data import DataFile
from optmech.reading.sections import Bounds, Count, Section, refusal
from optmech.spaces.domain import Coordinates, Domain, cells_holding
from optmech.spaces.sphere import turned

Columns = str | Annotated[list[str], Field(min_length=1, max_length=100)]
"""A column, or several: rows with as many places each."""


_LARGEST = 1e150


class Mapped(Section):
    """Points in the plane, with a unit, or in degrees."""

    coordinates: Coordinates = "plane"
    unit: str = ""

    def refuse_misfits(self) -> None:
        if self.coordinates == "lonlat" and self.unit not in ("", "km"):
            raise refusal("longitude and latitude are measured in km", "Drop unit", ("unit",))


class Lattice(Mapped):
    """The middles of ``rows`` x ``columns`` equal cells over ``bounds``: of those that hold rows of
    a table, or of all. ``x`` and ``y`` name a column each, or as many as a row has places."""

    kind: Literal["lattice"]
    bounds: Bounds
    rows: Count
    columns: Count
    file: str | None = None
    x: Columns | None = None
    y: Columns | None = None

    def refuse_misfits(self) -> None:
        super().refuse_misfits()
        if {self.file is None, self.x is None, self.y is None} == {True, False}:
            raise refusal("file, x and y belong together", "Give all three, or none for all cells")
        if len(_listed(self.x)) != len(_listed(self.y)):
            raise refusal("x and y are not as many columns", "Give a y for every x", ("y",))
        low, high = np.reshape(self.bounds, (2, 2))
        if not ((low < high).all() and np.abs(self.bounds).max() < _LARGEST):
            raise refusal("is not a box", "Give [x0, y0, x1, y1]", ("bounds",))

    def listed(self, directory: Path) -> Listed:
        """The occupied cells, row by row from below, and which of them every row inside counts
        in; or all cells."""
        if self.file is None:
            require_room(self.rows * self.columns, "rows")
            return Listed(self.place_of(np.arange(self.rows * self.columns)))
        xs, ys = _listed(self.x), _listed(self.y)
        columns = DataFile(self.file).columns(directory, list(dict.fromkeys([*xs, *ys])))
        pairs = zip(xs, ys, strict=True)
        points = np.vstack([np.column_stack([columns[x], columns[y]]) for x, y in pairs])
        cells = self.cells_of(points)
        inside = cells[cells >= 0]
        if not len(inside):
            raise ProblemError(
                f"{self.file}: none of {len(points):,} rows lies within the bounds",
                where="bounds",
                remedy="Check the order of the coordinates and their unit",
            )
        held, index = np.unique(inside, return_inverse=True)
        require_room(len(held), "rows", observables=1)
        missing = int(np.isnan(points).any(axis=1).sum())
        outside = len(points) - missing - len(inside)
        rows = index.reshape(-1)
        return Listed(self.place_of(held), rows, outside=outside, missing=missing)

    def domain(self, directory: Path) -> Domain:
        """The places alone."""
        return self.listed(directory).domain

    def cells_of(self, points: Floats) -> Ints:
        """The number of the cell that holds each point (n, 2), -1 for those outside."""
        if self.coordinates == "lonlat":
            around = turned(points[:, 0], self.bounds[0], self.bounds[2])
            points = np.column_stack([around, points[:, 1]])
        return cells_holding(points, self.bounds, self.rows, self.columns)

    def place_of(self, cells: Ints) -> Domain:
        """The middles of cells by their numbers, as a domain."""
        low, high = np.reshape(self.bounds, (2, 2))
        at = np.column_stack([cells % self.columns, cells // self.columns])
        points = low + (high - low) * ((at + 0.5) / (self.columns, self.rows))
        unit = "" if self.coordinates == "lonlat" else self.unit
        return Domain(range(len(cells)), points, unit, coordinates=self.coordinates)


def _listed(names: str | list[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())
