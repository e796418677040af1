"""Packed mechanisms: what those of all files have, and those that report from places."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base import memory
from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import frozen, locked
from optmech.base.shown import card
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import Bytes, EachBytes, Table, draw, draw_each, system_bytes
from optmech.spaces.arguments import kind
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.sphere import is_position
from optmech_devices.packed.file import Parts, little_endian, one_draw
from optmech_devices.packed.header import Header
from optmech_devices.packed.meshes import Steps
from optmech_devices.packed.places import Finder, coordinates_of
from optmech_devices.packed.sentences import Said, region_words
from optmech_devices.protection.places import Snap

_SAMPLED_BITS = 63
_FEW = 16
"""Draws of a call for each of which all rows are read."""


@kind(
    "Read one with om.devices.load_packed(path)",
    {"Design": "Pack it first, with om.pack(design, path)"},
    "packed mechanism",
)
@frozen
class PackedMechanism(Said, Mechanism):
    """The mechanism of a packed file: a ``Mechanism`` whose probabilities are whole numbers over
    2^``bits``, and what the file says in its ``header``.

    It reports from places, by their labels, or from every point of a mesh, by positions: then
    ``locate`` gives a triangle and weights.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> packed = om.pack(om.solve(problem), "cells.omm")
    >>> packed.bits, packed.draw_bytes, packed.protects[0]
    (24, 3, 'metric privacy: ε = 1 per km')
    >>> packed.region, len(packed.against)
    ('2 rows x 2 columns of cells of 1 x 1 km', 8)
    >>> packed.promise.scope, packed.guess[-40:]
    ('cells', 'of cases, that without a report in 25 %.')
    >>> packed.sample(packed.locate((1.5, 0.2))) in cells.labels
    True
    >>> zeros = bytes(packed.draw_bytes)
    >>> packed.report((0, 0), zeros), packed.reports((0, 0), np.zeros((2, 3), np.uint8))
    ((0, 0), [(0, 0), (0, 0)])
    >>> packed.number((0, 1)), packed.report_of(1, zeros) == packed.report((0, 1), zeros)
    (1, True)
    """

    header: Header
    bits: int
    _parts: Parts

    def __init__(self, parts: Parts) -> None:
        vars(self).update(
            observables=parts.reports,
            header=parts.header,
            bits=parts.table.bits,
            _parts=parts,
        )

    @property
    @abstractmethod
    def _from(self) -> str:
        """Whence it reports, in words."""

    def __repr__(self) -> str:
        guess = self.guess[:1].lower() + self.guess[1:].rstrip(".")
        said = ", ".join(filter(None, [f"{self.bits} bits", self.promise.brief, guess]))
        return f"PackedMechanism({said}, from {self._from} to {self.observables!r})"

    def _repr_html_(self) -> str:
        facts = [("from", self._from), ("to", self.observables), ("bits", self.bits)]
        said = [*self.promise.facts, ("best guess", self.guess)]
        return card("PackedMechanism", [*facts, *said])

    @property
    def _held(self) -> Domain | Mesh:  # type: ignore[override]
        return self._parts.held

    @property
    def region(self) -> str:
        """Where it reports from, in words."""
        return region_words(self._held)

    @property
    def digest(self) -> bytes:
        """The file's digest, which tells it from every other."""
        return self._parts.digest

    fingerprint = digest

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

    def _dense(self, rows: Ints) -> NDArray[np.uint64]:
        """Some of the distinct rows, with a column for every observable: nothing that is drawn
        needs them. Raises TooLargeError where there is no memory for so many."""
        shape, table = (len(rows), len(self.observables)), self._parts.table
        memory.require(
            40.0 * shape[0] * shape[1],
            what=f"a matrix of {shape[0]:,} x {shape[1]:,}",
            where="reports",
            remedy="Use a machine with more memory",
        )
        out = np.zeros(shape, dtype=np.uint64)
        out[:, table.columns] = table.rows[rows]
        return out

    @property
    @abstractmethod
    def draw_bytes(self) -> int:
        """Bytes that a report takes: of a row, and from a mesh three for each of its degrees."""

    @cached_property
    def rows(self) -> Numerators:
        """What was released: the whole numbers of every place, or of every control point of the
        mesh. Raises TooLargeError where there is no memory for so many."""
        every = np.arange(len(self._parts.table.rows))
        distinct = list(map(tuple, self._dense(every).tolist()))
        return Numerators(self.bits, tuple(distinct[k] for k in self._parts.row_of.tolist()))

    @cached_property
    def _sums(self) -> NDArray[np.uint64]:
        """Sums of the distinct rows along the columns that there are."""
        return np.cumsum(self._parts.table.rows, axis=1, dtype=np.uint64)

    def _drawn(self, row: Ints, entropy: NDArray[np.uint8]) -> Ints:
        """Numbers of observables: of one of the distinct rows, or of one for each draw. Where they
        are few, all rows are read, so that what lies in a cache says nothing of the place."""
        sums = self._sums
        if len(row) > _FEW:
            sums = sums[row]
        else:
            sums = (row[:, None] == np.arange(len(sums))).astype(np.uint64) @ sums
        reached = (sums <= little_endian(entropy)[:, None]).sum(axis=1)
        return np.asarray(self._parts.table.columns[reached])

    @abstractmethod
    def locate(self, position: Sequence[float]) -> Any:
        """The label of the place that a position belongs to, or its triangle and the weights of the
        corners: (longitude, latitude) in degrees, or the coordinates of the places. None outside
        the region, where the file says to refuse that. Raises ProblemError on what is none."""

    @abstractmethod
    def report(self, place: Any, entropy: bytes | None = None) -> Hashable | None:
        """A report from a position, as (longitude, latitude) or the coordinates of the places, by
        the entropy of the operating system; None outside the region, where the file says to refuse
        that. The same for a file of any kind.

        With ``entropy`` the report that ``draw_bytes`` bytes stand for, of a place's label or from
        a position, as docs/packed.md has it: every reader of the file gives the same. Uniform bytes
        give every report its exact probability; use each byte once. Raises ProblemError on another
        number of bytes, or an unknown place."""

    @abstractmethod
    def reports(self, place: Any, entropy: NDArray[np.uint8]) -> list[Hashable]:
        """One report for each row of ``entropy``, shape (n, draw_bytes), at what ``locate``
        gives."""

    # -- reports that repeat ---------------------------------------------------------------------

    lattice: Snap | Steps | None
    """On whose points reports repeat where there are no places; None where there is none."""
    place_bytes: int
    """Of a number in what reports repeat by (docs/sticky.md)."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers there are: of places, or of points of the lattice."""

    @abstractmethod
    def number(self, place: Any) -> int | None:
        """The number of a place, or of the point of the lattice next to a position; None outside,
        where that is refused. Raises ProblemError as ``locate``, and where there is no lattice."""

    @abstractmethod
    def report_of(self, number: int, entropy: bytes) -> Hashable:
        """The report for a place or a point of the lattice, by its number, as ``report``; where
        that point lies outside of the region, for the point of its border next to it."""


@frozen
class FixedNumerators(Numerators):
    """A released matrix from machine words, without a Python number for each until somebody asks.

    ``entries`` has shape (S, O), unsigned 64-bit: rows of a file, which sum to 2^bits.
    """

    entries: NDArray[np.uint64]

    def __init__(self, bits: int, entries: NDArray[np.uint64]) -> None:
        vars(self).update(bits=bits, entries=locked(entries))

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:  # type: ignore[override]
        """The numerators as Python's numbers."""
        return tuple(map(tuple, self.entries.tolist()))

    @property
    def shape(self) -> tuple[int, int]:
        """Secrets and observables."""
        rows, columns = self.entries.shape
        return rows, columns

    @cached_property
    def matrix(self) -> Floats:
        """The probabilities, which are float64 numbers exactly, shape (S, O)."""
        out: Floats = np.ldexp(self.entries.astype(np.float64), -self.bits)
        return locked(out)


@frozen
class PackedPlaces(PackedMechanism):
    """A packed mechanism from places, which are its ``secrets``."""

    lattice = None
    place_bytes = 4

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        vars(self).update(secrets=parts.places)

    @property
    def _from(self) -> str:
        return repr(self.secrets)

    @cached_property
    def exact(self) -> FixedNumerators:
        """The whole numbers, with a column for every observable. Raises TooLargeError where there
        is no memory for so many."""
        return FixedNumerators(self.bits, self._dense(self._parts.row_of))

    @cached_property
    def matrix(self) -> Floats:
        """The probabilities, shape (secrets, observables), exactly."""
        return self.exact.matrix

    @cached_property
    def _table(self) -> Table:
        steps = self._sums << np.uint64(_SAMPLED_BITS - self.bits)
        return Table(np.ascontiguousarray(steps.T[None]))

    @property
    def draw_bytes(self) -> int:
        return self.bits // 8

    def report(self, place: Any, entropy: bytes | None = None) -> Hashable | None:
        if entropy is None:
            found = self.locate(place)
            return None if found is None else self.report(found, system_bytes(self.draw_bytes))
        return self.reports(place, one_draw(entropy, self.draw_bytes))[0]

    def reports(self, place: Hashable, entropy: NDArray[np.uint8]) -> list[Hashable]:
        row = self._parts.row_of[[self.secrets.index_evenly(place)]]
        labels = self.observables.labels
        return [labels[k] for k in self._drawn(row, entropy)]

    def _draw_of(self, secret: int, count: int, source: Bytes) -> Ints:
        row = int(self._parts.row_of[secret])
        return self._parts.table.columns[draw(self._table, row, count, source)]

    def _draws_of(self, secrets: Ints, source: EachBytes) -> Ints:
        rows = self._parts.row_of[secrets]
        return self._parts.table.columns[draw_each(self._table, rows, source)]

    def locate(self, position: Sequence[float]) -> Hashable | None:
        dimension = self.secrets.require_points("look up a position").shape[1]
        where = finite_array(position, where="position", ndim=1)
        if len(where) != dimension:
            raise ProblemError(f"{len(where)} coordinates instead of {dimension}", where="position")
        if not is_position(where[None], self._finder.globe)[0]:
            raise ProblemError("is too large for a position", where="position")
        found = int(self._finder.find(where[None])[0])
        return None if found < 0 else self.secrets.labels[found]

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.secrets, self.header.reach, self.header.outside)

    @property
    def numbers(self) -> int:
        return len(self.secrets)

    def number(self, place: Hashable) -> int:
        return self.secrets.index(place)

    def report_of(self, number: int, entropy: bytes) -> Hashable:
        place = whole(number, "number", most=self.numbers - 1)
        return self.report(self.secrets.labels[place], entropy)
