"""What packed mechanisms are, and one that reports from any point of a region."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base import memory
from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array
from optmech.base.read_only import frozen
from optmech.base.shown import card
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import EachBytes, bytes_for, fresh
from optmech.packed.file import Parts
from optmech.packed.header import Header
from optmech.packed.meshes import CORNER_BYTES, WEIGHT_BITS, Weights
from optmech.packed.places import coordinates_of
from optmech.protection.places import Snap
from optmech.protection.reporter import STICKY
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh.covering import Corners
from optmech.spaces.mesh.elements import basis
from optmech.spaces.mesh.making import both_rational
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.sphere import FAR, is_position

_POLE = 90
_AT_ONCE = 2**20
_MOST_POINTS = 2.0**53
_FEW = 16
"""Draws of a call for each of which all rows are read."""


@frozen
class Packed(Mechanism):
    """The mechanism of a packed file, whose probabilities are whole numbers over 2^``bits``, and
    what the file says in its ``header``."""

    header: Header
    bits: int
    _parts: Parts

    @property
    @abstractmethod
    def _from(self) -> str:
        """Whence it reports, in words."""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.bits} bits, from {self._from} to {self.observables!r})"

    def _repr_html_(self) -> str:
        facts = [("from", self._from), ("to", self.observables), ("bits", self.bits)]
        return card(type(self).__name__, facts)

    @property
    def fingerprint(self) -> bytes:
        """The file's digest."""
        return self.digest

    @property
    def digest(self) -> bytes:
        """The file's digest, which tells it from every other."""
        return self._parts.digest

    def coordinates(self, report: Hashable) -> tuple[float, ...] | None:
        """Where a report lies, as positions are given: (longitude, latitude) in degrees, or the
        coordinates of the places; None where they have none."""
        return coordinates_of(self.observables, self.observables.index(report))

    def accuracy(self, report: Hashable) -> float | None:
        """How far the secret may be from a report, with the probability that the header's
        ``accuracy`` states under the design's prior: in metres for degrees and grids over bounds,
        else in the unit of the places. None where the file says nothing, or never reports this."""
        column = np.flatnonzero(self._parts.table.columns == self.observables.index(report))
        stated = self.header.accuracy
        return stated.radius[int(column[0])] if stated is not None and len(column) else None

    def _entries(self, rows: int) -> NDArray[np.uint64]:
        """Zeros with a column for every observable: nothing that is drawn needs them. Raises
        TooLargeError where there is no memory for so many."""
        shape = rows, len(self.observables)
        memory.require(
            40.0 * shape[0] * shape[1],
            what=f"a matrix of {shape[0]:,} x {shape[1]:,}",
            where="reports",
            remedy="Use a machine with more memory",
        )
        return np.zeros(shape, dtype=np.uint64)

    @property
    @abstractmethod
    def draw_bytes(self) -> int:
        """Bytes that a report takes."""

    def _require_bytes(self, entropy: bytes) -> NDArray[np.uint8]:
        """A row of the bytes of one draw."""
        if not isinstance(entropy, bytes) or len(entropy) != self.draw_bytes:
            raise ProblemError(f"a draw takes {self.draw_bytes} bytes", where="entropy")
        return np.frombuffer(entropy, np.uint8).reshape(1, -1)


@frozen
class PackedEverywhere(Packed, MeshMechanism):
    """The mechanism of a packed file that is private at every point of a mesh: an
    ``MeshMechanism`` whose rows are whole numbers over 2^bits.

    Positions are moved to a point of their triangle that has whole weights over 2^24, by at most
    ``header.snap``; what is drawn there has exactly the stated probabilities.

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

    _sums: NDArray[np.uint64]

    def __init__(self, parts: Parts) -> None:
        assert isinstance(parts.places, Weights)
        vars(self).update(
            mesh=parts.places.mesh,
            observables=parts.reports,
            places=None,
            header=parts.header,
            bits=parts.table.bits,
            _parts=parts,
            _sums=np.cumsum(parts.table.rows, axis=1, dtype=np.uint64),
        )

    @property
    def _from(self) -> str:
        return f"every point of {self.mesh!r}"

    @cached_property
    def rows(self) -> Numerators:  # type: ignore[override]
        """The whole numbers of every control point. Raises TooLargeError where there is no memory
        for so many."""
        table = self._parts.table
        rows = self._entries(len(table.rows))
        rows[:, table.columns] = table.rows
        distinct = list(map(tuple, rows.tolist()))
        return Numerators(self.bits, tuple(distinct[k] for k in self._parts.row_of.tolist()))

    @property
    def draw_bytes(self) -> int:
        """Bytes that a report takes: three for each degree of the mesh, and those of a row."""
        return CORNER_BYTES * self.mesh.degree + self.bits // 8

    def locate(self, position: Sequence[float]) -> tuple[int, Corners] | None:
        """The triangle that a position (x, y), or (longitude, latitude), belongs to, and the
        weights of its corners, whole numbers over 2^24. None outside the region, where the file
        says to refuse that. Raises ProblemError on a position that is none."""
        exact = both_rational(position)
        globe = self.mesh.coordinates == "lonlat"
        if max(map(abs, exact)) > FAR or (globe and abs(exact[1]) > _POLE):
            raise ProblemError("is too large for a position", where="position")
        triangle, weights = self._found(np.array([list(map(float, exact))]))
        first, second, third = map(int, weights[0])
        return None if triangle[0] < 0 else (int(triangle[0]), (first, second, third))

    @cached_property
    def lattice(self) -> Snap | None:
        """The lattice on whose points reports repeat (``StickyReports``), so fine that it lets log
        ratios grow by at most 0.1; None where the file states no ε per distance above 0, or where
        the lattice has more points than 2^53."""
        metric = [part for part in self.header.constraints if part["kind"] == "metric_privacy"]
        rate = max((part["epsilon"] or 0.0 for part in metric), default=0.0)
        if not 0 < rate < math.inf:
            return None
        found = Snap.of(self.mesh, STICKY / rate)
        wide = np.ptp(self.mesh.vertices, axis=0) / found.step + 2
        return found if float(wide[0] * wide[1]) < _MOST_POINTS else None

    def number(self, position: Sequence[float]) -> int | None:
        """The number of the lattice's point next to a position; None outside, where that is
        refused. Raises ProblemError as ``locate``, and where there is no lattice."""
        lattice = self._required()
        if self.locate(position) is None:
            return None
        assert isinstance(self._parts.places, Weights)
        place = np.array([list(map(float, both_rational(position)))])
        led, _, _ = self._parts.places.led(place, self.header.outside)
        column, row = lattice.index(led)[0].tolist()
        return int(row * lattice.shape[0] + column)

    def _required(self) -> Snap:
        if self.lattice is None:
            raise ProblemError(
                "the file states no ε per distance, or one too large, and so there is no lattice",
                where="mechanism",
                remedy="Draw at positions",
            )
        return self.lattice

    def report_of(self, number: int, entropy: bytes) -> Hashable:
        """The report for a point of the lattice, as ``report``; where that point lies outside of
        the region, for the point of its border next to it."""
        lattice = self._required()
        assert isinstance(self._parts.places, Weights)
        columns, rows = lattice.shape
        row, column = divmod(whole(number, "number", most=columns * rows - 1), columns)
        point = lattice.points(np.array([[column, row]]))
        triangle, weights = self._parts.places.of(point, "nearest")
        first, second, third = map(int, weights[0])
        drawn = self._require_bytes(entropy)
        return self.reports((int(triangle[0]), (first, second, third)), drawn)[0]

    def _found(self, places: Floats) -> tuple[Ints, Ints]:
        """Triangles (n,), -1 outside, and weights (n, 3)."""
        assert isinstance(self._parts.places, Weights)
        return self._parts.places.of(places, self.header.outside)

    def report(self, position: Sequence[float], entropy: bytes) -> Hashable | None:
        """The report that ``draw_bytes`` bytes stand for, as docs/packed.md has it: every reader of
        the file gives the same. Uniform bytes give every report its exact probability; use each
        byte once. None outside the region, where the file says to refuse that.

        Raises
        ------
        ProblemError
            On another number of bytes, or a position that is none.
        """
        drawn, found = self._require_bytes(entropy), self.locate(position)
        return None if found is None else self.reports(found, drawn)[0]

    def reports(self, place: tuple[int, Corners], entropy: NDArray[np.uint8]) -> list[Hashable]:
        """One report for each row of ``entropy``, shape (n, draw_bytes), at a triangle and weights
        as ``locate`` gives them."""
        labels, (triangle, weights) = self.observables.labels, place
        drawn = self._drawn_at(np.array([triangle]), np.array([weights]), entropy)
        return [labels[k] for k in drawn]

    def _drawn_at(self, triangle: Ints, weights: Ints, entropy: NDArray[np.uint8]) -> Ints:
        """The same as numbers of observables, at one place or at one for each row."""
        first, second = weights[:, :1], weights[:, 1:2]
        degree = self.mesh.degree
        corners = entropy[:, : CORNER_BYTES * degree].reshape(len(entropy), degree, CORNER_BYTES)
        words = corners.astype(np.int64) @ (1 << 8 * np.arange(CORNER_BYTES))
        chosen = (words >= first).astype(np.int64) + (words >= first + second)
        one, two = (chosen == 1).sum(axis=1), (chosen == 2).sum(axis=1)
        index = two * (degree + 1) - two * (two - 1) // 2 + one
        row = self._parts.row_of[self.mesh.control[triangle, index]]
        drawn = np.zeros((len(entropy), 8), dtype=np.uint8)
        drawn[:, : self.bits // 8] = entropy[:, CORNER_BYTES * degree :]
        reached = (self._sums_of(row) <= drawn.view("<u8")).sum(axis=1)
        return np.asarray(self._parts.table.columns[reached])

    def _sums_of(self, row: Ints) -> NDArray[np.uint64]:
        """The sums of one row for each draw, (n, columns). Where there are few draws, all rows are
        read, so that what lies in a cache says nothing of the position."""
        if len(row) > _FEW:
            return np.asarray(self._sums[row])
        one_hot = row[:, None] == np.arange(len(self._sums))
        return np.asarray(one_hot.astype(np.uint64) @ self._sums)

    def at(self, points: ArrayLike) -> Floats:
        """Probabilities of the observables at positions (k, 2), as floats of shape (k, O). Raises
        ProblemError as ``sample_at``."""
        triangle, weights = self._inside(coordinate_rows(points, 2))
        table, size = self._parts.table, self.mesh.degree
        shares = basis(weights / (1 << WEIGHT_BITS), size)
        rows = np.ldexp(table.rows.astype(np.float64), -self.bits)
        out = np.zeros((len(triangle), len(self.observables)))
        for k, (share, t) in enumerate(zip(shares, triangle.tolist(), strict=True)):
            out[k, table.columns] = share @ rows[self._parts.row_of[self.mesh.control[t]]]
        return out

    def draws_at(self, points: ArrayLike, source: EachBytes | None = None) -> Ints:
        """For every position (n, 2) the index of an observable, as ``report``; made for tables.
        Raises ProblemError as ``sample_at``."""
        places = finite_array(coordinate_rows(points, 2), where="points")
        each = fresh() if source is None else source
        out, size = np.empty(len(places), dtype=np.int64), self.draw_bytes
        triangle, weights = self._inside(places)
        step = max(1, _AT_ONCE // len(self._parts.table.columns))
        for begin in range(0, len(places), step):
            part = np.arange(begin, min(begin + step, len(places)))
            entropy = np.frombuffer(each(part, size, 0), np.uint8).reshape(-1, size)
            out[part] = self._drawn_at(triangle[part], weights[part], entropy)
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
        """As ``_found``; the first that is outside, or no position, is refused."""
        proper = is_position(places, self.mesh.coordinates == "lonlat")
        triangle, weights = self._found(np.where(proper[:, None], places, 0.0))
        for k in np.flatnonzero(~proper | (triangle < 0)).tolist():
            self._within(places[k].tolist())
        return triangle, weights

    def _within(self, point: Sequence[float | Fraction]) -> tuple[int, Corners]:
        found = self.locate(point)  # type: ignore[arg-type]
        if found is None:
            raise ProblemError(
                f"({', '.join(map(str, point))}) lies outside of the region",
                where="point",
                remedy="Choose a point of the region, or pack with --outside nearest",
            )
        return found
