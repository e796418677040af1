"""A first problem file, from a table of points or of labels: to be read, and changed."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats, finite_array, unwrapped
from optmech.base.labelled import few, is_degrees
from optmech.errors import ProblemError
from optmech.exact.checked import positive, whole
from optmech.protection.tables import opened_table
from optmech.reading.columns import read_columns, read_text_columns
from optmech.reading.errors import printable
from optmech.spaces.domain import EARTH_RADIUS_KM

MOST_CELLS = 1024
_MOST_LABELS = 300
_INNER = (0.5, 99.5)
"""Percentiles of the coordinates that a grid reaches over: a few stray points lie outside."""
_DIGITS = 2
"""Significant digits, of the extent, that bounds are rounded to: they tell nobody's exact place."""
_MOST_DEGREES = 180.0
"""Of longitude that a flat map reaches over."""
_LARGEST, _LEAST_PART = 1e100, 1e-9
"""Of coordinates, and of their extent in them: floats compute with these."""
_SHARE = 0.2
"""Of the box's shorter side: the distance at which places may differ by the factor, by default."""


@dataclass(frozen=True)
class Wanted:
    """What a first problem file is to say.

    ``x`` and ``y`` are columns of coordinates, ``label`` one of labels; with all three the secrets
    are the labelled places, with coordinates alone the cells of a grid, with labels alone the
    labels. Places ``radius`` apart (km for degrees) may be told apart by a ``factor`` at most.
    """

    data: Path
    x: str | None = None
    y: str | None = None
    label: str | None = None
    cells: int = 64
    radius: float | None = None
    factor: float = 4.0
    unit: str = ""
    uniform: bool = False


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
    whole(wanted.cells, "cells", least=2, most=MOST_CELLS)
    file = _relative(wanted.data, beside)
    if wanted.x is None or wanted.y is None:
        return _labels(wanted, file)
    degrees = is_degrees(wanted.x, wanted.y)
    points = _points(wanted, wanted.x, wanted.y, degrees)
    text, notes = (_grid if wanted.label is None else _places)(wanted, file, points, degrees)
    if not degrees and (np.abs(points) <= (180, 90)).all() and (points % 1).any():
        notes.append(
            f"{wanted.x!r} and {wanted.y!r} are taken for the plane. If they are longitude and "
            "latitude in degrees, call them that, as distances are wrong otherwise"
        )
    return text, notes


def _points(wanted: Wanted, x: str, y: str, degrees: bool) -> Floats:
    """The rows with usable coordinates, shape (n, 2); in degrees no farther around the globe than
    they have to be."""
    columns = read_columns(wanted.data, [x, y])
    points = np.column_stack([columns[x], columns[y]])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise ProblemError(
            f"no row has numbers in {x!r} and {y!r}",
            where=str(wanted.data),
            remedy="Name the columns with the coordinates; numbers are written 5.05, with a point",
        )
    if not degrees:
        return points
    first = points[0]
    points = points[(np.abs(points) <= (360, 90)).all(axis=1)]
    if not len(points):
        raise ProblemError(
            f"{x!r} and {y!r} are called longitude and latitude, and no row has "
            f"one in degrees (the first has {first[0]:.10g}, {first[1]:.10g})",
            where=str(wanted.data),
            remedy="Call the columns of a projection x and y, or give degrees",
        )
    if np.ptp(np.percentile(points[:, 0], _INNER)) > _MOST_DEGREES:
        angles = np.radians(points[:, 0])
        middle = np.degrees(np.arctan2(np.sin(angles).mean(), np.cos(angles).mean()))
        points = unwrapped(points, np.array([middle, 0.0]))
    return points


def _grid(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = _box(wanted, points, degrees)
    size = (box[2:] - box[:2]) * _unit_lengths(box, degrees)
    rows, columns = _shape(size, wanted.cells)
    unit = "km" if degrees else wanted.unit
    cell = size / (columns, rows)
    radius = _radius(wanted, size)
    wide = cell.max() > radius
    if wide and wanted.radius is not None:
        raise _too_wide(wanted.cells, radius, size, cell, unit)
    lines = _head(f"cells over {wanted.data.name}")
    lines += ["[secrets]", 'kind = "grid"', f"rows = {rows}", f"columns = {columns}"]
    if degrees:
        lines.append(f"bounds = {_listed(box)}  # west, south, east, north")
    else:
        lines += [f"cell = {_listed(cell)}", f"origin = {_listed(box[:2])}"]
        lines += [f"unit = {_text(unit)}"] if unit else []
    lines += ["", *_prior(wanted, file), "", *_metric(wanted, radius, unit, "euclidean")]
    outside = int((~((points >= box[:2]) & (points <= box[2:])).all(axis=1)).sum())
    notes = [
        f"{rows} rows x {columns} columns of cells of {_by(cell, unit)} (width x height) over "
        f"{_by(size, unit)}"
    ]
    if wide:
        notes.append(
            f"the cells are wider than the {radius:g}{f' {unit}' if unit else ''} at which places "
            "may differ by the factor, and reports nearly tell the cell: ask for more --cells or "
            "a larger --radius"
        )
    notes += _of_prior(wanted)
    if outside:
        notes.append(
            f"{outside:,} of {len(points):,} points ({100 * outside / len(points):.2g} %) lie "
            "outside of the grid: change its bounds, or protect with --outside nearest"
        )
    return "\n".join(lines) + "\n", notes


def _too_wide(cells: int, radius: float, size: Floats, cell: Floats, unit: str) -> ProblemError:
    """Cells that hardly any two places share within the radius that is asked for."""
    asked = f"{radius:g}{f' {unit}' if unit else ''}"
    enough = (n for n in range(cells, MOST_CELLS + 1) if _widest(size, n) <= radius)
    more = next(enough, None)
    remedy = "Keep the rows of a smaller region" if more is None else f"Ask for --cells {more}"
    return ProblemError(
        f"{asked} is less than the cells are wide: {_by(cell, unit)}, over {_by(size, unit)}. "
        "Reports would nearly tell the cell",
        where="radius",
        remedy=f"{remedy}, or give --radius {_rounded(1.05 * float(cell.max())):g}",
    )


def _widest(size: Floats, cells: int) -> float:
    rows, columns = _shape(size, cells)
    return float((size / (columns, rows)).max())


def _by(lengths: Floats, unit: str) -> str:
    """Two lengths, as 3 x 4 km."""
    return " x ".join(f"{value:.4g}" for value in lengths.tolist()) + (f" {unit}" if unit else "")


def _places(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = _box(wanted, points, degrees)
    size = (box[2:] - box[:2]) * _unit_lengths(box, degrees)
    radius = _radius(wanted, size)
    unit = "km" if degrees else wanted.unit
    metric = "haversine" if degrees else "euclidean"
    lines = _head(f"the places of {wanted.data.name}", metric)
    lines += ["[secrets]", 'kind = "table"', f"file = {_text(file)}"]
    lines += [f"{key} = {_text(getattr(wanted, key) or '')}" for key in ("x", "y", "label")]
    lines += ["distinct = true  # one secret for all rows with the same label"]
    lines += ['coordinates = "lonlat"'] if degrees else []
    lines += [f"unit = {_text(unit)}"] if unit and not degrees else []
    counted = ["[prior]", 'kind = "counts"  # the rows of every place', "smoothing = 1"]
    lines += ["", *(["[prior]", 'kind = "uniform"'] if wanted.uniform else counted)]
    lines += ["", *_metric(wanted, radius, unit, metric)]
    return "\n".join(lines) + "\n", _of_prior(wanted)


def _labels(wanted: Wanted, file: str) -> tuple[str, list[str]]:
    if wanted.label is None:
        raise ProblemError(
            "coordinates or labels have to say where a row is",
            where="x",
            remedy=f"Name x and y, or label; the columns are {few(_columns(wanted))}",
        )
    found = Counter(read_text_columns(wanted.data, [wanted.label])[wanted.label])
    found.pop("", None)
    if not 2 <= len(found) <= _MOST_LABELS:
        raise ProblemError(
            f"the column {wanted.label!r} has {len(found):,} different labels",
            where=str(wanted.data),
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


def _metric(wanted: Wanted, radius: float, unit: str, metric: str) -> list[str]:
    rate = float(f"{np.log(wanted.factor) / radius:.3g}")
    if not 0 < rate < np.inf:
        raise ProblemError(
            f"{radius:g} makes a rate of {rate:g}", where="radius", remedy="Use another unit"
        )
    shown = printable(unit)
    return [
        "[[constraints]]",
        'kind = "metric_privacy"',
        f"# ln {wanted.factor:g} at {radius:g}{f' {shown}' if shown else ''}: reports of places "
        f"that far apart differ by a factor of about {wanted.factor:g} at most",
        f"epsilon = {rate!r}  # per {shown or 'unit of distance'}",
        f"distance = {_text(metric)}",
    ]


def _of_prior(wanted: Wanted) -> list[str]:
    if wanted.uniform:
        return []
    return [
        "the prior is counted in these data, and the design's file will contain it: publish that "
        'only if the counts may be known, or write prior = "uniform"'
    ]


def _box(wanted: Wanted, points: Floats, degrees: bool) -> Floats:
    """(x0, y0, x1, y1) around nearly all points, rounded outwards."""
    low, high = np.percentile(points, _INNER, axis=0)
    largest = float(np.abs(points).max())
    with np.errstate(over="ignore"):
        extent = np.where(high > low, high - low, 0.01 if degrees else 1.0)
    if not (largest < _LARGEST and extent.min() > max(1 / _LARGEST, largest * _LEAST_PART)):
        raise ProblemError(
            f"the coordinates reach up to {largest:.3g} and over {_by(extent, '')}: too far apart "
            "to compute with" if largest >= _LARGEST else
            f"the coordinates reach over {_by(extent, '')} only, at {largest:.3g}",
            where=str(wanted.data),
            remedy="Use another unit, or subtract what they have in common",
        )  # fmt: skip
    corner, end = np.empty(2), np.empty(2)
    for k, exponent in enumerate((np.floor(np.log10(extent)) + 1 - _DIGITS).tolist()):
        # whole steps, written as decimal numbers: nothing is left of the rounding of floats
        step = Decimal(10) ** int(exponent)
        corner[k] = float((Decimal(float(low[k])) / step).to_integral_value(ROUND_FLOOR) * step)
        last = (Decimal(float(high[k])) / step).to_integral_value(ROUND_FLOOR) + 1
        end[k] = float(last * step)
    if degrees:
        corner, end = np.maximum(corner, (-360, -90)), np.minimum(end, (360, 90))
        if end[0] - corner[0] > _MOST_DEGREES:
            raise ProblemError(
                f"the points reach over {end[0] - corner[0]:.3g} degrees of longitude, and a map "
                "of that is not flat",
                where=str(wanted.data),
                remedy="Keep the rows of one region, or name a column of --label alone",
            )
    return np.concatenate([corner, end])


def _unit_lengths(box: Floats, degrees: bool) -> Floats:
    """What a unit of each coordinate is: km for degrees."""
    if not degrees:
        return np.ones(2)
    degree = np.pi / 180 * EARTH_RADIUS_KM
    return np.array([degree * np.cos(np.radians((box[1] + box[3]) / 2)), degree])


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
    if wanted.x is not None and wanted.x == wanted.y:
        raise ProblemError(f"{wanted.x!r} is both x and y", where="y", remedy="Name two columns")
    for key in ("x", "y", "label"):
        name = getattr(wanted, key)
        if name is not None and name not in known:
            raise ProblemError(
                f"there is no column {name!r}",
                where=str(wanted.data),
                remedy=f"The columns are {few(known)}",
            )
