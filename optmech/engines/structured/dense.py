"""Rows of a block beyond pairs (distortion, lifted ratios, loss limits): few of them are held in
every block, more are added when they are nearly violated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone
from optmech.engines.structured.tuning import TUNING


@dataclass(eq=False)
class DenseRows:
    """Rows Q v + B a - u = 0, u >= 0, with multipliers lam; empty places have ``live`` False,
    zeros in Q, B and lam, and u = 1.

    ``index`` (blocks, K) numbers the pool's rows; -1 - k is the k-th loss limit.
    """

    index: Ints
    live: NDArray[np.bool_]
    Q: Floats
    B: Floats
    u: Floats
    lam: Floats

    @property
    def count(self) -> int:
        """Number of live rows."""
        return int(self.live.sum())

    def values(self, P: Floats, a: Floats) -> Floats:
        """Q v + B a, (blocks, K)."""
        if not self.index.shape[1]:
            return np.zeros(self.index.shape)
        own = np.matmul(self.Q, P[:, :, None]) + np.matmul(self.B, a[:, :, None])
        return np.asarray(own[:, :, 0])

    def on_variables(self) -> Floats:
        """Qᵀ lam, (blocks, m + 1)."""
        return np.asarray(np.matmul(self.lam[:, None, :], self.Q)[:, 0])

    def on_auxiliaries(self) -> Floats:
        """Bᵀ lam, (blocks, p)."""
        return np.asarray(np.matmul(self.lam[:, None, :], self.B)[:, 0])


def first_dense(model: Model, cone: Cone) -> DenseRows:
    """The loss limits, and of every auxiliary's rows those that a column concentrated where the
    block is cheap would meet first, and the one that a constant column meets first."""
    blocks, m = model.blocks, model.variables
    near = _slack_share(model, _typical(model, cone), np.zeros((blocks, model.sides.shape[1])))
    flat = model.pool @ np.ones(m + 1)
    chosen: list[Ints] = []
    for group in _groups(model.sides):
        few = len(group) if len(group) <= TUNING.dense_whole else TUNING.dense_at_first
        order = group[np.argsort(near[:, group], axis=1, kind="stable")[:, :few]]
        best = group[flat[group].argmin()]
        missing = ~(order == best).any(axis=1)
        order[missing, -1] = best
        chosen.append(order)
    limits = -1 - np.tile(np.arange(len(model.limits)), (blocks, 1))
    index = np.hstack([*chosen, limits]) if chosen else limits
    return _make(model, index.astype(np.int64))


def _groups(sides: Floats) -> list[Ints]:
    """Rows of every auxiliary, and those without one."""
    groups = [np.flatnonzero(column) for column in sides.T]
    groups.append(np.flatnonzero(~sides.any(axis=1)))
    return [group for group in groups if len(group)]


def _typical(model: Model, cone: Cone) -> Floats:
    """A column per block that is largest where the block's loss is relatively least."""
    cost = model.cost[:, :-1] if model.cost.any() else model.limits[:, :, :-1].sum(axis=0)
    if not len(cost):
        cost = model.cost[:, :-1]
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
    return np.asarray(slack / scale)


def _make(model: Model, index: Ints) -> DenseRows:
    """Coefficients for given row numbers."""
    blocks, places = index.shape
    width = model.variables + 1
    pool = np.vstack([model.pool, np.zeros((1, width))])
    sides = np.vstack([model.sides, np.zeros((1, model.sides.shape[1]))])
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
    grown = _make(model, index)
    fresh = grown.live & np.isnan(u)
    slack = grown.values(P, a)
    floor = 0.01 * (np.maximum(-grown.Q, 0) @ P[:, :, None])[:, :, 0]
    floor += 0.01 * np.maximum(-(grown.B @ a[:, :, None])[:, :, 0], 0)
    grown.u = np.where(fresh, np.maximum(slack, np.maximum(floor, 1e-300)), u)
    grown.u[~grown.live] = 1.0
    largest = np.max(lam, axis=1, keepdims=True, initial=0.0, where=~np.isnan(lam))
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
