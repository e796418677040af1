"""Privacy at every point of a meshed region: gradients of at most ε, and what they cost at least
(theory: "Privacy at every point", "Polynomials on the triangles of a mesh").

In a triangle with edges d₁, d₂, cross product D and rises a, b of a column p along the edges,
D G = a d₂' − b d₁' are the coefficients of its gradient, where (x, y)' = (y, −x). For any vectors
w, one for every control point α of the triangle,

    |w| ε D P[α] + w·(D G[α]) >= 0  wherever ‖G[α]‖ <= ε P[α],

so that these terms, taken off the costs of the entries, leave a bound: the sum over the rows of the
least entry of each. Nothing about the vectors is trusted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints, slices
from optmech.base.read_only import ReadOnly, record
from optmech.certificate.check import Check
from optmech.certificate.families.base import (
    WHERE,
    Fitting,
    Plain,
    Trusted,
    is_exact,
    is_finite,
    trusted,
)
from optmech.certificate.lagrangian import Bound, Lagrangian
from optmech.certificate.statement import Spread, Statement
from optmech.certificate.values import Scaled
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.codec import placed
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, rounded_down
from optmech.exact.numerators import Numerators, Wholes, integers, wholes
from optmech.exact.rounding import UNIT
from optmech.spaces.mesh import Mesh, elements
from optmech.spaces.mesh.covering import covering_flaw

_SAFE = 1 - 16 * UNIT
"""Covers the roundings of a norm, of its bound, and of the products beside them."""
_NORMAL = 1e-250
"""Below this, products could lose digits to underflow: decided in whole numbers."""
_ENTRIES = 2**20
"""Triangles times reports at a time."""

Vector = tuple[int, int]


def check_mesh(mesh: Mesh) -> Check:
    """Whether the triangles tile a convex region edge to edge, decided again."""
    # from the arrays themselves: what a mesh keeps of them is not asked
    places = [(x, y) for x, y in integers(mesh.vertices)[0]]
    flaw = covering_flaw(places, [(a, b, c) for a, b, c in mesh.triangles.tolist()])
    detail = flaw or f"{len(mesh.triangles)} triangles tile a convex region edge to edge"
    return Check("mesh", None, len(mesh.triangles), not flaw, 0.0, detail)


def check_gradients(
    mesh: Mesh, epsilon: Exact, released: Numerators, index: int | None = None
) -> Check:
    """Whether ‖G_o[α]‖ <= ε P[α,o] in every triangle, at each of its control points α, for every
    report, with G_o the coefficients of ∇p_o: then p_o(x) <= e^{ε d(x,y)} p_o(y) at all points x,
    y of the region.

    ``released`` has a row for every control point. An irrational ε counts as a rational number
    below it by less than 2^-250 of itself. Never raises on a bad matrix.
    """
    if released.shape[0] != mesh.rows:
        detail = f"{released.shape[0]} rows for {mesh.rows} control points"
        return Check("gradient", index, 1, False, np.inf, detail)
    edges = Edges(mesh)
    rate = bracket(epsilon)[0]
    worst, where, undecided = _scan(edges, rate, released)
    failed = next((at for at in undecided if not edges.holds(rate, released, *at)), None)
    t, o = where if failed is None else failed
    detail = f"largest |∇p(o)| / (ε p(o|v)) = {worst:.15g} in triangle {t}, o={o}"
    if failed is not None:
        detail += ": too large"
    elif undecided:
        detail += f"; {len(undecided)} decided in whole numbers"
    count = mesh.control.size * released.shape[1]
    return Check("gradient", index, count, failed is None, worst, detail)


@record
class Edges(ReadOnly):
    """For every triangle the two edges from its first corner, in units of distance, and twice its
    area, exactly."""

    mesh: Mesh

    @cached_property
    def exponent(self) -> int:
        """Edges are whole numbers over 2^exponent, areas over its square."""
        return self.mesh.whole[1] + integers(self.mesh.units)[1]

    @cached_property
    def exact(self) -> list[tuple[Vector, Vector, int]]:
        """Both edges, and their cross product."""
        places = self.mesh.whole[0]
        units = integers(self.mesh.units)[0]
        out = []
        for (a, b, c), (kx, ky) in zip(self.mesh.corners, units, strict=True):
            x, y = places[a]
            first, second = ((kx * (places[k][0] - x), ky * (places[k][1] - y)) for k in (b, c))
            out.append((first, second, first[0] * second[1] - first[1] * second[0]))
        return out

    @cached_property
    def floats(self) -> tuple[Floats, Floats, Floats]:
        """Sides and areas of the triangles as the nearest floats: (T, 2), (T, 2) and (T,)."""
        unit = 1 << self.exponent
        sides = np.array([[[c / unit for c in side] for side in sides] for *sides, _ in self.exact])
        return sides[:, 0], sides[:, 1], np.array([area / unit**2 for *_, area in self.exact])

    def holds(self, rate: Fraction, released: Numerators, t: int, o: int) -> bool:
        """‖a d₂ − b d₁‖² <= ε² D² P[α]² at every control point α, in whole numbers: a, b the rises
        along the edges d₁, d₂ and D their cross product. The left side is ‖G[α]‖² D²."""
        first, second, area = self.exact[t]
        own = wholes([released.rows[k][o] for k in self.mesh.control[t].tolist()])
        a, b = wholes(elements.rises(self.mesh.degree)) @ own
        x, y = (a * second[k] - b * first[k] for k in (0, 1))
        unit = (rate.denominator << self.exponent) ** 2
        return bool((unit * (x * x + y * y) <= (rate.numerator * area * own) ** 2).all())


def _scan(
    edges: Edges, rate: Fraction, released: Numerators
) -> tuple[float, tuple[int, int], list[tuple[int, int]]]:
    """The tightest place in floating point, and those that floating point does not prove."""
    matrix, control, degree = released.matrix, edges.mesh.control, edges.mesh.degree
    first, second, area = edges.floats
    limit = rounded_down(rate) * area
    worst, where = 0.0, (0, 0)
    undecided: list[tuple[int, int]] = []
    for part in slices(len(control), matrix.shape[1] * control.shape[1], _ENTRIES):
        values = matrix[control[part]]
        tightness = _tightness(values, degree, (first[part], second[part]), limit[part])
        t, o = divmod(int(tightness.argmax()), matrix.shape[1])
        if tightness[t, o] > worst:
            worst, where = float(tightness[t, o]), (part.start + t, o)
        undecided += [(part.start + int(t), int(o)) for t, o in np.argwhere(~(tightness <= _SAFE))]
    return worst, where, undecided


def _tightness(values: Floats, degree: int, edges: tuple[Floats, Floats], limit: Floats) -> Floats:
    """The largest ‖a d₂ − b d₁‖ over its limit, at least, (t, O), for values (t, n, O) at the
    control points; inf where digits may be lost."""
    first, second = (edge.T[:, :, None, None] for edge in edges)
    lengths = [np.hypot(*edge) for edge in (first, second)]
    terms = elements.rises(degree).astype(np.float64)
    a, b = terms[0] @ values, terms[1] @ values
    sums = [np.abs(part) @ values for part in terms]
    x, y = (a * second[k] - b * first[k] for k in (0, 1))
    error = 16 * UNIT * (lengths[1] * sums[0] + lengths[0] * sums[1])
    allowed = limit[:, None, None] * values
    sure = allowed >= _NORMAL * np.maximum(1.0, lengths[0] + lengths[1])
    with np.errstate(all="ignore"):
        found = np.where(sure, (np.hypot(x, y) + error) / allowed, np.inf).max(axis=1)
    # what no control point reports is constant
    return np.where(values.max(axis=1) == 0, 0.0, found)


_BITS = 320
_DIGITS = 40
"""Bits of the largest component of a vector that are kept."""
_MOST_BITS = 2000
_MOST = 2**63
_LEAST = 2.0**-300
"""Costs nearer to zero count as minus this."""

Vectors = tuple[tuple[tuple[int, ...], ...], ...]


@record
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

    def sizes(self, mesh: Mesh) -> Floats:
        """|w| D of every vector w, D twice the area of its triangle, (T, O, n): what ε p(o) at its
        control point counts for in the bound."""
        vectors, area = np.array(self.vectors, dtype=np.float64), Edges(mesh).floats[2]
        sizes = np.hypot(vectors[..., ::2], vectors[..., 1::2])
        return np.ldexp(sizes, -self.bits) * area[:, None, None]

    @classmethod
    def rounded(cls, mesh: Mesh, multipliers: Floats) -> MeshMultipliers:
        """Multipliers of an engine: (O, T, n, 3), of ε P[α] and the two components of G[α]; zeros
        where they are no numbers."""
        area = Edges(mesh).floats[2]
        found = (multipliers[..., 1:] / area[None, :, None, None]).transpose(1, 0, 2, 3)
        largest = float(np.abs(found).max(initial=0.0))
        if not 0 < largest < 2.0**60:
            return cls.none(mesh, found.shape[1])
        bits = min(_MOST_BITS - 1, max(0, _DIGITS - math.frexp(largest)[1]))
        whole = np.rint(np.ldexp(found, bits)).astype(np.int64).reshape(*found.shape[:2], -1)
        return cls(bits, tuple(tuple(map(tuple, part)) for part in whole.tolist()))


@trusted
@record
class Gradient(ReadOnly, Trusted):
    """‖∇p_o‖ <= ε p_o in every triangle of ``mesh``, by the coefficients at its control points,
    whose rows are what is released; the secrets lie at ``places`` (S, 2).

    Multipliers are vectors, whose terms are evaluated in whole numbers.
    """

    kind = "gradient"
    alone = True
    named = "gradient <= {.epsilon.words}"
    agree = "mesh.control"
    index: int
    epsilon: Exact
    mesh: Mesh
    places: Floats

    def fits(self, statement: Statement) -> Fitting:
        spread = statement.spread
        return {
            "epsilon": is_exact(self.epsilon) and self.epsilon > 0,
            "mesh": type(self.mesh) is Mesh,
            "places": is_finite(self.places, (statement.secrets, 2)),
            "mesh, a second time": spread is not None and spread.mesh is self.mesh,
            "objective": statement.objective == "expected_loss",
        }

    def forced_zeros(self, zero: Bools) -> Bools:
        """What is never reported from one point is reported from none."""
        return zero | zero.any(axis=0)

    def spread(self) -> Spread:
        return Spread(self.mesh, self.places)

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        assert isinstance(low, Numerators)
        return check_gradients(self.mesh, self.epsilon, low, self.index)

    def charge(self, lagrangian: Lagrangian, given: MeshMultipliers) -> None:
        """What remains of the costs at the places is spread over the control points, where these
        terms are taken off in whole numbers."""
        lagrangian.spread = lambda: self._minimum(lagrangian, given)

    def _minimum(self, lagrangian: Lagrangian, given: MeshMultipliers) -> Bound:
        """What every mechanism on the mesh pays at least. What is private at every point and never
        reported from one place is not reported from any."""
        columns = np.flatnonzero(lagrangian.statement.allowed.all(axis=0))
        spread, found = lagrangian.statement.spread, []
        assert spread is not None
        for costs in lagrangian.below():
            if not np.isfinite(costs).all() or not len(columns):
                return Bound(-math.inf, 0.0)
            # lower still, so that whole numbers stay short
            low = np.where(np.abs(costs) < _LEAST, -_LEAST, costs)
            least = self._least(_row_costs(spread, low), given, columns)
            found.append(lagrangian.bound(least))
        return Bound(found[1], abs(found[0] - found[1]), found[0])

    def _least(self, costs: Wholes, given: MeshMultipliers, columns: Ints) -> Fraction:
        """Σ_α min_o of costs over 2^320 without the terms of the vectors."""
        triangles, each = self.mesh.control.shape
        vectors = wholes(given.vectors)
        if vectors.shape != (triangles, costs.shape[1], 2 * each):
            raise ProblemError("are not those of the mesh and the reports", where=WHERE)
        edges, rate = Edges(self.mesh), bracket(self.epsilon)[1]
        # everything over rate.denominator · 2^(whole + _BITS)
        scale = rate.denominator << (2 * edges.exponent + given.bits)
        plain = rate.denominator << (edges.exponent + _BITS)
        left, (one, other) = scale * costs, wholes(elements.rises(self.mesh.degree))
        for control, (first, second, area), part in zip(
            self.mesh.control, edges.exact, vectors, strict=True
        ):
            used = np.flatnonzero(part.any(axis=1))
            x, y = part[used, ::2], part[used, 1::2]
            steep = (rate.numerator * area) << _BITS
            along, back = second[1] * x - second[0] * y, first[1] * x - first[0] * y
            terms = steep * _roots_up(x * x + y * y) + plain * (along @ one - back @ other)
            left[np.ix_(control, used)] -= terms.T
        return Fraction(left[:, columns].min(axis=1).sum(), scale << _BITS)

    def in_words(self, given: Any) -> str:
        return "privacy at every point"

    def zeros(self, statement: Statement) -> MeshMultipliers:
        return MeshMultipliers.none(self.mesh, statement.observables)

    def encode(self, given: MeshMultipliers | None, statement: Statement) -> Plain:
        """For every triangle the reports with vectors other than zero, and these."""
        given = self.zeros(statement) if given is None else given
        kept = [[o for o, vectors in enumerate(part) if any(vectors)] for part in given.vectors]
        parts = zip(kept, given.vectors, strict=True)
        vectors = [[own, [list(part[o]) for o in own]] for own, part in parts]
        return {"bits": given.bits, "vectors": vectors}

    def decode(self, plain: Plain, statement: Statement) -> MeshMultipliers:
        require_keys(plain, {"bits", "vectors"}, WHERE)
        bits, parts = plain["bits"], plain["vectors"]
        triangles, each = self.mesh.control.shape
        if type(bits) is not int or not 0 <= bits < _MOST_BITS or len(parts) != triangles:
            raise ProblemError("are not those of the mesh", where=WHERE)

        def read(vector: Plain) -> tuple[int, ...] | None:
            sound = len(vector) == 2 * each and any(vector)
            sound = sound and all(type(v) is int and abs(v) < _MOST for v in vector)
            return tuple(vector) if sound else None

        empty = [(0,) * (2 * each)] * statement.observables
        vectors = (placed(part, empty, read, WHERE, "are no vectors") for part in parts)
        return MeshMultipliers(bits, tuple(vectors))


_roots_up = np.frompyfunc(lambda square: math.isqrt(square - 1) + 1 if square else 0, 1, 1)
"""Whole numbers not below the roots of such."""


def _row_costs(spread: Spread, costs: Floats) -> Wholes:
    """At most 2^320 Σ_x B_α(x) c(x, o) for every control point α, (rows, O)."""
    cost, cost_bits = integers(costs)
    out = np.full((spread.rows, costs.shape[1]), 0, dtype=object)
    for (control, own), paid in zip(spread.weights, wholes(cost), strict=True):
        unit = sum(own) << cost_bits
        for k, share in zip(control, own, strict=True):
            out[k] += (share << _BITS) * paid // unit
    return out
