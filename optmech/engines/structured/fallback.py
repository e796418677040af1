"""The blocks' work in NumPy, all blocks at once: for programs that are solved before compiled code
is loaded, and for machines without numba."""

from __future__ import annotations

import numpy as np

from optmech.domain import Floats, Ints
from optmech.engines.structured.backend import Affine, Schur
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone, Rows
from optmech.engines.structured.triangular import lower_inverse

_RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
_TOGETHER = 1 << 16
"""Entries that are looked at together, to stay in the processor's caches."""


class NumpyBackend:
    """See ``backend.Backend``. Every block keeps the inverse X of its Cholesky factor, scaled:
    H⁻¹ = XᵀX, so that solving is two products for all blocks together."""

    correctors = (8, 0.01)

    def __init__(self, model: Model, cone: Cone) -> None:
        self._cone = cone
        self._links = model.links
        self._blocks, self._m = model.blocks, model.variables
        self._roots = np.zeros((self._blocks, self._m, self._m))
        self._i, self._j, self._pairs, self._cells = (np.zeros(0, dtype=np.int64) for _ in "ijpc")
        self._held = np.zeros((0, self._m, self._m), dtype=np.bool_)

    def structure(self, rows: Rows, changed: Ints) -> None:
        m = self._m
        own = rows.block
        self._i = own * (m + 1) + rows.i
        self._j = own * (m + 1) + rows.j
        self._pairs = np.flatnonzero(rows.i < m)
        i, j = rows.i[self._pairs].astype(np.int64), rows.j[self._pairs]
        own = own[self._pairs]
        self._cells = (own * m + np.maximum(i, j)) * m + np.minimum(i, j)
        self._held = np.zeros((self._blocks, m, m), dtype=np.bool_)
        self._held[own, i, j] = True

    def _scatter(self, on_i: Floats, on_j: Floats) -> Floats:
        size = self._blocks * (self._m + 1)
        total = np.bincount(self._i, on_i, size) + np.bincount(self._j, on_j, size)
        shaped = total.astype(np.float64, copy=False).reshape(self._blocks, -1)
        shaped[:, -1] = 0.0
        return shaped

    def _slack(self, rows: Rows, P: Floats) -> Floats:
        return np.asarray(rows.e * P.take(self._j) - P.take(self._i))

    def residual(self, rows: Rows, P: Floats, R: Floats) -> tuple[float, float]:
        R += self._scatter(rows.z, -rows.e * rows.z)
        worst = np.abs(self._slack(rows, P) - rows.s).max(initial=0.0)
        return float(worst), float(rows.s @ rows.z)

    def factor(self, rows: Rows) -> Schur | None:
        m, links = self._m, self._links
        w = rows.z / rows.s
        diagonal = self._scatter(w, w * rows.e**2)
        scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0)
        weight = -w * rows.e * scale.take(self._i) * scale.take(self._j)
        lower = np.bincount(self._cells, weight[self._pairs], self._blocks * m * m)
        factors = _factors(lower.astype(np.float64, copy=False).reshape(self._blocks, m, m))
        if factors is None:
            return None
        self._roots = lower_inverse(factors)
        self._roots *= scale[:, None, :m]
        flat = self._roots.reshape(-1, m)
        wide = np.zeros((self._blocks, m, m + 1))
        wide[:, :, :m] = self._roots
        priced = np.matmul(wide[:, :, links.variable].transpose(0, 2, 1), wide)
        priced *= links.value.T[:, :, None]
        linked = np.einsum("olk,ko->lk", priced[:, :, links.variable], links.value)
        return Schur(flat.T @ flat, priced.sum(axis=0)[:, :m], linked)

    def solve(self, B: Floats) -> None:
        part = B[:, :, : self._m]
        part[:] = np.matmul(np.matmul(part, self._roots.transpose(0, 2, 1)), self._roots)

    def affine_rhs(self, rows: Rows, P: Floats, rd: Floats, B: Floats) -> None:
        q = -rows.z - rows.z * (self._slack(rows, P) - rows.s) / rows.s
        B[:] = self._scatter(-q, rows.e * q) - rd

    def second_order_rhs(self, rows: Rows, mu: float, B: Floats) -> None:
        rows.ds2[:] = mu - rows.ds * rows.dz
        q = rows.ds2 / rows.s
        B[:] = self._scatter(-q, rows.e * q)

    def corrector_rhs(self, rows: Rows, weights: tuple[float, float], mu: float, B: Floats) -> None:
        rows.ds += weights[0] * rows.ds2
        rows.dz += weights[1] * rows.dz2
        product = (rows.s + rows.ds) * (rows.z + rows.dz)
        rows.ds2[:] = gondzio(product, mu)
        q = rows.ds2 / rows.s
        B[:] = self._scatter(-q, rows.e * q)

    def affine_step(self, rows: Rows, P: Floats, dP: Floats) -> Affine:
        rows.ds[:] = self._slack(rows, P + dP) - rows.s
        rows.dz[:] = -rows.z - rows.z * rows.ds / rows.s
        s, z, ds, dz = rows.s, rows.z, rows.ds, rows.dz
        return Affine(
            float((-ds / s).max(initial=0.0)),
            float((-dz / z).max(initial=0.0)),
            (float(s @ z), float(s @ dz), float(ds @ z), float(ds @ dz)),
        )

    def corrector_step(self, rows: Rows, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        u = self._slack(rows, dP)
        rows.dz2[:] = (rows.ds2 - rows.z * u) / rows.s
        rows.ds2[:] = u
        return (
            _largest(-rows.ds / rows.s, -rows.ds2 / rows.s, weights),
            _largest(-rows.dz / rows.z, -rows.dz2 / rows.z, weights),
        )

    def move(self, rows: Rows, weights: tuple[float, float], step: tuple[float, float]) -> None:
        rows.s += step[0] * (rows.ds + weights[0] * rows.ds2)
        rows.z += step[1] * (rows.dz + weights[1] * rows.dz2)

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.full((2, self._blocks, self._m), -1)
        v = P[:, :-1]
        inverse = np.where(v > 0, 1 / np.where(v > 0, v, 1), 0)
        size = max(1, _TOGETHER // self._m**2)
        for first in range(0, self._blocks, size):
            some = slice(first, first + size)
            excess = self._cone.later * v[some, :, None]
            excess *= inverse[some, None, :]
            block, i, j = np.nonzero(excess > level)
            fresh = ~self._held[block + first, i, j]
            block, i, j = block[fresh], i[fresh], j[fresh]
            # written in rising order, so that the worst stays
            order = np.argsort(excess[block, i, j], kind="stable")
            block, i, j = block[order], i[order], j[order]
            by_i[block + first, i] = j
            by_j[block + first, j] = i
        return by_i, by_j

    def majorant(self, P: Floats) -> Floats:
        out = np.zeros_like(P)
        for o in range(self._blocks):
            out[o, :-1] = (self._cone.decay * P[o, :-1]).max(axis=1)
        return out

    def charge(self, rows: Rows, z: Floats, R: Floats) -> None:
        R += self._scatter(z, -rows.e * z)

    def shifted(self, rows: Rows, z: Floats, x: Floats) -> Floats:
        return np.maximum(0.0, z + rows.z / rows.s * self._slack(rows, x))

    def drain(self, rows: Rows, z: Floats, rd: Floats, sweeps: int) -> Floats:
        z, reduced = z.copy(), rd.copy()
        size = reduced.size
        for _ in range(sweeps):
            if reduced.min() > -1e-16:
                break
            inflow = np.bincount(self._j, rows.e * z, size).reshape(reduced.shape)
            inflow[:, -1] = 0.0
            needy = (reduced < 0) & (inflow > 0)
            share = np.zeros_like(reduced)
            share[needy] = np.minimum(1.0, -reduced[needy] / inflow[needy] * (1 + 1e-12))
            less = share.ravel()[self._j] * z
            z -= less
            reduced += share * inflow
            reduced -= np.bincount(self._i, less, size).reshape(reduced.shape)
            reduced[:, -1] = 0.0
        return z


def gondzio(product: Floats, mu: float) -> Floats:
    """How far products s z are to be moved towards [mu/10, 10 mu] (Gondzio, 1996)."""
    return np.where(
        product < 0.1 * mu,
        0.1 * mu - product,
        np.where(product > 10 * mu, np.maximum(10 * mu - product, -10 * mu), 0.0),
    )


def _largest(at: Floats, slope: Floats, weights: Floats) -> Floats:
    """max_k at_k + w slope_k, at least 0, for every weight w in [0, 1].

    Lines that lie below two of the steepest everywhere cannot be the highest anywhere.
    """
    if not len(at):
        return np.zeros(len(weights))
    end = at + slope
    both = [int(at.argmax()), int(end.argmax())]
    known = (at[both] + weights[:, None] * slope[both]).max(axis=1)
    kept = np.flatnonzero(np.maximum(at, end) >= known.min())
    if not len(kept):
        return np.full(len(weights), np.nan)
    values = at[kept] + weights[:, None] * slope[kept]
    return np.asarray(np.maximum(values.max(axis=1), 0.0))


def _factors(lower: Floats) -> Floats | None:
    """Cholesky factors of matrices given below their diagonal of ones, each with the least ridge
    that does; None where none does."""
    index = np.arange(lower.shape[1])
    lower[:, index, index] = 1 + _RIDGES[0]
    try:
        return np.asarray(np.linalg.cholesky(lower), np.float64)
    except np.linalg.LinAlgError:
        factors = [_ridged(matrix) for matrix in lower]
    return None if any(factor is None for factor in factors) else np.array(factors)


def _ridged(matrix: Floats) -> Floats | None:
    for ridge in _RIDGES:
        np.fill_diagonal(matrix, 1 + ridge)
        try:
            return np.asarray(np.linalg.cholesky(matrix), np.float64)
        except np.linalg.LinAlgError:
            continue
    return None
