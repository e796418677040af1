"""The blocks' work in NumPy and LAPACK: dense blocks, slower, for machines without numba."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from optmech.domain import Floats, Ints
from optmech.engines.structured.backend import Affine, Schur
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone, Indices, Rows

_RIDGES = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)


class NumpyBackend:
    """See ``backend.Backend``."""

    correctors = (4, 0.03)

    def __init__(self, model: Model, cone: Cone) -> None:
        self._cone = cone
        self._links = model.links
        self._blocks, self._m = model.blocks, model.variables
        self._factors = np.zeros((self._blocks, self._m, self._m))
        self._scale = np.zeros((self._blocks, self._m))
        self._i, self._j, self._own = (np.zeros(0, dtype=np.int64) for _ in "ijo")

    def structure(self, rows: Rows, changed: Ints) -> None:
        width = self._m + 1
        self._own = rows.block
        self._i = self._own * width + rows.i
        self._j = self._own * width + rows.j

    def _scatter(self, on_i: Floats, on_j: Floats) -> Floats:
        size = self._blocks * (self._m + 1)
        total = np.bincount(self._i, on_i, size) + np.bincount(self._j, on_j, size)
        shaped = total.astype(np.float64).reshape(self._blocks, -1)
        shaped[:, -1] = 0.0
        return shaped

    def _slack(self, rows: Rows, P: Floats) -> Floats:
        flat = P.ravel()
        return np.asarray(rows.e * flat[self._j] - flat[self._i])

    def residual(self, rows: Rows, P: Floats, R: Floats) -> tuple[float, float]:
        R += self._scatter(rows.z, -rows.e * rows.z)
        worst = np.abs(self._slack(rows, P) - rows.s).max(initial=0.0)
        return float(worst), float(rows.s @ rows.z)

    def factor(self, rows: Rows) -> Schur | None:
        m, links = self._m, self._links
        w = rows.z / rows.s
        diagonal = self._scatter(w, w * rows.e**2)[:, :m]
        self._scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0)
        schur = Schur(
            np.zeros((m, m)), np.zeros((len(links.rhs), m)), np.zeros((len(links.rhs),) * 2)
        )
        for o in range(self._blocks):
            own = slice(rows.offset[o], rows.offset[o + 1])
            if not self._factor_block(o, rows.i[own], rows.j[own], -w[own] * rows.e[own]):
                return None
            inverse = lapack.dpotri(self._factors[o], lower=1)[0]
            inverse = (np.tril(inverse) + np.tril(inverse, -1).T) * self._scale[o]
            inverse *= self._scale[o][:, None]
            schur.rows[:] += inverse
            if len(links.rhs):
                wide = np.zeros((m + 1, m + 1))
                wide[:m, :m] = inverse
                part = links.value[:, o, None] * wide[links.variable]
                schur.coupled[:] += part[:, :m]
                schur.linked[:] += part[:, links.variable] * links.value[:, o]
        return schur

    def _factor_block(self, o: int, i: Indices, j: Indices, weight: Floats) -> bool:
        m = self._m
        pairs = i < m
        cell = np.maximum(i, j)[pairs].astype(np.int64) * m + np.minimum(i, j)[pairs]
        entries = np.bincount(cell, weight[pairs], m * m).reshape(m, m)
        lower = entries * self._scale[o][:, None] * self._scale[o]
        for ridge in _RIDGES:
            np.fill_diagonal(lower, 1 + ridge)
            self._factors[o], info = lapack.dpotrf(lower, lower=1)
            if info == 0:
                return True
        return False

    def solve(self, B: Floats) -> None:
        m = self._m
        for o in range(self._blocks):
            scale = self._scale[o][:, None]
            x = lapack.dpotrs(self._factors[o], scale * B[o, :, :m].T, lower=1)[0]
            B[o, :, :m] = (scale * x).T

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
        primal = [(-(rows.ds + w * rows.ds2) / rows.s).max(initial=0.0) for w in weights]
        dual = [(-(rows.dz + w * rows.dz2) / rows.z).max(initial=0.0) for w in weights]
        return np.array(primal), np.array(dual)

    def move(self, rows: Rows, weights: tuple[float, float], step: tuple[float, float]) -> None:
        rows.s += step[0] * (rows.ds + weights[0] * rows.ds2)
        rows.z += step[1] * (rows.dz + weights[1] * rows.dz2)

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.full((2, self._blocks, self._m), -1)
        for o, v in enumerate(P[:, : self._m]):
            inverse = np.where(v > 0, 1 / np.where(v > 0, v, 1), 0)
            excess = self._cone.later * v[:, None] * inverse
            own = slice(rows.offset[o], rows.offset[o + 1])
            pairs = rows.i[own] < self._m
            excess[rows.i[own][pairs], rows.j[own][pairs]] = 0.0
            by_i[o] = np.where(excess.max(axis=1) > level, excess.argmax(axis=1), -1)
            by_j[o] = np.where(excess.max(axis=0) > level, excess.argmax(axis=0), -1)
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
