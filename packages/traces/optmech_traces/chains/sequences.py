"""From position fixes (GPS, check-ins) to sequences of cells at regular times, their transition
counts, and the chains estimated from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.numerals import float_of_text
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain

_DAY = 86_400.0


@record
class CellSequence(Shown):
    """Where one user was, step by step.

    Examples
    --------
    >>> fixes = om.traces.Fixes(["ann"] * 3, [0, 60, 120], [[0.5, 0.5], [0.6, 0.5], [1.5, 0.5]])
    >>> (sequence,) = fixes.sequences(om.Grid(1, 2), interval=60, max_gap=300)
    >>> sequence.user, sequence.cells.tolist()
    ('ann', [0, 0, 1])
    >>> sequence.day_classes([6, 18]).tolist()  # 0 is day, 1 night: just after midnight
    [1, 1, 1]
    """

    user: str
    times: Floats
    """Seconds, shape (k,); since 1970 in UTC where the data have dates."""
    cells: Ints
    """Indices into the domain, -1 outside of it, shape (k,)."""

    def day_classes(self, starts: Sequence[float], offset: float = 0.0) -> Ints:
        """Index of the part of the day for every time, shape (k,).

        ``starts`` are the hours at which the parts begin, increasing, from 0 to below 24; before
        the first of them the last one still lasts. ``offset`` is local time minus UTC, in hours.
        """
        hours = finite_array(starts, where="starts", ndim=1, observations=True)
        if not len(hours) or (np.diff(hours) <= 0).any() or hours[0] < 0 or hours[-1] >= 24:
            raise ProblemError(
                f"{list(starts)} are not increasing hours from 0 to below 24", where="starts"
            )
        clock = ((self.times + 3600 * float(offset)) % _DAY) / 3600
        return (np.searchsorted(hours, clock, side="right") - 1) % len(hours)


@record
class Fixes(Shown):
    """Positions of users at times, in the order of the data.

    Parameters
    ----------
    users:
        A name per fix.
    times:
        Seconds, shape (m,). Fixes are sorted by them; a repeated time counts once, its last fix.
    xy:
        Coordinates in the order that the domain expects, shape (m, 2): (x, y) or (longitude,
        latitude).

    Raises
    ------
    ProblemError
        On lengths that differ, or times that are not finite.

    Examples
    --------
    >>> fixes = om.traces.Fixes(["ann"] * 3, [0, 60, 120], [[0.5, 0.5], [0.6, 0.5], [1.5, 0.5]])
    >>> cells = om.Grid(1, 2)
    >>> sequences = [s.cells for s in fixes.sequences(cells, interval=60, max_gap=300)]
    >>> om.traces.MarkovPrior.from_sequences(cells, sequences, smoothing=1).transition(0).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> [len(times) for user, times, xy in fixes.runs(max_gap=300)]
    [3]
    >>> [s.cells.tolist() for s in fixes.visits(cells, max_gap=300)]
    [[0, 0, 1]]
    >>> with open("fixes.csv", "w") as file:
    ...     for row in ("who,when,lon,lat", "ann,0,0.5,0.5", "ann,60,0.6,0.5"):
    ...         print(row, file=file)
    ...
    >>> read = om.traces.Fixes.from_csv("fixes.csv", user="who", time="when", x="lon", y="lat")
    >>> read.times.tolist()
    [0.0, 60.0]
    """

    users: tuple[str, ...]
    times: Floats
    xy: Floats
    missing: int = 0
    """Rows of the file that had no usable position, and are left out."""

    def __init__(
        self,
        users: Sequence[str],
        times: Sequence[float] | Floats,
        xy: Floats,
        *,
        missing: int = 0,
    ) -> None:
        seconds = finite_array(times, where="times", ndim=1, observations=True)
        places = finite_array(xy, where="xy", ndim=2, observations=True)
        if not len(users) == len(seconds) == len(places) or places.shape[1] != 2:
            raise ProblemError(
                f"{len(users)} users, {len(seconds)} times and positions of shape {places.shape}",
                where="fixes",
                remedy="Give one user, one time and one (x, y) per fix",
            )
        vars(self).update(users=tuple(users), times=seconds, xy=places, missing=missing)

    @classmethod
    @checked_arguments
    def from_csv(cls, path: str | Path, *, user: str, time: str, x: str, y: str) -> Fixes:
        """Read a CSV file with a header; ``user``, ``time``, ``x``, ``y`` name its columns.

        Times are numbers of seconds or ISO 8601 dates (UTC unless they name an offset). For
        geographic domains ``x`` is the longitude. Rows without a usable position are left out.
        """
        from optmech.reading.columns import read_columns, read_text_columns

        places = read_columns(path, [x, y])
        xy = np.column_stack([places[x], places[y]])
        text = read_text_columns(path, [user, time])
        usable = np.isfinite(xy).all(axis=1)
        kept = np.flatnonzero(usable).tolist()
        times = [_seconds(text[time][k], f"{path}: data row {k + 1}") for k in kept]
        users = [text[user][k] for k in kept]
        return cls(users, times, xy[usable], missing=int((~usable).sum()))

    @checked_arguments
    def sequences(
        self,
        domain: Domain,
        interval: float,
        max_gap: float,
        *,
        max_distance: float | None = None,
    ) -> list[CellSequence]:
        """Cells at regular times, every ``interval`` seconds, on multiples of the interval.

        Between two fixes at most ``max_gap`` seconds apart the position is interpolated linearly;
        a longer gap ends the sequence. ``max_distance`` as in ``Domain.locate``. Sequences of a
        single time are left out.
        """
        step = float_of(interval, "interval", positive=True)
        gap = float_of(max_gap, "max_gap", positive=True)
        out = []
        for user, times, xy in self.runs(gap):
            first, last = np.ceil(times[0] / step), np.floor(times[-1] / step)
            grid = np.arange(first, last + 1) * step
            if len(grid) < 2:
                continue
            places = np.column_stack([np.interp(grid, times, xy[:, k]) for k in (0, 1)])
            out.append(CellSequence(user, grid, domain.locate(places, max_distance)))
        return out

    @checked_arguments
    def visits(
        self, domain: Domain, max_gap: float, max_distance: float | None = None
    ) -> list[CellSequence]:
        """One step per fix (a check-in, say), whatever the time between them; a gap of more than
        ``max_gap`` seconds ends the sequence. Single fixes are left out."""
        gap = float_of(max_gap, "max_gap", positive=True)
        return [
            CellSequence(user, times, domain.locate(xy, max_distance))
            for user, times, xy in self.runs(gap)
            if len(times) > 1
        ]

    def runs(self, max_gap: float) -> list[tuple[str, Floats, Floats]]:
        """Runs of fixes of one user, in time, without a gap."""
        names = np.array(self.users)
        out = []
        for user in dict.fromkeys(self.users):
            own = np.flatnonzero(names == user)
            own = own[np.argsort(self.times[own], kind="stable")]
            own = own[np.append(np.diff(self.times[own]) > 0, True)]
            cuts = np.flatnonzero(np.diff(self.times[own]) > max_gap) + 1
            out += [(user, self.times[part], self.xy[part]) for part in np.split(own, cuts)]
        return out


def _seconds(text: str, where: str) -> float:
    try:
        return float_of_text(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ProblemError(
            f"{text!r} is not a time",
            where=where,
            remedy="Write seconds, or a date such as 2008-10-23T02:53:04",
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def transition_counts(
    sequences: Sequence[ArrayLike], cells: int, classes: Sequence[ArrayLike] | None
) -> tuple[Floats, Floats]:
    """Visits to each cell, shape (n,), and steps from x to y by class of the departure, shape
    (classes, n, n). An entry of -1 is no visit, and steps to and from it do not count. Raises
    ProblemError on entries that are not -1 or the index of a cell, and classes of another shape."""
    if isinstance(sequences, str) or not hasattr(sequences, "__len__"):
        raise ProblemError("is not a list of sequences", where="sequences")
    if classes is not None and len(classes) != len(sequences):
        raise ProblemError(f"{len(classes)} lists for {len(sequences)} sequences", where="classes")
    visits = np.zeros(cells)
    moves: list[Ints] = []
    for k, sequence in enumerate(sequences):
        path = whole_indices(sequence, -1, cells, f"sequences[{k}]")
        kind = np.zeros(len(path)) if classes is None else classes[k]
        kind = whole_indices(kind, 0, None, f"classes[{k}]")
        if kind.shape != path.shape:
            raise ProblemError(
                f"{len(kind)} classes for a sequence of {len(path)}", where=f"classes[{k}]"
            )
        known = path >= 0
        visits += np.bincount(path[known], minlength=cells)
        both = known[:-1] & known[1:]
        moves.append(np.column_stack([kind[:-1], path[:-1], path[1:]])[both])
    every = np.concatenate(moves) if moves else np.empty((0, 3), dtype=np.int64)
    size = 1 + int(every[:, 0].max(initial=0))
    steps = np.zeros((size, cells, cells))
    np.add.at(steps, tuple(every.T), 1.0)
    return visits, steps


def whole_indices(values: ArrayLike, least: int, beyond: int | None, where: str) -> Ints:
    """A list of whole numbers from ``least``, and below ``beyond`` where that is given; raises
    ProblemError on anything else."""
    array = finite_array(values, where=where, ndim=1)
    top = np.inf if beyond is None else beyond
    wrong = np.flatnonzero((array != np.floor(array)) | (array < least) | (array >= top))
    if len(wrong):
        raise ProblemError(
            f"has {array[wrong[0]]:g} at {wrong[0]} where an index is needed",
            where=where,
            remedy=f"Use whole numbers from {least}"
            + ("" if beyond is None else f" to {beyond - 1}"),
        )
    return array.astype(np.int64)
