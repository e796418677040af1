"""The joint transport program: plans of several inputs whose outputs are equal or close.

    min Σ_t w_t ⟨c, γ_t⟩   with  γ_t 1 = λ_t  and  μ_t = γ_tᵀ1,
    μ_t = μ_t' for all t, t'   or   Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) ≤ δ.

Solved by column generation: few of the T·n·m variables matter, and a plan between two points is
brought in when its reduced cost asks for it. HiGHS finds the point and the multipliers; neither is
believed (``joint_bound`` turns any multipliers, as whole numbers, into a valid bound,
docs/theory/targets.md, "Coupling mechanisms and optimal targets").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.highs import quiet_highs, run_highs
from optmech.base.memory import require
from optmech.base.read_only import record
from optmech.errors import SolverError
from optmech.exact.numerators import dot, integers
from optmech.spaces.rationals import Shares

_PRECISION = 96
"""Bits of floats that are kept, counted from the largest of them."""


@record
class Multipliers:
    """z >= 0 of the joint program: that of μ_t[y] <= e^ε μ_t'[y] is units[t][t'][y] / 2^shift."""

    units: tuple[tuple[tuple[int, ...], ...], ...]
    shift: int

    @classmethod
    def zero(cls, count: int, points: int) -> Multipliers:
        """No multipliers: the bound that asks for no privacy."""
        return cls((((0,) * points,) * count,) * count, 0)

    @classmethod
    def reduced(cls, units: Any, shift: int) -> Multipliers:
        """From an array of whole numbers >= 0, shape (T, T, m), with common powers of two divided
        out."""
        flat = units.ravel().tolist()
        spare = min(((value & -value).bit_length() - 1 for value in flat if value), default=shift)
        down = min(spare, shift)
        listed = (units >> down).tolist()
        return cls(tuple(tuple(map(tuple, table)) for table in listed), shift - down)

    @classmethod
    def of(cls, values: Floats) -> Multipliers:
        """From floats, shape (T, T, m): rounded down to 96 bits below the largest, negative ones
        to 0."""
        positive = np.maximum(values, 0.0)
        whole, exponent = integers(positive.reshape(len(values), -1))
        array = np.array(whole, dtype=object).reshape(values.shape)
        largest = max(array.ravel().tolist(), default=0)
        surplus = max(0, min(exponent, largest.bit_length() - _PRECISION))
        return cls.reduced(array >> surplus, exponent - surplus)

    def times(self, share: Fraction) -> Multipliers:
        """The multipliers times a number of (0, 1], rounded down."""
        extra = 64 - (share.numerator.bit_length() - share.denominator.bit_length())
        scaled = (np.array(self.units, dtype=object) << extra) * share.numerator
        return Multipliers.reduced(scaled // share.denominator, self.shift + extra)


Whole = NDArray[np.object_]
"""An array of whole numbers of any size."""


def scaled(values: Whole, exponent: int) -> Floats:
    """Whole numbers times 2^exponent, as floats; what is too large is ± inf."""
    flat = values.ravel().tolist()
    out = np.empty(len(flat))
    for k, value in enumerate(flat):
        extra = max(0, value.bit_length() - 64)
        try:
            out[k] = math.ldexp(float(value >> extra), extra + exponent)
        except OverflowError:
            out[k] = math.inf if value > 0 else -math.inf
    return out.reshape(values.shape)


def whole(values: Floats, exponent: int) -> Whole:
    """Floats times 2^exponent, as whole numbers, rounded down."""
    rows, bits = integers(values.reshape(1, -1))
    shift, out = exponent - bits, np.empty(values.shape, dtype=object)
    out.ravel()[:] = rows[0]
    return np.asarray(out << shift if shift >= 0 else out >> -shift)


Arcs = Bools
TOLERANCE = 1e-10
_NEAREST = 8
"""Outputs per input point in the first program."""
_BEST = 6
"""Most negative reduced costs per point of either side that are brought in at a time."""


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
        self.highs = quiet_highs()
        self.infinity, self.basic = highspy.kHighsInf, highspy.HighsBasisStatus.kBasic
        for key, value in {
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
            "small_matrix_value": 1e-12,
        }.items():
            self.highs.setOptionValue(key, value)

    def add_rows(self, low: Floats, high: Floats) -> None:
        """All rows, without entries."""
        none, starts = np.empty(0, dtype=np.int32), np.zeros(self.rows, dtype=np.int32)
        self.highs.addRows(self.rows, low, high, 0, starts, none, np.empty(0))

    def output_columns(self, above: float, below: float) -> Any:
        """Columns μ_t[y], or one μ[y] for all t, in the rows from those of links on."""
        links = -np.ones((self.count, 1)) if self.common else -np.eye(self.count)
        ratios = np.zeros((len(self.pairs), links.shape[1]))
        for k, ends in enumerate(self.pairs):
            ratios[k, ends] = above, below
        return sp.kron(np.vstack([links, ratios]), sp.eye_array(self.m))

    def slack_columns(self, above: float) -> Any:
        """Columns s_tt'[y] with μ_t[y] − e^ε μ_t'[y] <= s_tt'[y] and Σ_y s <= δ, in the rows from
        those of ratios on."""
        totals = sp.kron(sp.eye_array(len(self.pairs)), np.ones((1, self.m)))
        return sp.vstack([-above * sp.eye_array(len(self.ratios)), totals])

    def add(self, first: int, columns: Any) -> None:
        """Columns without costs, in the rows from ``first`` on."""
        own = sp.csc_array(columns)
        own.eliminate_zeros()
        self._add(np.zeros(own.shape[1]), own.indptr[:-1], own.indices + first, own.data)

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
            run_highs(self.highs)
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


_ROUNDS = 1000


def joint_bound(
    inputs: Sequence[Shares],
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
        moved = dot(lam.units, least)
        total += Fraction(moved, lam.total)
    # a multiplier between an input and itself stands for nothing, and costs
    spent = Fraction(int(z.max(axis=2).sum()), 1 << multipliers.shift)
    return total / (weights.total * given << bits) - delta * spent


class Floating(Program):
    """The joint program for λ_t (T of n), c >= 0 (n, m) and w_t (T), in floating point. ``factor``
    is e^ε; with 1 (and δ = 0) the outputs are one distribution. ``start``, (T, n, m), are the first
    variables."""

    def __init__(
        self,
        inputs: Sequence[Shares],
        cost: Floats,
        weights: Shares,
        factor: float,
        delta: float,
        start: Arcs | None,
    ) -> None:
        count, (n, m) = len(inputs), cost.shape
        require(
            24.0 * count * n * m + 2000.0 * count * count * m,
            what=f"the joint transport of {count} inputs over {n:,} x {m:,} points",
            where="inputs",
            remedy="Merge points",
        )
        # costs of order one, so that the solver's absolute tolerances fit
        self.scale = float(cost.max()) or 1.0
        self.cost = cost / self.scale
        masses = np.array([lam.weights for lam in inputs])
        prices = weights.weights[:, None, None] * self.cost
        super().__init__(masses, prices, common=factor == 1 and delta == 0, spare=delta > 0)
        self.root = factor**0.5
        supply, totals = masses.ravel(), self.rows - self.total
        links, ratios = np.zeros(self.ratio - self.link), np.zeros(len(self.ratios))
        none = np.full(len(ratios) + totals, -self.infinity)
        self.add_rows(
            np.concatenate([supply, links, none]),
            np.concatenate([supply, links, ratios, np.full(totals, delta)]),
        )
        self.add(self.link, self.output_columns(1 / self.root, -self.root))
        if delta:
            self.add(self.ratio, self.slack_columns(1 / self.root))
        self.bring_in(first_arcs(masses, self.cost, weights.weights, start))

    def solve(self) -> None:
        """Find an optimum up to the solver's tolerance, to be repaired and verified; raises
        SolverError where HiGHS ends without one."""
        for _ in range(_ROUNDS):
            solution = self.optimum()
            self.values, self.dual = np.array(solution.col_value), np.array(solution.row_dual)
            u = self.dual[: self.link].reshape(self.count, self.n)
            self.v = self.dual[self.link : self.ratio].reshape(self.count, self.m)
            reduced = self.prices - u[:, :, None] - self.v[:, None, :]
            reduced[self.have | (self.supply == 0)[:, :, None]] = 0.0
            # variables with negative reduced costs, the best few of every point
            wanted = self.best(reduced) & (reduced < -TOLERANCE)
            if not wanted.any():
                return
            self.bring_in(wanted)
        raise SolverError("column generation did not end", where="optimal target")

    def outputs(self) -> Floats:
        """μ_t, shape (T, m), about distributions."""
        distinct = 1 if self.common else self.count
        found = self.values[: distinct * self.m].reshape(distinct, self.m)
        return np.tile(found, (self.count // distinct, 1))

    def multipliers(self) -> Floats:
        """z >= 0, shape (T, T, m), in units of the given cost: that of μ_t[y] <= e^ε μ_t'[y] at
        [t, t', y]."""
        ratios = self.dual[self.ratio : self.total].reshape(len(self.pairs), self.m)
        z = self.joined(self.v, np.maximum(-ratios, 0.0) / self.root)
        return np.asarray(z * self.scale)
