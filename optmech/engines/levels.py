"""Newton equations of a program whose rows sum to one, by the Schur complement over these sums: the
sum of the inverses of all reports' matrices.

Matrices of a mesh's pattern are factored and inverted along the levels of a breadth-first search:
neighbours lie in the same or adjacent levels, so that every matrix is block tridiagonal, with
blocks of about the square root of the number of control points. For many reports this is faster
than ``engines.fronts``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from optmech.base.arrays import Floats, Ints


class Levels:
    """The levels of triangles with control points (T, n) out of ``count``."""

    def __init__(self, control: Ints, count: int) -> None:
        level = _levels(control, count)
        self.order = np.argsort(level, kind="stable")
        """Control points in the order of the factors."""
        self.ends = np.concatenate([[0], np.cumsum(np.bincount(level))])
        place = np.empty(count, dtype=np.int64)
        place[self.order] = np.arange(count)
        inner = place - self.ends[level]
        size = np.diff(self.ends)
        # diagonal blocks, and those below them, one after the other
        both = np.column_stack([size * size, np.append(size[1:], 0) * size]).ravel()
        self._begin = np.concatenate([[0], np.cumsum(both)])
        each = control.shape[1]
        row = np.repeat(control, each, axis=1).ravel()
        column = np.tile(control, (1, each)).ravel()
        below = level[row] - level[column]
        start = self._begin[2 * level[column] + np.maximum(below, 0)]
        self._kept = below >= 0
        self._target = (start + inner[row] * size[level[column]] + inner[column])[self._kept]

    def __len__(self) -> int:
        return len(self.ends) - 1

    def work(self, reports: int) -> float:
        """About the floating point operations of a factor and of the Schur complement."""
        inverses = 6.0 * float((np.diff(self.ends) ** 2 * self.ends[1:]).sum())
        return reports * inverses + float(self.ends[-1]) ** 3 / 3

    def memory(self, reports: int) -> float:
        """About the bytes of these."""
        return 8.0 * (2 * reports * float(self._begin[-1]) + 4 * float(self.ends[-1]) ** 2)

    def factor(self, local: Floats, threads: int = 1) -> Factor:
        """Cholesky factors of Σ_t of ``local`` (O, T, n, n); LinAlgError where one is not positive
        definite."""
        if threads == 1 or len(local) < 2 * threads:
            return Factor(self, *self._factored(local))
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(self._factored, np.array_split(local, threads)))
        inverses, below = (
            [np.concatenate(level) for level in zip(*(part[k] for part in parts), strict=True)]
            for k in range(2)
        )
        return Factor(self, inverses, below)

    def _factored(self, local: Floats) -> tuple[list[Floats], list[Floats]]:
        """Inverses of the diagonal blocks of the factors, and the blocks below them."""
        total, size = int(self._begin[-1]), np.diff(self.ends)
        flat = np.array(
            [np.bincount(self._target, part.ravel()[self._kept], total) for part in local]
        )
        inverses, below = [], []
        previous: Floats | None = None
        for k, width in enumerate(size.tolist()):
            diagonal = flat[:, self._begin[2 * k] : self._begin[2 * k + 1]].reshape(
                -1, width, width
            )
            if previous is not None:
                diagonal = diagonal - previous @ previous.transpose(0, 2, 1)
            inverse = np.linalg.inv(np.linalg.cholesky(diagonal))
            inverses.append(inverse)
            if k + 1 < len(size):
                part = flat[:, self._begin[2 * k + 1] : self._begin[2 * k + 2]]
                previous = part.reshape(-1, int(size[k + 1]), width) @ inverse.transpose(0, 2, 1)
                below.append(previous)
        return inverses, below


class Factor:
    """L with L Lᵀ the matrices: inverses of its diagonal blocks, and the blocks below them."""

    def __init__(self, levels: Levels, inverses: list[Floats], below: list[Floats]) -> None:
        self._levels, self._inverses, self._below = levels, inverses, below

    def solve(self, right: Floats) -> Floats:
        """The solution for (O, N), or for many right sides (O, N, R), of the same shape."""
        levels = self._levels
        rows = right.reshape(*right.shape[:2], -1)[:, levels.order]
        parts = [rows[:, a:b] for a, b in zip(levels.ends, levels.ends[1:], strict=False)]
        for k, inverse in enumerate(self._inverses):
            if k:
                parts[k] = parts[k] - self._below[k - 1] @ parts[k - 1]
            parts[k] = inverse @ parts[k]
        for k in range(len(parts) - 1, -1, -1):
            if k + 1 < len(parts):
                parts[k] = parts[k] - self._below[k].transpose(0, 2, 1) @ parts[k + 1]
            parts[k] = self._inverses[k].transpose(0, 2, 1) @ parts[k]
        out = np.empty(rows.shape)
        out[:, levels.order] = np.concatenate(parts, axis=1)
        return out.reshape(right.shape)

    def summed_inverse(self, threads: int = 1) -> Floats:
        """The lower triangle of the sum of the inverses, (N, N), rows and columns in the order of
        the levels."""
        reports = range(len(self._inverses[0]))
        if threads == 1:
            return self._summed(reports)
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(self._summed, [reports[k::threads] for k in range(threads)]))
        return np.asarray(sum(parts[1:], start=parts[0]))

    def _summed(self, reports: range) -> Floats:
        ends = self._levels.ends
        out = np.zeros((int(ends[-1]), int(ends[-1])))
        for o in reports:
            forward: list[Floats] = []
            for k, inverse in enumerate(self._inverses):
                part = np.zeros((len(inverse[o]), int(ends[k + 1])))
                if k:
                    part[:, : ends[k]] = -inverse[o] @ (self._below[k - 1][o] @ forward[-1])
                part[:, ends[k] :] = inverse[o]
                forward.append(part)
            last: Floats | None = None
            for k in range(len(forward) - 1, -1, -1):
                part = forward[k]
                if last is not None:
                    part = part - self._below[k][o].T @ last[:, : ends[k + 1]]
                last = self._inverses[k][o].T @ part
                out[ends[k] : ends[k + 1], : ends[k + 1]] += last
        return out


class Summed:
    """The equations of all reports and of the row sums, with the Schur complement factored."""

    def __init__(self, factor: Factor, order: Ints, threads: int) -> None:
        self._factor, self._order = factor, order
        self._schur = cho_factor(factor.summed_inverse(threads), lower=True, check_finite=False)

    def solve(self, right: Floats) -> Floats:
        """x (O, N) with Σ_o x_o = 0 and M_o x_o − r_o the same for all reports, for r (O, N); or
        for many r at once, (O, N, R)."""
        total = -self._factor.solve(right).sum(axis=0)[self._order]
        same = np.empty_like(total)
        same[self._order] = cho_solve(self._schur, total, check_finite=False)
        found = self._factor.solve(right + same)
        return np.asarray(found - found.mean(axis=0))


def _levels(control: Ints, count: int) -> Ints:
    """The distance of every point, in triangles, from one at an end of the mesh; where it falls
    into parts, those of one part after those of another."""
    from scipy.sparse.csgraph import connected_components, shortest_path

    each = control.shape[1]
    row, column = np.repeat(control, each, axis=1).ravel(), np.tile(control, (1, each)).ravel()
    graph = sp.csr_array((np.ones(len(row)), (row, column)), shape=(count, count))
    level, first = np.zeros(count, dtype=np.int64), 0
    parts, part = connected_components(graph, directed=False)
    for own in (np.flatnonzero(part == k) for k in range(parts)):
        inner, away = graph[own][:, own], np.zeros(len(own))
        for _ in range(3):
            away = shortest_path(inner, directed=False, unweighted=True, indices=away.argmax())
        level[own] = first + away.astype(np.int64)
        first = int(level[own].max()) + 1
    return level
