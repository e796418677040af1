"""Which places are charged for beside each place of a packed mechanism."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.errors import ProblemError
from optmech.exact.number import from_above
from optmech.spaces.domain import EARTH_RADIUS_KM, Grid
from optmech.spaces.sphere import sines, squares, vectors
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.places import apart, chord

BETWEEN = ("positions", "places")
Corner = tuple[float, float]
_MORE = 1 + 1e-9
_WIDE = 1e-9
"""How much wider half-planes are taken, in units of a cell's square."""
_UNSURE = 1e-12
"""More than vectors of float64 are off, in radii of the globe."""
_FLAT_UNITS = 1e-14
"""More than the borders of a grid's cells are off, in units of its farthest coordinate."""
_WIDEST = 60.0
"""Up to this reach, in degrees, places on the globe have corners; beyond they are all far."""
_RADIAN = math.pi / 180


class Reach:
    """The places that are charged for beside each place of a mechanism.

    ``between`` = ``"positions"``: those that a position within ``radius`` of one of the place's
    positions may belong to. ``"places"``: those at most ``radius`` away.
    """

    def __init__(self, mechanism: PackedMechanism, radius: float, between: str) -> None:
        self._domain = mechanism.secrets
        self._stated = mechanism.header.reach
        self._globe = self._domain.coordinates == "lonlat"
        self.radius, self.between = radius, between
        unit = "km" if self._globe else self._domain.unit
        self.words = f"{radius:g} {unit}" if unit else f"a radius of {radius:g}"
        """The radius with its unit."""

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
                away = np.delete(self._apart(place), place)
                raise ProblemError(
                    f"{self.words} reaches no place from {self._domain.labels[place]!r}: "
                    "nothing would be promised there",
                    where="radius",
                    remedy=f'Give {from_above(away.min(), 4)} or more, or between="positions"',
                )

    def _near(self, place: int) -> Bools:
        if self._domain.points is None:
            return np.ones(len(self._domain), dtype=bool)
        if self.between == "places":
            return self._apart(place) <= self.radius * _MORE
        if isinstance(self._domain, Grid):
            moved = self._moved_in(self._domain)
            return self._of_cells(place, self._domain, np.inf if moved is None else moved)
        if self._stated is None:
            return np.ones(len(self._domain), dtype=bool)
        return self._of_points(place)

    def _apart(self, place: int) -> Floats:
        if isinstance(self._domain, Grid):
            x, y = (_cells_away(self._domain, place) * self._domain.cell).T
            return np.asarray(np.sqrt(x * x + y * y))
        return apart(self._domain, place)

    def _moved_in(self, grid: Grid) -> float | None:
        """How far two positions of a grid within the radius are apart on its map, at most, in the
        unit of the cells. None where that says nothing of the cells that they belong to."""
        if grid.bounds is None:
            ends = zip(grid.origin, (grid.columns, grid.rows), grid.cell, strict=True)
            far = max(max(abs(a), abs(a + count * side)) for a, count, side in ends)
            return self.radius + _FLAT_UNITS * far
        west, south, east, north = grid.bounds
        latitude, beyond = max(abs(south), abs(north)), 360 - (east - west)
        aspect = max(math.cos(math.radians((south + north) / 2)), 1e-9)
        least = math.cos(math.radians(latitude)) if latitude < 90 else 0.0
        sine = math.sin(min(self.radius / (2 * EARTH_RADIUS_KM), math.pi / 2))
        if sine >= least:
            return None
        turn = 2 * math.asin(sine / least) * _MORE + _UNSURE
        return None if turn / _RADIAN >= beyond else turn * max(least, aspect) * EARTH_RADIUS_KM

    def _of_cells(self, place: int, grid: Grid, moved: float) -> Bools:
        """Cells that are nowhere further apart than that."""
        x, y = (np.maximum(np.abs(_cells_away(grid, place)) - 1, 0) * grid.cell).T
        return np.asarray(x * x + y * y <= moved * moved * _MORE)

    def _of_points(self, place: int) -> Bools:
        """Places b with |a - b| <= R_a + R_b + moved, R being how far a position of the place may
        be from it, and |v - b| <= |v - a| + 2 moved at a corner v of what is nearer to a than to
        any other place: straight lines, on the globe through it."""
        steps, corners, moved = self._steps(place), self._corners[place], self._moved
        unsure = _UNSURE if self._globe else 0.0
        found = np.sqrt(squares(steps)) <= (
            (self._radii[place] + self._radii + moved) * _MORE + unsure
        )
        if not len(corners):
            return np.asarray(found)
        close = np.zeros(len(steps), dtype=bool)
        for corner, far in zip(corners, np.sqrt(squares(corners)), strict=True):
            close |= np.sqrt(squares(steps - corner)) <= (far + 2 * moved) * _MORE + unsure
        return np.asarray(found & close)

    @cached_property
    def _moved(self) -> float:
        """How far two positions within the radius are apart where places are compared, at most."""
        return chord(self.radius / EARTH_RADIUS_KM / _RADIAN) if self._globe else self.radius

    @cached_property
    def _reach(self) -> float:
        """How far a position may be from its place, where places are compared."""
        assert self._stated is not None
        return chord(self._stated) if self._globe else self._stated

    @cached_property
    def _own(self) -> Floats:
        """The places as they are compared; of a line, with a second coordinate."""
        points = self._domain.require_points("charge reports")
        if self._globe:
            return vectors(points)
        if points.shape[1] == 1:
            return np.column_stack([points, np.zeros(len(points))])
        return points

    def _steps(self, place: int) -> Floats:
        return np.asarray(self._own - self._own[place])

    @cached_property
    def _corners(self) -> list[Floats]:
        """For every place the corners, from the place, of an area around it that holds its
        positions; none where these are within ``reach`` at most."""
        return [self._corners_of(k) for k in range(len(self._own))]

    def _corners_of(self, place: int) -> Floats:
        steps, none = self._steps(place), self._own[:0]
        away = squares(steps)
        if not self._globe:
            tall = self._reach if steps[:, 1].any() else 0.0
            return none if steps.shape[1] > 2 else _cell(steps, away, self._reach, tall, 0.0)
        if self._stated is None or self._stated > _WIDEST:
            return none
        # on the plane that touches the globe at the place, seen from the middle of the globe
        (s, c), (up, flat) = (
            map(float, sines(angle)) for angle in self._domain.require_points("")[place]
        )
        east, north = np.array([-s, c, 0.0]), np.array([-up * c, -up * s, flat])
        seen = np.column_stack([_along(steps, axis) for axis in (east, north)])
        sine, cosine = map(float, sines(np.array(self._stated)))
        wide, origin = sine / cosine, self._own[place]
        u, v = np.hsplit(_cell(seen, away, wide, wide, _UNSURE), 2)
        return np.asarray((origin + u * east + v * north) / np.sqrt(1 + (u * u + v * v)) - origin)

    @cached_property
    def _radii(self) -> Floats:
        """How far the positions of every place may be from it."""
        farthest = (np.sqrt(squares(c)).max() if len(c) else np.inf for c in self._corners)
        return np.array([min(self._reach, float(far)) for far in farthest])


def _cells_away(grid: Grid, place: int) -> Ints:
    """Columns and rows from the place of a number to every one, (n, 2)."""
    row, column = np.divmod(np.arange(len(grid)), grid.columns)
    return np.column_stack([column - column[place], row - row[place]])


def _along(steps: Floats, axis: Floats) -> Floats:
    """Products of vectors with one, evaluated in this order everywhere."""
    return np.asarray(
        steps[:, 0] * axis[0] + steps[:, 1] * axis[1] + steps[:, 2] * axis[2], dtype=np.float64
    )


def _cell(seen: Floats, away: Floats, wide: float, tall: float, unsure: float) -> Floats:
    """Corners (n, 2) of the part of a rectangle around the origin where z · ``seen`` is at most
    half of ``away``, and a little more: what is nearer to the origin than to places at the squared
    distances ``away``."""
    cell = [(-wide, -tall), (wide, -tall), (wide, tall), (-wide, tall)]
    more = wide * (_WIDE * wide + unsure)
    for k in np.argsort(away, kind="stable").tolist():
        square = float(away[k])
        if square > 4 * max(x * x + y * y for x, y in cell) * _MORE:
            break
        if square > 0:
            cell = _cut(cell, float(seen[k, 0]), float(seen[k, 1]), square / 2 + more)
    return np.array(cell).reshape(-1, 2)


def _cut(cell: list[Corner], x: float, y: float, limit: float) -> list[Corner]:
    """The part of a convex polygon where x·u + y·v is at most the limit."""
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
