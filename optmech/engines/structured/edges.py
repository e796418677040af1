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

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from optmech.base.arrays import Floats, Ints
from optmech.base.edges import Edges
from optmech.engines.base import EngineResult, Options
from optmech.engines.structured import sparse
from optmech.engines.structured.backend import Schur
from optmech.engines.structured.compiled import SparseBackend, least_degree, packed
from optmech.engines.structured.iterative import Conditioner, require, squares
from optmech.engines.structured.model import Coupling, Model
from optmech.engines.structured.points import mechanism, restored
from optmech.engines.structured.rows import DenseRows, Rows
from optmech.engines.structured.run import AllColumns, Run
from optmech.engines.structured.state import Residuals, State, set_slacks
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import BlockLP, PairCone

_RIDGE = 1e-2
"""Of the system that the first multipliers solve, as bipartite graphs have a singular one."""


class EdgeMonitor(Protocol):
    """What the search tells: columns (blocks, m) of a mechanism with their cost, or none, and
    multipliers of all edges, block after block, (blocks, edges)."""

    def take(self, columns: Floats | None, multipliers: Floats) -> float:
        """Returns the best relative gap so far."""

    def should_stop(self) -> bool: ...
    def remaining(self) -> float: ...
    def report(self, text: str) -> None: ...


class Field:
    """The precision matrix of a Markov field, as a preconditioner."""

    def __init__(self, position: Ints, body: sp.csc_array, spread: Floats, P: Floats) -> None:
        self._order = np.argsort(position)
        self._body = sp.csr_array(body)
        self._across = sp.csr_array(body.T)
        self._spread, self._squares = spread, squares(P)

    def scale(self, P: Floats) -> Floats:
        return np.sqrt(self._squares / np.maximum(squares(P), 1e-300))

    def apply(self, scale: Floats, residual: Floats) -> Floats:
        inner = self._across @ (residual * scale)[self._order]
        out = np.empty_like(residual)
        out[self._order] = self._body @ (inner / self._spread)
        return out * scale


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
    """See ``backend.Backend``: no pair joins later, and majorants follow the edges."""

    stages = 1
    roughest = TUNING.iterated_to_edges
    lasting = TUNING.lasting_edges
    _cone: EdgeCone  # type: ignore[assignment]

    def _prepare(self, model: Model) -> None:
        edges, m = self._cone.edges, model.variables
        graph = sp.csc_array((np.ones(len(edges)), (edges.i, edges.j)), shape=(m, m))
        wide = sp.csc_array(graph)
        for _ in range(TUNING.edge_reach - 1):
            wide = sp.csc_array(wide + wide @ graph)
            wide.data[:] = 1.0
        self._decay = np.exp(-edges.value)
        self._start(model.blocks, m, least_degree(graph))
        self._wide = _pattern(self._factors, least_degree(wide), wide)
        self._order = np.argsort(self._factors.position[0])

    def structure(self, rows: Rows, changed: Ints) -> None:
        """One pattern for all blocks."""
        own, edges = self._factors, self._cone.edges
        blocks, m = own.parent.shape
        graph = sp.coo_array((np.ones(len(edges)), (edges.i, edges.j)), shape=(m, m))
        one = _pattern(own, own.position[0], graph)
        size = int(one.column[0, -1])
        self._factors = own._replace(
            parent=np.ascontiguousarray(np.broadcast_to(one.parent, (blocks, m))),
            column=np.ascontiguousarray(np.broadcast_to(one.column, (blocks, m + 1))),
            base=np.arange(blocks + 1) * size,
            row=np.tile(one.row, blocks),
            value=np.empty(size * blocks),
        )
        groups = -(-blocks // sparse.ABREAST)
        shape = groups, size, sparse.ABREAST
        self._room = {kind: np.empty(shape, dtype=kind) for kind in (np.float32, np.float64)}
        self._scales = np.empty((groups, m, sparse.ABREAST))
        self._laid: type | None = None

    def factor(self, rows: Rows, wanted: NDArray[np.bool_] | None = None) -> Schur | None:
        blocks, m = self._factors.parent.shape
        none = np.zeros((blocks, m), dtype=np.bool_)
        room = np.empty((self.threads, 0, 0))
        if not self._factored(rows, sparse.factor, self._factors, none, room):
            return None
        self._laid = None
        return Schur(np.zeros((0, m)), np.zeros((0, m)), np.zeros((0, 0)))

    def conditioner(self, state: State, stage: int) -> Conditioner:
        """The Markov field near the sum of the inverses."""
        rows, one = state.rows, self._wide
        require(self.factor(rows))
        column, size = one.column[0], len(one.row)
        total = np.empty((self.threads, size))
        self._each(sparse.covariances, packed(rows), one, self._factors.ridge, total)
        weight, spread = np.empty(size), np.empty(len(column) - 1)
        given = column, one.row, total.sum(axis=0)
        self._each(sparse.regressed, *given, weight, spread)
        if not np.isfinite(weight).all():
            raise np.linalg.LinAlgError("the sum of the inverses has no regressions")
        body = sp.csc_array((weight, one.row, column), shape=(len(column) - 1,) * 2)
        return Field(one.position[0], body, spread, state.P)

    def summed(self, y: Floats, rough: bool) -> Floats:
        """Σ_o H_o⁻¹ y, (m,); with ``rough`` by factors of half the digits, which take half the
        memory to go through."""
        own, kind = self._factors, np.float32 if rough else np.float64
        value = self._room[kind]
        if self._laid is not kind:
            self._each(sparse.beside, own, value, self._scales)
            self._laid = kind
        total = np.empty((self.threads, len(y)))
        column, index = own.column[0], own.row[: own.base[1]]
        self._each(sparse.summed, column, index, value, self._scales, y[self._order], total)
        out = np.empty_like(y)
        out[self._order] = total.sum(axis=0)
        return out

    def violations(self, rows: Rows, P: Floats, level: float) -> tuple[Ints, Ints]:
        none = np.full((len(P), P.shape[1] - 1), -1, dtype=np.int64)
        return none, none

    def majorant(self, P: Floats) -> Floats:
        edges, out = self._cone.edges, np.empty_like(P)
        self._each(sparse.raised, edges.start, edges.j, self._decay, P, out)
        return out


@dataclass(eq=False)
class EdgeBounds(AllColumns):
    """Bounds and mechanisms as arrays of all edges."""

    listener: EdgeMonitor = field(kw_only=True)

    def offer(self, iteration: int, now: Residuals, system: System, last: bool = False) -> None:
        duals = restored(self.model, self.backend, self.state)
        self.lower = max(self.lower, duals.bound)
        P, upper = mechanism(self.model, self.backend, self.cone, self.state, now.mu, system)
        gap = (min(self.upper, upper) - self.lower) / max(abs(upper), 1e-300)
        if not last and gap > 0.5 * self._own_gap and gap > self.options.gap:
            return
        self._own_gap = gap
        self.offered = iteration
        columns = P[:, :-1] if upper < self.upper else None
        self.gap = self.listener.take(columns, duals.z.reshape(self.model.blocks, -1))
        self.upper = min(self.upper, upper)
        self.monitor.report(
            f"iteration {iteration}: {now.primal:.9g} / {now.bound:.9g}, gap {self.gap:.2e}"
        )


def _pattern(
    factors: sparse.SparseFactors, position: Ints, graph: sp.sparray
) -> sparse.SparseFactors:
    """The factors' pattern of one block with a graph, in an order of its variables."""
    both = sp.coo_array(sp.tril(sp.coo_array(graph + graph.T), -1))
    i, j = (part.astype(np.int32) for part in both.coords)
    none, m = np.zeros(len(i)), len(position)
    rows = packed(Rows(np.array([0, len(i)]), i, j, none, none, none))
    one = factors._replace(
        position=np.ascontiguousarray(position[None]), parent=np.zeros((1, m), dtype=np.int32),
        column=np.zeros((1, m + 1), dtype=np.int64),
    )  # fmt: skip
    sparse.count(0, 1, np.zeros(1, dtype=np.int64), rows, one)
    size = int(one.column[0, -1])
    one = one._replace(
        base=np.array([0, size]), row=np.empty(size, dtype=np.int32), value=np.zeros(0)
    )
    sparse.fill(0, 1, rows, one)
    return one


def solve(edges: Edges, cost: Floats, options: Options, monitor: EdgeMonitor) -> EngineResult:
    """Minimise Σ cost · v over columns v (m, blocks) with v_i <= e^r v_j for every edge and rows
    that sum to one, telling the monitor of mechanisms and multipliers on the way. Every point has
    an edge, both ways."""
    model = _model(edges, cost)
    cone = EdgeCone(edges)
    backend = EdgeBackend(model, cone, options.threads)  # type: ignore[arg-type]
    with np.errstate(all="ignore"), threadpool_limits(1, user_api="blas"):
        state = _start(model, edges)
        given = (model, cone, backend, state, options, monitor)
        return Run(EdgeBounds(*given, listener=monitor)).finish()  # type: ignore[arg-type]


def _model(edges: Edges, cost: Floats) -> Model:
    m, blocks = cost.shape
    none = np.zeros(0)
    lp = BlockLP(
        secrets=m, blocks=blocks, auxiliary=0, cost=cost, shared_cost=none,
        fixed=np.zeros((0, blocks), dtype=np.bool_),
        cone=PairCone(edges.i, edges.j, edges.value), local=(), links=(),
    )  # fmt: skip
    padded = np.zeros((blocks, m + 1))
    padded[:, :-1] = cost.T
    return Model(
        lp=lp, class_of=np.arange(m), first=np.arange(m), tree=(), cost=padded,
        ratio=np.zeros((0, 0)), pair=np.zeros((0, 0), dtype=np.int64),
        allowed=np.ones((blocks, m), dtype=np.bool_), pool=np.zeros((0, m + 1)),
        sides=np.zeros((0, 0)), auxiliary_cost=np.zeros((blocks, 0)), shared_cost=none,
        coupling=Coupling(
            np.zeros(0, dtype=np.int64), np.zeros((0, blocks)), np.zeros((0, 0)),
            np.zeros((0, 0)), none,
        ),
        limits=np.zeros((0, blocks, m + 1)),
    )  # fmt: skip


def _start(model: Model, edges: Edges) -> State:
    """The uniform mechanism, and multipliers as of ``state.start``, nearly."""
    m, blocks, count = model.variables, model.blocks, len(edges)
    offset = np.arange(blocks + 1) * count
    i, j = (np.tile(part.astype(np.int32), blocks) for part in (edges.i, edges.j))
    one = np.ones(count * blocks)
    rows = Rows(offset, i, j, np.tile(np.exp(edges.value), blocks), one, one.copy())
    P = np.zeros((blocks, m + 1))
    P[:, :-1] = 1 / blocks
    near = sp.csc_array((np.ones(count), (edges.i, edges.j)), shape=(m, m))
    degree = np.asarray(near.sum(axis=1)).ravel()
    matrix = sp.csc_array(near + sp.diags_array(degree * (1 + _RIDGE)))
    solution = sp.linalg.splu(matrix).solve(np.ascontiguousarray(model.cost[:, :-1].T)).T
    lift = max(2 * float(np.abs(solution).max()), 1e-9)
    R = solution + lift
    y = -lift * 2 * degree
    for o in range(blocks):
        own = slice(offset[o], offset[o + 1])
        rows.z[own] = (R[o, edges.i] + R[o, edges.j]) / (rows.e[own] - 1)
    set_slacks(rows, P)
    nothing, places = np.zeros(0), np.zeros((blocks, 0))
    dense = DenseRows(
        places.astype(np.int64), places > 0, np.zeros((blocks, 0, m + 1)),
        np.zeros((blocks, 0, 0)), places, places,
    )  # fmt: skip
    return State(P, places, nothing, nothing, y, nothing, rows, dense)
