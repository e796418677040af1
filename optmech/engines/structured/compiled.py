"""The blocks' work in compiled kernels, over a few threads, with dense panels or sparse factors;
and orders of the variables in which a block's matrix is nearly block tridiagonal."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from optmech.base.arrays import Bools, Floats, Ints, begins
from optmech.base.native import Work
from optmech.engines.structured import kernels
from optmech.engines.structured.iterative import (
    Conditioner,
    Inverse,
    moved_by,
    part_of,
    pushed,
    require,
    squares,
)
from optmech.engines.structured.kernels import Factors, PairRows, Panels, SparseFactors, Totals
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import NOTHING, RIDGES, Affine, Both, Cone, Rows, Schur
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
_PARTS = 8
"""Parts that blocks are dealt out in; more where there are more threads."""
_SUMMED = 4
"""Parts where inverses are added up: every one has a matrix of its own to add them to."""


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


def _bandwidth(short: Bools, position: Ints) -> int:
    """The median distance from a variable to its last neighbour in this order."""
    i, j = np.nonzero(short | short.T)
    last = position.copy()
    np.maximum.at(last, i, position[j])
    return max(4, int(np.median(last - position)))


class Workers:
    """Threads that share the blocks.

    Blocks are dealt out in ``parts``, more of them than threads. Each thread takes the next part
    once it is done with one, so that nobody waits long for a thread whose processor has other work.
    What the parts are does not depend on how many threads there are, up to as many as parts.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self.parts = max(_PARTS, threads)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self.map = map if self._pool is None else self._pool.map

    def __call__(self, kernel: Work, *, parts: int = 0, alone: bool = False) -> None:
        """Run a kernel on all blocks, in ``self.parts`` or ``parts`` parts, or ``alone``."""
        nt = parts or self.parts
        left = iter(range(nt))

        def work() -> None:
            for t in left:
                kernel(t, nt)

        helpers = 0 if alone else min(nt, self._threads) - 1
        running = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        work()
        for job in running:
            if not job.cancel():  # one that has not begun has nothing left to do
                job.result()


class CompiledBackend:
    """See ``rows.Backend``. Factors are kept between solves."""

    parts = False
    correctors = (8, 0.01)
    _factors: Any

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        self._cone = cone
        self.threads = max(1, min(threads, model.blocks))
        self._each = Workers(self.threads)
        self._prepare(model)

    def _prepare(self, model: Model) -> None:
        """Make room for factors."""
        blocks, m, coupling = model.blocks, model.variables, model.coupling
        nt = max(_SUMMED, self.threads)
        position, self._first = candidates(self._cone)
        self._panels = Panels.free(position, blocks)
        self._factors = Factors(
            base=np.zeros(blocks + 1, dtype=np.int64),
            store=np.zeros(0),
            scale=np.zeros((blocks, m)),
            ridge=np.full(blocks, RIDGES[0]),
            failed=np.zeros(blocks, dtype=np.int64),
        )
        rows = len(coupling.rhs)
        self._totals = Totals(
            sums=np.zeros((nt, len(position), m, m)),
            mixed=np.zeros((nt, rows, m)),
            coupling=np.zeros((nt, rows, rows)),
            inverse=np.zeros((nt, m, m) if rows else (nt, 0, 0)),
            variable=np.ascontiguousarray(coupling.variable),
            value=np.ascontiguousarray(coupling.value),
        )

    def _pass(self, kernel: Work) -> None:
        """A kernel that goes over the rows once."""
        self._each(kernel, alone=self._packed.count <= _LIGHT)

    def structure(self, rows: Rows, changed: Ints) -> None:
        self._packed = PairRows(rows)
        self._each(kernels.partition(changed, self._packed, self._first, self._panels))
        base = begins(self._panels.size)
        store = _room(self._factors.store, base[-1])
        self._factors = self._factors._replace(base=base, store=store)

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        alone = wanted is not None and not wanted.any()
        panels, totals = self._panels, self._totals
        self._packed = PairRows(rows)
        kernel = kernels.factor(self._packed, panels, self._factors, alone, totals)
        if not self._factored(kernel, parts=len(totals.sums)):
            return None
        total = np.zeros(totals.sums.shape[2:])
        for lower, position in zip(totals.sums.sum(axis=0), panels.position, strict=True):
            full = np.tril(lower) + np.tril(lower, -1).T
            total += full[np.ix_(position, position)]
        return Schur(total, totals.mixed.sum(axis=0), totals.coupling.sum(axis=0))

    def _factored(self, kernel: Work, parts: int) -> bool:
        """Run a kernel that factors all blocks, with larger ridges where it has to be."""
        for ridge in RIDGES:
            self._each(kernel, parts=parts)
            failed, own = self._factors.failed > 0, self._factors.ridge
            if not failed.any():
                return True
            own[failed] = np.maximum(own[failed], ridge) * 10
        return False

    def solve(self, B: Floats) -> None:
        self._each(kernels.solve(self._panels, self._factors, B))

    def affine_rhs(self, P: Floats, rd: Floats, B: Floats) -> None:
        self._pass(kernels.affine_rhs(self._packed, P, rd, B))

    def corrector_rhs(self, weights: Both | None, mu: float, B: Floats) -> None:
        self._pass(kernels.corrector_rhs(self._packed, weights, mu, B))

    def affine_step(self, P: Floats, dP: Floats) -> Affine:
        stats = np.empty((self._each.parts, 6))
        self._pass(kernels.affine_step(self._packed, P, dP, stats))
        primal, dual = stats[:, :2].max(axis=0).tolist()
        return primal, dual, tuple(stats[:, 2:].sum(axis=0).tolist())

    def corrector_step(self, dP: Floats, weights: Floats) -> tuple[Floats, Floats]:
        primal, dual = np.empty((2, self._each.parts, len(weights)))
        self._each(kernels.corrector_step(self._packed, dP, weights, primal, dual))
        return primal.max(axis=0), dual.max(axis=0)

    def move(self, weights: Both, step: Both) -> None:
        self._pass(kernels.move(self._packed, weights, step))

    def violations(self, P: Floats, level: float) -> tuple[Ints, Ints]:
        by_i, by_j = np.empty((2, len(P), P.shape[1] - 1), dtype=np.int64)
        later = self._cone.later
        self._each(kernels.violations(self._packed, later, P, level, by_i, by_j))
        return by_i, by_j

    def majorant(self, P: Floats) -> Floats:
        out = np.empty_like(P)
        self._each(kernels.majorant(self._cone.decay, P, out))
        return out

    def charge(self, z: Floats, R: Floats) -> None:
        self._pass(kernels.charge(self._packed, z, R))

    def shifted(self, z: Floats, x: Floats) -> Floats:
        out = np.empty_like(z)
        self._pass(kernels.shifted(self._packed, z, x, out))
        return out

    def drain(self, z: Floats, rd: Floats, sweeps: int) -> Floats:
        out = np.empty_like(z)
        self._each(kernels.drain(self._packed, z, rd, sweeps, out))
        return out


def _room(array: NDArray[Any], size: int) -> NDArray[Any]:
    """An array of at least so many entries: itself, or one with some to spare."""
    return array if size <= len(array) else np.empty(int(size * 1.05) + 1, dtype=array.dtype)


class Field:
    """The precision matrix of a Markov field, as a preconditioner."""

    updated = True
    lasting = TUNING.lasting_edges

    def __init__(self, body: sp.csc_array, spread: Floats, P: Floats, most: int) -> None:
        self._body = sp.csr_array(body)
        self._across = sp.csr_array(body.T)
        self._spread, self._squares = spread, squares(P)
        self.most = most

    def at(self, P: Floats) -> Inverse:
        """See ``Conditioner``."""
        scale = moved_by(self._squares, P)

        def inverse(residual: Floats) -> Floats:
            inner = self._across @ (residual * scale) / self._spread
            return np.asarray((self._body @ inner) * scale, np.float64)

        return inverse


class SparseBackend(CompiledBackend):
    """For programs of pairs and row sums alone, whose blocks are large and hold few pairs a
    variable; see ``rows.Backend``."""

    parts = True
    stages = range(3)  # the field of the pairs at first, a part of the matrix, and all of it
    roughest = TUNING.iterated_to
    correctors = TUNING.iterated_correctors  # a solve takes several

    def _prepare(self, model: Model) -> None:
        self._start(model, sp.csc_array(self._cone.short.astype(np.float64)))

    def _start(self, model: Model, graph: sp.csc_array) -> None:
        """Room for factors in an order of the variables by a graph of them."""
        blocks, m = model.blocks, model.variables
        self._ordered = np.zeros(blocks, dtype=np.int64)
        self._begun, self._position = 0, least_degree(graph)
        self._pattern: SparseFactors | None = None
        self._factors = SparseFactors(
            position=np.tile(self._position, (blocks, 1)),
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
        self._packed = PairRows(rows)
        if not self._begun:
            self._begin(rows)
        own = self._factors
        self._each(kernels.pattern(changed, self._packed, own, False))
        grown = changed[own.column[changed, -1] > _GROWN * self._ordered[changed]]
        if self._ordered.any() and len(grown):
            graphs = (self._graph(rows, o) for o in grown.tolist())
            own.position[grown] = list(self._each.map(least_degree, graphs))
            self._each(kernels.pattern(grown, self._packed, own, False))
        self._ordered[grown] = own.column[grown, -1]
        self._factors = self._laid_out(rows, own, np.arange(len(own.column)))

    def _laid_out(self, rows: Rows, factors: SparseFactors, blocks: Ints) -> SparseFactors:
        """Factors whose sizes are known, with room, and with the rows of some blocks' columns."""
        base = begins(factors.column[:, -1])
        row, value = (_room(part, base[-1]) for part in (factors.row, factors.value))
        found = factors._replace(base=base, row=row, value=value)
        self._each(kernels.pattern(blocks, PairRows(rows), found, True))
        return found

    def _begin(self, rows: Rows) -> None:
        """See whether all blocks begin with the same pairs, so that a field of these is near the
        sum of the inverses."""
        self._begun = int(rows.offset[1])
        ends = np.stack([rows.i, rows.j])
        even = not np.ptp(np.diff(rows.offset)) and len(self._position) >= TUNING.field_from
        if not (even and (ends.reshape(2, -1, self._begun) == ends[:, None, : self._begun]).all()):
            self.stages = range(1, 3)

    def _common(self, rows: Rows) -> SparseFactors:
        """The pattern of factors of the rows that all blocks began with, as of the first block."""
        if self._pattern is None:
            first, own = np.zeros(1, dtype=np.int64), self._factors
            found = own._replace(
                position=np.tile(self._position, (len(own.parent), 1)),
                parent=own.parent.copy(),
                column=np.zeros_like(own.column),
                row=own.row[:0],
                value=own.value[:0],
            )
            self._each(kernels.pattern(first, PairRows(rows), found, False))
            self._pattern = self._laid_out(rows, found, first)
        return self._pattern

    def _graph(self, rows: Rows, o: int) -> sp.csc_array:
        """The pairs that a block holds."""
        m = self._factors.parent.shape[1]
        own = slice(rows.offset[o], rows.offset[o + 1])
        i, j = rows.i[own], rows.j[own]
        i, j = i[i < m], j[i < m]
        return sp.csc_array((np.ones(len(i)), (i, j)), shape=(m, m))

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        blocks, m = self._factors.parent.shape
        some = np.ones((blocks, m), dtype=bool) if wanted is None else wanted
        none = not some.any()
        parts = self._each.parts if none else 2 if self.threads < _SUMMED else _SUMMED
        size = 0 if none else m
        total, diagonal = np.empty((-(-parts // 2), size, size)), np.empty((parts, size))
        self._packed = PairRows(rows)
        kernel = kernels.sparse_factor(self._packed, self._factors, some, total, diagonal)
        if not self._factored(kernel, parts=parts):
            return None
        return Schur(_symmetric(total, diagonal), np.zeros((0, m)), np.zeros((0, 0)))

    def solve(self, B: Floats) -> None:
        self._each(kernels.sparse_solve(self._factors, B))

    def conditioner(self, state: State, stage: int) -> Conditioner:
        if stage:
            return part_of(self, state, whole=stage == 2)
        require(self.factor(state.rows, NOTHING))
        # what all blocks began with; rows that joined come after these
        offset = state.rows.offset
        own = (offset[:-1, None] + np.arange(self._begun)).ravel()
        rows = state.rows.pick(np.arange(len(offset)) * self._begun, own)
        most = int(TUNING.most_by_field * len(self._position))
        return self.field(rows, self._common(rows), state.P, most)

    def field(self, rows: Rows, factors: SparseFactors, P: Floats, most: int) -> Conditioner:
        """The Markov field near the sum of the inverses of blocks with these rows, all of which
        have the first one's pattern of ``factors``; given up after ``most`` gradients."""
        column = factors.column[0]
        size = int(column[-1])
        index, total = factors.row[:size], np.empty((self._each.parts, size))
        self._each(kernels.covariances(PairRows(rows), factors, total))
        weight, spread = np.empty(size), np.empty(len(column) - 1)
        covariance = total.sum(axis=0)
        self._each(kernels.regressed(column, index, covariance, weight, spread))
        if not np.isfinite(weight).all():
            raise np.linalg.LinAlgError("the sum of the inverses has no regressions")
        # regressions in their order, of variables as they are given
        regressed = np.argsort(factors.position[0])[index]
        body = sp.csc_array((weight, regressed, column), shape=(len(spread), len(spread)))
        return Field(body, spread, P, most)

    def summed(self, y: Floats, rough: bool) -> Floats:
        own = pushed(self, y, (len(self._factors.parent), len(y) + 1))
        return np.asarray(own[:, :-1].sum(axis=0))


def least_degree(graph: sp.csc_array) -> Ints:
    """The places of variables in an order of least degree of a graph (m, m), either way."""
    from scipy.sparse.linalg import spilu

    both = graph + graph.T
    dominant = sp.csc_array(sp.diags_array(both.sum(axis=1) + 1.0) - both)
    # the order comes before the factor, of which next to nothing is made
    found = spilu(
        dominant,
        drop_tol=1.0,
        fill_factor=1,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.asarray(found.perm_c, dtype=np.int64)


def _symmetric(triangles: Floats, diagonal: Floats) -> Floats:
    """The sum of symmetric matrices of which two share an array, as ``kernels.sparse_factor``
    leaves them; uses it up."""
    total: Floats = triangles[0]
    for other in triangles[1:]:
        total += other
    for k in range(1, len(total)):
        total[k, :k] += total[:k, k]
        total[:k, k] = total[k, :k]
    np.fill_diagonal(total, diagonal.sum(axis=0))
    return total
