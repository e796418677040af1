"""Columns of private mechanisms for a statistic where losses or attacks are limited too.

A limit on losses adds up over reports, each with the label whose loss it has; one on attacks adds
up what the best guess of every report misses. So both are rows of the program of weights, and their
multipliers count where columns are sought, by linear programs of what the last one says. Columns
need not be extreme where an attack is limited, as a divided report tells it more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
from scipy.optimize import linprog

from optmech.base.arrays import Floats, Ints
from optmech.engines.rays import Rays, Weighed, needed, weighed

_ROUNDS = 40
_PATIENCE = 5
_FIRST = 60
"""Rounds until weights keep the limits."""
_CLIMBS = 12
_LINES = 12
_SLACK = 1e-9
"""Of a limit, what the program leaves for rounding."""


@dataclass(frozen=True)
class Limits:
    """``losses`` (q, L, S): what a column counts of each limit with each label, at most ``most``
    (q,) in all; ``errors``, of every attack (T, S): what each guess misses, of which the least of
    every column is at least ``least`` in all."""

    losses: Floats
    most: Floats
    errors: tuple[Floats, ...]
    least: Floats

    @cached_property
    def bounds(self) -> Floats:
        """What the rows of ``counts`` are at most."""
        return np.concatenate([self.most, -self.least])

    def counts(self, columns: Floats, labels: Ints) -> Floats:
        """(limits, columns)."""
        own = np.einsum("qms,ms->qm", self.losses[:, labels], columns)
        missed = [-(table @ columns.T).min(axis=0) for table in self.errors]
        return np.vstack([own, *missed])


@dataclass(frozen=True)
class Pool:
    """Columns (m, S), each with a label (m,)."""

    columns: Floats
    labels: Ints

    def joined(self, other: Pool) -> Pool:
        """Both, each column with each label once."""
        columns = np.vstack([self.columns, other.columns])
        labels = np.concatenate([self.labels, other.labels])
        key = np.column_stack([np.round(columns, 9), labels])
        first = np.sort(np.unique(key, axis=0, return_index=True)[1])
        return Pool(columns[first], labels[first])

    def kept(self, which: Floats) -> Pool:
        return Pool(self.columns[which], self.labels[which])


class Program:
    """The column, with πᵀv = 1, of a label that is worth most at prices."""

    def __init__(self, rays: Rays, limits: Limits) -> None:
        self.rays, self.limits = rays, limits
        factor, n = rays.factor, len(rays.factor)
        pairs = np.argwhere(needed(factor) if np.isfinite(factor).all() else np.isfinite(factor))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        scale = np.sqrt(factor[pairs[:, 0], pairs[:, 1]])
        every, count = np.arange(len(pairs)), len(limits.errors)
        rows = np.zeros((len(pairs), n + count))
        rows[every, pairs[:, 0]], rows[every, pairs[:, 1]] = 1 / scale, -scale
        unit = np.eye(count)
        parts = [np.hstack([-table, np.tile(unit[a], (len(table), 1))])
                 for a, table in enumerate(limits.errors)]  # fmt: skip
        self.rows = np.vstack([rows, *parts])
        self.equal = np.concatenate([rays.prior, np.zeros(count)])[None]

    def best(self, direction: Floats, charges: Floats, label: int) -> Floats | None:
        """The most of the direction less what is charged."""
        q = len(self.limits.most)
        goal = direction - charges[:q] @ self.limits.losses[:, label]
        cost, right = -np.concatenate([goal, charges[q:]]), np.zeros(len(self.rows))
        found = linprog(cost, A_ub=self.rows, b_ub=right, A_eq=self.equal, b_eq=[1.0])
        return None if found.x is None else found.x[: len(direction)]

    def climbed(
        self, now: Weighed, charges: Floats, used: Pool, random: np.random.Generator, least: float
    ) -> Pool:
        """Columns that are worth adding, each by programs of what the last one says."""
        n, count = used.columns.shape[1], self.limits.losses.shape[1]
        columns, labels = [], []
        for k in range(max(_CLIMBS, n // 2)):
            v = np.exp(2 * random.standard_normal(n))
            label = int(random.integers(count))
            if k % 2:
                at = int(random.integers(len(used.labels)))
                v, label = used.columns[at], int(used.labels[at])
            v, value = v / (self.rays.prior @ v), -np.inf
            for _ in range(_LINES):
                found = self.best(2 * now.curve @ v - now.prices[:n], charges, label)
                if found is None:
                    break
                v = found
                each = self.limits.losses @ v
                label = int((charges[: len(each)] @ each).argmin()) if len(each) else 0
                counted = self.limits.counts(v[None], np.array([label]))[:, 0]
                worth = float(v @ now.curve @ v - now.prices[:n] @ v - charges @ counted)
                if worth <= value + 1e-9 * abs(value):
                    break
                value = worth
            if value > least:
                columns.append(v)
                labels.append(label)
        return Pool(np.array(columns).reshape(-1, n), np.array(labels, dtype=np.int64))

    def kept(self, pool: Pool, stop: Callable[[], bool]) -> tuple[Pool, Floats] | None:
        """With columns that weights of keep the limits, and these; None where there seem to be
        none."""
        n, bounds = pool.columns.shape[1], self.limits.bounds
        for _ in range(_FIRST):
            counts = self.limits.counts(pool.columns, pool.labels)
            m = len(pool.labels)
            # the least that all limits are exceeded by, of their sizes
            size = np.maximum(np.abs(bounds), 1e-9)
            found = linprog(
                np.r_[np.zeros(m), 1.0],
                A_ub=np.column_stack([counts / size[:, None], -np.ones(len(bounds))]),
                b_ub=bounds / size, A_eq=np.column_stack([pool.columns.T, np.zeros(n)]),
                b_eq=np.ones(n), bounds=[(0, None)] * m + [(-0.5, None)],
            )  # fmt: skip
            if found.x is None:
                return None
            if found.x[-1] < -1e-2 or stop():
                break
            charges = np.maximum(-found.ineqlin.marginals, 0.0) / size
            prices = found.eqlin.marginals
            fresh = []
            for label in range(self.limits.losses.shape[1]):
                v = self.best(prices, charges, label)
                if v is not None:
                    counted = self.limits.counts(v[None], np.array([label]))[:, 0]
                    if float(prices @ v - charges @ counted) > 1e-7:
                        fresh.append((v, label))
            if not fresh:
                break
            columns, labels = zip(*fresh, strict=True)
            pool = pool.joined(Pool(np.array(columns), np.array(labels)))
        else:
            return None
        return (pool, found.x[:-1]) if found.x[-1] < -_SLACK else None


def started(
    program: Program, information: Floats, stop: Callable[[], bool], draws: int = 200
) -> tuple[Pool, Floats] | None:
    """Columns, and weights that keep the limits; None where none were found."""
    rays, limits = program.rays, program.limits
    random = np.random.default_rng(0)
    values, vectors = la.eigh(information)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    n, count = len(information), limits.losses.shape[1]
    free = np.zeros(len(limits.bounds))
    given = random.standard_normal((min(draws, 4 * n), n)) @ root.T
    found = [program.best(g, free, 0) for g in given]
    drawn = np.array([v for v in found if v is not None])
    # as much as may be for one secret, or as little
    sharp = np.where(np.eye(n, dtype=bool), 1.0, rays.factor) ** -1.0
    sharp = np.vstack([sharp, 1 / sharp.T])
    columns = np.vstack([drawn, sharp / (sharp @ rays.prior)[:, None], np.ones((1, n))])
    pool = Pool(np.repeat(columns, count, axis=0), np.tile(np.arange(count), len(columns)))
    counted = limits.losses.sum(axis=0)[pool.labels]
    cost = (counted * pool.columns).sum(axis=1).reshape(-1, count)
    least = np.argsort(cost, axis=1)[:, : min(2, count)]
    few = np.unique(least + count * np.arange(len(cost))[:, None])
    return program.kept(pool.kept(few), stop)


def designed(
    program: Program, wanted: Floats, pool: Pool, bound: float, gap: float, known: float,
    stop: Callable[[], bool], tell: Callable[[str], None],
) -> tuple[Weighed, Ints] | None:  # fmt: skip
    """Columns with weights and labels, as ``rays.designed`` finds them, from those of a pool."""
    gap *= max(1 - known / bound, 1e-4) if bound > 0 else 1.0
    limits, n = program.limits, len(wanted)
    random = np.random.default_rng(0)
    best, history = None, list[float]()
    for _ in range(_ROUNDS):
        counts = limits.counts(pool.columns, pool.labels)
        size = np.maximum(np.abs(limits.bounds), 1e-9)
        most = limits.bounds / size - _SLACK
        now = weighed(wanted, pool.columns, min(gap, 1e-3) / 10, counts / size[:, None], most)
        if now is None:
            break
        charges = np.maximum(now.prices[n:], 0.0) / size
        if best is None or now.value < best[0].value:
            best = now, pool.labels
        history.append(best[0].value)
        tell(f"{len(pool.labels)} columns, variance {now.value:.6g}, bound {bound:.6g}")
        stalled = len(history) > _PATIENCE and history[-1 - _PATIENCE] < best[0].value * (1 + gap)
        if now.value <= bound * (1 + gap) or stop() or stalled:
            break
        used = pool.kept(now.weights > 3e-3 * now.weights.max())
        added = program.climbed(now, charges, used, random, gap * now.value / 10)
        if not len(added.labels):
            break
        pool = used.joined(added)
    return best
