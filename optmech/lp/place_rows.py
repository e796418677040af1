"""Constraints over the places of a prior as rows over the control points of a mesh, made as they
are needed: of an adversary's guesses and of the losses of single places few matter.

With W the weights of the control points at the places, the mechanism there is Q = W P, and what is
linear in Q is linear in P. Nothing here is trusted: ``certificate.values`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
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
from optmech.certificate.statement import Statement
from optmech.lp.families.base import LARGEST_LOG
from optmech.lp.links import Links

_MOST = 3
"""Rows that are added at a time, for a report or a family of single losses."""
_NEAR = 1e-9

Key = tuple[int, int]
Row = tuple[Ints, Ints, Floats, dict[int, float], float]
"""Reports, control points, coefficients, those of the free unknowns, and the limit."""


class Part(Protocol):
    """One constraint."""

    @property
    def free(self) -> int:
        """Free unknowns that it has."""

    @property
    def standing(self) -> int:
        """Rows that are always there, before those of keys."""

    def excess(self, at: Floats) -> float:
        """How far Q (S, O) is beyond it, relative to its numbers; <= 0 where it holds."""

    def wanted(self, at: Floats) -> list[Key]:
        """The rows that bind most at Q."""

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        """Those of ``keys``, after the ones that are always there."""

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        """Those of its family from those of its rows."""

    def inside(self, at: Floats) -> Floats:
        """Its free unknowns at Q such that no row is tight, where the constraint is not."""


@dataclass(frozen=True, eq=False)
class _Total:
    """Σ weighted[s,o] Q[s,o] <= most."""

    weighted: Floats
    most: float
    weights: sp.csr_array
    free: int = 0
    standing: int = 1

    def excess(self, at: Floats) -> float:
        return (float((self.weighted * at).sum()) - self.most) / _size(self.most)

    def wanted(self, at: Floats) -> list[Key]:
        return []

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        count, reports = self.weights.shape[1], self.weighted.shape[1]
        both = np.asarray(self.weights.T @ self.weighted)
        report, point = np.tile(np.arange(reports), count), np.repeat(np.arange(count), reports)
        yield report, point, both.ravel(), {}, self.most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Floats:
        return np.maximum(values, 0.0)

    def inside(self, at: Floats) -> Floats:
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Each:
    """Σ_o loss[s,o] Q[s,o] <= most for every place s."""

    loss: Floats
    most: float
    weights: sp.csr_array
    free: int = 0
    standing: int = 0

    def excess(self, at: Floats) -> float:
        return (float((self.loss * at).sum(axis=1).max()) - self.most) / _size(self.most)

    def wanted(self, at: Floats) -> list[Key]:
        spent = (self.loss * at).sum(axis=1)
        worst = np.argsort(-spent, kind="stable")[: _MOST * self.loss.shape[1]]
        return [(int(s), 0) for s in worst if spent[s] > self.most * (1 - 1e-3)]

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        reports = self.loss.shape[1]
        for s, _ in keys:
            begin, end = self.weights.indptr[s : s + 2]
            points, own = self.weights.indices[begin:end], self.weights.data[begin:end]
            both = own[:, None] * self.loss[s]
            report = np.tile(np.arange(reports), len(points))
            yield report, np.repeat(points, reports), both.ravel(), {}, self.most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Floats:
        out = np.zeros(len(self.loss))
        for (s, _), value in zip(keys, values, strict=True):
            out[s] = max(float(value), 0.0)
        return out

    def inside(self, at: Floats) -> Floats:
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Σ_o max_w Σ_s table[w,s] Q[s,o] <= most; u_o is the largest of a report."""

    table: Floats
    most: float
    weights: sp.csr_array
    free: int
    standing: int = 1

    def excess(self, at: Floats) -> float:
        return (float((self.table @ at).max(axis=0).sum()) - self.most) / _size(self.most)

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
        found = np.asarray((self.weights.T @ self.table[guesses].T).T)
        place = {w: k for k, w in enumerate(guesses)}
        for w, o in keys:
            own = found[place[w]]
            points = np.flatnonzero(own)
            yield np.full(len(points), o), points, own[points], {o: -1.0}, 0.0

    def multipliers(self, keys: Sequence[Key], values: Floats) -> AttackMultipliers:
        strategy = np.zeros((self.free, len(self.table)))
        for (w, o), value in zip(keys, values[1:], strict=True):
            strategy[o, w] = max(float(value), 0.0)
        return AttackMultipliers(max(float(values[0]), 0.0), strategy)

    def inside(self, at: Floats) -> Floats:
        values = (self.table @ at).max(axis=0)
        return np.asarray(values + abs(self.most - values.sum()) / (2 * self.free))


@dataclass(frozen=True, eq=False)
class _Ratios:
    """table Q <= 0 in every report, or where ``window`` (K, kept) says so; table (K, S)."""

    table: sp.csr_array
    window: NDArray[np.bool_] | None
    weights: sp.csr_array
    read: Callable[[Ints, Ints, Floats], Any]
    """From rows, reports and values to multipliers."""
    free: int = 0
    standing: int = 0

    def _tightness(self, at: Floats) -> Floats:
        """(left - right) / left, (K, kept); -1 where there is nothing on the left."""
        sides = np.asarray(self.table @ at), np.asarray(abs(self.table) @ at)
        left = (sides[0] + sides[1]) / 2
        found = np.divide(sides[0], left, out=np.full_like(left, -1.0), where=left > 0)
        return found if self.window is None else np.where(self.window, found, -1.0)

    def excess(self, at: Floats) -> float:
        return float(self._tightness(at).max(initial=-1.0))

    def wanted(self, at: Floats) -> list[Key]:
        tight = self._tightness(at)
        order = np.argsort(-tight, axis=0, kind="stable")[: 2 * _MOST]
        return [
            (int(k), o) for o in range(tight.shape[1]) for k in order[:, o] if tight[k, o] > -1e-3
        ]

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        for k, o in keys:
            own = np.asarray((self.table[[k]] @ self.weights).todense()).ravel()
            points = np.flatnonzero(own)
            yield np.full(len(points), o), points, own[points], {}, 0.0

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        places = np.array(keys, dtype=np.int64).reshape(-1, 2)
        return self.read(places[:, 0], places[:, 1], np.maximum(values, 0.0))

    def inside(self, at: Floats) -> Floats:
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Tests:
    """Σ_o max(0, table[k]·Q[:, o]) <= most for every k: Σ_o φ_o table[k]·Q[:, o] <= most for every
    test φ, of which those are taken that bind."""

    table: sp.csr_array
    most: float
    weights: sp.csr_array
    read: Callable[[Ints, Floats, Floats], Any]
    """From rows, tests and values to multipliers."""
    free: int = 0
    standing: int = 0
    tests: dict[tuple[int, bytes], int] = field(default_factory=dict)
    taken: list[tuple[int, Floats]] = field(default_factory=list)

    def excess(self, at: Floats) -> float:
        spent = np.maximum(np.asarray(self.table @ at), 0.0).sum(axis=1)
        return (float(spent.max()) - self.most) / _size(self.most)

    def wanted(self, at: Floats) -> list[Key]:
        over = np.asarray(self.table @ at)
        spent = np.maximum(over, 0.0).sum(axis=1)
        out = []
        for k in np.argsort(-spent, kind="stable")[: _MOST * at.shape[1]].tolist():
            if spent[k] > self.most * (1 - 1e-3):
                test = (over[k] > 0).astype(np.float64)
                number = self.tests.setdefault((k, test.tobytes()), len(self.taken))
                if number == len(self.taken):
                    self.taken.append((k, test))
                out.append((k, number))
        return out

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        for k, number in keys:
            own = np.asarray((self.table[[k]] @ self.weights).todense()).ravel()
            points, used = np.flatnonzero(own), np.flatnonzero(self.taken[number][1])
            report, point = np.repeat(used, len(points)), np.tile(points, len(used))
            yield report, point, np.tile(own[points], len(used)), {}, self.most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Any:
        rows = np.array([k for k, _ in keys], dtype=np.int64)
        tests = np.array([self.taken[number][1] for _, number in keys])
        return self.read(rows, tests, np.maximum(values, 0.0))

    def inside(self, at: Floats) -> Floats:
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Means:
    """|Σ_o reported[o] Q[s,o] - meant[s]| <= most for every place s."""

    reported: Floats
    meant: Floats
    most: float
    weights: sp.csr_array
    free: int = 0
    standing: int = 0

    def _off(self, at: Floats) -> Floats:
        """By how much the means are too large, and too small, (2, S)."""
        off = at @ self.reported - self.meant
        return np.stack([off, -off])

    def excess(self, at: Floats) -> float:
        return (float(self._off(at).max()) - self.most) / _size(self.most)

    def wanted(self, at: Floats) -> list[Key]:
        off = self._off(at)
        worst = np.argsort(-off, axis=1, kind="stable")[:, : _MOST * at.shape[1]]
        return [
            (int(s), side) for side in (0, 1) for s in worst[side] if off[side, s] > self.most / 2
        ]

    def rows(self, keys: Sequence[Key]) -> Iterator[Row]:
        reports = len(self.reported)
        for s, side in keys:
            sign = 1.0 - 2.0 * side
            begin, end = self.weights.indptr[s : s + 2]
            points, own = self.weights.indices[begin:end], self.weights.data[begin:end]
            both = sign * own[:, None] * self.reported
            report = np.tile(np.arange(reports), len(points))
            most = self.most + sign * float(self.meant[s])
            yield report, np.repeat(points, reports), both.ravel(), {}, most

    def multipliers(self, keys: Sequence[Key], values: Floats) -> Floats:
        out = np.zeros((2, len(self.meant)))
        for (s, side), value in zip(keys, values, strict=True):
            out[side, s] = max(float(value), 0.0)
        return out

    def inside(self, at: Floats) -> Floats:
        return np.zeros(0)


@dataclass(eq=False)
class PlaceRows:
    """The constraints of a statement over places, with ``weights`` W (S, N) of N control points,
    for the ``kept`` reports (of ``statement.observables``)."""

    statement: Statement
    weights: sp.csr_array
    kept: Ints
    chosen: list[dict[Key, None]] = field(init=False)
    """The rows of every part that are there by now."""

    def __post_init__(self) -> None:
        self.parts = [self._part(family) for family in self.statement.families]
        self.chosen = [{} for _ in self.parts]

    def _part(self, family: object) -> Part | None:
        if isinstance(family, LossLimit):
            most = float(family.most(self.statement)[0])
            if family.per_secret:
                return _Each(family.loss[:, self.kept], most, self.weights)
            return _Total(family.weighted[:, self.kept], most, self.weights)
        if isinstance(family, Distortion):
            table, least = -family.weighted, float(family.least[1])
            return _Guesses(table, -least, self.weights, len(self.kept))
        if isinstance(family, Leakage):
            most = float(family.most[0])
            return _Guesses(family.weighted, most, self.weights, len(self.kept))
        if isinstance(family, Bias):
            reported = family.reported[self.kept]
            return _Means(reported, family.meant, float(family.maximum), self.weights)
        if isinstance(family, Ratio):
            return self._ratios(family)
        if isinstance(family, LiftedRatio):
            return _Ratios(_differences(family), None, self.weights, self._lifted(family))
        if isinstance(family, Approximate):
            most = float(family.delta)
            return _Tests(_differences(family), most, self.weights, self._tested(family))
        return None

    def _ratios(self, family: Ratio) -> _Ratios:
        limited = np.isfinite(family.distance) & ~np.eye(len(family.distance), dtype=bool)
        i, j = np.nonzero(limited)
        count = np.arange(len(i))
        factor = np.exp(np.minimum(family.log_ratio[i, j], LARGEST_LOG))
        entries = np.concatenate([np.ones(len(i)), -factor])
        places = np.concatenate([count, count]), np.concatenate([i, j])
        table = sp.csr_array((entries, places), shape=(len(i), len(limited)))
        window = None if family.window is None else family.window[i][:, self.kept]

        def read(rows: Ints, reports: Ints, values: Floats) -> PairMultipliers:
            return PairMultipliers(i[rows], j[rows], self.kept[reports], values)

        return _Ratios(table, window, self.weights, read)

    def _lifted(self, family: LiftedRatio) -> Callable[[Ints, Ints, Floats], Floats]:
        def read(rows: Ints, reports: Ints, values: Floats) -> Floats:
            out = np.zeros((len(family.scale), self.statement.observables))
            np.add.at(out, (rows, self.kept[reports]), values)
            return out

        return read

    def _tested(
        self, family: Approximate
    ) -> Callable[[Ints, Floats, Floats], ApproximateMultipliers]:
        def read(rows: Ints, tests: Floats, values: Floats) -> ApproximateMultipliers:
            weight: Floats = np.zeros(len(family.scale))
            np.add.at(weight, rows, values)
            played = np.zeros((len(weight), self.statement.observables))
            for k, test, value in zip(rows, tests, values, strict=True):
                played[k, self.kept] += test * (value / (weight[k] or 1.0))
            return ApproximateMultipliers(weight, played)

        return read

    @property
    def any(self) -> bool:
        return any(part is not None for part in self.parts)

    def excess(self, matrix: Floats) -> float:
        """How far P (N, kept) is beyond the worst of the constraints."""
        at = np.asarray(self.weights @ matrix)
        return max((part.excess(at) for part in self.parts if part is not None), default=-np.inf)

    def add(self, matrix: Floats) -> bool:
        """Take the rows that bind most at P (N, kept) as well; whether there are new ones."""
        at, new = np.asarray(self.weights @ matrix), False
        for part, chosen in zip(self.parts, self.chosen, strict=True):
            if part is not None:
                keys = [key for key in part.wanted(at) if key not in chosen]
                chosen.update(dict.fromkeys(keys))
                new = new or bool(keys)
        return new

    def links(self, matrix: Floats, slack: bool = False) -> Links | None:
        """The rows, to start from P (N, kept); None where there are none yet. With ``slack`` a last
        free unknown is what is minimised: by how much limits are missed, in units of each."""
        count, reports = self.weights.shape[1], len(self.kept)
        rows: list[Row] = []
        own: list[bool] = []
        columns = 0
        for part, chosen in zip(self.parts, self.chosen, strict=True):
            if part is None:
                continue
            for k, (report, point, value, free, most) in enumerate(part.rows(list(chosen))):
                moved = {u + columns: v for u, v in free.items()}
                rows.append((report, point, value, moved, most))
                own.append(part.free == 0 or k == 0)
            columns += part.free
        if not rows:
            return None
        unknowns = np.zeros((len(rows), columns + slack))
        for k, row in enumerate(rows):
            for u, v in row[3].items():
                unknowns[k, u] = v
            if slack and own[k]:
                unknowns[k, -1] = -_size(row[4])
        ends = np.cumsum([0] + [len(row[0]) for row in rows])
        at = [row[0] * count + row[1] for row in rows]
        parts = np.concatenate([row[2] for row in rows]), np.concatenate(at), ends
        table = sp.csr_array(parts, shape=(len(rows), reports * count))
        costs, at_start = np.zeros(columns + slack), np.asarray(self.weights @ matrix)
        inside = [part.inside(at_start) for part in self.parts if part is not None]
        start = np.concatenate([*inside, np.zeros(int(slack))])
        if slack:
            costs[-1] = 1.0
            start[-1] = 1.0 + 2 * max(self.excess(matrix), 0.0)
        return Links(table, unknowns, np.array([row[4] for row in rows]), costs, start)

    def multipliers(self, values: Floats) -> Multipliers:
        """Those of the statement's families, from those of the rows."""
        out: list[Any] = []
        begin = 0
        for part, chosen in zip(self.parts, self.chosen, strict=True):
            if part is None:
                out.append(None)
                continue
            keys = list(chosen)
            end = begin + len(keys) + part.standing
            given = part.multipliers(keys, values[begin:end])
            if isinstance(given, AttackMultipliers):
                given = AttackMultipliers(given.weight, self._spread(given.strategy))
            out.append(given)
            begin = end
        return Multipliers(tuple(out))

    def _spread(self, strategy: Floats) -> Floats:
        """For all reports."""
        out = np.zeros((self.statement.observables, strategy.shape[1]))
        out[self.kept] = strategy
        return out


def _differences(family: LiftedRatio | Approximate) -> sp.csr_array:
    """left − e^r right, of distributions that sum to one, (m, S)."""
    left, right = (sp.csr_array(side) for side in (family.left, family.right))
    first, second = (1 / np.asarray(side.sum(axis=1)).ravel() for side in (left, right))
    factor = np.exp(np.minimum(family.log_ratio, LARGEST_LOG))
    both = sp.diags_array(first) @ left - sp.diags_array(factor * second) @ right
    return sp.csr_array(both)


def _size(limit: float) -> float:
    return abs(limit) or 1.0
