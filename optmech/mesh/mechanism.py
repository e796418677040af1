"""A mechanism that reports from any point of a region: weights of a mesh's control points there,
and a row of probabilities for each of these."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array
from optmech.base.read_only import frozen
from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import (
    EachBytes,
    Table,
    draw,
    draw_each,
    fingerprint,
    fresh,
    seeded_bytes,
    system_bytes,
)
from optmech.mesh import Mesh
from optmech.mesh.covering import Corners
from optmech.mesh.drawing import draw_control_points
from optmech.mesh.elements import whole_basis
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
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
        if secrets is not None:
            secrets.require_points("report from them")
        vars(self).update(mesh=mesh, observables=observables, rows=rows, places=secrets)

    @cached_property
    def secrets(self) -> Domain:
        """The places that its matrix has rows for."""
        if self.places is not None:
            return self.places
        mesh = self.mesh
        labels = range(len(mesh))
        return Domain(labels, mesh.vertices, mesh.unit, coordinates=mesh.coordinates)

    @cached_property
    def matrix(self) -> Floats:
        """Probabilities at the places, as floats of shape (secrets, observables)."""
        out = self.at(self.secrets.require_points("report from them"))
        out.setflags(write=False)
        return out

    @cached_property
    def exact(self) -> RationalRows:
        """Probabilities at the places, exactly."""
        places = self.secrets.require_points("report from them").tolist()
        return RationalRows(tuple(self._row(place) for place in places))

    def __repr__(self) -> str:
        return f"MeshMechanism(from every point of {self.mesh!r} to {self.observables!r})"

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
        return tuple(sum(w * n for w, n in zip(weights, column, strict=True)) for column in columns)

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
        for where, value in (("size", size), ("seed", seed)):
            if value is not None:
                whole(value, where)
        source = system_bytes if seed is None else seeded_bytes(int(seed))
        control, weights = self._weights(point)
        drawn = draw(Table.of([weights]), 0, 1 if size is None else int(size), source)
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
        places = finite_array(coordinate_rows(points, 2), where="points")
        each = fresh() if source is None else source
        rows = draw_control_points(self.mesh, places, each, lambda k: self._within(places[k]))
        return draw_each(self.rows.table, rows, each)

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

    def _within(self, point: Sequence[float | Fraction]) -> tuple[int, Corners]:
        """The triangle around a point and the weights of its corners there, in whole numbers."""
        found = self.mesh.locate_exactly(point)
        if found is None:
            raise ProblemError(
                f"({', '.join(map(str, point))}) lies outside of the region",
                where="point",
                remedy="Choose a point of the mesh, or a larger mesh",
            )
        return found
