"""A mechanism that reports from any point of a region: weights of a mesh's control points there,
and a row of probabilities for each of these."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, coordinate_rows, finite_array
from optmech.base.read_only import ReadOnly
from optmech.errors import AbsentError, ProblemError
from optmech.exact.checked import whole
from optmech.exact.keyed import fingerprint
from optmech.exact.numerators import Numerators
from optmech.exact.sampler import (
    EachBytes,
    Table,
    draw,
    draw_each,
    fresh,
    seeded_bytes,
    system_bytes,
)
from optmech.mesh import Mesh
from optmech.mesh.covering import Corners
from optmech.mesh.drawing import draw_control_points
from optmech.mesh.elements import whole_basis
from optmech.spaces.domain import Domain


@dataclass(frozen=True, eq=False, repr=False)
class EverywhereMechanism(ReadOnly):
    """p_o(x) = Σ_α B_α(λ(x)) P[α,o], λ the barycentric weights of x in its triangle, B_α
    Bernstein's polynomials of the mesh's degree: in degree 1 the weights themselves.

    Raises
    ------
    ProblemError
        Where the matrix has not a row for every control point of the mesh and a column for every
        observable.
    """

    mesh: Mesh
    observables: Domain
    exact: Numerators

    def __post_init__(self) -> None:
        if self.exact.shape != (self.mesh.rows, len(self.observables)):
            raise ProblemError(
                f"shape {self.exact.shape} does not fit {self.mesh.rows} control points x "
                f"{len(self.observables)} observables",
                where="matrix",
            )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AbsentError.of(self, name)

    def __repr__(self) -> str:
        return f"EverywhereMechanism(from {self.mesh!r} to {self.observables!r})"

    def at(self, points: ArrayLike) -> Floats:
        """Probabilities of the observables at points (k, 2), as floats of shape (k, O).

        Raises
        ------
        ProblemError
            On a point outside of the region.
        """
        return np.asarray(self.mesh.interpolation(points) @ self.exact.matrix)

    def exactly_at(self, point: Sequence[float | Fraction]) -> tuple[Fraction, ...]:
        """The probabilities at one point, exactly; coordinates are fractions, or floats that count
        as the binary fractions that they are."""
        control, weights = self._weights(point)
        unit = sum(weights) << self.exact.bits
        columns = zip(*(self.exact.rows[k] for k in control), strict=True)
        return tuple(
            Fraction(sum(w * n for w, n in zip(weights, column, strict=True)), unit)
            for column in columns
        )

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
        table = self.exact.table
        out = [labels[int(draw(table, control[k], 1, source)[0])] for k in drawn.tolist()]
        return out[0] if size is None else out

    def draws(self, points: ArrayLike, source: EachBytes | None = None) -> Ints:
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
        return draw_each(self.exact.table, rows, each)

    def sample(
        self, point: Sequence[float | Fraction], size: int | None = None, seed: int | None = None
    ) -> Any:
        """As ``sample_at``: a mechanism over finitely many secrets samples by label, this one by
        point."""
        return self.sample_at(point, size, seed)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ between mechanisms with other probabilities, meshes or reports."""
        vertices, triangles = self.mesh.vertices.tolist(), self.mesh.triangles.tolist()
        places = [*map(tuple, vertices), *map(tuple, triangles)]
        return fingerprint(self.exact.table.steps, places, self.observables.labels)

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
