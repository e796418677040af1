"""From a file of places to a file of reports, part by part."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from optmech.base.labels import coordinate_pairs, other_words
from optmech.errors import ProblemError, moved
from optmech.protection.columns import Asked, Chosen
from optmech.protection.persons import Persons
from optmech.protection.reporter import Drawn, Reporter
from optmech.protection.tables import (
    DEGREES,
    Part,
    PointTable,
    Table,
    kind_of,
    opened_sink,
    opened_table,
    row_words,
    separator_words,
)

PART = 50_000
"""Rows that are in memory at a time, of CSV."""


def protect_file(
    reporter: Reporter,
    source: str | Path,
    target: str | Path,
    asked: Asked,
    *,
    size: int = PART,
    told: Callable[[str], None] = lambda text: None,
    noted: Callable[[str], None] = lambda text: None,
    persons: Sequence[Persons] = (),
) -> tuple[list[str], list[str]]:
    """Write a report for every row of ``source`` to ``target``, or for every place of a row.

    Returns the names of the columns that were written, and of those that were left out; ``told``
    hears how far it is, and each of ``persons`` counts what is said of them. Where no column is
    asked for, those that are called longitude and latitude (of a design in degrees), or x and y (of
    any other), say where a row is, of as many places as there are such pairs, and ``noted`` hears
    which they are. Columns stand in the order of the source, that of the reports' labels last. The
    target is there when all rows are done, or not at all; standard output is written as it goes.

    Raises
    ------
    ProblemError
        On files and columns that are not usable, and on rows that are to be refused.
    """
    kind = kind_of(target)
    with opened_table(source, size) as table:
        if words := separator_words(table):
            noted(
                f"{words}; reports are written with commas between columns, and points in numbers"
            )
        asked = guessed(table, asked, reporter.geographic, noted)
        places = _places_of(table, asked, source, reporter)
        names = list(dict.fromkeys(table.known))
        with _of_file(source):
            replaced = [own.replaced(chosen, each, table.known) for own, chosen, each in places]
        _refuse_shared(places)
        for _, each, _ in places:
            if len(each.names) == 2 and (mixed := other_words(*each.names)):
                noted(mixed)
        taken = [name for each in replaced for name in each.names]
        wanted = (*taken, *asked.keep)
        written = [name for name in names if name in wanted]
        written += [each.report for each in replaced if each.report is not None]
        chosen = places[0][1]
        points = None
        if kind == ".geojson" and reporter.geographic and replaced[0].places is not None:
            points = chosen.names if replaced[0].places.shape[1] == 2 else None
        labels = reporter.mechanism.observables.labels
        own_names = [name for _, each, _ in places for name in each.names]
        numbers = () if chosen.labelled else tuple(own_names)
        counted = [name for each in persons for name in (each.column, *each.by)]
        others = list(
            dict.fromkeys([*asked.keep, *asked.by, *counted, *(own_names if not numbers else ())])
        )
        with opened_sink(target, written, points, table.types) as put:
            for part in table.parts(numbers, others):
                if not reporter.rows:
                    where = [np.asarray(part[name], dtype=np.float64) for name in numbers]
                    asked.refuse_told(part.__getitem__, where, reporter.geographic)
                    reporter.noticed += asked.still(part.__getitem__, where)
                with moved(partial(_numbered, table)):
                    drawn = _drawn(part, places, asked.by)
                rows = drawn[0][0].tolist()
                kept = {name: [part[name][k] for k in rows] for name in asked.keep}
                new = [r.columns(labels, each) for r, each in zip(replaced, drawn, strict=True)]
                put(kept | {name: column for each in new for name, column in each.items()})
                for one in persons:
                    _count(one, part, places, drawn)
                told(f"{reporter.rows:,} rows")
    left = [name for name in names if name not in written]
    return written, left


Places = list[tuple[Asked, Chosen, Reporter]]
"""For every place of a row what is asked for, its columns, and what draws its reports."""


def _places_of(table: Table, asked: Asked, source: str | Path, reporter: Reporter) -> Places:
    """One place a row, or those of ``asked.pairs``, each with a reporter that counts its own."""
    if not asked.pairs:
        return [(asked, chosen_of(table, asked, source), reporter)]
    found: Places = []
    for k, (x, y) in enumerate(asked.pairs):
        report = None if asked.report is None else f"{asked.report}_{k + 1}"
        own = replace(asked, x=x, y=y, label=None, report=report, pairs=())
        each = reporter if not k else copy(reporter)
        found.append((own, chosen_of(table, own, source), each))
    reporter.others = [each for _, _, each in found[1:]]
    return found


def _refuse_shared(places: Places) -> None:
    """Raise ProblemError where a column is of two places."""
    names = [name for _, chosen, _ in places for name in chosen.names]
    for name in names:
        if names.count(name) > 1:
            raise ProblemError(
                f"{name!r} is a coordinate of two places", where="pair", remedy="Name it once"
            )


def _drawn(part: Part, places: Places, by: Sequence[str]) -> list[Drawn]:
    """The rows that are left, the same for all places, and the reports of each place."""
    values = [[part[name] for name in chosen.names] for _, chosen, _ in places]
    keys = [part[name] for name in by]
    if len(places) == 1:
        _, chosen, reporter = places[0]
        return [chosen.draw(reporter, values[0], keys)]
    # a row is released with all of its places or not at all
    count = len(values[0][0])
    points = [each.points(own) for (_, each, _), own in zip(places, values, strict=True)]
    kept, usable = places[0][2].kept_of(points)
    used = np.flatnonzero(kept)
    left = [[column[k] for k in used.tolist()] for column in keys]
    out: list[Drawn] = []
    for (_, _, reporter), own in zip(places, points, strict=True):
        reporter.drop(count - len(used), int((~usable).sum()))
        out.append((used, reporter.at_points(own[used], left, judged=True)[1]))
    return out


def _count(persons: Persons, part: Part, places: Places, drawn: Sequence[Drawn]) -> None:
    """Note the rows of a part for every place of theirs."""
    for (_, chosen, reporter), (rows, reports) in zip(places, drawn, strict=True):
        near = None
        if not chosen.labelled:
            points = np.column_stack([np.asarray(part[name])[rows] for name in chosen.names])
            near = reporter.nearest_reports(points)
        kept = rows.tolist()
        who = [part[persons.column][k] for k in kept]
        by = [tuple(part[name][k] for name in persons.by) for k in kept]
        persons.count(who, by, reporter.visited, reports, near)


def _numbered(table: Table, own: str) -> str:
    """The place of an error about a row with its line, where a file has lines: the first is the
    header's."""
    row = own.removeprefix("row ")
    return row_words(table, int(row)) if row.isdecimal() else own


def guessed(table: Table, asked: Asked, degrees: bool, noted: Callable[[str], None]) -> Asked:
    """With the columns that are called as coordinates of the design are, where nothing else was
    asked for: metres taken for degrees would all be at the nearest place."""
    named = asked.pairs or (asked.x, asked.y, asked.label) != (None, None, None)
    if named or isinstance(table, PointTable):
        return asked
    found = coordinate_pairs(table.known, degrees)
    if not found:
        return asked
    said = "; ".join(f"{x!r} and {y!r}" for x, y in found)
    told = f"taking {said} for the coordinates (--x and --y name others)"
    if len(found) > 1:
        noted(f"{told}: a row has {len(found)} places, and a report for each")
        return replace(asked, pairs=tuple(found))
    noted(told)
    return replace(asked, x=found[0][0], y=found[0][1])


def chosen_of(table: Table, asked: Asked, source: str | Path) -> Chosen:
    """The columns of a table that say where a row is; errors name the file."""
    if isinstance(table, PointTable):
        for name in ("x", "y", "label"):
            if getattr(asked, name) is not None:
                raise ProblemError(
                    "the geometry of GeoJSON says where a point is",
                    where=name,
                    remedy="Leave it out, or give a table",
                )
        return Chosen(DEGREES, False)
    with _of_file(source):
        return Chosen.of(asked.x, asked.y, asked.label, table.known)


def _of_file(source: str | Path) -> AbstractContextManager[None]:
    """Errors about a table name its file."""
    return moved(lambda own: str(source) if own == "data" else own)
