"""From a file of places to a file of reports, part by part."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from optmech.base.labels import other_words
from optmech.base.read_only import record
from optmech.errors import moved
from optmech.reading.chosen import chosen_of, of_file
from optmech.reading.tables import (
    PointTable,
    Table,
    kind_of,
    opened_sink,
    opened_table,
    row_words,
    separator_words,
)
from optmech_devices.protection.columns import Asked
from optmech_devices.protection.flow import Flow, guessed_pairs
from optmech_devices.protection.spool import Order, Spool

PART = 50_000
"""Rows that are in memory at a time, of CSV."""


def protect_file(
    flow: Flow,
    source: str | Path,
    target: str | Path,
    *,
    order: Order | None = None,
    size: int = PART,
    told: Callable[[str], None] = lambda text: None,
    noted: Callable[[str], None] = lambda text: None,
) -> tuple[list[str], list[str]]:
    """Write a report for every row of ``source`` to ``target``, or for every place of a row.

    Returns the names of the columns that were written, and of those that were left out; ``told``
    hears how far it is. Rows come in an ``order`` by chance, or without one in their own. Where no
    column is asked for, those that are called longitude and latitude (of a design in degrees), or x
    and y (of any other), say where a row is, of as many places as there are such pairs, and
    ``noted`` hears which they are. Columns stand in the order of the source, that of the reports'
    labels last. Nothing is written before all rows are drawn and no person is beyond the budget.

    Raises
    ------
    ProblemError
        On files and columns that are not usable, and on rows that are to be refused.
    """
    kind, reporter = kind_of(target), flow.reporter
    with opened_table(source, size) as table:
        columns = columns_of(flow, table, source, kind, noted)
        with Spool(order) as spool:
            for part in table.parts(columns.numbers, columns.others):
                with moved(partial(numbered, table)):
                    rows, new = flow.take(part.__getitem__)
                    kept = flow.all_kept(part.__getitem__, rows)
                spool.put(kept | new, len(rows))
                told(f"{reporter.rows:,} rows so far")
            flow.end()
            with opened_sink(target, columns.written, columns.points, table.types) as put:
                for shuffled in spool.parts():
                    put(shuffled)
    return columns.written, columns.left


@record
class Columns:
    """Names of columns of a table."""

    numbers: list[str]
    """Those that are read as numbers."""
    others: list[str]
    written: list[str]
    left: list[str]
    """Those that are not written."""
    points: tuple[str, str] | None
    """Those that become the points of a map."""


def columns_of(
    flow: Flow, table: Table, source: str | Path, kind: str, noted: Callable[[str], None]
) -> Columns:
    """Find the columns of places and persons, for a file that ends in ``kind``."""
    if words := separator_words(table):
        noted(f"{words}; reports are written with commas between columns, and points in numbers")
    geographic = flow.reporter.geographic
    flow.asked = asked = guessed(table, flow.asked, geographic, noted)
    names = list(dict.fromkeys(table.known))
    with of_file(source):
        flow.begin(names, lambda own: chosen_of(table, own.x, own.y, own.label, source), noted)
    places = flow.places
    own_names = [name for place in places for name in place.chosen.names]
    for place in places:
        if len(place.chosen.names) == 2 and (mixed := other_words(*place.chosen.names)):
            noted(mixed)
    wanted = {*asked.keep, *(name for place in places for name in place.names)}
    written = [name for name in names if name in wanted]
    left = [name for name in names if name not in wanted]
    written += [place.report for place in places if place.report is not None]
    chosen, found = places[0].chosen, places[0].places
    on_map = kind == ".geojson" and geographic
    points = chosen.names if on_map and found is not None and found.shape[1] == 2 else None
    numbers, labels = ([], own_names) if chosen.labelled else (own_names, [])
    others = list(dict.fromkeys([*flow.others, *labels]))
    return Columns(numbers, others, written, left, points)


def numbered(table: Table, own: str) -> str:
    """The place of an error about a row with its line, where a file has lines: the first is the
    header's."""
    row = own.removeprefix("row ")
    return row_words(table, int(row)) if row.isdecimal() else own


def guessed(table: Table, asked: Asked, degrees: bool, noted: Callable[[str], None]) -> Asked:
    """With the columns that are called as coordinates of the design are, where nothing else was
    asked for."""
    if isinstance(table, PointTable):
        return asked
    return guessed_pairs(table.known, asked, degrees, noted)
