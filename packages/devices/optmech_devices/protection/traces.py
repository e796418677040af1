"""What reports of people who move tell: how often they change, and what a change says, beside cells
that report themselves; and how near an adversary comes who averages many of them.

A report that repeats as long as the place is the same changes when the place does. Who sees that
knows that a border was crossed. Of cells that are reported as they are, that is a line on the map.

Who has consecutive rows of one person, whether they carry a name or only stand together, takes all
of their reports for reports of one place, and weighs every place by Bayes' rule. Where rows are
shuffled and nothing ties them, consecutive rows are anybody's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.labels import few_columns
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.sampler import LEAST_KEY
from optmech.reading.chosen import chosen_of
from optmech.reading.tables import PointTable, opened_table
from optmech.spaces.domain import flattened
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import data_coordinates
from optmech_devices.protection.columns import Asked
from optmech_devices.protection.days import seconds_of
from optmech_devices.protection.files import guessed
from optmech_devices.protection.persons import is_key, is_time
from optmech_devices.protection.reporter import Reporter

_MOST = 2_000_000
_PAUSE = 3600.0
"""Seconds between two fixes after which it is not known what was in between."""
_MIDDLE = (math.sqrt(2) + math.log(1 + math.sqrt(2))) / 6
"""Mean distance of the points of a square of side one from its middle."""


@record
class Crossings:
    """How often the place behind a report changes under one way of reporting, how often the report
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
    points, who, seconds = traces(source, asked, reporter.geographic, noted)
    kept, reports = reporter.at_points(
        points, reporter.repeated_by(["who"], lambda _: who.tolist())
    )
    n = np.argsort(who[kept], kind="stable")
    points, who, reports = points[kept[n]], who[kept[n]], reports[n]
    before, total = _steps(who, None if seconds is None else seconds[kept[n]])
    if not len(before):
        raise ProblemError(
            "no two fixes of a person follow each other inside of the region",
            where=source,
            remedy="Give traces in the order of time, in seconds where times are bare numbers",
        )
    if reporter.places is None:
        raise ProblemError("reports have no coordinates", where="design")
    where = reporter.places[reports]
    if reporter.geographic:
        around = np.median(points, axis=0)
        points, where = flattened(points, around), flattened(where, around)
    steps = _Steps(before, _between(points, before), total)
    side = loss / _MIDDLE
    return Compared(
        "1,000 fixes" if seconds is None else "hour",
        len(who),
        len(np.unique(who)),
        side,
        steps.crossings(reporter.visited[n], reports, where),
        steps.of_cells(np.floor(points / side).astype(np.int64), side),
    )


@record
class _Steps:
    """Pairs of fixes that follow each other: the number of the first of each, the middle between
    both, and for how many hours, or 1,000 pairs, they stand."""

    before: Ints
    middles: Floats
    total: float

    def crossings(self, places: Ints, reports: Ints, where: Floats) -> Crossings:
        """What changes at these steps, by the place, the report and its coordinates of all fixes,
        and what the last tell."""
        changed, crossed = (v[self.before] != v[self.before + 1] for v in (reports, places))
        away = (_between(where, self.before) - self.middles)[changed]
        off = _median(np.hypot(*away.T))
        moves, changes = (float(found.sum()) / self.total for found in (crossed, changed))
        return Crossings(moves, changes, math.nan if off is None else off)

    def of_cells(self, index: Ints, side: float) -> Crossings:
        """The crossings of cells that report themselves, by their columns and rows."""
        number = index[:, 0] * 2**31 + index[:, 1]
        found = self.crossings(number, number, np.asarray((index + 0.5) * side, dtype=np.float64))
        one, other = index[self.before], index[self.before + 1]
        off = np.abs(self.middles - np.maximum(one, other) * side)
        # of a border that was crossed, where neighbours change places
        line = _median(np.where(np.abs(one - other) == 1, off, np.inf).min(axis=1))
        return replace(found, line=line)


def _between(values: Floats, before: Ints) -> Floats:
    return (values[before] + values[before + 1]) / 2


def _steps(who: Ints, seconds: Floats | None) -> tuple[Ints, float]:
    """The fixes that another one of the same person follows soon, and the hours, or 1,000 pairs, of
    all of them."""
    before = np.flatnonzero(np.diff(who) == 0)
    if seconds is None:
        return before, len(before) / 1000.0
    gap = seconds[before + 1] - seconds[before]
    near = (gap > 0) & (gap <= _PAUSE)
    return before[near], float(gap[near].sum()) / 3600.0


def traces(
    source: str | Path, asked: Asked, degrees: bool, noted: Callable[[str], None]
) -> tuple[Floats, Ints, Floats | None]:
    """Points of a table, the person of each by a number, and the time in seconds."""
    with opened_table(source, _MOST) as table:
        asked = guessed(table, asked, degrees, lambda text: None)
        if asked.x is None and not isinstance(table, PointTable):
            several = f"a row has {len(asked.pairs)} places" if asked.pairs else ""
            raise ProblemError(
                several or "no columns are called like coordinates of the design",
                where=source,
                remedy=f"Name x and y; the columns are {few_columns(table.known)}",
            )
        chosen = chosen_of(table, asked.x, asked.y, asked.label, source)
        key = next(filter(is_key, table.known), None)
        time = next(filter(is_time, table.known), None)
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
    else:
        who = np.unique(list(map(str, part[key])), return_inverse=True)[1].reshape(-1)
    seconds = None if time is None else seconds_of(part[time])
    if isinstance(seconds, int):
        noted(
            f"{time!r} has in row {seconds + 1} no time as 2008-10-23T02:53:04, and no number of "
            "seconds: figures are per 1,000 fixes"
        )
        seconds = None
    return points, who, seconds


def _median(values: Floats) -> float | None:
    """The median of the finite values; None where there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


WINDOWS = (1, 10, 100)
"""Rows that are taken for one place."""
_MOST = 1_000
"""Windows that are tried, spread over the table."""
WAYS = {"name": "rows of one name", "order": "rows that stand together", "shuffled": "any rows"}


@record
class Averaged:
    """The errors of one adversary: the mean distance between the place that is guessed for some
    rows and where each of these truly was."""

    way: str
    """What ties the rows: "name", "order", or "shuffled" for nothing."""
    rows: int
    mean: float
    median: float
    windows: int

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return dict(vars(self))


def averaging(
    mechanism: Mechanism,
    prior: Floats,
    source: str | Path,
    asked: Asked,
    noted: Callable[[str], None],
) -> list[Averaged]:
    """Let every row of a table report afresh, and attack ``WINDOWS`` of consecutive rows: those of
    each person, those that stand together, and shuffled ones.

    The adversary knows the mechanism and the ``prior``, a weight for every secret. Points outside
    are dropped. Draws and orders are the same each time. Raises ProblemError on a table that is
    none, and on a mechanism whose secrets have no coordinates.
    """
    reporter = Reporter(mechanism, "drop", unusable="drop", seed=0)
    places = data_coordinates(mechanism.secrets)
    if places is None or places.shape[1] != 2:
        raise ProblemError("secrets have no coordinates in the plane", where="design")
    points, who, _ = traces(source, asked, reporter.geographic, noted)
    kept, reports = reporter.at_points(points)
    points, who = points[kept], who[kept]
    if reporter.geographic:
        around = np.median(points, axis=0)
        points, places = flattened(points, around), flattened(places, around)
    with np.errstate(divide="ignore"):
        attack = _Attack(
            places,
            np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)),
            np.log(prior),
            np.log(np.asarray(mechanism.matrix)),
        )
    rng = np.random.default_rng([0, 2])
    orders = {
        "name": np.argsort(who, kind="stable"),
        "order": np.arange(len(who)),
        "shuffled": rng.permutation(len(who)),
    }
    found = []
    for way, order in orders.items():
        for rows in WINDOWS:
            groups = who[order] if way == "name" else np.zeros(len(who), dtype=np.int64)
            errors = [
                attack.error(reports[order[own]], points[order[own]])
                for own in _spread(list(_windows(groups, rows)))
            ]
            if errors:
                mean, median = float(np.mean(errors)), float(np.median(errors))
                found.append(Averaged(way, rows, mean, median, len(errors)))
    if not found:
        raise ProblemError("no row lies inside of the region", where=source)
    return found


@record
class _Attack:
    places: Floats
    apart: Floats
    prior: Floats
    matrix: Floats
    """Logarithms, as the prior's."""

    def error(self, reports: Ints, truth: Floats) -> float:
        """The mean distance of the best guess of one place from where the rows were."""
        logs = self.prior + self.matrix[:, reports].sum(axis=1)
        weights = np.exp(logs - logs.max())
        guess = self.places[int((self.apart @ weights).argmin())]
        return float(np.hypot(*(truth - guess).T).mean())


def _windows(groups: Ints, rows: int) -> Iterator[Ints]:
    """Rows that follow each other in one group, so many at a time."""
    begins = np.flatnonzero(np.r_[True, np.diff(groups) != 0])
    for begin, end in zip(begins, np.r_[begins[1:], len(groups)], strict=True):
        for first in range(int(begin), int(end) - rows + 1, rows):
            yield np.arange(first, first + rows)


def _spread(windows: list[Ints]) -> list[Ints]:
    if len(windows) <= _MOST:
        return windows
    return [windows[k] for k in np.linspace(0, len(windows) - 1, _MOST).astype(int)]
