"""The linear program of noise on a window with geometric tails, in floats; proofs are elsewhere.

Columns are z(0), …, z(n), the masses of Δ tails, and what each inequality may exceed. Rows are
z(i) <= e^ε z(i + s) + excess where i + s is farther out than i, for some of the shifts s <= Δ: few
of them matter, and those are added that the solution breaks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.errors import SolverError
from optmech.lp.highs import highs_run
from optmech.noise.additive.loss import NoiseLoss, mean_beyond

_SECONDS = 45.0
"""Of one attempt at a program."""
_LEAST_SCALE = 1e-13
_DEEPEST = -600.0
_STEEP = 8.0
_LARGEST = 1e7
"""Rows with larger coefficients are left out: they say next to nothing, and HiGHS fails of them."""
_LARGEST_EXCESS = 1e4
FAR = 1e-8
"""By how much what is infinitely far out is dearer than it is, relatively."""
_NEGLIGIBLE = 1e-10
"""Excess in units of δ that no row far inside can need."""


@dataclass(frozen=True)
class Window:
    """What is solved: z on |k| <= n with ``sensitivity`` tails of ratio ``ratio`` beyond, or none
    where that is 0."""

    loss: NoiseLoss
    epsilon: float
    delta: float
    sensitivity: int
    n: int
    ratio: float
    joined: bool = True
    """Whether the tails must keep the ratio among themselves. Without that the value is less, but
    the multipliers need none beyond the window."""
    near: int | None = None
    """Up to where there are rows of shifts below the sensitivity: elsewhere too where None."""
    falling: bool = False
    """Whether z(0) >= z(1) >= …, as rows of their own."""

    @property
    def far(self) -> float | None:
        """What probability infinitely far out costs, where that is a constant, and it breaks no
        inequality; with δ = 0 it is no better than more of what is near, or nothing is near."""
        return float(self.loss.end) if self.delta > 0 and self.loss.is_bounded else None

    @property
    def power(self) -> float:
        """e^ε."""
        return math.exp(self.epsilon)


@dataclass(frozen=True)
class Solution:
    """z(0), …, z(n), the masses of the tails, the value, and multipliers in floats: for every shift
    y_s(-n), …, y_s(n) and its limit λ_s, both for s and -s."""

    window: Floats
    tails: Floats
    value: float
    multipliers: dict[int, Floats]
    limits: dict[int, float]
    far: float = 0.0
    """The probability infinitely far out."""


class _Rows:
    """Rows and excesses of the shifts that are in the program."""

    def __init__(self, window: Window) -> None:
        self.window = window
        w = window
        steps = np.arange(w.n + 1)
        costs = w.loss.floats(steps.astype(np.float64))
        if w.delta > 0 and w.epsilon <= _STEEP:
            away = _apart(steps, np.flatnonzero(costs == costs.min()))
            scale = np.maximum(np.exp(-w.epsilon * away / w.sensitivity), _LEAST_SCALE)
        else:
            # no place has less, beside what costs least
            away = from_cheapest(costs)
            scale = np.exp(np.maximum(-w.epsilon * np.ceil(away / w.sensitivity), _DEEPEST))
        self.tails = w.sensitivity if w.ratio > 0 else 0
        rest = 1 - w.ratio
        # place -> column and coefficient, for as many places as rows reach
        self.columns = np.concatenate([steps, w.n + 1 + np.tile(np.arange(self.tails), 3)])
        tail_scale = scale[-1] if self.tails else 1.0
        self.scales = np.concatenate([scale, np.full(self.tails, tail_scale / rest)])
        powers = np.repeat(w.ratio ** np.arange(3.0), self.tails)
        self.values = np.concatenate([scale, tail_scale * powers])
        if not self.tails:
            # beyond the window there is nothing: rows of its last places have one side
            self.columns = np.concatenate([steps, np.zeros(w.sensitivity, dtype=int)])
            self.values = np.concatenate([scale, np.zeros(w.sensitivity)])

    def of(self, shift: int, inward: bool) -> tuple[Ints, Ints, Ints]:
        """The places i of the rows z(i) <= e^ε z(i + shift), and |i|, |i + shift|; those with
        |i + shift| < |i| only where ``inward``."""
        last = self.window.n
        if self.tails and shift < self.window.sensitivity and self.window.joined:
            last += self.window.sensitivity
        inner = np.arange(-self.window.n if inward else -((shift - 1) // 2), last + 1)
        near, far = np.abs(inner), np.abs(inner + shift)
        known = (far < len(self.columns)) & (near != far)
        if self.window.near is not None and shift < self.window.sensitivity:
            known &= near <= self.window.near
        return inner[known], near[known], far[known]

    def cost(self) -> Floats:
        """Of every column: the expected loss of a unit of it, both sides."""
        w = self.window
        loss = w.loss.floats(np.arange(w.n + 1.0))
        loss[1:] *= 2
        out = self.scales.copy()
        out[: w.n + 1] *= loss
        if self.tails:
            for k in range(w.n + 1, w.n + 1 + w.sensitivity):
                a, b, g = map(float, w.loss.polynomial(k))
                out[k] *= 2 * mean_beyond((a, b, g), w.sensitivity, w.ratio)
        return out

    def mass(self) -> Floats:
        """Of every column: its probability, both sides."""
        out = 2 * self.scales
        out[0] = self.scales[0]
        return out


def from_cheapest(costs: Floats) -> Ints:
    """How far every place is from the nearest that costs least, and lies deepest among such."""
    cheapest = np.flatnonzero(costs == costs.min())
    dear = np.flatnonzero(costs > costs.min())
    if len(dear) and dear[-1] == len(costs) - 1:
        depth = _apart(cheapest, dear)
        cheapest = cheapest[depth == depth.max()]
    return _apart(np.arange(len(costs)), cheapest)


def _apart(places: Ints, others: Ints) -> Ints:
    """The distance of every place to the nearest of others, which are in order."""
    after = np.minimum(np.searchsorted(others, places), len(others) - 1)
    near, far = others[after], others[np.maximum(after - 1, 0)]
    return np.asarray(np.minimum(np.abs(places - near), np.abs(places - far)))


def solve_window(window: Window, shifts: Mapping[int, bool]) -> Solution:
    """The best noise of the window against the rows of ``shifts``, of those that are true also
    where i + s is farther in than i; raises SolverError where HiGHS finds none."""
    rows = _Rows(window)
    program = Program(len(rows.scales))
    places: dict[int, tuple[Ints, Ints, Floats]] = {}
    budgets: dict[int, int] = {}
    for shift, inward in shifts.items():
        inner, near, far = rows.of(shift, inward)
        held = window.power * rows.values[far] < _LARGEST * rows.values[near]
        inner, near, far = inner[held], near[held], far[held]
        size = rows.values[near]
        factor = -window.power * rows.values[far] / size
        index = program.compare(1.0, rows.columns[near], factor, rows.columns[far])
        places[shift] = inner, index, size
        if window.delta > 0:
            share = window.delta / size
            used = (share > _NEGLIGIBLE) & (inner <= window.n)
            share = share[used]
            # in units between δ and the size of the place, so that few coefficients are extreme
            unit = np.maximum(np.sqrt(np.maximum(share, 1.0)), share / _LARGEST_EXCESS)
            budgets[shift] = program.exceed(index[used], share / unit, 1 / unit)
    if window.falling:
        inner = np.arange(window.n)
        falls = rows.scales[1 : window.n + 1] / rows.scales[: window.n]
        program.compare(-1.0, inner, falls, inner + 1)
    found = program.solved(rows.mass(), rows.cost(), window.far, _typical(window), _SECONDS)
    z = found.x[: len(rows.scales)] * rows.scales
    multipliers = {}
    for shift, (inner, index, size) in places.items():
        y = np.zeros(2 * window.n + 1)
        inside = inner <= window.n
        y[inner[inside] + window.n] = np.maximum(found.prices[index] / size / 2, 0)[inside]
        multipliers[shift] = y
    limits = {s: max(0.0, found.prices[row] / window.delta / 2) for s, row in budgets.items()}
    return Solution(
        z[: window.n + 1], z[window.n + 1 :], found.value, multipliers, limits, found.far
    )


def _typical(window: Window) -> float:
    """The size of losses to expect: those of a two-sided geometric law."""
    rate = max(window.epsilon, window.delta / 2, 1e-9)
    places = np.arange(window.n + 1.0)
    steps = places / window.sensitivity
    weights = np.exp(-rate * (steps if window.delta > 0 else np.ceil(steps)))
    found = float(window.loss.floats(places) @ weights / weights.sum())
    return max(found, 1e-250)


class Solved(NamedTuple):
    """The columns, what each row is worth, the value, and the probability infinitely far out."""

    x: Floats
    prices: Floats
    value: float
    far: float


class Program:
    """Rows that compare columns, and may be exceeded by a part δ in all; probability one."""

    def __init__(self, columns: int) -> None:
        self.columns, self.count = columns, 0
        self.entries: list[tuple[Floats, Ints, Ints]] = []
        self.uppers: list[float] = []

    def compare(self, one: float, first: Ints, other: Floats, second: Ints) -> Ints:
        """Rows ``one`` x[first] + ``other`` x[second] <= 0, whose indices are returned."""
        count = len(first)
        index = self.count + np.arange(count)
        # entries of one row and column are added up
        self.entries += [(np.full(count, one), index, first), (other, index, second)]
        self.uppers += [0.0] * count
        self.count += count
        return index

    def exceed(self, index: Ints, shares: Floats, weights: Floats) -> int:
        """New columns by whose ``shares`` rows may be exceeded, and the row by which their weighted
        sum is at most one."""
        new, row = self.columns + np.arange(len(index)), self.count
        self.entries += [(-shares, index, new), (weights, np.full(len(index), row), new)]
        self.uppers.append(1.0)
        self.columns, self.count = self.columns + len(index), row + 1
        return row

    def solved(
        self, mass: Floats, cost: Floats, end: float | None, unit: float, limit: float
    ) -> Solved:
        """Where the cost, in about this unit, is least of all that has probability one, some of it
        infinitely far out where that costs ``end``."""
        heavy = np.arange(len(mass))
        cost = np.append(cost, np.zeros(self.columns - len(cost)))
        if end is not None:
            mass, heavy = np.append(mass, 1.0), np.append(heavy, self.columns)
            # a little dearer than it is: what is as good nearby is nearby
            cost = np.append(cost, end * (1 + FAR))
        entries = [*self.entries, (mass, np.full(len(mass), self.count), heavy)]
        values, at, across = (np.concatenate(part) for part in zip(*entries, strict=True))
        matrix = sp.csr_array((values, (at, across)), shape=(self.count + 1, len(cost)))
        lower = np.full(self.count + 1, -np.inf)
        lower[-1] = 1.0
        x, duals = run_program(cost / unit, matrix, lower, np.array([*self.uppers, 1.0]), limit)
        return Solved(x, -duals * unit, float(cost @ x), 0.0 if end is None else float(x[-1]))


_EXACT: dict[str, float] = {
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
_ATTEMPTS: tuple[dict[str, str], ...] = ({}, {"presolve": "off"}, {"solver": "ipm"})
"""Options of HiGHS that are tried one after the other: tiny δ make ill-scaled programs."""


def run_program(
    cost: Floats, rows: sp.csr_array, lower: Floats, upper: Floats, limit: float
) -> tuple[Floats, Floats]:
    """The columns and duals of a linear program; raises SolverError where HiGHS finds none."""
    from highspy import HighsModelStatus

    status, late = "", False
    for options in _ATTEMPTS:
        if late and "solver" not in options:
            continue
        most = np.full(len(cost), np.inf)
        highs = highs_run(cost, rows, lower, upper, most, time_limit=limit, **_EXACT, **options)
        solution = highs.getSolution()
        x, duals = np.array(solution.col_value), np.array(solution.row_dual)
        found = highs.getModelStatus()
        status = highs.modelStatusToString(found)
        late = found == HighsModelStatus.kTimeLimit
        usable = len(x) == len(cost) and solution.dual_valid and bool(np.isfinite(x).all())
        if usable and found == HighsModelStatus.kOptimal:
            return x, duals
    if usable and not late:
        # not optimal to the tolerances: what it proves is seen afterwards
        return x, duals
    raise SolverError(f"HiGHS found no noise: {status}", where="noise", remedy="Relax δ or ε")
