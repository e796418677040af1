"""Column generation: some of the observables, and proofs that the others are of no use.

Most observables of a large program end unused. A run on some of the blocks gives prices of the
row sums. At these prices a block left out gets multipliers of its own pairs; where these leave no
negative reduced cost, no column of the cone is worth having (reduced-cost fixing), and the bound
holds for the whole program. Where they do, columns are missing: they join (``narrowing``), or the
run from a neighbour's design is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints, begins
from optmech.engines.base import Monitor, Options
from optmech.engines.structured import kernels
from optmech.engines.structured.compiled import CompiledBackend, Workers, candidates
from optmech.engines.structured.kernels import PairRows, Panels
from optmech.engines.structured.model import Model
from optmech.engines.structured.points import Duals, coupling, mechanism, pair_entries, restored
from optmech.engines.structured.rows import Cone, Rows, add_rows, bare, first_rows, worst
from optmech.engines.structured.run import Bounds
from optmech.engines.structured.state import Residuals, State
from optmech.engines.structured.system import System
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import Point, entries

_MOST_ROUNDS = 12


@dataclass(eq=False)
class Outside:
    """Blocks that are kept out of the program, and what proves that their columns are of no use:
    their costs (blocks, m + 1), columns P of the same shape, whose sums are one, rows of the pairs
    that matter to each, and their multipliers. Nothing but pairs restricts them.

    What multipliers leave of a block's costs changes with the prices of the row sums by as much as
    these do, so most blocks need nothing but a comparison from one bound to the next, and the
    others start where they ended.
    """

    cone: Cone
    cost: Floats
    P: Floats
    rows: Rows
    threads: int

    def __post_init__(self) -> None:
        blocks = len(self.cost)
        position, self._first = candidates(self.cone)
        self._panels = Panels.free(position, blocks)
        self._each = Workers(self.threads)
        self._structure(np.arange(blocks))
        self.left = self._charged()
        """What multipliers leave of the costs before row sums are priced, (blocks, m)."""

    @classmethod
    def fresh(cls, model: Model, cone: Cone, threads: int) -> Outside:
        """The blocks of a program, with short pairs and uniform columns."""
        rows, m = first_rows(model, cone), model.variables
        P = np.full((model.blocks, m + 1), 1 / m)
        P[:, -1] = 0.0
        rows.s = (rows.e - 1) / m
        rows.z = 0.25 / m * float(np.abs(model.cost).max(initial=1e-300)) / rows.s
        return cls(cone, model.cost, P, rows, threads)

    def _structure(self, changed: Ints) -> None:
        rows = PairRows(self.rows)
        self._each(kernels.partition(changed, rows, self._first, self._panels))

    def _charged(self) -> Floats:
        left = self.cost.copy()
        self._each(kernels.charge(PairRows(self.rows), self.rows.z, left))
        return left[:, :-1]

    def priced(self, prices: Floats, goal: float) -> Floats:
        """What multipliers leave of the costs at ``prices`` (m,), (blocks, m): nowhere below
        -goal where a block is of no use, else nearly as much as multipliers of all pairs can."""
        doubtful = np.flatnonzero((self.left - prices).min(axis=1, initial=0.0) < -goal)
        for _ in range(_MOST_ROUNDS):
            if not len(doubtful):
                break
            self._solve(doubtful, prices, goal)
            negative = (self.left - prices).min(axis=1, initial=0.0) < -goal
            doubtful = self._with_more_pairs(doubtful[negative[doubtful]])
        return self.left - prices

    def values(self, prices: Floats, goal: float) -> Floats:
        """Prices of the best columns whose sums are one, over the pairs held."""
        return self._solve(np.arange(len(self.cost)), prices, goal)

    def centred(self, chosen: Ints, prices: Floats, centre: float) -> tuple[Floats, Rows]:
        """Columns of some blocks, and rows, whose products of slacks and multipliers are all near
        ``centre``."""
        self._solve(chosen, prices, 0.0, centre)
        return self.P[chosen], taken(self.rows, chosen)

    def without(self, chosen: Ints) -> tuple[Floats, Rows]:
        """Columns and rows of all blocks but some."""
        others = np.setdiff1d(np.arange(len(self.P)), chosen)
        return self.P[others], taken(self.rows, others)

    def _solve(self, chosen: Ints, prices: Floats, goal: float, centre: float = 0.0) -> Floats:
        cost = self.cost.copy()
        cost[:, :-1] -= prices
        left, value = self.left - prices, np.zeros(len(cost))
        given = chosen, cost, goal, centre, self.P, left, value
        self._each(kernels.price(PairRows(self.rows), self._panels, *given))
        self.left[chosen] = left[chosen] + prices
        return value

    def _with_more_pairs(self, doubtful: Ints) -> Ints:
        """Let pairs join that columns in doubt violate; those of them that do."""
        rows, P = self.rows, self.P
        held, level = PairRows(taken(rows, doubtful)), TUNING.nearly_violated
        wanted = np.empty((2, len(doubtful), P.shape[1] - 1), dtype=np.int64)
        self._each(kernels.violations(held, self.cone.later, P[doubtful], level, *wanted))
        block, i, j = worst(*wanted)
        new = doubtful[block], i, j
        if not len(new[0]):
            return new[0]
        mean = np.add.reduceat(rows.s * rows.z, rows.offset[:-1]) / np.diff(rows.offset)
        self.rows = add_rows(rows, self.cone, P, new, mean[new[0]])
        changed = np.unique(new[0])
        self._structure(changed)
        self.left[changed] = self._charged()[changed]
        return changed


def taken(rows: Rows, blocks: Ints) -> Rows:
    """The rows of some blocks, in the order in which these are given."""
    count = np.diff(rows.offset)[blocks]
    offset = begins(count)
    own = np.repeat(rows.offset[blocks] - offset[:-1], count) + np.arange(offset[-1])
    return rows.pick(offset, own)


def joined(first: Rows, second: Rows) -> Rows:
    """Rows of blocks, those of ``second`` after the others."""
    offset = np.concatenate([first.offset, second.offset[1:] + len(first)])
    both = zip(first.fields, second.fields, strict=True)
    return Rows(offset, *(np.concatenate(parts) for parts in both))


def suits(model: Model, cone: Cone) -> bool:
    """Whether columns can be left out: there are pairs and nothing else, which connect all secrets
    and make none equal."""
    return (
        model.pairs_only
        and not model.folded
        and model.variables == model.lp.secrets
        and bool((cone.decay > 0).all())
        and not len(bare(cone))
    )


class ColumnSet:
    """The blocks ``active`` of a program, as a program of their own (``model``), and those left
    out, from columns and rows of pairs that they had (``left``) or from uniform ones."""

    def __init__(
        self,
        full: Model,
        cone: Cone,
        active: Ints,
        threads: int,
        left: tuple[Floats, Rows] | None = None,
    ) -> None:
        self.full, self.cone, self.active = full, cone, active
        self.outside = np.setdiff1d(np.arange(full.blocks), active)
        self.model = part(full, active)
        if left is None:
            self.kept = Outside.fresh(part(full, self.outside), cone, threads)
        else:
            self.kept = Outside(cone, full.cost[self.outside], *left, threads)

    def multipliers(self, state: State, duals: Duals) -> sp.csr_array:
        """Multipliers of the program's pairs in all blocks, those held and those left out."""
        pair, block, value = pair_entries(self.model, state, duals)
        rows = self.kept.rows
        held = value, pair, self.active[block]
        others = rows.z, self.full.pair[rows.i, rows.j], self.outside[rows.block]
        shape = len(self.full.lp.cone), self.full.blocks
        return sp.csr_array(entries(shape, held, others))


class SomeColumns(Bounds):
    """Bounds of the whole program from a run on a ``ColumnSet``, whose program is ``model``.

    They are seldom due before the end: there is a neighbour's design already, or the bounds from
    before, and the objectives may be close to each other by chance while the equations do not hold.
    """

    lost = 0.0
    """What multipliers of the columns left out cost the bound, when these were looked at last."""

    def __init__(
        self,
        columns: ColumnSet,
        state: State,
        options: Options,
        monitor: Monitor,
        *,
        widens: bool = False,
    ) -> None:
        """With compiled code. Where the run ``widens``, columns that are missing are told, instead
        of ending it."""
        model, cone = columns.model, columns.cone
        backend = CompiledBackend(model, cone, options.threads)
        super().__init__(model, cone, backend, state, options, monitor)
        self.columns, self._widens = columns, widens
        self._looked = self.gap_then = np.inf
        self.missing = np.zeros(0, dtype=np.int64)

    def follow(self, before: Bounds, now: Residuals) -> None:
        """Go on where the bounds of a run on other columns are."""
        self.gap, self.upper, self.lower = before.gap, before.upper, before.lower
        self.last_due, self.gap_then, self._looked = before.last_due, before.gap_then, now.gap

    def look(self, now: Residuals) -> None:
        """Between bounds, see whether columns are missing."""
        if now.gap < min(TUNING.looked * self._looked, TUNING.priced_from):
            self._price(now, self.state.y, now.gap)

    def due(self, iteration: int, now: Residuals) -> bool:
        gap = max(now.gap, now.mu * self.state.products / max(abs(now.primal), 1e-300))
        near = gap < self.options.gap / TUNING.fallen
        if gap < TUNING.closed * self.options.gap:
            fallen = 0.8 if self.gap_then < TUNING.closed * self.options.gap else 1.0
        else:
            fallen = 0.0 if self.quick or near else TUNING.fallen
        due = gap < fallen * self.gap_then or iteration - self.last_due >= TUNING.lost // 2
        if due:
            self.last_due, self.gap_then = iteration, gap
        return due

    def offer(self, iteration: int, now: Residuals, system: System, last: bool = False) -> None:
        columns, state = self.columns, self.state
        model, lp = self.model, columns.full.lp
        P, upper = mechanism(model, self.backend, self.cone, state, now.mu, system)
        z = np.zeros((lp.block_size, lp.blocks))
        z[:, columns.active] = P[:, :-1].T
        duals = restored(model, self.backend, state, TUNING.left_out_projections)
        near = now.gap < TUNING.priced_from
        cone = sp.csr_array((len(lp.cone), lp.blocks))
        if near:
            prices = duals.y + duals.lowest
            self._price(now, prices, self.options.gap)
            self.lower = max(self.lower, float(prices.sum() - self.lost))
            if len(self.missing) and not self._widens:
                self.given_up = f"{len(self.missing)} columns are missing"
            cone = columns.multipliers(state, duals)
        self.offered = iteration
        found = Point(z, np.zeros(0), cone, (), coupling(model, duals))
        self.gap = self.monitor.propose(found, primal=upper < self.upper, dual=near)
        self.upper = min(self.upper, upper)
        self.monitor.report(
            f"iteration {iteration} with {model.blocks} of {lp.blocks} reports: value "
            f"{now.primal:.9g}, bound {now.bound:.9g}, gap {self.gap:.2e}"
        )

    def _price(self, now: Residuals, prices: Floats, gap: float) -> None:
        """Price what is left out to a share of ``gap``, and see what is missing."""
        self._looked = now.gap
        goal = TUNING.left_out_goal * gap * abs(now.primal) / len(prices)
        left = np.minimum(self.columns.kept.priced(prices, goal), 0.0)
        self.lost = -float(left.min(axis=0, initial=0.0).sum())
        matters = max(TUNING.left_out_matters * now.gap, 0.3 * self.options.gap)
        bearable = matters * abs(now.primal)
        useful = -left.sum(axis=1) > 0.01 * bearable
        self.missing = self.columns.outside[useful & (self.lost > bearable)]


def part(model: Model, active: Ints) -> Model:
    """A program with some of its blocks only."""
    return replace(
        model,
        lp=model.lp.with_blocks(active),
        cost=model.cost[active],
        allowed=model.allowed[active],
        auxiliary_cost=model.auxiliary_cost[active],
        coupling=replace(model.coupling, value=model.coupling.value[:, active]),
        limits=model.limits[:, active],
    )
