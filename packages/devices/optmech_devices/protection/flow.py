"""One run over a table, in parts: where rows are, whose they are, their reports, what is spent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.labels import coordinate_pairs, few_columns
from optmech.designs.promise import Promise
from optmech.errors import ProblemError
from optmech.reading.chosen import Chosen
from optmech.reading.columns import require_columns
from optmech_devices.protection.columns import Asked, Replaced, drawn_of
from optmech_devices.protection.days import Unit, cut, days_of
from optmech_devices.protection.persons import Persons, is_epoch, is_key, is_person, is_time
from optmech_devices.protection.reporter import Drawn, Reporter
from optmech_devices.protection.result import PersonPromise, Protected, persons_of, refused
from optmech_devices.protection.spending import MOST, Spending

Cells = Callable[[Any], Any]
"""The cells of a column of some rows, by its name."""
Told = Callable[[str], None]
_LOOKED_AT = 50_000
"""Cells of a column that is kept."""
_REMEDIES = (
    "Say whose a row is, with per=COLUMN or rows_are_people=True; limit what a person spends, with "
    "budget=N, beyond which rows repeat a report; let a place repeat its report, with key=BYTES, "
    "by=COLUMN; or say no_budget=True",
    "Say whose a row is, with --per COLUMN or --rows-are-people; limit what a person spends, with "
    "--budget N, beyond which rows repeat a report; let a place repeat its report, with "
    "--sticky-key-file FILE --sticky-by COLUMN; or say --no-budget",
)
"""What to do beyond the default, in Python and on the command line."""
_TIMES = 'times="hour"', "--times hour"


@dataclass
class Rows:
    """Rows of a part that have reports, before what persons spend."""

    at: Ints
    """Which ones."""
    reports: list[Ints]
    """Of every place of a row."""
    who: list[Hashable] | None
    """Whose they are; None where every one is another person's."""
    days: list[int] | None
    keys: Sequence[Sequence[Hashable]] | None
    """Equal where draws are, for every place of a row; None where all are fresh."""


@dataclass
class Flow:
    """What is done to every part of a table.

    Parameters
    ----------
    reporter:
        What draws, and counts rows.
    spending:
        What counts the draws of persons.
    promise:
        Of one report; None where nothing is stated.
    persons:
        Counted beside that: the values of kept columns, each of which ties rows together.
    """

    reporter: Reporter
    asked: Asked
    spending: Spending = field(default_factory=Spending)
    promise: Promise | None = None
    persons: Sequence[Persons] = ()
    places: list[Replaced] = field(default_factory=list)
    command: bool = False
    """Whether errors name options of the command, and not arguments of Python."""
    times: Unit | None = None
    """To what kept times are cut."""
    unsaid: str = ""
    """Why it is not known whose a row is."""
    drawn: list[Ints] = field(default_factory=list)
    """The reports of the last part, for every place of a row."""

    def begin(
        self, known: Sequence[Any], chosen_of: Callable[[Asked], Chosen], noted: Told
    ) -> None:
        """Find the columns among those that are ``known``. Raises ProblemError where one that is
        asked for is not, and where a column is of two places."""
        asked = self.asked
        for k, pair in enumerate(asked.pairs or [None], start=1):
            own, each = asked, copy(self.reporter) if self.places else self.reporter
            if pair is not None:
                report = None if asked.report is None else f"{asked.report}_{k}"
                own = replace(asked, x=pair[0], y=pair[1], label=None, report=report, pairs=())
            self.places.append(own.replaced(chosen_of(own), each, known))
        self.reporter.others = [place.reporter for place in self.places[1:]]
        if self.times is not None and not self.timed:
            raise ProblemError(
                "no column that is kept is called like a time",
                where="times",
                remedy="Keep one, or leave it out",
            )
        if self.reporter.bounds is not None and self.places[0].chosen.labelled:
            raise ProblemError("labels lie nowhere", where="bounds", remedy="Leave them out")
        names = [name for place in self.places for name in place.chosen.names]
        shared = next((name for name in names if names.count(name) > 1), None)
        if shared is not None:
            raise ProblemError(
                f"{shared!r} is a coordinate of two places", where="pair", remedy="Name it once"
            )
        self.settle([name for name in known if name not in names], noted)

    def settle(self, known: Sequence[Any], noted: Told) -> None:
        """Find whose a row is, and what a budget allows, once places are known."""
        self._find_persons(known, noted)
        epsilon = None if self.promise is None else self.promise.epsilon
        self.spending.begin(epsilon, len(self.places))

    def _find_persons(self, known: Sequence[Any], noted: Told) -> None:
        spending = self.spending
        if spending.column is not None:
            if spending.rows_are_people:
                raise ProblemError(
                    "a row is a person's own, or the column says whose it is",
                    where="per",
                    remedy="Give one of the two",
                )
            require_columns("data", [spending.column], known)
        elif not spending.rows_are_people:
            plain = [name for name in known if is_person(str(name))]
            if len(plain) == 1:
                spending.column = plain[0]
                noted(f"taking {plain[0]!r} for whose a row is (--per names another column)")
            else:
                keys = plain or [name for name in known if is_key(str(name))]
                found = f" (it may be {few_columns(keys or known)})" if known else ""
                self.unsaid = f"nothing says whose a row is{found}, so all are taken for one's"
        if not spending.budget.daily:
            spending.time = None
        elif spending.time is None:
            times = [name for name in known if is_time(str(name))]
            if not times:
                raise ProblemError(
                    "no column is called like the time of a row",
                    where="time",
                    remedy=f"Name it; the columns are {few_columns(known)}",
                )
            spending.time = times[0]
            noted(f"taking {times[0]!r} for the time of a row (--time names another column)")
        else:
            require_columns("data", [spending.time], known)

    @property
    def others(self) -> list[Any]:
        """Columns that are read beside those of places."""
        spending = self.spending
        own = [name for name in (spending.column, spending.time) if name is not None]
        counted = [each.column for each in self.persons]
        return list(dict.fromkeys([*self.asked.keep, *self.asked.by, *counted, *own]))

    def take(self, cells: Cells, own: Sequence[Floats] = ()) -> tuple[Ints, dict[Any, Any]]:
        """The rows of a part that are left, and their new columns; ``own`` are the coordinates as
        the data have them, where these are others."""
        self.judge(cells, own)
        rows = self.draw(cells)
        left, ids = self.spending.take(rows.who, rows.days, rows.keys, rows.reports)
        used = np.flatnonzero(left)
        for one in self.persons:
            self._count(one, cells, rows.at[used], used, ids, rows.reports)
        self.drawn = [reports[used] for reports in rows.reports]
        return rows.at[used], self.columns(rows.at[used], self.drawn)

    def judge(self, cells: Cells, own: Sequence[Floats] = ()) -> None:
        """Refuse columns that tell places, by the first rows; see ``take``."""
        reporter, spending = self.reporter, self.spending
        if not reporter.rows and not self.places[0].chosen.labelled:
            numbers = own or [
                axis
                for place in self.places
                for axis in place.chosen.points([cells(n) for n in place.chosen.names]).T
            ]
            apart = [n for n in self.asked.keep if is_person(str(n)) or is_epoch(str(n))]
            persons = [spending.column, *apart]
            self.asked.refuse_telling(
                lambda name: cells(name)[:_LOOKED_AT], numbers, reporter.geographic, persons
            )

    @property
    def timed(self) -> list[str]:
        """Columns that are kept, and called like times."""
        return [name for name in self.asked.keep if is_time(str(name))]

    def kept(self, name: str, cells: Any) -> Any:
        """The cells of a column that is kept, with its times cut."""
        return cells if self.times is None or not is_time(name) else cut(cells, name, self.times)

    def all_kept(self, cells: Cells, rows: Ints) -> dict[str, Any]:
        """The columns that are kept, of some rows."""
        return {
            name: self.kept(name, [cells(name)[k] for k in rows.tolist()])
            for name in self.asked.keep
        }

    def columns(self, rows: Ints, reports: Sequence[Ints]) -> dict[Any, Any]:
        """The new columns of rows with ``reports`` for every place of theirs."""
        new: dict[Any, Any] = {}
        for place, own in zip(self.places, reports, strict=True):
            new |= place.columns((rows, own))
        return new

    def draw(self, cells: Cells) -> Rows:
        """Reports for the rows of a part, whatever persons spend."""
        reporter, spending = self.reporter, self.spending
        before = reporter.rows
        by = reporter.repeated_by(self.asked.by, cells)
        drawn = self._drawn(cells, by)
        at = drawn[0][0]
        kept = at.tolist()
        values = [tuple(column[k] for column in by) for k in kept] if by else None
        keys = None
        if spending.sticky:
            visited = [place.reporter.visited.tolist() for place in self.places]
            keys = [
                places if values is None else list(zip(places, values, strict=True))
                for places in visited
            ]
        who = None if spending.column is None else cells(spending.column)
        days = None
        if spending.time is not None:
            times = cells(spending.time)
            days = days_of([times[k] for k in kept], spending.time, [before + k for k in kept])
        names = spending.who(None if who is None else [who[k] for k in kept], len(kept))
        return Rows(at, [np.array(each[1]) for each in drawn], names, days, keys)

    def _drawn(self, cells: Cells, by: list[list[bytes]]) -> list[Drawn]:
        """The rows that are usable, the same for all places, and the reports of each place."""
        places = self.places
        values = [[cells(name) for name in place.chosen.names] for place in places]
        if len(places) == 1:
            return [drawn_of(places[0].chosen, places[0].reporter, values[0], by)]
        # a row is released with all of its places or not at all
        points = [place.chosen.points(own) for place, own in zip(places, values, strict=True)]
        kept, usable, far = places[0].reporter.kept_of(points)
        used = np.flatnonzero(kept)
        left = [[column[k] for k in used.tolist()] for column in by]
        out: list[Drawn] = []
        for place, own in zip(places, points, strict=True):
            place.reporter.drop(len(kept) - len(used), int((~usable).sum()), int(far.sum()))
            out.append((used, place.reporter.at_points(own[used], left, judged=True)[1]))
        return out

    def _count(
        self,
        persons: Persons,
        cells: Cells,
        rows: Ints,
        used: Ints,
        ids: list[list[Hashable]],
        reports: Sequence[Ints],
    ) -> None:
        """Note released rows for every place of theirs."""
        column = cells(persons.column)
        who = [column[k] for k in rows.tolist()]
        for place, own_ids, own in zip(self.places, ids, reports, strict=True):
            near = None
            if not place.chosen.labelled:
                points = place.chosen.points([cells(name) for name in place.chosen.names])
                near = place.reporter.nearest_reports(points[rows])
            drawn = [own_ids[k] for k in used.tolist()]
            persons.count(who, drawn, place.reporter.visited[used], own[used], near)

    def end(self) -> PersonPromise:
        """What is promised of persons. Raises ProblemError where one has more draws than the
        default allows."""
        found, spending = persons_of(self.spending, self.kept_promise), self.spending
        worst = spending.worst_day if spending.budget.daily else spending.worst
        if spending.most is not None and not spending.enforced and (worst or 0) > spending.most:
            raise ProblemError(
                refused(found, [self.unsaid] if self.unsaid else []),
                where="budget",
                remedy=_REMEDIES[self.command],
            )
        return found

    @property
    def kept_promise(self) -> Promise | None:
        """Of one report, with what repeating on a lattice adds."""
        return self.promise and self.promise.snapped(self.reporter.snap)

    def done(self) -> list[str]:
        """What was done with rows, in sentences."""
        spending, lines = self.spending, self.reporter.said()
        if spending.nameless:
            lines.append(f"{spending.nameless:,} rows without a name count as one person's")
        if spending.repeated:
            lines.append(
                f"{spending.repeated:,} rows beyond the budget repeat the person's report before"
            )
        if spending.left_out:
            lines.append(f"{spending.left_out:,} rows beyond the budget are left out")
        return lines

    def result(self, table: Any, left: Sequence[Any]) -> Protected:
        """The table, with what is promised and what was done; ``left`` are columns left out."""
        person = self.end()
        reporter, spending = self.reporter, self.spending
        return Protected(
            table,
            person,
            reporter.rows,
            reporter.dropped + spending.left_out,
            reporter.moved + sum(each.moved for each in reporter.others),
            spending.repeated,
            tuple(left),
            tuple(self.said()),
        )

    def said(self) -> list[str]:
        """What was done with rows, and what limits a person's, in sentences."""
        spending, lines = self.spending, self.done()
        if self.unsaid:
            lines.append(self.unsaid)
        if times := ", ".join(self.timed):
            lines.append(
                f"{times}: exact times tie rows together, and to whoever was seen then: "
                f"{_TIMES[self.command]} cuts them"
                if self.times is None
                else f"{times}: cut to the {self.times}, which still says when"
            )
        if not spending.budget.limited:
            lines.append("no budget was asked for: what a person spends has no limit")
        elif spending.budget.most is None:
            lines.append(f"a person has at most {MOST} draws (--budget sets another limit)")
        return lines


def guessed_pairs(known: Sequence[Any], asked: Asked, degrees: bool, noted: Told) -> Asked:
    """With the columns that are called as coordinates of the design are, where nothing else was
    asked for: metres taken for degrees would all be at the nearest place."""
    if asked.pairs or (asked.x, asked.y, asked.label) != (None, None, None):
        return asked
    found = coordinate_pairs(known, degrees)
    if not found:
        return asked
    said = "; ".join(f"{x!r} and {y!r}" for x, y in found)
    told = f"taking {said} for the coordinates (--x and --y name others)"
    if len(found) > 1:
        noted(f"{told}: a row has {len(found)} places, and a report for each")
        return replace(asked, pairs=tuple(found))
    noted(told)
    return replace(asked, x=found[0][0], y=found[0][1])
