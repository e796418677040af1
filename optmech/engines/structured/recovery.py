"""From this engine's variables back to the program's: one variable per secret, a multiplier for
every pair, local row and coupling row.

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

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.model import FAR, Model
from optmech.engines.structured.repair import Duals
from optmech.engines.structured.state import State
from optmech.lp.blocks import BlockLP, Point, Sense

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
    return model.pair[rows.i[used], rows.j[used]], rows.block[used], duals.z[used]


def coupling(model: Model, duals: Duals) -> tuple[Floats, ...]:
    """Multipliers of every family of coupling rows, in the program's order."""
    result, used = [], 0
    for link in model.lp.links:
        if link.sense is Sense.EQUAL:
            split = np.zeros(model.lp.secrets)
            split[model.first] = -duals.y
            result.append(split)
        else:
            result.append(duals.nu[used : used + len(link.rhs)])
            used += len(link.rhs)
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
    pair, block, value = zip(*parts, strict=True)
    return np.concatenate(pair), np.concatenate(block), np.concatenate(value)


def _costs(
    model: Model, pairs: _Entries, local: tuple[Floats, ...], links: tuple[Floats, ...]
) -> Floats:
    """Reduced costs of every secret before row sums are priced, (secrets, blocks)."""
    lp = model.lp
    cost = lp.cost[: lp.secrets].copy()
    for rows, prices in zip(lp.local, local, strict=True):
        cost += rows.matrix[:, : lp.secrets].T @ prices
    for link, prices in zip(lp.links, links, strict=True):
        if link.sense is Sense.EQUAL:
            continue
        own = (link.matrix.T @ prices).reshape(lp.blocks, lp.block_size)
        cost += own[:, : lp.secrets].T
    pair, block, value = pairs
    np.add.at(cost, (lp.cone.i[pair], block), value)
    np.add.at(cost, (lp.cone.j[pair], block), -value * np.exp(lp.cone.log_ratio[pair]))
    return np.asarray(cost)


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
