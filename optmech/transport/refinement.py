"""The joint program to any accuracy, whatever its distances: refinement in whole numbers.

Floating point sees sixteen digits, and a solver ten. Where distances differ by more, a program
solved as it stands is optimal for the largest of them only. Here the point, the multipliers and
every residual are whole numbers of a fine unit. What the solver left open is scaled up and given
to it as a program of its own, with the same rows and columns, until nothing is left that counts
(Gleixner, Steffy and Wolter, Iterative refinement for linear programming, 2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.base.memory import require
from optmech.exact.numerators import apportioned, integers
from optmech.spaces.rationals import RationalRows, Shares
from optmech.transport.joint import Arcs, Multipliers, Program, Whole, first_arcs, scaled, whole

_ACCURACY = 40
"""Bits of the value within which point and multipliers shall agree."""
_GUARD = 320
"""Bits of masses and multipliers below the least that is told apart in the data."""
_CAP = 2.0**40
"""Reduced costs and distances from bounds beyond this, in the solver's units, are cut to it."""
_STEP = 60
"""Bits by which the scale of a correction may grow from one round to the next."""
_ROUNDS = 200


class Refinement(Program):
    """The joint program in whole numbers. ``factor`` and ``delta`` are e^ε and δ, from below; 1 and
    0 ask for one common output. ``arcs``, (T, n, m), are the first variables.

    Columns: μ, slacks, and the moves γ that were brought in. All rows are equalities, totals
    of slacks with a slack of their own. All arrays of masses are in units of 2^-bits, those of
    costs and prices in ``coin`` units."""

    def __init__(
        self,
        inputs: Sequence[Shares],
        cost: Floats,
        weights: Shares,
        factor: Fraction,
        delta: Fraction,
        arcs: Arcs | None,
    ) -> None:
        count, (n, m) = len(inputs), cost.shape
        require(
            600.0 * count * n * m,
            what=f"the exact joint transport of {count} inputs over {n:,} x {m:,} points",
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
        self.mass: Whole = np.array([apportioned(lam.units, self.bits) for lam in inputs], object)
        # what moves cost changes from round to round
        prices = np.broadcast_to(0.0, self.cost.shape)
        common = factor == 1 and not delta
        super().__init__(self.mass, prices, common=common, spare=delta > 0)
        self.factor = (factor.numerator << self.bits) // factor.denominator
        self.delta = (delta.numerator << self.bits) // delta.denominator
        # rows of ratios are balanced by a power of two near e^(-ε/2)
        self.balance = -round(math.log2(factor) / 2)
        self.dual: Whole = np.zeros(self.rows, dtype=object)
        # parts of it
        self.u = self.dual[: self.link].reshape(count, n)
        self.v = self.dual[self.link : self.ratio].reshape(count, m)
        self.q = self.dual[self.ratio : self.total].reshape(len(self.pairs), m)
        self.tau = self.dual[self.total :]
        self.add_rows(np.zeros(self.rows), np.zeros(self.rows))
        scale = 2.0**self.balance
        columns = self.output_columns(scale, -scale * float(Fraction(self.factor, 1 << self.bits)))
        self.add(self.link, columns)
        self.masses = columns.shape[1]
        self.slacks = self.fixed = self.masses + len(self.ratios)
        if self.pairs:
            self.add(self.ratio, scale * sp.eye_array(len(self.ratios)))
        if len(self.tau):
            self.add(self.ratio, self.slack_columns(scale))
            self.add(self.total, sp.eye_array(len(self.pairs)))
            self.fixed += len(self.ratios) + len(self.pairs)
        self.x: Whole = np.zeros(self.fixed, dtype=object)
        self.places: tuple[Ints, ...] = (np.empty(0, dtype=np.int64),) * 3
        masses = np.array([lam.weights for lam in inputs])
        self.bring_in(first_arcs(masses, cost, weights.weights, arcs))

    def bring_in(self, arcs: Arcs) -> tuple[Ints, ...]:
        """Add variables."""
        new = super().bring_in(arcs)
        self.places = tuple(map(np.append, self.places, new))
        self.x = np.append(self.x, np.zeros(len(new[0]), dtype=object))
        return new

    # ---------------------------------------------------------------- refinement
    def solve(self) -> None:
        """Find an optimum, to 40 bits of its value, to be repaired and verified: scale what is left
        open, solve, add, first the prices alone, then the masses too. Raises SolverError where
        HiGHS ends without one."""
        coin, mass = -self.top.bit_length(), 0
        for _ in range(_ROUNDS):
            self._run(coin, mass)
            wanted, wrong = self._wanted()
            reduced = self._reduced()
            open_ = [wrong, *map(abs, reduced[self.basic_columns].tolist()), *(-reduced).tolist()]
            # by how much masses miss their rows and bounds
            missing = int(max(0, -min(self.x.tolist()), *map(abs, self._left().tolist())))
            # where the value is 0, half of the guard bits
            value = int((self.mass * self.u).sum()) + self.delta * int(self.tau.sum())
            enough = max(abs(value) >> self.bits + _ACCURACY, 1 << _GUARD // 2)
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
        high = scaled(self._left(), mass - self.bits)
        high[self.ratio : self.total] *= 2.0**self.balance
        rows = np.arange(self.rows, dtype=np.int32)
        self.highs.changeRowsBounds(self.rows, rows, high, high)
        solution = self.optimum()
        basis = self.highs.getBasis()
        basic = np.array([status == self.basic for status in basis.col_status])
        self.basic_columns = np.flatnonzero(basic)
        self.x = self.x + whole(np.array(solution.col_value), self.bits - mass)
        self.x[~basic & (lower <= 0) & (lower > -_CAP)] = 0
        dual = np.array(solution.row_dual)
        dual[self.ratio : self.total] *= 2.0**self.balance
        self.dual += whole(dual, -coin)

    def _left(self) -> Whole:
        """What is missing of every row."""
        t, x, y = self.places
        moved = self.x[self.fixed :]
        supply, link = self.mass.copy(), self._masses()
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
        return np.concatenate([part.ravel() for part in out])

    def _masses(self) -> Whole:
        mu = self.x[: self.masses]
        if self.common:
            return np.array([mu] * self.count, dtype=object)
        return mu.reshape(self.count, self.m).copy()

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
        reduced[self.mass == 0] = 0
        reduced[self.have] = 0
        worst = max(0, -min(reduced.ravel().tolist()))
        negative = np.asarray(reduced < 0, dtype=bool)
        if not negative.any():
            return negative, worst
        plain = scaled(reduced, -worst.bit_length())
        return self.best(plain) & negative, worst

    # ---------------------------------------------------------------- results
    def outputs(self) -> list[list[int]]:
        """μ_t, in units of 2^-bits."""
        return [[max(0, value) for value in row] for row in self._masses().tolist()]

    def attained(self, inputs: Sequence[Shares]) -> list[Shares]:
        """The outputs when every input point is moved as γ_t does, in proportion: by its arcs and
        no others."""
        moves = np.zeros(self.have.shape, dtype=object)
        found = self.x[self.fixed :]
        # what could be rounding is 0
        moves[tuple(self.places)] = np.where(found >= 1 << _GUARD // 4, found, 0)
        # a point without mass goes anywhere
        every = [
            RationalRows(tuple(tuple(row) if any(row) else (1,) * self.m for row in rows))
            for rows in moves.tolist()
        ]
        return [moved.push(lam) for moved, lam in zip(every, inputs, strict=True)]

    def multipliers(self) -> Multipliers:
        """z >= 0, in units of the cost, weights divided by their sum."""
        # ratios with room to spare have no price, and what they have is rounding
        loose = self.basic_columns - self.masses
        prices = np.maximum(-self.q, 0).ravel()
        prices[loose[(loose >= 0) & (loose < prices.size)]] = 0
        z = self.joined(self.v, prices.reshape(self.q.shape))
        extra = self.share.bit_length() + 64
        return Multipliers.reduced((z << extra) // self.share, self.coin + extra)
