"""What proves the numbers of a coarse problem, small enough to be written into a file.

The bound of a coarse problem uses the ratios of those pairs of cells that have multipliers, and the
least mean costs of cells. A plan of transport with gains proves each of them
(docs/theory/populations.md, "Carrying a guarantee over to distributions"), and any plan will do:
here are those that the aggregation finds, with shares in whole numbers, which loses about a part in
10^5 of a ratio. Where costs come from boxes, their radii are the proof. Who reads a witness
evaluates it and searches for nothing (docs/theory/reductions.md, "Cells and what proves them").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints, begins
from optmech.base.memory import require
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.rounding import down, exp_down
from optmech.reductions.aggregation import (
    Coarse,
    Members,
    assembled,
    box_radii,
    boxed_costs,
)
from optmech.transport.gains import Arcs, Logs, gains, proved_by

Plain = Any
_GRAIN = 2**20 - 1
"""Shares of a source sum to this."""
_LARGEST = 2**32
_UNPROVED = 1e300
"""A log ratio whose multipliers are dropped wherever a bound is evaluated."""
_WHERE = "outer"


@record
class Plans:
    """Sparse plans one after the other, as their sources come."""

    arcs: Ints
    """How many arcs each source has, at most as many as there are targets."""
    target: Ints
    """Of every arc, counted within the target cell."""
    share: Ints
    """Of every arc, out of the sum over its source, whole numbers > 0."""

    def plain(self) -> dict[str, list[int]]:
        """The plans as lists."""
        names = ("arcs", "target", "share")
        return {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def read(cls, plain: Plain, sources: Ints, targets: Ints) -> Plans:
        """Read ``plain``, for plans between so many members each. Raises ProblemError where the
        lists do not fit."""
        body = _object(plain, {"arcs", "target", "share"})
        arcs, each = _whole(body["arcs"], sources.sum()), np.repeat(targets, sources)
        if (arcs > each).any():
            raise ProblemError("has more arcs than places that they lead to", where=_WHERE)
        count = arcs.sum()
        found = cls(arcs, _whole(body["target"], count), _whole(body["share"], count))
        if (found.target >= np.repeat(each, arcs)).any() or (found.share == 0).any():
            raise ProblemError("has arcs that lead nowhere", where=_WHERE)
        return found


@record
class Witness:
    """What proves the ratios of some pairs of cells, and the costs of all cells."""

    first: Ints
    """Cells with mass, as they are numbered among these; pairs are in ascending order."""
    second: Ints
    plans: Plans
    """For every pair (first, second)."""
    costs: Plans | Floats
    """From each cell to itself for every observable, cell by cell; or the radii of the secrets in
    their cells, (n,)."""

    def plain(self) -> dict[str, object]:
        """The entries of a design file."""
        pairs = {"first": self.first.tolist(), "second": self.second.tolist()}
        own = self.costs
        costs = own.plain() if isinstance(own, Plans) else {"radii": own.tolist()}
        return {"plans": pairs | self.plans.plain(), "costs": costs}


def read_witness(plain: dict[str, Plain], members: Members) -> Witness:
    """Read ``Witness.plain`` for a problem's cells. Raises ProblemError where it does not
    fit."""
    counts = members.counts
    require(
        100.0 * counts.max() ** 2,
        what=f"a cell of {counts.max():,} places",
        where=_WHERE,
        remedy="Use smaller cells",
    )
    body = _object(plain["plans"], {"first", "second", "arcs", "target", "share"})
    first, second = (_whole(body.pop(name)) for name in ("first", "second"))
    whole = len(first) == len(second) and max([-1, *first, *second]) < len(counts)
    if not whole or (first == second).any():
        raise ProblemError("has pairs of no cells", where=_WHERE)
    # work on them is then bounded by the pairs of places
    if (np.diff(first * len(counts) + second) <= 0).any():
        raise ProblemError("has pairs of cells twice, or out of order", where=_WHERE)
    plans = Plans.read(body, counts[first], counts[second])
    given = plain["costs"]
    if isinstance(given, dict) and "radii" in given:
        radii = _object(given, {"radii"})["radii"]
        fits = isinstance(radii, list) and len(radii) == len(members.cost)
        if not fits or not all(type(f) is float and 0 <= f < np.inf for f in radii):
            raise ProblemError("radii are not numbers >= 0 of all secrets", where=_WHERE)
        return Witness(first, second, plans, np.array(radii))
    every = np.repeat(counts, members.cost.shape[1])
    return Witness(first, second, plans, Plans.read(given, every, every))


def witness_of(members: Members, pairs: tuple[Ints, Ints], *, boxes: bool) -> Witness:
    """Plans for the ``pairs`` of cells with mass, and for the ``cost`` (n, O) radii of ``boxes`` or
    plans; ``limits`` as of ``aggregated``."""
    cost = members.cost
    first, second = pairs
    counts = members.counts
    plans = _listed(members.between(first, second), counts[first])
    if boxes:
        radii = np.zeros(len(cost))
        for group, own in zip(members.groups, box_radii(members), strict=True):
            radii[group] = own
        return Witness(first, second, plans, radii)
    inside = ((part, ratio, a, b) for part, _, ratio, a, b in members.within())
    return Witness(first, second, plans, _listed(inside, np.repeat(counts, cost.shape[1])))


def witnessed(members: Members, witness: Witness) -> Coarse:
    """The coarse problem that a witness proves: ``log_ratio`` limits no other pairs. Raises
    ProblemError where radii are too small."""
    count, cost = len(members.groups), members.cost
    ratio = np.full((count, count), _UNPROVED)
    places = _Places(witness.plans, members.counts[witness.first])
    for part, own, a, b in members.between(witness.first, witness.second):
        found = proved_by(own, a, b, places.arcs(part))
        pairs = witness.first[part], witness.second[part]
        ratio[pairs] = np.minimum(ratio[pairs], np.maximum(found, 0.0))
    np.fill_diagonal(ratio, 0.0)
    if isinstance(witness.costs, Plans):
        least = np.zeros((count, cost.shape[1]))
        places = _Places(witness.costs, np.repeat(members.counts, cost.shape[1]))
        for part, index, own, a, b in members.within():
            least[index] = exp_down(-proved_by(own, a, b, places.arcs(part)))
    else:
        boxes = [witness.costs[group] for group in members.groups]
        for group, f in zip(members.groups, boxes, strict=True):
            missing = members.limits(group[:, None], group[None, :]) > down(f[:, None] + f)
            np.fill_diagonal(missing, False)
            if missing.any():
                raise ProblemError("radii are too small", where=_WHERE)
        least = boxed_costs(members, boxes)
    return assembled(members, least, ratio)


def rounded(arcs: Arcs, sources: int) -> Arcs:
    """The plans with shares in whole numbers: all are rounded down, as little mass may be much
    where it arrives, and what is left goes the way that most goes."""
    count, share = len(arcs.share), arcs.share.ravel()
    source = (np.arange(count)[:, None] * sources + arcs.source).ravel()
    sent = np.bincount(source, share, count * sources)
    with np.errstate(all="ignore"):
        whole = np.floor(np.where(share > 0, share / sent[source] * _GRAIN, 0.0))
    left = _GRAIN - np.bincount(source, whole, count * sources)
    order = np.lexsort((-share, source))
    largest = order[np.unique(source[order], return_index=True)[1]]
    largest = largest[share[largest] > 0]
    whole[largest] += left[source[largest]]
    return Arcs(arcs.source, arcs.target, np.maximum(whole, 0.0).reshape(arcs.share.shape))


def _listed(asked: Iterable[tuple[Ints, Floats, Logs, Logs]], sources: Ints) -> Plans:
    """One list of the best plans, which are numbered; so many sources each."""
    starts = begins(sources)
    place, target, share = [], [], []
    for plans, ratio, a, b in asked:
        arcs = rounded(gains(ratio, a, b).arcs, ratio.shape[1])
        used = arcs.share > 0
        place.append((starts[plans][:, None] + arcs.source)[used])
        target.append(arcs.target[used])
        share.append(arcs.share[used].astype(np.int64))
    if not place:
        nothing = np.zeros(0, dtype=np.int64)
        return Plans(nothing, nothing, nothing)
    where = np.concatenate(place)
    order = np.argsort(where, kind="stable")
    arcs_each = np.bincount(where, minlength=starts[-1])
    return Plans(arcs_each, np.concatenate(target)[order], np.concatenate(share)[order])


@dataclass(eq=False)
class _Places:
    """Plans to be taken out of their list."""

    plans: Plans
    sources: Ints

    def __post_init__(self) -> None:
        bounds = begins(self.plans.arcs)
        ends = np.cumsum(self.sources)
        self._begin, self._end = bounds[ends - self.sources], bounds[ends]
        within = np.arange(self.sources.sum()) - np.repeat(ends - self.sources, self.sources)
        columns = np.repeat(within, self.plans.arcs), self.plans.target, self.plans.share
        # the last stands for none
        self._source, self._target, self._share = (np.append(column, 0) for column in columns)

    def arcs(self, part: Ints) -> Arcs:
        """Some of the plans, padded with shares of 0."""
        begin, length = self._begin[part], (self._end - self._begin)[part]
        step = np.arange(length.max(initial=1))
        place = np.where(step < length[:, None], begin[:, None] + step, -1)
        return Arcs(self._source[place], self._target[place], self._share[place].astype(np.float64))


def _object(plain: Plain, names: set[str]) -> dict[str, Plain]:
    require_keys(plain, names, _WHERE)
    return dict(plain)


def _whole(values: Plain, count: int | None = None) -> Ints:
    fits = isinstance(values, list) and count in (None, len(values))
    if not fits or not all(type(v) is int and 0 <= v < _LARGEST for v in values):
        raise ProblemError("has no list of whole numbers of this length", where=_WHERE)
    return np.array(values, dtype=np.int64)
