"""A first iterate from a neighbour's design, and the columns to begin with.

Three things are taken from the neighbour, none of them on trust:

* which observables it uses. The others, but for a share of them that it uses most, are left out
  and priced (see ``columns``).
* its columns. With all log ratios t times what they were, a column to the power t satisfies the
  new pairs, with equality where it did before. A share of the uniform mechanism leaves slack.
* its multipliers, and with them the long pairs that matter. Where the slack allows more they are
  raised to what the barrier asks for, so that no product of slack and multiplier is far below
  the mean.
"""

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.engines.structured.columns import ColumnSet, Outside, part, suits
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Cone, Rows, add_rows, distinct, first_dense, first_rows
from optmech.engines.structured.state import State, set_slacks
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import Start


class WarmStart:
    """See the module. ``model`` is the whole program."""

    def __init__(self, model: Model, cone: Cone, start: Start) -> None:
        self._model, self._cone, self._start = model, cone, start

    def applies(self) -> bool:
        """Whether the neighbour can be used for this program."""
        model, start = self._model, self._start
        return (
            suits(model, self._cone)
            and start.matrix.shape == (model.variables, model.blocks)
            and bool(np.isfinite(start.matrix).all() and np.isfinite(start.weight).all())
            and 1 / TUNING.furthest <= self._power() <= TUNING.furthest
        )

    def columns(self, threads: int) -> ColumnSet:
        """The columns to begin with."""
        return ColumnSet(self._model, self._cone, self.useful(threads), threads)

    def useful(self, threads: int) -> Ints:
        """The columns in use and a share of the others, in their own order. Those that the
        neighbour left out as well are worth what a barrier of its gap would give them at its
        prices."""
        model, start = self._model, self._start
        used = start.matrix.sum(axis=0)
        absent = np.flatnonzero(used < TUNING.absent)
        if len(absent):
            cost = model.cost[absent].copy()
            cost[:, :-1] -= self._prices()
            value = float((model.cost[:, :-1].T * start.matrix).sum())
            own = replace(part(model, absent), cost=cost)
            before = Outside.fresh(own, replace(self._cone, e=np.exp(start.log_ratio)), threads)
            share = TUNING.neighbours_gap * value / model.blocks
            price = before.values(np.zeros(model.variables), 1e-3 * share)
            used[absent] = np.minimum(share / np.maximum(price, 1e-300), TUNING.used)
        count = int((used > TUNING.used).sum())
        count += int(np.ceil(TUNING.others * (len(used) - count)))
        return np.sort(np.argsort(-used, kind="stable")[:count])

    def state(self, columns: ColumnSet) -> State:
        """An iterate of the columns' program near the neighbour's end."""
        active, model, start = columns.active, columns.model, self._start
        power, m = self._power(), model.variables
        grown = TUNING.uniform_per_square * (power - 1) ** 2
        share = float(np.clip(grown, TUNING.least_uniform, TUNING.most_uniform))
        P = np.zeros((len(active), m + 1))
        P[:, :-1] = (1 - share) * _columns(start.matrix[:, active], power).T + share / m
        place = np.full(columns.full.blocks, -1)
        place[active] = np.arange(len(active))
        i, j, block, weight = start.i, start.j, start.block, start.weight
        slack = np.exp(start.log_ratio[i, j]) * start.matrix[j, block] - start.matrix[i, block]
        tight = slack < TUNING.tight * start.matrix[i, block]
        kept = place[block] >= 0
        i, j, block, weight = i[kept], j[kept], place[block[kept]], weight[kept]
        long = (self._cone.later[i, j] > 0) & tight[kept]
        rows = first_rows(model, self._cone)
        more = distinct(m, (block[long], i[long], j[long]))
        if len(more[0]):
            rows = add_rows(rows, self._cone, P, more, 0.0)
        value = float((model.cost * P).sum())
        _balance(rows, P, _weights(rows, m, (block * m + i) * m + j, weight), value)
        a, none = np.zeros((len(active), model.auxiliary_cost.shape[1])), np.zeros(0)
        dense = first_dense(model, self._cone)
        return State(P, a, none, none, self._prices(), none, rows, dense)

    def _power(self) -> float:
        """How many times the log ratios are what they were, in the median."""
        new, old = self._model.ratio, self._start.log_ratio
        both = np.isfinite(new) & np.isfinite(old) & (new > 0) & (old > 0)
        return float(np.median(new[both] / old[both])) if both.any() else 1.0

    def _prices(self) -> Floats:
        """Prices of the row sums: the least of every variable's reduced costs at the neighbour's
        ratios."""
        start = self._start
        left = self._model.cost[:, :-1].copy()
        np.add.at(left, (start.block, start.i), start.weight)
        priced = start.weight * np.exp(start.log_ratio[start.i, start.j])
        np.subtract.at(left, (start.block, start.j), priced)
        return np.asarray(left.min(axis=0))


def _columns(matrix: Floats, power: float) -> Floats:
    """The neighbour's columns to a power, scaled so that the rows sum to one as nearly as factors
    from a fifth to five allow."""
    sums = matrix.sum(axis=0)
    columns = np.where(sums > 0, np.maximum(matrix, 0.0) ** power, 0.0)
    columns *= sums / np.maximum(columns.sum(axis=0), 1e-300)
    hold = np.where(sums > 0, 1e-4 * sums**2, 1.0)
    scale = np.linalg.solve(columns.T @ columns + np.diag(hold), columns.sum(axis=0) + hold)
    return np.asarray(columns * np.clip(scale, 0.2, 5.0))


def _weights(rows: Rows, m: int, keys: Ints, weight: Floats) -> Floats:
    """The neighbour's multiplier of every row, 0 where it has none; ``keys`` are sorted."""
    wanted = (rows.block * m + rows.i) * m + rows.j
    if not len(keys):
        return np.zeros(len(rows))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[at] == wanted) & (rows.i < m), weight[at], 0.0)


def _balance(rows: Rows, P: Floats, weight: Floats, value: float) -> None:
    """Slacks and multipliers with products from the mean to a few times that."""
    set_slacks(rows, P)
    mu = TUNING.first_gap * value / len(rows)
    rows.z = np.maximum(weight, mu / rows.s)
    rows.s = np.minimum(rows.s, TUNING.spread * mu / rows.z)
