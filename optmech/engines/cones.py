"""The program of privacy at every point, with its cones as they are, and others of its form:

    minimise Σ_o c_o·p_o  over  ‖G_o[α]‖ <= ε p_o[α] at the control points of all triangles
    and Σ_o p_o = 1

by a primal-dual interior-point method (Nesterov-Todd scaling, Mehrotra's predictor). Every report
is a block whose matrix has the pattern of the mesh; the row sums couple the blocks. The equations
are solved by nested dissection, or with a Schur complement where there are many reports.

What it returns is believed by nobody: matrices are repaired and decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from optmech.base import cores
from optmech.base.arrays import Floats, Ints
from optmech.engines.fronts import Fronts
from optmech.engines.levels import Levels, Summed
from optmech.lp.gradients import cone_rows
from optmech.mesh import Mesh

_MOST = 100
_SMALL = 300
"""Control points up to which one thread is enough."""
_STEP = 0.99
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
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

    def joined(self, other: ConePoint) -> ConePoint:
        """The better matrix and the better multipliers of this point and a later one."""
        primal = other if other.value < self.value else self
        dual = other if other.bound > self.bound else self
        least = 1e-9 * abs(self.value)
        gained = other.value < self.value - least or other.bound > self.bound + least
        return ConePoint(
            primal.matrix,
            dual.prices,
            dual.multipliers,
            primal.value,
            dual.bound,
            other.iterations if gained else self.iterations,
        )

    @property
    def gap(self) -> float:
        """The relative difference of value and bound."""
        return (self.value - self.bound) / max(abs(self.value), _TINY)


@dataclass(frozen=True, eq=False)
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
    """Of unknowns a report."""

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
        each = int(self.control.shape[1])
        size = float(self.rows[:, :, 0, 0].size)
        return 8.0 * size * reports * (80 + 8 * each) + self.equations(reports).memory(reports)


def solve(
    program: ConeProgram,
    costs: Floats,
    gap: float = 1e-6,
    should_stop: Callable[[ConePoint], bool] = lambda _: False,
    threads: int | None = None,
) -> ConePoint:
    """The program with objective coefficients ``costs`` (rows, O), to a relative ``gap``, or as far
    as floating point leads; ``should_stop`` is asked after every step. On as many ``threads`` as
    there are processors, by default."""
    threads = (threads or cores.at_hand()) if program.count > _SMALL else 1
    scale = float(np.abs(costs).max()) or 1.0
    state = _State(program, costs.T / scale)
    # small factors of many reports run beside each other, large ones of all reports in themselves
    own = threads if isinstance(state.equations, Fronts) else 1
    with threadpool_limits(own, user_api="blas"):
        best = state.point(0, scale)
        for count in range(1, _MOST + 1):
            try:
                state.advance(threads)
            except np.linalg.LinAlgError:
                break
            best = best.joined(state.point(count, scale))
            if best.gap <= gap or should_stop(best) or count - best.iterations > 3:
                break
    return best


class _Solver(Protocol):
    def solve(self, right: Floats) -> Floats: ...


class _State:
    """p (O, N), y (N,) and z (O, T, m, 3), the last two axes cone and component."""

    def __init__(self, program: ConeProgram, costs: Floats) -> None:
        self.costs, self.control, self.rows = costs, program.control, program.rows
        reports, count = costs.shape
        self.equations = program.equations(reports)
        elements, each, _, unknowns = self.rows.shape
        self._flat = self.rows.reshape(elements, 3 * each, unknowns)
        size = self.control.size
        entries = np.ones(size), self.control.ravel(), np.arange(size + 1)
        self._spread = sp.csr_array(entries, shape=(size, count)).T.tocsr()
        self.p = np.full((reports, count), 1 / reports)
        self.y = costs.min(axis=0)
        self.s = self.cones(self.p)
        self.z = np.zeros_like(self.s)
        # at the start s is the same for all reports: as much multiplier on every point as cost
        steep = float(self.s[0, ..., 0].mean()) * reports
        self.z[..., 0] = float(np.abs(costs).mean()) * count / (elements * each) / steep

    def cones(self, p: Floats) -> Floats:
        """A p: (O, T, m, 3)."""
        found = p[:, self.control].transpose(1, 0, 2) @ self._flat.transpose(0, 2, 1)
        return found.reshape(*found.shape[:2], -1, 3).transpose(1, 0, 2, 3).copy()

    def columns(self, z: Floats) -> Floats:
        """Aᵀ z: (O, N)."""
        flat = z.reshape(*z.shape[:2], -1).transpose(1, 0, 2)
        at = (flat @ self._flat).transpose(0, 2, 1)
        return np.asarray(self._spread @ at.reshape(-1, len(z))).T.copy()

    def point(self, iterations: int, scale: float) -> ConePoint:
        left = self.costs - self.y - self.columns(self.z)
        return ConePoint(
            self.p.T.copy(),
            scale * self.y,
            scale * self.z,
            scale * float((self.costs * self.p).sum()),
            scale * float(self.y.sum() + left.min(axis=0).sum()),
            iterations,
        )

    def factored(self, inner: Floats, pivots: Ints, threads: int) -> _Solver:
        """The equations with the cones' ``inner`` (O, T, m, 3, 3)."""
        weighted = (inner @ self.rows).reshape(*inner.shape[:2], *self._flat.shape[1:])
        local = self._flat.transpose(0, 2, 1) @ weighted
        if isinstance(self.equations, Fronts):
            return self.equations.factor(local, pivots)
        return Summed(self.equations.factor(local), self.equations.order, threads)

    def advance(self, threads: int) -> None:
        """One step: predictor, corrector."""
        system = _System(self, threads)
        mu = float((self.s * self.z).sum()) / self.s[..., 0].size
        dual = self.costs - self.y - self.columns(self.z)
        product = -_circle(system.scaled, system.scaled)
        dp, _, ds, dz = system.direction(dual, product)
        long = min(_longest(self.s, ds), _longest(self.z, dz), 1.0)
        centre = (1 - long) ** 3
        second = _circle(system.unscale(ds), system.scale(dz))
        product -= second
        product[..., 0] += centre * mu
        dp, dy, ds, dz = system.direction((1 - centre) * dual, product)
        primal = min(1.0, _STEP * _longest(self.s, ds))
        other = min(1.0, _STEP * _longest(self.z, dz))
        self.p += primal * dp
        # rows keep their sums but for rounding
        self.p /= self.p.sum(axis=0)
        self.s = self.cones(self.p)
        self.y += other * dy
        self.z += other * dz
        # rounding grows with the weights: what it left of the dual equations is taken out
        wanted = (1 - other * (1 - centre)) * dual
        for _ in range(_REFINED):
            dy, dz = system.correction(self.costs - self.y - self.columns(self.z) - wanted)
            if not _longest(self.z, dz) > 1:
                break
            self.y += dy
            self.z += dz


class _System:
    """The Newton equations at one point."""

    def __init__(self, state: _State, threads: int) -> None:
        w, beta = _scaling(state.s, state.z)
        # W⁻² = (2 q qᵀ − J) / β², q = J w
        q = w * _J
        inner = 2 * q[..., :, None] * q[..., None, :] - np.diag(_J)
        self._inner = inner / (beta**2)[..., None, None]
        self._state, self._w, self._beta = state, w, beta
        # the report with the least matrix, about, is the one that the others determine
        self._pivots = state.p.argmax(axis=0)
        self._solver = state.factored(self._inner, self._pivots, threads)
        self.scaled = self.scale(state.z)

    def scale(self, x: Floats) -> Floats:
        """W x."""
        return _apply(self._w, x) * self._beta[..., None]

    def unscale(self, x: Floats) -> Floats:
        """W⁻¹ x."""
        return _apply(self._w * _J, x) / self._beta[..., None]

    def weigh(self, x: Floats) -> Floats:
        """W⁻² x."""
        return np.asarray((self._inner @ x[..., None])[..., 0])

    def correction(self, error: Floats) -> tuple[Floats, Floats]:
        """dy and the least dz, in the scaling's norm, with dy + Aᵀdz = error."""
        moved, same = self._solved(error)
        return -same, self.weigh(self._state.cones(moved))

    def direction(self, dual: Floats, product: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """dp, dy, ds, dz with dy + Aᵀdz = dual, Σ dp = 0 and λ ∘ (W dz + W⁻¹ ds) = product."""
        wanted = self.unscale(_divide(self.scaled, product))
        dp, dy = self._solved(self._state.columns(wanted) - dual)
        ds = self._state.cones(dp)
        return dp, dy, ds, wanted - self.weigh(ds)

    def _solved(self, right: Floats) -> tuple[Floats, Floats]:
        """x (O, N) with Σ_o x_o = 0, and Aᵀ W⁻² A x − right, which is the same for all reports."""
        found = self._solver.solve(right)
        off = self._state.columns(self.weigh(self._state.cones(found))) - right
        return found, off[self._pivots, np.arange(off.shape[1])]


_REFINED = 2
_J = np.array([1.0, -1.0, -1.0])


def _root(x: Floats) -> Floats:
    """√(x_0² − ‖x_1‖²)."""
    size = np.hypot(x[..., 1], x[..., 2])
    return np.asarray(np.sqrt(np.maximum((x[..., 0] - size) * (x[..., 0] + size), _TINY)))


def _scaling(s: Floats, z: Floats) -> tuple[Floats, Floats]:
    """w and β of the Nesterov-Todd scaling W = β (…) with W z = W⁻¹ s."""
    a, b = _root(s), _root(z)
    one, other = s / a[..., None], z / b[..., None]
    gamma = np.sqrt((1 + (one * other).sum(axis=-1)) / 2)
    return (one + other * _J) / (2 * gamma)[..., None], np.sqrt(a / b)


def _apply(w: Floats, x: Floats) -> Floats:
    inner = w[..., 1] * x[..., 1] + w[..., 2] * x[..., 2]
    out = np.empty_like(x)
    out[..., 0] = w[..., 0] * x[..., 0] + inner
    factor = x[..., 0] + inner / (1 + w[..., 0])
    out[..., 1:] = x[..., 1:] + factor[..., None] * w[..., 1:]
    return out


def _circle(x: Floats, y: Floats) -> Floats:
    out = x[..., :1] * y + y[..., :1] * x
    out[..., 0] = (x * y).sum(axis=-1)
    return np.asarray(out)


def _divide(x: Floats, y: Floats) -> Floats:
    """The u with x ∘ u = y."""
    square = _root(x) ** 2
    inner = x[..., 1] * y[..., 1] + x[..., 2] * y[..., 2]
    first = (x[..., 0] * y[..., 0] - inner) / square
    out = np.empty_like(y)
    out[..., 0] = first
    out[..., 1:] = (y[..., 1:] - first[..., None] * x[..., 1:]) / x[..., :1]
    return out


def _longest(x: Floats, dx: Floats) -> float:
    """The longest step from x along dx that stays in all cones, at most 1e8."""
    a = (dx[..., 0] ** 2 - dx[..., 1] ** 2 - dx[..., 2] ** 2).ravel()
    b = (x[..., 0] * dx[..., 0] - x[..., 1] * dx[..., 1] - x[..., 2] * dx[..., 2]).ravel()
    c = (_root(x) ** 2).ravel()
    # the least positive root of a t² + 2 b t + c
    disc = b * b - a * c
    with np.errstate(all="ignore"):
        root = c / (-b + np.sqrt(np.maximum(disc, 0.0)))
        down = np.where(dx[..., 0] < 0, -x[..., 0] / dx[..., 0], np.inf).ravel()
    leaves = (disc >= 0) & (root > 0)
    return float(min(1e8, np.where(leaves, root, np.inf).min(), down.min()))
