"""Which places are to be hard to tell apart, for a radius between positions or between places.

A position belongs to the place that the packed file locates it at, so that two positions side by
side may belong to two places, however far these are apart: docs/theory.md, "What many reports
cost". Every comparison lets in a place more rather than one too few.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.packed.load import PackedMechanism
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain, Grid, great_circle

Bools = NDArray[np.bool_]
BETWEEN = ("positions", "places")
_MORE = 1 + 1e-9
_WIDE = 1e-9
"""How much wider half-planes are taken, in units of a cell's square."""


class Reach:
    """The places that are charged for beside each place of a mechanism.

    ``between`` = ``"positions"``: those that a position within ``radius`` of one of the place's
    positions may belong to. ``"places"``: those at most ``radius`` away.
    """

    def __init__(self, mechanism: PackedMechanism, radius: float, between: str) -> None:
        self._domain = mechanism.secrets
        self._reach = mechanism.header.reach
        self._aspect = aspect_of(self._domain)
        self.radius, self.between = radius, between

    def near(self, place: int) -> list[int]:
        """The numbers of these places."""
        found = self._near(place)
        found[place] = False
        return [int(k) for k in np.flatnonzero(found)]

    def longest(self) -> float:
        """The largest distance between two places that are charged for: Euclidean in the
        coordinates' unit, in km on the globe. The radius, where that is between places."""
        if self.between == "places" or self._domain.points is None:
            return self.radius
        # of a grid, what is near one corner is near everywhere
        places = range(1 if isinstance(self._domain, Grid) else len(self._domain))
        return max(float(self._apart(k)[self._near(k)].max(initial=0.0)) for k in places)

    def require_neighbours(self) -> None:
        """Raise ProblemError where a radius between places leaves one of them alone: its draws
        would cost nothing, and nothing would be promised there."""
        if self.between == "positions" or self._domain.points is None or len(self._domain) < 2:
            return
        for place in range(len(self._domain)):
            if not self.near(place):
                apart = np.delete(self._apart(place), place)
                raise ProblemError(
                    f"{self.radius:g} reaches no place from {self._domain.labels[place]!r}: "
                    "nothing would be promised there",
                    where="radius",
                    remedy=f'Give {apart.min():.4g} or more, or between="positions"',
                )

    def _near(self, place: int) -> Bools:
        if self._domain.points is None:
            return np.ones(len(self._domain), dtype=bool)
        if self.between == "places":
            return np.asarray(self._apart(place) <= self.radius * _MORE)
        if self._moved is None:
            return np.ones(len(self._domain), dtype=bool)
        if isinstance(self._domain, Grid):
            return self._of_cells(place, self._domain, self._moved)
        return self._of_points(place, self._moved)

    def _apart(self, place: int) -> Floats:
        if isinstance(self._domain, Grid):
            row, column = np.divmod(np.arange(len(self._domain)), self._domain.columns)
            x = (column - column[place]) * self._domain.cell[0]
            y = (row - row[place]) * self._domain.cell[1]
            return np.asarray(np.sqrt(x * x + y * y))
        points = self._domain.require_points("charge reports")
        if self._domain.coordinates == "lonlat":
            return np.asarray(great_circle(points, points[place]))
        return np.asarray(np.sqrt(((points - points[place]) ** 2).sum(axis=1)))

    @cached_property
    def _moved(self) -> float | None:
        """How far two positions within the radius are apart where places are compared, at most: in
        the unit of the coordinates, in degrees of latitude for points on the globe. None where
        that says nothing of the places that they belong to."""
        domain, globe = self._domain, self._domain.coordinates == "lonlat"
        points = domain.require_points("charge reports")
        if isinstance(domain, Grid):
            if domain.bounds is None:
                return self.radius
            west, south, east, north = domain.bounds
            latitude, beyond = max(abs(south), abs(north)), 360 - (east - west)
            aspect = max(math.cos(math.radians((south + north) / 2)), 1e-9)
        else:
            if self._reach is None:
                return None
            if not globe:
                return self.radius
            latitude, aspect = float(np.abs(points[:, 1]).max()) + self._reach, self._aspect
            beyond = 180 - 2 * math.sqrt(2) * self._reach / aspect
        least = math.cos(math.radians(latitude)) if latitude < 90 else 0.0
        sine = math.sin(min(self.radius / (2 * EARTH_RADIUS_KM), math.pi / 2))
        if sine >= least:
            return None
        turn = 2 * math.asin(sine / least) * _MORE
        if math.degrees(turn) >= beyond:
            return None
        moved = turn * max(least, aspect)
        return math.degrees(moved) if globe else moved * EARTH_RADIUS_KM

    def _of_cells(self, place: int, grid: Grid, moved: float) -> Bools:
        """Cells that are nowhere further apart than that."""
        row, column = np.divmod(np.arange(len(grid)), grid.columns)
        x = np.maximum(np.abs(column - column[place]) - 1, 0) * grid.cell[0]
        y = np.maximum(np.abs(row - row[place]) - 1, 0) * grid.cell[1]
        return np.asarray(x * x + y * y <= moved * moved * _MORE)

    def _of_points(self, place: int, moved: float) -> Bools:
        """Places b with |a - b| <= R_a + R_b + moved, R being how far a position of the place may
        be from it, and |v - b| <= |v - a| + 2 moved at a corner v of what is nearer to a than to
        any other place."""
        steps = self._steps(place)
        apart = np.sqrt((steps * steps).sum(axis=1))
        found = apart <= (self._radii[place] + self._radii + moved) * _MORE
        if steps.shape[1] > 2:
            return np.asarray(found)
        close = np.zeros(len(steps), dtype=bool)
        for x, y in self._cells[place]:
            aside, over = steps[:, 0] - x, steps[:, 1] - y
            to = np.sqrt(aside * aside + over * over)
            close |= to <= (math.sqrt(x * x + y * y) + 2 * moved) * _MORE
        return np.asarray(found & close)

    def _steps(self, place: int) -> Floats:
        """From a place to all of them, as the specification compares positions; of a line, with a
        second coordinate."""
        points = self._domain.require_points("charge reports")
        steps = points - points[place]
        if self._domain.coordinates == "lonlat":
            steps[:, 0] = np.where(steps[:, 0] > 180, steps[:, 0] - 360, steps[:, 0])
            steps[:, 0] = np.where(steps[:, 0] < -180, steps[:, 0] + 360, steps[:, 0])
        steps[:, 0] *= self._aspect
        return np.column_stack([steps, np.zeros(len(steps))]) if steps.shape[1] == 1 else steps

    @cached_property
    def _cells(self) -> list[list[tuple[float, float]]]:
        """For every place corners of an area around it that holds its positions, from the place;
        in three dimensions and more a square that is as wide."""
        assert self._reach is not None
        return [_cell(self._steps(k), k, self._reach) for k in range(len(self._domain))]

    @cached_property
    def _radii(self) -> Floats:
        """How far the positions of every place may be from it."""
        assert self._reach is not None
        return np.array(
            [
                min(self._reach, max(math.sqrt(x * x + y * y) for x, y in cell))
                for cell in self._cells
            ]
        )


def _cell(steps: Floats, place: int, reach: float) -> list[tuple[float, float]]:
    """What is nearer to the origin than to any other of ``steps``, within a square; of a line
    within its part."""
    wide = reach if steps[:, 1].any() else 0.0
    cell = [(-reach, -wide), (reach, -wide), (reach, wide), (-reach, wide)]
    if steps.shape[1] > 2:
        return cell
    away = (steps * steps).sum(axis=1)
    away[place] = np.inf
    for k in np.argsort(away, kind="stable").tolist():
        square = float(away[k])
        if square > 4 * max(x * x + y * y for x, y in cell) * _MORE:
            break
        if square > 0:
            cell = _cut(cell, float(steps[k, 0]), float(steps[k, 1]), square / 2, reach)
    return cell


def _cut(
    cell: list[tuple[float, float]], x: float, y: float, limit: float, reach: float
) -> list[tuple[float, float]]:
    """The part of a convex polygon where x·u + y·v is at most the limit, and a little more."""
    limit = limit + _WIDE * reach * reach
    over = [x * u + y * v - limit for u, v in cell]
    out = []
    for k, (u, v) in enumerate(cell):
        before = k - 1
        if (over[k] > 0) != (over[before] > 0):
            share = over[before] / (over[before] - over[k])
            a, b = cell[before]
            out.append((a + share * (u - a), b + share * (v - b)))
        if over[k] <= 0:
            out.append((u, v))
    return out


def aspect_of(domain: Domain) -> float:
    """What a degree of longitude is in degrees of latitude, in the middle of the places; 1.0 in the
    plane."""
    if domain.points is None or domain.coordinates != "lonlat":
        return 1.0
    latitude = domain.points[:, 1]
    middle = (float(latitude.min()) + float(latitude.max())) / 2
    return max(math.cos(math.radians(middle)), 1e-9)
