"""What a protected table promises each of its persons, as an object and in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optmech.base.read_only import record
from optmech.designs.promise import MOST as NOT_HIDDEN, Promise, length_words, times
from optmech_devices.protection.spending import MOST, Spending

_LARGEST = 700


@record
class Figure:
    """What the reports of one person promise together."""

    draws: float
    """Fresh reports; a report that repeats counts once."""
    epsilon: float | None
    """Their total ε, per unit of distance; None where a draw states none."""
    odds: dict[int, float] = field(default_factory=dict)
    """How many times as likely all of them may be from places that are so many metres from the
    person's own, each of them, as from these; inf beyond what a number has."""

    @classmethod
    def of(cls, draws: float, promise: Promise | None) -> Figure:
        """Of so many independent draws, each of which keeps a promise."""
        if promise is None or promise.epsilon is None:
            return cls(draws, None)
        odds = {metres: _power(factor, draws) for metres, factor in promise.odds.items()}
        return cls(draws, draws * promise.epsilon, odds)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "draws": self.draws,
            "epsilon": self.epsilon,
            "odds": {str(metres): factor for metres, factor in self.odds.items()},
        }

    def words(self, unit: str) -> str:
        """The odds in words, then draws and ε."""
        each = [
            f"{length_words(metres)} apart at most {times(factor)} times as likely"
            for metres, factor in self.odds.items()
            if factor <= NOT_HIDDEN
        ]
        if told := [metres for metres, factor in self.odds.items() if factor > NOT_HIDDEN]:
            each.append(f"{length_words(min(told))} apart over a million times: not hidden")
        count = f"{self.draws:,.0f}" if self.draws == int(self.draws) else f"{self.draws:,}"
        number = f"{count} draw{'' if self.draws == 1 else 's'}"
        if self.epsilon is not None:
            number += f", ε = {self.epsilon:,.4g}{f' per {unit}' if unit else ''}"
        return f"{'; '.join(each)} ({number})" if each else number


def _power(factor: float, draws: float) -> float:
    log_ratio = draws * math.log(factor) if factor < math.inf else math.inf
    return math.exp(log_ratio) if log_ratio < _LARGEST else math.inf


@record
class PersonPromise:
    """Whose reports were counted, and what they promise the worst and the median person."""

    by: Any
    """The column that says whose a row is; None where every row is another's, or all are one's."""
    count: int
    worst: Figure
    median: Figure
    unit: str
    repeats: str
    """What repeats, in words."""
    worst_day: Figure | None = None
    """Of the person with most draws on a day, on that day; None where days are not counted."""

    @property
    def words(self) -> str:
        """What is promised of the worst and the median person."""
        people = f"{self.count:,} person{'' if self.count == 1 else 's'}"
        people += "" if self.by is None else f" (by {str(self.by)!r})"
        alike = self.worst.draws == self.median.draws
        said = f"promised of each of {people}" if alike else f"promised of the worst of {people}"
        said += f": {self._of(self.worst)}"
        if self.worst_day is not None:
            said += f"; on the worst day {self._of(self.worst_day)}"
        return said if alike else f"{said}; of the median one: {self._of(self.median)}"

    def _of(self, figure: Figure) -> str:
        return f"{'places ' if figure.odds else ''}{figure.words(self.unit)}"

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        day = None if self.worst_day is None else self.worst_day.plain()
        return {
            "said": self.words,
            "by": None if self.by is None else str(self.by),
            "persons": self.count,
            "worst": self.worst.plain(),
            "median": self.median.plain(),
            "worst_day": day,
            "unit": self.unit,
            "repeats": self.repeats,
        }


ONCE = "a place repeats its report, which counts once"
"""How the words on what repeats begin, where a key repeats reports."""


def persons_of(spending: Spending, promise: Promise | None) -> PersonPromise:
    """What was counted, under what a draw promises."""
    day = spending.worst_day
    repeats = ONCE if spending.sticky else "every report is fresh, and counts"
    if spending.repeated:
        repeats += f"; {spending.repeated:,} rows beyond the budget repeat the report before them"
    return PersonPromise(
        spending.column,
        spending.persons,
        Figure.of(spending.worst, promise),
        Figure.of(spending.median, promise),
        "" if promise is None else promise.unit,
        repeats,
        None if day is None else Figure.of(day, promise),
    )


@dataclass(eq=False)
class Protected:
    """A protected table, and what it promises each of its persons; what is asked of a table is
    asked of ``table``.

    Attributes
    ----------
    table:
        The same kind of object as the data, with the reports.
    person:
        What is promised of the ``worst`` and the ``median`` person: ``draws``, ``epsilon``,
        ``odds``.
    rows:
        Rows of the data.
    left_out:
        Rows without a report: dropped, or beyond the budget.
    moved:
        Rows that were taken to the nearest place.
    repeated:
        Rows beyond the budget that repeat the report before.
    columns_left_out:
        Names of columns that are not in the table.
    notes:
        What else is to be known, in sentences.

    Examples
    --------
    >>> earth = om.devices.Earth.of("1/2")
    >>> fixes = [(16.37, 48.21), (16.38, 48.2), (2.35, 48.86)]
    >>> found = om.protect(earth, fixes, rows_are_people=True)
    >>> found.person.worst.draws, found.person.worst.epsilon
    (1, 0.5)
    >>> len(found), found.left_out, found.moved, found.repeated
    (3, 0, 0, 0)
    """

    table: Any
    person: PersonPromise
    rows: int = 0
    left_out: int = 0
    moved: int = 0
    repeated: int = 0
    columns_left_out: tuple[Any, ...] = ()
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        rows = self.rows - self.left_out
        more = [
            f"{count:,} {what}"
            for count, what in (
                (self.left_out, "left out"),
                (self.moved, "moved"),
                (self.repeated, "repeated"),
            )
            if count
        ]
        counts = ", ".join([f"{rows:,} rows", *more])
        return f"Protected({counts}; {self.person.words})"

    def plain(self) -> dict[str, Any]:
        """The promise and the counts, for JSON."""
        counts = {"left_out": self.left_out, "moved": self.moved, "repeated": self.repeated}
        return {**self.person.plain(), **counts}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "table":
            raise AttributeError(name)
        return getattr(self.table, name)

    def __getitem__(self, key: Any) -> Any:
        return self.table[key]

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.table, dtype=dtype)


def refused(persons: PersonPromise, how: Sequence[str]) -> str:
    """Why more draws than the default allows are refused, in words; ``how`` says whose rows were
    counted."""
    worst = persons.worst
    who = f"the worst of {persons.count:,} persons" if persons.count > 1 else "a person"
    said = f"{'places ' if worst.odds else ''}{worst.words(persons.unit)}"
    return "; ".join([f"{who} would have {worst.draws:,.0f} draws, more than {MOST}: {said}", *how])
