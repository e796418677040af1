"""A mechanism that reports from any point of a region: weights of a mesh's control points there,
and a row of probabilities for each of these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import frozen, locked
from optmech.base.shown import card
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators, dot
from optmech.exact.rounding import UNIT
from optmech.exact.sampler import EachBytes, Table, bytes_for, draw, draw_each, fingerprint, fresh
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh.elements import indices, whole_basis
from optmech.spaces.mesh.mesh import Mesh
from optmech.spaces.mesh.triangulation import area_products
from optmech.spaces.rationals import RationalRows, composed, lowest_terms


@frozen
class MeshMechanism(Mechanism):
    """A mechanism that reports from every point of a region, p_o(x) = Σ_α B_α(λ(x)) P[α,o].

    λ are the barycentric weights of x in its triangle, B_α Bernstein's polynomials of the mesh's
    degree: in degree 1 the weights themselves. As a ``Mechanism`` it is the one from the places
    that are its ``secrets``, whose probabilities are rational numbers.

    Parameters
    ----------
    mesh, observables:
        The region, and what is reported.
    rows:
        A row of whole numbers for every control point of the mesh, its vertices first.
    secrets:
        Places of the region; the vertices of the mesh if not given.

    Raises
    ------
    ProblemError
        Where the matrix has not a row for every control point of the mesh and a column for every
        observable.
    """

    mesh: Mesh
    rows: Numerators
    places: Domain | None
    """As given."""

    def __init__(
        self, mesh: Mesh, observables: Domain, rows: Numerators, secrets: Domain | None = None
    ) -> None:
        if rows.shape != (mesh.rows, len(observables)):
            raise ProblemError(
                f"shape {rows.shape} does not fit {mesh.rows} control points x "
                f"{len(observables)} observables",
                where="matrix",
            )
        if not mesh.is_region:
            secrets = mesh.domain
        if secrets is not None:
            secrets.require_points("report from them")
        vars(self).update(mesh=mesh, observables=observables, rows=rows, places=secrets)

    @cached_property
    def secrets(self) -> Domain:
        """The places that its matrix has rows for."""
        return self.mesh.domain if self.places is None else self.places

    @cached_property
    def matrix(self) -> Floats:
        """Probabilities at the places, as floats of shape (secrets, observables)."""
        if not self.mesh.is_region:
            return self.rows.matrix
        out = self.at(self.secrets.require_points("report from them"))
        return locked(out)

    @cached_property
    def exact(self) -> RationalRows | Numerators:
        """Probabilities at the places, exactly."""
        if not self.mesh.is_region:
            return self.rows
        places = self.secrets.require_points("report from them").tolist()
        return RationalRows(tuple(self._row(place) for place in places))

    @property
    def is_everywhere(self) -> bool:
        return True

    def rows_on(self, mesh: object) -> Numerators | None:
        return self.rows if self.mesh == mesh else None

    def __repr__(self) -> str:
        return f"MeshMechanism(from every point of {self.mesh!r} to {self.observables!r})"

    def _repr_html_(self) -> str:
        facts = [
            ("from", f"every point of {self.mesh!r}"),
            ("to", self.observables),
            ("places", self.secrets),
            ("probabilities", f"exact: {self.rows!r}"),
        ]
        return card("MeshMechanism", facts)

    def __eq__(self, other: object) -> bool:
        """Exactly the same probabilities at every point, over equal meshes and places."""
        if not isinstance(other, MeshMechanism):
            return False if isinstance(other, Mechanism) else NotImplemented
        same = self.mesh == other.mesh and self.observables == other.observables
        rows = same and lowest_terms(self.rows.rows) == lowest_terms(other.rows.rows)
        return rows and self.secrets == other.secrets

    def __hash__(self) -> int:
        return hash((self.mesh, self.observables, self.rows.matrix.tobytes()))

    def at(self, points: ArrayLike) -> Floats:
        """Probabilities of the observables at points (k, 2), as floats of shape (k, O).

        Raises
        ------
        ProblemError
            On a point outside of the region.
        """
        return np.asarray(self.mesh.interpolation(points) @ self.rows.matrix)

    def _holds(self, points: Floats) -> Bools:
        """Which points (k, n) it reports from."""
        return self.mesh.holds(points)

    def exactly_at(self, point: Sequence[float | Fraction]) -> tuple[Fraction, ...]:
        """The probabilities at one point, exactly; coordinates are fractions, or floats that count
        as the binary fractions that they are."""
        row = self._row(point)
        total = sum(row)
        return tuple(Fraction(value, total) for value in row)

    def _row(self, point: Sequence[float | Fraction]) -> tuple[int, ...]:
        """The probabilities at a point as whole numbers over their sum."""
        control, weights = self._weights(point)
        columns = zip(*(self.rows.rows[k] for k in control), strict=True)
        return tuple(dot(weights, column) for column in columns)

    def sample_at(
        self, point: Sequence[float | Fraction], size: int | None = None, seed: int | None = None
    ) -> Any:
        """Draw an observable's label at a point, or a list of ``size`` of them, with exactly the
        probabilities of ``exactly_at``.

        A control point of the point's triangle is drawn by its weight, in whole numbers, and then
        an observable from its row, from the entropy of the operating system. The second draw takes
        the same work for all rows; finding the triangle, and the length of the weights, depend
        on the point. A ``seed`` makes the draws reproducible, and therefore unfit for release.
        """
        count, source = bytes_for(size, seed)
        control, weights = self._weights(point)
        drawn = draw(Table.of([weights]), 0, count, source)
        labels: list[Hashable] = list(self.observables.labels)
        table = self.rows.table
        out = [labels[int(draw(table, control[k], 1, source)[0])] for k in drawn.tolist()]
        return out[0] if size is None else out

    def draws_at(self, points: ArrayLike, source: EachBytes | None = None) -> Ints:
        """For every point (n, 2) the index of an observable, each with exactly the probabilities
        of ``exactly_at``; made for tables, as ``Mechanism.draws``.

        Raises
        ------
        ProblemError
            On a point outside of the region, or without finite coordinates.
        """
        each = fresh() if source is None else source
        mesh, places = self.mesh, self.mesh.listed(points)
        rows = draw_control_points(mesh, places, each, lambda k: mesh.inside(places[k], k))
        return draw_each(self.rows.table, rows, each)

    @checked_arguments
    def then(self, other: Mechanism) -> Mechanism:
        """Post-process every observable with ``other``, whose secrets are these observables.

        The result reports from every point of the region where ``other`` has exact probabilities
        over a power of two, such as a remap; otherwise from the places only.
        """
        probabilities = other.rational
        fits = other.secrets.labels == self.observables.labels
        rows = composed(self.rows, probabilities) if fits and probabilities is not None else None
        if not isinstance(rows, Numerators):
            return super().then(other)
        return MeshMechanism(self.mesh, other.observables, rows, self.places)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ between mechanisms with other probabilities, meshes or reports."""
        vertices, triangles = self.mesh.vertices.tolist(), self.mesh.triangles.tolist()
        places = [*map(tuple, vertices), *map(tuple, triangles)]
        return fingerprint(self.rows.table.steps, places, self.observables.labels)

    def _weights(self, point: Sequence[float | Fraction]) -> tuple[list[int], tuple[int, ...]]:
        """The control points around a point and their weights there, in whole numbers."""
        triangle, weights = self._within(point)
        return self.mesh.control[triangle].tolist(), whole_basis(weights, self.mesh.degree)

    def _within(self, point: Sequence[float | Fraction]) -> tuple[int, tuple[int, ...]]:
        """The triangle around a point and the weights of its corners there, in whole numbers."""
        return self.mesh.inside(point)


_BITS = 53
"""Bits of the first number: floats hold it exactly."""
_SLACK = 64.0
"""Units of rounding that are charged; 26 are used up."""

Around = Callable[[int], tuple[int, tuple[int, ...]]]


def draw_control_points(mesh: Mesh, points: Any, source: EachBytes, around: Around) -> Ints:
    """For every point (n, 2) the index of a control point of the mesh, with exactly the
    probabilities that are its weights there: as many corners of the triangle as the mesh has
    degrees are drawn by the barycentric weights, and how often each came up is the control point.

    ``around`` gives the triangle around a point, by the point's index, and the weights of its
    corners in whole numbers; it is asked where floats do not decide, and refuses points outside of
    the region, and wherever the mesh is a network. Negative attempts of the source are used.
    """
    every = np.arange(len(points))
    triangle, weights, error = _enclosed(mesh, points)
    inner = (triangle >= 0) & (weights.min(axis=1) > error)
    first, second = weights[:, 0], weights[:, 0] + weights[:, 1]
    # the number stands for an interval of this width
    near = error + 2.0 ** (1 - _BITS)
    times = np.zeros((len(points), 3), dtype=np.int64)
    for k in range(mesh.degree):
        attempt, step = -1 - k, -mesh.degree
        words = np.frombuffer(source(every, 8, attempt), dtype=">u8").astype(np.uint64)
        numbers = words >> np.uint64(64 - _BITS)
        at = numbers * UNIT
        sure = inner & (np.abs(at - first) > near) & (np.abs(at - second) > near)
        chosen = (at > first).astype(np.int64) + (at > second)
        for n in np.flatnonzero(~sure).tolist():
            triangle[n], whole = around(n)
            further = count(attempt + step, step)
            mine = (source(np.array([n]), 8, again) for again in further)
            chosen[n] = _decided(whole, int(numbers[n]), mine)
        times[every, chosen] += 1
    found = indices(mesh.degree)
    place = np.zeros((mesh.degree + 1, mesh.degree + 1), dtype=np.int64)
    for i, (_, j, k) in enumerate(found):
        place[j, k] = i
    return mesh.control[triangle, place[times[:, 1], times[:, 2]]].astype(np.int64)


def _decided(weights: Sequence[int], number: int, more: Iterator[bytes]) -> int:
    """The part of the unit interval, cut by the weights, that holds a number of which ``number``
    are the first bits: bits are added until only one does."""
    total, bits = sum(weights), _BITS
    while True:
        low, high = number * total, (number + 1) * total
        begin = 0
        for k, weight in enumerate(weights):
            end = begin + (weight << bits)
            if begin <= low and high <= end:
                return k
            begin = end
        number = number << 64 | int.from_bytes(next(more), "big")
        bits += 64


def _enclosed(mesh: Mesh, points: Any) -> tuple[Ints, Floats, Floats]:
    """A triangle near each point, -1 where none was found, the point's weights there (n, 3), and
    how far these, and sums of two of them, may be from the true ones (n,).

    An area x1·y2 - y1·x2 of rounded differences is off by at most 5 roundings of |x1·y2| + |y1·x2|,
    their sum by 8 of the sum M of these; a quotient of the two within [0, 1], and the sum of two
    such, are then off by less than 26 M / sum + 3 roundings.
    """
    if not mesh.is_region:
        none = np.zeros((len(points), 3))
        return none[:, 0].astype(np.int64) - 1, none, none[:, 0]
    # a longitude that is led around the globe is no exact difference any more
    west, east = mesh.vertices[:, 0].min(), mesh.vertices[:, 0].max()
    straight = (points[:, 0] >= west) & (points[:, 0] <= east)
    triangle = np.where(straight, mesh.locate(points)[0], -1)
    corners = mesh.vertices[mesh.triangles[np.maximum(triangle, 0)]]
    one, other = area_products(points, corners)
    total, size = (one - other).sum(axis=1), (np.abs(one) + np.abs(other)).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = (one - other) / total[:, None]
        error = _SLACK * UNIT * (size / total + 1.0)
    # the bound holds where the sum stands out of its own rounding, and nothing underflows
    usable = (error > 0) & (error < 2.0**-10) & (total > 1e-200)
    return np.where(usable, triangle, -1), weights, error
