"""Newton equations of a program over a mesh whose rows sum to one.

Every report has a matrix of the mesh's pattern, M_o; wanted are x_o with Σ_o x_o = 0 and
M_o x_o − r_o the same for all reports.

``Fronts`` factor them by nested dissection. At every control point one report's unknown is minus
the sum of the others', which leaves a positive definite matrix with a block of O − 1 unknowns a
point. It is factored along a tree of parts of the mesh (George 1973; Duff and Reid 1983): what lies
inside a part is eliminated there, and its border is handed on. Points inside a triangle never leave
it. For N points this takes about O³ N^1.5 operations.

``Levels`` use the Schur complement over the row sums, the sum of the inverses of all reports'
matrices. These are factored and inverted along the levels of a breadth-first search: neighbours lie
in the same or adjacent levels, so that every matrix is block tridiagonal, with blocks of about the
square root of the number of control points. That takes O N² times the width of the mesh: less where
there are many reports.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, cho_factor, cho_solve, lapack

from optmech.base.arrays import Floats, Ints, begins
from optmech.base.read_only import record

_LEAF = 12
"""Linear triangles that are put together before anything is eliminated."""
_ANGLES = np.pi / 4 * np.arange(4)
"""Directions of the cuts that are tried."""


@record
class Part:
    """Some triangles: two smaller parts, or, where there are none, those in ``triangles``."""

    children: tuple[int, ...]
    triangles: Ints
    eliminated: Ints
    """Control points that lie in this part only, and not already in one of the smaller ones."""
    border: Ints
    counts: Ints
    """How many triangles of this part each point of the border lies in."""

    @property
    def points(self) -> Ints:
        """All control points, those that are eliminated first."""
        return np.concatenate([self.eliminated, self.border])


class Fronts:
    """A tree of parts of triangles with control points (T, n) out of ``count``, and with middles
    (T, 2); children come before their parents."""

    def __init__(self, control: Ints, count: int, middles: Floats) -> None:
        self.control, self.count = control, count
        self.parts: list[Part] = []
        self._total = np.bincount(control.ravel(), minlength=count)
        self._middles = middles
        self._leaf = max(1, 3 * _LEAF // control.shape[1])
        self._divide(np.arange(len(control)))

    def _sizes(self, reports: int) -> Floats:
        """How many unknowns of every part are eliminated, and how many handed on, (2, parts)."""
        sizes = [(len(part.eliminated), len(part.border)) for part in self.parts]
        return (reports - 1.0) * np.array(sizes).T

    def work(self, reports: int) -> float:
        """About the floating point operations of a factor."""
        inner, outer = self._sizes(reports)
        return float((inner**3 / 3 + inner**2 * outer + inner * outer**2).sum())

    def memory(self, reports: int) -> float:
        """About the bytes of a factor."""
        inner, outer = self._sizes(reports)
        return 8.0 * float(inner @ (inner + outer))

    def factor(self, local: Floats, pivots: Ints) -> FrontFactor:
        """Factor Σ_t of ``local`` (O, T, n, n); the reports ``pivots`` (N,) are no unknowns.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where rounding leaves no positive definite matrix.
        """
        return FrontFactor(self, local, pivots)

    def _divide(self, triangles: Ints) -> int:
        if len(triangles) <= self._leaf:
            points, counts = np.unique(self.control[triangles], return_counts=True)
            return self._add((), triangles, points, counts)
        half = len(triangles) // 2
        cuts = []
        for angle in _ANGLES.tolist():
            along = self._middles[triangles] @ (np.cos(angle), np.sin(angle))
            order = triangles[np.argsort(along, kind="stable")]
            cuts.append((order[:half], order[half:]))
        one, other = min(cuts, key=self._shared)
        children = self._divide(one), self._divide(other)
        borders = [(self.parts[c].border, self.parts[c].counts) for c in children]
        border, held = map(np.concatenate, zip(*borders, strict=True))
        points, which = np.unique(border, return_inverse=True)
        counts = np.bincount(which, held, len(points)).astype(np.int64)
        return self._add(children, triangles[:0], points, counts)

    def _shared(self, cut: tuple[Ints, Ints]) -> int:
        """How many points both sides of a cut have."""
        return len(np.intersect1d(self.control[cut[0]], self.control[cut[1]]))

    def _add(self, children: tuple[int, ...], triangles: Ints, points: Ints, counts: Ints) -> int:
        inside = counts == self._total[points]
        border = points[~inside], counts[~inside]
        self.parts.append(Part(children, triangles, points[inside], *border))
        return len(self.parts) - 1


class FrontFactor:
    """L with L Lᵀ the matrix, part by part: its diagonal blocks, and those below them."""

    def __init__(self, fronts: Fronts, local: Floats, pivots: Ints) -> None:
        reports = len(local)
        self._fronts, self._pivots, self._width = fronts, pivots, reports - 1
        every = np.broadcast_to(np.arange(reports), (fronts.count, reports))
        self._others = every[every != pivots[:, None]].reshape(fronts.count, -1)
        self._blocks: list[tuple[Floats, Floats]] = []
        left: dict[int, Floats] = {}
        for number, part in enumerate(fronts.parts):
            front = self._assembled(part, local, left)
            inner = len(part.eliminated) * self._width
            diagonal, flaw = lapack.dpotrf(front[:inner, :inner], lower=1, clean=1)
            if flaw:
                raise np.linalg.LinAlgError("not positive definite")
            below = front[inner:, :inner]
            if below.size:
                below = blas.dtrsm(1.0, diagonal, below, side=1, lower=1, trans_a=1)
            self._blocks.append((diagonal, below))
            left[number] = front[inner:, inner:] - below @ below.T

    def _assembled(self, part: Part, local: Floats, left: dict[int, Floats]) -> Floats:
        points = part.points
        if not part.children:
            return self._leaf(part, points, local)
        size, width = len(points), self._width
        front = np.zeros((size, width, size, width))
        for child in part.children:
            at = _places(points, self._fronts.parts[child].border)
            handed = left.pop(child).reshape(len(at), width, len(at), width)
            front[at[:, None], :, at, :] += handed.transpose(0, 2, 1, 3)
        return front.reshape(size * width, size * width)

    def _leaf(self, part: Part, points: Ints, local: Floats) -> Floats:
        """The front of some triangles, with the pivots' unknowns taken out."""
        size, width = len(points), self._width
        own = np.zeros((len(local), size, size))
        every = _places(points, self._fronts.control[part.triangles])
        for t, at in zip(part.triangles, every, strict=True):
            own[:, at[:, None], at] += local[:, t]
        pivots, others, rows = self._pivots[points], self._others[points], np.arange(size)
        # between points k and l: D_o where o = o', less D of a pivot that is o' or o, and with it
        # where both have the same pivot
        mine = own[pivots[:, None], rows[:, None], rows]
        theirs = own[pivots[None, :], rows[:, None], rows]
        plain = own[others, rows[:, None]]
        front = np.where(
            others[:, :, None, None] == others[None, None, :, :], plain[..., None], 0.0
        )
        front -= np.where(others == pivots[:, None, None, None], mine[:, None, :, None], 0.0)
        at = others[:, :, None, None] == pivots[:, None]
        front -= np.where(at, theirs[:, None, :, None], 0.0)
        front += np.where(pivots[:, None] == pivots, mine, 0.0)[:, None, :, None]
        return front.reshape(size * width, size * width)

    def solve(self, right: Floats) -> Floats:
        """x (O, N) with Σ_o x_o = 0 and M_o x_o − r_o the same for all reports, for r (O, N); or
        for many r at once, (O, N, R)."""
        points, width = np.arange(self._fronts.count), self._width
        turned = right.reshape(*right.shape[:2], -1).swapaxes(0, 1)
        x = turned[points[:, None], self._others] - turned[points, self._pivots][:, None]
        count = x.shape[2]
        both = zip(self._fronts.parts, self._blocks, strict=True)
        some = [(part, *blocks) for part, blocks in both if len(part.eliminated)]
        for part, diagonal, below in some:
            own = _triangular(diagonal, x[part.eliminated].reshape(-1, count), 0)
            x[part.eliminated] = own.reshape(-1, width, count)
            x[part.border] -= (below @ own).reshape(-1, width, count)
        for part, diagonal, below in reversed(some):
            own = x[part.eliminated].reshape(-1, count)
            own = own - below.T @ x[part.border].reshape(-1, count)
            x[part.eliminated] = _triangular(diagonal, own, 1).reshape(-1, width, count)
        out = np.empty_like(turned)
        out[points[:, None], self._others] = x
        out[points, self._pivots] = -x.sum(axis=1)
        return out.swapaxes(0, 1).reshape(right.shape)


def _places(points: Ints, some: Ints) -> Ints:
    """Where some of the points are among them."""
    sorter = np.argsort(points)
    return sorter[np.searchsorted(points, some, sorter=sorter)]


def _triangular(lower: Floats, right: Floats, transposed: int) -> Floats:
    """L⁻¹ r, or L⁻ᵀ r, for r (n, R)."""
    if right.shape[1] == 1:
        found = blas.dtrsv(lower, right[:, 0], lower=1, trans=transposed)[:, None]
    else:
        found = blas.dtrsm(1.0, lower, right, lower=1, trans_a=transposed)
    return np.asarray(found)


class Levels:
    """The levels of triangles with control points (T, n) out of ``count``."""

    def __init__(self, control: Ints, count: int) -> None:
        level = _levels(control, count)
        self.order = np.argsort(level, kind="stable")
        """Control points in the order of the factors."""
        self.ends = begins(np.bincount(level))
        place = np.empty(count, dtype=np.int64)
        place[self.order] = np.arange(count)
        inner = place - self.ends[level]
        size = np.diff(self.ends)
        # diagonal blocks, and those below them, one after the other
        both = np.column_stack([size * size, np.append(size[1:], 0) * size]).ravel()
        self._begin = begins(both)
        row, column = _neighbours(control)
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

    def factor(self, local: Floats, threads: int = 1) -> LevelFactor:
        """Cholesky factors of Σ_t of ``local`` (O, T, n, n); LinAlgError where one is not positive
        definite."""
        if threads == 1 or len(local) < 2 * threads:
            return LevelFactor(self, *self._factored(local))
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(self._factored, np.array_split(local, threads)))
        inverses, below = (
            [np.concatenate(level) for level in zip(*(part[k] for part in parts), strict=True)]
            for k in range(2)
        )
        return LevelFactor(self, inverses, below)

    def _factored(self, local: Floats) -> tuple[list[Floats], list[Floats]]:
        """Inverses of the diagonal blocks of the factors, and the blocks below them."""
        total, reports = int(self._begin[-1]), len(local)
        flat = np.array(
            [np.bincount(self._target, part.ravel()[self._kept], total) for part in local]
        )
        parts = np.split(flat, self._begin[1:-1], axis=1)
        inverses: list[Floats] = []
        below: list[Floats] = []
        for k, width in enumerate(np.diff(self.ends).tolist()):
            diagonal = parts[2 * k].reshape(reports, width, width)
            if k:
                diagonal = diagonal - below[-1] @ below[-1].mT
            inverses.append(np.linalg.inv(np.linalg.cholesky(diagonal)))
            below.append(parts[2 * k + 1].reshape(reports, -1, width) @ inverses[-1].mT)
        return inverses, below[:-1]


class LevelFactor:
    """L with L Lᵀ the matrices: inverses of its diagonal blocks, and the blocks below them."""

    def __init__(self, levels: Levels, inverses: list[Floats], below: list[Floats]) -> None:
        self.levels, self._inverses, self._below = levels, inverses, below

    def solve(self, right: Floats) -> Floats:
        """The solution for (O, N), or for many right sides (O, N, R), of the same shape."""
        levels = self.levels
        rows = right.reshape(*right.shape[:2], -1)[:, levels.order]
        parts = np.split(rows, levels.ends[1:-1], axis=1)
        for k, inverse in enumerate(self._inverses):
            if k:
                parts[k] = parts[k] - self._below[k - 1] @ parts[k - 1]
            parts[k] = inverse @ parts[k]
        for k in range(len(parts) - 1, -1, -1):
            if k + 1 < len(parts):
                parts[k] = parts[k] - self._below[k].mT @ parts[k + 1]
            parts[k] = self._inverses[k].mT @ parts[k]
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
        return sum(parts[1:], start=parts[0])

    def _summed(self, reports: range) -> Floats:
        ends = self.levels.ends
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

    def __init__(self, factor: LevelFactor, threads: int = 1) -> None:
        self._factor, self._order = factor, factor.levels.order
        self._schur = cho_factor(factor.summed_inverse(threads), lower=True, check_finite=False)

    def solve(self, right: Floats) -> Floats:
        """x (O, N) with Σ_o x_o = 0 and M_o x_o − r_o the same for all reports, for r (O, N); or
        for many r at once, (O, N, R)."""
        total = -self._factor.solve(right).sum(axis=0)[self._order]
        same = np.empty_like(total)
        same[self._order] = cho_solve(self._schur, total, check_finite=False)
        found = self._factor.solve(right + same)
        return np.asarray(found - found.mean(axis=0))


def _neighbours(control: Ints) -> tuple[Ints, Ints]:
    """Both ends of all pairs of points of a triangle."""
    each = control.shape[1]
    return np.repeat(control, each, axis=1).ravel(), np.tile(control, (1, each)).ravel()


def _levels(control: Ints, count: int) -> Ints:
    """The distance of every point, in triangles, from one at an end of the mesh; where it falls
    into parts, those of one part after those of another."""
    from scipy.sparse.csgraph import connected_components, shortest_path

    ends = _neighbours(control)
    graph = sp.csr_array((np.ones(len(ends[0])), ends), shape=(count, count))
    level, first = np.zeros(count, dtype=np.int64), 0
    parts, part = connected_components(graph, directed=False)
    for own in (np.flatnonzero(part == k) for k in range(parts)):
        inner, away = graph[own][:, own], np.zeros(len(own))
        for _ in range(3):
            away = shortest_path(inner, directed=False, unweighted=True, indices=away.argmax())
        level[own] = first + away.astype(np.int64)
        first = int(level[own].max()) + 1
    return level
