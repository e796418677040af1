"""The structured method from a neighbour's design: fewer blocks, and a first iterate close by.

Three things are taken from the neighbour, none of them on trust:

* which observables it uses. The others, but for a share of them that it uses most, are left out
  and priced (see ``columns``); should one turn out to be of use, the method begins anew with all.
* its columns. With all log ratios t times what they were, a column to the power t satisfies the
  new pairs, with equality where it did before. A share of the uniform mechanism leaves slack.
* its multipliers, and with them the long pairs that matter. Where the slack allows more they are
  raised to what the barrier asks for, so that no product of slack and multiplier is far below
  the mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.engines.structured.columns import PartialRun, Priced, suits
from optmech.engines.structured.compiled import Pricing
from optmech.engines.structured.dense import first_dense
from optmech.engines.structured.model import Model
from optmech.engines.structured.pairs import Cone, Rows, add_rows, distinct, first_rows
from optmech.engines.structured.state import Residuals, State
from optmech.lp.blocks import Start

_USED = 1e-4
"""Columns with a larger sum are in use."""
_ABSENT = 1e-9
"""Columns with a smaller sum were left out."""
_NEIGHBOURS_GAP = 1e-6
_OTHERS = 0.45
"""Share of the other columns that the method begins with."""
_TIGHT = 0.1
"""Long pairs with less slack than this share of their smaller side are held from the start."""
_GAP = 0.3
"""Relative gap that the first iterate's products are about to make."""
_SPREAD = 10.0
"""How far above the mean a product may be."""
_LEAST_SHARE, _MOST_SHARE, _SHARE_PER_SQUARE = 0.01, 0.2, 15.0
"""Share of the uniform mechanism: it grows with the square of the change of the ratios."""
_FURTHEST = 1.2
"""Ratios that changed more make a neighbour that saves nothing."""
_LOST = 60
"""Iterations after which the start did harm."""


def applies(model: Model, cone: Cone, start: Start) -> bool:
    """Whether the neighbour can be used for this program."""
    return (
        suits(model, cone)
        and start.matrix.shape == (model.variables, model.blocks)
        and bool(np.isfinite(start.matrix).all() and np.isfinite(start.weight).all())
        and 1 / _FURTHEST <= _power(model, start) <= _FURTHEST
    )


class StartedRun(PartialRun):
    """See the module."""

    def __init__(
        self, model: Model, cone: Cone, start: Start, options: Options, monitor: Monitor
    ) -> None:
        self._hint: Start | None = start
        super().__init__(
            model, cone, _in_use(model, cone, start, options.threads), options, monitor
        )
        self._gap_then = np.inf

    def finish(self) -> EngineResult:
        """Iterate to the end; from the usual start where this one leads nowhere."""
        result = super().finish()
        if result.outcome is Outcome.FAILED and self._hint is not None:
            self._join_all()
            self._restart()
            result = super().finish()
        return result

    def _begin(self) -> State:
        if self._hint is None:
            return super()._begin()
        return begin(self._model, self._cone, self._active, self._full, self._hint)

    def _restart(self) -> None:
        self._hint = None
        super()._restart()

    def _join_all(self) -> None:
        self._joining = np.setdiff1d(np.arange(self._full.blocks), self._active)

    def _add(self, now: Residuals) -> Residuals:
        if self._iterations == _LOST and self._hint is not None:
            self._join_all()
            self._restart()
        return super()._add(now)

    def _due(self, now: Residuals) -> bool:
        """Seldom before the end: there is a design already, and the objectives may be close to
        each other by chance while the equations do not hold."""
        gap = max(now.gap, now.mu * self._state.products / max(abs(now.primal), 1e-300))
        fallen = 0.8 if gap < self._options.gap else 0.0 if self._quick else 0.1
        due = gap < fallen * self._gap_then or self._iterations - self._last_due >= _LOST // 2
        if due:
            self._last_due, self._gap_then = self._iterations, gap
        return due

    def _price(self, outside: Ints, cost: Floats, goal: float) -> tuple[Floats, list[Priced]]:
        """Over the short pairs, and over all of them where these leave a negative cost."""
        left, parts = super()._price(outside, cost, goal)
        short = left.min(axis=1, initial=0.0) < -goal
        if not short.any():
            return left, parts
        pricing, _, z = parts[0]
        every = replace(self._cone, short=self._cone.short | (self._cone.later > 0))
        again = Pricing(self._full, every, self._options.threads)
        left[short], more = again.multipliers(cost[short], goal)
        return left, [(pricing, outside[~short], z[~short]), (again, outside[short], more)]

    def _choose(self, now: Residuals, outside: Ints, left: Floats) -> None:
        super()._choose(now, outside, left)
        if len(self._joining):
            self._joining = outside


def _in_use(model: Model, cone: Cone, start: Start, threads: int) -> Ints:
    """The columns to begin with, in their own order. Those that the neighbour left out as well
    are worth what a barrier of its gap would give them at its prices."""
    used = start.matrix.sum(axis=0)
    absent = np.flatnonzero(used < _ABSENT)
    if len(absent):
        cost = model.cost[absent].copy()
        cost[:, :-1] -= _prices(model, start)
        value = float((model.cost[:, :-1].T * start.matrix).sum())
        before = Pricing(model, replace(cone, e=np.exp(start.log_ratio)), threads)
        target = _NEIGHBOURS_GAP * value / (model.blocks * len(before.i))
        used[absent] = np.minimum(before.sums(cost, target), _USED)
    count = int((used > _USED).sum())
    count += int(np.ceil(_OTHERS * (len(used) - count)))
    return np.sort(np.argsort(-used, kind="stable")[:count])


def begin(model: Model, cone: Cone, active: Ints, full: Model, start: Start) -> State:
    """An iterate of ``model``, the blocks ``active`` of ``full``, near the neighbour's end."""
    power = _power(full, start)
    share = float(np.clip(_SHARE_PER_SQUARE * (power - 1) ** 2, _LEAST_SHARE, _MOST_SHARE))
    m = model.variables
    P = np.zeros((len(active), m + 1))
    P[:, :-1] = (1 - share) * _columns(start.matrix[:, active], power).T + share / m
    place = np.full(full.blocks, -1)
    place[active] = np.arange(len(active))
    i, j, block, weight = start.i, start.j, start.block, start.weight
    slack = np.exp(start.log_ratio[i, j]) * start.matrix[j, block] - start.matrix[i, block]
    tight = slack < _TIGHT * start.matrix[i, block]
    kept = place[block] >= 0
    i, j, block, weight = i[kept], j[kept], place[block[kept]], weight[kept]
    long = (cone.later[i, j] > 0) & tight[kept]
    rows = first_rows(model, cone)
    more = distinct(m, (block[long], i[long], j[long]))
    if len(more[0]):
        rows = add_rows(rows, cone, P, more, 0.0)
    value = float((model.cost * P).sum())
    _balance(rows, P, _weights(rows, m, (block * m + i) * m + j, weight), value)
    a = np.zeros((len(active), model.auxiliary_cost.shape[1]))
    none = np.zeros(0)
    return State(P, a, none, none, _prices(full, start), none, rows, first_dense(model, cone))


def _power(model: Model, start: Start) -> float:
    """How many times the log ratios are what they were, in the median."""
    new, old = model.ratio, start.log_ratio
    both = np.isfinite(new) & np.isfinite(old) & (new > 0) & (old > 0)
    return float(np.median(new[both] / old[both])) if both.any() else 1.0


def _columns(matrix: Floats, power: float) -> Floats:
    """The neighbour's columns to a power, scaled so that the rows sum to one as nearly as factors
    from a fifth to five allow."""
    sums = matrix.sum(axis=0)
    columns = np.where(sums > 0, np.maximum(matrix, 0.0) ** power, 0.0)
    columns *= sums / np.maximum(columns.sum(axis=0), 1e-300)
    hold = np.where(sums > 0, 1e-4 * sums**2, 1.0)
    scale = np.linalg.solve(columns.T @ columns + np.diag(hold), columns.sum(axis=0) + hold)
    return np.asarray(columns * np.clip(scale, 0.2, 5.0))


def _prices(model: Model, start: Start) -> Floats:
    """Prices of the row sums: the least of every variable's reduced costs at the neighbour's
    ratios."""
    left = model.cost[:, :-1].copy()
    np.add.at(left, (start.block, start.i), start.weight)
    priced = start.weight * np.exp(start.log_ratio[start.i, start.j])
    np.subtract.at(left, (start.block, start.j), priced)
    return np.asarray(left.min(axis=0))


def _weights(rows: Rows, m: int, keys: Ints, weight: Floats) -> Floats:
    """The neighbour's multiplier of every row, 0 where it has none; ``keys`` are sorted."""
    wanted = (rows.block * m + rows.i) * m + rows.j
    if not len(keys):
        return np.zeros(len(rows))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (rows.i < m), weight[at], 0.0)


def _balance(rows: Rows, P: Floats, weight: Floats, value: float) -> None:
    """Slacks and multipliers with products from the mean to a few times that."""
    flat, width, block = P.ravel(), P.shape[1], rows.block
    larger = flat[block * width + rows.j]
    s = np.maximum(rows.e * larger - flat[block * width + rows.i], 1e-3 * larger * (rows.e - 1))
    mu = _GAP * value / len(rows)
    rows.z = np.maximum(weight, mu / s)
    rows.s = np.minimum(s, _SPREAD * mu / rows.z)
