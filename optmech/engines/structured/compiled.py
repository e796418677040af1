"""The blocks' work in compiled kernels, over a few threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured import blas, factoring, kernels
from optmech.engines.structured.backend import RIDGES, Affine, Schur
from optmech.engines.structured.model import Model
from optmech.engines.structured.ordering import candidates
from optmech.engines.structured.packed import (
    CouplingEntries,
    Directions,
    Factors,
    PairRows,
    Panels,
    Totals,
)
from optmech.engines.structured.pairs import Cone, Rows

_LIGHT = 150_000
"""Pair rows up to which handing a pass over to another thread costs more than it saves."""


class CompiledBackend:
    """See ``backend.Backend``. Factors are kept between solves."""

    parts = False
    correctors = (8, 0.01)

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        blocks, m, coupling = model.blocks, model.variables, model.coupling
        self._cone = cone
        self.threads = nt = max(1, min(threads, blocks))
        self._pool = ThreadPoolExecutor(nt) if nt > 1 else None
        self._address = blas.addresses()
        position, self._first = candidates(cone)
        self._panels = free_panels(position, blocks)
        self._factors = Factors(
            base=np.zeros(blocks + 1, dtype=np.int64),
            store=np.zeros(0),
            scale=np.zeros((blocks, m)),
            ridge=np.full(blocks, RIDGES[0]),
            failed=np.zeros(blocks, dtype=np.int64),
        )
        self._coupling = CouplingEntries(coupling.variable, coupling.value)
        rows = len(coupling.rhs)
        self._totals = Totals(
            sums=np.zeros((nt, len(position), m, m)),
            mixed=np.zeros((nt, rows, m)),
            coupling=np.zeros((nt, rows, rows)),
            inverse=np.zeros((nt, m, m) if rows else (nt, 0, 0)),
        )

    def _each(self, kernel: Callable[..., object], *arguments: object, few: int = 0) -> None:
        """Run a kernel on every thread, or on ``few``."""
        nt = few or self.threads
        if self._pool is None or nt == 1:
            kernel(0, 1, *arguments)
            return
        running = [self._pool.submit(kernel, t, nt, *arguments) for t in range(1, nt)]
        kernel(0, nt, *arguments)
        for job in running:
            job.result()

    def _pass(self, kernel: Callable[..., object], rows: Rows, *arguments: object) -> None:
        """A kernel that goes over the rows once."""
        if len(rows) > _LIGHT:
            self._each(kernel, packed(rows), *arguments)
            return
        for t in range(self.threads):
            kernel(t, self.threads, packed(rows), *arguments)

    def structure(self, rows: Rows, changed: Ints) -> None:
        self._each(factoring.partition, changed, packed(rows), self._first, self._panels)
        base = np.concatenate([[0], np.cumsum(self._panels.size)])
        store = self._factors.store
        if base[-1] > len(store):
            store = np.empty(int(base[-1] * 1.05) + 1)
        self._factors = self._factors._replace(base=base, store=store)

    def residual(self, rows: Rows, R: Floats) -> float:
        self.charge(rows, rows.z, R)
        return float((rows.s * rows.z).sum())

    def factor(self, rows: Rows, wanted: NDArray[np.bool_] | None = None) -> Schur | None:
        alone = wanted is not None and not wanted.any()
        for ridge in RIDGES:
            self._each(
                factoring.factor, self._address, packed(rows), self._panels, self._factors,
                self._coupling, alone, self._totals,
            )  # fmt: skip
            failed = self._factors.failed > 0
            if not failed.any():
                return self._schur_matrix()
            own = self._factors.ridge
            own[failed] = np.maximum(own[failed], ridge) * 10
        return None

    def _schur_matrix(self) -> Schur:
        totals = self._totals
        total = np.zeros(totals.sums.shape[2:])
        for lower, position in zip(totals.sums.sum(axis=0), self._panels.position, strict=True):
            full = np.tril(lower) + np.tril(lower, -1).T
            total += full[np.ix_(position, position)]
        return Schur(total, totals.mixed.sum(axis=0), totals.coupling.sum(axis=0))

    def solve(self, B: Floats) -> None:
        self._each(factoring.solve, self._panels, self._factors, B)

    def affine_rhs(self, rows: Rows, P: Floats, rd: Floats, B: Floats) -> None:
        self._pass(kernels.affine_rhs, rows, P, rd, B)

    def second_order_rhs(self, rows: Rows, mu: float, B: Floats) -> None:
        self._pass(kernels.second_order_rhs, rows, _changes(rows), mu, B)

    def corrector_rhs(self, rows: Rows, weights: tuple[float, float], mu: float, B: Floats) -> None:
        self._pass(kernels.corrector_rhs, rows, _changes(rows), *weights, mu, B)

    def affine_step(self, rows: Rows, P: Floats, dP: Floats) -> Affine:
        stats = np.empty((self.threads, 6))
        self._pass(kernels.affine_step, rows, P, dP, _changes(rows), stats)
        a, b, c, d = stats[:, 2:].sum(axis=0).tolist()
        return Affine(float(stats[:, 0].max()), float(stats[:, 1].max()), (a, b, c, d))

    def corrector_step(self, rows: Rows, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        primal, dual = np.empty((2, self.threads, len(weights)))
        self._each(kernels.corrector_step, packed(rows), dP, _changes(rows), weights, primal, dual)
        return primal.max(axis=0), dual.max(axis=0)

    def move(self, rows: Rows, weights: tuple[float, float], step: tuple[float, float]) -> None:
        self._pass(kernels.move, rows, _changes(rows), *weights, *step)

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.empty((2, len(P), P.shape[1] - 1), dtype=np.int64)
        self._each(kernels.violations, packed(rows), self._cone.later, P, level, by_i, by_j)
        return by_i, by_j

    def majorant(self, P: Floats) -> Floats:
        out = np.empty_like(P)
        self._each(kernels.majorant, self._cone.decay, P, out)
        return out

    def charge(self, rows: Rows, z: Floats, R: Floats) -> None:
        self._pass(kernels.charge, rows, z, R)

    def shifted(self, rows: Rows, z: Floats, x: Floats) -> Floats:
        out = np.empty(len(rows))
        self._pass(kernels.shifted, rows, z, x, out)
        return out

    def drain(self, rows: Rows, z: Floats, rd: Floats, sweeps: int) -> Floats:
        out = np.empty(len(rows))
        self._each(kernels.drain, packed(rows), z, rd, sweeps, out)
        return out


def packed(rows: Rows) -> PairRows:
    """The rows as kernels are given them."""
    return PairRows(rows.offset, rows.i, rows.j, rows.e, rows.s, rows.z)


def _changes(rows: Rows) -> Directions:
    return Directions(rows.ds, rows.dz, rows.ds2, rows.dz2)


def free_panels(position: Ints, blocks: int) -> Panels:
    """Room for the panels of some blocks."""
    ends = np.zeros((blocks, position.shape[1] + 2), dtype=np.int64)
    order, number, size = (np.zeros(blocks, dtype=np.int64) for _ in range(3))
    return Panels(position, order, number, ends, size)


def each(threads: int, kernel: Callable[..., object], *arguments: object) -> None:
    """Run a kernel on every thread's share of the blocks."""
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(kernel, t, threads, *arguments) for t in range(threads)]:
            job.result()
