"""Column generation: the structured method on some of the observables, with the others priced.

Most observables of a large program end unused. This run holds the columns that it is given, and
from time to time prices the rest: for the row sums' multipliers of the moment, a block left out
either gets multipliers which prove that it cannot help, so that the bound holds for the whole
program, or it joins and the method starts again. Restarts cost more than they save unless the
columns given are nearly all that is needed, as they are after a neighbouring program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.engines.base import Monitor, Options
from optmech.engines.structured.bounds import Duals, closed
from optmech.engines.structured.compiled import CompiledBackend, Pricing
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone, bare
from optmech.engines.structured.run import Run
from optmech.engines.structured.state import Residuals, residuals
from optmech.engines.structured.system import System
from optmech.lp.blocks import Point

_MATTERS = 0.3
"""Blocks join where leaving them out costs the bound this share of the gap."""
_PRICED_FROM = 0.1
"""Gap of the program at hand from which on the other blocks are priced."""
_PROJECTIONS = 20
"""Here they are cheap beside the pricing, and halve what the bound loses."""
_AT_LATEST = 10
"""Iterations between two pricings."""


Priced = tuple[Pricing, Ints, Floats]
"""Blocks with their multipliers of the pairs that were priced over."""


def suits(model: Model, cone: Cone) -> bool:
    """Whether the method applies: pairs and nothing else, which connect all secrets and make none
    equal."""
    plain = not len(model.pool) and not len(model.links.rhs) and bool(model.allowed.all())
    return (
        plain
        and model.variables == model.lp.secrets
        and bool((cone.decay > 0).all())
        and not len(bare(cone))
    )


def part(model: Model, active: Ints) -> Model:
    """The same program with some of its blocks only."""
    lp = replace(
        model.lp, blocks=len(active), cost=model.lp.cost[:, active], fixed=model.lp.fixed[:, active]
    )
    links = replace(model.links, value=model.links.value[:, active])
    return replace(
        model,
        lp=lp,
        cost=model.cost[active],
        allowed=model.allowed[active],
        auxiliary_cost=model.auxiliary_cost[active],
        links=links,
        limits=model.limits[:, active],
    )


class PartialRun(Run):
    """See the module."""

    def __init__(
        self, model: Model, cone: Cone, active: Ints, options: Options, monitor: Monitor
    ) -> None:
        self._full, self._active = model, active
        self._joining = np.zeros(0, dtype=np.int64)
        self._pricing = Pricing(model, cone, options.threads)
        small = part(model, active)
        backend = CompiledBackend(small, cone, options.threads)
        super().__init__(small, cone, backend, options, monitor)

    def _add(self, now: Residuals) -> Residuals:
        if len(self._joining):
            self._restart()
            now = residuals(self._model, self._backend, self._state)
        return super()._add(now)

    def _restart(self) -> None:
        """Begin anew with more columns: an interior point that blocks join half way recovers
        more slowly."""
        self._active = np.concatenate([self._active, self._joining])
        self._joining = self._joining[:0]
        self._model = part(self._full, self._active)
        self._backend = CompiledBackend(self._model, self._cone, self._options.threads)
        self._state = self._begin()
        self._backend.structure(self._state.rows, np.arange(len(self._active)))
        self._last_due, self._gap_then = self._iterations, np.inf
        self._stalled = 0

    def _due(self, now: Residuals) -> bool:
        """Pricing costs several iterations: when the gap has fallen a lot, or after a while."""
        asked = self._options.gap
        wanted = 0.8 * self._gap_then if now.gap < asked else 0.3 * self._gap_then
        late = self._iterations - self._last_due >= _AT_LATEST
        due = now.gap < _PRICED_FROM and (now.gap < wanted or late)
        if due:
            self._last_due, self._gap_then = self._iterations, now.gap
        return due

    def _exhausted(self, now: Residuals) -> bool:
        return not len(self._joining) and super()._exhausted(now)

    def _propose(self, now: Residuals, system: System) -> None:
        lp = self._full.lp
        P, upper = closed(self._model, self._backend, self._cone, self._state, now.mu, system)
        z = np.zeros((lp.block_size, lp.blocks))
        z[:, self._active] = P[:, :-1].T
        duals = Duals(self._model, self._backend, self._state, _PROJECTIONS)
        near = now.gap < _PRICED_FROM
        self._offered = self._iterations
        cone = self._priced(now, duals) if near else sp.csr_array((len(lp.cone), lp.blocks))
        self._gap = self._monitor.propose(
            Point(z=z, shared=np.zeros(0), cone=cone, local=(), links=duals.links()),
            primal=upper < self._upper,
            dual=near,
        )
        self._upper = min(self._upper, upper)
        self._monitor.report(
            f"iteration {self._iterations}, {len(self._active)} of {lp.blocks} columns: "
            f"{now.primal:.9g} / {now.bound:.9g}, gap {self._gap:.2e}"
        )

    def _priced(self, now: Residuals, duals: Duals) -> sp.csr_array:
        """Multipliers of the program's pairs in all blocks; notes who has to join."""
        level = self._state.y + duals.lowest
        outside = np.setdiff1d(np.arange(self._full.blocks), self._active)
        cost = self._full.cost[outside].copy()
        cost[:, :-1] -= level
        goal = 0.02 * self._options.gap * abs(now.primal) / self._full.variables
        left, parts = self._price(outside, cost, goal)
        self._lower = max(self._lower, float(level.sum() + left.min(axis=0, initial=0.0).sum()))
        self._choose(now, outside, left)
        return self._multipliers(duals, parts)

    def _price(self, outside: Ints, cost: Floats, goal: float) -> tuple[Floats, list[Priced]]:
        """Reduced costs (blocks, m) that multipliers leave, and these multipliers."""
        left, multipliers = self._pricing.multipliers(cost, goal)
        return left, [(self._pricing, outside, multipliers)]

    def _choose(self, now: Residuals, outside: Ints, left: Floats) -> None:
        """Let the blocks join that cost the bound most, if that matters at this gap."""
        loss = -np.minimum(left, 0.0).sum(axis=1)
        allowed = max(_MATTERS * now.gap, 0.3 * self._options.gap) * abs(now.primal)
        if -left.min(axis=0, initial=0.0).sum() > allowed:
            self._joining = outside[loss > 0.01 * allowed]

    def _multipliers(self, duals: Duals, parts: list[Priced]) -> sp.csr_array:
        """Multipliers of the program's pairs in all blocks."""
        mine = duals.cone().tocoo()
        pair, block = mine.coords
        pairs, blocks, values = [pair], [self._active[block]], [mine.data]
        for pricing, own, z in parts:
            number = self._full.pair[pricing.i, pricing.j]
            pairs.append(np.tile(number, len(own)))
            blocks.append(np.repeat(own, len(number)))
            values.append(z.ravel())
        where = (np.concatenate(pairs), np.concatenate(blocks))
        shape = (len(self._full.lp.cone), self._full.blocks)
        return sp.csr_array(sp.coo_array((np.concatenate(values), where), shape=shape))
