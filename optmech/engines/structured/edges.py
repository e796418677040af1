"""Programs whose pairs are the edges of a sparse graph, as those of a road network: memory in
proportion to edges times blocks, and nothing for all pairs.

All blocks hold all edges from the start and share one pattern of factors, so that no pair joins
later. What couples the blocks is the sum of their inverses. Each of these is the covariance matrix
of a Markov field on the graph. Their sum is none, but the Markov field with the same covariances
within the pattern of the factors is near it, and its precision matrix is sparse: every variable's
regression on the later ones of its column (Vecchia 1988; Schäfer, Katzfuss and Owhadi 2021). It
preconditions conjugate gradients on the true sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.edges import Edges
from optmech.engines.base import EngineResult, Options, Progress
from optmech.engines.structured import kernels
from optmech.engines.structured.compiled import SparseBackend
from optmech.engines.structured.iterative import Conditioner, require
from optmech.engines.structured.model import Model, build
from optmech.engines.structured.points import Duals
from optmech.engines.structured.rows import NOTHING, Rows, Schur
from optmech.engines.structured.run import Bounds, Run
from optmech.engines.structured.state import State, make_dense, set_slacks
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import BlockLP, PairCone

_RIDGE = 1e-2
"""The ridge of what the first multipliers solve, as bipartite graphs have a singular system."""


class EdgeMonitor(Progress, Protocol):
    """What the search tells: columns (blocks, m) of a mechanism with their cost, or none, and
    multipliers of all edges, block after block, (blocks, edges)."""

    def take(self, columns: Floats | None, multipliers: Floats) -> float:
        """Returns the best relative gap so far."""


@dataclass(eq=False)
class EdgeCone:
    """The cone of the edges, as far as completing columns needs it."""

    edges: Edges

    def least_constant(self, q: Floats) -> float:
        """The least t for which t - q, of q (m,) in the cone, is in the cone."""
        e = np.exp(self.edges.value)
        i, j = self.edges.i, self.edges.j
        return float(((e * q[j] - q[i]) / (e - 1)).max(initial=0.0))


class EdgeBackend(SparseBackend):
    """See ``rows.Backend``: no pair joins later, and majorants follow the edges."""

    stages = range(1)
    roughest = TUNING.iterated_to_edges
    _cone: EdgeCone  # type: ignore[assignment]

    def _prepare(self, model: Model) -> None:
        edges = self._cone.edges
        graph = sp.csc_array((np.ones(len(edges)), (edges.i, edges.j)), shape=edges.shape)
        self._decay = np.exp(-edges.value)
        self._start(model, graph)
        self._order = np.argsort(self._factors.position[0])

    def structure(self, rows: Rows, changed: Ints) -> None:
        super().structure(rows, changed)
        blocks, m = self._factors.parent.shape
        # all blocks have the first one's
        size = int(self._factors.base[1])
        self._column, self._index = self._factors.column[0], self._factors.row[:size]
        shape = -(-blocks // kernels.ABREAST), size, kernels.ABREAST
        self._room = {kind: np.zeros(shape, dtype=kind) for kind in (np.float32, np.float64)}
        self._scales = np.zeros((shape[0], m, kernels.ABREAST))
        self._laid: type | None = None

    def factor(self, rows: Rows, wanted: Bools | None = None) -> Schur | None:
        self._laid = None
        return super().factor(rows, NOTHING)

    def conditioner(self, state: State, stage: int) -> Conditioner:
        """The Markov field near the sum of the inverses."""
        require(self.factor(state.rows))
        return self.field(state.rows, self._factors, state.P, TUNING.most_iterated)

    def summed(self, y: Floats, rough: bool) -> Floats:
        """Σ_o H_o⁻¹ y, (m,); with ``rough`` by factors of half the digits, which take half the
        memory to go through."""
        kind = np.float32 if rough else np.float64
        laid = self._room[kind], self._scales
        if self._laid is not kind:
            self._each(kernels.beside(self._factors, *laid))
            self._laid = kind
        total = np.empty((self._each.parts, len(y)))
        ordered = y[self._order]
        self._each(kernels.summed(self._column, self._index, *laid, ordered, total))
        out = np.empty_like(y)
        out[self._order] = total.sum(axis=0)
        return out

    def violations(self, P: Floats, level: float) -> tuple[Ints, Ints]:
        none = np.full((len(P), P.shape[1] - 1), -1, dtype=np.int64)
        return none, none

    def majorant(self, P: Floats) -> Floats:
        edges, out = self._cone.edges, np.empty_like(P)
        self._each(kernels.raised(edges.start, edges.j, self._decay, P, out))
        return out


@dataclass(eq=False)
class EdgeBounds(Bounds):
    """Bounds and mechanisms as arrays of all edges."""

    figures = "{:.9g} / {:.9g}"
    monitor: EdgeMonitor  # type: ignore[assignment]

    def _propose(self, P: Floats, duals: Duals, better: bool) -> float:
        columns = P[:, :-1] if better else None
        return self.monitor.take(columns, duals.z.reshape(self.model.blocks, -1))


def solve(edges: Edges, cost: Floats, options: Options, monitor: EdgeMonitor) -> EngineResult:
    """Minimise Σ cost · v over columns v (m, blocks) with v_i <= e^r v_j for every edge and rows
    that sum to one, telling the monitor of mechanisms and multipliers on the way. Every point has
    an edge, both ways."""
    model = _model(edges, cost)
    cone = EdgeCone(edges)
    backend = EdgeBackend(model, cone, options.threads)  # type: ignore[arg-type]
    with np.errstate(all="ignore"), threadpool_limits(1, user_api="blas"):
        state = _start(model, edges)
        bounds = EdgeBounds(model, cone, backend, state, options, monitor)  # type: ignore[arg-type]
        return Run(bounds).finish()


def _model(edges: Edges, cost: Floats) -> Model:
    m, blocks = cost.shape
    lp = BlockLP(
        secrets=m, blocks=blocks, auxiliary=0, cost=cost, shared_cost=np.zeros(0),
        fixed=np.zeros(cost.shape, dtype=bool),
        cone=PairCone(edges.i, edges.j, edges.value), local=(), links=(),
    )  # fmt: skip
    return build(lp, table=False)


def _start(model: Model, edges: Edges) -> State:
    """The uniform mechanism, and multipliers as of ``state.start``, nearly."""
    m, blocks, count = model.variables, model.blocks, len(edges)
    offset = np.arange(blocks + 1) * count
    i, j = (np.tile(part.astype(np.int32), blocks) for part in (edges.i, edges.j))
    one = np.ones(count * blocks)
    rows = Rows(offset, i, j, np.tile(np.exp(edges.value), blocks), one, one)
    P = np.zeros((blocks, m + 1))
    P[:, :-1] = 1 / blocks
    near = sp.csc_array((np.ones(count), (edges.i, edges.j)), shape=(m, m))
    degree = near.sum(axis=1)
    matrix = sp.csc_array(near + sp.diags_array(degree * (1 + _RIDGE)))
    solution = sp.linalg.splu(matrix).solve(np.ascontiguousarray(model.cost[:, :-1].T)).T
    lift = max(2 * float(np.abs(solution).max()), 1e-9)
    R = solution + lift
    y = -lift * 2 * degree
    rows.z = (R[:, edges.i] + R[:, edges.j]).ravel() / (rows.e - 1)
    set_slacks(rows, P)
    nothing, places = np.zeros(0), np.zeros((blocks, 0))
    dense = make_dense(model, places.astype(np.int64))
    return State(P, places, nothing, nothing, y, nothing, rows, dense)
