"""The linear programs of noise on a window with geometric tails, in floats; proofs are elsewhere.

Columns of noise on whole numbers are z(0), …, z(n), the masses of Δ tails, and what each inequality
may exceed. Rows are z(i) <= e^ε z(i + s) + excess where i + s is farther out than i, for some of
the shifts s <= Δ: few of them matter, and those are added that the solution breaks.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.highs import highs_run
from optmech.errors import SolverError
from optmech_noise.additive.loss import NoiseLoss, mean_beyond

S = TypeVar("S", int, tuple[int, int])

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
class Solution(Generic[S]):
    """z of the window's places, the masses of the tails, the value, and multipliers in floats: of
    every shift y_s, for s and -s alike, and its limit λ_s."""

    window: Floats
    tails: Floats
    value: float
    multipliers: dict[S, Floats]
    limits: dict[S, float]
    far: float
    """The probability infinitely far out."""

    @property
    def columns(self) -> Floats:
        """Places, and then tails."""
        return np.append(self.window, self.tails)


class Program:
    """Rows that compare columns, and may be exceeded by a part δ in all; probability one."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.entries: list[tuple[Floats, Ints, Ints]] = []
        self.uppers: list[float] = []

    def compare(self, first: Ints, other: Floats, second: Ints) -> Ints:
        """Rows x[first] + ``other`` x[second] <= 0, whose indices are returned."""
        index = len(self.uppers) + np.arange(len(first))
        # entries of one row and column are added up
        self.entries += [(np.ones(len(first)), index, first), (other, index, second)]
        self.uppers += [0.0] * len(first)
        return index

    def exceed(self, index: Ints, shares: Floats, counts: Floats) -> int:
        """New columns by whose ``shares`` rows may be exceeded, and the row by which their sum, as
        often as each counts, is at most one."""
        # in units between δ and the size of the place, so that few are extreme
        unit = np.maximum(np.sqrt(np.maximum(shares, 1.0)), shares / _LARGEST_EXCESS)
        shares, weights = shares / unit, counts / unit
        new, row = self.columns + np.arange(len(index)), len(self.uppers)
        self.entries += [(-shares, index, new), (weights, np.full(len(index), row), new)]
        self.uppers.append(1.0)
        self.columns += len(index)
        return row

    def solved(
        self, mass: Floats, cost: Floats, end: float | None, limit: float, first: str = ""
    ) -> tuple[Floats, Floats, float, float]:
        """The columns where the cost is least of all that has probability one, some of it
        infinitely far out where that costs ``end``; what each row is worth, the cost, and the
        probability infinitely far out."""
        # the size of losses to expect: those where every column has its size
        unit = max(float(cost.sum() / mass.sum()), 1e-250)
        heavy = np.arange(len(mass))
        cost = np.append(cost, np.zeros(self.columns - len(cost)))
        if end is not None:
            mass, heavy = np.append(mass, 1.0), np.append(heavy, self.columns)
            # a little dearer than it is: what is as good nearby is nearby
            cost = np.append(cost, end * (1 + FAR))
        rows = len(self.uppers)
        entries = [*self.entries, (mass, np.full(len(mass), rows), heavy)]
        values, at, across = (np.concatenate(part) for part in zip(*entries, strict=True))
        matrix = sp.csr_array((values, (at, across)), shape=(rows + 1, len(cost)))
        lower = np.append(np.full(rows, -np.inf), 1.0)
        upper = np.array([*self.uppers, 1.0])
        x, duals = run_program(cost / unit, matrix, lower, upper, limit, first)
        return x, -duals * unit, float(cost @ x), 0.0 if end is None else float(x[-1])


class Compared(NamedTuple):
    """Rows a z(first) <= e^ε b z(second) + excess, for so many places each: columns, coefficients,
    and which of ``size`` multipliers they have; -1 of none, and then no excess."""

    first: Ints
    a: Floats
    second: Ints
    b: Floats
    counts: Floats
    at: Ints
    size: int


class Rows(ABC, Generic[S]):
    """Columns of places and tails, each in units of about its size, and what rows say of them."""

    seconds: ClassVar[float]
    """Of one attempt at a program."""
    sides: ClassVar[int]
    """How many shifts a row is for: s, and -s where that is another."""
    window: Window
    places: int
    """So many columns are places, the others tails."""
    scales: Floats

    @abstractmethod
    def of(self, shift: S, inward: bool) -> Compared:
        """The rows of a shift, of those to places that are farther in only where ``inward``."""

    @abstractmethod
    def more(self, program: Program) -> None:
        """Add the rows that hold whatever the shifts are."""

    @abstractmethod
    def weights(self) -> tuple[Floats, Floats]:
        """Probability and expected loss of a unit of every column."""

    def solved(self, shifts: Mapping[S, bool]) -> Solution[S]:
        """The best noise of the window against the rows of ``shifts``, of those that are true also
        where i + s is farther in than i; raises SolverError where HiGHS finds none."""
        w, scales = self.window, self.scales
        program = Program(len(scales))
        found: dict[S, tuple[Compared, Ints]] = {}
        budgets: dict[S, int] = {}
        for shift, inward in shifts.items():
            part = self.of(shift, inward)
            index = program.compare(part.first, -w.power * part.b / part.a, part.second)
            found[shift] = part, index
            if w.delta > 0:
                share = w.delta / part.a
                used = (share > _NEGLIGIBLE) & (part.at >= 0)
                budgets[shift] = program.exceed(index[used], share[used], part.counts[used])
        self.more(program)
        mass, cost = (each * scales for each in self.weights())
        x, duals, value, far = program.solved(mass, cost, w.far, self.seconds)
        multipliers: dict[S, Floats] = {}
        for shift, (part, index) in found.items():
            known = part.at >= 0
            y = np.maximum(duals[index] / part.a / part.counts / self.sides, 0.0)
            multipliers[shift] = np.zeros(part.size)
            multipliers[shift][part.at[known]] = y[known]
        limits = {s: max(0.0, duals[k] / w.delta / self.sides) for s, k in budgets.items()}
        z = x[: len(scales)] * scales
        window, tails = z[: self.places], z[self.places :]
        return Solution(window, tails, value, multipliers, limits, far)


class LineRows(Rows[int]):
    """Of whole numbers: y_s(-n), …, y_s(n) are the multipliers of a shift."""

    seconds, sides = 45.0, 2

    def __init__(self, window: Window) -> None:
        w = self.window = window
        self.places = w.n + 1
        steps = np.arange(w.n + 1)
        costs = w.loss.floats(steps.astype(np.float64))
        if w.delta > 0 and w.epsilon <= _STEEP:
            away = _apart(steps, np.flatnonzero(costs == costs.min()))
            scale = np.maximum(np.exp(-w.epsilon * away / w.sensitivity), _LEAST_SCALE)
        else:
            # no place has less, beside what costs least
            away = from_cheapest(costs)
            scale = np.exp(np.maximum(-w.epsilon * np.ceil(away / w.sensitivity), _DEEPEST))
        # place -> column and coefficient, for as many places as rows reach; without tails there is
        # nothing beyond the window, and rows of its last places have one side
        self.tails = w.sensitivity if w.ratio > 0 else 0
        block, c = np.divmod(np.arange(3 * w.sensitivity), w.sensitivity)
        self.columns = np.append(steps, np.minimum(w.n + 1 + c, w.n + self.tails))
        self.values = np.append(scale, bool(self.tails) * scale[-1] * w.ratio**block)
        self.scales = np.append(scale, np.full(self.tails, scale[-1] / (1 - w.ratio)))

    def of(self, shift: int, inward: bool) -> Compared:
        w, last = self.window, self.window.n
        if self.tails and shift < w.sensitivity and w.joined:
            last += w.sensitivity
        inner = np.arange(-w.n if inward else -((shift - 1) // 2), last + 1)
        near, far = np.abs(inner), np.abs(inner + shift)
        kept = (near != far) & (w.power * self.values[far] < _LARGEST * self.values[near])
        if w.near is not None and shift < w.sensitivity:
            kept &= near <= w.near
        inner, near, far = inner[kept], near[kept], far[kept]
        return Compared(
            self.columns[near],
            self.values[near],
            self.columns[far],
            self.values[far],
            np.ones(len(inner)),
            np.where(inner <= w.n, inner + w.n, -1),
            2 * w.n + 1,
        )

    def more(self, program: Program) -> None:
        w, scales = self.window, self.scales
        if w.falling:
            inner = np.arange(w.n)
            program.compare(inner + 1, -scales[: w.n] / scales[1 : w.n + 1], inner)

    def weights(self) -> tuple[Floats, Floats]:
        w = self.window
        return line_weights(w.loss, w.n, self.tails, w.ratio)


def line_weights(loss: NoiseLoss, n: int, tails: int, ratio: float) -> tuple[Floats, Floats]:
    """Probability and expected loss of a unit of every place up to n, both sides, and of tails."""
    mass = np.full(n + 1 + tails, 2.0)
    mass[0] = 1.0
    cost = mass.copy()
    cost[: n + 1] *= loss.floats(np.arange(n + 1.0))
    for k in range(n + 1, len(mass)):
        cost[k] *= mean_beyond([*map(float, loss.polynomial(k))], tails, ratio)
    return mass, cost


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


_EXACT: dict[str, float] = {
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
_LOOSE: dict[str, float] = {
    "primal_feasibility_tolerance": 1e-7,
    "dual_feasibility_tolerance": 1e-7,
}
_ATTEMPTS: tuple[Mapping[str, str | float], ...] = (
    {},
    _LOOSE,
    {"presolve": "off"},
    {"solver": "ipm"},
)
"""Options of HiGHS that are tried one after the other: tiny δ make ill-scaled programs."""
_ITERATIONS = 5
"""For every row and column, where simplex runs at first: with the small tolerances it may turn in
circles."""


class NoneThereError(SolverError):
    """A program has no solution, as HiGHS says."""


def run_program(
    cost: Floats, rows: sp.csr_array, lower: Floats, upper: Floats, limit: float, first: str = ""
) -> tuple[Floats, Floats]:
    """The columns and duals of a linear program, by the solver ``first`` where it is named; raises
    SolverError where HiGHS finds none."""
    from highspy import HighsModelStatus

    status, late, circles = "", False, False
    for options in ({"solver": first}, *_ATTEMPTS) if first else _ATTEMPTS:
        if (late and "solver" not in options) or (options is _LOOSE and not circles):
            continue
        most = np.full(len(cost), np.inf)
        stated = {**_EXACT, **options}
        if not options:
            stated["simplex_iteration_limit"] = 1000 + _ITERATIONS * sum(rows.shape)
        highs = highs_run(cost, rows, lower, upper, most, time_limit=limit, **stated)
        solution = highs.getSolution()
        x, duals = np.array(solution.col_value), np.array(solution.row_dual)
        found = highs.getModelStatus()
        status = highs.modelStatusToString(found)
        late = found == HighsModelStatus.kTimeLimit
        circles = found == HighsModelStatus.kIterationLimit
        usable = len(x) == len(cost) and solution.dual_valid and bool(np.isfinite(x).all())
        if usable and found == HighsModelStatus.kOptimal:
            return x, duals
    if usable and not late:
        # not optimal to the tolerances: what it proves is seen afterwards
        return x, duals
    known = found in (HighsModelStatus.kInfeasible, HighsModelStatus.kUnboundedOrInfeasible)
    kind = NoneThereError if known else SolverError
    raise kind(f"HiGHS found no noise: {status}", where="noise", remedy="Relax δ or ε")
