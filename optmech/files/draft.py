"""A first problem file, from a table of points or of labels: to be read, and changed."""

import json
import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.labelled import COLUMNS, few, is_degrees
from optmech.designs.promise import Promise, Scope, at_most
from optmech.errors import ProblemError
from optmech.exact.checked import positive, whole
from optmech.files.extent import (
    between,
    box_around,
    by,
    core_size,
    left_out,
    length,
    noun,
    read_points,
    unit_lengths,
)
from optmech.files.lattice import Lattice
from optmech.files.reference import Reference
from optmech.files.region import (
    DEGREE,
    PLACES,
    REPORTS,
    busiest,
    lattice_over,
    rate_of,
    vertices_for,
    whole_bounds,
)
from optmech.protection.tables import opened_table
from optmech.reading.columns import read_text_columns
from optmech.reading.errors import printable

MOST_CELLS = 1024
_MOST_LABELS = 300
_WIDER = 1.05
"""Times the radius: what two digits of it round away is no wider cell."""
_FEW_PLACES, _LEAST_METRES = 10, 100.0
"""Different places in the data, and metres of a radius, below which a default hides little."""
_SHARE = 0.2
"""Of the shorter side of the box, or of what most rows reach over: the distance at which places
may differ by the factor, by default."""
_MAPPED = 1e4, 3e7
"""Of coordinates of projections in metres, such as UTM or a national grid."""
_MOST_RADII, _THIN = 60.0, 0.05

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
                    remedy=f"The columns are {few(known, COLUMNS)}",
                )


def first_problem(wanted: Wanted, beside: Path) -> Draft:
    """The text of a problem file that lies at ``beside``, and what should be known of it.

    Raises
    ------
    ProblemError
        On columns that are not there, and on data that give no domain.
    """
    factor = float(finite_array(wanted.factor, where="factor", ndim=0))
    if factor <= 1:
        raise ProblemError(
            f"{factor:g} must be above 1",
            where="factor",
            remedy="Give how many times as likely a report may be, such as 4",
        )
    if wanted.cells is not None:
        whole(wanted.cells, "cells", least=2, most=MOST_CELLS)
    file = _relative(wanted.data, beside)
    if wanted.x is None or wanted.y is None:
        return _labels(wanted, file)
    crs = wanted.crs
    named = wanted.degrees or is_degrees(wanted.x, wanted.y)
    degrees = named if crs is None else crs.degrees
    points, notes = read_points(wanted.data, wanted.pairs, degrees)
    if crs is not None:
        crs.require(wanted.data, (wanted.x, wanted.y), points)
        notes.append(
            f"coordinates are read as {crs.words}"
            + ("" if degrees else "; the reports will be in the same projection")
        )
    if wanted.more and (wanted.cells is not None or wanted.label is not None):
        raise ProblemError(
            "a row has several places, which cells and labels are not counted for",
            where="x",
            remedy="Give --x and --y of one place, or leave --cells and --label out",
        )
    made = _Places if wanted.label is not None else _Region if wanted.cells is None else _Grid
    text, more = made(wanted, _text(file), points, degrees).draft()
    notes = more + notes
    if crs is None and not degrees and (np.abs(points) <= (180, 90)).all() and (points % 1).any():
        notes.append(
            f"{wanted.x!r} and {wanted.y!r} are taken for the plane. If they are longitude and "
            "latitude in degrees, say --degrees, as distances are wrong otherwise"
        )
    if not degrees and not wanted.unit and _MAPPED[0] < np.abs(points).max() < _MAPPED[1]:
        notes.append(
            "the coordinates look like metres of a projection: with --crs EPSG:CODE they are "
            "checked, and with that or --unit m lengths are said in metres and kilometres; the "
            "reports will be in the same projection"
        )
    return text, notes


class _Places:
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
        self.radius = _rounded(self.reach()) if radius is None else positive(radius, "radius")

    def bounds(self) -> Floats:
        """(x0, y0, x1, y1) around the points."""
        return box_around(self.wanted.data, self.points, self.degrees)

    def reach(self) -> float:
        """The radius where none is given."""
        return _SHARE * float(self.size.min())

    def draft(self) -> Draft:
        """The text, and notes."""
        wanted = self.wanted
        prior = '"uniform"' if wanted.uniform else '"counts"  # the rows of every place'
        smoothing = "" if wanted.uniform else "smoothing = 1\n"
        text = f"""\
{_head(f"the places of {wanted.data.name}", self.metric)}
[secrets]
kind = "table"
file = {self.file}
x = {_text(wanted.x)}
y = {_text(wanted.y)}
label = {_text(wanted.label)}
distinct = true  # one secret for all rows with the same label
{self.scale}
[prior]
kind = {prior}
{smoothing}
{self.promise(self.metric)}"""
        return text, [self.odds(self.rate), *_of_prior(wanted), *self.guessed()]

    @property
    def scale(self) -> str:
        """What coordinates are, as a line of the file; empty for a plane without a unit."""
        if self.degrees:
            return 'coordinates = "lonlat"\n'
        return f"unit = {_text(self.unit)}\n" if self.unit else ""

    @property
    def rate(self) -> float:
        """ε, in three digits."""
        return float(f"{math.log(self.wanted.factor) / self.radius:.3g}")

    @property
    def said(self) -> str:
        """The radius with its unit: metres for a small part of a kilometre."""
        radius, unit = self.radius, self.unit
        if unit == "km" and radius < 1:
            radius, unit = 1000 * radius, "m"
        return f"{length(radius, 6)} {printable(unit)}".rstrip()

    def apart(self) -> str:
        """The radius as the file has it."""
        return f"{self.radius:g} {printable(self.unit)}".rstrip()

    def promise(self, metric: str) -> str:
        """Metric privacy between places."""
        factor, rate = self.wanted.factor, self.rate
        if not 0 < rate < math.inf:
            raise ProblemError(
                f"{self.radius:g} makes a rate of {rate:g}",
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
        promise = Promise(self.scope, "", epsilon, self.unit, slack)
        if promise.odds:
            return f"in odds: {promise.odds_words}"
        said = self.said if self.unit else f"{self.said} (in the unit of the coordinates)"
        return (
            f"from {self.what} {said} apart a report is at most {self.wanted.factor:g} times as "
            "likely"
        )

    def guessed(self) -> list[str]:
        """That a radius nobody gave hides little, or comes from hardly any data. Raises
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
                remedy=f"Give --radius, in {self.unit}" if self.unit else "Give --radius",
            )
        if places < _FEW_PLACES:
            return [
                f"the data lie at {places} different places only, from which the radius of {said} "
                f"and the extent are guessed: they hide little, and are to be checked. {ask}"
            ]
        if metres < _LEAST_METRES:
            return [f"the radius of {said}, a fifth of where most rows lie, hides little. {ask}"]
        return []


class _Region(_Places):
    """Privacy at every point."""

    scope = "every point"
    what = "points"

    def bounds(self) -> Floats:
        return whole_bounds(super().bounds())

    def reach(self) -> float:
        core = core_size(self.points) * self.lengths
        # of data at one place, or on a line, there is no core to go by
        thin = core.min() <= _THIN * self.size.min()
        return super().reach() if thin else _SHARE * float(core.min())

    def draft(self) -> Draft:
        wanted, size, unit, radius = self.wanted, self.size, self.unit, self.radius
        lattice, held, counts = self.cells()
        places = lattice.place_of(held).require_points("be reported")
        reports = busiest(places, counts, self.lengths, REPORTS)
        cell = size / (lattice.columns, lattice.rows)
        vertices = vertices_for(radius, size)
        x, y = map(_named, zip(*wanted.pairs, strict=True))
        rows = "" if wanted.uniform else f"file = {self.file}\nx = {x}\ny = {y}\n"
        listed = "".join(f"  {_listed(place)},\n" for place in reports)
        text = f"""\
{_head(f"every point around {wanted.data.name}", self.metric)}
[secrets]
# the loss is counted at the middles of cells of {by(cell, printable(unit))}\
{"" if wanted.uniform else " that hold rows"}
kind = "lattice"
bounds = {_listed(self.box)}{"  # west, south, east, north" if self.degrees else ""}
rows = {lattice.rows}
columns = {lattice.columns}
{self.scale}{rows}
[observables]
kind = "{"lonlat" if self.degrees else "points"}"
{"" if self.degrees else self.scale}points = [
{listed}]

[prior]
kind = "{"uniform" if wanted.uniform else "counts"}"

[[constraints]]
kind = "metric_privacy"
# from points {self.apart()} apart a report is at most {wanted.factor:g} times as likely
epsilon = "{rate_of(wanted.factor, radius)}"  # per {self.shown}
distance = "{self.metric}"
everywhere = {{ kind = "grid", bounds = {_listed(self.box)}, \
width = {float(f"{1.01 * size.max():.3g}")!r}, vertices = {vertices}, degree = {DEGREE} }}
"""
        notes = [
            f"private at every point of {by(size, unit)}, {between(self.box, self.degrees)}: a "
            f"mesh of about {vertices} vertices, finer where people are; "
            + ("1 place is" if len(reports) == 1 else f"{len(reports)} places are")
            + " reported",
            self.odds(math.log(wanted.factor) / radius),
            f"{len(held)} {'cell' if len(held) == 1 else 'cells'} of {by(cell, unit)} stand for "
            "the rows, where the loss is counted",
            *_of_prior(wanted, reported=True),
            *left_out(self.points, self.box, self.degrees, unit, "region", noun(wanted.pairs)),
            *self.guessed(),
        ]
        if len(reports) == 1 and not wanted.uniform:
            notes.append(
                "all rows lie in one cell, whose middle is the only report: whoever sees it knows "
                "where they are, whatever the radius. Start with --uniform, or with rows of a "
                "larger region"
            )
        across = float(np.hypot(*size)) / radius
        if across > _MOST_RADII:
            notes.append(
                f"the region is {across:.0f} times the radius across: the loss will be well above "
                "the least. Give a larger --radius, or the rows of a smaller region"
            )
        return text, notes

    def cells(self) -> tuple[Lattice, Ints, Floats]:
        """A lattice, those of its cells that are places, and what each counts for."""
        size, lengths = self.size, self.lengths
        lattice = lattice_over(self.points, self.box, lengths, self.degrees, self.radius)
        if not self.wanted.uniform:
            cells = lattice.cells_of(self.points)
            held, counts = np.unique(cells[cells >= 0], return_counts=True)
            return lattice, held, counts.astype(np.float64)
        shorter = int(np.sqrt(PLACES * size.min() / size.max()))
        columns, rows = np.maximum(np.rint(shorter * size / size.min()), 1).astype(int).tolist()
        lattice = lattice.model_copy(update={"columns": columns, "rows": rows})
        return lattice, np.arange(rows * columns), np.ones(rows * columns)


class _Grid(_Places):
    """Privacy between the centres of about square cells."""

    scope = "cells"
    what = "centres of cells"

    def draft(self) -> Draft:
        wanted, size, unit, box = self.wanted, self.size, self.unit, self.box
        assert wanted.cells is not None
        rows, columns = _shape(size, wanted.cells)
        cell = size / (columns, rows)
        widest = float(cell.max())
        wide = widest > _WIDER * self.radius
        if wide and wanted.radius is not None:
            raise self.too_wide(cell)
        over = f"bounds = {_listed(box)}  # west, south, east, north\n"
        if not self.degrees:
            over = f"cell = {_listed(cell)}\norigin = {_listed(box[:2])}\n{self.scale}"
        prior = 'kind = "uniform"\n'
        if not wanted.uniform:
            prior = f"""\
kind = "csv"
file = {self.file}
x = {_text(wanted.x)}
y = {_text(wanted.y)}
smoothing = 1  # so that no cell counts as impossible
"""
        text = f"""\
{_head(f"cells over {wanted.data.name}", "euclidean")}
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
            f"{by(size, unit)}, {between(box, self.degrees)}",
            self.odds(self.rate, float(np.hypot(*cell))),
        ]
        if wide:
            notes.append(
                f"the cells are wider than the {self.said} at which places may differ by the "
                f"factor of {wanted.factor:g}: reports are at most {at_most(self.rate * widest)} "
                "times as likely from one cell as from the next. For less, ask for more --cells "
                "or a larger --radius"
            )
        notes += _of_prior(wanted)
        notes += left_out(self.points, box, self.degrees, unit)
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
            remedy=f"{remedy}, or give --radius {_rounded(1.05 * widest):g}",
        )


def _labels(wanted: Wanted, file: str) -> Draft:
    if wanted.label is None:
        with opened_table(wanted.data, 1) as table:
            known = list(table.known)
        raise ProblemError(
            "coordinates or labels have to say where a row is",
            where="x",
            remedy=f"Name x and y, or label; the columns are {few(known, COLUMNS)}",
        )
    found = Counter(read_text_columns(wanted.data, [wanted.label])[wanted.label])
    found.pop("", None)
    if not 2 <= len(found) <= _MOST_LABELS:
        raise ProblemError(
            f"the column {wanted.label!r} has {len(found):,} different labels",
            where=wanted.data,
            remedy=f"Name one with 2 to {_MOST_LABELS}, or columns with coordinates",
        )
    counts = "".join(f"{_text(label)} = {n}\n" for label, n in found.items())
    prior = 'kind = "uniform"\n'
    if not wanted.uniform:
        prior = f"""\
# counted in {printable(file)}
kind = "counts"
smoothing = 1
[prior.counts]
{counts}"""
    factor = f"{wanted.factor:g}"
    exact = float(factor) == wanted.factor
    text = f"""\
{_head(f"{wanted.label} of {wanted.data.name}", "hamming")}
[secrets]
kind = "labels"
labels = [{", ".join(map(_text, found))}]

[prior]
{prior}
[[constraints]]
kind = "differential_privacy"
epsilon = {f'"ln {factor}"' if exact else repr(math.log(wanted.factor))}  # no report is more \
than {factor} times as likely for one label as for another
"""
    return text, _of_prior(wanted)


def _head(title: str, loss: str) -> str:
    return f'format = 1\ntitle = {_text(title)}\nloss = "{loss}"\n'


def _of_prior(wanted: Wanted, *, reported: bool = False) -> list[str]:
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


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _listed(values: Floats) -> str:
    return f"[{', '.join(map(repr, values.tolist()))}]"


def _named(names: tuple[str, ...]) -> str:
    listed = ", ".join(map(_text, names))
    return listed if len(names) == 1 else f"[{listed}]"


def _text(value: str | None) -> str:
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


def _relative(data: Path, beside: Path) -> str:
    """The data file as a problem file at ``beside`` names it."""
    try:
        return Path(os.path.relpath(data.resolve(), beside.resolve().parent)).as_posix()
    except ValueError:
        # on Windows there is no way from one drive to another
        return data.resolve().as_posix()
