"""The joint transport program: plans of several inputs whose outputs are equal or close.

    min Σ_t w_t ⟨c, γ_t⟩   with  γ_t 1 = λ_t  and  μ_t = γ_tᵀ1,
    μ_t = μ_t' for all t, t'   or   Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) ≤ δ.

Solved by column generation: few of the T·n·m variables matter, and a plan between two points is
brought in when its reduced cost asks for it. HiGHS finds the point and the multipliers; neither is
believed (``joint_bound`` turns any multipliers into a valid bound, theory: "Coupling mechanisms").
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.base.memory import require
from optmech.errors import SolverError
from optmech.exact.numerators import integers
from optmech.spaces.rationals import Shares
from optmech.transport.multipliers import Multipliers

Arcs = NDArray[np.bool_]
_TOLERANCE = 1e-10
_NEAREST = 8
"""Outputs per input point in the first program."""
_BEST = 6
"""Most negative reduced costs per point of either side that are brought in at a time."""
_ROUNDS = 1000


@dataclass(frozen=True, eq=False)
class JointPoint:
    """What the solver found; floats, to be repaired and verified."""

    outputs: Floats
    """μ_t, shape (T, m), about distributions."""
    multipliers: Floats
    """z >= 0, shape (T, T, m): that of μ_t[y] <= e^ε μ_t'[y] at [t, t', y]."""
    arcs: Arcs
    """The variables that were brought in, shape (T, n, m): a start for similar programs."""


def solve_joint(
    inputs: Floats,
    cost: Floats,
    weights: Floats,
    factor: float,
    delta: float = 0.0,
    start: Arcs | None = None,
) -> JointPoint:
    """An optimum up to the solver's tolerance.

    Parameters
    ----------
    inputs, cost, weights:
        λ_t (T, n), c >= 0 (n, m), w_t >= 0 (T,).
    factor:
        e^ε >= 1; with 1 (and δ = 0) the outputs are one common distribution.
    start:
        Variables to begin with, shape (T, n, m).

    Raises
    ------
    SolverError
        Where HiGHS ends without an optimum.
    """
    count, (n, m) = len(inputs), cost.shape
    require(
        24.0 * count * n * m + 2000.0 * count * count * m,
        what=f"the joint transport of {count} inputs over {n:,} x {m:,} points",
        where="inputs",
        remedy="Merge points",
    )
    program = _Program(inputs, cost, weights, factor, delta)
    begin = first_arcs(inputs, program.cost, weights)
    program.bring_in(begin if start is None else start | begin)
    for _ in range(_ROUNDS):
        program.run()
        wanted = program.wanted()
        if not wanted.any():
            return program.point()
        program.bring_in(wanted)
    raise SolverError("column generation did not end", where="optimal target")


def joint_bound(
    inputs: list[Shares],
    cost: Floats,
    weights: Shares,
    multipliers: Multipliers,
    factor: Fraction,
    delta: Fraction,
) -> Fraction:
    """A lower bound of the joint program from any multipliers z >= 0, exactly:
    Σ_t Σ_x λ_t[x] min_y (w_t c(x,y) + g_t[y]) − δ Σ_{t,t'} max_y z_tt'[y] with
    g_t[y] = Σ_t' (z_tt'[y] − e^ε z_t't[y]).

    ``factor`` must be at least e^ε, ``delta`` at least δ.
    """
    z: Any = np.array(multipliers.units, dtype=object)
    whole, exponent = integers(cost)
    plain: Any = np.array(whole, dtype=object)
    # everything in one unit, 1 / (total of weights · denominator of the factor · 2^bits)
    bits = max(exponent, multipliers.shift)
    common = factor.denominator << bits - exponent
    price = weights.total << bits - multipliers.shift
    given, taken = factor.denominator, factor.numerator
    total = Fraction(0)
    for t, lam in enumerate(inputs):
        others = [k for k in range(len(inputs)) if k != t]
        shift = price * (given * z[t, others].sum(axis=0) - taken * z[others, t].sum(axis=0))
        least = (plain * (weights.units[t] * common) + shift).min(axis=1).tolist()
        moved = sum(unit * value for unit, value in zip(lam.units, least, strict=True))
        total += Fraction(moved, lam.total)
    # a multiplier between an input and itself stands for nothing, and costs
    spent = Fraction(int(z.max(axis=2).sum()), 1 << multipliers.shift)
    return total / (weights.total * given << bits) - delta * spent


def first_arcs(inputs: Floats, cost: Floats, weights: Floats) -> Arcs:
    """Every point to its nearest outputs, and all to one output, which makes it feasible."""
    out: Arcs = np.zeros((len(inputs), *cost.shape), dtype=bool)
    near = np.argsort(cost, axis=1, kind="stable")[:, :_NEAREST]
    for t in range(len(inputs)):
        np.put_along_axis(out[t], near, True, axis=1)
    scaled = cost / (cost.max() or 1.0)
    out[:, :, int((weights @ inputs @ scaled).argmin())] = True
    return out


def run(highs: Any) -> None:
    """Solve from the last basis, and where that fails from none.

    Raises
    ------
    SolverError
        Where HiGHS ends without an optimum.
    """
    for _ in range(2):
        highs.run()
        status = highs.modelStatusToString(highs.getModelStatus())
        if status == "Optimal":
            return
        highs.clearSolver()
    raise SolverError(f"HiGHS: {status}", where="optimal target")


class _Program:
    """The restricted program in HiGHS: rows are fixed, columns come in."""

    def __init__(
        self, inputs: Floats, cost: Floats, weights: Floats, factor: float, delta: float
    ) -> None:
        import highspy

        self.inputs, self.weights = inputs, weights
        # costs of order one, so that the solver's absolute tolerances fit
        self.scale = float(cost.max()) or 1.0
        self.cost = cost / self.scale
        self.count, (self.n, self.m) = len(inputs), cost.shape
        self.common = factor == 1 and delta == 0
        self.pairs = [] if self.common else list(itertools.permutations(range(self.count), 2))
        self.have = np.zeros((self.count, self.n, self.m), dtype=bool)
        self.highs: Any = highspy.Highs()
        self.infinity = highspy.kHighsInf
        for key, value in {
            "output_flag": False,
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
            "small_matrix_value": 1e-12,
        }.items():
            self.highs.setOptionValue(key, value)
        self._rows(delta)
        self._outputs(factor)
        if delta:
            self._slacks()

    def _rows(self, delta: float) -> None:
        """Supplies, links Σ_x γ_t[x,y] = μ_t[y], ratios, and totals of slacks."""
        count, links = self.count * self.n, self.count * self.m
        ratios = len(self.pairs) * self.m
        totals = len(self.pairs) if delta else 0
        self.link, self.ratio = count, count + links
        self.total = self.ratio + ratios
        low = np.concatenate(
            [self.inputs.ravel(), np.zeros(links), np.full(ratios + totals, -self.infinity)]
        )
        high = np.concatenate(
            [self.inputs.ravel(), np.zeros(links + ratios), np.full(totals, delta)]
        )
        none = np.empty(0, dtype=np.int32)
        starts = np.zeros(len(low), dtype=np.int32)
        self.highs.addRows(len(low), low, high, 0, starts, none, np.empty(0))

    def _outputs(self, factor: float) -> None:
        """Columns μ_t[y], or one μ[y] for all t; rows of a ratio are balanced by √e^ε."""
        root = factor**0.5
        entries: list[list[tuple[int, float]]] = []
        if self.common:
            entries = [
                [(self.link + t * self.m + y, -1.0) for t in range(self.count)]
                for y in range(self.m)
            ]
        else:
            for t, y in itertools.product(range(self.count), range(self.m)):
                column = [(self.link + t * self.m + y, -1.0)]
                for k, (a, b) in enumerate(self.pairs):
                    if t in (a, b):
                        row = self.ratio + k * self.m + y
                        column.append((row, 1 / root if t == a else -root))
                entries.append(column)
        self.root = root
        self._columns(np.zeros(len(entries)), entries)

    def _slacks(self) -> None:
        """Columns s_tt'[y] with μ_t[y] − e^ε μ_t'[y] <= s_tt'[y] and Σ_y s <= δ."""
        entries = [
            [(self.ratio + k * self.m + y, -1 / self.root), (self.total + k, 1.0)]
            for k in range(len(self.pairs))
            for y in range(self.m)
        ]
        self._columns(np.zeros(len(entries)), entries)

    def _columns(self, cost: Floats, entries: list[list[tuple[int, float]]]) -> None:
        lengths = [len(column) for column in entries]
        flat = [entry for column in entries for entry in column]
        self._add(
            cost,
            np.concatenate([[0], np.cumsum(lengths)[:-1]]),
            np.array([row for row, _ in flat]),
            np.array([value for _, value in flat]),
        )

    def _add(self, cost: Floats, starts: Any, rows: Any, values: Floats) -> None:
        count = len(cost)
        self.highs.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, self.infinity),
            len(rows),
            starts.astype(np.int32),
            rows.astype(np.int32),
            values,
        )

    def bring_in(self, arcs: Arcs) -> None:
        """Add the variables that are new and can carry mass."""
        new = arcs & ~self.have & (self.inputs > 0)[:, :, None]
        t, x, y = np.nonzero(new)
        rows = np.column_stack([t * self.n + x, self.link + t * self.m + y]).ravel()
        starts = 2 * np.arange(len(t))
        self._add(self.weights[t] * self.cost[x, y], starts, rows, np.ones(len(rows)))
        self.have |= new

    def run(self) -> None:
        """Solve the restricted program from the last basis."""
        run(self.highs)
        self.solution = self.highs.getSolution()
        self.dual = np.array(self.solution.row_dual)

    def wanted(self) -> Arcs:
        """Variables with negative reduced costs, the best few of every point."""
        u = self.dual[: self.link].reshape(self.count, self.n)
        v = self.dual[self.link : self.ratio].reshape(self.count, self.m)
        reduced = self.weights[:, None, None] * self.cost - u[:, :, None] - v[:, None, :]
        reduced[self.have | (self.inputs == 0)[:, :, None]] = 0.0
        best = np.zeros_like(self.have)
        for axis in (1, 2):
            few = min(_BEST, reduced.shape[axis])
            chosen = np.argpartition(reduced, few - 1, axis=axis)
            np.put_along_axis(best, np.take(chosen, range(few), axis=axis), True, axis=axis)
        return np.asarray(best & (reduced < -_TOLERANCE))

    def point(self) -> JointPoint:
        """Outputs, and multipliers in units of the given cost."""
        values = np.array(self.solution.col_value)
        z = np.zeros((self.count, self.count, self.m))
        if self.common:
            outputs = np.tile(values[: self.m], (self.count, 1))
            v = self.dual[self.link : self.ratio].reshape(self.count, self.m)
            # g_t = −v_t as differences of multipliers between the first input and t
            z[1:, 0], z[0, 1:] = np.maximum(-v[1:], 0.0), np.maximum(v[1:], 0.0)
        else:
            outputs = values[: self.count * self.m].reshape(self.count, self.m)
            y = self.dual[self.ratio : self.total].reshape(len(self.pairs), self.m)
            for k, (a, b) in enumerate(self.pairs):
                z[a, b] = np.maximum(-y[k], 0.0) / self.root
        return JointPoint(outputs, z * self.scale, self.have)
