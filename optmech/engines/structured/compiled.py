"""The blocks' work in compiled kernels, over a few threads, with dense panels or sparse factors;
and orders of the variables in which a block's matrix is nearly block tridiagonal."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured import blas, factoring, kernels, sparse
from optmech.engines.structured.backend import RIDGES, Affine, Schur
from optmech.engines.structured.factoring import (
    CouplingEntries,
    Directions,
    Factors,
    PairRows,
    Panels,
    Totals,
)
from optmech.engines.structured.iterative import Conditioner, part_of, pushed, whole_of
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Cone, Rows
from optmech.engines.structured.state import State
from optmech.engines.structured.tuning import TUNING

_MANY = 1_200
"""Variables from which on there is one order, and its axes are found by iteration."""
_KNOWN = 0.8
"""Share of the pairs with a path from which on the others are taken for as long as the longest."""
_LIGHT = 150_000
"""Pair rows up to which handing a pass over to another thread costs more than it saves."""
_GROWN = 1.3
"""By which a block's factor grows before it is ordered anew: with the pairs that it holds in the
end the order of the short ones leads to three times the entries."""
_SUMMED = 4
"""Threads that add up inverses: each has a matrix of its own to add them to."""


def candidates(cone: Cone) -> tuple[Ints, Ints]:
    """Orders to try, as positions (k, m) of the variables, and a first panel size for each.

    The given order, reverse Cuthill-McKee, and sweeps along the main axes of the metric (its
    principal coordinates, which on a grid are its rows and columns).
    """
    count = len(cone.short)
    orders = [np.arange(count)]
    if count > 2:
        graph = sp.csr_array((cone.short | cone.short.T).astype(np.int8))
        orders.append(np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64))
        orders += _sweeps(cone)
    position = np.array([np.argsort(order) for order in orders])
    first = np.array([_bandwidth(cone.short, p) for p in position])
    if count > _MANY:  # sums of inverses are kept for every order
        best = [int(first.argmin())]
        return position[best], first[best]
    return position, first


def _sweeps(cone: Cone) -> list[Ints]:
    """Sort by each of two principal coordinates of the path metric, where it is mostly known."""
    known = cone.decay > 0
    if not known.all() and known.mean() < _KNOWN:
        return []
    count = len(cone.decay)
    path = -np.log(np.where(known, cone.decay, cone.decay[known].min()))
    squared = (np.minimum(path, path.T)) ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    if count > _MANY:
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(0).standard_normal(count)
        vectors = eigsh(-centred, k=2, which="LA", v0=start, tol=1e-4)[1]
    else:
        vectors = np.linalg.eigh(-centred)[1]
    return [
        _rounded_order(vectors[:, -1], vectors[:, -2]),
        _rounded_order(vectors[:, -2], vectors[:, -1]),
    ]


def _rounded_order(main: Floats, other: Floats) -> Ints:
    """By ``main``; values that differ by rounding only are ordered by ``other``."""
    steps = np.round(main / max(float(np.ptp(main)), 1e-300) * 1e6)
    return np.lexsort((other, steps)).astype(np.int64)


def _bandwidth(short: NDArray[np.bool_], position: Ints) -> int:
    """The median distance from a variable to its last neighbour in this order."""
    i, j = np.nonzero(short | short.T)
    last = position.copy()
    np.maximum.at(last, i, position[j])
    return max(4, int(np.median(last - position)))


class Workers:
    """Threads that share the blocks."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.map = map if self._pool is None else self._pool.map

    def __call__(self, kernel: Callable[..., object], *arguments: object, few: int = 0) -> None:
        """Run a kernel on every thread, or on ``few``."""
        nt = few or self._threads
        if self._pool is None or nt == 1:
            kernel(0, 1, *arguments)
            return
        running = [self._pool.submit(kernel, t, nt, *arguments) for t in range(1, nt)]
        kernel(0, nt, *arguments)
        for job in running:
            job.result()


class CompiledBackend:
    """See ``backend.Backend``. Factors are kept between solves."""

    parts = False
    correctors = (8, 0.01)
    _factors: Any

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        self._cone = cone
        self.threads = max(1, min(threads, model.blocks))
        self._each = Workers(self.threads)
        self._address = blas.addresses()
        self._prepare(model)

    def _prepare(self, model: Model) -> None:
        """Make room for factors."""
        blocks, m, coupling, nt = model.blocks, model.variables, model.coupling, self.threads
        position, self._first = candidates(self._cone)
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
        panels, totals = self._panels, self._totals
        given = panels, self._factors, self._coupling, alone, totals
        if not self._factored(rows, factoring.factor, *given):
            return None
        total = np.zeros(totals.sums.shape[2:])
        for lower, position in zip(totals.sums.sum(axis=0), panels.position, strict=True):
            full = np.tril(lower) + np.tril(lower, -1).T
            total += full[np.ix_(position, position)]
        return Schur(total, totals.mixed.sum(axis=0), totals.coupling.sum(axis=0))

    def _factored(
        self, rows: Rows, kernel: Callable[..., object], *arguments: object, few: int = 0
    ) -> bool:
        """Run a kernel that factors all blocks, with larger ridges where it has to be."""
        for ridge in RIDGES:
            self._each(kernel, self._address, packed(rows), *arguments, few=few)
            failed, own = self._factors.failed > 0, self._factors.ridge
            if not failed.any():
                return True
            own[failed] = np.maximum(own[failed], ridge) * 10
        return False

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


class SparseBackend(CompiledBackend):
    """For programs of pairs and row sums alone, whose blocks are large and hold few pairs a
    variable; see ``backend.Backend``."""

    parts = True
    stages = 2  # a part of the matrix, and all of it
    roughest = TUNING.iterated_to
    lasting = TUNING.lasting
    correctors = TUNING.iterated_correctors  # a solve takes several

    def _prepare(self, model: Model) -> None:
        position = least_degree(sp.csc_array(self._cone.short.astype(np.float64)))
        self._start(model.blocks, model.variables, position)

    def _start(self, blocks: int, m: int, position: Ints) -> None:
        """Room for factors in an order of the variables."""
        self._ordered = np.zeros(blocks, dtype=np.int64)
        self._factors = sparse.SparseFactors(
            position=np.tile(position, (blocks, 1)),
            parent=np.zeros((blocks, m), dtype=np.int32),
            column=np.zeros((blocks, m + 1), dtype=np.int64),
            base=np.zeros(blocks + 1, dtype=np.int64),
            row=np.zeros(0, dtype=np.int32),
            value=np.zeros(0),
            scale=np.zeros((blocks, m)),
            ridge=np.full(blocks, RIDGES[0]),
            failed=np.zeros(blocks, dtype=np.int64),
        )

    def structure(self, rows: Rows, changed: Ints) -> None:
        own = self._factors
        self._each(sparse.count, changed, packed(rows), own)
        grown = changed[own.column[changed, -1] > _GROWN * self._ordered[changed]]
        if self._ordered.any() and len(grown):
            graphs = (self._graph(rows, o) for o in grown.tolist())
            orders = self._each.map(least_degree, graphs)
            for o, position in zip(grown.tolist(), orders, strict=True):
                own.position[o] = position
            self._each(sparse.count, grown, packed(rows), own)
        self._ordered[grown] = own.column[grown, -1]
        base = np.concatenate([[0], np.cumsum(own.column[:, -1])])
        row, value = own.row, own.value
        if base[-1] > len(row):
            size = int(base[-1] * 1.05) + 1
            row, value = np.empty(size, dtype=np.int32), np.empty(size)
        self._factors = own._replace(base=base, row=row, value=value)
        self._each(sparse.fill, packed(rows), self._factors)

    def _graph(self, rows: Rows, o: int) -> sp.csc_array:
        """The pairs that a block holds."""
        m = self._factors.parent.shape[1]
        own = slice(rows.offset[o], rows.offset[o + 1])
        i, j = rows.i[own], rows.j[own]
        i, j = i[i < m], j[i < m]
        return sp.csc_array((np.ones(len(i)), (i, j)), shape=(m, m))

    def factor(self, rows: Rows, wanted: NDArray[np.bool_] | None = None) -> Schur | None:
        blocks, m = self._factors.parent.shape
        some = np.ones((blocks, m), dtype=np.bool_) if wanted is None else wanted
        none = not some.any()
        few = self.threads if none else min(self.threads, _SUMMED)
        total = np.empty((few, 0, 0) if none else (few, m, m))
        if not self._factored(rows, sparse.factor, self._factors, some, total, few=few):
            return None
        return Schur(_symmetric(total), np.zeros((0, m)), np.zeros((0, 0)))

    def solve(self, B: Floats) -> None:
        self._each(sparse.solve, self._factors, B)

    def conditioner(self, state: State, stage: int) -> Conditioner:
        return whole_of(self, state) if stage else part_of(self, state)

    def summed(self, y: Floats, rough: bool) -> Floats:
        own = pushed(self, y, (len(self._factors.parent), len(y) + 1))
        return np.asarray(own[:, :-1].sum(axis=0))


def least_degree(graph: sp.csc_array) -> Ints:
    """The places of variables in an order of least degree of a graph (m, m), either way."""
    from scipy.sparse.linalg import splu

    both = graph + graph.T
    dominant = sp.csc_array(sp.diags_array(both.sum(axis=1) + 1.0) - both)
    found = splu(
        dominant,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.asarray(found.perm_c, dtype=np.int64)


def _symmetric(lower: Floats) -> Floats:
    """The sum of matrices of which the lower triangles are there; uses them up."""
    total: Floats = lower[0]
    for other in lower[1:]:
        total += other
    for k in range(1, len(total)):
        total[:k, k] = total[k, :k]
    return total
