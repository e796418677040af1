"""Columns leave a run once the barrier shows that they end unused, and are taken back where missed.

Most observables of a large program end unused: 20 of 300 remain of a rough prior under Hamming
loss, a third under Euclidean loss. Along the central path the sum of a column in use settles, while
that of one that is not falls with the products of slacks and multipliers (the indicator of
El-Bakry, Tapia and Zhang, 1994). So the slope of log sum against log mu tells them apart long
before the sums do, and a program of the columns in use takes fewer iterations as well as less time
for each.

Nothing is lost by a wrong guess but time. The columns that left are priced for every bound
(``columns``); where prices call for some of them, these join again with a small share, and do not
leave a second time. After many such times the run goes back to where the first left, with all.
"""

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.engines.structured.columns import (
    ColumnSet,
    Outside,
    SomeColumns,
    joined,
    part,
    suits,
    taken,
)
from optmech.engines.structured.iterative import iterates
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Cone, Rows, add_rows, distinct, first_rows
from optmech.engines.structured.run import Bounds
from optmech.engines.structured.state import Residuals, State, first_dense, set_slacks
from optmech.engines.structured.tuning import TUNING
from optmech.lp.blocks import Start

_Left = tuple[Floats, Rows]
"""Columns and rows of the blocks left out."""


class Narrowing:
    """Watches a run on all columns of ``model`` and says on which it is to go on."""

    def __init__(self, model: Model, cone: Cone) -> None:
        self._model, self._cone = model, cone
        self._seen: list[tuple[float, Floats]] = []
        self._widened = 0
        self._back = np.zeros(model.blocks, dtype=bool)
        self.before: State | None = None
        """The state on all columns before the first of them left."""

    @staticmethod
    def applies(model: Model, cone: Cone) -> bool:
        """Whether columns of the program can be left out, and are worth it: not where there are
        few of them, each with sparse factors."""
        return suits(model, cone) and not iterates(model.variables, model.blocks)

    def next(self, bounds: Bounds, now: Residuals) -> Bounds | None:
        """Bounds of the columns to go on with; None to go on as it is."""
        active = self._all()
        if isinstance(bounds, SomeColumns):
            active = bounds.columns.active
            bounds.look(now)
            if len(bounds.missing):
                return self._widened_by(bounds, now)
        used = self._in_use(bounds.state, active, now) | self._back[active]
        if used.sum() > TUNING.narrowed * len(active):
            return None
        if self.before is None:
            self.before = bounds.state
        self._seen.clear()  # what the others leave behind changes sums and products
        left = self._left(bounds, ~used)
        return self._on(active[used], _within(bounds.state, used), left, bounds, now)

    def _all(self) -> Ints:
        return np.arange(self._model.blocks)

    def _in_use(self, state: State, active: Ints, now: Residuals) -> Bools:
        """Which of the active columns do not fall with mu."""
        sums = np.full(self._model.blocks, np.nan)
        sums[active] = state.P[:, :-1].sum(axis=1)
        earlier = (seen for seen in reversed(self._seen) if seen[0] > TUNING.watched * now.mu)
        then = next(earlier, None)
        self._seen.append((now.mu, sums))
        if then is None or not TUNING.narrowed_to < now.gap < TUNING.narrowed_from:
            return np.ones(len(active), dtype=bool)
        slope = np.log(sums[active] / then[1][active]) / np.log(now.mu / then[0])
        most = TUNING.falls_late if now.gap < TUNING.narrowed_late else TUNING.falls
        middle = float(np.median(slope))
        if self.before is None and middle > TUNING.falling:
            slower = int((slope <= TUNING.slower * middle).sum())
            if slower <= TUNING.alike * len(slope):
                most = float(np.sort(slope)[int(TUNING.margin * slower)])
        return np.asarray(~(slope > most))

    def _widened_by(self, bounds: SomeColumns, now: Residuals) -> Bounds | None:
        """On from here with columns that are missing, which do not leave again; from where the
        first left where too much is missing."""
        columns, state = bounds.columns, bounds.state
        self._widened += 1
        if self._widened > TUNING.most_widened or self.before is None:
            bounds.given_up = f"{len(bounds.missing)} columns are missing"
            return None
        bounds.monitor.report(f"{len(bounds.missing)} reports are needed after all, and come back")
        self._back[bounds.missing] = True
        self._seen.clear()
        missing = np.searchsorted(columns.outside, bounds.missing)
        left = columns.kept.without(missing)
        blocks = np.concatenate([columns.active, bounds.missing])
        order = np.argsort(blocks)
        active = blocks[order]
        if bounds.lost > TUNING.too_late * now.gap * abs(now.primal):
            before = _within(self.before, np.isin(self._all(), active))
            return self._on(active, before, left, bounds, now)
        share = TUNING.joining * self._model.variables / len(columns.active)
        joining = columns.kept.centred(missing, state.y, now.mu / share)
        state = _with_more(state, self._cone, *joining, share)
        rows = taken(state.rows, order)
        state = replace(state, P=state.P[order], a=state.a[order], rows=rows)
        return self._on(active, state, left, bounds, now)

    def _on(
        self, active: Ints, state: State, left: _Left, bounds: Bounds, now: Residuals
    ) -> Bounds:
        """Bounds of a run on ``active`` that goes on where ``bounds`` are."""
        columns = ColumnSet(self._model, self._cone, active, bounds.options.threads, left)
        state = replace(state, dense=first_dense(columns.model, self._cone))
        result = SomeColumns(columns, state, bounds.options, bounds.monitor, widens=True)
        result.follow(bounds, now)
        some = f"{len(active):,} of {self._model.blocks:,} reports"
        bounds.monitor.report(f"going on with {some}: the others are hardly used")
        return result

    def _left(self, bounds: Bounds, leaving: Bools) -> _Left:
        """Columns of sum one, and rows, of those that leave and those that left before, in the
        order of their blocks."""
        leavers = np.flatnonzero(leaving)
        rows, P = taken(bounds.state.rows, leavers), bounds.state.P[leavers]
        weight = P.sum(axis=1)
        P, rows.s = P / weight[:, None], rows.s / weight[rows.block]
        if not isinstance(bounds, SomeColumns):
            return P, rows
        columns = bounds.columns
        order = np.argsort(np.concatenate([columns.active[leavers], columns.outside]))
        rows = taken(joined(rows, columns.kept.rows), order)
        return np.concatenate([P, columns.kept.P])[order], rows


def _within(state: State, used: Bools) -> State:
    """The state on the columns ``used``, to which the others' probability is added: sums of
    columns in the cone are in the cone, so that row sums and pairs hold as before."""
    lost = state.P[~used].sum(axis=0)
    P = state.P[used].copy()
    weight = P.sum(axis=1) / P.sum()
    P += weight[:, None] * lost
    rows = taken(state.rows, np.flatnonzero(used))
    rows.s += weight[rows.block] * np.maximum(rows.e * lost[rows.j] - lost[rows.i], 0.0)
    return replace(state, P=P, a=state.a[used], y=state.y.copy(), rows=rows)


def _with_more(state: State, cone: Cone, columns: Floats, rows: Rows, share: float) -> State:
    """The state with columns of sum one, ``share`` of each, after its own: these make room and take
    up the rest of a constant, which is in the cone where the constant is large enough, so that
    rows still sum to one and no pair loses more than what the room takes."""
    q = share * columns[:, :-1].sum(axis=0)
    room = 1.05 * cone.least_constant(q)
    if room > TUNING.most_room:
        return _with_more(state, cone, columns, rows, 0.9 * share * TUNING.most_room / room)
    rest = np.append(room - q, 0.0)
    own, P = state.rows, state.P
    weight = P.sum(axis=1) / P.sum()
    s = (1 - room) * own.s + weight[own.block] * (own.e * rest[own.j] - rest[own.i])
    rows = replace(rows, s=share * rows.s)
    return replace(
        state,
        P=np.concatenate([(1 - room) * P + weight[:, None] * rest, share * columns]),
        a=np.concatenate([state.a, np.zeros((len(columns), state.a.shape[1]))]),
        rows=joined(replace(own, s=s), rows),
    )


class WarmStart:
    """A first iterate from a neighbour's design, and the columns of ``model``, the whole program,
    to begin with.

    Three things are taken from the neighbour, none of them on trust:

    * which observables it uses. The others, but for a share of them that it uses most, are left out
      and priced (see ``columns``).
    * its columns. With all log ratios t times what they were, a column to the power t satisfies the
      new pairs, with equality where it did before. A share of the uniform mechanism leaves slack.
    * its multipliers, and with them the long pairs that matter. Where the slack allows more they
      are raised to what the barrier asks for, so that no product of slack and multiplier is far
      below the mean.
    """

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

    def useful(self, threads: int) -> Ints:
        """The columns to begin with: those in use and a share of the others, in their own order.
        Those that the neighbour left out as well are worth what a barrier of its gap would give
        them at its prices."""
        model, start = self._model, self._start
        used = start.matrix.sum(axis=0)
        absent = np.flatnonzero(used < TUNING.absent)
        if len(absent):
            cost = model.cost[absent].copy()
            cost[:, :-1] -= self._prices()
            value = float((model.cost[:, :-1].T * start.matrix).sum())
            own = replace(part(model, absent), cost=cost)
            before = Outside.fresh(own, replace(self._cone, ratio=start.log_ratio), threads)
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
        kept = np.isin(start.block, active)
        i, j, block = (part[kept] for part in (start.i, start.j, start.block))
        smaller, larger = start.matrix[i, block], start.matrix[j, block]
        tight = np.exp(start.log_ratio[i, j]) * larger < (1 + TUNING.tight) * smaller
        long = (self._cone.later[i, j] > 0) & tight
        block = np.searchsorted(active, block)
        more = distinct(m, block[long], i[long], j[long])
        rows = add_rows(first_rows(model, self._cone), self._cone, P, more, 0.0)
        value = float((model.cost * P).sum())
        # products from the mean to a few times that
        set_slacks(rows, P)
        mu = TUNING.first_gap * value / len(rows)
        rows.z = np.maximum(
            _weights(rows, m, (block * m + i) * m + j, start.weight[kept]), mu / rows.s
        )
        rows.s = np.minimum(rows.s, TUNING.spread * mu / rows.z)
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
