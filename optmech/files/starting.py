"""A first problem file, from a table of points or of labels: to be read, and changed."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.labelled import few, is_degrees
from optmech.errors import ProblemError
from optmech.exact.checked import positive, whole
from optmech.protection.sources import opened_table
from optmech.reading.columns import read_columns, read_text_columns
from optmech.spaces.domain import EARTH_RADIUS_KM

MOST_CELLS = 1024
_MOST_LABELS = 300
_INNER = (0.5, 99.5)
"""Percentiles of the coordinates that a grid reaches over: a few stray points lie outside."""
_DIGITS = 2
"""Significant digits, of the extent, that bounds are rounded to: they tell nobody's exact place."""
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
    positive(wanted.factor - 1, "factor")
    whole(wanted.cells, "cells", least=2, most=MOST_CELLS)
    file = _relative(wanted.data, beside)
    if wanted.x is None or wanted.y is None:
        return _labels(wanted, file)
    columns = read_columns(wanted.data, [wanted.x, wanted.y])
    points = np.column_stack([columns[wanted.x], columns[wanted.y]])
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        raise ProblemError(
            f"no row has numbers in {wanted.x!r} and {wanted.y!r}",
            where=str(wanted.data),
            remedy="Name the columns with the coordinates; numbers are written 5.05, with a point",
        )
    degrees = is_degrees(wanted.x, wanted.y)
    if degrees:
        first = points[0]
        points = points[(np.abs(points) <= (360, 90)).all(axis=1)]
        if not len(points):
            raise ProblemError(
                f"{wanted.x!r} and {wanted.y!r} are called longitude and latitude, and no row has "
                f"one in degrees (the first has {first[0]:.10g}, {first[1]:.10g})",
                where=str(wanted.data),
                remedy="Call the columns of a projection x and y, or give degrees",
            )
    if wanted.label is not None:
        return _places(wanted, file, points, degrees)
    return _grid(wanted, file, points, degrees)


def _grid(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = _box(points, degrees)
    size = (box[2:] - box[:2]) * _unit_lengths(box, degrees)
    rows, columns = _shape(size, wanted.cells)
    radius = _radius(wanted, size)
    unit = "km" if degrees else wanted.unit
    lines = _head(f"{rows} x {columns} cells over {wanted.data.name}")
    lines += ["[secrets]", 'kind = "grid"', f"rows = {rows}", f"columns = {columns}"]
    if degrees:
        lines.append(f"bounds = {_listed(box)}  # west, south, east, north")
    else:
        cell = size / (columns, rows)
        lines += [f"cell = {_listed(cell)}", f"origin = {_listed(box[:2])}"]
        lines += [f"unit = {_text(unit)}"] if unit else []
    lines += ["", *_prior(wanted, file), "", *_metric(wanted, radius, unit, "euclidean")]
    outside = int((~((points >= box[:2]) & (points <= box[2:])).all(axis=1)).sum())
    notes = _of_prior(wanted)
    if outside:
        notes.append(
            f"{outside:,} of {len(points):,} points lie outside of the grid: change its bounds, or "
            "protect with --outside nearest"
        )
    return "\n".join(lines) + "\n", notes


def _places(wanted: Wanted, file: str, points: Floats, degrees: bool) -> tuple[str, list[str]]:
    box = _box(points, degrees)
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
        lines += ["[prior]", f"# counted in {file}", 'kind = "counts"', "smoothing = 1"]
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
    positive(radius, "radius")
    per = f" per {unit}" if unit else ""
    rate = float(f"{np.log(wanted.factor) / radius:.3g}")
    return [
        "[[constraints]]",
        'kind = "metric_privacy"',
        f"# ln {wanted.factor:g} at {radius:g}{f' {unit}' if unit else ''}: reports of places that "
        f"far apart differ by a factor of about {wanted.factor:g} at most",
        f"epsilon = {rate!r}  #{per or ' per unit of distance'}",
        f"distance = {_text(metric)}",
    ]


def _of_prior(wanted: Wanted) -> list[str]:
    if wanted.uniform:
        return []
    return [
        "the prior is counted in these data, and the design's file will contain it: publish that "
        'only if the counts may be known, or write prior = "uniform"'
    ]


def _box(points: Floats, degrees: bool) -> Floats:
    """(x0, y0, x1, y1) around nearly all points, rounded outwards."""
    low, high = np.percentile(points, _INNER, axis=0)
    extent = np.where(high > low, high - low, 0.01 if degrees else 1.0)
    step = 10.0 ** np.floor(np.log10(extent) + 1 - _DIGITS)
    corner, end = np.floor(low / step) * step, (np.floor(high / step) + 1) * step
    if degrees:
        corner, end = np.maximum(corner, (-360, -90)), np.minimum(end, (360, 90))
    return np.array([float(f"{value:.9g}") for value in (*corner, *end)])


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
    return _rounded(_SHARE * float(size.min())) if wanted.radius is None else wanted.radius


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _factor(factor: float) -> str:
    return f'"ln {factor:g}"' if float(f"{factor:g}") == factor else repr(float(np.log(factor)))


def _listed(values: Floats) -> str:
    return f"[{', '.join(repr(value) for value in values.tolist())}]"


def _text(value: str) -> str:
    """A string as TOML has it."""
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
