"""Ratios of points: P[i,o] <= e^{ε d(i,j)} P[j,o], for all observables or within a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Bools, Floats, Ints, slices
from optmech.base.edges import Edges
from optmech.base.read_only import ReadOnly, locked, record
from optmech.certificate import values
from optmech.certificate.check import Check
from optmech.certificate.families.base import (
    WHERE,
    Fitting,
    Plain,
    Trusted,
    are_edges,
    indices,
    is_exact,
    is_mask,
    is_table,
    numbers,
    trusted,
)
from optmech.certificate.lagrangian import Lagrangian, positive
from optmech.certificate.statement import Statement
from optmech.certificate.values import Scaled
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.exponentials import at_most, exp_above, exp_below, exp_range
from optmech.exact.number import Exact
from optmech.exact.rounding import UNIT

SAFE = 1 - 8 * UNIT
"""Covers the roundings of two probabilities, of the factor, and of up to three operations."""
_NORMAL = 2.0**-960
"""Below this, products could lose digits to underflow: decided in whole numbers."""

Place = tuple[int, int, int]


class Scan:
    """Inequalities left <= factor · right in floating point: the tightest, and the undecided.
    ``columns`` are the observables that the columns stand for."""

    def __init__(
        self, left: Floats, right: Floats | None = None, columns: Ints | None = None
    ) -> None:
        self.left, self.right = left, left if right is None else right
        self.columns = np.arange(left.shape[1]) if columns is None else columns
        self.tiny_left, self.tiny_right = ((p > 0) & (p < _NORMAL) for p in (left, self.right))
        normal = self.right.min(initial=1.0) >= _NORMAL and not self.tiny_left.any()
        self.inverse = 1 / self.right if normal else None
        self._product = np.empty_like(self.right)
        self.worst, self.where = 0.0, (0, 0, 0)
        self.open: list[Ints] = []

    def row(self, i: int, others: Ints, factor: Floats, window: Ints | None) -> None:
        """left[i, o] <= factor[j] right[j, o] for j in ``others``, o in ``window``."""
        if window is not None or self.inverse is None:
            self.ends(np.array([i]), others, factor, window)
            return
        # all columns, where no product or quotient loses digits
        if not len(others):
            return
        np.multiply(self.inverse, self.left[i], out=self._product)
        tightness = self._product.max(axis=1)[others] / factor
        k = int(tightness.argmax())
        if tightness[k] > self.worst:
            place = int(self.columns[self._product[others[k]].argmax()])
            self.worst, self.where = float(tightness[k]), (i, int(others[k]), place)
        lost = np.flatnonzero(tightness > 1)
        if len(lost):
            pairs, seen = np.nonzero(self._product[others[lost]] / factor[lost, None] > 1)
            ends = np.full(len(pairs), i), others[lost][pairs], self.columns[seen]
            self.open.append(np.column_stack(ends))

    def ends(self, first: Ints, second: Ints, factor: Floats, window: Ints | None = None) -> None:
        """left[i, o] <= factor right[j, o] for o in ``window``, of the pairs i, j of two arrays, of
        which the first may have one entry for all."""
        columns = slice(None) if window is None else window
        left, right = self.left[first][:, columns], self.right[second][:, columns]
        if not right.size:
            return
        with np.errstate(all="ignore"):
            tightness = np.where(left > 0, left / (right * factor[:, None]), 0.0)
        undecided = (tightness > 1) | self.tiny_left[first][:, columns]
        if self.tiny_right.any():
            undecided |= self.tiny_right[second][:, columns]
        place = self.columns[columns]
        k, o = divmod(int(tightness.argmax()), len(place))
        if tightness[k, o] > self.worst:
            self.worst = float(tightness[k, o])
            self.where = int(first[k % len(first)]), int(second[k]), int(place[o])
        if undecided.any():
            pairs, seen = np.nonzero(undecided)
            ends = first[pairs % len(first)], second[pairs], place[seen]
            self.open.append(np.column_stack(ends))

    def undecided(self) -> Iterator[Place]:
        """What floats do not tell."""
        for part in self.open:
            yield from part.tolist()

    def verdict(
        self, name: str, index: int, count: int, holds: Callable[[int, int, int], bool], words: str
    ) -> Check:
        """The check of so many inequalities; ``holds`` decides one exactly, ``words`` has the
        places."""
        worst = self.worst * SAFE
        failed = next((place for place in self.undecided() if not holds(*place)), None)
        detail = words.format(worst, *(self.where if failed is None else failed))
        if not count:
            detail = "constrains nothing"
        elif failed is not None:
            detail += ": too large"
        elif self.open:
            detail += f"; {sum(map(len, self.open))} decided in whole numbers"
        return Check(name, index, count, failed is None, worst, detail, ratios=True)


_LARGEST_LOG = 1e300
"""ε·d beyond this is written as this: still a constraint, where inf would mean none."""
_LARGE = 10_000_000
"""Distances from which on powers of e take less memory some at a time."""
_AT_A_TIME = 2**18


def rounded_product(epsilon: Exact, distance: Floats) -> Floats:
    """ε·d, rounded; inf only where the distance is."""
    with np.errstate(all="ignore"):
        product = np.multiply(distance, float(epsilon))
    np.minimum(product, _LARGEST_LOG, out=product)
    product[~np.isfinite(distance)] = np.inf
    return product


@record
class PairMultipliers:
    """Non-negative weights on ratio inequalities P[i,o] <= exp(log_ratio[i,j]) P[j,o]."""

    i: Ints
    j: Ints
    o: Ints
    value: Floats

    def take(self, kept: Bools | Ints) -> PairMultipliers:
        """Some of them."""
        return PairMultipliers(self.i[kept], self.j[kept], self.o[kept], self.value[kept])

    @staticmethod
    def none() -> PairMultipliers:
        """The multipliers of no inequality."""
        nothing = np.zeros(0, dtype=np.int64)
        return PairMultipliers(nothing, nothing, nothing, np.zeros(0))

    @staticmethod
    def joined(parts: Iterable[PairMultipliers | None]) -> PairMultipliers | None:
        """The multipliers of all parts, one after the other; None where no part has any."""
        given = [part for part in parts if part is not None]
        if len(given) < 2:
            return given[0] if given else None
        names = [field.name for field in fields(PairMultipliers)]
        return PairMultipliers(*(np.concatenate([getattr(p, n) for p in given]) for n in names))


@trusted
@record
class Ratio(ReadOnly, Trusted):
    """P[i,o] <= exp(ε distance[i,j]) P[j,o], exactly, wherever window[i,o] if there is a window.

    ``distance`` (S, S) is inf where the pair is not constrained; or the edges of a sparse graph,
    where paths imply the rest. Edges have no window.
    """

    kind = "ratio"
    agree = "written distance"
    index: int
    epsilon: Exact
    distance: Floats | Edges
    window: Bools | None = None

    @property
    def written(self) -> str:
        return "ratio" if self.window is None else "windowed"

    @property
    def edges(self) -> Edges | None:
        """What it limits, where that are edges."""
        return self.distance if isinstance(self.distance, Edges) else None

    @cached_property
    def table(self) -> Floats:
        """The distances of all pairs, (S, S), also of edges."""
        return self.distance.table if isinstance(self.distance, Edges) else self.distance

    @cached_property
    def log_ratio(self) -> Floats:
        """ε · distance, rounded, (S, S)."""
        return rounded_product(self.epsilon, self.table)

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """Floats proved to be at most, and at least, e^{ε d}, of all pairs or of the edges alone;
        the latter inf without a limit."""
        given = self.distance
        low, high = exp_range(self.epsilon, given.value if isinstance(given, Edges) else given)
        return locked(low), locked(high)

    def most_factors(self, i: Ints, j: Ints) -> Floats:
        """Floats proved to be at least e^{ε d} from i to j, inf without a limit."""
        if self.edges is None:
            if self.table.size > _LARGE and "factors" not in self.__dict__:
                return exp_above(self.epsilon, self.table[i, j])
            return self.factors[1][i, j]
        return self.edges.with_values(self.factors[1]).at(i, j)

    def _least_factors(self) -> Iterator[Floats]:
        """The rows of ``factors[0]``, of a large table some at a time."""
        if self.table.size <= _LARGE or "factors" in self.__dict__:
            yield from self.factors[0]
            return
        for part in slices(len(self.table), len(self.table), _AT_A_TIME):
            yield from exp_below(self.epsilon, self.table[part])

    def fits(self, statement: Statement) -> Fitting:
        shape, given = (statement.secrets,) * 2, self.distance
        edges = self.edges is not None
        return {
            "epsilon": is_exact(self.epsilon),
            "distance": are_edges(given, shape)
            if edges
            else is_table(given, shape, unlimited=True),
            "window": self.window is None
            or (not edges and is_mask(self.window, statement.loss.shape)),
        }

    def forced_zeros(self, zero: Bools) -> Bools:
        """p(o|s) <= e^r 0 is 0."""
        if not zero.any():
            return zero
        if self.edges is None:
            limited = np.isfinite(self.table).astype(float)
        else:
            ends = self.edges.i, self.edges.j
            limited = sp.csr_array((np.ones(len(self.edges)), ends), shape=self.edges.shape)
        faced = limited @ zero > 0
        return zero | (faced if self.window is None else faced & self.window)

    def pair_limits(self) -> Floats | None:
        return self.log_ratio if self.window is None else None

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        edges = self.edges
        if edges is None:
            scan, limits = self._scan(low, high), np.isfinite(self.table).sum(axis=1)
        else:
            scan, limits = Scan(high.matrix, low.matrix), np.diff(edges.start)
            for own in slices(len(edges), high.matrix.shape[1], _AT_A_TIME):
                scan.ends(edges.i[own], edges.j[own], self.factors[0][own] * SAFE)
        each = high.matrix.shape[1] if self.window is None else self.window.sum(axis=1)
        count = int((limits * each).sum())

        def holds(i: int, j: int, o: int) -> bool:
            (left, a), (right, b) = high.exact(i), high.exact(j)
            d = self.table[i, j] if edges is None else edges.at(np.array([i]), np.array([j]))[0]
            return at_most(left[o] * b, right[o] * a, self.epsilon, float(d))

        words = "largest p(o|s) / (e^r p(o|s')) = {:.15g} at s={}, s'={}, o={}"
        name = "ratio" if self.window is None else "windowed ratio"
        return scan.verdict(name, self.index, count, holds, words)

    def _scan(self, low: Scaled, high: Scaled) -> Scan:
        constrained, matrix = np.isfinite(self.table), high.matrix
        # rows that are equal keep any ratio; those between others may differ
        classes: dict[values.WholeRow, int] = {}
        every = map(high.exact, range(len(matrix)))
        same = np.array([classes.setdefault(row, len(classes)) for row in every])
        used = reported(matrix) if self.window is None else np.arange(matrix.shape[1])
        below = None if low is high else low.matrix[:, used]
        scan = Scan(matrix[:, used], below, columns=used)
        for i, least in enumerate(self._least_factors()):
            others = np.flatnonzero(constrained[i] & (same != same[i]))
            window = None if self.window is None else np.flatnonzero(self.window[i])
            scan.row(i, others, least[others] * SAFE, window)
        return scan

    def charge(self, lagrangian: Lagrangian, given: PairMultipliers) -> None:
        """z (P[i,o] - f P[j,o]) <= 0 for any f >= e^{r_ij}."""
        pairs = given if self.window is None else given.take(self.window[given.i, given.o])
        ratio = self.most_factors(pairs.i, pairs.j)
        used = np.isfinite(ratio) & (pairs.value > 0)
        if not used.all():
            pairs, ratio = pairs.take(used), ratio[used]
        value = positive(pairs.value)
        with np.errstate(over="ignore"):
            back = value * ratio
        secrets, observables = lagrangian.statement.loss.shape
        size, first = secrets * observables, np.asarray(pairs.o, dtype=np.int64) * secrets
        left, right = first + pairs.i, first + pairs.j
        # one observable after the other, as large multipliers come: neighbours in memory
        plus, minus = (
            np.asarray(np.bincount(*part, size), dtype=np.float64)
            for part in ((left, value), (right, back))
        )
        count = np.bincount(left, minlength=size) + np.bincount(right, minlength=size)
        with np.errstate(invalid="ignore"):
            parts = (plus - minus, plus + minus, count.astype(np.float64) + 2.0)
        lagrangian.add(*(part.reshape(observables, secrets).T for part in parts))

    def in_words(self, given: PairMultipliers | None) -> str:
        if given is None or not (given.value > 0).any():
            return ""
        if self.window is None:
            return "the privacy ratios"
        return f"constraints[{self.index}] (thresholded metric privacy)"

    def zeros(self, statement: Statement) -> PairMultipliers:
        return PairMultipliers.none()

    def decode(self, plain: Plain, statement: Statement) -> PairMultipliers:
        return decode_pairs(plain, statement)


def decode_pairs(plain: Plain, statement: Statement) -> PairMultipliers:
    """Index lists of pairs, and their weights. Raises ProblemError where they do not fit."""
    require_keys(plain, {"i", "j", "o", "value"}, WHERE)
    secrets, observables = statement.secrets, statement.observables
    out = PairMultipliers(
        indices(plain["i"], secrets),
        indices(plain["j"], secrets),
        indices(plain["o"], observables),
        numbers(plain["value"]),
    )
    if len({len(out.i), len(out.j), len(out.o), len(out.value)}) != 1:
        raise ProblemError("index lists of different lengths", where=WHERE)
    return out


def everywhere(statement: Statement) -> list[int]:
    """Places of the ratio families without a window, which limit the same pairs."""
    return [
        k
        for k, family in enumerate(statement.families)
        if isinstance(family, Ratio) and family.window is None
    ]


def shared_out(statement: Statement, pairs: PairMultipliers | None) -> dict[int, PairMultipliers]:
    """Weights on pairs of all ratio families without a window, each given to the family that
    limits its pair most; by the place of the family."""
    places = everywhere(statement)
    if pairs is None or not places:
        return {}
    if len(places) == 1:
        return {places[0]: pairs}
    parts = [family for family in statement.of_kind(Ratio) if family.window is None]
    owner = np.argmin([part.most_factors(pairs.i, pairs.j) for part in parts], axis=0)
    return {place: pairs.take(owner == k) for k, place in enumerate(places)}


def factors_of(statement: Statement) -> Floats:
    """Floats f_ij >= e^{r_ij} with p(o|i) <= f_ij p(o|j) for every report, (S, S); inf without a
    limit."""
    n = statement.secrets
    out = np.full((n, n), np.inf)
    i, j = np.indices((n, n))
    for family in statement.of_kind(Ratio):
        if family.window is None:
            given = family.most_factors(i.ravel(), j.ravel()).reshape(n, n)
            np.minimum(out, given, out=out)
    return out


def reported(matrix: Floats) -> Ints:
    """Observables that a matrix reports at all: elsewhere 0 <= 0 holds. All of them for zeros."""
    used = np.flatnonzero(matrix.any(axis=0))
    return used if len(used) else np.arange(matrix.shape[1])
