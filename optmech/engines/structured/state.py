"""A primal-dual iterate, its residuals, and where it starts; and the rows beyond pairs (distortion,
lifted ratios, loss limits), of which few are held, more when nearly violated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Backend, Cone, Rows, first_rows
from optmech.engines.structured.tuning import TUNING


@dataclass(eq=False)
class DenseRows:
    """Rows Q v + B a - u = 0, u >= 0, with multipliers lam; empty places have ``live`` False,
    zeros in Q, B and lam, and u = 1.

    ``index`` (blocks, K) numbers the pool's rows; -1 - k is the k-th loss limit.
    """

    index: Ints
    live: Bools
    Q: Floats
    B: Floats
    u: Floats
    lam: Floats

    @property
    def count(self) -> int:
        """Number of live rows."""
        return int(self.live.sum())

    @property
    def divisor(self) -> Floats:
        """lam, and one in empty places."""
        return np.where(self.live, self.lam, 1.0)

    def values(self, P: Floats, a: Floats) -> Floats:
        """Q v + B a, (blocks, K)."""
        return (self.Q @ P[:, :, None] + self.B @ a[:, :, None])[:, :, 0]

    def on_variables(self) -> Floats:
        """Qᵀ lam, (blocks, m + 1)."""
        return (self.lam[:, None, :] @ self.Q)[:, 0]

    def on_auxiliaries(self) -> Floats:
        """Bᵀ lam, (blocks, p)."""
        return (self.lam[:, None, :] @ self.B)[:, 0]


@dataclass(eq=False)
class State:
    """Primal: P (blocks, m + 1), auxiliaries a (blocks, p), shared g, slack sigma of the
    coupling rows.
    Dual: y (m,) of the row sums, nu >= 0 of the coupling rows; z, lam sit with their rows."""

    P: Floats
    a: Floats
    g: Floats
    sigma: Floats
    y: Floats
    nu: Floats
    rows: Rows
    dense: DenseRows

    @property
    def products(self) -> int:
        """Number of complementary pairs."""
        return len(self.rows) + self.dense.count + len(self.nu)


@record
class Residuals:
    """What is left of every equation, the objectives, and the mean complementarity."""

    dual: Floats
    auxiliary: Floats
    shared: Floats
    dense: Floats
    sums: Floats
    """(m + N,): row sums, then coupling rows."""
    primal: float
    bound: float
    mu: float

    @property
    def gap(self) -> float:
        """Difference of the objectives relative to the primal one."""
        return abs(self.primal - self.bound) / max(abs(self.primal), 1e-300)


def reduced_cost(model: Model, y: Floats, nu: Floats, priced: Floats) -> Floats:
    """W - y + (coupling rows priced at nu) - Qᵀlam, without the pairs' part, (blocks, m + 1)."""
    result = model.cost - priced
    result[:, :-1] -= y
    coupling = model.coupling
    for variable, value, weight in zip(coupling.variable, coupling.value, nu, strict=True):
        result[:, variable] += value * weight
    result[:, -1] = 0.0
    return result


def auxiliary_cost(model: Model, nu: Floats) -> Floats:
    """f + Cᵀnu: what Bᵀlam has to be in every block, (blocks, p)."""
    return model.auxiliary_cost + nu @ model.coupling.auxiliary


def coupling_values(model: Model, P: Floats, a: Floats, g: Floats) -> Floats:
    """Left-hand sides of the coupling rows, (N,)."""
    coupling = model.coupling
    own = np.einsum("lo,ol->l", coupling.value, P[:, coupling.variable])
    return np.asarray(own + coupling.auxiliary @ a.sum(axis=0) + coupling.shared @ g)


def missing(model: Model, state: State, P: Floats) -> Floats:
    """What columns P leave of row sums and, with the rest of the state, of coupling rows."""
    coupled = model.coupling.rhs - coupling_values(model, P, state.a, state.g) - state.sigma
    return np.concatenate([1.0 - model.means(P[:, :-1].sum(axis=0)), coupled])


def residuals(model: Model, backend: Backend, state: State) -> Residuals:
    """Evaluate every equation at ``state``."""
    dense, coupling = state.dense, model.coupling
    dual = reduced_cost(model, state.y, state.nu, dense.on_variables())
    backend.charge(state.rows.z, dual)
    complementarity = float((state.rows.s * state.rows.z).sum())
    complementarity += float((dense.u * dense.lam).sum() + state.sigma @ state.nu)
    return Residuals(
        dual=dual,
        auxiliary=auxiliary_cost(model, state.nu) - dense.on_auxiliaries(),
        shared=model.shared_cost + coupling.shared.T @ state.nu,
        dense=dense.live * (dense.values(state.P, state.a) - dense.u),
        sums=missing(model, state, state.P),
        primal=float(
            (model.cost * state.P).sum()
            + (model.auxiliary_cost * state.a).sum()
            + model.shared_cost @ state.g
        ),
        bound=float(state.y.sum() - coupling.rhs @ state.nu),
        mu=complementarity / state.products,
    )


def start(model: Model, cone: Cone) -> State:
    """The uniform mechanism and multipliers in closed form, both strictly inside.

    With z_ij = (R_i + R_j) / (e_ij - 1) the multipliers of a block give (D + A) R, the degrees
    and adjacency of its short pairs; R follows from one linear system and is made positive by
    lowering y.
    """
    rows, dense = first_rows(model, cone), first_dense(model, cone)
    P = np.zeros((model.blocks, model.variables + 1))
    P[:, :-1] = model.allowed / model.allowed.sum(axis=0)
    a, g = _auxiliaries(model, dense, P)
    dense.u = np.where(dense.live, np.maximum(dense.values(P, a), 1e-2 * np.abs(P).max()), 1.0)
    left = coupling_values(model, P, a, g)
    slack = model.coupling.rhs - left
    sigma = np.maximum(slack, 0.1 * np.maximum(np.abs(model.coupling.rhs), np.abs(left)) + 1e-12)
    nu = _coupling_prices(model)
    dense.lam = _even_prices(dense, auxiliary_cost(model, nu))
    y = _pair_prices(model, rows, reduced_cost(model, np.zeros(1), nu, dense.on_variables()))
    set_slacks(rows, P)
    return State(P, a, g, sigma, model.means(y), nu, rows, dense)


def _auxiliaries(model: Model, dense: DenseRows, P: Floats) -> tuple[Floats, Floats]:
    """Auxiliaries and shared variables that leave slack in their rows."""
    a = np.zeros_like(model.auxiliary_cost)
    values = dense.values(P, a)
    for c in range(a.shape[1]):
        below = np.where(dense.B[:, :, c] < 0, values, np.inf).min(axis=1, initial=np.inf)
        above = np.where(dense.B[:, :, c] > 0, -values, 0.0).max(axis=1, initial=0.0)
        a[:, c] = np.where(np.isfinite(below), 0.7 * below, 1.3 * above)
    none = np.zeros(len(model.shared_cost))
    level = coupling_values(model, P, a, none)[(model.coupling.shared < 0).any(axis=1)]
    return a, none + 1.3 * level.max(initial=0.0)


def _coupling_prices(model: Model) -> Floats:
    """Prices on the scale of the objective; those of a shared variable's rows add to its cost."""
    coupling = model.coupling
    scale = 0.3 * abs(float(model.cost.mean(axis=0).sum())) or 1.0
    own = np.maximum(np.abs(coupling.rhs), 1e-3)
    nu = scale / own
    for column, cost in zip(coupling.shared.T, model.shared_cost, strict=True):
        users = column < 0
        nu[users] = cost / -column[users] / max(1, users.sum())
    return nu


def _even_prices(dense: DenseRows, wanted: Floats) -> Floats:
    """Prices that give every auxiliary what it claims, evenly; rows without one get a mean."""
    lam = np.zeros(dense.u.shape)
    for c in range(wanted.shape[1]):
        held = dense.B[:, :, c] != 0
        share = wanted[:, c] / np.maximum(held.sum(axis=1), 1)
        lam += np.where(held, share[:, None] / np.where(held, dense.B[:, :, c], 1.0), 0.0)
    ordinary = max(float(lam.max(initial=0.0)), 1e-3 * float(np.abs(wanted).max(initial=1.0)))
    lam = np.where(lam > 0, lam, 1e-3 * ordinary)
    return dense.live * lam


def set_slacks(rows: Rows, P: Floats) -> None:
    """The rows' slacks of columns P, and a little where there are none."""
    smaller, larger = rows.ends(P)
    rows.s = np.maximum(rows.e * larger - smaller, 1e-3 * larger * (rows.e - 1))


def _pair_prices(model: Model, rows: Rows, wanted: Floats) -> Floats:
    """Fill rows.z and return y (see ``start``). Where blocks differ, the equations hold only
    nearly and the iteration carries the difference."""
    m = model.variables
    same = model.allowed.all()
    total = np.zeros(m)
    R = np.zeros((model.blocks, m + 1))
    systems = []
    for o in [0] if same else range(model.blocks):
        own = slice(rows.offset[o], rows.offset[o + 1])
        matrix = _degrees(rows.i[own], rows.j[own], m)
        blocks = slice(None) if same else slice(o, o + 1)
        R[blocks, :-1] = np.linalg.solve(matrix, wanted[blocks, :-1].T).T
        systems.append((blocks, matrix))
        total = np.maximum(total, matrix.sum(axis=1))
    lift = float(max(2 * np.abs(R).max(), np.abs(wanted).max() / total.min(), 1e-9))
    y = -lift * total
    for blocks, matrix in systems:
        R[blocks, :-1] = np.maximum(R[blocks, :-1] + np.linalg.solve(matrix, -y), 0.1 * lift)
    one, other = rows.ends(R)
    pairs = rows.i < m
    rows.z = (np.where(pairs, one, other) + other) / np.where(pairs, rows.e - 1, 1.0)
    return y


def _degrees(i: np.ndarray, j: np.ndarray, m: int) -> Floats:
    """Degrees + adjacency of symmetric pairs; a row v_j >= 0 counts as two neighbours."""
    matrix = np.zeros((m, m))
    pairs = i < m
    np.add.at(matrix, (i[pairs], i[pairs]), 1.0)
    np.add.at(matrix, (i[pairs], j[pairs]), 1.0)
    np.add.at(matrix, (j[~pairs], j[~pairs]), 2.0)
    empty = np.flatnonzero(matrix.diagonal() == 0)
    matrix[empty, empty] = 1.0
    return matrix


def first_dense(model: Model, cone: Cone) -> DenseRows:
    """The loss limits, and of every auxiliary's rows those that a column concentrated where the
    block is cheap would meet first, and the one that a constant column meets first."""
    blocks, m = model.blocks, model.variables
    near = _slack_share(model, _typical(model, cone), np.zeros((blocks, model.sides.shape[1])))
    flat = model.pool @ np.ones(m + 1)
    chosen: list[Ints] = []
    # the rows of every auxiliary, and those without one
    groups = [*model.sides.T.astype(bool), ~model.sides.any(axis=1)]
    for group in filter(len, map(np.flatnonzero, groups)):
        few = len(group) if len(group) <= TUNING.dense_whole else TUNING.dense_at_first
        order = group[np.argsort(near[:, group], axis=1, kind="stable")[:, :few]]
        best = group[flat[group].argmin()]
        missing = ~(order == best).any(axis=1)
        order[missing, -1] = best
        chosen.append(order)
    limits = -1 - np.tile(np.arange(len(model.limits)), (blocks, 1))
    index = np.hstack([*chosen, limits]) if chosen else limits
    return make_dense(model, index.astype(np.int64))


def _typical(model: Model, cone: Cone) -> Floats:
    """A column per block that is largest where the block's loss is relatively least."""
    cost = model.cost[:, :-1] if model.cost.any() else model.limits[:, :, :-1].sum(axis=0)
    relative = cost / np.maximum(cost.max(axis=0), 1e-300)
    centre = relative.argmin(axis=1)
    column = np.zeros((model.blocks, model.variables + 1))
    column[:, :-1] = cone.decay[:, centre].T
    return column


def _slack_share(model: Model, P: Floats, a: Floats) -> Floats:
    """Slack of every pool row relative to its negative side, (blocks, R)."""
    negative = P @ np.maximum(-model.pool, 0).T + np.maximum(-a @ model.sides.T, 0)
    slack = P @ model.pool.T + a @ model.sides.T
    scale = np.where(negative > 0, negative, 1.0)
    return slack / scale


def make_dense(model: Model, index: Ints) -> DenseRows:
    """Coefficients for given row numbers (blocks, K)."""
    blocks, places = index.shape
    width = model.variables + 1
    pool = np.vstack([model.pool, np.zeros(width)])
    sides = np.vstack([model.sides, np.zeros(model.sides.shape[1])])
    empty = len(model.pool)
    limits = len(model.limits)
    live = index != -1 - limits
    number = np.where(index >= 0, index, empty)
    Q, B = pool[number], sides[number]
    for k in range(limits):
        block, place = np.nonzero(index == -1 - k)
        Q[block, place] = -model.limits[k, block]
        B[block, place, model.lp.auxiliary + k] = 1.0
    zero = np.zeros((blocks, places))
    return DenseRows(index, live, Q, B, zero + 1.0, zero)


def add_dense(dense: DenseRows, model: Model, P: Floats, a: Floats, mu: float) -> DenseRows:
    """``dense`` with the worst nearly violated rows of every block; the same object if none."""
    if not len(model.pool):
        return dense
    share = _slack_share(model, P, a)
    block, place = np.nonzero(dense.index >= 0)
    share[block, dense.index[block, place]] = np.inf
    order = np.argsort(share, axis=1, kind="stable")[:, : TUNING.dense_at_a_time]
    wanted = np.take_along_axis(share, order, axis=1) < TUNING.dense_near
    if not wanted.any():
        return dense
    empty = -1 - len(model.limits)
    index = np.hstack([dense.index, np.where(wanted, order, empty)])
    index, u, lam = _packed(index, dense, empty)
    grown = make_dense(model, index)
    fresh = grown.live & np.isnan(u)
    slack = grown.values(P, a)
    floor = 0.01 * (np.maximum(-grown.Q, 0) @ P[:, :, None])[:, :, 0]
    floor += 0.01 * np.maximum(-(grown.B @ a[:, :, None])[:, :, 0], 0)
    grown.u = np.where(fresh, np.maximum(slack, np.maximum(floor, 1e-300)), u)
    grown.u[~grown.live] = 1.0
    largest = np.nan_to_num(lam).max(axis=1, keepdims=True, initial=0.0)
    ceiling = np.where(largest > 0, largest, np.inf)
    grown.lam = np.where(fresh, np.minimum(mu / grown.u, ceiling), lam)
    grown.lam[~grown.live] = 0.0
    return grown


def _packed(index: Ints, dense: DenseRows, empty: int) -> tuple[Ints, Floats, Floats]:
    """Live places first and the columns that no block needs dropped; NaN where nothing is known."""
    unknown = np.full((len(index), index.shape[1] - dense.index.shape[1]), np.nan)
    u, lam = np.hstack([dense.u, unknown]), np.hstack([dense.lam, unknown])
    order = np.argsort(index == empty, axis=1, kind="stable")
    places = int((index != empty).sum(axis=1).max())
    index, u, lam = (np.take_along_axis(x, order, axis=1)[:, :places] for x in (index, u, lam))
    return index, u, lam
