"""From a Statement to a BlockLP, and from its points back to matrices and multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.certificate.multipliers import (
    ApproximateMultipliers,
    AttackMultipliers,
    DivergenceMultipliers,
    Multipliers,
    PairMultipliers,
)
from optmech.lp.blocks import (
    BlockLP,
    LinkRows,
    LocalRows,
    PairCone,
    Perspective,
    Point,
    Sense,
)
from optmech.ratios.generators import generator
from optmech.statement.statement import Divergence, Statement

MAX_LOG_RATIO = 40.0
"""Pairs with a larger log ratio are left to repair: they move p(o|s) by e^-40 of it, and their
coefficients would be outside what solvers take."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """A BlockLP with the statement it came from."""

    lp: BlockLP
    statement: Statement

    def recover(self, point: Point) -> tuple[Floats, Multipliers]:
        """The matrix (S, O) and the multipliers of the statement's inequalities."""
        statement, lp = self.statement, self.lp
        matrix = point.z[: statement.secrets]
        coo = point.cone.tocoo()
        pair, block = coo.coords

        def pairs(number: int) -> PairMultipliers:
            own = coo.data > 0
            if statement.windowed:
                own &= lp.cone.source[pair] == number
            k, o, value = pair, block, coo.data
            if not own.all():
                k, o, value = pair[own], block[own], coo.data[own]
            return PairMultipliers(lp.cone.i[k], lp.cone.j[k], o, value)

        local = {(r.family, r.number): m for r, m in zip(lp.local, point.local, strict=True)}
        links = {(r.family, r.number): m for r, m in zip(lp.links, point.links, strict=True)}
        return matrix, Multipliers(
            ratio=pairs(-1),
            windowed=tuple(pairs(k) for k in range(len(statement.windowed))),
            lifted=tuple(local["lifted", k] for k in range(len(statement.lifted))),
            approximate=tuple(
                _tests(links["approximate", k], local["approximate", k])
                for k in range(len(statement.approximate))
            ),
            divergences=tuple(
                _tangents(part, links["divergence", k], local["divergence", k])
                for k, part in enumerate(statement.divergences)
            ),
            distortion=tuple(
                AttackMultipliers(float(links["distortion", k][0]), local["distortion", k].T)
                for k in range(len(statement.distortion))
            ),
            loss_limits=tuple(links["loss", k] for k in range(len(statement.loss_limits))),
            objective=self._objective(local, links),
        )

    def _objective(
        self, local: dict[tuple[str, int], Floats], links: dict[tuple[str, int], Floats]
    ) -> Floats | None:
        if ("worst", 0) in links:
            return links["worst", 0]
        if ("target", 0) in local:
            return local["target", 0].T
        return None


def _tests(weight: Floats, product: Floats) -> ApproximateMultipliers:
    safe = np.where(weight > 0, weight, 1.0)
    return ApproximateMultipliers(weight, np.clip(product / safe[:, None], 0.0, 1.0))


def _tangents(part: Divergence, weight: Floats, given: Floats) -> DivergenceMultipliers:
    """Slopes from the multipliers of the rows that say p = aP, the first of the last ones."""
    count = len(part.limit)
    price = weight / part.limit
    safe = np.where(price > 0, price, 1.0)
    slope = -given[len(given) - 2 * count : len(given) - count] / safe[:, None]
    return DivergenceMultipliers(price, generator(part.kind).cut(slope))


def compile_lp(statement: Statement) -> Compiled:
    """Write the design problem of a statement as a BlockLP (PG 21, 22, 24; DP19 Def. 8, 9)."""
    return Compiled(_Assembly(statement).finish(), statement)


def compile_feasibility(statement: Statement) -> Compiled:
    """The program whose optimum is zero exactly when the statement can be satisfied.

    Every row sum and every required distortion is multiplied by 1 - e with one shared e >= 0,
    which is minimised: P = 0 with e = 1 is always feasible, and the multipliers of an optimum
    e > 0 are a Farkas certificate.
    """
    assembly = _Assembly(statement, objective=False)
    assembly.add_elastic()
    return Compiled(assembly.finish(), statement)


class _Assembly:
    """Collects auxiliary variables and rows; auxiliary columns are numbered as they come."""

    def __init__(self, statement: Statement, objective: bool = True) -> None:
        self.s = statement
        self.secrets, self.blocks = statement.secrets, statement.observables
        self.auxiliary = 0
        self.aux_cost: list[float] = []
        self.shared_cost: list[float] = []
        self.local: list[tuple[str, int, sp.coo_array, bool]] = []
        self.links: list[tuple[str, int, Sense, Floats, sp.coo_array, sp.coo_array]] = []
        self.cost = np.zeros((self.secrets, self.blocks))
        self._row_sums()
        if objective:
            self._objective()
        for k, lifted in enumerate(statement.lifted):
            ratio = np.exp(np.minimum(lifted.log_ratio, MAX_LOG_RATIO))
            self._local("lifted", k, sp.coo_array(lifted.left - ratio[:, None] * lifted.right))
        for k in range(len(statement.approximate)):
            self._approximate(k)
        self.perspectives = [
            self._divergence(k, part) for k, part in enumerate(statement.divergences)
        ]
        for k, distortion in enumerate(statement.distortion):
            column = self._attack_rows("distortion", k, distortion.weighted, 0.0)
            total = self._over_blocks(np.array([-1.0]), np.array([column]))
            self._link("distortion", k, Sense.AT_MOST, np.array([-distortion.minimum]), total)
        for k, limit in enumerate(statement.loss_limits):
            rows = self._weighted_rows(limit.weighted, limit.per_secret)
            self._link("loss", k, Sense.AT_MOST, np.full(rows.shape[0], limit.maximum), rows)

    def add_elastic(self) -> None:
        """The shared variable e of ``compile_feasibility``."""
        column = len(self.shared_cost)
        self.shared_cost.append(1.0)
        for k, (family, number, sense, rhs, rows, _) in enumerate(self.links):
            if family in ("row sums", "distortion"):
                elastic = sp.coo_array(
                    (rhs, (np.arange(len(rhs)), np.full(len(rhs), column))),
                    shape=(len(rhs), column + 1),
                )
                self.links[k] = (family, number, sense, rhs, rows, elastic)

    def finish(self) -> BlockLP:
        size = self.secrets + self.auxiliary
        cost = (
            np.vstack([self.cost, np.tile(np.array(self.aux_cost)[:, None], self.blocks)])
            if self.auxiliary
            else self.cost
        )
        fixed = np.zeros((size, self.blocks), dtype=bool)
        fixed[: self.secrets] = ~self.s.allowed
        shared = len(self.shared_cost)
        return BlockLP(
            secrets=self.secrets,
            blocks=self.blocks,
            auxiliary=self.auxiliary,
            cost=cost,
            shared_cost=np.array(self.shared_cost),
            fixed=fixed,
            cone=pair_cone(self.s),
            local=tuple(
                LocalRows(family, number, _resized(rows, size), equal)
                for family, number, rows, equal in self.local
            ),
            links=tuple(
                LinkRows(
                    family, number, sense, rhs, self._spread(rows, size), _resized(elastic, shared)
                )
                for family, number, sense, rhs, rows, elastic in self.links
            ),
            perspectives=tuple(self.perspectives),
        )

    def _spread(self, rows: sp.coo_array, size: int) -> sp.csr_array:
        """Columns (local index, block) -> block * size + local index."""
        row, column = rows.coords
        local, block = np.divmod(column, self.blocks)
        return sp.csr_array(
            (rows.data, (row, block * size + local)), shape=(rows.shape[0], self.blocks * size)
        )

    def _row_sums(self) -> None:
        index = np.arange(self.secrets * self.blocks)
        rows = sp.coo_array((np.ones(len(index)), (index // self.blocks, index)))
        self._link("row sums", 0, Sense.EQUAL, np.ones(self.secrets), rows)

    def _objective(self) -> None:
        statement = self.s
        if statement.objective == "expected_loss":
            self.cost = statement.prior[:, None] * statement.loss
        elif statement.objective == "worst_loss":
            column = len(self.shared_cost)
            self.shared_cost.append(1.0)
            rows = self._weighted_rows(statement.loss, per_secret=True)
            level = sp.coo_array(
                (-np.ones(self.secrets), (np.arange(self.secrets), np.full(self.secrets, column)))
            )
            zero = np.zeros(self.secrets)
            self.links.append(("worst", 0, Sense.AT_MOST, zero, rows, level))
        else:
            assert statement.target is not None
            self._attack_rows("target", 0, statement.target, -1.0)

    def _attack_rows(self, family: str, number: int, weighted: Floats, cost: float) -> int:
        """x_o <= Σ_s weighted[t,s] v_s for every estimate t (PG 21b); returns x's local index."""
        (column,) = self._new_auxiliary(1, cost)
        estimates = len(weighted)
        t, s = np.nonzero(weighted)
        rows = sp.coo_array(
            (
                np.concatenate([np.ones(estimates), -weighted[t, s]]),
                (
                    np.concatenate([np.arange(estimates), t]),
                    np.concatenate([np.full(estimates, column), s]),
                ),
            ),
            shape=(estimates, column + 1),
        )
        self._local(family, number, rows)
        return column

    def _approximate(self, number: int) -> None:
        """a·v - e^r b·v <= w with a slack w >= 0 per inequality; Σ_o w_o <= δ."""
        given = self.s.approximate[number]
        count = len(given.log_ratio)
        columns = np.array(self._new_auxiliary(count, 0.0), dtype=np.int64)
        ratio = np.exp(np.minimum(given.log_ratio, MAX_LOG_RATIO))
        body = (given.left - sp.diags_array(ratio) @ given.right).tocoo()
        row, s = body.coords
        index = np.arange(count)
        rows = sp.coo_array(
            (
                np.concatenate([body.data, -np.ones(count)]),
                (np.concatenate([row, index]), np.concatenate([s, columns])),
            ),
            shape=(count, self.secrets + self.auxiliary),
        )
        self._local("approximate", number, rows)
        total = self._over_blocks(np.ones(count), columns)
        self._link("approximate", number, Sense.AT_MOST, np.full(count, given.delta), total)

    def _divergence(self, number: int, part: Divergence) -> Perspective:
        """u = λ·v for every distribution λ once; p and q, each the u of its own; and w with
        Σ_o w_o <= 1 in units of the limit."""
        count = len(part.limit)
        distinct, back = np.unique(np.vstack([part.left, part.right]), axis=0, return_inverse=True)
        pushed = np.array(self._new_auxiliary(len(distinct), 0.0), dtype=np.int64)
        columns = np.array(self._new_auxiliary(3 * count, 0.0), dtype=np.int64).reshape(3, count)
        size = self.secrets + self.auxiliary

        def ones(places: np.ndarray) -> sp.csr_array:
            index = (np.arange(len(places)), places)
            return sp.csr_array((np.ones(len(places)), index), shape=(len(places), size))

        rows = sp.vstack(
            [
                ones(pushed) - _resized(sp.coo_array(distinct), size),
                ones(columns[:2].ravel()) - ones(pushed[back.ravel()]),
            ]
        )
        self._local("divergence", number, sp.coo_array(rows), equal=True)
        total = self._over_blocks(np.ones(count), columns[2])
        self._link("divergence", number, Sense.AT_MOST, np.ones(count), total)
        p, q, w = columns
        return Perspective(number, part.kind, p, q, w, part.limit)

    def _new_auxiliary(self, count: int, cost: float) -> list[int]:
        first = self.secrets + self.auxiliary
        self.auxiliary += count
        self.aux_cost.extend([cost] * count)
        return list(range(first, first + count))

    def _over_blocks(self, values: Floats, local_index: np.ndarray) -> sp.coo_array:
        """One row per value: value · Σ_o z_o[local index]."""
        row = np.repeat(np.arange(len(values)), self.blocks)
        column = (local_index[:, None] * self.blocks + np.arange(self.blocks)).ravel()
        return sp.coo_array((np.repeat(values, self.blocks), (row, column)))

    def _weighted_rows(self, weighted: Floats, per_secret: bool) -> sp.coo_array:
        s, o = np.nonzero(weighted)
        row = s if per_secret else np.zeros(len(s), dtype=np.int64)
        shape = (self.secrets if per_secret else 1, self.secrets * self.blocks)
        return sp.coo_array((weighted[s, o], (row, s * self.blocks + o)), shape=shape)

    def _local(self, family: str, number: int, rows: sp.coo_array, *, equal: bool = False) -> None:
        self.local.append((family, number, rows, equal))

    def _link(
        self, family: str, number: int, sense: Sense, rhs: Floats, rows: sp.coo_array
    ) -> None:
        none = sp.coo_array((len(rhs), 0))
        self.links.append((family, number, sense, rhs, rows, none))


def count_pairs(statement: Statement) -> int:
    """Number of pairs that ``pair_cone`` will list."""
    windows = sum(int(np.isfinite(w.log_ratio).sum()) for w in statement.windowed)
    return int(np.isfinite(statement.log_ratio).sum()) + windows


def pair_cone(statement: Statement) -> PairCone:
    """All constrained pairs of the ratio matrix and of the windowed ratios."""
    i, j = np.nonzero(statement.log_ratio <= MAX_LOG_RATIO)
    parts = [(i, j, statement.log_ratio[i, j], np.full(len(i), -1))]
    windows = []
    for k, window in enumerate(statement.windowed):
        i, j = np.nonzero(window.log_ratio <= MAX_LOG_RATIO)
        parts.append((i, j, window.log_ratio[i, j], np.full(len(i), k)))
        windows.append(window.window[i])
    active = None
    if windows:
        everywhere = np.ones((len(parts[0][0]), statement.observables), dtype=bool)
        active = np.vstack([everywhere, *windows])
    first, second, ratio, source = (np.concatenate([part[c] for part in parts]) for c in range(4))
    return PairCone(first, second, ratio, source, active)


def _resized(rows: sp.coo_array, columns: int) -> sp.csr_array:
    return sp.csr_array(sp.coo_array((rows.data, rows.coords), shape=(rows.shape[0], columns)))
