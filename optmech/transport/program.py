"""The joint program in HiGHS: rows are fixed, columns come in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.errors import SolverError
from optmech.transport.whole import Whole

Arcs = NDArray[np.bool_]
TOLERANCE = 1e-10
_NEAREST = 8
"""Outputs per input point in the first program."""
_BEST = 6
"""Most negative reduced costs per point of either side that are brought in at a time."""

Column = list[tuple[int, float]]
"""Rows, with the coefficients in them."""


def first_arcs(inputs: Floats, cost: Floats, weights: Floats, start: Arcs | None) -> Arcs:
    """``start``, all points to their nearest outputs, and all to one, which makes it feasible."""
    out: Arcs = np.zeros((len(inputs), *cost.shape), dtype=bool)
    near = np.argsort(cost, axis=1, kind="stable")[:, :_NEAREST]
    np.put_along_axis(out, near[None], True, axis=2)
    scaled = cost / (cost.max() or 1.0)
    out[:, :, int((weights @ inputs @ scaled).argmin())] = True
    return out if start is None else out | start


class Program:
    """Rows: supplies, links Σ_x γ_t[x,y] = μ_t[y], ratios of outputs unless all are ``common``,
    and with ``spare`` the totals of their slacks. Rows of ratios are balanced: ``above`` and
    ``below`` are the coefficients of μ_t and μ_t' in μ_t[y] − e^ε μ_t'[y]."""

    def __init__(self, supply: Floats | Whole, prices: Floats, *, common: bool, spare: bool):
        import highspy

        self.supply, self.prices, self.common = supply, prices, common
        self.count, self.n, self.m = prices.shape
        self.pairs = [] if common else list(itertools.permutations(range(self.count), 2))
        self.ratios = range(len(self.pairs) * self.m)
        self.link = self.count * self.n
        self.ratio = self.link + self.count * self.m
        self.total = self.ratio + len(self.ratios)
        self.rows = self.total + (len(self.pairs) if spare else 0)
        # the moves that were brought in, shape (T, n, m): a start for similar programs
        self.have: Arcs = np.zeros(prices.shape, dtype=bool)
        self.highs: Any = highspy.Highs()
        self.infinity, self.basic = highspy.kHighsInf, highspy.HighsBasisStatus.kBasic
        for key, value in {
            "output_flag": False,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "small_matrix_value": 1e-12,
        }.items():
            self.highs.setOptionValue(key, value)

    def add_rows(self, low: Floats, high: Floats) -> None:
        """All rows, without entries."""
        none, starts = np.empty(0, dtype=np.int32), np.zeros(self.rows, dtype=np.int32)
        self.highs.addRows(self.rows, low, high, 0, starts, none, np.empty(0))

    def output_columns(self, above: float, below: float) -> list[Column]:
        """Columns μ_t[y], or one μ[y] for all t."""
        links = [
            [(self.link + t * self.m + y, -1.0) for y in range(self.m)] for t in range(self.count)
        ]
        if self.common:
            return [list(column) for column in zip(*links, strict=True)]
        return [
            [link]
            + [
                (self.ratio + k * self.m + y, above if t == a else below)
                for k, (a, b) in enumerate(self.pairs)
                if t in (a, b)
            ]
            for t, row in enumerate(links)
            for y, link in enumerate(row)
        ]

    def slack_columns(self, above: float) -> list[Column]:
        """Columns s_tt'[y] with μ_t[y] − e^ε μ_t'[y] <= s_tt'[y] and Σ_y s <= δ."""
        return [[(self.ratio + k, -above), (self.total + k // self.m, 1.0)] for k in self.ratios]

    def add(self, columns: list[Column]) -> None:
        """Columns without costs."""
        starts = np.cumsum([0, *map(len, columns)])[:-1]
        flat = [entry for column in columns for entry in column]
        rows, values = (np.array(part) for part in zip(*flat, strict=True))
        self._add(np.zeros(len(columns)), starts, rows, values)

    def bring_in(self, arcs: Arcs) -> tuple[Ints, ...]:
        """Add the moves that are new and can carry mass; returns their t, x and y."""
        new = arcs & ~self.have & (self.supply != 0)[:, :, None]
        t, x, y = np.nonzero(new)
        rows = np.column_stack([t * self.n + x, self.link + t * self.m + y]).ravel()
        self._add(self.prices[new], 2 * np.arange(len(t)), rows, np.ones(len(rows)))
        self.have |= new
        return t, x, y

    def _add(self, cost: Floats, starts: Ints, rows: Ints, values: Floats) -> None:
        none, all_ = np.zeros(len(cost)), np.full(len(cost), self.infinity)
        starts, rows = starts.astype(np.int32), rows.astype(np.int32)
        self.highs.addCols(len(cost), cost, none, all_, len(rows), starts, rows, values)

    def optimum(self) -> Any:
        """Solve from the last basis, and where that fails from none; raises SolverError where HiGHS
        ends without an optimum."""
        for _ in range(2):
            self.highs.run()
            status = self.highs.modelStatusToString(self.highs.getModelStatus())
            if status == "Optimal":
                return self.highs.getSolution()
            self.highs.clearSolver()
        raise SolverError(f"HiGHS: {status}", where="optimal target")

    def best(self, reduced: Floats) -> Arcs:
        """The moves of least reduced cost, a few of every point."""
        best = np.zeros_like(self.have)
        for axis in (1, 2):
            few = min(_BEST, reduced.shape[axis])
            chosen = np.argpartition(reduced, few - 1, axis=axis)
            np.put_along_axis(best, np.take(chosen, range(few), axis=axis), True, axis=axis)
        return best

    def joined(self, v: Any, prices: Any) -> Any:
        """z >= 0, shape (T, T, m), from duals of links or ``prices`` of ratios."""
        z = np.zeros((self.count, self.count, self.m), dtype=v.dtype)
        if self.common:
            # g_t = −v_t as differences of multipliers between the first input and t
            z[1:, 0], z[0, 1:] = np.maximum(-v[1:], 0), np.maximum(v[1:], 0)
        for (a, b), row in zip(self.pairs, prices, strict=True):
            z[a, b] = row
        return z
