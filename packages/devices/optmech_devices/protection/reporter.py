"""From places to reports: locating, what lies outside, exact draws, draws that repeat."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of, positive, whole
from optmech.exact.sampler import LEAST_KEY, Bytes, EachBytes, framed, fresh, seeded_bytes
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_index, label_text
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.sphere import FAR, is_position, turned
from optmech_devices.protection.forms import forms
from optmech_devices.protection.keyed import Keyed
from optmech_devices.protection.places import (
    Anywhere,
    At,
    Centres,
    is_geographic,
    positions_of,
)

Outside = Literal["refuse", "nearest", "drop", "few"]
Missing = Literal["refuse", "drop", "few"]
FEW = 0.05
"""Of the rows of a part: so many that are wild are nobody's mistake about columns or bounds."""
Drawn = tuple[Ints, Ints]
"""The rows that are kept, and the index of an observable for each of them."""


@record
class Counts:
    """What was done with rows."""

    rows: int
    moved: int
    dropped: int
    missing: int
    beyond: int
    noticed: tuple[str, ...]


@dataclass
class Reporter:
    """Draws a report for every row of a table, part by part, and counts what it does.

    Parameters
    ----------
    mechanism:
        That of a design, or one for the whole earth.
    outside:
        What becomes of a point outside of the domain: ``"refuse"`` raises, ``"nearest"`` takes the
        nearest point of the domain, ``"drop"`` leaves the row out, ``"few"`` takes the nearest
        where that are at most one of twenty, and refuses more.
    unusable:
        What becomes of a row without usable coordinates: ``"refuse"``, ``"drop"``, or ``"few"``,
        which drops at most one of twenty. By default they are dropped where points outside are,
        ``"few"`` with that, and refused else.
    max_distance:
        Where a domain is a set of points: a point farther from all of them (in the domain's unit,
        km for degrees) is outside. By default none is.
    key:
        Makes draws repeat: rows of one place with the same ``by`` values get the same report. At
        least 32 bytes. For a mechanism for every point, places are the points of a lattice.
    rate:
        The ε of a mechanism for every point, which its lattice is made for.
    bounds:
        West, south, east, north, in the coordinates of the data: rows outside are dropped,
        whatever the domain is.
    seed:
        Makes all draws reproducible, and unfit for release.
    """

    mechanism: Mechanism | Anywhere
    outside: Outside = "refuse"
    max_distance: float | None = None
    key: bytes | None = field(default=None, repr=False)
    seed: int | None = None
    unusable: Missing | None = None
    rate: float | None = None
    bounds: Sequence[float] | None = None
    rows: int = 0
    moved: int = 0
    dropped: int = 0
    missing: int = 0
    """Of the dropped ones, those without usable coordinates."""
    beyond: int = 0
    """Of the dropped ones, those outside of the ``bounds``."""

    def __post_init__(self) -> None:
        one_of(self.outside, get_args(Outside), "outside")
        if self.unusable is None:
            self.unusable = "refuse" if self.outside == "nearest" else self.outside
        one_of(self.unusable, get_args(Missing), "missing")
        if self.max_distance is not None:
            self.max_distance = positive(self.max_distance, "max_distance")
        if self.key is not None and (not isinstance(self.key, bytes) or len(self.key) < LEAST_KEY):
            raise ProblemError(
                f"is not a key of at least {LEAST_KEY} bytes",
                where="key",
                remedy=f"Make one with secrets.token_bytes({LEAST_KEY}), and keep it secret",
            )
        self._positions = positions_of(self.mechanism, self.max_distance, self.rate)
        if self.key is not None:
            self._positions.require_repeats()
        if self.seed is not None:
            whole(self.seed, "seed")
            if self.key is not None:
                raise ProblemError(
                    "draws with a key are reproducible without one",
                    where="seed",
                    remedy="Leave one of the two out",
                )
        self._bytes = None if self.seed is None else seeded_bytes(int(self.seed))
        self._known: dict[object, int] = {}
        self.visited = np.zeros(0, dtype=np.int64)
        self.others: list[Reporter] = []
        self.noticed: list[str] = []

    @property
    def snap(self) -> float:
        """By how much the distance of two points may grow before their draws, km for degrees."""
        return 0.0 if self.key is None else self._positions.slack

    @property
    def places(self) -> Floats | Centres | None:
        """The observables in the coordinates of the data, (O, k); None where they have none."""
        return self._positions.reports

    @property
    def dimensions(self) -> int | None:
        """Coordinates that a point has; None where secrets have none."""
        return self._positions.dimensions

    @property
    def geographic(self) -> bool:
        """Whether points are longitude and latitude in degrees."""
        return is_geographic(self.mechanism)

    def at_points(
        self, points: Floats, by: Sequence[Sequence[bytes]] = (), *, judged: bool = False
    ) -> Drawn:
        """Reports for points (n, k) in the coordinates of the data; ``by`` are columns (n,) of
        ``forms``, and ``judged`` says that nothing is refused any more.

        Raises
        ------
        ProblemError
            Where the secrets have no coordinates; on points outside, unless they are dropped or
            taken to the nearest; ``where`` is the row, counted from 1 over all parts.
        """
        self.require_dimensions(points)
        usable, inside, far = self._judged(points, judged)
        kept = np.flatnonzero(self._kept(usable, inside))
        used = points[kept]
        at = self._positions.at(used, inside[kept], repeats=self.key is not None)
        drawn = self._drawn(kept, at, by)
        self.beyond += int(far.sum())
        self.missing -= int(far.sum())
        return self._counted(len(points), inside, usable, (kept, drawn))

    def require_dimensions(self, points: Floats) -> None:
        """Raise ProblemError unless points have as many coordinates as secrets."""
        if points.shape[1:] != (self.dimensions,):
            has = "no coordinates" if self.dimensions is None else f"{self.dimensions} of them"
            raise ProblemError(
                f"points of {points.shape[-1]} coordinate(s), and the secrets have {has}",
                where="points",
                remedy="Name the column with their labels"
                if self.dimensions is None
                else f"Give {self.dimensions}",
            )

    def kept_of(self, places: Sequence[Floats]) -> tuple[Bools, Bools, Bools]:
        """Which rows, of several places (n, k) each, will have reports, which are usable, and which
        lie beyond the bounds; what is to be refused is, by the first place of a row that is not as
        the others."""
        found = [self._judged(points, True) for points in places]
        far = np.any([beyond for _, _, beyond in found], axis=0)
        usable = np.all([sound for sound, _, _ in found], axis=0) | far
        inside = np.all([within for _, within, _ in found], axis=0) | far
        worst = places[0].copy()
        for kind in (1, 0):
            for points, each in zip(places[::-1], found[::-1], strict=True):
                worst[~each[kind]] = points[~each[kind]]
        self._judge(worst, usable, inside)
        return self._kept(usable, inside) & ~far, usable, far

    def repeated_by(
        self, names: Sequence[Hashable], column: Callable[[Any], Sequence[object]]
    ) -> list[list[bytes]]:
        """The ``forms`` of the columns that reports repeat by, of rows that come next; none where
        no key has them repeat."""
        if self.key is None:
            return []
        return [forms(column(name), name, self.rows) for name in names]

    def drop(self, rows: int, missing: int, beyond: int) -> None:
        """Count rows that are left out before their draws, ``missing`` of them for want of usable
        coordinates, others as they lie ``beyond`` the bounds."""
        self.rows += rows
        self.dropped += rows
        self.missing += missing
        self.beyond += beyond

    def nearest_reports(self, points: Floats) -> Ints | None:
        """The observable that lies nearest to each point, -1 for none; None where they lie
        nowhere, or everywhere on earth, where the commonest of a few reports tells little and an
        average of them much."""
        domain = self._positions.listed
        if domain is None or domain.points is None or domain.points.shape[1] != points.shape[1]:
            return None
        return np.asarray(domain.locate(points))

    def _judged(self, points: Floats, judged: bool) -> tuple[Bools, Bools, Bools]:
        """Which points are usable, and which of them inside; and those beyond the bounds, which are
        neither. What is to be refused is, unless it was ``judged`` before."""
        usable: Bools = is_position(points, self.geographic)
        inside = self._positions.inside(points)
        inside &= usable
        far = np.zeros_like(usable)
        if self.bounds is not None:
            box = np.array(self.bounds)
            places = np.array(points)
            if self.geographic:
                places[:, 0] = turned(places[:, 0], float(box[0]), float(box[2]))
            far = usable & ((places < box[:2]) | (places > box[2:])).any(axis=1)
        if not judged:
            self._judge(points, usable, inside | far)
        return usable & ~far, inside & ~far, far

    def _kept(self, usable: Bools, inside: Bools) -> Bools:
        return usable if self.outside in ("nearest", "few") else inside

    def at_labels(self, labels: Sequence[object], by: Sequence[Sequence[bytes]]) -> Drawn:
        """Reports for labels of secrets, as they are or as people write them; labels that there
        are not are outside, and cannot be taken to the nearest."""
        secrets = self._positions.labelled()
        indices = np.array([self._index(secrets, label) for label in labels], dtype=np.int64)
        inside = indices >= 0
        lost = np.flatnonzero(~inside)
        if len(lost) and self.outside != "drop":
            raise ProblemError(
                f"the label is none of the {len(secrets)} labels"
                + self._among(len(labels), [(len(lost), "without such a label")]),
                where=f"row {self.rows + int(lost[0]) + 1}",
                remedy=f"The first ones are {', '.join(map(label_text, secrets.labels[:5]))}; "
                'or drop such rows: outside = "drop"',
            )
        kept = np.flatnonzero(inside)
        drawn = self._drawn(kept, self._positions.of(indices[kept]), by)
        return self._counted(len(indices), inside, np.ones_like(inside), (kept, drawn))

    # -- places ----------------------------------------------------------------------------------

    def _index(self, secrets: Domain, label: object) -> int:
        """The index of a label however it is written, -1 where there is none."""
        try:
            found = self._known.get(label)
        except TypeError:
            return self._found(secrets, label)
        if found is None:
            found = self._found(secrets, label)
            if len(self._known) < 2**20:
                self._known[label] = found
        return found

    @staticmethod
    def _found(secrets: Domain, label: object) -> int:
        try:
            return find_index(secrets, label)
        except ProblemError:
            return -1

    def _judge(self, points: Floats, usable: Bools, inside: Bools) -> None:
        """Refuse what is to be refused. Errors go where others read them: they name rows, and say
        nothing of what these hold."""
        lost, beyond = np.flatnonzero(~usable), np.flatnonzero(usable & ~inside)
        counts = [(len(lost), "without any"), (len(beyond), "outside")]
        among = self._among(len(points), counts)
        many = FEW * len(points)
        refused = self.unusable == "refuse" or (self.unusable == "few" and len(lost) > many)
        if len(lost) and refused:
            raise ProblemError(
                "has no usable coordinates" + among,
                where=f"row {self.rows + int(lost[0]) + 1}",
                remedy=f'{_mend(points[lost[0]])}, or drop such rows: missing = "drop"',
            )
        refused = self.outside == "refuse" or (self.outside == "few" and len(beyond) > many)
        if not refused or not len(beyond):
            return
        swapped = ""
        if points.shape[1] == 2 and self._positions.inside(points[beyond][:, ::-1]).mean() > 0.5:
            swapped = "The two columns seem to be exchanged. Else: "
        raise ProblemError(
            "lies outside of the domain" + among,
            where=f"row {self.rows + int(beyond[0]) + 1}",
            remedy=f'{swapped}Say what to do with such rows: outside = "nearest" or "drop"',
        )

    def _among(self, rows: int, counts: Sequence[tuple[int, str]]) -> str:
        """How many of the rows so far were found to be like it: of those of this part, as the parts
        before were taken as they are."""
        if sum(count for count, _ in counts) < 2:
            return ""
        found = ", ".join(f"{count:,} {what}" for count, what in counts if count)
        return f" (of rows {self.rows + 1:,} to {self.rows + rows:,}: {found})"

    # -- draws -----------------------------------------------------------------------------------

    def _drawn(self, kept: Ints, at: At, by: Sequence[Sequence[bytes]]) -> Ints:
        fresh_ones = np.arange(self.rows, self.rows + len(kept))
        self.visited = fresh_ones if at.visited is None else at.visited
        messages = at.messages() if self.key else []
        return at.draws(self._source(kept, messages, by))

    def _source(
        self, kept: Ints, places: Sequence[bytes], by: Sequence[Sequence[bytes]]
    ) -> EachBytes:
        """The bytes of the draws: fresh ones, or for every row those of its mechanism, its ``by``
        values and its place."""
        if self.key is None:
            return fresh() if self._bytes is None else fresh(self._bytes)
        design = self.mechanism.fingerprint
        columns = [[column[k] for k in kept.tolist()] for column in by]
        rows = zip(*columns, strict=True) if columns else [()] * len(places)
        return Keyed(
            self.key,
            [framed([design, *row, place]) for row, place in zip(rows, places, strict=True)],
        )

    def _counted(self, rows: int, inside: Bools, usable: Bools, drawn: Drawn) -> Drawn:
        self.rows += rows
        self.dropped += rows - len(drawn[0])
        if self.outside in ("nearest", "few"):
            self.moved += int((usable & ~inside).sum())
        self.missing += int((~usable).sum())
        return drawn

    def draw_from(self, source: Bytes) -> None:
        """Take bytes from there, instead of those of a seed."""
        self._bytes = source

    def counts(self) -> Counts:
        """What was done with rows."""
        noticed = tuple(self.noticed)
        return Counts(self.rows, self.moved, self.dropped, self.missing, self.beyond, noticed)

    def add(self, counts: Counts) -> None:
        """Count the rows of other parts."""
        self.rows += counts.rows
        self.moved += counts.moved
        self.dropped += counts.dropped
        self.missing += counts.missing
        self.beyond += counts.beyond
        self.noticed += [line for line in counts.noticed if line not in self.noticed]

    def said(self) -> list[str]:
        """What was done with rows that could not be taken as they are, in sentences."""
        lines = []
        if self.moved:
            lines.append(
                f"{self.moved:,} of {self.rows:,} rows lay outside and were taken to the nearest "
                "place: their promise is that of this place"
            )
        if self.beyond:
            lines.append(
                f"{self.beyond:,} of {self.rows:,} rows lay outside of the bounds and are left out"
            )
        if dropped := self.dropped - self.beyond:
            part = "" if self.missing == dropped else f"{self.missing:,} of them "
            why = f", {part}without usable coordinates" if self.missing else ""
            stray = self.outside == "drop" and dropped > self.missing
            said = ": that a row is missing says that it lay outside" if stray else ""
            lines.append(f"{dropped:,} of {self.rows:,} rows were dropped{why}{said}")
        if self.seed is not None:
            lines.append("a seed makes the draws predictable: unfit for release")
        return lines + self.noticed


def _mend(point: Floats) -> str:
    """What to do about a row that says no place."""
    if not np.isfinite(point).all():
        return "Complete the row (numbers are written 5.05, with a point)"
    if (np.abs(point) > FAR).any():
        return "Give coordinates of at most 2^100"
    return "Give longitude and latitude in degrees"
