"""Constraints over the places of a prior as rows over the control points of a mesh, made as they
are needed: of an adversary's guesses and of the losses of single places few matter.

With W the weights of the control points at the places, the mechanism there is Q = W P, and what is
linear in Q is linear in P. Nothing here is trusted: ``certificate.places`` decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.highs import highs_run
from optmech.base.read_only import record
from optmech.certificate import Multipliers
from optmech.certificate.families import (
    Approximate,
    ApproximateMultipliers,
    AttackMultipliers,
    Bias,
    Distortion,
    Leakage,
    LiftedRatio,
    Linear,
    LossLimit,
    PairMultipliers,
    Ratio,
)
from optmech.certificate.statement import Family, Statement
from optmech.lp.families.base import LARGEST_LOG
from optmech.lp.families.limits import LinearPart

_MOST = 3
"""Rows that are added at a time, for a report or a family of single losses."""

Key = tuple[int, Any]
"""Of a row: a guess, place or pair, and what reports it is about."""
Rows = tuple[sp.csr_array, Floats, Floats]
"""B, E and h of one constraint, as of ``Links``."""


@record
class Links:
    """Rows across the reports of a program over a mesh, B p + E u <= h with free unknowns u, and
    what the objective has of these."""

    rows: sp.csr_array
    """B, (K, O·N): the unknowns of a report one after the other."""
    free: Floats
    """E, (K, U)."""
    most: Floats
    """h, (K,)."""
    costs: Floats
    """(U,)."""
    start: Floats
    """u at the start, (U,)."""

    @classmethod
    def none(cls, unknowns: int) -> Links:
        """No rows."""
        nothing = np.zeros(0)
        empty = sp.csr_array((0, unknowns))
        return cls(empty, np.zeros((0, 0)), nothing, nothing, nothing)

    def scaled(self, reports: int, objective: float) -> tuple[Links, Floats]:
        """Links with rows whose terms are about one where all reports are as likely, costs over
        ``objective``, and what each row was divided by."""
        size = abs(self.rows).sum(axis=1) / reports
        size = np.maximum(
            np.maximum(size, np.abs(self.most)), np.abs(self.free).max(axis=1, initial=0.0)
        )
        size = np.where(size > 0, size, 1.0)
        rows = sp.diags_array(1 / size) @ self.rows
        free, most = self.free / size[:, None], self.most / size
        return Links(rows, free, most, self.costs / objective, self.start), size


@record
class _Part(ABC):
    """One constraint, on the mechanism at the places Q (S, O)."""

    weights: sp.csr_array
    """W, (S, N)."""
    most: float
    """The limit of what it limits."""

    @property
    def standing(self) -> int:
        """Rows that are always there, before those of keys."""
        return 0

    def excess(self, at: Floats) -> float:
        """How far Q is beyond it, relative to its numbers; <= 0 where it holds."""
        return float((self.reached(at) - self.most) / _size(self.most))

    @abstractmethod
    def reached(self, at: Floats) -> float:
        """What is limited, at Q."""

    def wanted(self, at: Floats) -> list[Key]:
        """The rows that bind most at Q."""
        return []

    @abstractmethod
    def rows(self, keys: list[Key]) -> Rows:
        """Those of ``keys``, after the ones that are always there; at least one."""

    @abstractmethod
    def multipliers(self, keys: list[Key], values: Floats) -> Any:
        """Those of its family from those of its rows, >= 0."""

    def inside(self, at: Floats) -> Floats:
        """Its free unknowns at Q such that no row is tight, where the constraint is not."""
        return np.zeros(0)


@record
class _Sums(_Part):
    """table Q <= limits, (K, S·kept) and (K,), of all of Q."""

    table: sp.csr_array
    limits: Floats
    read: Callable[[Floats], Floats]

    @property
    def standing(self) -> int:
        return len(self.limits)

    def reached(self, at: Floats) -> float:
        over = (self.table @ at.ravel() - self.limits) / _size(self.limits)
        return float(over.max(initial=-1.0))

    def rows(self, keys: list[Key]) -> Rows:
        reports = self.table.shape[1] // self.weights.shape[0]
        each = [self.table[:, o::reports] @ self.weights for o in range(reports)]
        return sp.csr_array(sp.hstack(each)), np.zeros((self.standing, 0)), self.limits

    def multipliers(self, keys: list[Key], values: Floats) -> Floats:
        return self.read(values)


@record
class _Each(_Part):
    """Σ_o spent[k,s,o] Q[s,o] - known[k,s] <= most for every k and every place s."""

    spent: Floats
    known: Floats
    near: float
    """Share of the limit up to which a row that is not tight is worth adding."""

    def _sums(self, at: Floats) -> Floats:
        return np.asarray((self.spent * at).sum(axis=2) - self.known)

    def reached(self, at: Floats) -> float:
        return float(self._sums(at).max())

    def wanted(self, at: Floats) -> list[Key]:
        sums = self._sums(at)
        worst = np.argsort(-sums, axis=1, kind="stable")[:, : _MOST * at.shape[1]]
        least = self.most * (1 - self.near)
        return [(k, s) for k, own in enumerate(worst.tolist()) for s in own if sums[k, s] > least]

    def rows(self, keys: list[Key]) -> Rows:
        k, s = _numbers(keys)
        rows = _products(self.weights[s], self.spent[k, s])
        return rows, np.zeros((len(keys), 0)), self.most + self.known[k, s]

    def multipliers(self, keys: list[Key], values: Floats) -> Floats:
        out = np.zeros(self.known.shape)
        out[tuple(_numbers(keys))] = values
        return out if len(out) > 1 else out[0]


@record
class _Guesses(_Part):
    """Σ_o max_w Σ_s table[w,s] Q[s,o] <= most; the free unknown u_o is the largest of a report."""

    table: Floats
    kept: Ints
    """The reports, out of ``observables``."""
    observables: int
    standing = 1

    def reached(self, at: Floats) -> float:
        return float((self.table @ at).max(axis=0).sum())

    def wanted(self, at: Floats) -> list[Key]:
        values = self.table @ at
        best = np.argpartition(-values, min(_MOST, len(values)) - 1, axis=0)[:_MOST]
        # of an adversary who sees nothing
        blind = int(self.table.sum(axis=1).argmax())
        out = [(w, o) for o, own in enumerate(best.T.tolist()) for w in own]
        return [*out, *((blind, o) for o in range(len(self.kept)))]

    def rows(self, keys: list[Key]) -> Rows:
        w, o = _numbers(keys)
        guesses, place = np.unique(np.append(0, w), return_inverse=True)
        one = np.vstack([np.zeros(len(self.kept)), np.eye(len(self.kept))[o]])
        free, most = -one, np.zeros(len(one))
        free[0], most[0] = 1.0, self.most
        return _products((self.table[guesses] @ self.weights)[place], one), free, most

    def multipliers(self, keys: list[Key], values: Floats) -> AttackMultipliers:
        strategy = np.zeros((self.observables, len(self.table)))
        w, o = _numbers(keys)
        strategy[self.kept[o], w] = values[1:]
        return AttackMultipliers(float(values[0]), strategy)

    def inside(self, at: Floats) -> Floats:
        values = (self.table @ at).max(axis=0)
        return np.asarray(values + abs(self.most - values.sum()) / (2 * len(values)))


@record
class _Pushed(_Part):
    """Σ_o φ_o table[k]·Q[:, o] <= most of combinations of the places' rows, table (K, S), for some
    tests φ of zeros and ones, which keys have as bytes."""

    table: sp.csr_array
    read: Callable[[Ints, Bools, Floats], Any]
    """From rows, tests and values to multipliers."""

    def rows(self, keys: list[Key]) -> Rows:
        k, tests = _tests(keys)
        most = np.full(len(keys), self.most)
        return _products(self.table[k] @ self.weights, tests), np.zeros((len(keys), 0)), most

    def multipliers(self, keys: list[Key], values: Floats) -> Any:
        return self.read(*_tests(keys), values)


@record
class _Ratios(_Pushed):
    """table Q <= 0 in every report, or where ``window`` (K, kept) says so."""

    window: Bools | None

    def _tightness(self, at: Floats) -> Floats:
        """(left - right) / left, (K, kept); -1 where there is nothing on the left."""
        sides = self.table @ at, abs(self.table) @ at
        left = (sides[0] + sides[1]) / 2
        found = np.divide(sides[0], left, out=np.full_like(left, -1.0), where=left > 0)
        return found if self.window is None else np.where(self.window, found, -1.0)

    def reached(self, at: Floats) -> float:
        return float(self._tightness(at).max(initial=-1.0))

    def wanted(self, at: Floats) -> list[Key]:
        tight = self._tightness(at)
        order = np.argsort(-tight, axis=0, kind="stable")[: 2 * _MOST]
        one = np.eye(tight.shape[1], dtype=bool)
        return [
            (k, one[o].tobytes())
            for o, own in enumerate(order.T.tolist())
            for k in own
            if tight[k, o] > -1e-3
        ]


@record
class _Best(_Pushed):
    """Σ_o max(0, table[k]·Q[:, o]) <= most for every k, by the tests that bind."""

    def reached(self, at: Floats) -> float:
        return float(np.maximum(self.table @ at, 0.0).sum(axis=1).max())

    def wanted(self, at: Floats) -> list[Key]:
        over = self.table @ at
        spent = np.maximum(over, 0.0).sum(axis=1)
        worst = np.argsort(-spent, kind="stable")[: _MOST * at.shape[1]].tolist()
        least = self.most * (1 - 1e-3)
        return [(k, (over[k] > 0).tobytes()) for k in worst if spent[k] > least]


@dataclass(eq=False)
class PlaceRows:
    """The constraints of a statement over places, with ``weights`` W (S, N) of N control points,
    for the ``kept`` reports (of ``statement.observables``)."""

    statement: Statement
    weights: sp.csr_array
    kept: Ints

    def __post_init__(self) -> None:
        made = ((place, self._part(own)) for place, own in enumerate(self.statement.families))
        self.parts = {place: part for place, part in made if part is not None}
        self.chosen: dict[int, dict[Key, None]] = {place: {} for place in self.parts}
        """The rows of every part that are there by now."""

    def _part(self, family: Family) -> _Part | None:
        guessed = self.kept, self.statement.observables
        match family:
            case LossLimit():
                most = float(family.most(self.statement)[0])
                if not family.per_secret:
                    paid = family.weighted[:, self.kept]
                    limit = np.array([_loose(most, paid.max(axis=1))])
                    table = sp.csr_array(paid.reshape(1, -1))
                    return _Sums(self.weights, 0.0, table, limit, lambda values: values)
                loss = family.loss[:, self.kept]
                idle = np.where(loss.max(axis=1) <= most, most + 1, 0.0)
                return _Each(self.weights, most, loss[None], idle[None], 1e-3)
            case Distortion():
                return _Guesses(self.weights, -float(family.least[1]), -family.weighted, *guessed)
            case Leakage():
                most = _loose(float(family.most[0]), family.weighted.max(axis=0))
                return _Guesses(self.weights, most, family.weighted, *guessed)
            case Bias():
                signs = np.array([1.0, -1.0])
                reported = np.multiply.outer(signs, family.reported[self.kept])[:, None]
                known, most = np.multiply.outer(signs, family.meant), float(family.maximum)
                return _Each(self.weights, most, reported.repeat(len(family.meant), 1), known, 0.5)
            case Linear():
                return self._linear(family)
            case Ratio():
                return self._ratios(family)
            case LiftedRatio():
                table = _differences(family.left, family.right, family.log_ratio)
                window = None if family.window is None else family.window[:, self.kept]
                return _Ratios(self.weights, 0.0, table, partial(self._played, family), window)
            case Approximate():
                table = _differences(family.left, family.right, family.log_ratio)
                read = partial(self._tested, family)
                return _Best(self.weights, float(family.delta), table, read)
        return None

    def _linear(self, family: Linear) -> _Sums:
        own, count = LinearPart.of(0, family), len(family)
        places = np.arange(self.weights.shape[0])[:, None] * family.observables + self.kept
        table = sp.csr_array(sp.vstack([own.sparse, -own.sparse]))[:, places.ravel()]
        limits = np.concatenate([own.upper, -own.lower])
        some = np.flatnonzero(np.isfinite(limits))

        def read(values: Floats) -> Floats:
            out = np.zeros(2 * count)
            out[some] = values
            return out.reshape(2, count)

        return _Sums(self.weights, 0.0, table[some], limits[some], read)

    def _ratios(self, family: Ratio) -> _Ratios:
        i, j = np.nonzero(np.isfinite(family.table) & ~np.eye(len(family.table), dtype=bool))
        one = sp.eye_array(len(family.table), format="csr")
        table = _differences(one[i], one[j], family.log_ratio[i, j])
        window = None if family.window is None else family.window[i][:, self.kept]

        def read(rows: Ints, tests: Bools, values: Floats) -> PairMultipliers:
            return PairMultipliers(i[rows], j[rows], self.kept[tests.argmax(axis=1)], values)

        return _Ratios(self.weights, 0.0, table, read, window)

    def _played(
        self, family: LiftedRatio | Approximate, rows: Ints, tests: Bools, values: Floats
    ) -> Floats:
        out = np.zeros((len(family.scale), self.statement.observables))
        np.add.at(out, (rows[:, None], self.kept), tests * values[:, None])
        return out

    def _tested(
        self, family: Approximate, rows: Ints, tests: Bools, values: Floats
    ) -> ApproximateMultipliers:
        weight: Floats = np.bincount(rows, values, len(family.scale)).astype(np.float64)
        played = self._played(family, rows, tests, values)
        return ApproximateMultipliers(weight, played / np.where(weight > 0, weight, 1.0)[:, None])

    @property
    def any(self) -> bool:
        return bool(self.parts)

    def excess(self, matrix: Floats) -> float:
        """How far P (N, kept) is beyond the worst of the constraints."""
        at = self.weights @ matrix
        return max((part.excess(at) for part in self.parts.values()), default=-np.inf)

    def add(self, matrix: Floats) -> bool:
        """Take the rows that bind most at P (N, kept) as well; whether there are new ones."""
        at, before = self.weights @ matrix, sum(map(len, self.chosen.values()))
        for place, part in self.parts.items():
            self.chosen[place].update(dict.fromkeys(part.wanted(at)))
        return sum(map(len, self.chosen.values())) > before

    def _used(self) -> list[tuple[int, _Part, list[Key]]]:
        """The parts with rows, their places and keys."""
        every = ((place, part, list(self.chosen[place])) for place, part in self.parts.items())
        return [(place, part, keys) for place, part, keys in every if part.standing or keys]

    def links(self, matrix: Floats, slack: bool = False) -> Links | None:
        """The rows, to start from P (N, kept); None where there are none yet. With ``slack`` a last
        free unknown is what is minimised: by how much limits are missed, in units of each."""
        used = self._used()
        if not used:
            return None
        tables, unknowns, limits = zip(*(part.rows(keys) for _, part, keys in used), strict=True)
        free, most = block_diag(*unknowns), np.concatenate(limits)
        at = self.weights @ matrix
        start = np.concatenate([part.inside(at) for _, part, _ in used])
        costs = np.zeros(len(start))
        if slack:
            # rows that say what an unknown is have no limits of their own
            own = np.where(free.sum(axis=1) >= 0, -_size(most), 0.0)
            free, costs = np.column_stack([free, own]), np.append(costs, 1.0)
            start = np.append(start, 1.0 + 2 * max(self.excess(matrix), 0.0))
        return Links(sp.csr_array(sp.vstack(tables)), free, most, costs, start)

    def constant(self) -> Floats | None:
        """What is reported everywhere with the same probabilities (kept,) and leaves the rows that
        there are the most to spare, up to their limits; None where nothing was found."""
        count, reports = self.weights.shape[1], len(self.kept)
        links = self.links(np.full((count, reports), 1 / reports), slack=True)
        if links is None:
            return None
        of_all = sp.kron(sp.eye_array(reports), np.ones((count, 1)))
        # unknowns of either sign are differences
        own = [links.rows @ of_all, links.free, -links.free]
        total = sp.csr_array(np.repeat([1.0, 0.0], [reports, 2 * len(links.costs)])[None])
        rows = sp.csr_array(sp.vstack([sp.hstack(own), total]))
        cost = np.concatenate([np.zeros(reports), links.costs, -links.costs])
        most = np.full(len(cost), np.inf)
        most[-1] = 1.0
        lower = np.append(np.full(len(links.most), -np.inf), 1.0)
        solution = highs_run(cost, rows, lower, np.append(links.most, 1.0), most).getSolution()
        row = np.maximum(np.array(solution.col_value[:reports]), 0.0)
        return row / row.sum() if len(row) == reports and row.sum() > 0 else None

    def multipliers(self, values: Floats) -> Multipliers:
        """Those of the statement's families, from those of the rows."""
        found: dict[int, Any] = {}
        rest = np.maximum(values, 0.0)
        for place, part, keys in self._used():
            own, rest = np.split(rest, [len(keys) + part.standing])
            found[place] = part.multipliers(keys, own)
        return Multipliers(tuple(map(found.get, range(len(self.statement.families)))))


def _numbers(keys: list[Key]) -> Ints:
    """The two numbers of every key, (2, K)."""
    return np.array(keys, dtype=np.int64).reshape(-1, 2).T


def _tests(keys: list[Key]) -> tuple[Ints, Bools]:
    """The row and the test (K, kept) of every key."""
    tests = [np.frombuffer(test, dtype=bool) for _, test in keys]
    return np.array([k for k, _ in keys]), np.array(tests)


def _products(points: Floats | sp.csr_array, reports: Floats | Bools) -> sp.csr_array:
    """Rows across the reports: a row over the control points (K, N), at every report times what
    ``reports`` (K, O) has there."""
    shown = sp.coo_array(reports)
    row, report = shown.coords
    own = sp.csr_array(points)[row].tocoo()
    k, point = own.coords
    shape = reports.shape[0], points.shape[1] * reports.shape[1]
    places = row[k], report[k] * points.shape[1] + point
    return sp.csr_array((own.data * shown.data[k], places), shape=shape)


def _differences(left: Floats, right: Floats, log_ratio: Floats) -> sp.csr_array:
    """left − e^r right, of distributions that sum to one, (m, S)."""
    one, other = sp.csr_array(left), sp.csr_array(right)
    first, second = 1 / one.sum(axis=1), 1 / other.sum(axis=1)
    factor = np.exp(np.minimum(log_ratio, LARGEST_LOG))
    return sp.diags_array(first) @ one - sp.diags_array(factor * second) @ other


def _loose(most: float, largest: Floats) -> float:
    """A limit of a sum, of which these are the largest terms; one that never binds where none does,
    as no matrix is strictly inside of an equality."""
    total = float(largest.sum())
    return most if total > most else total + abs(total) + 1


def _size(limit: Floats | float) -> Floats:
    return np.where(limit, np.abs(limit), 1.0)
