"""What every person spends: a draw for each fresh report, up to a budget, and beyond it the report
before again, or none.

Decisions depend on whose rows come in which order, on days, and where reports repeat on which
places are equal: on nothing else that a report hides (docs/theory/budgets.md).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from optmech.base.arrays import Bools, Ints
from optmech.base.labels import is_missing
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of
from optmech.exact.number import Number, parse_exact

MOST = 5
"""Draws of a person where no budget is stated: of places where one report is e times as likely,
all of them together are at most e^5, 148 times (docs/guides/protecting.md)."""
Beyond = Literal["repeat", "drop"]
_BUDGET = re.compile(r"\s*(?P<most>.+?)\s*(/\s*day|per day)?\s*")


@record
class Budget:
    """The largest total ε of a person, in all or of a day; or at most ``MOST`` draws, where none is
    stated; or nothing."""

    most: float | None = None
    daily: bool = False
    limited: bool = True

    @classmethod
    def of(cls, stated: Number | None, none: bool = False) -> Budget:
        """From a number, or a text such as 5/day. Raises ProblemError on what is none, and where
        both are given."""
        if stated is None:
            return cls(limited=not none)
        if none:
            raise ProblemError(
                "there is one", where="no_budget", remedy="Give a budget, or that there is none"
            )
        text, daily = stated, False
        if isinstance(stated, str) and (found := _BUDGET.fullmatch(stated)) is not None:
            text, daily = found["most"], found[2] is not None
        return cls(float(parse_exact(text, where="budget", positive=True)), daily)

    def draws(self, epsilon: float | None, per_row: int) -> int | None:
        """How many draws it allows; None for any number. Raises ProblemError where that is not even
        one row."""
        if not self.limited:
            return None
        if self.most is None:
            return MOST
        if epsilon is None:
            raise ProblemError(
                "the mechanism states no ε that draws add up to",
                where="budget",
                remedy="Give the design itself, or leave the budget out",
            )
        count = math.floor(self.most / epsilon) + 1
        while count * epsilon > self.most:
            count -= 1
        if count < per_row:
            raise ProblemError(
                f"is less than what one row spends: ε = {per_row * epsilon:.4g}",
                where="budget",
                remedy="Give more, or design for a smaller ε",
            )
        return count

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "epsilon": self.most,
            "draws": MOST if self.limited and self.most is None else None,
            "per": "day" if self.daily else "person",
            "none": not self.limited,
        }


@dataclass
class Spending:
    """Counts the draws of every person, part by part, and says what becomes of rows beyond the
    budget."""

    column: Hashable = None
    """Whose a row is; None where every row is another person's, or all are one's."""
    rows_are_people: bool = False
    budget: Budget = field(default_factory=Budget)
    beyond: Beyond = "repeat"
    sticky: bool = False
    time: Hashable = None
    epsilon: float | None = None
    """Of a draw."""
    places: int = 1
    """Of a row."""
    most: int | None = None
    repeated: int = 0
    left_out: int = 0
    nameless: int = 0

    def __post_init__(self) -> None:
        one_of(self.beyond, get_args(Beyond), "beyond")
        self.draws: Counter[Any] = Counter()
        self.singles: Counter[int] = Counter()
        """How many persons of one row have so many draws."""
        self._days: Counter[Any] = Counter()
        self._last: dict[Any, list[tuple[int, Hashable]]] = {}
        self._seen: defaultdict[Any, set[Hashable]] = defaultdict(set)
        self._serial = self._worst_day = 0

    def begin(self, epsilon: float | None, places: int) -> None:
        """What a draw spends, and how many a row has."""
        self.epsilon, self.places = epsilon, places
        self.most = self.budget.draws(epsilon, places)

    @property
    def enforced(self) -> bool:
        """Whether rows beyond the budget are taken care of; else more than the default refuses."""
        return self.budget.most is not None

    def who(self, cells: Sequence[Any] | None, rows: int) -> list[Hashable] | None:
        """Whose the rows are; None where every one is another's. Those without a name are one's."""
        if self.rows_are_people:
            return None
        if cells is None:
            return [""] * rows
        if set(map(type, cells)) == {str}:
            # few texts are different ones
            known = {cell: _name(cell) for cell in set(cells)}
            out: list[Hashable] = [known[cell] for cell in cells]
        else:
            out = [_name(cell) for cell in cells]
        self.nameless += out.count("")
        return out

    def take(
        self,
        who: Sequence[Hashable] | Ints | None,
        days: Sequence[Hashable] | None,
        keys: Sequence[Sequence[Hashable]] | None,
        reports: Sequence[Ints],
    ) -> tuple[Bools, list[Any]]:
        """Which rows are left, and for each place of a row what tells its draw from others. Reports
        beyond the budget are overwritten. ``keys`` are equal where draws are, (places, rows)."""
        rows = len(reports[0])
        ids = self._identities(keys, rows)
        kept: Bools = np.ones(rows, dtype=bool)
        if who is None:
            if keys is None:
                self.singles[self.places] += rows
            for each in zip(*ids, strict=True) if keys is not None else ():
                self.singles[len(set(each))] += 1
            return kept, ids
        limit = self.most if self.enforced else None
        days = days if self.budget.daily else None
        if keys is None and days is None:
            return self._at_once(who, limit, ids, reports), ids
        drawn = [list(map(int, own)) for own in reports]
        for k, name in enumerate(who):
            row: set[Hashable] = {own[k] for own in ids}
            if keys is not None:
                seen = self._seen[name]
                row -= seen
            when = name if days is None else (name, days[k])
            spent = self._days if days is not None else self.draws
            if row and limit is not None and spent[when] + len(row) > limit:
                last = self._last.get(name)
                if self.beyond == "drop" or last is None:
                    kept[k] = False
                    self.left_out += 1
                    continue
                self.repeated += 1
                for slot, (report, own_id) in enumerate(last):
                    reports[slot][k], ids[slot][k] = report, own_id
                continue
            if days is not None:
                self._days[when] += len(row)
            self.draws[name] += len(row)
            if keys is not None:
                seen |= row
            self._last[name] = [(own[k], each[k]) for own, each in zip(drawn, ids, strict=True)]
        return kept, ids

    def _at_once(
        self,
        who: Sequence[Hashable] | Ints,
        limit: int | None,
        ids: list[Ints],
        reports: Sequence[Ints],
    ) -> Bools:
        """As ``take``, where every row has draws of its own: a person's first rows are within the
        budget, as many as it allows, and none of the others."""
        names, person = _numbered(who)
        rows = np.bincount(person, minlength=len(names))
        spent = np.array([self.draws[name] for name in names], dtype=np.int64)
        left = rows if limit is None else np.minimum(rows, (limit - spent) // self.places)
        self.draws.update(dict(zip(names, (left * self.places).tolist(), strict=True)))
        kept: Bools = np.ones(len(person), dtype=bool)
        if limit is None:
            return kept
        order, begins = np.argsort(person, kind="stable"), np.cumsum(rows) - rows
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order)) - np.repeat(begins, rows)
        some = np.flatnonzero(left)
        last = order[(begins + left - 1)[some]]
        found = [
            (own[last].tolist(), each[last].tolist())
            for own, each in zip(reports, ids, strict=True)
        ]
        for k, number in enumerate(some.tolist()):
            self._last[names[number]] = [(drawn[k], draw[k]) for drawn, draw in found]
        beyond = np.flatnonzero(rank >= left[person])
        if self.beyond == "drop":
            self.left_out += len(beyond)
            kept[beyond] = False
            return kept
        self.repeated += len(beyond)
        again, back = np.unique(person[beyond], return_inverse=True)
        for slot, (own, each) in enumerate(zip(reports, ids, strict=True)):
            before = np.array([self._last[names[k]][slot] for k in again.tolist()], dtype=np.int64)
            own[beyond], each[beyond] = before.reshape(-1, 2)[back].T
        return kept

    def tally(self) -> Spending:
        """The same counts without a name: persons by their draws."""
        found = replace(self)
        found.singles = self.counts
        found._worst_day = self.worst_day or 0
        return found

    def add(self, other: Spending) -> None:
        """Take over the ``tally`` of other persons."""
        self.singles += other.singles
        self._worst_day = max(self._worst_day, other._worst_day)
        self.repeated += other.repeated
        self.left_out += other.left_out
        self.nameless += other.nameless

    def _identities(self, keys: Sequence[Sequence[Hashable]] | None, rows: int) -> list[Any]:
        if keys is not None:
            return [list(own) for own in keys]
        out = [np.arange(rows) + self._serial + k * rows for k in range(self.places)]
        self._serial += self.places * rows
        return out

    @property
    def counts(self) -> Counter[int]:
        """How many persons have so many draws."""
        return self.singles + Counter(self.draws.values())

    @property
    def persons(self) -> int:
        """How many there are."""
        return self.counts.total()

    @property
    def worst(self) -> int:
        """Draws of the person with most of them."""
        return max(self.counts, default=0)

    @property
    def median(self) -> float:
        """Draws of the median person."""
        if not self.persons:
            return 0.0
        draws, times = np.array(sorted(self.counts.items())).T
        ends = np.cumsum(times)
        middle = [(ends[-1] - 1) // 2, ends[-1] // 2]
        return float(draws[np.searchsorted(ends, middle, side="right")].mean())

    @property
    def worst_day(self) -> int | None:
        """Draws of a person on a day; None where days are not counted."""
        return max([self._worst_day, *self._days.values()]) if self.budget.daily else None


def _name(cell: Any) -> str:
    return "" if is_missing(cell) else str(cell).strip()


def _numbered(who: Sequence[Hashable] | Ints) -> tuple[Sequence[Hashable], Ints]:
    """Those that there are, and the number of each."""
    if isinstance(who, np.ndarray):
        known, person = np.unique(who, return_inverse=True)
        return known.tolist(), person.astype(np.int64)
    numbers: dict[Hashable, int] = {}
    each = [numbers.setdefault(name, len(numbers)) for name in who]
    return list(numbers), np.array(each, dtype=np.int64)
