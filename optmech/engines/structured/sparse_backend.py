"""The blocks' work in compiled kernels where blocks are large and hold few pairs a variable."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured import blas, sparse
from optmech.engines.structured.backend import RIDGES, Schur
from optmech.engines.structured.compiled import CompiledBackend, packed
from optmech.engines.structured.model import Model
from optmech.engines.structured.packed import SparseFactors
from optmech.engines.structured.pairs import Cone, Rows
from optmech.engines.structured.tuning import TUNING

_GROWN = 1.3
"""By which a block's factor grows before it is ordered anew: with the pairs that it holds in the
end the order of the short ones leads to three times the entries."""
_SUMMED = 4
"""Threads that add up inverses: each has a matrix of its own to add them to."""


class SparseBackend(CompiledBackend):
    """For programs of pairs and row sums alone; see ``backend.Backend``."""

    parts = True
    correctors = TUNING.iterated_correctors  # a solve takes several

    def __init__(self, model: Model, cone: Cone, threads: int) -> None:
        blocks, m = model.blocks, model.variables
        self._cone = cone
        self.threads = nt = max(1, min(threads, blocks))
        self._pool = ThreadPoolExecutor(nt) if nt > 1 else None
        self._address = blas.addresses()
        self._ordered = np.zeros(blocks, dtype=np.int64)
        self._sparse = SparseFactors(
            position=np.tile(
                least_degree(sp.csc_array(cone.short.astype(np.float64))), (blocks, 1)
            ),
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
        own = self._sparse
        self._each(sparse.count, changed, packed(rows), own)
        grown = changed[own.column[changed, -1] > _GROWN * self._ordered[changed]]
        if self._ordered.any() and len(grown):
            graphs = (self._graph(rows, o) for o in grown.tolist())
            orders = map if self._pool is None else self._pool.map
            for o, position in zip(grown.tolist(), orders(least_degree, graphs), strict=True):
                own.position[o] = position
            self._each(sparse.count, grown, packed(rows), own)
        self._ordered[grown] = own.column[grown, -1]
        base = np.concatenate([[0], np.cumsum(own.column[:, -1])])
        row, value = own.row, own.value
        if base[-1] > len(row):
            size = int(base[-1] * 1.05) + 1
            row, value = np.empty(size, dtype=np.int32), np.empty(size)
        self._sparse = own._replace(base=base, row=row, value=value)
        self._each(sparse.fill, packed(rows), self._sparse)

    def _graph(self, rows: Rows, o: int) -> sp.csc_array:
        """The pairs that a block holds."""
        m = self._sparse.parent.shape[1]
        own = slice(rows.offset[o], rows.offset[o + 1])
        i, j = rows.i[own], rows.j[own]
        i, j = i[i < m], j[i < m]
        return sp.csc_array((np.ones(len(i)), (i, j)), shape=(m, m))

    def factor(self, rows: Rows, wanted: NDArray[np.bool_] | None = None) -> Schur | None:
        blocks, m = self._sparse.parent.shape
        some = np.ones((blocks, m), dtype=np.bool_) if wanted is None else wanted
        none = not some.any()
        few = self.threads if none else min(self.threads, _SUMMED)
        total = np.empty((few, 0, 0) if none else (few, m, m))
        for ridge in RIDGES:
            self._each(
                sparse.factor, self._address, packed(rows), self._sparse, some, total, few=few
            )
            failed = self._sparse.failed > 0
            if not failed.any():
                return Schur(_symmetric(total), np.zeros((0, m)), np.zeros((0, 0)))
            own = self._sparse.ridge
            own[failed] = np.maximum(own[failed], ridge) * 10
        return None

    def solve(self, B: Floats) -> None:
        self._each(sparse.solve, self._sparse, B)


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
