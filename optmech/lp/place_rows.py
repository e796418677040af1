"""Constraints over the places of a prior as rows over the control points of a mesh, made as they
are needed: of an adversary's guesses and of the losses of single places few matter.

With W the weights of the control points at the places, the mechanism there is Q = W P, and what is
linear in Q is linear in P. Nothing here is trusted: ``certificate.places`` decides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints
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
    LossLimit,
    PairMultipliers,
    Ratio,
)
from optmech.certificate.statement import Family, Statement
from optmech.lp.families.base import LARGEST_LOG
from optmech.lp.highs import highs_run

_MOST = 3
"""Rows that are added at a time, for a report or a family of single losses."""

Key = tuple[int, int]
Row = tuple[Ints, Ints, Floats, dict[int, float], float]
"""Reports, control points, coefficients, those of the free unknowns, and the limit."""


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
    free = 0
    """Free unknowns that it has."""
    standing = 0
    """Rows that are always there, before those of keys."""

    def excess(self, at: Floats) -> float:
        """How far Q is beyond it, relative to its numbers; <= 0 where it holds."""
        return (self.reached(at) - self.most) / _size(self.most)

    @abstractmethod
    def reached(self, at: Floats) -> float:
        """What is limited, at Q."""

    def wanted(self, at: Floats) -> list[Key]:
        """The rows that bind most at Q."""
        return []

    @abstractmethod
    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        """Those of ``keys``, after the ones that are always there."""

    @abstractmethod
    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        """Those of its family from those of its rows, >= 0."""

    def inside(self, at: Floats) -> Floats:
        """Its free unknowns at Q such that no row is tight, where the constraint is not."""
        return np.zeros(0)


@record
class _Total(_Part):
    """Σ weighted[s,o] Q[s,o] <= most."""

    weighted: Floats
    standing = 1

    def reached(self, at: Floats) -> float:
        return float((self.weighted * at).sum())

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        both = self.weights.T @ self.weighted
        point, report = (index.ravel() for index in np.indices(both.shape))
        yield report, point, both.ravel(), {}, self.most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Floats:
        return values


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

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        reports = self.spent.shape[2]
        for k, s in keys:
            begin, end = self.weights.indptr[s : s + 2]
            points, own = self.weights.indices[begin:end], self.weights.data[begin:end]
            both = own[:, None] * self.spent[k, s]
            report = np.tile(np.arange(reports), len(points))
            most = self.most + float(self.known[k, s])
            yield report, np.repeat(points, reports), both.ravel(), {}, most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Floats:
        out = np.zeros(self.known.shape)
        for key, value in zip(keys, values.tolist(), strict=True):
            out[key] = value
        return out if len(out) > 1 else out[0]


@record
class _Guesses(_Part):
    """Σ_o max_w Σ_s table[w,s] Q[s,o] <= most; u_o is the largest of a report."""

    table: Floats
    kept: Ints
    """The reports, out of ``observables``."""
    observables: int
    standing = 1

    @property
    def free(self) -> int:  # type: ignore[override]
        return len(self.kept)

    def reached(self, at: Floats) -> float:
        return float((self.table @ at).max(axis=0).sum())

    def wanted(self, at: Floats) -> list[Key]:
        values = self.table @ at
        best = np.argpartition(-values, min(_MOST, len(values)) - 1, axis=0)[:_MOST]
        # of an adversary who sees nothing
        blind = int(self.table.sum(axis=1).argmax())
        out = [(int(w), o) for o in range(self.free) for w in best[:, o]]
        return [*out, *((blind, o) for o in range(self.free))]

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        none = np.zeros(0, dtype=np.int64)
        yield none, none, np.zeros(0), dict.fromkeys(range(self.free), 1.0), self.most
        guesses = sorted({w for w, _ in keys})
        found = (self.weights.T @ self.table[guesses].T).T
        place = {w: k for k, w in enumerate(guesses)}
        for w, o in keys:
            own = found[place[w]]
            points = np.flatnonzero(own)
            yield np.full(len(points), o), points, own[points], {o: -1.0}, 0.0

    def multipliers(self, keys: Sequence[Key], values: Floats) -> AttackMultipliers:
        strategy = np.zeros((self.observables, len(self.table)))
        for (w, o), value in zip(keys, values[1:].tolist(), strict=True):
            strategy[self.kept[o], w] = value
        return AttackMultipliers(float(values[0]), strategy)

    def inside(self, at: Floats) -> Floats:
        values = (self.table @ at).max(axis=0)
        return np.asarray(values + abs(self.most - values.sum()) / (2 * self.free))


@record
class _Pushed(_Part):
    """Of combinations of the places' rows, table (K, S)."""

    table: sp.csr_array
    read: Callable[[Ints, Any, Floats], Any]
    """From rows, reports or tests, and values to multipliers."""

    def _row(self, k: int, used: Ints | list[int], most: float) -> Row:
        """Σ_o table[k]·Q[:, o] <= most over the reports ``used``."""
        own = (self.table[[k]] @ self.weights).toarray().ravel()
        points = np.flatnonzero(own)
        report, point = np.repeat(used, len(points)), np.tile(points, len(used))
        return report, point, np.tile(own[points], len(used)), {}, most


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
        return [
            (int(k), o) for o in range(tight.shape[1]) for k in order[:, o] if tight[k, o] > -1e-3
        ]

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        return (self._row(k, [o], 0.0) for k, o in keys)

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        places = np.array(keys, dtype=np.int64).reshape(-1, 2)
        return self.read(places[:, 0], places[:, 1], values)


@record
class _Tests(_Pushed):
    """Σ_o max(0, table[k]·Q[:, o]) <= most for every k: Σ_o φ_o table[k]·Q[:, o] <= most for every
    test φ, of which those are taken that bind."""

    tests: dict[tuple[int, bytes], int] = field(default_factory=dict)
    taken: list[Floats] = field(default_factory=list)

    def _spent(self, at: Floats) -> tuple[Floats, Floats]:
        """By every test that is the best there, and which."""
        over = self.table @ at
        return np.maximum(over, 0.0).sum(axis=1), over

    def reached(self, at: Floats) -> float:
        return float(self._spent(at)[0].max())

    def wanted(self, at: Floats) -> list[Key]:
        spent, over = self._spent(at)
        out = []
        for k in np.argsort(-spent, kind="stable")[: _MOST * at.shape[1]].tolist():
            if spent[k] > self.most * (1 - 1e-3):
                test = (over[k] > 0).astype(np.float64)
                number = self.tests.setdefault((k, test.tobytes()), len(self.taken))
                if number == len(self.taken):
                    self.taken.append(test)
                out.append((k, number))
        return out

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        return (self._row(k, np.flatnonzero(self.taken[test]), self.most) for k, test in keys)

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        rows = np.array([k for k, _ in keys], dtype=np.int64)
        return self.read(rows, [self.taken[test] for _, test in keys], values)


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
                    return _Total(self.weights, _loose(most, paid.max(axis=1)), paid)
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
            case Ratio():
                return self._ratios(family)
            case LiftedRatio():
                return _Ratios(self.weights, 0.0, _differences(family), self._lifted(family), None)
            case Approximate():
                table, most = _differences(family), float(family.delta)
                return _Tests(self.weights, most, table, self._tested(family))
        return None

    def _ratios(self, family: Ratio) -> _Ratios:
        limited = np.isfinite(family.table) & ~np.eye(len(family.table), dtype=bool)
        i, j = np.nonzero(limited)
        count = np.arange(len(i))
        factor = np.exp(np.minimum(family.log_ratio[i, j], LARGEST_LOG))
        entries = np.concatenate([np.ones(len(i)), -factor])
        places = np.concatenate([count, count]), np.concatenate([i, j])
        table = sp.csr_array((entries, places), shape=(len(i), len(limited)))
        window = None if family.window is None else family.window[i][:, self.kept]

        def read(rows: Ints, reports: Ints, values: Floats) -> PairMultipliers:
            return PairMultipliers(i[rows], j[rows], self.kept[reports], values)

        return _Ratios(self.weights, 0.0, table, read, window)

    def _lifted(self, family: LiftedRatio) -> Callable[[Ints, Ints, Floats], Floats]:
        def read(rows: Ints, reports: Ints, values: Floats) -> Floats:
            out = np.zeros((len(family.scale), self.statement.observables))
            np.add.at(out, (rows, self.kept[reports]), values)
            return out

        return read

    def _tested(
        self, family: Approximate
    ) -> Callable[[Ints, list[Floats], Floats], ApproximateMultipliers]:
        def read(rows: Ints, tests: list[Floats], values: Floats) -> ApproximateMultipliers:
            weight: Floats = np.zeros(len(family.scale))
            np.add.at(weight, rows, values)
            played = np.zeros((len(weight), self.statement.observables))
            for k, test, value in zip(rows, tests, values, strict=True):
                played[k, self.kept] += test * (value / (weight[k] or 1.0))
            return ApproximateMultipliers(weight, played)

        return read

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

    def links(self, matrix: Floats, slack: bool = False) -> Links | None:
        """The rows, to start from P (N, kept); None where there are none yet. With ``slack`` a last
        free unknown is what is minimised: by how much limits are missed, in units of each."""
        count, reports = self.weights.shape[1], len(self.kept)
        columns = sum(part.free for part in self.parts.values()) + slack
        at: list[Ints] = []
        values: list[Floats] = []
        limits: list[float] = []
        unknowns: list[Floats] = []
        first = 0
        for place, part in self.parts.items():
            for k, row in enumerate(part.rows(list(self.chosen[place]))):
                report, point, value, free, most = row
                at.append(report * count + point)
                values.append(value)
                limits.append(most)
                own = np.zeros(columns)
                for u, v in free.items():
                    own[first + u] = v
                if slack and (part.free == 0 or k == 0):
                    own[-1] = -_size(most)
                unknowns.append(own)
            first += part.free
        if not limits:
            return None
        ends = np.cumsum([0, *map(len, at)])
        parts = np.concatenate(values), np.concatenate(at), ends
        table = sp.csr_array(parts, shape=(len(limits), reports * count))
        places = self.weights @ matrix
        costs, start = np.zeros(columns), np.zeros(columns)
        start[:first] = np.concatenate([part.inside(places) for part in self.parts.values()])
        if slack:
            costs[-1], start[-1] = 1.0, 1.0 + 2 * max(self.excess(matrix), 0.0)
        return Links(table, np.array(unknowns), np.array(limits), costs, start)

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
        for place, part in self.parts.items():
            keys = list(self.chosen[place])
            own, rest = np.split(rest, [len(keys) + part.standing])
            found[place] = part.multipliers(keys, own)
        return Multipliers(tuple(map(found.get, range(len(self.statement.families)))))


def _differences(family: LiftedRatio | Approximate) -> sp.csr_array:
    """left − e^r right, of distributions that sum to one, (m, S)."""
    left, right = (sp.csr_array(side) for side in (family.left, family.right))
    first, second = (1 / side.sum(axis=1) for side in (left, right))
    factor = np.exp(np.minimum(family.log_ratio, LARGEST_LOG))
    return sp.diags_array(first) @ left - sp.diags_array(factor * second) @ right


def _loose(most: float, largest: Floats) -> float:
    """A limit of a sum, of which these are the largest terms; one that never binds where none does,
    as no matrix is strictly inside of an equality."""
    total = float(largest.sum())
    return most if total > most else total + abs(total) + 1


def _size(limit: float) -> float:
    return abs(limit) or 1.0
