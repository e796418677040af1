"""Packed mechanisms for every point of a region, of a line or of roads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.arrays import Bools, Floats, Ints, coordinate_rows, finite_array, slices
from optmech.base.read_only import frozen
from optmech.errors import ProblemError, described
from optmech.exact.arguments import whole
from optmech.exact.sampler import EachBytes, bytes_for, fresh, system_bytes
from optmech.spaces.mesh.elements import basis
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.mesh.triangulation import both_rational, rational
from optmech.spaces.sphere import FAR, is_position
from optmech_devices.packed.file import Parts, little_endian, one_draw
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.meshes import CORNER_BYTES, WEIGHT_BITS, Steps, Weights
from optmech_devices.protection.places import STICKY, Snap

_POLE = 90
_AT_ONCE = 2**20


@frozen
class PackedRegion(PackedMechanism, MeshMechanism):  # type: ignore[override]
    """The mechanism of a packed file that is private at every point of a mesh, of a line or of
    roads: an ``MeshMechanism`` whose rows are whole numbers over 2^bits.

    Positions are moved to a point of their triangle or segment that has whole weights over 2^24, by
    at most ``header.snap``; what is drawn there has exactly the stated probabilities. Of a line
    they are numbers; beside roads they have coordinates, and count as the point of a road next to
    them.

    Examples
    --------
    >>> mesh = om.Mesh.grid((0, 0, 2, 2), width=1, unit="km")
    >>> km = om.distances.euclidean()
    >>> places = om.Domain(["west", "east"], points=[[0.5, 1.0], [1.5, 1.0]], unit="km")
    >>> promise = om.MetricPrivacy(1, km, everywhere=mesh)
    >>> design = om.solve(om.Problem(om.Prior.uniform(places), km, constraints=[promise]))
    >>> packed = om.pack(design, "region.omm")
    >>> packed.sample_at((0.25, 1.75)) in places.labels
    True
    >>> number = packed.number((0.25, 1.75))  # of the point of the lattice where reports repeat
    >>> packed.report_of(number, bytes(packed.draw_bytes)) in places.labels
    True
    >>> spot = (0.25, 1.75)
    >>> print(packed.at([spot]).sum(), sum(packed.exactly_at(spot)))
    1.0 1
    >>> triangle, corners = packed.locate(spot)
    >>> sum(corners) == 2**24
    True
    >>> packed.report(spot, bytes(packed.draw_bytes)) in places.labels
    True
    >>> packed.reports((triangle, corners), np.zeros((3, packed.draw_bytes), np.uint8))
    ['west', 'west', 'west']
    >>> packed.draws_at([spot, spot]).shape
    (2,)
    >>> packed.coordinates("west"), packed.accuracy("west") > 0
    ((0.5, 1.0), True)
    """

    place_bytes = 8
    _positions: Weights

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        assert isinstance(parts.places, Weights)
        vars(self).update(mesh=parts.places.mesh, places=None, _positions=parts.places)

    @property
    def _from(self) -> str:
        return f"every point of {self.mesh!r}"

    @property
    def draw_bytes(self) -> int:
        return CORNER_BYTES * self.mesh.degree + self.bits // 8

    def locate(self, position: Sequence[float]) -> tuple[int, tuple[int, ...]] | None:
        cell, weights = self._found(self._floats(position))
        return None if cell[0] < 0 else (int(cell[0]), tuple(weights[0].tolist()))

    def _floats(self, position: Any) -> Floats:
        """The coordinates of a position, (1, n). Raises ProblemError on what is none."""
        exact = self._coordinates(position)
        globe = self.mesh.coordinates == "lonlat"
        if max(map(abs, exact)) > FAR or (globe and abs(exact[1]) > _POLE):
            raise ProblemError("is too large for a position", where="position")
        return np.array([list(map(float, exact))])

    def _coordinates(self, position: Any) -> tuple[Fraction, ...]:
        """A position's coordinates, exactly: of a line one, which may stand alone."""
        if self._dimension == 2:
            return both_rational(position)
        alone = isinstance(position, int | float | Fraction | np.number)
        try:
            (found,) = [position] if alone else position
        except (TypeError, ValueError) as error:
            raise ProblemError(
                f"{described(position)} is no point of a line",
                where="position",
                remedy="Give a number",
            ) from error
        return (rational(found),)

    @property
    def _dimension(self) -> int:
        return int(self.mesh.vertices.shape[1])

    @cached_property
    def lattice(self) -> Snap | Steps | None:  # type: ignore[override]
        """The lattice on whose points reports repeat (``StickyReports``), so fine that it lets log
        ratios grow by at most 0.1; None where the file states no ε per distance above 0, or where
        the lattice has more points than 2^53."""
        placed = (c for c in self.header.promises if c.scope == "every point" and c.measure)
        rate = max((clause.epsilon or 0.0 for clause in placed), default=0.0)
        if not rate > 0:
            return None
        return self._positions.lattice(STICKY / rate)

    @property
    def numbers(self) -> int:
        return math.prod(self._required().shape)

    def number(self, place: Sequence[float]) -> int | None:
        lattice, where = self._required(), self._floats(place)
        led, lost, (cells, shares) = self._positions.led(where, self.header.outside)
        if lost[0]:
            return None
        if isinstance(lattice, Steps):
            return lattice.number(int(cells[0]), float(shares[0, 0]))
        column, row = lattice.index(led)[0].tolist()
        return int(row * lattice.shape[0] + column)

    def _required(self) -> Snap | Steps:
        if self.lattice is None:
            raise ProblemError(
                "the file states no ε per distance, or one too large, and so there is no lattice",
                where="mechanism",
                remedy="Draw at positions",
            )
        return self.lattice

    def report_of(self, number: int, entropy: bytes) -> Hashable:
        lattice = self._required()
        place = whole(number, "number", most=self.numbers - 1)
        drawn = one_draw(entropy, self.draw_bytes)
        if isinstance(lattice, Steps):
            return self.reports(lattice.point(place), drawn)[0]
        row, column = divmod(place, lattice.shape[0])
        point = lattice.points(np.array([[column, row]]))
        cell, weights = self._positions.of(point, "nearest")
        return self.reports((int(cell[0]), tuple(weights[0].tolist())), drawn)[0]

    def _holds(self, points: Floats) -> Bools:
        return super()._holds(points) if self.mesh.is_region else self._found(points)[0] >= 0

    def _found(self, places: Floats) -> tuple[Ints, Ints]:
        """Cells (n,), -1 outside and for what is no position, and weights of corners (n, k)."""
        proper = is_position(places, self.mesh.coordinates == "lonlat")
        known = np.where(proper[:, None], places, 0.0)
        cells, weights = self._positions.of(known, self.header.outside)
        return np.where(proper, cells, -1), weights

    def report(self, place: Sequence[float], entropy: bytes | None = None) -> Hashable | None:
        entropy = system_bytes(self.draw_bytes) if entropy is None else entropy
        drawn, found = one_draw(entropy, self.draw_bytes), self.locate(place)
        return None if found is None else self.reports(found, drawn)[0]

    def reports(
        self, place: tuple[int, tuple[int, ...]], entropy: NDArray[np.uint8]
    ) -> list[Hashable]:
        labels, (triangle, weights) = self.observables.labels, place
        drawn = self._drawn_from(np.array([triangle]), np.array([weights]), entropy)
        return [labels[k] for k in drawn]

    def _drawn_from(self, triangle: Ints, weights: Ints, entropy: NDArray[np.uint8]) -> Ints:
        """Numbers of observables for rows of ``entropy``, at one place or at one for each of
        them."""
        first, second = weights[:, :1], weights[:, 1:2]
        degree = self.mesh.degree
        corners = entropy[:, : CORNER_BYTES * degree].reshape(len(entropy), degree, CORNER_BYTES)
        words = little_endian(corners).astype(np.int64)
        chosen = (words >= first).astype(np.int64) + (words >= first + second)
        one, two = (chosen == 1).sum(axis=1), (chosen == 2).sum(axis=1)
        index = two * (degree + 1) - two * (two - 1) // 2 + one
        row = self._parts.row_of[self.mesh.control[triangle, index]]
        return self._drawn(row, entropy[:, CORNER_BYTES * degree :])

    def at(self, points: ArrayLike) -> Floats:
        """Probabilities of the observables at positions (k, n), as floats of shape (k, O). Raises
        ProblemError as ``sample_at``."""
        triangle, weights = self._inside(coordinate_rows(points, self._dimension))
        table, size = self._parts.table, self.mesh.degree
        shares = basis(weights / (1 << WEIGHT_BITS), size)
        rows = np.ldexp(table.rows.astype(np.float64), -self.bits)
        out = np.zeros((len(triangle), len(self.observables)))
        for k, (share, t) in enumerate(zip(shares, triangle.tolist(), strict=True)):
            out[k, table.columns] = share @ rows[self._parts.row_of[self.mesh.control[t]]]
        return out

    def draws_at(self, points: ArrayLike, source: EachBytes | None = None) -> Ints:
        """For every position (n, k) the index of an observable, as ``report``; made for tables.
        Raises ProblemError as ``sample_at``."""
        places = finite_array(coordinate_rows(points, self._dimension), where="points")
        each = fresh() if source is None else source
        out, size = np.empty(len(places), dtype=np.int64), self.draw_bytes
        triangle, weights = self._inside(places)
        every = np.arange(len(places))
        for part in slices(len(places), len(self._parts.table.columns), _AT_ONCE):
            entropy = np.frombuffer(each(every[part], size, 0), np.uint8).reshape(-1, size)
            out[part] = self._drawn_from(triangle[part], weights[part], entropy)
        return out

    def sample_at(
        self, point: Sequence[float | Fraction], size: int | None = None, seed: int | None = None
    ) -> Any:
        """A report's label at a position, or a list of ``size`` of them, from the entropy of the
        operating system. A ``seed`` makes them reproducible, and therefore unfit for release.

        Raises
        ------
        ProblemError
            Outside of the region, where the file says to refuse that.
        """
        count, source = bytes_for(size, seed)
        drawn = np.frombuffer(source(count * self.draw_bytes), np.uint8)
        out = self.reports(self._within(point), drawn.reshape(count, self.draw_bytes))
        return out[0] if size is None else out

    def _inside(self, places: Floats) -> tuple[Ints, Ints]:
        """Cells and weights as ``_found`` gives them. Raises ProblemError on the first position
        that is outside, or none."""
        triangle, weights = self._found(places)
        for k in np.flatnonzero(triangle < 0).tolist():
            self._within(places[k].tolist())
        return triangle, weights

    def _within(self, point: Sequence[float | Fraction]) -> tuple[int, tuple[int, ...]]:
        found = self.locate(point)  # type: ignore[arg-type]
        if found is None:
            raise ProblemError(
                "lies outside of the region",
                where="point",
                remedy="Choose a point of the region, or pack with --outside nearest",
            )
        return found


PackedEverywhere = PackedRegion
"""Its name for users."""
