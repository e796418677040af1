"""How often the reports of people who move change, and what a change tells, beside cells that
report themselves.

A report that repeats as long as the place is the same changes when the place does. Who sees that
knows that a border was crossed. Of cells that are reported as they are, that is a line on the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.labels import COLUMNS, few
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.sampler import LEAST_KEY
from optmech.protection.columns import Asked
from optmech.protection.files import chosen_of, guessed
from optmech.protection.persons import is_key, is_time
from optmech.protection.reporter import Reporter
from optmech.protection.tables import PointTable, opened_table
from optmech.reading.columns import numbers_of
from optmech.reading.errors import printable
from optmech.spaces.domain import flattened
from optmech.spaces.mechanism import Mechanism

_MOST = 2_000_000
_PAUSE = 3600.0
"""Seconds between two fixes after which it is not known what was in between."""
_MIDDLE = (math.sqrt(2) + math.log(1 + math.sqrt(2))) / 6
"""Mean distance of the points of a square of side one from its middle."""


@record
class Crossings:
    """Of one way of reporting: how often the place behind a report changes, how often the report
    does, and how far from the truth who sees that is."""

    places: float
    """Changes of the place behind the report, per hour, or per 1,000 fixes without times."""
    reports: float
    """Changes of the report."""
    off: float
    """Median distance between where somebody was at a change and the middle between the report
    before and the one after; nan where nothing changed."""
    line: float | None = None
    """Median distance from the border of cells that was seen to be crossed; None where none is
    seen."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


@record
class Compared:
    """Sticky reports of a mechanism, and cells that report themselves at the same mean error."""

    per: str
    """ "hour" or "1,000 fixes"."""
    fixes: int
    persons: int
    side: float
    """Of those cells."""
    sticky: Crossings
    cells: Crossings


def crossings(
    mechanism: Mechanism,
    rate: float | None,
    loss: float,
    source: str | Path,
    asked: Asked,
    noted: Callable[[str], None],
) -> Compared:
    """Let the persons of a table, whose rows are in the order of time, report by ``mechanism`` with
    a key, and by square cells whose mean error is ``loss``.

    Columns that are called like names of persons and like times are found; without a person all
    rows are one, without times figures are per 1,000 fixes, and ``noted`` hears that, and which
    time cannot be read. Times that are bare numbers are seconds. Raises ProblemError on a table
    that is none, and where fewer than two fixes follow each other.
    """
    reporter = Reporter(mechanism, "drop", key=bytes(LEAST_KEY), unusable="drop", rate=rate)
    with opened_table(source, _MOST) as table:
        asked = guessed(table, asked, reporter.geographic, lambda text: None)
        if asked.x is None and not isinstance(table, PointTable):
            several = f"a row has {len(asked.pairs)} places" if asked.pairs else ""
            raise ProblemError(
                several or "no columns are called like coordinates of the design",
                where=source,
                remedy=f"Name x and y; the columns are {few(table.known, COLUMNS)}",
            )
        chosen = chosen_of(table, asked, source)
        key = next((name for name in table.known if is_key(name)), None)
        time = next((name for name in table.known if is_time(name)), None)
        others = [name for name in (key, time) if name is not None]
        part = next(iter(table.parts(chosen.names, others)), None)
    if chosen.labelled or part is None:
        raise ProblemError(
            "traces are rows with coordinates", where=source, remedy="Name --x and --y"
        )
    points = chosen.points([part[name] for name in chosen.names])
    who = np.zeros(len(points), dtype=np.int64)
    if key is None:
        noted(
            "no column is called like one that says whose a row is: all are taken for one person's"
        )
    if key is not None:
        who = np.unique(np.array(list(map(str, part[key]))), return_inverse=True)[1].reshape(-1)
    seconds = None if time is None else _times(part[time])
    if isinstance(seconds, str):
        noted(
            f"{time!r} has {seconds!r}, which is no time as 2008-10-23T02:53:04, and no number of "
            "seconds: figures are per 1,000 fixes"
        )
        seconds = None
    names = [str(k) for k in who.tolist()]
    kept, reports = reporter.at_points(points, [names])
    n = np.argsort(who[kept], kind="stable")
    order = kept[n]
    follows = np.flatnonzero(np.diff(who[order]) == 0)
    total = len(follows) / 1000.0
    if seconds is not None:
        gap = seconds[order[follows + 1]] - seconds[order[follows]]
        near = (gap > 0) & (gap <= _PAUSE)
        follows, total = follows[near], float(gap[near].sum()) / 3600.0
    if not len(follows):
        raise ProblemError(
            "no two fixes of a person follow each other inside of the region",
            where=source,
            remedy="Give traces in the order of time, in seconds where times are bare numbers",
        )
    places = reporter.places
    if places is None:
        raise ProblemError("reports have no coordinates", where="design")
    flat = _flattened(reporter.geographic, points[order])
    true = (flat[follows] + flat[follows + 1]) / 2
    own = _flattened(reporter.geographic, places[reports[n]], points[order])
    visited = reporter.visited[n]
    sticky = _of(follows, visited, reports[n], own, true, total)
    side = loss / _MIDDLE
    index = np.floor(flat / side).astype(np.int64)
    number = index[:, 0] * 2**31 + index[:, 1]
    middles = np.asarray((index + 0.5) * side, dtype=np.float64)
    found = _of(follows, number, number, middles, true, total)
    moved = index[follows + 1] - index[follows]
    lines = np.maximum(index[follows + 1], index[follows]) * side
    off = np.abs(true - lines)
    # of a border that was crossed, where neighbours change places
    line = _median(np.where(np.abs(moved) == 1, off, np.inf).min(axis=1))
    cells = Crossings(found.places, found.reports, found.off, line)
    per = "1,000 fixes" if seconds is None else "hour"
    return Compared(per, len(order), len(np.unique(who[order])), side, sticky, cells)


def _of(
    follows: Ints, places: Ints, reports: Ints, where: Floats, true: Floats, total: float
) -> Crossings:
    changed = reports[follows] != reports[follows + 1]
    guess = (where[follows] + where[follows + 1])[changed] / 2
    off = _median(np.hypot(*(guess - true[changed]).T))
    crossed = int((places[follows] != places[follows + 1]).sum())
    changes = int(changed.sum()) / total
    return Crossings(crossed / total, changes, math.nan if off is None else off)


def _median(values: Floats) -> float | None:
    """Of the finite ones; None where there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


def _flattened(degrees: bool, points: Floats, around: Floats | None = None) -> Floats:
    """Points in the unit of distances: km on the plane around the middle of those ``around``."""
    if not degrees:
        return points
    return flattened(points, np.median(points if around is None else around, axis=0))


def _times(cells: Sequence[Any]) -> Floats | str:
    """Times in seconds, from numbers of seconds or texts such as 2008-10-23T02:53:04, which are UTC
    unless they say otherwise; the first text that is none."""
    texts = [str(cell).strip() for cell in cells]
    numbers = numbers_of([text.replace(",", ".") for text in texts])
    sound = np.isfinite(numbers)
    if sound.all():
        return numbers
    # a text stands out among numbers, and a number among texts
    if sound[0]:
        return printable(texts[int(np.argmin(sound))][:40])
    found = []
    for text in texts:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return printable(text[:40])
        found.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return np.array(found)
