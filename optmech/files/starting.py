"""A first problem file, from a table of points or of labels: to be read, and changed."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.labels import COLUMNS, few, is_degrees
from optmech.designs.promise import at_most
from optmech.errors import ProblemError
from optmech.exact.arguments import positive, whole
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
    odds_note,
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


def first_problem(wanted: Wanted, beside: Path) -> tuple[str, list[str]]:
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
    made = _grid if wanted.cells is not None else _region
    if wanted.more and (wanted.cells is not None or wanted.label is not None):
        raise ProblemError(
            "a row has several places, which cells and labels are not counted for",
            where="x",
            remedy="Give --x and --y of one place, or leave --cells and --label out",
        )
    text, more = (made if wanted.label is None else _places)(wanted, file, points, degrees)
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


_MAPPED = 1e4, 3e7
"""Of coordinates of projections in metres, such as UTM or a national grid."""


def _region(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    """Privacy at every point."""
    box = whole_bounds(box_around(wanted.data, points, degrees))
    lengths = unit_lengths(box, degrees)
    size = (box[2:] - box[:2]) * lengths
    unit = "km" if degrees else wanted.unit
    core = core_size(points) * lengths
    # of data at one place, or on a line, there is no core to go by
    radius = _radius(wanted, core if core.min() > _THIN * size.min() else size)
    lattice = lattice_over(points, box, lengths, degrees, radius)
    lattice, held, counts = _cells(wanted, points, lattice, size)
    places = lattice.place_of(held).require_points("be reported")
    reports = busiest(places, counts, lengths, REPORTS)
    cell = size / (lattice.columns, lattice.rows)
    metric = "haversine" if degrees else "euclidean"
    lines = _head(f"every point around {wanted.data.name}", metric)
    lines += [
        "[secrets]",
        f"# the loss is counted at the middles of cells of {by(cell, printable(unit))}"
        + ("" if wanted.uniform else " that hold rows"),
        'kind = "lattice"',
        f"bounds = {_listed(box)}" + ("  # west, south, east, north" if degrees else ""),
        f"rows = {lattice.rows}",
        f"columns = {lattice.columns}",
        *(['coordinates = "lonlat"'] if degrees else _unit(unit)),
    ]
    if not wanted.uniform:
        lines.append(f"file = {_text(file)}")
        names = zip("xy", zip(*wanted.pairs, strict=True), strict=True)
        lines += [f"{key} = {_named(own)}" for key, own in names]
    lines += ["", "[observables]", f'kind = "{"lonlat" if degrees else "points"}"']
    lines += [] if degrees else _unit(unit)
    lines += ["points = [", *(f"  {_listed(place)}," for place in reports), "]", ""]
    lines += ["[prior]", f'kind = "{"uniform" if wanted.uniform else "counts"}"', ""]
    vertices = vertices_for(radius, size)
    width, shown = float(f"{1.01 * size.max():.3g}"), printable(unit)
    lines += [
        "[[constraints]]",
        'kind = "metric_privacy"',
        f"# from points {radius:g}{f' {shown}' if shown else ''} apart a report is at most "
        f"{wanted.factor:g} times as likely",
        f"epsilon = {_text(rate_of(wanted.factor, radius))}  # per {shown or 'unit of distance'}",
        f"distance = {_text(metric)}",
        f'everywhere = {{ kind = "grid", bounds = {_listed(box)}, width = {width!r}, '
        f"vertices = {vertices}, degree = {DEGREE} }}",
    ]
    epsilon = float(np.log(wanted.factor)) / radius
    notes = [
        f"private at every point of {by(size, unit)}, {between(box, degrees)}: a mesh of about "
        f"{vertices} vertices, finer where people are; "
        + ("1 place is reported" if len(reports) == 1 else f"{len(reports)} places are reported"),
        odds_note(epsilon, unit) or _at_radius(wanted, radius, unit, "points"),
        f"{len(held)} {'cell' if len(held) == 1 else 'cells'} of {by(cell, unit)} stand for the "
        "rows, where the loss is counted",
        *_of_prior(wanted, reported=True),
        *left_out(points, box, degrees, unit, "region", noun(wanted.pairs)),
        *_guessed(wanted, points, radius, unit),
    ]
    if len(reports) == 1 and not wanted.uniform:
        notes.append(
            "all rows lie in one cell, whose middle is the only report: whoever sees it knows "
            "where they are, whatever the radius. Start with --uniform, or with rows of a larger "
            "region"
        )
    across = float(np.hypot(*size)) / radius
    if across > _MOST_RADII:
        notes.append(
            f"the region is {across:.0f} times the radius across: the loss will be well above the "
            "least. Give a larger --radius, or the rows of a smaller region"
        )
    return "\n".join(lines) + "\n", notes


def _cells(
    wanted: Wanted, points: Floats, lattice: Lattice, size: Floats
) -> tuple[Lattice, Ints, Floats]:
    """The lattice, those of its cells that are places, and what each counts for."""
    if not wanted.uniform:
        cells = lattice.cells_of(points)
        held, counts = np.unique(cells[cells >= 0], return_counts=True)
        return lattice, held, counts.astype(np.float64)
    shorter = int(np.sqrt(PLACES * size.min() / size.max()))
    columns, rows = np.maximum(np.rint(shorter * size / size.min()), 1).astype(int).tolist()
    lattice = lattice.model_copy(update={"columns": columns, "rows": rows})
    return lattice, np.arange(rows * columns), np.ones(rows * columns)


def _unit(unit: str) -> list[str]:
    return [f"unit = {_text(unit)}"] if unit else []


_MOST_RADII, _THIN = 60.0, 0.05


def _named(names: Iterable[str]) -> str:
    listed = [_text(name) for name in names]
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


def _grid(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = box_around(wanted.data, points, degrees)
    size = (box[2:] - box[:2]) * unit_lengths(box, degrees)
    assert wanted.cells is not None
    rows, columns = _shape(size, wanted.cells)
    unit = "km" if degrees else wanted.unit
    cell = size / (columns, rows)
    radius = _radius(wanted, size)
    wide = cell.max() > _WIDER * radius
    if wide and wanted.radius is not None:
        raise _too_wide(wanted, radius, size, cell, unit)
    lines = _head(f"cells over {wanted.data.name}")
    lines += ["[secrets]", 'kind = "grid"', f"rows = {rows}", f"columns = {columns}"]
    if degrees:
        lines.append(f"bounds = {_listed(box)}  # west, south, east, north")
    else:
        lines += [f"cell = {_listed(cell)}", f"origin = {_listed(box[:2])}", *_unit(unit)]
    metric = _metric(wanted, radius, unit, "euclidean", "centres of cells")
    lines += ["", *_prior(wanted, file), "", *metric]
    rate = _rate(wanted, radius)
    notes = [
        f"{rows} rows x {columns} columns of cells of {by(cell, unit)} (width x height) over "
        f"{by(size, unit)}, {between(box, degrees)}",
        odds_note(rate, unit, "cells", float(np.hypot(*cell)))
        or _at_radius(wanted, radius, unit, "centres of cells"),
    ]
    if wide:
        notes.append(
            f"the cells are wider than the {_said(radius, unit)} at which places may differ by the "
            f"factor of {wanted.factor:g}: reports are at most "
            f"{at_most(rate * float(cell.max()))} times as likely from one cell as from the next. "
            "For less, ask for more --cells or a larger --radius"
        )
    notes += _of_prior(wanted)
    notes += left_out(points, box, degrees, unit)
    notes += _guessed(wanted, points, radius, unit)
    return "\n".join(lines) + "\n", notes


def _said(radius: float, unit: str) -> str:
    """A radius with its unit: metres for a small part of a kilometre."""
    if unit == "km" and radius < 1:
        radius, unit = 1000 * radius, "m"
    return f"{length(radius, 6)}{f' {printable(unit)}' if unit else ''}"


def _at_radius(wanted: Wanted, radius: float, unit: str, what: str) -> str:
    """What is promised at the radius, in a unit that is no length."""
    said = _said(radius, unit) if unit else f"{length(radius, 6)} (in the unit of the coordinates)"
    return f"from {what} {said} apart a report is at most {wanted.factor:g} times as likely"


def _guessed(wanted: Wanted, points: Floats, radius: float, unit: str) -> list[str]:
    """That a radius nobody gave hides little, or comes from hardly any data. Raises ProblemError
    where these lie at one place."""
    if wanted.radius is not None:
        return []
    said, metres = _said(radius, unit), radius * {"km": 1000.0, "m": 1.0}.get(unit, math.inf)
    places, ask = len(np.unique(points, axis=0)), "Say with --radius how far apart people hide"
    if places == 1:
        raise ProblemError(
            "all rows lie at one place, and nothing else says how far apart people hide",
            where="radius",
            remedy=f"Give --radius{f', in {unit}' if unit else ''}",
        )
    if places < _FEW_PLACES:
        return [
            f"the data lie at {places} different places only, from which the radius of {said} and "
            f"the extent are guessed: they hide little, and are to be checked. {ask}"
        ]
    if metres < _LEAST_METRES:
        return [f"the radius of {said}, a fifth of where most rows lie, hides little. {ask}"]
    return []


def _too_wide(wanted: Wanted, radius: float, size: Floats, cell: Floats, unit: str) -> ProblemError:
    """Cells that hardly any two places share within the radius that is asked for."""
    asked = f"{radius:g}{f' {unit}' if unit else ''}"
    assert wanted.cells is not None
    enough = (n for n in range(wanted.cells, MOST_CELLS + 1) if _widest(size, n) <= radius)
    more = next(enough, None)
    remedy = "Keep the rows of a smaller region" if more is None else f"Ask for --cells {more}"
    return ProblemError(
        f"{asked} is less than the cells are wide: {by(cell, unit)}, over {by(size, unit)}. "
        "Reports would be "
        f"{at_most(math.log(wanted.factor) / radius * float(cell.max()))} times as likely from one "
        "cell as from the next",
        where="radius",
        remedy=f"{remedy}, or give --radius {_rounded(1.05 * float(cell.max())):g}",
    )


def _widest(size: Floats, cells: int) -> float:
    rows, columns = _shape(size, cells)
    return float((size / (columns, rows)).max())


def _places(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = box_around(wanted.data, points, degrees)
    size = (box[2:] - box[:2]) * unit_lengths(box, degrees)
    radius = _radius(wanted, size)
    unit = "km" if degrees else wanted.unit
    metric = "haversine" if degrees else "euclidean"
    lines = _head(f"the places of {wanted.data.name}", metric)
    lines += ["[secrets]", 'kind = "table"', f"file = {_text(file)}"]
    lines += [f"{key} = {_text(getattr(wanted, key) or '')}" for key in ("x", "y", "label")]
    lines += ["distinct = true  # one secret for all rows with the same label"]
    lines += ['coordinates = "lonlat"'] if degrees else _unit(unit)
    counted = ["[prior]", 'kind = "counts"  # the rows of every place', "smoothing = 1"]
    lines += ["", *(["[prior]", 'kind = "uniform"'] if wanted.uniform else counted)]
    lines += ["", *_metric(wanted, radius, unit, metric)]
    odds = odds_note(_rate(wanted, radius), unit, "places")
    odds = odds or _at_radius(wanted, radius, unit, "places")
    guessed = _guessed(wanted, points, radius, unit)
    return "\n".join(lines) + "\n", [odds, *_of_prior(wanted), *guessed]


def _labels(wanted: Wanted, file: str) -> tuple[str, list[str]]:
    if wanted.label is None:
        raise ProblemError(
            "coordinates or labels have to say where a row is",
            where="x",
            remedy=f"Name x and y, or label; the columns are {few(_columns(wanted), COLUMNS)}",
        )
    found = Counter(read_text_columns(wanted.data, [wanted.label])[wanted.label])
    found.pop("", None)
    if not 2 <= len(found) <= _MOST_LABELS:
        raise ProblemError(
            f"the column {wanted.label!r} has {len(found):,} different labels",
            where=wanted.data,
            remedy=f"Name one with 2 to {_MOST_LABELS}, or columns with coordinates",
        )
    lines = _head(f"{wanted.label} of {wanted.data.name}", "hamming")
    lines += ["[secrets]", 'kind = "labels"', f"labels = [{', '.join(map(_text, found))}]", ""]
    if wanted.uniform:
        lines += ["[prior]", 'kind = "uniform"']
    else:
        lines += ["[prior]", f"# counted in {printable(file)}", 'kind = "counts"', "smoothing = 1"]
        lines += ["[prior.counts]", *(f"{_text(label)} = {n}" for label, n in found.items())]
    lines += [
        "",
        "[[constraints]]",
        'kind = "differential_privacy"',
        f"epsilon = {_factor(wanted.factor)}  # no report is more than {wanted.factor:g} times as "
        "likely for one label as for another",
    ]
    return "\n".join(lines) + "\n", _of_prior(wanted)


def _columns(wanted: Wanted) -> list[str]:
    with opened_table(wanted.data, 1) as table:
        return list(table.known)


def _head(title: str, loss: str = "euclidean") -> list[str]:
    return ["format = 1", f"title = {_text(title)}", f"loss = {_text(loss)}", ""]


def _prior(wanted: Wanted, file: str) -> list[str]:
    if wanted.uniform:
        return ["[prior]", 'kind = "uniform"']
    return [
        "[prior]",
        'kind = "csv"',
        f"file = {_text(file)}",
        f"x = {_text(wanted.x or '')}",
        f"y = {_text(wanted.y or '')}",
        "smoothing = 1  # so that no cell counts as impossible",
    ]


def _rate(wanted: Wanted, radius: float) -> float:
    return float(f"{np.log(wanted.factor) / radius:.3g}")


def _metric(wanted: Wanted, radius: float, unit: str, metric: str, of: str = "places") -> list[str]:
    rate = _rate(wanted, radius)
    if not 0 < rate < np.inf:
        raise ProblemError(
            f"{radius:g} makes a rate of {rate:g}", where="radius", remedy="Use another unit"
        )
    shown = printable(unit)
    return [
        "[[constraints]]",
        'kind = "metric_privacy"',
        f"# ln {wanted.factor:g} at {radius:g}{f' {shown}' if shown else ''}: reports of {of} "
        f"that far apart differ by a factor of about {wanted.factor:g} at most",
        f"epsilon = {rate!r}  # per {shown or 'unit of distance'}",
        f"distance = {_text(metric)}",
    ]


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
    columns = min(max(round(float(np.sqrt(cells * ratio))), 1), cells)
    return max(cells // columns, 1), columns


def _radius(wanted: Wanted, size: Floats) -> float:
    if wanted.radius is None:
        return _rounded(_SHARE * float(size.min()))
    return positive(wanted.radius, "radius")


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _factor(factor: float) -> str:
    return f'"ln {factor:g}"' if float(f"{factor:g}") == factor else repr(float(np.log(factor)))


def _listed(values: Floats) -> str:
    return f"[{', '.join(repr(value) for value in values.tolist())}]"


def _text(value: str) -> str:
    """A string as TOML has it. Raises ProblemError on one that is no Unicode."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ProblemError(
            "is not UTF-8, and cannot stand in a problem file",
            where=value,
            remedy="Use another name",
        ) from error
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _relative(data: Path, beside: Path) -> str:
    """The data file as a problem file at ``beside`` names it."""
    try:
        return Path(os.path.relpath(data.resolve(), beside.resolve().parent)).as_posix()
    except ValueError:
        # on Windows there is no way from one drive to another
        return data.resolve().as_posix()


def refuse_unknown(wanted: Wanted, known: list[str]) -> None:
    """Raise ProblemError on a column that the data do not have."""
    if wanted.x is not None and wanted.y is not None and is_degrees(wanted.y, wanted.x):
        raise ProblemError(
            f"{wanted.x!r} is the latitude, which is the second coordinate",
            where="y",
            remedy=f"Give --x {wanted.y} --y {wanted.x}",
        )
    if wanted.x is not None and wanted.x == wanted.y:
        raise ProblemError(f"{wanted.x!r} is both x and y", where="y", remedy="Name two columns")
    names = [("x", wanted.x), ("y", wanted.y), ("label", wanted.label)]
    names += [("x", name) for pair in wanted.more for name in pair]
    for _, name in names:
        if name is not None and name not in known:
            raise ProblemError(
                f"there is no column {name!r}",
                where=wanted.data,
                remedy=f"The columns are {few(known, COLUMNS)}",
            )
