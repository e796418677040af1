"""A first problem file, from a table of points or of labels: to be read, and changed."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.labels import few_columns, is_degrees
from optmech.designs.promise import Promise, at_most
from optmech.errors import ProblemError
from optmech.exact.arguments import positive
from optmech.exact.number import from_below
from optmech.files.extent import (
    Box,
    box_around,
    by,
    counted,
    ends,
    inside_box,
    length,
    noun,
    unit_lengths,
)
from optmech.files.reference import Reference
from optmech.problem.promised import Measure, Scope
from optmech.reading.errors import printable
from optmech.spaces.domain import great_circle

MOST_CELLS = 1024
_WIDER = 1.05
"""Times the radius: what two digits of it round away is no wider cell."""
_FEW_PLACES, _LEAST_METRES = 10, 100.0
"""Different places in the data, and metres of a radius, below which a default hides little."""
SHARE = 0.2
"""Of the shorter side of the box, or of what most rows reach over: the distance at which places
may differ by the factor, by default."""

Draft = tuple[str, list[str]]
"""The text of a problem file, and what should be known of it."""


@dataclass(frozen=True)
class Wanted:
    """What a first problem file is to say.

    ``x`` and ``y`` are columns of coordinates, ``label`` one of labels; with all three the secrets
    are the labelled places, with labels alone the labels. With coordinates alone privacy is
    promised at every point of a region, or with ``cells`` between the centres of so many cells of
    a grid. ``more`` are further pairs of coordinates of a row. Places ``radius`` apart (km for
    degrees) may be told apart by a ``factor`` at most; ``degrees`` says that coordinates are
    longitude and latitude, whatever they are called.
    """

    data: Path
    x: str | None = None
    y: str | None = None
    label: str | None = None
    cells: int | None = None
    radius: float | None = None
    factor: float = 4.0
    unit: str = ""
    uniform: bool = False
    more: tuple[tuple[str, str], ...] = ()
    degrees: bool = False
    crs: Reference | None = None
    """Of the coordinates, where they are not what their names say."""
    bounds: Box | None = None
    """Of the region; rows outside of it do not count."""

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs of coordinates."""
        return [(self.x or "", self.y or ""), *self.more]

    def refuse_unknown(self, known: list[str]) -> None:
        """Raise ProblemError on a column that the data do not have."""
        if self.x is not None and self.y is not None and is_degrees(self.y, self.x):
            raise ProblemError(
                f"{self.x!r} is the latitude, which is the second coordinate",
                where="y",
                remedy=f"Give --x {self.y} --y {self.x}",
            )
        if self.x is not None and self.x == self.y:
            raise ProblemError(f"{self.x!r} is both x and y", where="y", remedy="Name two columns")
        for name in (self.x, self.y, self.label, *sum(self.more, ())):
            if name is not None and name not in known:
                raise ProblemError(
                    f"there is no column {name!r}",
                    where=self.data,
                    remedy=f"The columns are {few_columns(known)}",
                )


class Places:
    """The labelled places of a table; and what all problems with coordinates have."""

    scope: Scope = "places"
    what = "places"

    def __init__(self, wanted: Wanted, file: str, points: Floats, degrees: bool) -> None:
        self.wanted, self.file, self.points, self.degrees = wanted, file, points, degrees
        self.box = self.bounds()
        self.lengths = unit_lengths(self.box, degrees)
        self.size = (self.box[2:] - self.box[:2]) * self.lengths
        self.unit = "km" if degrees else wanted.unit
        self.metric = "haversine" if degrees else "euclidean"
        self.shown = printable(self.unit) or "unit of distance"
        radius = wanted.radius
        self.radius = rounded(self.reach()) if radius is None else positive(radius, "radius")
        if self.radius < 1e-200:
            raise ProblemError("is too small", where="radius", remedy="Give 1e-200 or more")

    def bounds(self) -> Floats:
        """(x0, y0, x1, y1) around the points, or those that are asked for."""
        if self.wanted.bounds is not None:
            return np.array(self.wanted.bounds)
        return box_around(self.wanted.data, self.points, self.degrees)

    def reach(self) -> float:
        """The radius where none is given."""
        return SHARE * float(self.size.min())

    def draft(self) -> Draft:
        """The text, and notes."""
        wanted = self.wanted
        prior = '"uniform"' if wanted.uniform else '"counts"  # the rows of every place'
        smoothing = "" if wanted.uniform else "smoothing = 1\n"
        text = f"""\
{head(f"the places of {wanted.data.name}", self.metric)}
[secrets]
kind = "table"
file = {self.file}
x = {text_of(wanted.x)}
y = {text_of(wanted.y)}
label = {text_of(wanted.label)}
distinct = true  # one secret for all rows with the same label
{self.scale}
[prior]
kind = {prior}
{smoothing}
{self.promise(self.metric)}"""
        return text, [self.odds(self.rate), *of_prior(wanted), *self.guessed()]

    @property
    def scale(self) -> str:
        """What coordinates are, as a line of the file; empty for a plane without a unit."""
        if self.degrees:
            return 'coordinates = "lonlat"\n'
        return f"unit = {text_of(self.unit)}\n" if self.unit else ""

    @property
    def rate(self) -> float:
        """ε, in three digits, rounded down: the factor is one at most."""
        return float(from_below(math.log(self.wanted.factor) / self.radius, 3))

    @property
    def said(self) -> str:
        """The radius with its unit: metres for a small part of a kilometre."""
        radius, unit = self.radius, self.unit
        if unit == "km" and radius < 1:
            radius, unit = 1000 * radius, "m"
        return f"{length(radius, 6)} {printable(unit)}".rstrip()

    @property
    def measure(self) -> Measure:
        """What ε is per."""
        return Measure(self.metric, self.unit, "great circle" if self.degrees else "straight")

    def apart(self) -> str:
        """The radius as the file has it."""
        return f"{self.radius:g} {printable(self.unit)}".rstrip()

    def promise(self, metric: str) -> str:
        """Metric privacy between places."""
        factor, rate = self.wanted.factor, self.rate
        if not 0 < rate < math.inf:
            raise ProblemError(
                f"{self.apart()} makes a rate of {rate:g}",
                where="radius",
                remedy="Use another unit",
            )
        return f"""\
[[constraints]]
kind = "metric_privacy"
# ln {factor:g} at {self.apart()}: reports of {self.what} that far apart differ by a factor of \
about {factor:g} at most
epsilon = {rate!r}  # per {self.shown}
distance = "{metric}"
"""

    def odds(self, epsilon: float, slack: float = 0.0) -> str:
        """What the rate means in odds, at distances that people know, ``slack`` more of it
        counting; or what is promised at the radius, in a unit that is no length."""
        promise = Promise(self.scope, "", epsilon, self.measure, slack=slack)
        if promise.odds:
            return f"in odds: {promise.odds_words}"
        said = self.said if self.unit else f"{self.said} (in the unit of the coordinates)"
        return (
            f"from {self.what} {said} apart a report is at most {self.wanted.factor:g} times as "
            "likely"
        )

    def between(self) -> str:
        """The ends of the box in words, to a thousandth of what lies between them."""
        west, south, east, north = self.box.tolist()
        x, y = ("longitude", "latitude") if self.degrees else ("x", "y")
        return f"{x} {ends(west, east)} and {y} {ends(south, north)}"

    def left_out(self, what: str) -> list[str]:
        """How many rows lie outside of the box, how far, and whether they look exchanged."""
        points, box, rows = self.points, self.box, noun(self.wanted.pairs)
        outside = points[~inside_box(points, box)]
        if not len(outside):
            return []
        nearest = np.clip(outside, box[:2], box[2:])
        with np.errstate(over="ignore"):
            away = outside - nearest
            apart = great_circle(outside, nearest) if self.degrees else np.hypot(*away.T)
        far = f"{length(float(apart.max()), 3)} {self.unit}".rstrip()
        lie = f"lie outside of the {what}, up to {far} away"
        look = "look at them. Change its bounds, or let protect take them to the nearest place"
        notes = [f"{counted(len(outside), len(points), lie, rows)}: {look}"]
        lie = "would lie inside with their coordinates exchanged: they may be the other way around"
        if exchanged := int(inside_box(outside[:, ::-1], box).sum()):
            notes.append(counted(exchanged, len(points), lie, rows))
        return notes

    why = "a fifth of the shorter side"

    def guessed(self) -> list[str]:
        """What a radius nobody gave comes from, and where it hides little. Raises
        ProblemError where these lie at one place."""
        if self.wanted.radius is not None:
            return []
        said, metres = self.said, self.radius * {"km": 1000.0, "m": 1.0}.get(self.unit, math.inf)
        places = len(np.unique(self.points, axis=0))
        ask = "Say with --radius how far apart people hide"
        if places == 1:
            raise ProblemError(
                "all rows lie at one place, and nothing else says how far apart people hide",
                where="radius",
                remedy="Give --radius, as 500m or 2km" if self.degrees else "Give --radius",
            )
        if places < _FEW_PLACES:
            return [
                f"the data lie at {places} different places only, from which the radius of {said} "
                f"and the extent are guessed: they hide little, and are to be checked. {ask}"
            ]
        if metres < _LEAST_METRES:
            return [f"the radius of {said}, a fifth of where most rows lie, hides little. {ask}"]
        return [
            f"the radius of {said} is {self.why}: so ε depends on how far these rows reach. {ask}"
        ]


class Grid(Places):
    """Privacy between the centres of about square cells."""

    scope = "cells"
    what = "centres of cells"

    @property
    def measure(self) -> Measure:
        """What ε is per: cells of degrees lie on a flat map."""
        return Measure("euclidean", self.unit, "flat" if self.degrees else "straight")

    def draft(self) -> Draft:
        wanted, size, unit, box = self.wanted, self.size, self.unit, self.box
        assert wanted.cells is not None
        rows, columns = _shape(size, wanted.cells)
        cell = size / (columns, rows)
        widest = float(cell.max())
        wide = widest > _WIDER * self.radius
        if wide and wanted.radius is not None:
            raise self.too_wide(cell)
        over = f"bounds = {listed(box)}  # west, south, east, north\n"
        if not self.degrees:
            over = f"cell = {listed(cell)}\norigin = {listed(box[:2])}\n{self.scale}"
        prior = 'kind = "uniform"\n'
        if not wanted.uniform:
            prior = f"""\
kind = "csv"
file = {self.file}
x = {text_of(wanted.x)}
y = {text_of(wanted.y)}
smoothing = 1  # so that no cell counts as impossible
"""
        text = f"""\
{head(f"cells over {wanted.data.name}", "euclidean")}
[secrets]
kind = "grid"
rows = {rows}
columns = {columns}
{over}
[prior]
{prior}
{self.promise("euclidean")}"""
        notes = [
            f"{rows} rows x {columns} columns of cells of {by(cell, unit)} (width x height) over "
            f"{by(size, unit)}, {self.between()}",
            self.odds(self.rate, float(np.hypot(*cell))),
        ]
        if wide:
            notes.append(
                f"the cells are wider than the {self.said} at which places may differ by the "
                f"factor of {wanted.factor:g}: reports are at most {at_most(self.rate * widest)} "
                "times as likely from one cell as from the next. For less, ask for more --cells "
                "or a larger --radius"
            )
        notes += of_prior(wanted)
        notes += self.left_out("grid")
        return text, notes + self.guessed()

    def too_wide(self, cell: Floats) -> ProblemError:
        """Cells that hardly any two places share within the radius that is asked for."""
        radius, size, unit, widest = self.radius, self.size, self.unit, float(cell.max())
        sizes = range(self.wanted.cells or 0, MOST_CELLS + 1)
        enough = (n for n in sizes if (size / _shape(size, n)[::-1]).max() <= radius)
        more = next(enough, None)
        remedy = "Keep the rows of a smaller region" if more is None else f"Ask for --cells {more}"
        likely = at_most(math.log(self.wanted.factor) / radius * widest)
        return ProblemError(
            f"{f'{radius:g} {unit}'.rstrip()} is less than the cells are wide: {by(cell, unit)}, "
            f"over {by(size, unit)}. Reports would be {likely} times as likely from one cell as "
            "from the next",
            where="radius",
            remedy=f"{remedy}, or give --radius {rounded(1.05 * widest):g}"
            + ("km" if self.degrees else ""),
        )


def head(title: str, loss: str) -> str:
    return f'format = 1\ntitle = {text_of(title)}\nloss = "{loss}"\n'


def of_prior(wanted: Wanted, *, reported: bool = False) -> list[str]:
    """That what is made tells of the data: the counts, and the places that are ``reported``."""
    if wanted.uniform:
        return []
    what = "the prior is counted in these data, and the design's file and page will contain it"
    if reported:
        what = (
            "the prior and the places that are reported are counted in these data: the design's "
            "file, its page and the reports tell how many rows are where, to a cell"
        )
    return [f"{what}. Where that may not be known, start with optmech init --uniform"]


def _shape(size: Floats, cells: int) -> tuple[int, int]:
    """Rows and columns of about square cells, at most so many."""
    ratio = float(size[0] / size[1])
    columns = min(max(round(math.sqrt(cells * ratio)), 1), cells)
    return max(cells // columns, 1), columns


def rounded(value: float) -> float:
    return float(f"{value:.2g}")


def listed(values: Floats) -> str:
    return f"[{', '.join(map(repr, values.tolist()))}]"


def text_of(value: str | None) -> str:
    """A string as TOML has it. Raises ProblemError on one that is no Unicode."""
    text = value or ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ProblemError(
            "is not UTF-8, and cannot stand in a problem file",
            where=text,
            remedy="Use another name",
        ) from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
