"""Constraints over the places of a prior as rows over the control points of a mesh, made as they
are needed: of an adversary's guesses and of the losses of single places few matter.

With W the weights of the control points at the places, the mechanism there is Q = W P, and what is
linear in Q is linear in P. Nothing here is trusted: ``certificate.joint`` decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats, Ints
from optmech.certificate import Multipliers
from optmech.certificate.families import AttackMultipliers, Distortion, Leakage, LossLimit
from optmech.lp.links import Links
from optmech.statement import Statement

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
        return None

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
            end = begin + len(keys) + (0 if isinstance(part, _Each) else 1)
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


def _size(limit: float) -> float:
    return abs(limit) or 1.0
