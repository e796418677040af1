"""From a file of places to a file of reports, part by part."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from optmech.base.labels import coordinate_pairs, other_words
from optmech.errors import ProblemError, moved
from optmech.reading.chosen import chosen_of, of_file
from optmech.reading.tables import (
    Part,
    PointTable,
    Table,
    kind_of,
    opened_sink,
    opened_table,
    row_words,
    separator_words,
)
from optmech_devices.protection.columns import Asked, Replaced, drawn_of
from optmech_devices.protection.persons import Persons
from optmech_devices.protection.reporter import Drawn, Reporter

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
        own_names = [name for place in places for name in place.chosen.names]
        for place in places:
            if len(place.chosen.names) == 2 and (mixed := other_words(*place.chosen.names)):
                noted(mixed)
        names = list(dict.fromkeys(table.known))
        wanted = {*asked.keep, *(name for place in places for name in place.names)}
        written = [name for name in names if name in wanted]
        left = [name for name in names if name not in wanted]
        reports = (place.report for place in places)
        written += [name for name in reports if name is not None]
        chosen, found = places[0].chosen, places[0].places
        on_map = kind == ".geojson" and reporter.geographic
        points = chosen.names if on_map and found is not None and found.shape[1] == 2 else None
        numbers, labels = ((), own_names) if chosen.labelled else (own_names, ())
        counted = [each.column for each in persons]
        others = list(dict.fromkeys([*asked.keep, *asked.by, *counted, *labels]))
        with opened_sink(target, written, points, table.types) as put:
            for part in table.parts(numbers, others):
                if not reporter.rows:
                    where = [np.asarray(part[name], dtype=np.float64) for name in numbers]
                    reporter.noticed += asked.told(part.__getitem__, where, reporter.geographic)
                with moved(partial(_numbered, table)):
                    by = reporter.repeated_by(asked.by, part.__getitem__)
                    drawn = _drawn(part, places, by)
                rows = drawn[0][0].tolist()
                columns = {name: [part[name][k] for k in rows] for name in asked.keep}
                for place, each in zip(places, drawn, strict=True):
                    columns |= place.columns(each)
                put(columns)
                for one in persons:
                    _count(one, part, places, drawn, by)
                told(f"{reporter.rows:,} rows")
    return written, left


def _places_of(
    table: Table, asked: Asked, source: str | Path, reporter: Reporter
) -> list[Replaced]:
    """One place a row, or those of ``asked.pairs``, each with a reporter that counts its own.
    Raises ProblemError where a column is of two places."""
    found: list[Replaced] = []
    for k, pair in enumerate(asked.pairs or [None], start=1):
        own, each = asked, copy(reporter) if found else reporter
        if pair is not None:
            report = None if asked.report is None else f"{asked.report}_{k}"
            own = replace(asked, x=pair[0], y=pair[1], label=None, report=report, pairs=())
        chosen = chosen_of(table, own.x, own.y, own.label, source)
        with of_file(source):
            found.append(own.replaced(chosen, each, table.known))
    reporter.others = [place.reporter for place in found[1:]]
    names = [name for place in found for name in place.chosen.names]
    shared = next((name for name in names if names.count(name) > 1), None)
    if shared is not None:
        raise ProblemError(
            f"{shared!r} is a coordinate of two places", where="pair", remedy="Name it once"
        )
    return found


def _drawn(part: Part, places: list[Replaced], by: list[list[bytes]]) -> list[Drawn]:
    """The rows that are left, the same for all places, and the reports of each place."""
    values = [[part[name] for name in place.chosen.names] for place in places]
    if len(places) == 1:
        return [drawn_of(places[0].chosen, places[0].reporter, values[0], by)]
    # a row is released with all of its places or not at all
    points = [place.chosen.points(own) for place, own in zip(places, values, strict=True)]
    kept, usable = places[0].reporter.kept_of(points)
    used = np.flatnonzero(kept)
    left = [[column[k] for k in used.tolist()] for column in by]
    out: list[Drawn] = []
    for place, own in zip(places, points, strict=True):
        place.reporter.drop(len(kept) - len(used), int((~usable).sum()))
        out.append((used, place.reporter.at_points(own[used], left, judged=True)[1]))
    return out


def _count(
    persons: Persons,
    part: Part,
    places: list[Replaced],
    drawn: Sequence[Drawn],
    by: list[list[bytes]],
) -> None:
    """Note the rows of a part for every place of theirs."""
    for place, (rows, reports) in zip(places, drawn, strict=True):
        near = None
        if not place.chosen.labelled:
            own = [np.asarray(part[name])[rows] for name in place.chosen.names]
            near = place.reporter.nearest_reports(np.column_stack(own))
        kept = rows.tolist()
        who = [part[persons.column][k] for k in kept]
        values = [tuple(column[k] for column in by) for k in kept]
        persons.count(who, values, place.reporter.visited, reports, near)


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
