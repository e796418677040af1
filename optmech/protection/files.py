"""From a file of places to a file of reports, part by part."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from optmech.base.labelled import coordinate_names
from optmech.errors import ProblemError
from optmech.protection.columns import Asked, Chosen, Replaced
from optmech.protection.reporter import Reporter
from optmech.protection.tables import (
    DEGREES,
    PointTable,
    Table,
    kind_of,
    opened_sink,
    opened_table,
    row_words,
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
) -> tuple[list[str], list[str]]:
    """Write a report for every row of ``source`` to ``target``.

    Returns the names of the columns that were written, and of those that were left out; ``told``
    hears how far it is. Where no column is asked for, those that are called longitude and latitude
    (of a design in degrees), or x and y (of any other), say where a row is, and ``noted`` hears
    which they are. Columns stand in the order of the source, that of the reports' labels last. The
    target is there when all rows are done, or not at all; standard output is written as it goes.

    Raises
    ------
    ProblemError
        On files and columns that are not usable, and on rows that are to be refused.
    """
    kind = kind_of(target)
    with opened_table(source, size) as table:
        chosen = chosen_of(table, _guessed(table, asked, reporter.geographic, noted), source)
        names = list(dict.fromkeys(table.known))
        try:
            replaced = asked.replaced(chosen, reporter, names)
        except ProblemError as error:
            raise error.moved(str(source)) if error.where == "data" else error from error
        wanted = (*replaced.names, *asked.keep)
        written = [name for name in names if name in wanted]
        written += [] if replaced.report is None else [replaced.report]
        points = chosen.names if kind == ".geojson" and _has_degrees(reporter, replaced) else None
        labels = reporter.mechanism.observables.labels
        numbers = () if chosen.labelled else chosen.names
        others = list(
            dict.fromkeys([*asked.keep, *asked.by, *(chosen.names if not numbers else ())])
        )
        with opened_sink(target, written, points, table.types) as put:
            for part in table.parts(numbers, others):
                with _numbered(table):
                    drawn = chosen.draw(
                        reporter,
                        [part[name] for name in chosen.names],
                        [part[name] for name in asked.by],
                    )
                rows = drawn[0].tolist()
                kept = {name: [part[name][k] for k in rows] for name in asked.keep}
                put(kept | replaced.columns(labels, drawn))
                told(f"{reporter.rows:,} rows")
    left = [name for name in names if name not in written]
    return written, left


@contextmanager
def _numbered(table: Table) -> Iterator[None]:
    """Errors about a row name its line too, where a file has lines: the first is the header's."""
    try:
        yield
    except ProblemError as error:
        row = error.where.removeprefix("row ")
        raise error.moved(row_words(table, int(row))) if row.isdecimal() else error from error


def _has_degrees(reporter: Reporter, replaced: Replaced) -> bool:
    places = replaced.places
    return reporter.geographic and places is not None and places.shape[1] == 2


def _guessed(table: Table, asked: Asked, degrees: bool, noted: Callable[[str], None]) -> Asked:
    """With the columns that are called as coordinates of the design are, where nothing else was
    asked for: metres taken for degrees would all be at the nearest place."""
    if isinstance(table, PointTable) or (asked.x, asked.y, asked.label) != (None, None, None):
        return asked
    found = coordinate_names(table.known, degrees)
    if found is None:
        return asked
    x, y = found
    noted(f"taking {x!r} and {y!r} for the coordinates (--x and --y name others)")
    return replace(asked, x=x, y=y)


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
    try:
        return Chosen.of(asked.x, asked.y, asked.label, table.known)
    except ProblemError as error:
        if error.where == "data":
            raise error.moved(str(source)) from error
        raise
