"""The joint program to any accuracy, whatever its distances: refinement in whole numbers.

Floating point sees sixteen digits, and a solver ten. Where distances differ by more, a program
solved as it stands is optimal for the largest of them only. Here the point, the multipliers and
every residual are whole numbers of a fine unit. What the solver left open is scaled up and given
to it as a program of its own, with the same rows and columns, until nothing is left that counts
(Gleixner, Steffy and Wolter, Iterative refinement for linear programming, 2016).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.base.memory import require
from optmech.exact.numerators import integers
from optmech.spaces.rationals import Shares
from optmech.transport.joint import Arcs, first_arcs, run
from optmech.transport.multipliers import Multipliers
from optmech.transport.whole import Whole, scaled, whole, whole_mass

_ACCURACY = 40
"""Bits of the value within which point and multipliers shall agree."""
_GUARD = 320
"""Bits of masses and multipliers below the least that is told apart in the data."""
_CAP = 2.0**40
"""Reduced costs and distances from bounds beyond this, in the solver's units, are cut to it."""
_STEP = 60
"""Bits by which the scale of a correction may grow from one round to the next."""
_ROUNDS = 200
_BEST = 6


@dataclass(frozen=True, eq=False)
class RefinedPoint:
    """What was found, to be repaired and verified."""

    outputs: list[list[int]]
    """μ_t, whole numbers of about one sum."""
    moves: Whole
    """γ_t in the same units, shape (T, n, m)."""
    multipliers: Multipliers

    def attained(self, inputs: list[Shares]) -> list[Shares]:
        """The outputs when every input point is moved as γ_t does, in proportion: by its arcs and
        no others."""
        out = []
        for t, lam in enumerate(inputs):
            rows = self.moves[t].tolist()
            support = lam.support
            scale = math.lcm(*(sum(rows[x]) or 1 for x in support))
            row = [0] * len(rows[0])
            for x in support:
                for y, moved in enumerate(rows[x]):
                    row[y] += lam.units[x] * moved * (scale // (sum(rows[x]) or 1))
            out.append(Shares.reduced(row))
        return out


def refine_joint(
    inputs: list[Shares],
    cost: Floats,
    weights: Shares,
    factor: Fraction,
    delta: Fraction,
    arcs: Arcs | None,
) -> RefinedPoint:
    """An optimum, to 40 bits of its value.

    Parameters
    ----------
    factor, delta:
        e^ε and δ, from below; 1 and 0 ask for one common output.
    arcs:
        Variables to begin with, shape (T, n, m).

    Raises
    ------
    SolverError
        Where HiGHS ends without an optimum.
    """
    program = _Refinement(inputs, cost, weights, factor, delta)
    begin = first_arcs(np.array([lam.weights for lam in inputs]), cost, weights.weights)
    program.bring_in(begin if arcs is None else begin | arcs)
    program.solve()
    return RefinedPoint(program.outputs(), program.moves(), program.multipliers())


class _Refinement:
    """Rows: supplies, links Σ_x γ_t[x,y] = μ_t[y], ratios and totals of slacks (<= 0). Columns:
    μ, slacks, and the moves γ that were brought in. All arrays of masses are in units of
    2^-bits, those of costs and prices in ``coin`` units."""

    def __init__(
        self, inputs: list[Shares], cost: Floats, weights: Shares, factor: Fraction, delta: Fraction
    ) -> None:
        self.count, (self.n, self.m) = len(inputs), cost.shape
        require(
            600.0 * self.count * self.n * self.m,
            what=f"the exact joint transport of {self.count} inputs over {self.n:,} x "
            f"{self.m:,} points",
            where="inputs",
            remedy="Merge points, or bring the distances closer together",
        )
        whole, exponent = integers(cost)
        top = max(max(row) for row in whole)
        self.coin = exponent + _GUARD
        plain = np.array(whole, dtype=object)
        self.share = weights.total
        self.cost: Whole = np.array([(plain * unit) << _GUARD for unit in weights.units], object)
        self.top = top * self.share << _GUARD
        self.bits = top.bit_length() + _GUARD
        self.supply: Whole = np.array([whole_mass(lam, self.bits) for lam in inputs], dtype=object)
        self.common = factor == 1 and not delta
        self.factor = (factor.numerator << self.bits) // factor.denominator
        self.delta = (delta.numerator << self.bits) // delta.denominator
        self.pairs = [] if self.common else list(itertools.permutations(range(self.count), 2))
        # rows of ratios are balanced by a power of two near e^(-ε/2)
        self.balance = -round(math.log2(factor) / 2)
        self.u: Whole = np.zeros((self.count, self.n), dtype=object)
        self.v: Whole = np.zeros((self.count, self.m), dtype=object)
        self.q: Whole = np.zeros((len(self.pairs), self.m), dtype=object)
        self.tau: Whole = np.zeros(len(self.pairs) if delta else 0, dtype=object)
        self._build()

    # ---------------------------------------------------------------- the program in HiGHS
    def _build(self) -> None:
        import highspy

        self.highs: Any = highspy.Highs()
        self.infinity = highspy.kHighsInf
        self.basic = highspy.HighsBasisStatus.kBasic
        for key, value in {
            "output_flag": False,
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "small_matrix_value": 1e-12,
        }.items():
            self.highs.setOptionValue(key, value)
        self.link = self.count * self.n
        self.ratio = self.link + self.count * self.m
        self.total = self.ratio + len(self.pairs) * self.m
        self.rows = self.total + len(self.tau)
        none = np.empty(0, dtype=np.int32)
        self.highs.addRows(
            self.rows,
            np.zeros(self.rows),
            np.zeros(self.rows),
            0,
            np.zeros(self.rows, dtype=np.int32),
            none,
            np.empty(0),
        )
        columns = [self._output(t, y) for t in range(self.count) for y in range(self.m)]
        if self.common:
            columns = [
                [(self.link + t * self.m + y, -1.0) for t in range(self.count)]
                for y in range(self.m)
            ]
        self.masses = len(columns)
        scale, ratios = 2.0**self.balance, range(len(self.pairs) * self.m)
        columns += [[(self.ratio + k, scale)] for k in ratios]
        self.slacks = len(columns)
        if len(self.tau):
            columns += [[(self.ratio + k, -scale), (self.total + k // self.m, 1.0)] for k in ratios]
            columns += [[(self.total + k, 1.0)] for k in range(len(self.pairs))]
        self._add(columns)
        self.x: Whole = np.zeros(len(columns), dtype=object)
        self.fixed = len(columns)
        self.places: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * 3
        self.have = np.zeros((self.count, self.n, self.m), dtype=bool)

    def _output(self, t: int, y: int) -> list[tuple[int, float]]:
        scale, factor = 2.0**self.balance, float(Fraction(self.factor, 1 << self.bits))
        column = [(self.link + t * self.m + y, -1.0)]
        for k, (a, b) in enumerate(self.pairs):
            if t in (a, b):
                row = self.ratio + k * self.m + y
                column.append((row, scale if t == a else -scale * factor))
        return column

    def _add(self, columns: list[list[tuple[int, float]]]) -> None:
        lengths = [len(column) for column in columns]
        flat = [entry for column in columns for entry in column]
        self.highs.addCols(
            len(columns),
            np.zeros(len(columns)),
            np.zeros(len(columns)),
            np.full(len(columns), self.infinity),
            len(flat),
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32),
            np.array([row for row, _ in flat], dtype=np.int32),
            np.array([value for _, value in flat]),
        )

    def bring_in(self, arcs: Arcs) -> None:
        """Add variables."""
        new = arcs & ~self.have & (self.supply != 0)[:, :, None]
        t, x, y = np.nonzero(new)
        supply, link = t * self.n + x, self.link + t * self.m + y
        self._add(
            [[(a, 1.0), (b, 1.0)] for a, b in zip(supply.tolist(), link.tolist(), strict=True)]
        )
        self.places = [np.append(old, new) for old, new in zip(self.places, (t, x, y), strict=True)]
        self.x = np.append(self.x, np.zeros(len(t), dtype=object))
        self.have |= new

    # ---------------------------------------------------------------- refinement
    def solve(self) -> None:
        """Scale what is left open, solve, add: first the prices alone, then the masses too."""
        coin, mass = -self.top.bit_length(), 0
        for _ in range(_ROUNDS):
            self._run(coin, mass)
            wanted, wrong = self._wanted()
            reduced = self._reduced()
            open_ = [wrong, *map(abs, reduced[self.basic_columns].tolist()), *(-reduced).tolist()]
            missing = self._missing()
            # where the value is 0, half of the guard bits
            enough = max(abs(self._value()) >> _ACCURACY, 1 << _GUARD // 2)
            # the slack of a ratio may be as large as e^ε
            slack = (self.factor * -reduced[self.masses : self.slacks].min(initial=0)) >> self.bits
            priced = max(*open_, slack) <= enough
            shipped = missing * self.top <= enough << self.bits
            if priced and shipped:
                return
            if not priced:
                self.bring_in(wanted)
                # masses are found anew, as they may have far to go
                coin, mass = -max(open_).bit_length(), 0
            else:
                mass = min(mass + _STEP, self.bits - missing.bit_length())

    def _run(self, coin: int, mass: int) -> None:
        """One program: its costs are reduced costs times 2^coin, its masses what is missing times
        2^mass."""
        cost = scaled(self._reduced(), coin)
        if not mass:
            self.x[:] = 0
        lower = scaled(-self.x, mass - self.bits)
        columns = np.arange(len(self.x), dtype=np.int32)
        count = len(columns)
        self.highs.changeColsCost(count, columns, np.minimum(cost, _CAP))
        self.highs.changeColsBounds(
            count, columns, np.maximum(lower, -_CAP), np.full(count, self.infinity)
        )
        left = self._left()
        parts = [scaled(part.ravel(), mass - self.bits) for part in left]
        if len(parts) > 2:
            parts[2] *= 2.0**self.balance
        high = np.concatenate(parts)
        rows = np.arange(self.rows, dtype=np.int32)
        self.highs.changeRowsBounds(self.rows, rows, high, high)
        run(self.highs)
        solution = self.highs.getSolution()
        basis = self.highs.getBasis()
        basic = np.array([status == self.basic for status in basis.col_status])
        self.basic_columns = np.flatnonzero(basic)
        self.x = self.x + whole(np.array(solution.col_value), self.bits - mass)
        self.x[~basic & (lower <= 0) & (lower > -_CAP)] = 0
        dual = np.array(solution.row_dual)
        self.u = self.u + whole(dual[: self.link], -coin).reshape(self.u.shape)
        self.v = self.v + whole(dual[self.link : self.ratio], -coin).reshape(self.v.shape)
        self.q = self.q + whole(dual[self.ratio : self.total] * 2.0**self.balance, -coin).reshape(
            self.q.shape
        )
        self.tau = self.tau + whole(dual[self.total :], -coin)

    def _left(self) -> list[Whole]:
        """What is missing of every row, in its own unit."""
        t, x, y = self.places
        moved = self.x[self.fixed :]
        supply, link = self.supply.copy(), self._masses()
        np.subtract.at(supply, (t, x), moved)
        np.subtract.at(link, (t, y), moved)
        out = [supply, link]
        if self.pairs:
            mu = self._masses()
            a, b = np.array(self.pairs).T
            ratio = (self.factor * mu[b] >> self.bits) - mu[a]
            ratio = ratio - self.x[self.masses : self.slacks].reshape(ratio.shape)
            out.append(ratio)
            if len(self.tau):
                ends = self.slacks + ratio.size
                spent = self.x[self.slacks : ends].reshape(ratio.shape)
                out[2] = ratio + spent
                out.append(self.delta - spent.sum(axis=1) - self.x[ends : self.fixed])
        return out

    def _masses(self) -> Whole:
        mu = self.x[: self.masses]
        if self.common:
            return np.array([mu] * self.count, dtype=object)
        return mu.reshape(self.count, self.m).copy()

    def _missing(self) -> int:
        """By how much masses miss their rows and bounds, at most."""
        rows = [abs(value) for part in self._left() for value in part.ravel().tolist()]
        return int(max(0, -min(self.x.tolist()), *rows))

    def _reduced(self) -> Whole:
        """Reduced costs of all columns."""
        t, x, y = self.places
        moves = self.cost[t, x, y] - self.u[t, x] - self.v[t, y]
        if self.common:
            mu = self.v.sum(axis=0)
        else:
            table = self.v.copy()
            for k, (a, b) in enumerate(self.pairs):
                table[a] -= self.q[k]
                table[b] += self.factor * self.q[k] >> self.bits
            mu = table.ravel()
        parts = [mu, -self.q.ravel()]
        if len(self.tau):
            parts += [(self.q - self.tau[:, None]).ravel(), -self.tau]
        return np.concatenate([*parts, moves])

    def _wanted(self) -> tuple[Arcs, int]:
        """Moves with negative reduced costs that are not in, the best few of every point, and
        by how much the worst of them is."""
        reduced = self.cost - self.u[:, :, None] - self.v[:, None, :]
        reduced[self.supply == 0] = 0
        reduced[self.have] = 0
        worst = max(0, -min(reduced.ravel().tolist()))
        negative = np.asarray(reduced < 0, dtype=bool)
        if not negative.any():
            return negative, worst
        plain = scaled(reduced, -worst.bit_length())
        best = np.zeros_like(self.have)
        for axis in (1, 2):
            few = min(_BEST, plain.shape[axis])
            chosen = np.argpartition(plain, few - 1, axis=axis)
            np.put_along_axis(best, np.take(chosen, range(few), axis=axis), True, axis=axis)
        return np.asarray(best & negative), worst

    def _value(self) -> int:
        """Σ λ u + δ Σ τ, in coins."""
        total = int((self.supply * self.u).sum()) + self.delta * int(self.tau.sum())
        return total >> self.bits

    # ---------------------------------------------------------------- results
    def outputs(self) -> list[list[int]]:
        """μ_t, in units of 2^-bits."""
        return [[max(0, value) for value in row] for row in self._masses().tolist()]

    def moves(self) -> Whole:
        """γ_t in units of 2^-bits, shape (T, n, m); what could be rounding is 0."""
        out = np.zeros(self.have.shape, dtype=object)
        moved = self.x[self.fixed :]
        out[tuple(self.places)] = np.where(moved >= 1 << _GUARD // 4, moved, 0)
        return out

    def multipliers(self) -> Multipliers:
        """z >= 0, in units of the cost, weights divided by their sum."""
        z = np.zeros((self.count, self.count, self.m), dtype=object)
        if self.common:
            z[1:, 0], z[0, 1:] = np.maximum(-self.v[1:], 0), np.maximum(self.v[1:], 0)
        else:
            # ratios with room to spare have no price, and what they have is rounding
            loose = self.basic_columns - self.masses
            prices = np.maximum(-self.q, 0).ravel()
            prices[loose[(loose >= 0) & (loose < prices.size)]] = 0
            for (a, b), row in zip(self.pairs, prices.reshape(self.q.shape), strict=True):
                z[a, b] = row
        extra = self.share.bit_length() + 64
        return Multipliers.reduced((z << extra) // self.share, self.coin + extra)
