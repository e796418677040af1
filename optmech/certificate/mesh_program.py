"""The program of privacy at every point over the vertices of a mesh: the loss of a released matrix,
and a lower bound from multipliers, both in whole numbers (theory: "Privacy at every point").

In a triangle with edges d₁, d₂, cross product D and rises a, b of a column p along the edges,
D ∇p = a d₂' − b d₁', where (x, y)' = (y, −x). For any vectors w, one for every corner v,

    |w| ε D p(v) + w·(D ∇p) >= 0  wherever ‖∇p‖ <= ε p(v),

so that these terms, taken off the costs of the entries, leave a bound: the sum over the vertices
of the least entry of each row. Nothing about the vectors is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.everywhere import Edges, interpolated_loss
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators, integers
from optmech.mesh import Mesh

_BITS = 320
_DIGITS = 40
"""Bits of the largest component of a vector that are kept."""
MOST_BITS = 2000

Vectors = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, eq=False)
class MeshMultipliers:
    """Vectors in whole numbers over 2^bits: for every triangle and report x and y at each of the
    three corners, six numbers."""

    bits: int
    vectors: Vectors

    @classmethod
    def none(cls, mesh: Mesh, reports: int) -> MeshMultipliers:
        """Zeros."""
        return cls(0, (((0,) * 6,) * reports,) * len(mesh.triangles))

    @classmethod
    def rounded(cls, mesh: Mesh, multipliers: Floats) -> MeshMultipliers:
        """Those of an engine: (O, T, 3, 3), of ε p(v) and of the two components of ∇p; zeros where
        they are no numbers."""
        area = Edges(mesh).floats[2]
        found = (multipliers[..., 1:] / area[None, :, None, None]).transpose(1, 0, 2, 3)
        largest = float(np.abs(found).max(initial=0.0))
        if not 0 < largest < 2.0**60:
            return cls.none(mesh, found.shape[1])
        bits = min(MOST_BITS - 1, max(0, _DIGITS - math.frexp(largest)[1]))
        whole = np.rint(np.ldexp(found, bits)).astype(np.int64).reshape(*found.shape[:2], 6)
        return cls(bits, tuple(tuple(map(tuple, part)) for part in whole.tolist()))


@dataclass(frozen=True, eq=False)
class MeshProgram:
    """minimise Σ_x π(x) Σ_o p_o(x) c(x, o) over columns that are linear in every triangle of
    ``mesh``, private at every point, with rows of sum one.

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

    def loss(self, released: Numerators) -> tuple[Fraction, Fraction]:
        """Bounds of the expected loss that differ by less than 2^-319 per place."""
        low, high = interpolated_loss(self.mesh, self.places, self.weights, self.costs, released)
        total = sum(map(Fraction, self.weights.tolist()), Fraction(0))
        return low * total, high * total

    @cached_property
    def vertex_costs(self) -> list[list[int]]:
        """At most 2^320 Σ_x π(x) λ_k(x) c(x, o) for every vertex k, (V, O)."""
        (mass,), mass_bits = integers(self.weights[None, :])
        cost, cost_bits = integers(self.costs)
        out = [[0] * self.costs.shape[1] for _ in range(len(self.mesh))]
        for x, place in enumerate(self.places.tolist()):
            found = self.mesh.locate_exactly(place)
            if found is None:
                raise ProblemError(
                    f"({place[0]}, {place[1]}) lies outside of the region", where=f"places[{x}]"
                )
            corners, own = self.mesh.corners[found[0]], found[1]
            unit = sum(own) << (mass_bits + cost_bits)
            for k, share in zip(corners, own, strict=True):
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
        reports = self.costs.shape[1]
        if len(given.vectors) != len(self.mesh.triangles) or any(
            len(part) != reports for part in given.vectors
        ):
            raise ProblemError("are not those of the mesh and the reports", where="multipliers")
        edges = Edges(self.mesh)
        rate = bracket(self.epsilon)[1]
        whole = 2 * edges.exponent + given.bits
        # everything over rate.denominator · 2^(whole + _BITS)
        scale = rate.denominator << whole
        left = [[scale * c for c in row] for row in self.vertex_costs]
        for corners, (first, second, area), part in zip(
            self.mesh.corners, edges.exact, given.vectors, strict=True
        ):
            rows = [left[k] for k in corners]
            steep = (rate.numerator * area) << _BITS
            plain = rate.denominator << (edges.exponent + _BITS)
            for o, vectors in enumerate(part):
                if any(vectors):
                    _charge(rows, o, vectors, first, second, (steep, plain))
        return Fraction(sum(map(min, left)), scale << _BITS)


def _charge(
    rows: list[list[int]],
    o: int,
    vectors: Sequence[int],
    first: tuple[int, int],
    second: tuple[int, int],
    units: tuple[int, int],
) -> None:
    """Take the terms of one triangle off the costs of a report at its corners."""
    steep, plain = units
    for row, x, y in zip(rows, vectors[::2], vectors[1::2], strict=True):
        row[o] -= steep * (math.isqrt(x * x + y * y - 1) + 1 if x or y else 0)
    sx, sy = sum(vectors[::2]), sum(vectors[1::2])
    along = second[1] * sx - second[0] * sy
    back = first[1] * sx - first[0] * sy
    rows[1][o] -= plain * along
    rows[2][o] += plain * back
    rows[0][o] += plain * (along - back)
