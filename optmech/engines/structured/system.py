"""The Newton equations of one iterate, reduced to the coupling constraints.

In every block  H dv - Qᵀdlam - A_oᵀdy = r  and  Q dv + B da + (u/lam) dlam = e, and
Bᵀdlam + Cᵀdy  is what the auxiliaries' own equations ask for. With V = H⁻¹Qᵀ and
M = QV + diag(u/lam), the small matrix [[M, B], [Bᵀ, 0]] has an inverse J, kept in factors
(``Small``), and with X = [A_oV, C] the Schur matrix over row sums and coupling rows is

    Σ_o A_oH⁻¹A_oᵀ - Σ_o X J Xᵀ + diag(0, sigma/nu),

bordered by the shared variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.engines.structured.arrays import lower_inverse
from optmech.engines.structured.iterative import Earlier, SumsSolver
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Backend, Schur
from optmech.engines.structured.state import State, missing

_REFINEMENTS = 2


@record
class Sides:
    """Right-hand sides beside those of the pairs, which come as H⁻¹ times a vector.

    ``dense`` is T/lam - residual, ``auxiliary``, ``sums``, ``shared`` residuals, and
    ``dense_target``, ``coupling_target`` the products u lam and sigma nu aimed at, less the
    present ones.
    """

    dense: Floats
    dense_target: Floats
    coupling_target: Floats
    auxiliary: Floats | float = 0.0
    sums: Floats | float = 0.0
    shared: Floats | float = 0.0


@dataclass(eq=False)
class Direction:
    """A change of everything but the pair rows."""

    P: Floats
    a: Floats
    g: Floats
    u: Floats
    sigma: Floats
    y: Floats
    nu: Floats
    lam: Floats

    def add(self, other: Direction, primal: float, dual: float) -> None:
        """Take in a corrector with its weights."""
        for name in ("P", "a", "g", "u", "sigma"):
            getattr(self, name).__iadd__(primal * getattr(other, name))
        for name in ("y", "nu", "lam"):
            getattr(self, name).__iadd__(dual * getattr(other, name))


class System:
    """The factored equations at one iterate."""

    def __init__(
        self,
        model: Model,
        backend: Backend,
        state: State,
        schur: Schur | None,
        sums: SumsSolver | None = None,
    ) -> None:
        """``sums`` solves for row sums where there is no ``schur``, which is where nothing else
        couples the blocks."""
        self._model, self._backend, self._state = model, backend, state
        self._m = model.variables
        dense = state.dense
        self._V = dense.Q.copy()
        if self._V.size:
            backend.solve(self._V)
        self._small = Small(state, self._V, self._inverse_diagonal())
        X = self._outer_columns()
        self._wide = np.ascontiguousarray(X.transpose(1, 0, 2)).reshape(X.shape[1], -1)
        self._sums = sums
        if schur is None:
            return
        matrix = np.block([[schur.sums, schur.mixed.T], [schur.mixed, schur.coupling]])
        if X.size:
            less, more = self._small.split(X)
            matrix += more @ more.T - less @ less.T
        below = np.arange(self._m, len(matrix))
        matrix[below, below] += state.sigma / state.nu
        self._solve = _of_means(model, 0.5 * (matrix + matrix.T))
        self._border = np.vstack([np.zeros((self._m, len(state.g))), model.coupling.shared])
        self._bordered = self._solve(self._border) if len(state.g) else self._border

    @property
    def left(self) -> Earlier | None:
        """What the next iterate may use to solve for its row sums."""
        return None if self._sums is None else self._sums.left

    def _inverse_diagonal(self) -> Floats | None:
        """diag(H⁻¹) of every block where no pair makes H more than diagonal, else None."""
        if not self._V.size or (self._state.rows.i < self._m).any():
            return None
        ones = np.zeros((len(self._V), 1, self._m + 1))
        ones[:, :, :-1] = 1.0
        self._backend.solve(ones)
        return ones[:, 0]

    def _outer_columns(self) -> Floats:
        """X, (blocks, m + N, K + p); ``_wide`` has its blocks side by side."""
        coupling, m = self._model.coupling, self._m
        blocks, places, _ = self._V.shape
        p = self._state.a.shape[1]
        if not places + p:
            return np.zeros((blocks, m + len(coupling.rhs), 0))
        X = np.zeros((blocks, m + len(coupling.rhs), places + p))
        X[:, :m, :places] = self._V[:, :, :m].mT
        priced = self._V[:, :, coupling.variable].mT
        X[:, m:, :places] = coupling.value.T[:, :, None] * priced
        X[:, m:, places:] = coupling.auxiliary
        return X

    def direction(self, h: Floats, sides: Sides) -> Direction:
        """The solution; ``h`` is H⁻¹ of the pairs' right-hand side and becomes P's change."""
        state, m = self._state, self._m
        dense, coupling = state.dense, self._model.coupling
        places = dense.u.shape[1]
        own = sides.dense
        if places:
            own = own - (dense.Q @ h[:, :, None])[:, :, 0]
        auxiliary = np.broadcast_to(sides.auxiliary, state.a.shape)
        small = np.hstack([dense.live * own, auxiliary])
        inner = self._small.apply(small)
        right = np.zeros(m + len(coupling.rhs)) + sides.sums
        right[:m] -= h[:, :m].sum(axis=0)
        right[m:] -= np.einsum("lo,ol->l", coupling.value, h[:, coupling.variable])
        right[m:] -= sides.coupling_target / state.nu
        if self._wide.size:
            right -= self._wide @ inner.ravel()
        if self._sums is None:
            dy, dg = self._outer(right, sides.shared)
            if self._wide.size:
                inner = inner - self._small.apply((dy @ self._wide).reshape(inner.shape))
            dlam = dense.live * inner[:, :places]
            self._push(h, dlam, dy)
        else:
            dy, pushed = self._sums.solve(right)
            h += pushed
            # nothing else couples the blocks: both are empty
            dg, dlam = state.g, dense.lam
        dnu = -dy[m:]
        return Direction(
            P=h,
            a=inner[:, places:],
            g=dg,
            u=dense.live * (sides.dense_target - dense.u * dlam) / dense.divisor,
            sigma=(sides.coupling_target - state.sigma * dnu) / state.nu,
            y=dy[:m],
            nu=dnu,
            lam=dlam,
        )

    def restoring(self, P: Floats) -> Floats:
        """The least change of the columns P, in the norm of the barrier, with which the row
        sums, dense rows and coupling rows hold again as far as they did with the state's own."""
        state, dense = self._state, self._state.dense
        own = dense.live * (dense.u - dense.values(P, state.a))
        sides = Sides(
            dense=own,
            dense_target=np.zeros_like(own),
            coupling_target=np.zeros_like(state.sigma),
            sums=missing(self._model, state, P),
        )
        return self.direction(np.zeros_like(P), sides).P

    def _outer(self, right: Floats, shared: Floats | float) -> tuple[Floats, Floats]:
        dy = self._solve(right)
        if not self._border.shape[1]:
            return dy, np.zeros(0)
        inner = self._border.T @ self._bordered
        dg = np.linalg.solve(inner, self._border.T @ dy - shared)
        return dy - self._bordered @ dg, dg

    def _push(self, h: Floats, dlam: Floats, dy: Floats) -> None:
        """h += H⁻¹(Qᵀdlam + A_oᵀdy)."""
        coupling, m = self._model.coupling, self._m
        pull = np.zeros((len(h), 1, m + 1))
        pull[:, 0, :m] = dy[:m]
        for variable, value, change in zip(coupling.variable, coupling.value, dy[m:], strict=True):
            pull[:, 0, variable] += value * change
        pull[:, 0, m] = 0.0
        self._backend.solve(pull)
        h += pull[:, 0]
        if dlam.shape[1]:
            h += (dlam[:, None, :] @ self._V)[:, 0]


class Small:
    """J in factors: M = RᵀR and R⁻ᵀB = Q₂R₂ with orthonormal Q₂.

    Where H is diagonal R comes from a QR factorisation of [H^-½Qᵀ; (u/lam)^½], which does not
    square the condition: without pairs M is often as good as singular.
    """

    def __init__(self, state: State, V: Floats, inverse_diagonal: Floats | None) -> None:
        dense = state.dense
        self._places = dense.u.shape[1]
        p = state.a.shape[1]
        own = dense.u / dense.divisor
        if inverse_diagonal is None:
            self._root = _gram_root(dense.Q, V, own)
        else:
            self._root = _direct_root(dense.Q, inverse_diagonal, own)
        if p:
            Q2, R2 = np.linalg.qr(self._root.mT @ dense.B)
            self._Q2, self._side = Q2, np.linalg.inv(R2)
        else:
            self._Q2 = np.zeros((len(V), self._places, 0))
            self._side = np.zeros((len(V), 0, 0))

    def apply(self, right: Floats) -> Floats:
        """J times one vector per block, (blocks, K + p)."""
        places = self._places
        if not right.shape[1]:
            return right
        t = right[:, None, :places] @ self._root
        along = t @ self._Q2
        asked = right[:, None, places:] @ self._side
        inside = t + (asked - along) @ self._Q2.mT
        lam = inside @ self._root.mT
        a = (along - asked) @ self._side.mT
        return np.concatenate([lam, a], axis=2)[:, 0]

    def split(self, X: Floats) -> tuple[Floats, Floats]:
        """Matrices G, F with Σ_o X J Xᵀ = G Gᵀ - F Fᵀ."""
        less = X[:, :, : self._places] @ self._root
        more = less @ self._Q2 - X[:, :, self._places :] @ self._side
        wide = [part.transpose(1, 0, 2).reshape(X.shape[1], -1) for part in (less, more)]
        return wide[0], wide[1]


def _gram_root(Q: Floats, V: Floats, own: Floats) -> Floats:
    """R⁻¹ from the Cholesky factor of M scaled to unit diagonal."""
    index = np.arange(own.shape[1])
    M = Q @ V.mT
    M = 0.5 * (M + M.mT)
    M[:, index, index] += own
    scale = 1 / np.sqrt(M[:, index, index])
    M *= scale[:, :, None] * scale[:, None, :]
    lower = _factor(M, 1e-7)
    return np.linalg.inv(lower).mT * scale[:, :, None]


def _direct_root(Q: Floats, inverse_diagonal: Floats, own: Floats) -> Floats:
    """R⁻¹ from a QR factorisation, columns scaled to unit length."""
    blocks, places = own.shape
    tall = np.zeros((blocks, Q.shape[2] + places, places))
    tall[:, : Q.shape[2]] = (Q * np.sqrt(inverse_diagonal)[:, None, :]).mT
    index = np.arange(places)
    tall[:, Q.shape[2] + index, index] = np.sqrt(own)
    scale = 1 / np.sqrt((tall**2).sum(axis=1))
    R = np.linalg.qr(tall * scale[:, None, :], mode="r")
    return np.asarray(scale[:, :, None] * np.linalg.inv(R))


def _of_means(model: Model, matrix: Floats) -> Any:
    """``scaled_solver``, for row sums of which only means are given."""
    if not model.folded:
        return scaled_solver(matrix)
    mean = np.eye(model.row.max() + 1)[:, model.row] / np.bincount(model.row)[:, None]
    solve = scaled_solver(mean @ matrix @ mean.T)
    return lambda right: mean.T @ solve(mean @ right)


def _factor(matrix: Floats, most: float) -> Floats:
    """Cholesky factors of matrices (..., m, m) with unit diagonals, with a ridge where needed.
    Raises LinAlgError where the ``most`` does not suffice."""
    ridge, unit = 0.0, np.eye(matrix.shape[-1])
    while True:
        try:
            return np.asarray(np.linalg.cholesky(matrix + ridge * unit), np.float64)
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15)
            if ridge > most:
                raise


def scaled_solver(matrix: Floats) -> Any:
    """Cholesky of the matrix scaled to unit diagonal, with a ridge where needed and refinement."""
    scale = 1 / np.sqrt(matrix.diagonal())
    scaled = matrix * scale[:, None] * scale
    root = lower_inverse(_factor(scaled, 1e-6)[None])[0]

    def solve(right: Floats) -> Floats:
        own = scale if right.ndim == 1 else scale[:, None]
        rhs = right * own
        x = root.T @ (root @ rhs)
        for _ in range(_REFINEMENTS):
            x += root.T @ (root @ (rhs - scaled @ x))
        return np.asarray(x * own)

    return solve
