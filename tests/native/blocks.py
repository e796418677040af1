"""Random blocks of pair rows, and what kernels make of them by dense matrices and plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optmech.base.arrays import Floats, Ints, begins
from optmech.engines.structured.kernels import PairRows
from optmech.engines.structured.rows import Rows


@dataclass
class Blocks:
    """Some blocks of m variables with rows of random pairs and of the constant zero (i = m).

    A share ``bounded`` of the variables has rows v_j >= 0: all, so that matrices are definite, or
    some, so that others may have no rows at all. Slacks and multipliers range over ``decades``
    powers of ten either way.
    """

    rng: np.random.Generator
    count: int
    m: int
    share: float
    decades: float
    bounded: float

    @classmethod
    def random(cls, seed: int, bounded: float = 1.0) -> Blocks:
        rng = np.random.default_rng(seed)
        count, m = int(rng.integers(1, 8)), int(rng.choice([1, 2, 3, 5, 8, 13, 17, 31, 44]))
        share, decades = (
            float(rng.choice([0.0, 0.05, 0.3, 1.0])),
            float(rng.choice([0.0, 1.0, 4.0])),
        )
        return cls(rng, count, m, share, decades, bounded)

    @cached_property
    def rows(self) -> Rows:
        own, m = [], self.m
        for _ in range(self.count):
            pairs = np.argwhere((self.rng.random((m, m)) < self.share) & ~np.eye(m, dtype=bool))
            chosen = np.flatnonzero(self.rng.random(m) < self.bounded)
            bounds = np.column_stack([np.full(len(chosen), m), chosen])
            own.append(np.vstack([pairs, bounds]))
        i, j = np.vstack(own).astype(np.int32).T
        e = np.where(i < m, np.exp(self.rng.uniform(0.1, 3, len(i))), 1.0)
        s, z = 10 ** self.rng.uniform(-self.decades, self.decades, (2, len(i)))
        rows = Rows(begins(np.array([len(part) for part in own])), i.copy(), j.copy(), e, s, z)
        for name in ("ds", "ds2"):
            setattr(rows, name, s * self.rng.normal(size=len(i)))
        for name in ("dz", "dz2"):
            setattr(rows, name, z * self.rng.normal(size=len(i)))
        return rows

    @property
    def packed(self) -> PairRows:
        return PairRows(self.rows)

    def columns(self, *more: int) -> Floats:
        """Random numbers (blocks, ..., m + 1), zero at the end."""
        out = self.rng.normal(size=(self.count, *more, self.m + 1))
        out[..., -1] = 0.0
        return out

    @property
    def every(self) -> range:
        return range(self.count)

    def own(self, o: int) -> slice:
        return slice(*self.rows.offset[o : o + 2].tolist())

    def rows_matrix(self, o: int) -> Floats:
        """The rows of block o as a matrix."""
        rows, own = self.rows, self.own(o)
        count = own.stop - own.start
        out = np.zeros((count, self.m + 1))
        out[np.arange(count), rows.j[own]] = rows.e[own]
        out[np.arange(count), rows.i[own]] -= 1.0
        out[:, -1] = 0.0
        return out

    def matrix(self, o: int) -> Floats:
        """Gᵀ diag(z/s) G over the variables."""
        G, own = self.rows_matrix(o)[:, :-1], self.own(o)
        return G.T @ ((self.rows.z[own] / self.rows.s[own])[:, None] * G)

    def inverse(self, o: int) -> Floats:
        """Of H over the variables that have rows, zero elsewhere."""
        H = self.matrix(o)
        scale = np.where(H.diagonal() > 0, 1 / np.sqrt(np.maximum(H.diagonal(), 1e-300)), 0.0)
        unit = H * scale[:, None] * scale
        unit[scale == 0, scale == 0] = 1.0
        return np.linalg.inv(unit) * scale[:, None] * scale

    def held(self, o: int) -> set[tuple[int, int]]:
        own = self.own(o)
        return set(zip(self.rows.i[own].tolist(), self.rows.j[own].tolist(), strict=True))


def drained(blocks: Blocks, z: Floats, rd: Floats, sweeps: int) -> Floats:
    """Multipliers lowered where reduced costs are negative, block by block."""
    rows, out = blocks.rows, z.copy()
    for o in blocks.every:
        own, reduced = blocks.own(o), rd[o].copy()
        i, j, e = rows.i[own], rows.j[own], rows.e[own]
        for _ in range(sweeps):
            if reduced[:-1].min() > -1e-16:
                break
            inflow = np.bincount(j, e * out[own], blocks.m + 1)[:-1]
            share = np.zeros(blocks.m)
            needy = (reduced[:-1] < 0) & (inflow > 0)
            share[needy] = np.minimum(1.0, -reduced[:-1][needy] / inflow[needy] * (1 + 1e-12))
            reduced[:-1] += share * inflow
            less = share[j] * out[own]
            out[own] -= less
            reduced -= np.bincount(i, less, blocks.m + 1)
    return out


def worst(decay: Floats, v: Floats, held: set[tuple[int, int]], level: float) -> tuple[Ints, Ints]:
    """The pair that is violated most, for every i and every j, or -1."""
    m = len(v)
    by = np.full((2, m), -1)
    most = np.full((2, m), level)
    for i in range(m):
        for j in range(m):
            excess = decay[i, j] * v[i] / v[j] if v[j] > 0 else 0.0
            if (i, j) in held:
                continue
            for side, own, other in ((0, i, j), (1, j, i)):
                if excess > most[side, own]:
                    most[side, own], by[side, own] = excess, other
    return by[0], by[1]
