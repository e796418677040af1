"""Privacy at every point, decided exactly on an integer matrix over the control points of a mesh
(theory: "Privacy at every point").

Every column is a polynomial of the mesh's degree in every triangle; what is decided is that every
coefficient of its gradient is at most ε times the polynomial's own. In degree 1 this says that the
gradient is at most ε times the least value. As in ``certificate.exact``, floating point with a
proved bound of its error comes first, and whole numbers decide the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly
from optmech.certificate.check import Check
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, rounded_down
from optmech.exact.numerators import Numerators, integers
from optmech.mesh import Mesh, elements
from optmech.mesh.covering import covering_flaw

_UNIT = 2.0**-53
_SAFE = 1 - 16 * _UNIT
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


@dataclass(frozen=True, eq=False)
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
            first = kx * (places[b][0] - x), ky * (places[b][1] - y)
            second = kx * (places[c][0] - x), ky * (places[c][1] - y)
            out.append((first, second, first[0] * second[1] - first[1] * second[0]))
        return out

    @cached_property
    def floats(self) -> tuple[Floats, Floats, Floats]:
        """The same as the nearest floats: (T, 2), (T, 2) and (T,)."""
        unit = 1 << self.exponent
        flat = [(x / unit, y / unit, u / unit, v / unit) for (x, y), (u, v), _ in self.exact]
        both = np.array(flat)
        return both[:, :2], both[:, 2:], np.array([area / unit**2 for _, _, area in self.exact])

    def holds(self, rate: Fraction, released: Numerators, t: int, o: int) -> bool:
        """‖a d₂ − b d₁‖² <= ε² D² P[α]² at every control point α, in whole numbers: a, b the rises
        along the edges d₁, d₂ and D their cross product. The left side is ‖G[α]‖² D²."""
        first, second, area = self.exact[t]
        values = [released.rows[k][o] for k in self.mesh.control[t].tolist()]
        unit = (rate.denominator << self.exponent) ** 2
        for own, one, other in zip(values, *rise_terms(self.mesh.degree), strict=True):
            a, b = (sum(c * values[k] for k, c in terms) for terms in (one, other))
            x, y = a * second[0] - b * first[0], a * second[1] - b * first[1]
            if unit * (x * x + y * y) > (rate.numerator * area * own) ** 2:
                return False
        return True


Terms = tuple[tuple[int, int], ...]


@cache
def rise_terms(degree: int) -> tuple[tuple[Terms, ...], tuple[Terms, ...]]:
    """The rises a and b at every control point: the numbers of control points, and what they count
    for."""
    one, other = (
        tuple(tuple((k, c) for k, c in enumerate(row) if c) for row in part)
        for part in elements.rises(degree).tolist()
    )
    return one, other


def _scan(
    edges: Edges, rate: Fraction, released: Numerators
) -> tuple[float, tuple[int, int], list[tuple[int, int]]]:
    """The tightest place in floating point, and those that floating point does not prove."""
    matrix, control, degree = released.matrix, edges.mesh.control, edges.mesh.degree
    first, second, area = edges.floats
    limit = rounded_down(rate) * area
    worst, where = 0.0, (0, 0)
    undecided: list[tuple[int, int]] = []
    step = max(1, _ENTRIES // (matrix.shape[1] * control.shape[1]))
    for begin in range(0, len(control), step):
        part = slice(begin, begin + step)
        values = matrix[control[part]]
        tightness = _tightness(values, degree, (first[part], second[part]), limit[part])
        t, o = divmod(int(tightness.argmax()), matrix.shape[1])
        if tightness[t, o] > worst:
            worst, where = float(tightness[t, o]), (begin + t, o)
        undecided += [(begin + int(t), int(o)) for t, o in np.argwhere(~(tightness <= _SAFE))]
    return worst, where, undecided


def _tightness(values: Floats, degree: int, edges: tuple[Floats, Floats], limit: Floats) -> Floats:
    """The largest ‖a d₂ − b d₁‖ over its limit, at least, (t, O), for values (t, n, O) at the
    control points; inf where digits may be lost."""
    first, second = ([edge[:, 0, None, None], edge[:, 1, None, None]] for edge in edges)
    lengths = [np.hypot(*edge) for edge in (first, second)]
    terms = elements.rises(degree).astype(np.float64)
    a, b = terms[0] @ values, terms[1] @ values
    sums = [np.abs(part) @ values for part in terms]
    x, y = (a * second[k] - b * first[k] for k in (0, 1))
    error = 16 * _UNIT * (lengths[1] * sums[0] + lengths[0] * sums[1])
    allowed = limit[:, None, None] * values
    sure = allowed >= _NORMAL * np.maximum(1.0, lengths[0] + lengths[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(sure, (np.hypot(x, y) + error) / allowed, np.inf).max(axis=1)
    # what no control point reports is constant
    return np.asarray(np.where(values.max(axis=1) == 0, 0.0, found))
