"""The blocks' work in compiled kernels, over a few threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured import blas, factoring, kernels, pricing
from optmech.engines.structured.backend import RIDGES, Affine, Schur
from optmech.engines.structured.model import Model
from optmech.engines.structured.ordering import candidates
from optmech.engines.structured.pairs import Cone, Rows

_SWEEPS = 60
_LIGHT = 150_000
"""Pair rows up to which handing a pass over to another thread costs more than it saves."""


class CompiledBackend:
    """See ``backend.Backend``. Factors are kept between solves."""

    correctors = (8, 0.01)

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        blocks, m = model.blocks, model.variables
        self._cone = cone
        self._links = model.links
        self._threads = max(1, min(threads, blocks))
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None
        self._address = blas.addresses()
        self._position, self._first = candidates(cone)
        orders = len(self._position)
        self._ends = np.zeros((blocks, m + 2), dtype=np.int64)
        self._panels, self._order, self._size = (np.zeros(blocks, dtype=np.int64) for _ in "poz")
        self._store, self._base = np.zeros(0), np.zeros(blocks + 1, dtype=np.int64)
        self._scale = np.zeros((blocks, m))
        links = len(self._links.rhs)
        nt = self._threads
        self._schur = np.zeros((nt, orders, m, m))
        self._coupled = np.zeros((nt, links, m))
        self._linked = np.zeros((nt, links, links))
        self._inverse = np.zeros((nt, m, m) if links else (nt, 0, 0))
        self._info = np.zeros(blocks, dtype=np.int64)
        self._ridge = np.full(blocks, RIDGES[0])

    def _each(self, kernel: Callable[..., object], *arguments: object) -> None:
        nt = self._threads
        if self._pool is None:
            kernel(0, 1, *arguments)
            return
        running = [self._pool.submit(kernel, t, nt, *arguments) for t in range(1, nt)]
        kernel(0, nt, *arguments)
        for job in running:
            job.result()

    def _pass(self, kernel: Callable[..., object], rows: Rows, *arguments: object) -> None:
        """A kernel that goes over the rows once."""
        if len(rows) > _LIGHT:
            self._each(kernel, *arguments)
            return
        for t in range(self._threads):
            kernel(t, self._threads, *arguments)

    def structure(self, rows: Rows, changed: Ints) -> None:
        self._each(
            factoring.partition, changed, rows.offset, rows.i, rows.j, self._position, self._first,
            self._ends, self._panels, self._order, self._size,
        )  # fmt: skip
        self._base = np.concatenate([[0], np.cumsum(self._size)])
        if self._base[-1] > len(self._store):
            self._store = np.empty(int(self._base[-1] * 1.05) + 1)

    def residual(self, rows: Rows, P: Floats, R: Floats) -> tuple[float, float]:
        stats = np.empty((len(P), 2))
        self._pass(
            kernels.residual, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z, P, R, stats
        )
        return float(stats[:, 0].max(initial=0.0)), float(stats[:, 1].sum())

    def factor(self, rows: Rows) -> Schur | None:
        for ridge in RIDGES:
            self._factor(rows)
            if not self._info.any():
                return self._schur_matrix()
            failed = self._info > 0
            self._ridge[failed] = np.maximum(self._ridge[failed], ridge) * 10
        return None

    def _factor(self, rows: Rows) -> None:
        links = self._links
        self._each(
            factoring.factor, self._address, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z,
            self._position, self._ends, self._panels, self._order, self._base, self._store,
            self._scale, self._schur, links.variable, links.value, self._coupled, self._linked,
            self._inverse, self._info, self._ridge,
        )  # fmt: skip

    def _schur_matrix(self) -> Schur:
        total = np.zeros(self._schur.shape[2:])
        for lower, position in zip(self._schur.sum(axis=0), self._position, strict=True):
            full = np.tril(lower) + np.tril(lower, -1).T
            total += full[np.ix_(position, position)]
        return Schur(total, self._coupled.sum(axis=0), self._linked.sum(axis=0))

    def solve(self, B: Floats) -> None:
        self._each(
            factoring.solve, self._address, self._position, self._ends, self._panels, self._order,
            self._base, self._store, self._scale, B,
        )  # fmt: skip

    def affine_rhs(self, rows: Rows, P: Floats, rd: Floats, B: Floats) -> None:
        self._pass(
            kernels.affine_rhs, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z, P, rd, B
        )

    def second_order_rhs(self, rows: Rows, mu: float, B: Floats) -> None:
        self._pass(
            kernels.second_order_rhs, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.ds,
            rows.dz, rows.ds2, mu, B,
        )  # fmt: skip

    def corrector_rhs(self, rows: Rows, weights: tuple[float, float], mu: float, B: Floats) -> None:
        self._pass(
            kernels.corrector_rhs, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z,
            rows.ds, rows.dz, rows.ds2, rows.dz2, *weights, mu, B,
        )  # fmt: skip

    def affine_step(self, rows: Rows, P: Floats, dP: Floats) -> Affine:
        stats = np.empty((self._threads, 6))
        self._pass(
            kernels.affine_step, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z, P, dP,
            rows.ds, rows.dz, stats,
        )  # fmt: skip
        a, b, c, d = stats[:, 2:].sum(axis=0).tolist()
        return Affine(float(stats[:, 0].max()), float(stats[:, 1].max()), (a, b, c, d))

    def corrector_step(self, rows: Rows, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        primal, dual = np.empty((2, self._threads, len(weights)))
        self._each(
            kernels.corrector_step, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z, dP,
            rows.ds, rows.dz, rows.ds2, rows.dz2, weights, primal, dual,
        )  # fmt: skip
        return primal.max(axis=0), dual.max(axis=0)

    def move(self, rows: Rows, weights: tuple[float, float], step: tuple[float, float]) -> None:
        self._pass(
            kernels.move, rows, rows.s, rows.z, rows.ds, rows.dz, rows.ds2, rows.dz2, *weights,
            *step,
        )  # fmt: skip

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.empty((2, len(P), P.shape[1] - 1), dtype=np.int64)
        self._each(
            kernels.violations, rows.offset, rows.i, rows.j, self._cone.later, P, level, by_i, by_j
        )
        return by_i, by_j

    def majorant(self, P: Floats) -> Floats:
        out = np.empty_like(P)
        self._each(kernels.majorant, self._cone.decay, P, out)
        return out

    def charge(self, rows: Rows, z: Floats, R: Floats) -> None:
        self._pass(kernels.charge, rows, rows.offset, rows.i, rows.j, rows.e, z, R)

    def shifted(self, rows: Rows, z: Floats, x: Floats) -> Floats:
        out = np.empty(len(rows))
        self._pass(
            kernels.shifted, rows, rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z, z, x, out
        )
        return out

    def drain(self, rows: Rows, z: Floats, rd: Floats, sweeps: int) -> Floats:
        out = np.empty(len(rows))
        self._each(kernels.drain, rows.offset, rows.i, rows.j, rows.e, z, rd, sweeps, out)
        return out


class Pricing:
    """Prices blocks over the short pairs, which all of them share."""

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        m = model.variables
        i, j = np.nonzero(cone.short)
        self._m, self._threads = m, threads
        self.i, self.j = i.astype(np.int32), j.astype(np.int32)
        self.e = cone.e[i, j]
        self._rows_i = np.concatenate([self.i, np.full(m, m, dtype=np.int32)])
        self._rows_j = np.concatenate([self.j, np.arange(m, dtype=np.int32)])
        self._rows_e = np.concatenate([self.e, np.full(m, -1.0)])
        positions, first = candidates(cone)
        ends = np.zeros((1, m + 2), dtype=np.int64)
        panels, order, size = (np.zeros(1, dtype=np.int64) for _ in "poz")
        factoring.partition(
            0, 1, np.zeros(1, dtype=np.int64), np.array([0, len(i)]), self.i, self.j, positions,
            first, ends, panels, order, size,
        )  # fmt: skip
        self._order = (positions[order[0]], ends[0], int(panels[0]), int(size[0]))
        self._address = blas.addresses()

    def multipliers(self, cost: Floats, goal: float) -> tuple[Floats, Floats]:
        """Multipliers (blocks, pairs) of the best columns with entries up to one, and the
        reduced costs (blocks, m) that they leave: hardly negative where there is no use for a
        block. The latter come first."""
        _, z = self._solved(cost, goal)
        blocks, pairs = len(cost), len(self.i)
        offset = np.arange(blocks + 1) * pairs
        i, j, e = (np.tile(part, blocks) for part in (self.i, self.j, self.e))
        z = np.ascontiguousarray(z[:, :pairs]).ravel()
        left = cost.copy()
        each(self._threads, kernels.charge, offset, i, j, e, z, left)
        out = np.empty(blocks * pairs)
        each(self._threads, kernels.drain, offset, i, j, e, z, left, _SWEEPS, out)
        left = cost.copy()
        each(self._threads, kernels.charge, offset, i, j, e, out, left)
        return left[:, :-1], out.reshape(blocks, pairs)

    def sums(self, cost: Floats, target: float) -> Floats:
        """Sums of the columns (blocks,) whose products of slacks and multipliers are ``target``."""
        return np.asarray(self._solved(cost, target)[0][:, :-1].sum(axis=1))

    def _solved(self, cost: Floats, target: float) -> tuple[Floats, Floats]:
        """Columns and multipliers whose products of slacks and multipliers are ``target``."""
        v, s, z = self._middle(cost)
        each(
            self._threads, pricing.price, self._address, self._rows_i, self._rows_j, self._rows_e,
            *self._order, cost, target, v, s, z,
        )  # fmt: skip
        return v, z

    def _middle(self, cost: Floats) -> tuple[Floats, Floats, Floats]:
        """The middle of the box, its slacks, and multipliers on the scale of the costs."""
        v = np.full((len(cost), self._m + 1), 0.5)
        v[:, -1] = -1.0
        s = self._rows_e * v[:, self._rows_j] - v[:, self._rows_i]
        return v, s, np.abs(cost).max(axis=1, initial=1e-300)[:, None] / s


def each(threads: int, kernel: Callable[..., object], *arguments: object) -> None:
    """Run a kernel on every thread's share of the blocks."""
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(kernel, t, threads, *arguments) for t in range(threads)]:
            job.result()
