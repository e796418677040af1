"""The averaging attack: how near many reports of one person lead, with and without a name on them.

Who has consecutive rows of one person, whether they carry a name or only stand together, takes all
of their reports for reports of one place, and weighs every place by Bayes' rule. Where rows are
shuffled and nothing ties them, consecutive rows are anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.spaces.domain import flattened
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.observables import data_coordinates
from optmech_devices.protection.columns import Asked
from optmech_devices.protection.crossings import traces
from optmech_devices.protection.reporter import Reporter

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
    *,
    windows: Sequence[int] = WINDOWS,
    seed: int = 0,
) -> list[Averaged]:
    """Let every row of a table report afresh, and attack ``windows`` of consecutive rows: those of
    each person, those that stand together, and shuffled ones.

    The adversary knows the mechanism and the ``prior``, a weight for every secret. Points outside
    are dropped. Draws and orders are those of a ``seed``. Raises ProblemError on a table that is
    none, and on a mechanism whose secrets have no coordinates.
    """
    reporter = Reporter(mechanism, "drop", unusable="drop", seed=seed)
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
    rng = np.random.default_rng([whole(seed, "seed"), 2])
    orders = {
        "name": np.argsort(who, kind="stable"),
        "order": np.arange(len(who)),
        "shuffled": rng.permutation(len(who)),
    }
    found = []
    for way, order in orders.items():
        for rows in windows:
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
