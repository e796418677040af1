"""From an iterate to points worth proposing: multipliers drained, columns closed and completed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.backend import Backend
from optmech.engines.structured.dense import DenseRows
from optmech.engines.structured.model import FAR, Model
from optmech.engines.structured.newton import BreakdownError, factored
from optmech.engines.structured.pairs import Cone
from optmech.engines.structured.state import State, claim, reduced_cost
from optmech.engines.structured.system import System
from optmech.lp.blocks import BlockLP, Point, Sense

PROJECTIONS = 2
_MOST_PROJECTIONS = 20
_BEARABLE = 0.01
"""More projections follow while negative reduced costs would cost this share of the gap."""
_SWEEPS = 60
_LIFTS = 4
_ROUNDING = 4e-15
"""Sums that differ by no more are as good as equal."""
_ROUGH = 1e-9
"""Row sums as near to one as this can be completed at no cost."""
_SPOILED = 1e-8
_LEAST_SLACK = 1e-6


class Duals:
    """An iterate's multipliers made safe: lam and nu scaled to what the auxiliaries and shared
    variables claim, and z moved until hardly any reduced cost is negative. The backend's factors
    must be those of ``state``.

    ``lowest`` (m,) is min_o L[s,o] - y_s, and ``bound`` the Lagrangian bound Σ_s min_o L[s,o]
    less what the links cost, in float64.
    """

    def __init__(
        self, model: Model, backend: Backend, state: State, projections: int = PROJECTIONS
    ) -> None:
        self._model, self._state = model, state
        self.nu = _shared_prices(model, np.maximum(state.nu, 0.0))
        self.lam = _claimed_prices(state.dense, claim(model, self.nu))
        priced = np.matmul(self.lam[:, None, :], state.dense.Q)[:, 0]
        reduced = reduced_cost(model, state.y, self.nu, priced)
        self.z, left = _restored(backend, state, reduced, projections)
        self.lowest = np.where(model.allowed, left[:, :-1], np.inf).min(axis=0)
        self.bound = float((state.y + self.lowest).sum() - model.links.rhs @ self.nu)

    def cone(self) -> sp.coo_array:
        """Multipliers of the program's pairs, (pairs, blocks)."""
        model, rows = self._model, self._state.rows
        used = (rows.i < model.variables) & (self.z > 0)
        pair = model.pair[rows.i[used], rows.j[used]]
        block, value = rows.block[used], self.z[used]
        for more in (self._ties, self._forced):
            parts = more(pair, block, value)
            if len(parts[0]):
                pair = np.concatenate([pair, parts[0]])
                block = np.concatenate([block, parts[1]])
                value = np.concatenate([value, parts[2]])
        shape = (len(model.lp.cone), model.blocks)
        return sp.coo_array((value, (pair, block)), shape=shape)

    def _forced(self, pair: Ints, block: Ints, value: Floats) -> tuple[Ints, Ints, Floats]:
        """Multipliers of pairs below entries fixed at zero. They cost nothing there, so the
        entries that these pairs force to zero get reduced costs that leave the minimum alone."""
        model = self._model
        pairs, blocks, values = [pair[:0]], [block[:0]], [value[:0]]
        if not model.allowed.all():
            left = self._single_costs(pair, block, value)
            wanted = np.zeros(model.lp.secrets)
            wanted[model.first] = self._state.y
            for o in np.flatnonzero(~model.allowed.all(axis=1)):
                number, weight = _lifts(model.lp, int(o), left[:, o], wanted)
                pairs.append(number)
                blocks.append(np.full(len(number), o))
                values.append(weight)
        return np.concatenate(pairs), np.concatenate(blocks), np.concatenate(values)

    def _ties(self, pair: Ints, block: Ints, value: Floats) -> tuple[Ints, Ints, Floats]:
        """Multipliers that share a class's cost out: every secret but the first is left with
        the same reduced cost in all blocks, so nothing is lost in its minimum."""
        model = self._model
        if not model.tree:
            return pair[:0], block[:0], value[:0]
        left = self._single_costs(pair, block, value)
        pairs, blocks, values = [], [], []
        every = np.arange(model.blocks)
        for secret, parent, up, down in model.tree:
            # a unit on (secret, parent) adds one to the secret's cost and takes it from the parent
            lift = -left[secret]
            left[parent] -= lift
            left[secret] = 0.0
            pairs += [np.full(model.blocks, up), np.full(model.blocks, down)]
            blocks += [every, every]
            values += [np.maximum(lift, 0.0), np.maximum(-lift, 0.0)]
        return np.concatenate(pairs), np.concatenate(blocks), np.concatenate(values)

    def _single_costs(self, pair: Ints, block: Ints, value: Floats) -> Floats:
        """L[s, o] of every secret, before a class's cost is shared out, (secrets, blocks)."""
        lp = self._model.lp
        cost = lp.cost[: lp.secrets].copy()
        for rows, prices in zip(lp.local, self.local(), strict=True):
            cost += rows.matrix[:, : lp.secrets].T @ prices
        links = self.links()
        for link, prices in zip(lp.links, links, strict=True):
            if link.sense is Sense.EQUAL:
                continue
            own = (link.matrix.T @ prices).reshape(lp.blocks, lp.block_size)
            cost += own[:, : lp.secrets].T
        np.add.at(cost, (lp.cone.i[pair], block), value)
        np.add.at(cost, (lp.cone.j[pair], block), -value * np.exp(lp.cone.log_ratio[pair]))
        return np.asarray(cost)

    def local(self) -> tuple[Floats, ...]:
        """Multipliers of every local family, (rows, blocks) each."""
        model, dense = self._model, self._state.dense
        whole = np.zeros((len(model.pool), model.blocks))
        block, place = np.nonzero(dense.live & (dense.index >= 0))
        whole[dense.index[block, place], block] = self.lam[block, place]
        sizes = np.cumsum([rows.matrix.shape[0] for rows in model.lp.local])[:-1]
        return tuple(np.split(whole, sizes)) if model.lp.local else ()

    def links(self) -> tuple[Floats, ...]:
        """Multipliers of every link, in the program's order."""
        model = self._model
        result, used = [], 0
        for link in model.lp.links:
            if link.sense is Sense.EQUAL:
                split = np.zeros(model.lp.secrets)
                split[model.first] = -self._state.y
                result.append(split)
            else:
                result.append(self.nu[used : used + len(link.rhs)])
                used += len(link.rhs)
        return tuple(result)


def _lifts(lp: BlockLP, block: int, left: Floats, wanted: Floats) -> tuple[Ints, Floats]:
    """Pairs and multipliers that raise ``left`` to ``wanted`` at the entries of a block that
    follow from its fixed ones, the furthest from these first."""
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


def _restored(
    backend: Backend, state: State, reduced: Floats, projections: int
) -> tuple[Floats, Floats]:
    """Multipliers near the iterate's whose reduced costs are hardly negative, and those costs.

    The weighted least squares correction dz = (z/s) G H⁻¹ r meets Gᵀdz = r exactly, but for the
    multipliers that it would make negative; what these leave is drained.
    """
    rows = state.rows
    z = rows.z.copy()
    left = reduced.copy()
    backend.charge(rows, z, left)
    bearable = _BEARABLE * float(rows.s @ rows.z)
    for k in range(_MOST_PROJECTIONS):
        if k >= projections and -np.minimum(left, 0.0).min(axis=0).sum() <= bearable:
            break
        x = left[:, None, :].copy()
        backend.solve(x)
        z = backend.shifted(rows, z, x[:, 0])
        left = reduced.copy()
        backend.charge(rows, z, left)
    z = backend.drain(rows, z, left, _SWEEPS)
    left = reduced.copy()
    backend.charge(rows, z, left)
    return z, left


def _shared_prices(model: Model, nu: Floats) -> Floats:
    """nu with h + Dᵀnu = 0 exactly where a shared variable has rows."""
    for column, cost in zip(model.links.shared.T, model.shared_cost, strict=True):
        users = column < 0
        total = float(-column[users] @ nu[users])
        if total > 0:
            nu[users] *= cost / total
    return nu


def _claimed_prices(dense: DenseRows, wanted: Floats) -> Floats:
    """lam >= 0 with Bᵀlam = wanted in every block."""
    lam = np.where(dense.live, np.maximum(dense.lam, 0.0), 0.0)
    for c in range(wanted.shape[1]):
        held = dense.B[:, :, c] != 0
        total = (dense.B[:, :, c] * lam).sum(axis=1)
        usable = total * wanted[:, c] > 0
        factor = np.where(usable, wanted[:, c] / np.where(usable, total, 1.0), 0.0)
        lam = np.where(held, lam * factor[:, None], lam)
    return lam


def lifted(model: Model, backend: Backend, state: State, mu: float, system: System) -> Floats:
    """Columns in the cone, near the state's, with row sums close to one and the other rows hardly
    worse. The backend's factors must be those of ``state``, and are so afterwards.

    Lifting the columns into the cone spoils the equations; the least change in the norm of the
    barrier restores these, and lifting once more leaves a smaller difference. Where that is
    still large, pairs joined late and the state's slack of theirs is fiction: then the slacks of
    the lifted columns make the norm.
    """
    columns = backend.majorant(np.maximum(state.P, 0.0))
    nearer, error = _restored_sums(backend, columns, system)
    if error <= _SPOILED:
        return nearer
    try:
        tight = factored(model, backend, _tightened(state, columns, mu))
        nearest, left = _restored_sums(backend, columns, tight)
    except BreakdownError:
        left = np.inf
    backend.factor(state.rows)
    return nearest if left < error else nearer


def _tightened(state: State, columns: Floats, mu: float) -> State:
    """The state with the slacks that ``columns`` have, and multipliers to match."""
    rows, width = state.rows, columns.shape[1]
    flat, block = columns.ravel(), state.rows.block
    larger = rows.e * flat[block * width + rows.j]
    s = np.maximum(larger - flat[block * width + rows.i], _LEAST_SLACK * larger)
    return replace(state, rows=replace(rows, s=s, z=mu / s))


def _restored_sums(backend: Backend, columns: Floats, system: System) -> tuple[Floats, float]:
    """Columns in the cone with better row sums, and how far these are from one."""
    error = _sum_error(columns)
    for _ in range(_LIFTS):
        nearer = backend.majorant(np.maximum(columns + system.restoring(columns), 0.0))
        before, left = error, _sum_error(nearer)
        if not left < before:
            break
        columns, error = nearer, left
        if not _ROUGH < error < 0.5 * before:
            break
    return columns, error


def _sum_error(columns: Floats) -> float:
    return float(np.abs(columns[:, :-1].sum(axis=0) - 1.0).max())


def closed(
    model: Model, backend: Backend, cone: Cone, state: State, mu: float, system: System
) -> tuple[Floats, float]:
    """A mechanism near the state's and its cost, for programs without rows beyond the pairs."""
    plain = _completed(model, cone, backend.majorant(np.maximum(state.P, 0.0)))
    better = _completed(model, cone, lifted(model, backend, state, mu, system))
    return min(plain, better, key=lambda pair: pair[1])


def _completed(model: Model, cone: Cone, columns: Floats) -> tuple[Floats, float]:
    """Columns of the cone with row sums q made a mechanism: w = t - q is in the cone for t large
    enough, so the cheapest column takes it up before everything is divided by t."""
    q = columns[:, :-1].sum(axis=0)
    if np.ptp(q) <= _ROUNDING * q.max():
        columns[:, :-1] /= q
        return columns, float((model.cost * columns).sum())
    with np.errstate(invalid="ignore"):
        needed = (cone.e * q[None, :] - q[:, None]) / (cone.e - 1)
    t = max(float(q.max()), float(needed[np.isfinite(cone.e)].max(initial=0.0))) * (1 + 1e-15)
    missing = t - q
    price = model.cost[:, :-1] @ missing
    cheapest = int(np.where(model.allowed.all(axis=1), price, np.inf).argmin())
    columns[cheapest, :-1] += missing
    columns /= t
    return columns, float((model.cost * columns).sum())


def point(model: Model, P: Floats, state: State, duals: Duals) -> Point:
    """In the program's own shapes."""
    lp = model.lp
    z = np.zeros((lp.block_size, lp.blocks))
    z[: lp.secrets] = P[:, model.class_of].T
    z[lp.secrets :] = state.a[:, : lp.auxiliary].T
    return Point(
        z=z, shared=state.g.copy(), cone=duals.cone(), local=duals.local(), links=duals.links()
    )
