"""Inverse factors of all blocks, out of large matrix products.

A block's matrix H = Gᵀ diag(z/s) G has positive diagonal entries and no positive ones beside the
diagonal, so its factor L has neither and L⁻¹ has no negative entry. Halving H,

    L⁻¹ = [[X₁, 0], [-X₂ T X₁, X₂]],   T = H₂₁ X₁ᵀ,   X₁ = L₁⁻¹,   X₂ = chol(H₂₂ - T Tᵀ)⁻¹,

every product adds up terms of one sign: nothing cancels but on the diagonal, where it does in
any Cholesky factorisation, and inverse factors are as accurate as factors.

With X = L⁻¹ diag(scale), kept in panels of rows that end at the diagonal, H⁻¹ = XᵀX. A solve is
two products per panel, and Σ_o H_o⁻¹ one product of all blocks' panels stacked.
"""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.arrays import Array, Arrays
from optmech.engines.structured.backend import RIDGES

_PANEL = 128


class Inverses:
    """X of every block; panel k is an array (blocks, height_k, end_k)."""

    def __init__(self, arrays: Arrays, blocks: int, size: int) -> None:
        self._arrays, self._size = arrays, size
        self._ends = [*range(_PANEL, size, _PANEL), size]
        self._starts = [0, *self._ends[:-1]]
        self._panels = [
            arrays.zeros(blocks, end - start, end)
            for start, end in zip(self._starts, self._ends, strict=True)
        ]

    def factor(self, first: int, entries: Array, scale: Array) -> bool:
        """Factor the blocks from ``first`` on; False where one cannot be.

        ``entries`` (count, m·m) has in its lower triangles what is beside the unit diagonals once
        rows and columns were multiplied by ``scale`` (count, m).
        """
        xp, size, count = self._arrays.xp, self._size, scale.shape[0]
        ridge = self._arrays.from_host(np.full((count, 1), RIDGES[0]))
        for _ in RIDGES:
            X = xp.asarray(entries, copy=True)
            X[:, :: size + 1] = xp.broadcast_to(1.0 + ridge, (count, size))
            X = xp.reshape(X, (-1, size, size))
            self._invert(X, 0, size)
            failed = ~xp.isfinite(xp.sum(xp.linalg.diagonal(X), axis=1, keepdims=True))
            if not bool(xp.any(failed)):
                for start, end, panel in zip(self._starts, self._ends, self._panels, strict=True):
                    panel[first : first + count, ...] = X[:, start:end, :end] * scale[:, None, :end]
                return True
            ridge = xp.where(failed, ridge * 100.0, ridge)
        return False

    def _invert(self, X: Array, start: int, end: int) -> None:
        """The diagonal blocks from ``start`` to ``end`` become their inverse factors."""
        size = end - start
        leaf = self._arrays.leaf
        if size <= leaf:
            X[:, start:end, start:end] = self._arrays.inverse_factors(X[:, start:end, start:end])
            return
        middle = start + leaf * ((size + leaf - 1) // leaf // 2)
        self._invert(X, start, middle)
        upper = X[:, start:middle, start:middle]
        turned = self._arrays.xp.matrix_transpose
        T = X[:, middle:end, start:middle] @ turned(upper)
        X[:, middle:end, middle:end] -= T @ turned(T)
        self._invert(X, middle, end)
        X[:, middle:end, start:middle] = -(X[:, middle:end, middle:end] @ (T @ upper))
        X[:, start:middle, middle:end] = 0.0

    def solve(self, B: Array) -> Array:
        """H_o⁻¹ B[o, q] for all q, (blocks, q, m)."""
        xp = self._arrays.xp
        out = xp.zeros_like(B)
        for end, X in zip(self._ends, self._panels, strict=True):
            out[:, :, :end] += (B[:, :, :end] @ xp.matrix_transpose(X)) @ X
        return out

    def summed(self, variable: Ints, value: Floats) -> tuple[Floats, Floats, Floats]:
        """Σ_o H_o⁻¹, and with a_lo = value[l, o] times unit vector variable[l] (zero where that is
        m) Σ_o a_loᵀH_o⁻¹ and Σ_o a_loᵀH_o⁻¹a_ko: (m, m), (N, m), (N, N)."""
        arrays, xp, count = self._arrays, self._arrays.xp, len(variable)
        sums = arrays.zeros(self._size, self._size)
        mixed, coupling = arrays.zeros(count, self._size), arrays.zeros(count, count)
        for end, X in zip(self._ends, self._panels, strict=True):
            stacked = xp.reshape(X, (-1, end))
            sums[:end, :end] += xp.matrix_transpose(stacked) @ stacked
            if count:
                weight = np.where(variable[:, None] < end, value, 0.0).T
                chosen = arrays.from_host(np.minimum(variable, end - 1))
                own = xp.take(X, chosen, axis=2) * arrays.from_host(weight)[:, None, :]
                own = xp.reshape(own, (-1, count))
                mixed[:, :end] += xp.matrix_transpose(own) @ stacked
                coupling += xp.matrix_transpose(own) @ own
        return arrays.to_host(sums), arrays.to_host(mixed), arrays.to_host(coupling)


def factor_bytes(blocks: int, size: int, coupling_rows: int) -> float:
    """Memory of all panels, and of what coupling rows take from one."""
    return 4.0 * blocks * size * (size + _PANEL) + 8.0 * blocks * _PANEL * coupling_rows
