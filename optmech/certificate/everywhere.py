"""Privacy at every point, decided exactly on an integer matrix over the vertices of a mesh
(theory: "Privacy at every point").

Every column is a function that is linear in every triangle; what is decided is that its gradient
is at most ε times its least value there. As in ``certificate.exact``, floating point with a proved
bound of its error comes first, and whole numbers decide the rest.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.check import Check
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket
from optmech.exact.number import Exact, rounded_down
from optmech.exact.numerators import Numerators, integers
from optmech.mesh import Mesh
from optmech.mesh.covering import covering_flaw

_UNIT = 2.0**-53
_SAFE = 1 - 16 * _UNIT
"""Covers the roundings of a norm, of its bound, and of the products beside them."""
_NORMAL = 1e-250
"""Below this, products could lose digits to underflow: decided in whole numbers."""
_ENTRIES = 2**20
"""Triangles times reports at a time."""
_SHARE_BITS = 320

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
    """Whether ‖∇p_o‖ <= ε p_o(v) in every triangle, at each of its vertices, for every report:
    then p_o(x) <= e^{ε d(x,y)} p_o(y) at all points x, y of the region.

    ``released`` has a row for every vertex. An irrational ε counts as a rational number below it
    by less than 2^-250 of itself. Never raises on a bad matrix.
    """
    if released.shape[0] != len(mesh):
        detail = f"{released.shape[0]} rows for {len(mesh)} vertices"
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
    count = 3 * len(mesh.triangles) * released.shape[1]
    return Check("gradient", index, count, failed is None, worst, detail)


@dataclass(frozen=True, eq=False)
class Edges:
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
        """‖a d₂ − b d₁‖² <= ε² D² m² in whole numbers: a, b the rises along the edges d₁, d₂, D
        their cross product and m the least value. The left side is ‖∇p‖² D²."""
        first, second, area = self.exact[t]
        values = [released.rows[v][o] for v in self.mesh.corners[t]]
        a, b = values[1] - values[0], values[2] - values[0]
        x, y = a * second[0] - b * first[0], a * second[1] - b * first[1]
        left = (rate.denominator << self.exponent) ** 2 * (x * x + y * y)
        return left <= (rate.numerator * area * min(values)) ** 2


def _scan(
    edges: Edges, rate: Fraction, released: Numerators
) -> tuple[float, tuple[int, int], list[tuple[int, int]]]:
    """The tightest place in floating point, and those that floating point does not prove."""
    matrix, triangles = released.matrix, edges.mesh.triangles
    first, second, area = edges.floats
    limit = rounded_down(rate) * area
    worst, where = 0.0, (0, 0)
    undecided: list[tuple[int, int]] = []
    step = max(1, _ENTRIES // matrix.shape[1])
    for begin in range(0, len(triangles), step):
        part = slice(begin, begin + step)
        tightness = _tightness(matrix[triangles[part]], first[part], second[part], limit[part])
        t, o = divmod(int(tightness.argmax()), matrix.shape[1])
        if tightness[t, o] > worst:
            worst, where = float(tightness[t, o]), (begin + t, o)
        undecided += [(begin + int(t), int(o)) for t, o in np.argwhere(~(tightness <= _SAFE))]
    return worst, where, undecided


def _tightness(values: Floats, first: Floats, second: Floats, limit: Floats) -> Floats:
    """‖a d₂ − b d₁‖ over its limit, at least, for values (t, 3, O) at the corners; inf where digits
    may be lost."""
    start, one, two = values[:, 0], values[:, 1], values[:, 2]
    lengths = [np.hypot(*edge.T)[:, None] for edge in (first, second)]
    x, y = ((one - start) * second[:, [k]] - (two - start) * first[:, [k]] for k in (0, 1))
    error = 8 * _UNIT * (lengths[1] * (start + one) + lengths[0] * (start + two))
    allowed = limit[:, None] * values.min(axis=1)
    sure = allowed >= _NORMAL * np.maximum(1.0, lengths[0] + lengths[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(sure, (np.hypot(x, y) + error) / allowed, np.inf)
    # what no vertex reports is constant
    return np.asarray(np.where(values.max(axis=1) == 0, 0.0, found))


def interpolated_loss(
    mesh: Mesh, places: Floats, weights: Floats, costs: Floats, released: Numerators
) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of Σ_x w_x Σ_o p_o(x) c(x, o), over all places x of the region.

    ``places`` (n, 2) are points, ``weights`` (n,) and ``costs`` (n, O) numbers >= 0, all as the
    binary fractions that they are; weights count over their exact sum. The bounds differ by less
    than 2^-320 per place.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    held: dict[int, list[tuple[int, tuple[int, int, int]]]] = {}
    for x, place in enumerate(places.tolist()):
        found = mesh.locate_exactly(place)
        if found is None:
            raise ProblemError(
                f"({place[0]}, {place[1]}) lies outside of the region",
                where=f"places[{x}]",
                remedy="Use a mesh around all places of the prior",
            )
        held.setdefault(found[0], []).append((x, found[1]))
    (mass,), _ = integers(weights[None, :])
    cost, cost_bits = integers(costs)
    low = high = 0
    for t, inside in held.items():
        rows = [released.rows[v] for v in mesh.corners[t]]
        for x, own in inside:
            # Σ_k λ_k Σ_o c_o N[k, o], the weights λ over their sum
            terms = [sum(map(operator.mul, cost[x], row)) for row in rows]
            top = mass[x] * sum(map(operator.mul, own, terms)) << _SHARE_BITS
            share, rest = divmod(top, sum(own))
            low, high = low + share, high + share + (rest > 0)
    unit = sum(mass) << (released.bits + cost_bits + _SHARE_BITS)
    return Fraction(low, unit), Fraction(high, unit)
