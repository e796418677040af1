"""From iterates to points of the program: columns moved until they are a mechanism or nearly one,
multipliers moved until they make a bound, and both in the program's own variables.

The cone of the pairs is closed under maxima, so every column has a least *majorant* in it, over
all pairs and not only those held. Taking it spoils row sums and whatever else couples the blocks;
the least change in the norm of the barrier restores these, and majorants of what comes out leave a
smaller difference. Without rows beyond the pairs, what is left can be *completed* exactly.

On the way to the optimum the dual equations hold with a residual, and every negative reduced cost
is taken off the bound. Multipliers of coupling and local rows are scaled until shared and
auxiliary variables are stationary; then those of the pairs take up what is left:

* *projection*: the weighted least squares correction dz = (z/s) G H⁻¹ r meets Gᵀdz = r exactly,
  but for multipliers that it would make negative;
* *draining*: a multiplier of v_i <= e v_j takes e z from the reduced cost of j and adds z to that
  of i, so lowering it mends j and passes a smaller deficit on to i.

The program has one variable per secret, a multiplier for every pair, local row and coupling row.
Two sets of pairs are no rows of the iteration and get their multipliers here, at no loss.

*Ties* hold the secrets of a class equal. Along the class's tree, leaves first, they share its cost
out, so that every secret but the first is left with the same reduced cost in all blocks.

*Forced zeros*: below an entry that is fixed at zero, pairs force others to zero, level by level,
and the iteration leaves these out. The bound does not know that: it takes the least reduced cost
over *all* observables that the support allows a secret. A multiplier of one of these pairs raises
the reduced cost of its smaller side and charges its larger side, one level closer to the fixed
entry, where in the end it costs nothing:

                     pair              multiplier w adds    and charges
    fixed   v_b = 0
               |     v_a <= e^r v_b    w to a               e^r w to b, which is no matter
    forced  v_a = 0
               |     v_c <= e^r' v_a   w' to c              e^r' w' to a
    forced  v_c = 0

So the furthest entries are raised to the prices of their secrets first, then those that paid.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.engines.structured.iterative import Earlier
from optmech.engines.structured.model import FAR, Model
from optmech.engines.structured.newton import BreakdownError, factored
from optmech.engines.structured.rows import NOTHING, Backend, Cone
from optmech.engines.structured.state import DenseRows, State, auxiliary_cost, reduced_cost
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import BlockLP, Point

_ROUNDING = 4e-15
"""Sums that differ by no more are as good as equal."""
_ROUGH = 1e-9
"""Row sums as near to one as this can be completed at no cost."""
_SPOILED = 1e-8
_LEAST_SLACK = 1e-6


@record
class Duals:
    """Multipliers: y (m,) of the row sums, nu >= 0 of the coupling rows, lam >= 0 (blocks, K) of
    the dense rows, z >= 0 of the pair rows.

    ``lowest`` (m,) is min_o L[s,o] - y_s, L being the costs that the other multipliers leave, and
    ``bound`` the Lagrangian bound Σ_s min_o L[s,o] less what the coupling rows cost, in float64.
    """

    y: Floats
    nu: Floats
    lam: Floats
    z: Floats
    lowest: Floats
    bound: float


def restored(
    model: Model, backend: Backend, state: State, projections: int = TUNING.projections
) -> Duals:
    """The multipliers of ``state``, restored; the backend's factors must be those of ``state``."""
    nu = _shared_stationary(model, np.maximum(state.nu, 0.0))
    lam = _auxiliary_stationary(state.dense, auxiliary_cost(model, nu))
    priced = (lam[:, None, :] @ state.dense.Q)[:, 0]
    reduced = reduced_cost(model, state.y, nu, priced)
    z, left = _pair_multipliers(backend, state, reduced, projections)
    lowest = np.where(model.allowed, left[:, :-1], np.inf).min(axis=0)
    if model.folded:
        least = np.full(model.variables, np.inf)
        np.minimum.at(least, model.row, lowest)
        lowest = least[model.row]
    bound = float((state.y + lowest).sum() - model.coupling.rhs @ nu)
    return Duals(state.y, nu, lam, z, lowest, bound)


def _shared_stationary(model: Model, nu: Floats) -> Floats:
    """nu with h + Dᵀnu = 0 exactly where a shared variable has rows."""
    for column, cost in zip(model.coupling.shared.T, model.shared_cost, strict=True):
        users = column < 0
        total = float(-column[users] @ nu[users])
        if total > 0:
            nu[users] *= cost / total
    return nu


def _auxiliary_stationary(dense: DenseRows, wanted: Floats) -> Floats:
    """lam >= 0 with Bᵀlam = wanted in every block."""
    lam = np.maximum(dense.lam, 0.0) * dense.live
    for c in range(wanted.shape[1]):
        held = dense.B[:, :, c] != 0
        total = (dense.B[:, :, c] * lam).sum(axis=1)
        usable = total * wanted[:, c] > 0
        factor = np.where(usable, wanted[:, c] / np.where(usable, total, 1.0), 0.0)
        lam = np.where(held, lam * factor[:, None], lam)
    return lam


def _pair_multipliers(
    backend: Backend, state: State, reduced: Floats, projections: int
) -> tuple[Floats, Floats]:
    """Multipliers near the iterate's whose reduced costs are hardly negative, and those costs."""
    rows = state.rows

    def left_by(z: Floats) -> Floats:
        left = reduced.copy()
        backend.charge(z, left)
        return left

    z = rows.z.copy()
    left = left_by(z)
    bearable = TUNING.bearable * float(rows.s @ rows.z)
    for k in range(TUNING.most_projections):
        if k >= projections and -np.minimum(left, 0.0).min(axis=0).sum() <= bearable:
            break
        x = left[:, None, :].copy()
        backend.solve(x)
        z = backend.shifted(z, x[:, 0])
        left = left_by(z)
    z = backend.drain(z, left, TUNING.sweeps)
    return z, left_by(z)


def majorants(model: Model, backend: Backend, state: State, mu: float, system: System) -> Floats:
    """Columns in the cone, near the state's, with row sums close to one and the other rows hardly
    worse. The backend's factors must be those of ``state``, and are so afterwards.

    Where row sums stay far from one, pairs joined late and the state's slack of theirs is fiction:
    then the slacks of the majorants make the norm.
    """
    columns = backend.majorant(np.maximum(state.P, 0.0))
    nearer, error = _with_sums(model, backend, columns, system)
    if error <= _SPOILED:
        return nearer
    try:
        stage = None if system.left is None else Earlier(system.left.stage, None, None)
        tight = factored(model, backend, _tightened(state, columns, mu), stage)
        nearest, left = _with_sums(model, backend, columns, tight)
    except BreakdownError:
        left = np.inf
    # as it was, of which no inverses are needed
    backend.factor(state.rows, NOTHING)
    return nearest if left < error else nearer


def mechanism(
    model: Model, backend: Backend, cone: Cone, state: State, mu: float, system: System | None
) -> tuple[Floats, float]:
    """A mechanism near the state's and its cost, for programs without rows beyond the pairs; a
    rough one without a system."""
    plain = _completed(model, cone, backend.majorant(np.maximum(state.P, 0.0)))
    if system is None:
        return plain
    better = _completed(model, cone, majorants(model, backend, state, mu, system))
    return min(plain, better, key=lambda pair: pair[1])


def _tightened(state: State, columns: Floats, mu: float) -> State:
    """The state with the slacks that ``columns`` have, and multipliers to match."""
    rows = state.rows
    smaller, larger = rows.ends(columns)
    larger = rows.e * larger
    s = np.maximum(larger - smaller, _LEAST_SLACK * larger)
    return replace(state, rows=replace(rows, s=s, z=mu / s))


def _with_sums(
    model: Model, backend: Backend, columns: Floats, system: System
) -> tuple[Floats, float]:
    """Columns in the cone with better row sums, and how far these are from one."""
    error = _sum_error(model, columns)
    for _ in range(TUNING.most_majorants):
        nearer = backend.majorant(np.maximum(columns + system.restoring(columns), 0.0))
        before, left = error, _sum_error(model, nearer)
        if not left < before:
            break
        columns, error = nearer, left
        if not _ROUGH < error < 0.5 * before:
            break
    return columns, error


def _sum_error(model: Model, columns: Floats) -> float:
    return float(np.abs(model.means(columns[:, :-1].sum(axis=0)) - 1.0).max())


def _completed(model: Model, cone: Cone, columns: Floats) -> tuple[Floats, float]:
    """Columns of the cone with row sums q made a mechanism: w = t - q is in the cone for t large
    enough, so the cheapest column takes it up before everything is divided by t."""
    q = model.means(columns[:, :-1].sum(axis=0))
    if np.ptp(q) <= _ROUNDING * q.max():
        columns[:, :-1] /= q
    else:
        t = max(float(q.max()), cone.least_constant(q)) * (1 + 1e-15)
        missing = t - q
        price = model.cost[:, :-1] @ missing
        cheapest = np.where(model.allowed.all(axis=1), price, np.inf).argmin()
        columns[cheapest, :-1] += missing
        columns /= t
    return columns, float((model.cost * columns).sum())


_Entries = tuple[Ints, Ints, Floats]
"""Numbers of pairs, blocks and multipliers."""


def point(model: Model, P: Floats, state: State, duals: Duals) -> Point:
    """Columns P (blocks, m + 1) and multipliers in the program's own shapes."""
    lp = model.lp
    z = np.zeros((lp.block_size, lp.blocks))
    z[: lp.secrets] = P[:, model.class_of].T
    z[lp.secrets :] = state.a[:, : lp.auxiliary].T
    local, links = _local(model, state, duals), coupling(model, duals)
    pairs = pair_entries(model, state, duals)
    if model.tree:
        pairs = _joined(pairs, _ties(model, _costs(model, pairs, local, links)))
    if not model.allowed.all():
        left = _costs(model, pairs, local, links)
        pairs = _joined(pairs, _forced(model, duals.y, left))
    pair, block, value = pairs
    cone = sp.coo_array((value, (pair, block)), shape=(len(lp.cone), lp.blocks))
    return Point(z=z, shared=state.g.copy(), cone=cone, local=local, links=links)


def pair_entries(model: Model, state: State, duals: Duals) -> _Entries:
    """Multipliers of the pair rows, with the pairs' numbers in the program's cone."""
    rows = state.rows
    used = (rows.i < model.variables) & (duals.z > 0)
    pair = model.pair[rows.i[used], rows.j[used]].astype(np.int64)
    return pair, rows.block[used], duals.z[used]


def coupling(model: Model, duals: Duals) -> tuple[Floats, ...]:
    """Multipliers of every family of coupling rows, in the program's order."""
    result: list[Floats] = []
    left = duals.nu
    for link in model.lp.links:
        if link.equal:
            paid = np.bincount(model.row, duals.y, minlength=len(link.rhs))
            result.append(-np.asarray(paid, np.float64))
        else:
            own, left = np.split(left, [len(link.rhs)])
            result.append(own)
    return tuple(result)


def _local(model: Model, state: State, duals: Duals) -> tuple[Floats, ...]:
    """Multipliers of every local family, (rows, blocks) each."""
    dense = state.dense
    whole = np.zeros((len(model.pool), model.blocks))
    block, place = np.nonzero(dense.live & (dense.index >= 0))
    whole[dense.index[block, place], block] = duals.lam[block, place]
    sizes = np.cumsum([rows.matrix.shape[0] for rows in model.lp.local])[:-1]
    return tuple(np.split(whole, sizes)) if model.lp.local else ()


def _joined(*parts: _Entries) -> _Entries:
    pair, block, value = map(np.concatenate, zip(*parts, strict=True))
    return pair, block, value


def _costs(
    model: Model, pairs: _Entries, local: tuple[Floats, ...], links: tuple[Floats, ...]
) -> Floats:
    """Reduced costs of every secret before row sums are priced, (secrets, blocks)."""
    lp = model.lp
    cost = lp.cost[: lp.secrets].copy()
    for rows, prices in zip(lp.local, local, strict=True):
        cost += rows.matrix[:, : lp.secrets].T @ prices
    for link, prices in zip(lp.links, links, strict=True):
        if link.equal:
            continue
        own = (link.matrix.T @ prices).reshape(lp.blocks, lp.block_size)
        cost += own[:, : lp.secrets].T
    pair, block, value = pairs
    np.add.at(cost, (lp.cone.i[pair], block), value)
    np.add.at(cost, (lp.cone.j[pair], block), -value * np.exp(lp.cone.log_ratio[pair]))
    return cost


def _ties(model: Model, left: Floats) -> _Entries:
    """Multipliers that tie the secrets of a class; ``left`` are the costs, and is used up."""
    parts = []
    every = np.arange(model.blocks)
    for secret, parent, up, down in model.tree:
        # a unit on (secret, parent) adds one to the secret's cost and takes it from the parent
        raised = -left[secret]
        left[parent] -= raised
        left[secret] = 0.0
        parts.append((np.full(model.blocks, up), every, np.maximum(raised, 0.0)))
        parts.append((np.full(model.blocks, down), every, np.maximum(-raised, 0.0)))
    return _joined(*parts)


def _forced(model: Model, y: Floats, left: Floats) -> _Entries:
    """Multipliers of pairs below entries fixed at zero (see the figure)."""
    wanted = np.zeros(model.lp.secrets)
    wanted[model.first] = y
    parts = []
    for o in np.flatnonzero(~model.allowed.all(axis=1)).tolist():
        pair, weight = _raised(model.lp, o, left[:, o], wanted)
        parts.append((pair, np.full(len(pair), o), weight))
    return _joined(*parts)


def _raised(lp: BlockLP, block: int, left: Floats, wanted: Floats) -> tuple[Ints, Floats]:
    """Pairs and multipliers that raise ``left`` to ``wanted`` at the forced entries of a block,
    the furthest from the fixed ones first."""
    cone = lp.cone
    zero = lp.fixed[: lp.secrets, block].copy()
    levels: list[Ints] = []
    while True:
        reached = np.flatnonzero(zero[cone.j] & ~zero[cone.i] & (cone.log_ratio <= FAR))
        if not len(reached):
            break
        _, one_each = np.unique(cone.i[reached], return_index=True)
        levels.append(reached[one_each])
        zero[cone.i[levels[-1]]] = True
    weights = []
    for level in reversed(levels):
        i, j = cone.i[level], cone.j[level]
        weight = np.maximum(wanted[i] - left[i], 0.0) * (1 + 1e-12)
        left[i] += weight
        np.subtract.at(left, j, weight * np.exp(cone.log_ratio[level]))
        weights.append(weight)
    return (
        np.concatenate([np.zeros(0, dtype=np.int64), *reversed(levels)]),
        np.concatenate([np.zeros(0), *weights]),
    )
