"""The program of privacy at every point over the control points of a mesh: the loss of a released
matrix, and a lower bound from multipliers, both in whole numbers (theory: "Privacy at every
point", "Polynomials on the triangles of a mesh").

In a triangle with edges d₁, d₂, cross product D and rises a, b of a column p along the edges,
D G = a d₂' − b d₁' are the coefficients of its gradient, where (x, y)' = (y, −x). For any vectors
w, one for every control point α of the triangle,

    |w| ε D P[α] + w·(D G[α]) >= 0  wherever ‖G[α]‖ <= ε P[α],

so that these terms, taken off the costs of the entries, leave a bound: the sum over the rows of the
least entry of each. Nothing about the vectors is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate.everywhere import Edges, Vector, interpolated_loss, rise_terms
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators, integers
from optmech.mesh import Mesh, elements

_BITS = 320
_DIGITS = 40
"""Bits of the largest component of a vector that are kept."""
MOST_BITS = 2000

Vectors = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, eq=False)
class MeshMultipliers:
    """Vectors in whole numbers over 2^bits: for every triangle and report x and y at each of the
    n control points, 2n numbers."""

    bits: int
    vectors: Vectors

    @classmethod
    def none(cls, mesh: Mesh, reports: int) -> MeshMultipliers:
        """Zeros."""
        triangles, each = mesh.control.shape
        return cls(0, (((0,) * (2 * each),) * reports,) * triangles)

    @classmethod
    def rounded(cls, mesh: Mesh, multipliers: Floats) -> MeshMultipliers:
        """Those of an engine: (O, T, n, 3), of ε P[α] and of the two components of G[α]; zeros
        where they are no numbers."""
        area = Edges(mesh).floats[2]
        found = (multipliers[..., 1:] / area[None, :, None, None]).transpose(1, 0, 2, 3)
        largest = float(np.abs(found).max(initial=0.0))
        if not 0 < largest < 2.0**60:
            return cls.none(mesh, found.shape[1])
        bits = min(MOST_BITS - 1, max(0, _DIGITS - math.frexp(largest)[1]))
        whole = np.rint(np.ldexp(found, bits)).astype(np.int64).reshape(*found.shape[:2], -1)
        return cls(bits, tuple(tuple(map(tuple, part)) for part in whole.tolist()))


@dataclass(frozen=True, eq=False)
class MeshProgram(ReadOnly):
    """minimise Σ_x π(x) Σ_o p_o(x) c(x, o) over columns that are polynomials of the degree of
    ``mesh`` in every triangle, with ‖G_o[α]‖ <= ε P[α,o] and rows of sum one.

    ``places`` (n, 2) with ``weights`` (n,) and ``costs`` (n, O), all >= 0, count as the binary
    fractions that they are.

    Raises
    ------
    ProblemError
        On a place outside of the region, when it is evaluated.
    """

    mesh: Mesh
    epsilon: Exact
    places: Floats
    weights: Floats
    costs: Floats
    columns: tuple[int, ...] | None = None
    """The reports that may be made at all; None for all of them."""

    def loss(self, released: Numerators) -> tuple[Fraction, Fraction]:
        """Bounds of the expected loss that differ by less than 2^-319 per place."""
        low, high = interpolated_loss(self.mesh, self.places, self.weights, self.costs, released)
        total = sum(map(Fraction, self.weights.tolist()), Fraction(0))
        return low * total, high * total

    @cached_property
    def row_costs(self) -> list[list[int]]:
        """At most 2^320 Σ_x π(x) B_α(x) c(x, o) for every control point α, (rows, O)."""
        (mass,), mass_bits = integers(self.weights[None, :])
        cost, cost_bits = integers(self.costs)
        out = [[0] * self.costs.shape[1] for _ in range(self.mesh.rows)]
        for x, place in enumerate(self.places.tolist()):
            found = self.mesh.locate_exactly(place)
            if found is None:
                raise ProblemError(
                    f"({place[0]}, {place[1]}) lies outside of the region", where=f"places[{x}]"
                )
            own = elements.whole_basis(found[1], self.mesh.degree)
            unit = sum(own) << (mass_bits + cost_bits)
            for k, share in zip(self.mesh.control[found[0]].tolist(), own, strict=True):
                factor = (mass[x] * share) << _BITS
                if factor:
                    row = out[k]
                    for o, c in enumerate(cost[x]):
                        row[o] += factor * c // unit
        return out

    def bound(self, given: MeshMultipliers) -> Fraction:
        """A number that no loss of this program goes below.

        Raises
        ------
        ProblemError
            Where the multipliers are not of this mesh and as many reports.
        """
        reports, (triangles, each) = self.costs.shape[1], self.mesh.control.shape
        if len(given.vectors) != triangles or any(
            len(part) != reports or any(len(vectors) != 2 * each for vectors in part)
            for part in given.vectors
        ):
            raise ProblemError("are not those of the mesh and the reports", where="multipliers")
        edges = Edges(self.mesh)
        rate = bracket(self.epsilon)[1]
        whole = 2 * edges.exponent + given.bits
        # everything over rate.denominator · 2^(whole + _BITS)
        scale = rate.denominator << whole
        left = [[scale * c for c in row] for row in self.row_costs]
        for control, (first, second, area), part in zip(
            self.mesh.control.tolist(), edges.exact, given.vectors, strict=True
        ):
            rows = [left[k] for k in control]
            steep = (rate.numerator * area) << _BITS
            plain = rate.denominator << (edges.exponent + _BITS)
            for o, vectors in enumerate(part):
                if any(vectors):
                    _charge(rows, o, vectors, (first, second), (steep, plain), self.mesh.degree)
        if self.columns is not None:
            left = [[row[o] for o in self.columns] for row in left]
        return Fraction(sum(map(min, left)), scale << _BITS)


def _charge(
    rows: list[list[int]],
    o: int,
    vectors: Sequence[int],
    edges: tuple[Vector, Vector],
    units: tuple[int, int],
    degree: int,
) -> None:
    """Take the terms of one triangle off the costs of a report at its control points."""
    (first, second), (steep, plain) = edges, units
    one, other = rise_terms(degree)
    for i, (x, y) in enumerate(zip(vectors[::2], vectors[1::2], strict=True)):
        if x or y:
            rows[i][o] -= steep * (math.isqrt(x * x + y * y - 1) + 1)
            along = plain * (second[1] * x - second[0] * y)
            back = plain * (first[1] * x - first[0] * y)
            for k, count in one[i]:
                rows[k][o] -= count * along
            for k, count in other[i]:
                rows[k][o] += count * back
