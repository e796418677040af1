"""The program of privacy at every point, with its cones as they are, and others of its form:

    minimise Σ_o c_o·p_o  over  ‖G_o[α]‖ <= ε p_o[α] at the control points of all triangles
    and Σ_o p_o = 1

with rows across the reports where there are some (``engines.links``), by a primal-dual
interior-point method (Nesterov-Todd scaling, Mehrotra's predictor). Every report is a block whose
matrix has the pattern of the mesh; the row sums couple the blocks. The equations are solved by
nested dissection, or with a Schur complement where there are many reports.

What it returns is believed by nobody: matrices are repaired and decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from optmech.base.arrays import Floats, Ints
from optmech.base.machine import cores
from optmech.base.read_only import record
from optmech.engines.links import Bordered, Linked
from optmech.engines.mesh_equations import Fronts, Levels, Summed
from optmech.lp.gradients import cone_rows
from optmech.lp.place_rows import Links
from optmech.spaces.mesh import Mesh

TINY = 1e-300
J = np.array([1.0, -1.0, -1.0])
_MOST = 100
_SMALL = 300
"""Control points up to which one thread is enough."""
_STEP = 0.99
_MISSED = 1e-8
"""By a row across reports, in units of its own, without the value being inf."""
_LARGER = 10
"""Multipliers at a start that was given, in units of the costs."""
_REFINED = 2
_IDLE, _BEGINNING = 3, 20
"""Steps without a better value or bound before it ends; the first ones may lead to the middle of
the cones, and to nothing better yet: where many reports share few points with costs."""


def root(x: Floats) -> Floats:
    """√(x_0² − ‖x_1‖²)."""
    size = np.hypot(x[..., 1], x[..., 2])
    return np.sqrt(np.maximum((x[..., 0] - size) * (x[..., 0] + size), TINY))


def scaling(s: Floats, z: Floats) -> tuple[Floats, Floats]:
    """w and β of the Nesterov-Todd scaling W = β (…) with W z = W⁻¹ s."""
    a, b = root(s), root(z)
    one, other = s / a[..., None], z / b[..., None]
    gamma = np.sqrt((1 + (one * other).sum(axis=-1)) / 2)
    return (one + other * J) / (2 * gamma)[..., None], np.sqrt(a / b)


def apply(w: Floats, x: Floats) -> Floats:
    """The product of x with the scaling's matrix for β = 1."""
    inner = w[..., 1] * x[..., 1] + w[..., 2] * x[..., 2]
    out = np.empty_like(x)
    out[..., 0] = w[..., 0] * x[..., 0] + inner
    factor = x[..., 0] + inner / (1 + w[..., 0])
    out[..., 1:] = x[..., 1:] + factor[..., None] * w[..., 1:]
    return out


def circle(x: Floats, y: Floats) -> Floats:
    """x ∘ y, whose first component is the scalar product."""
    out = x[..., :1] * y + y[..., :1] * x
    out[..., 0] = (x * y).sum(axis=-1)
    return out


def divide(x: Floats, y: Floats) -> Floats:
    """The u with x ∘ u = y."""
    square = root(x) ** 2
    inner = x[..., 1] * y[..., 1] + x[..., 2] * y[..., 2]
    first = (x[..., 0] * y[..., 0] - inner) / square
    out = np.empty_like(y)
    out[..., 0] = first
    out[..., 1:] = (y[..., 1:] - first[..., None] * x[..., 1:]) / x[..., :1]
    return out


def longest(x: Floats, dx: Floats) -> float:
    """The longest step from x along dx that stays in all cones, at most 1e8."""
    a = (dx[..., 0] ** 2 - dx[..., 1] ** 2 - dx[..., 2] ** 2).ravel()
    b = (x[..., 0] * dx[..., 0] - x[..., 1] * dx[..., 1] - x[..., 2] * dx[..., 2]).ravel()
    c = (root(x) ** 2).ravel()
    # the least positive root of a t² + 2 b t + c
    disc = b * b - a * c
    with np.errstate(all="ignore"):
        found = c / (-b + np.sqrt(np.maximum(disc, 0.0)))
        down = np.where(dx[..., 0] < 0, -x[..., 0] / dx[..., 0], np.inf).ravel()
    leaves = (disc >= 0) & (found > 0)
    return float(min(1e8, np.where(leaves, found, np.inf).min(), down.min()))


def ahead(x: Floats, dx: Floats) -> float:
    """The longest step from x > 0 along dx that stays there, at most 1e8."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.where(dx < 0, -x / dx, 1e8).min(initial=1e8))


@record
class ConePoint:
    """A primal-dual point."""

    matrix: Floats
    """p, (count, O); rows sum to one, every column strictly inside its cones."""
    prices: Floats
    """y, of the row sums, (count,)."""
    multipliers: Floats
    """z, (O, T, m, 3): of every report, element and cone, in the cone z_0 >= ‖(z_1, z_2)‖."""
    value: float
    bound: float
    """A lower bound of the program over the mesh, in floating point: Σ y and the least of what the
    multipliers leave of each row's costs."""
    iterations: int
    """Until value or bound last improved."""
    links: Floats = field(default_factory=lambda: np.zeros(0))
    """v >= 0, of the rows across reports, (K,); the value is inf where one is missed by more than
    rounding."""

    def joined(self, other: ConePoint) -> ConePoint:
        """The better matrix and the better multipliers of this point and a later one."""
        primal = other if other.value < self.value else self
        dual = other if other.bound > self.bound else self
        # until the rows across reports hold there is no value to go by
        least = 1e-9 * abs(self.value) if np.isfinite(self.value) else 1e-6 * abs(self.bound)
        gained = other.value < self.value - least or other.bound > self.bound + least
        last = other.iterations if gained else self.iterations
        return replace(dual, matrix=primal.matrix, value=primal.value, iterations=last)

    @property
    def gap(self) -> float:
        """The relative difference of value and bound."""
        if not np.isfinite(self.value):
            return np.inf
        return (self.value - self.bound) / max(abs(self.value), TINY)


@record
class ConeProgram:
    """minimise Σ_o c_o·p_o over rows·p_o in cones x_0 >= ‖(x_1, x_2)‖, Σ_o p_o = 1: the same
    cones, m in each of T elements of n unknowns, for all reports."""

    control: Ints
    """The unknowns of every element, (T, n)."""
    rows: Floats
    """(T, m, 3, n)."""
    middles: Floats
    """Where the elements are, (T, 2)."""
    count: int
    """How many unknowns a report has."""

    @classmethod
    def of(cls, mesh: Mesh, epsilon: float) -> ConeProgram:
        """Privacy at every point."""
        middles = mesh.vertices[mesh.triangles].mean(axis=1) * mesh.scale
        return cls(mesh.control, cone_rows(mesh, epsilon), middles, mesh.rows)

    def equations(self, reports: int) -> Fronts | Levels:
        """How Newton's equations are solved: as it takes less work."""
        fronts = Fronts(self.control, self.count, self.middles)
        levels = Levels(self.control, self.count)
        # fronts leave out one report: of a single one there is nothing left
        nested = reports > 1 and fronts.work(reports) <= levels.work(reports)
        return fronts if nested else levels

    def memory(self, reports: int) -> float:
        """About the bytes that a solution takes."""
        # cones of three numbers, their scalings, products and weighted rows; and the factor
        elements, each, _, unknowns = self.rows.shape
        size = float(elements * each * reports * (640 + 64 * unknowns))
        return size + self.equations(reports).memory(reports)


def solve(
    program: ConeProgram,
    costs: Floats,
    gap: float = 1e-6,
    should_stop: Callable[[ConePoint], bool] = lambda _: False,
    threads: int | None = None,
    links: Links | None = None,
    start: Floats | None = None,
) -> ConePoint:
    """The program with objective coefficients ``costs`` (rows, O), to a relative ``gap``, or as far
    as floating point leads; ``should_stop`` is asked after every step. On as many ``threads`` as
    there are processors, by default. With ``links`` rows across the reports, which hold where the
    value is finite: from the beginning, if they do at ``start`` (rows, O), strictly inside the
    cones, or without one where all reports are as likely."""
    threads = (threads or cores()) if program.count > _SMALL else 1
    scale = float(np.abs(costs).max()) or 1.0
    state = _State(program, costs.T / scale, links, scale, start)
    # small factors of many reports run beside each other, large ones of all reports in themselves
    own = threads if isinstance(state.equations, Fronts) else 1
    with threadpool_limits(own, user_api="blas"), np.errstate(all="ignore"):
        best = state.point(0, scale)
        for count in range(1, _MOST + 1):
            try:
                state.advance(threads)
            except np.linalg.LinAlgError:
                break
            best = best.joined(state.point(count, scale))
            idle = count - best.iterations > (_IDLE if best.iterations else _BEGINNING)
            if best.gap <= gap or should_stop(best) or idle:
                break
    return best


class _Solver(Protocol):
    def solve(self, right: Floats) -> Floats: ...


class _State:
    """p (O, N), y (N,) and z (O, T, m, 3), the last two axes cone and component."""

    def __init__(
        self,
        program: ConeProgram,
        costs: Floats,
        links: Links | None = None,
        scale: float = 1.0,
        start: Floats | None = None,
    ) -> None:
        self.costs, self.control, self.rows = costs, program.control, program.rows
        reports, count = costs.shape
        self.equations = program.equations(reports)
        elements, each, _, unknowns = self.rows.shape
        self._flat = self.rows.reshape(elements, -1, unknowns)
        size = self.control.size
        entries = np.ones(size), self.control.ravel(), np.arange(size + 1)
        self._spread = sp.csr_array(entries, shape=(size, count)).T.tocsr()
        self.p = np.full((reports, count), 1 / reports)
        if start is not None:
            self.p = start.T / start.sum(axis=1)
        self.y = costs.min(axis=0)
        self.s = self.cones(self.p)
        # of no costs at all the objective is that of the rows across reports, about one
        most = float(np.abs(costs).mean()) or 1 / count
        if start is None:
            # s is the same for all reports: as much multiplier on every point as cost
            steep = float(self.s[0, ..., 0].mean()) * reports
            self.z = np.zeros_like(self.s)
            self.z[..., 0] = most * count / (elements * each) / steep
        else:
            # on the central path, but for the equations, and larger than the costs
            inverse = self.s * J / root(self.s)[..., None] ** 2
            self.z = inverse * (_LARGER * most / float(np.abs(self.columns(inverse)).mean()))
        mu = float((self.s * self.z).sum()) / self.s[..., 0].size
        scaled, self._sizes = (links or Links.none(costs.size)).scaled(reports, scale)
        self.linked = Linked(scaled, self.p, mu)

    @property
    def mu(self) -> float:
        """The mean product of slacks and multipliers."""
        total = float((self.s * self.z).sum()) + float(self.linked.s @ self.linked.v)
        return total / (self.s[..., 0].size + len(self.linked.s))

    @property
    def dual(self) -> Floats:
        """What the multipliers miss of the equations of p."""
        left = self.costs - self.y - self.columns(self.z)
        return np.asarray(left + self.linked.columns(self.linked.v))

    def cones(self, p: Floats) -> Floats:
        """A p: (O, T, m, 3)."""
        found = p[:, self.control].transpose(1, 0, 2) @ self._flat.mT
        return found.reshape(*found.shape[:2], -1, 3).transpose(1, 0, 2, 3).copy()

    def columns(self, z: Floats) -> Floats:
        """Aᵀ z: (O, N)."""
        flat = z.reshape(*z.shape[:2], -1).transpose(1, 0, 2)
        at = (flat @ self._flat).mT
        return np.asarray(self._spread @ at.reshape(-1, len(z))).T.copy()

    def point(self, iterations: int, scale: float) -> ConePoint:
        linked, links = self.linked, self.linked.links
        value = float((self.costs * self.p).sum()) + float(links.costs @ linked.u)
        value = value if (linked.left(self.p) >= -_MISSED).all() else np.inf
        bound = float(self.y.sum() + self.dual.min(axis=0).sum()) - float(links.most @ linked.v)
        return ConePoint(
            self.p.T.copy(),
            scale * self.y,
            scale * self.z,
            scale * value,
            scale * bound,
            iterations,
            scale * linked.v / self._sizes,
        )

    def factored(self, inner: Floats, pivots: Ints, threads: int) -> _Solver:
        """The equations with the cones' ``inner`` (O, T, m, 3, 3)."""
        weighted = (inner @ self.rows).reshape(*inner.shape[:2], *self._flat.shape[1:])
        local = self._flat.mT @ weighted
        if isinstance(self.equations, Fronts):
            return self.equations.factor(local, pivots)
        return Summed(self.equations.factor(local, threads), threads)

    def advance(self, threads: int) -> None:
        """One step: predictor, corrector."""
        system = _System(self, threads)
        mu, linked = self.mu, self.linked
        product = -circle(system.scaled, system.scaled)
        own = -linked.s * linked.v
        first = system.direction(1.0, product, own)
        centre = (1 - min(*first.longest(self), 1.0)) ** 3
        product -= circle(system.unscale(first.s), system.scale(first.z))
        product[..., 0] += centre * mu
        own = own + centre * mu - first.slack * first.price
        step = system.direction(1 - centre, product, own)
        primal, other = (min(1.0, _STEP * length) for length in step.longest(self))
        # rounding grows with the weights: what it left of the dual equations is taken out
        wanted = (1 - other * (1 - centre)) * self.dual
        wanted_free = (1 - other * (1 - centre)) * linked.dual
        self.p += primal * step.p
        # rows keep their sums but for rounding
        self.p /= self.p.sum(axis=0)
        self.s = self.cones(self.p)
        linked.move(self.p, primal, step.free, step.slack)
        linked.v += other * step.price
        self.y += other * step.y
        self.z += other * step.z
        for _ in range(_REFINED):
            dy, dz, dv = system.correction(self.dual - wanted, linked.dual - wanted_free)
            if not (longest(self.z, dz) > 1 and ahead(linked.v, dv) > 1):
                break
            self.y += dy
            self.z += dz
            linked.v += dv


@record
class _Direction:
    """A change of all unknowns; those of rows across the reports are empty where there are none."""

    p: Floats
    y: Floats
    s: Floats
    z: Floats
    free: Floats
    slack: Floats
    price: Floats

    def longest(self, state: _State) -> tuple[float, float]:
        """The longest steps of slacks and of multipliers that stay inside, at most 1e8."""
        primal = min(longest(state.s, self.s), ahead(state.linked.s, self.slack))
        return primal, min(longest(state.z, self.z), ahead(state.linked.v, self.price))


class _System:
    """The Newton equations at one point."""

    def __init__(self, state: _State, threads: int) -> None:
        w, beta = scaling(state.s, state.z)
        # W⁻² = (2 q qᵀ − J) / β², q = J w
        q = w * J
        inner = 2 * q[..., :, None] * q[..., None, :] - np.diag(J)
        self._inner = inner / (beta**2)[..., None, None]
        self._state, self._w, self._beta = state, w, beta
        # the report with the least matrix, about, is the one that the others determine
        self._pivots = state.p.argmax(axis=0)
        self._solver = state.factored(self._inner, self._pivots, threads)
        some = len(state.linked.s)
        self._rows = Bordered(state.linked, self._solver.solve) if some else None
        self.scaled = self.scale(state.z)

    def scale(self, x: Floats) -> Floats:
        """W x."""
        return apply(self._w, x) * self._beta[..., None]

    def unscale(self, x: Floats) -> Floats:
        """W⁻¹ x."""
        return apply(self._w * J, x) / self._beta[..., None]

    def weigh(self, x: Floats) -> Floats:
        """W⁻² x."""
        return np.asarray((self._inner @ x[..., None])[..., 0])

    def correction(self, error: Floats, free: Floats) -> tuple[Floats, Floats, Floats]:
        """dy and the least dz and dv, in the scaling's norm, with dy + Aᵀdz − Bᵀdv = error and
        −Eᵀdv = free."""
        moved, same, _, weight = self._solved(error, free)
        return -same, self.weigh(self._state.cones(moved)), -weight

    def direction(self, share: float, product: Floats, own: Floats) -> _Direction:
        """Towards ``share`` less of what equations miss, with λ ∘ (W dz + W⁻¹ ds) = product, and
        s dv + v ds = own in the rows across the reports."""
        state, linked, links = self._state, self._state.linked, self._state.linked.links
        wanted = self.unscale(divide(self.scaled, product))
        missed = share * (linked.left(state.p) - linked.s)
        price = (own - linked.v * missed) / linked.s
        right = state.columns(wanted) - share * state.dual - linked.columns(price)
        dp, dy, du, weight = self._solved(right, -share * linked.dual - links.free.T @ price)
        ds = state.cones(dp)
        slack = missed - links.rows @ dp.ravel() - links.free @ du
        return _Direction(dp, dy, ds, wanted - self.weigh(ds), du, slack, price + weight)

    def _solved(self, right: Floats, free: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """x (O, N) with Σ_o x_o = 0, Aᵀ W⁻² A x + Bᵀ w − right, which is the same for all reports,
        du, and w; with Eᵀ w = ``free``."""
        at = self._pivots, np.arange(right.shape[1])
        if self._rows is None:
            found, du, weight = self._solver.solve(right), free, free
        else:
            found, du, weight = self._rows.solved(right, free)
            off = self._off(found, weight, right)
            # what rounding left of the equations, once more
            left = free - self._state.linked.links.free.T @ weight
            more = self._rows.solved(off[at] - off, left)
            found, du, weight = found + more[0], du + more[1], weight + more[2]
        return found, self._off(found, weight, right)[at], du, weight

    def _off(self, x: Floats, weight: Floats, right: Floats) -> Floats:
        """Aᵀ W⁻² A x + Bᵀ w − right."""
        state = self._state
        own = state.columns(self.weigh(state.cones(x)))
        return own + state.linked.columns(weight) - right
