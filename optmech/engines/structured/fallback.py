"""The blocks' work in NumPy, all blocks at once: for programs that are solved before compiled code
is loaded, and for machines without numba."""

from __future__ import annotations

import numpy as np

from optmech.domain import Floats, Ints
from optmech.engines.structured.backend import RIDGES, Affine, Schur, gondzio
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone, Rows
from optmech.engines.structured.triangular import lower_inverse

_TOGETHER = 1 << 16
"""Entries of blocks that are worked on together, to stay in the processor's caches."""


class NumpyBackend:
    """See ``backend.Backend``. Every block keeps the inverse X of its Cholesky factor, scaled:
    H⁻¹ = XᵀX, so that solving is two products for all blocks together. Right-hand sides and steps
    are for the slacks factored last."""

    correctors = (8, 0.01)

    def __init__(self, model: Model, cone: Cone) -> None:
        self._cone = cone
        self._links = model.links
        self._blocks, self._m = model.blocks, model.variables
        self._roots = np.zeros((self._blocks, self._m, self._m))
        self._held = np.zeros((0, self._m, self._m), dtype=np.bool_)
        self._i, self._j, self._cells = (np.zeros(0, dtype=np.int64) for _ in "ijc")
        self._per_s = np.zeros(0)

    def structure(self, rows: Rows, changed: Ints) -> None:
        m, own = self._m, rows.block
        self._i = own * (m + 1) + rows.i
        self._j = own * (m + 1) + rows.j
        pairs = rows.i < m
        cells = (own * m + np.maximum(rows.i, rows.j)) * m + np.minimum(rows.i, rows.j)
        self._cells = np.where(pairs, cells, self._roots.size)
        self._held = np.zeros((self._blocks, m, m), dtype=np.bool_)
        self._held[own[pairs], rows.i[pairs], rows.j[pairs]] = True

    def _sums(self, on_i: Floats, on_j: Floats) -> Floats:
        """Values of the rows added up at their smaller sides and at their larger ones."""
        size = self._blocks * (self._m + 1)
        total = np.bincount(self._i, on_i, size) + np.bincount(self._j, on_j, size)
        shaped = total.astype(np.float64, copy=False).reshape(self._blocks, -1)
        shaped[:, -1] = 0.0
        return shaped

    def _slack(self, rows: Rows, P: Floats) -> Floats:
        larger = P.take(self._j)
        larger *= rows.e
        larger -= P.take(self._i)
        return larger

    def residual(self, rows: Rows, P: Floats, R: Floats) -> tuple[float, float]:
        R += self._sums(rows.z, -rows.e * rows.z)
        worst = np.abs(self._slack(rows, P) - rows.s).max(initial=0.0)
        return float(worst), float(rows.s @ rows.z)

    def factor(self, rows: Rows) -> Schur | None:
        m = self._m
        self._per_s = 1 / rows.s
        w = rows.z * self._per_s
        weight = w * rows.e
        diagonal = self._sums(w, weight * rows.e)
        scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0)
        weight *= -scale.take(self._i)
        weight *= scale.take(self._j)
        total = np.zeros((m, m))
        for some in self._parts():
            own = slice(rows.offset[some.start], rows.offset[some.stop])
            size = (some.stop - some.start) * m * m
            cells = np.minimum(self._cells[own] - some.start * m * m, size)
            lower = np.bincount(cells, weight[own], size + 1)[:-1].reshape(-1, m, m)
            factors = _factors(lower.astype(np.float64, copy=False))
            if factors is None:
                return None
            roots = lower_inverse(factors)
            np.multiply(roots, scale[some, None, :m], out=self._roots[some])
            flat = self._roots[some].reshape(-1, m)
            total += flat.T @ flat
        return Schur(total, *self._priced())

    def _parts(self) -> list[slice]:
        """The blocks in parts that are worked on together."""
        step = max(1, _TOGETHER // self._m**2)
        return [
            slice(first, min(first + step, self._blocks)) for first in range(0, self._blocks, step)
        ]

    def _priced(self) -> tuple[Floats, Floats]:
        """What the links add to the Schur matrix."""
        m, links = self._m, self._links
        count = len(links.rhs)
        coupled, linked = np.zeros((count, m + 1)), np.zeros((count, count))
        for some in self._parts() if count else ():
            wide = np.zeros((some.stop - some.start, m, m + 1))
            wide[:, :, :m] = self._roots[some]
            priced = np.matmul(wide[:, :, links.variable].transpose(0, 2, 1), wide)
            priced *= links.value.T[some, :, None]
            coupled += priced.sum(axis=0)
            linked += np.einsum("olk,ko->lk", priced[:, :, links.variable], links.value[:, some])
        return coupled[:, :m], linked

    def solve(self, B: Floats) -> None:
        part = B[:, :, : self._m]
        part[:] = np.matmul(np.matmul(part, self._roots.transpose(0, 2, 1)), self._roots)

    def affine_rhs(self, rows: Rows, P: Floats, rd: Floats, B: Floats) -> None:
        q = -rows.z - rows.z * (self._slack(rows, P) - rows.s) * self._per_s
        B[:] = self._sums(-q, rows.e * q) - rd

    def second_order_rhs(self, rows: Rows, mu: float, B: Floats) -> None:
        rows.ds2[:] = mu - rows.ds * rows.dz
        q = rows.ds2 * self._per_s
        B[:] = self._sums(-q, rows.e * q)

    def corrector_rhs(self, rows: Rows, weights: tuple[float, float], mu: float, B: Floats) -> None:
        rows.ds += weights[0] * rows.ds2
        rows.dz += weights[1] * rows.dz2
        product = (rows.s + rows.ds) * (rows.z + rows.dz)
        rows.ds2[:] = gondzio(product, mu)
        q = rows.ds2 * self._per_s
        B[:] = self._sums(-q, rows.e * q)

    def affine_step(self, rows: Rows, P: Floats, dP: Floats) -> Affine:
        rows.ds[:] = self._slack(rows, P + dP) - rows.s
        rows.dz[:] = -rows.z - rows.z * rows.ds * self._per_s
        s, z, ds, dz = rows.s, rows.z, rows.ds, rows.dz
        return Affine(
            float((-ds * self._per_s).max(initial=0.0)),
            float((-dz / z).max(initial=0.0)),
            (float(s @ z), float(s @ dz), float(ds @ z), float(ds @ dz)),
        )

    def corrector_step(self, rows: Rows, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        u = self._slack(rows, dP)
        rows.dz2[:] = (rows.ds2 - rows.z * u) * self._per_s
        rows.ds2[:] = u
        per_z = 1 / rows.z
        return (
            _largest_decrease(rows.ds * self._per_s, u * self._per_s, weights),
            _largest_decrease(rows.dz * per_z, rows.dz2 * per_z, weights),
        )

    def move(self, rows: Rows, weights: tuple[float, float], step: tuple[float, float]) -> None:
        rows.s += step[0] * (rows.ds + weights[0] * rows.ds2)
        rows.z += step[1] * (rows.dz + weights[1] * rows.dz2)

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.full((2, self._blocks, self._m), -1)
        v = P[:, :-1]
        inverse = np.where(v > 0, 1 / np.where(v > 0, v, 1), 0)
        for some in self._parts():
            excess = self._cone.later * v[some, :, None]
            excess *= inverse[some, None, :]
            found = np.flatnonzero(excess > level)
            block, i, j = np.unravel_index(found, excess.shape)
            worst = np.where(self._held[block + some.start, i, j], 0.0, excess.take(found))
            # written in rising order, so that the worst stays
            order = np.argsort(worst, kind="stable")[np.count_nonzero(worst == 0) :]
            block, i, j = block[order] + some.start, i[order], j[order]
            by_i[block, i] = j
            by_j[block, j] = i
        return by_i, by_j

    def majorant(self, P: Floats) -> Floats:
        out = np.zeros_like(P)
        for o in range(self._blocks):
            out[o, :-1] = (self._cone.decay * P[o, :-1]).max(axis=1)
        return out

    def charge(self, rows: Rows, z: Floats, R: Floats) -> None:
        R += self._sums(z, -rows.e * z)

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


def _largest_decrease(at: Floats, slope: Floats, weights: Floats) -> Floats:
    """max_k -(at_k + w slope_k), at least 0, for every weight w in [0, 1].

    Lines that stay above two of the lowest ones everywhere cannot be the lowest anywhere.
    """
    if not len(at):
        return np.zeros(len(weights))
    end = at + slope
    both = [int(at.argmin()), int(end.argmin())]
    known = (at[both] + weights[:, None] * slope[both]).min(axis=1)
    kept = np.flatnonzero(np.minimum(at, end) <= known.max())
    if not len(kept):
        return np.full(len(weights), np.nan)
    lowest = (at[kept] + weights[:, None] * slope[kept]).min(axis=1)
    return np.asarray(np.maximum(-lowest, 0.0))


def _factors(lower: Floats) -> Floats | None:
    """Cholesky factors of matrices given below their diagonal of ones, each with the least ridge
    that does; None where none does."""
    index = np.arange(lower.shape[1])
    lower[:, index, index] = 1 + RIDGES[0]
    try:
        return np.asarray(np.linalg.cholesky(lower), np.float64)
    except np.linalg.LinAlgError:
        factors = [_ridged(matrix) for matrix in lower]
    return None if any(factor is None for factor in factors) else np.array(factors)


def _ridged(matrix: Floats) -> Floats | None:
    for ridge in RIDGES:
        np.fill_diagonal(matrix, 1 + ridge)
        try:
            return np.asarray(np.linalg.cholesky(matrix), np.float64)
        except np.linalg.LinAlgError:
            continue
    return None
