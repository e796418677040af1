"""The joint transport program: plans of several inputs whose outputs are equal or close.

    min Σ_t w_t ⟨c, γ_t⟩   with  γ_t 1 = λ_t  and  μ_t = γ_tᵀ1,
    μ_t = μ_t' for all t, t'   or   Σ_y max(0, μ_t[y] − e^ε μ_t'[y]) ≤ δ.

Solved by column generation: few of the T·n·m variables matter, and a plan between two points is
brought in when its reduced cost asks for it. HiGHS finds the point and the multipliers; neither is
believed (``joint_bound`` turns any multipliers into a valid bound, docs/theory.md, section 9).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.memory import require
from optmech.errors import SolverError
from optmech.exact.numerators import integers
from optmech.spaces.rationals import Shares
from optmech.transport.multipliers import Multipliers
from optmech.transport.program import TOLERANCE, Arcs, Program, first_arcs

_ROUNDS = 1000


def solve_joint(
    inputs: list[Shares],
    cost: Floats,
    weights: Shares,
    factor: float,
    delta: float = 0.0,
    start: Arcs | None = None,
) -> Floating:
    """An optimum up to the solver's tolerance for λ_t (T of n), c >= 0 (n, m) and w_t (T), to be
    repaired and verified; raises SolverError where HiGHS ends without one. ``factor`` is e^ε; with
    1 (and δ = 0) the outputs are one distribution. ``start``, (T, n, m), are the first variables.
    """
    count, (n, m) = len(inputs), cost.shape
    require(
        24.0 * count * n * m + 2000.0 * count * count * m,
        what=f"the joint transport of {count} inputs over {n:,} x {m:,} points",
        where="inputs",
        remedy="Merge points",
    )
    masses = np.array([lam.weights for lam in inputs])
    program = Floating(masses, cost, weights.weights, factor, delta)
    program.bring_in(first_arcs(masses, program.cost, weights.weights, start))
    for _ in range(_ROUNDS):
        program.run()
        wanted = program.wanted()
        if not wanted.any():
            return program
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


class Floating(Program):
    """The restricted program in floating point."""

    def __init__(
        self, inputs: Floats, cost: Floats, weights: Floats, factor: float, delta: float
    ) -> None:
        # costs of order one, so that the solver's absolute tolerances fit
        self.scale = float(cost.max()) or 1.0
        self.cost = cost / self.scale
        prices = weights[:, None, None] * self.cost
        super().__init__(inputs, prices, common=factor == 1 and delta == 0, spare=delta > 0)
        self.root = factor**0.5
        supply, totals = inputs.ravel(), self.rows - self.total
        links, ratios = np.zeros(self.ratio - self.link), np.zeros(len(self.ratios))
        none = np.full(len(ratios) + totals, -self.infinity)
        self.add_rows(
            np.concatenate([supply, links, none]),
            np.concatenate([supply, links, ratios, np.full(totals, delta)]),
        )
        self.add(
            self.output_columns(1 / self.root, -self.root)
            + (self.slack_columns(1 / self.root) if delta else [])
        )

    def run(self) -> None:
        """Solve the restricted program."""
        solution = self.optimum()
        self.values, self.dual = np.array(solution.col_value), np.array(solution.row_dual)
        self.v = self.dual[self.link : self.ratio].reshape(self.count, self.m)

    def wanted(self) -> Arcs:
        """Variables with negative reduced costs, the best few of every point."""
        u = self.dual[: self.link].reshape(self.count, self.n)
        reduced = self.prices - u[:, :, None] - self.v[:, None, :]
        reduced[self.have | (self.supply == 0)[:, :, None]] = 0.0
        return np.asarray(self.best(reduced) & (reduced < -TOLERANCE))

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
