"""The blocks' work through the array API: the same passes in NumPy, on a GPU, or wherever a library
computes.

In NumPy it serves small programs, and installations without compiled kernels. Rows stay on the
device between calls; what the host reads of them, slacks and multipliers, is copied back after
every step. What differs between rows changes in ``structure`` and ``move`` only, so nothing else
has to be looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from optmech.base import memory
from optmech.base.arrays import Bools, Floats, Ints
from optmech.engines.structured.arrays import Array, Arrays
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import RIDGES, Affine, Both, Cone, Rows, Schur, target

_PANEL = 128
_DENSE = 6
"""Dense matrices per block that are around at once."""
_PAIRS = 24
"""Rows per variable that memory is put aside for."""
_ROW = 8 * 16
"""Bytes of a row, passing arrays included."""


class Inverses:
    """X of every block; panel k is an array (blocks, height_k, end_k).

    A block's matrix H = Gᵀ diag(z/s) G has positive diagonal entries and no positive ones beside
    the diagonal, so its factor L has neither and L⁻¹ has no negative entry. Halving H,

        L⁻¹ = [[X₁, 0], [-X₂ T X₁, X₂]],   T = H₂₁ X₁ᵀ,   X₁ = L₁⁻¹,   X₂ = chol(H₂₂ - T Tᵀ)⁻¹,

    every product adds up terms of one sign: nothing cancels but on the diagonal, where it does in
    any Cholesky factorisation, and inverse factors are as accurate as factors. With
    X = L⁻¹ diag(scale), kept in panels of rows that end at the diagonal, H⁻¹ = XᵀX. A solve is two
    products per panel, and Σ_o H_o⁻¹ one product of all blocks' panels stacked.
    """

    def __init__(self, arrays: Arrays, blocks: int, size: int) -> None:
        self._arrays, self._size = arrays, size
        starts = range(0, size, _PANEL)
        sides = [(start, min(start + _PANEL, size)) for start in starts]
        self._panels = [(*own, arrays.zeros(blocks, own[1] - own[0], own[1])) for own in sides]

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
                for start, end, panel in self._panels:
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
        for _, end, X in self._panels:
            out[:, :, :end] += (B[:, :, :end] @ xp.matrix_transpose(X)) @ X
        return out

    def summed(self, variable: Ints, value: Floats) -> tuple[Floats, Floats, Floats]:
        """Σ_o H_o⁻¹, and with a_lo = value[l, o] times unit vector variable[l] (zero where that is
        m) Σ_o a_loᵀH_o⁻¹ and Σ_o a_loᵀH_o⁻¹a_ko: (m, m), (N, m), (N, N)."""
        arrays, xp, count = self._arrays, self._arrays.xp, len(variable)
        sums = arrays.zeros(self._size, self._size)
        mixed, coupling = arrays.zeros(count, self._size), arrays.zeros(count, count)
        for _, end, X in self._panels:
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


@dataclass(eq=False)
class _Held:
    """Rows on the device. ``i`` and ``j`` number variables through all blocks, ``cell`` the entries
    below the diagonals of their matrices; rows v_j >= 0 stand on a diagonal."""

    rows: Rows
    i: Array
    j: Array
    cell: Array
    e: Array
    s: Array
    z: Array
    ds: Array = None
    dz: Array = None
    ds2: Array = None
    dz2: Array = None

    def __post_init__(self) -> None:
        self.per_s = 1 / self.s


class ArrayBackend:
    """See ``rows.Backend``. Inverse factors are kept between solves."""

    correctors = (8, 0.01)
    parts = False
    threads = 1

    def __init__(self, model: Model, cone: Cone, arrays: Arrays) -> None:
        self._arrays, self._xp = arrays, arrays.xp
        self._blocks, self._m = model.blocks, model.variables
        self._coupling = model.coupling
        self._decay = arrays.from_host(cone.decay)
        self._later = arrays.from_host(cone.later.astype(np.float64))
        self._inverses = Inverses(arrays, self._blocks, self._m)
        self._step = chunk(self._m, arrays)
        self._held: _Held | None = None

    def structure(self, rows: Rows, changed: Ints) -> None:
        self._held = None
        up, m, first = self._arrays.from_host, self._m, rows.block * (self._m + 1)
        low = np.minimum(rows.i, rows.j)
        high = np.where(rows.i < m, np.maximum(rows.i, rows.j), rows.j)
        cell = (rows.block * m + high) * m + low
        own = first + rows.i, first + rows.j, cell, rows.e, rows.s, rows.z
        self._held = _Held(rows, *map(up, own))

    @property
    def _on(self) -> _Held:
        """The rows on the device."""
        assert self._held is not None
        return self._held

    def _gather(self, values: Array, index: Array) -> Array:
        return self._xp.take(values, index, axis=0)

    def _flat(self, P: Floats) -> Array:
        return self._xp.reshape(self._arrays.from_host(P), (-1,))

    def _slack(self, P: Array) -> Array:
        larger = self._gather(P, self._on.j)
        larger *= self._on.e
        larger -= self._gather(P, self._on.i)
        return larger

    def _spread(self, on_i: Array, on_j: Array) -> Array:
        """Rows added up per variable, (blocks, m + 1)."""
        sums, size = self._arrays.sums, self._blocks * (self._m + 1)
        total = sums(self._on.i, on_i, size) + sums(self._on.j, on_j, size)
        total = self._xp.reshape(total, (self._blocks, self._m + 1))
        total[:, -1] = 0.0
        return total

    def _pull(self, q: Array) -> Floats:
        """Gᵀq on the host."""
        return self._arrays.to_host(self._spread(-q, self._on.e * q))

    def _chunks(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._blocks, self._step):
            yield first, min(first + self._step, self._blocks)

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        if rows is not self._on.rows:
            up = self._arrays.from_host
            self._held = replace(self._on, rows=rows, s=up(rows.s), z=up(rows.z))
        held, xp, m = self._on, self._xp, self._m
        w = held.z * held.per_s
        weight = w * held.e
        diagonal = self._spread(w, weight * held.e)
        scale = xp.where(diagonal > 0, 1 / xp.sqrt(xp.where(diagonal > 0, diagonal, 1.0)), 0.0)
        flat = xp.reshape(scale, (-1,))
        # rows v_j >= 0 weigh nothing here: the scale of the constant zero is 0
        weight *= -self._gather(flat, held.i)
        weight *= self._gather(flat, held.j)
        for first, last in self._chunks():
            own, size = self._own(first, last), (last - first) * m * m
            entries = self._arrays.sums(held.cell[own] - first * m * m, weight[own], size)
            entries = xp.reshape(entries, (last - first, m * m))
            if not self._inverses.factor(first, entries, scale[first:last, :m]):
                return None
        return Schur(*self._inverses.summed(self._coupling.variable, self._coupling.value))

    def _own(self, first: int, last: int) -> slice:
        """The rows of some blocks."""
        return slice(*self._on.rows.offset[[first, last]].tolist())

    def solve(self, B: Floats) -> None:
        found = self._inverses.solve(self._arrays.from_host(B[:, :, :-1]))
        B[:, :, :-1] = self._arrays.to_host(found)

    def affine_rhs(self, P: Floats, rd: Floats, B: Floats) -> None:
        held = self._on
        left = self._slack(self._flat(P)) - held.s
        B[:] = self._pull(-held.z - held.z * left * held.per_s) - rd

    def corrector_rhs(self, weights: Both | None, mu: float, B: Floats) -> None:
        held = self._on
        if weights is not None:
            held.ds = held.ds + weights[0] * held.ds2
            held.dz = held.dz + weights[1] * held.dz2
        at, change = (held.s, held.z), (held.ds, held.dz)
        held.ds2 = target(at, change, mu, weights is None, self._xp)
        B[:] = self._pull(held.ds2 * held.per_s)

    def affine_step(self, P: Floats, dP: Floats) -> Affine:
        held, xp = self._on, self._xp
        s, z = held.s, held.z
        held.ds = ds = self._slack(self._flat(P + dP)) - s
        held.dz = dz = -z - z * ds * held.per_s
        sums = [xp.sum(a * b) for a, b in ((s, z), (s, dz), (ds, z), (ds, dz))]
        # of no rows the largest ratios are the sums, none
        ratios = (-ds * held.per_s, -dz / z) if len(held.rows) else (sums[0], sums[0])
        found = self._arrays.to_host(xp.stack([*map(xp.max, ratios), *sums]))
        primal, dual = np.maximum(0.0, found[:2]).tolist()
        return primal, dual, tuple(found[2:].tolist())

    def corrector_step(self, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        held = self._on
        u = self._slack(self._flat(dP))
        held.dz2 = (held.ds2 - held.z * u) * held.per_s
        held.ds2 = u
        per_z = 1 / held.z
        return (
            self._largest_decrease(held.ds * held.per_s, u * held.per_s, weights),
            self._largest_decrease(held.dz * per_z, held.dz2 * per_z, weights),
        )

    def _largest_decrease(self, at: Array, slope: Array, weights: Floats) -> Floats:
        """max_k -(at_k + w slope_k), at least 0, for every weight w in [0, 1].

        Lines that stay above two of the lowest ones everywhere cannot be the lowest anywhere.
        """
        xp = self._xp
        if not at.shape[0]:
            return np.zeros(len(weights))
        end = at + slope
        both = [int(xp.argmin(at)), int(xp.argmin(end))]
        known = np.min([float(at[k]) + weights * float(slope[k]) for k in both], axis=0)
        highest = float(known.max())
        (kept,) = xp.nonzero((at <= highest) | (end <= highest))
        if not kept.shape[0]:
            return np.full(len(weights), np.nan)
        at, slope = (self._arrays.to_host(self._gather(part, kept)) for part in (at, slope))
        lowest = (at + weights[:, None] * slope).min(axis=1)
        return np.asarray(np.maximum(-lowest, 0.0))

    def move(self, weights: Both, step: Both) -> None:
        held = self._on
        held.s = held.s + step[0] * (held.ds + weights[0] * held.ds2)
        held.z = held.z + step[1] * (held.dz + weights[1] * held.dz2)
        held.per_s = 1 / held.s
        held.rows.s[:], held.rows.z[:] = map(self._arrays.to_host, (held.s, held.z))

    def violations(self, P: Floats, level: float) -> tuple[Ints, Ints]:
        xp, m, to_host = self._xp, self._m, self._arrays.to_host
        by_i, by_j = np.full((2, self._blocks, m), -1)
        v = self._arrays.from_host(P[:, :m])
        inverse = xp.where(v > 0, 1 / xp.where(v > 0, v, 1.0), 0.0)
        for first, last in self._chunks():
            excess = self._later * v[first:last, :, None]
            excess *= inverse[first:last, None, :]
            excess = xp.reshape(excess, (-1,))
            (above,) = xp.nonzero(excess > level)
            found, worst = to_host(above), to_host(self._gather(excess, above))
            new = ~self._taken(first, last)[found]
            # written in rising order, so that the worst stays
            order = np.argsort(worst[new], kind="stable")
            block, i, j = np.unravel_index(found[new][order], (last - first, m, m))
            by_i[block + first, i] = j
            by_j[block + first, j] = i
        return by_i, by_j

    def _taken(self, first: int, last: int) -> Bools:
        """Which pairs of some blocks are among the rows, (last - first)·m·m."""
        m, rows, own = self._m, self._on.rows, self._own(first, last)
        block, i, j = rows.block[own] - first, rows.i[own], rows.j[own]
        taken = np.zeros((last - first) * m * m, dtype=bool)
        taken[((block * m + i) * m + j)[i < m]] = True
        return taken

    def majorant(self, P: Floats) -> Floats:
        out = np.zeros_like(P)
        v = self._arrays.from_host(P[:, :-1])
        for first, last in self._chunks():
            most = self._xp.max(self._decay * v[first:last, None, :], axis=2)
            out[first:last, :-1] = self._arrays.to_host(most)
        return out

    def charge(self, z: Floats, R: Floats) -> None:
        R -= self._pull(self._arrays.from_host(z))

    def shifted(self, z: Floats, x: Floats) -> Floats:
        held = self._on
        moved = held.z * held.per_s * self._slack(self._flat(x))
        moved = moved + self._arrays.from_host(z)
        return self._arrays.to_host(self._xp.where(moved > 0, moved, 0.0))

    def drain(self, z: Floats, rd: Floats, sweeps: int) -> Floats:
        held, xp, sums = self._on, self._xp, self._arrays.sums
        size = self._blocks * (self._m + 1)
        left, reduced = self._arrays.from_host(z), self._flat(rd)
        constant = xp.arange(size, device=self._arrays.device) % (self._m + 1) == self._m
        for _ in range(sweeps):
            if float(xp.min(reduced)) > -1e-16:
                break
            inflow = sums(held.j, held.e * left, size)
            needy = (reduced < 0) & (inflow > 0)
            share = -reduced / xp.where(needy, inflow, 1.0) * (1 + 1e-12)
            share = xp.where(needy, xp.where(share < 1, share, 1.0), 0.0)
            less = self._gather(share, held.j) * left
            left = left - less
            reduced = reduced + share * inflow - sums(held.i, less, size)
            reduced = xp.where(constant, 0.0, reduced)
        return self._arrays.to_host(left)


def chunk(m: int, arrays: Arrays) -> int:
    """How many blocks are dense at the same time."""
    return max(1, int(arrays.workspace / (8 * _DENSE * m**2)))


def require_device_memory(model: Model, arrays: Arrays) -> None:
    """Raise TooLargeError, with the figure, when the device's free memory will not do."""
    blocks, m = model.blocks, model.variables
    dense = 8.0 * _DENSE * min(blocks, chunk(m, arrays)) * m**2
    # all panels, and what coupling rows take from one
    factors = 4.0 * m * (m + _PANEL) + 8.0 * _PANEL * len(model.coupling.rhs)
    memory.require(
        blocks * (factors + _ROW * _PAIRS * m) + dense,
        what=f"the structured engine for {m:,} secrets and {blocks:,} observables on {arrays.name}",
        where="device",
        remedy="Leave the device out, or use a coarser domain or fewer observables",
        available=arrays.free_bytes(),
    )
