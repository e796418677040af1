"""Secrets, observables, and distances that have a name."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from optmech_audit.document import (
    Body,
    Matrix,
    Table,
    fields,
    indices,
    keys,
    listing,
    one_of,
    reals,
    text,
)
from optmech_audit.numbers import Fault, inside, need, paired, transposed

EARTH_RADIUS_KM = 6371.0088
DEGREE_KM = math.pi / 180 * EARTH_RADIUS_KM
N = TypeVar("N", int, float)


def spans(points: Iterable[Iterable[N]]) -> list[tuple[N, N]]:
    """The least and the largest of every coordinate."""
    return [(min(side), max(side)) for side in transposed(points)]


class Places(NamedTuple):
    """Secrets or observables: labels, and coordinates where there are some."""

    labels: Sequence[Hashable]
    points: Table | None
    unit: str
    bounds: list[float] | None = None  # west, south, east, north of a grid over degrees
    globe: bool = False  # points are longitude and latitude
    size: tuple[int, int, float, float] | None = None  # of a grid: rows, columns, width, height


def read_places(body: Body, name: str, count: int) -> Places:
    plain = body[name]
    with inside(name):
        out = read_grid(plain, count) if "grid" in fields(plain) else read_labelled(plain)
        need(0 < len(out.labels) == count, "labels are missing, or too many")
        need(len(set(out.labels)) == count, "labels are not distinct")
        return out


def read_grid(plain: object, count: int) -> Places:
    """Centres of cells; over a box of degrees these must be the cells that the box has."""
    body = keys(plain, "grid cell origin unit bounds")
    unit = text(body["unit"], "the unit")
    rows, columns = indices(body["grid"], 10**7 + 1, 2)
    need(0 < rows * columns == count, "the size of the grid is another one")
    (width, height), (x, y) = reals(body["cell"], 2), reals(body["origin"], 2)
    need(width > 0 and height > 0, "a cell has no size")
    ends = ((x, columns * width), (y, rows * height))
    need(all(a < a + size < math.inf for a, size in ends), "cells are too small, or too far away")
    bounds = None if body["bounds"] is None else reals(body["bounds"], 4)
    if bounds is not None:
        west, south, east, north = bounds
        need(-360 <= west < east <= 360, "the longitudes are out of range")
        need(-90 <= south < north <= 90, "the latitudes are out of range")
        # a cosine that is exact near a pole too; that of another machine need not be
        cosine = math.sin(math.radians(90 - abs((south + north) / 2)))
        across = (east - west) * DEGREE_KM * cosine / columns
        along = (north - south) * DEGREE_KM / rows
        fits = abs(across - width) * cosine <= (1e-12 * cosine + 1e-15) * width
        fits = fits and abs(along - height) <= 1e-12 * height
        need(fits and unit == "km" and x == y == 0, "cells are not of these degrees")
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    points = [[x + (c + 0.5) * width, y + (r + 0.5) * height] for r, c in cells]
    need(all(math.isfinite(v) for p in points for v in p), "a cell is too far away")
    return Places(cells, points, unit, bounds, size=(rows, columns, width, height))


def read_labelled(plain: object) -> Places:
    body = keys(plain, "labels points unit coordinates", "outlines")
    unit = text(body["unit"], "the unit")
    labels = [label(v) for v in listing(body["labels"])]
    globe = one_of(body["coordinates"], ("plane", "lonlat"), "the system of coordinates") != "plane"
    need(not globe or unit in ("", "km"), "distances on the globe are in km")
    points, wide = None, 0
    if body["points"] is not None:
        points = [reals(p) for p in listing(body["points"], len(labels))]
        wide = len(points[0])
        need(wide > 0 and all(len(p) == wide for p in points), "points of several kinds")
    if globe:
        need(wide == 2, "there is no longitude and latitude")
        fits = all(abs(lon) <= 360 and abs(lat) <= 90 for lon, lat in points or ())
        need(fits, "a point is not on the globe")
    if "outlines" in body:
        need(wide == 2, "outlines without points")
        for outline in listing(body["outlines"], len(labels)):
            need(len(listing(outline)) > 0, "an outline is missing")
            for ring in listing(outline):
                corners = [reals(corner, 2) for corner in listing(ring)]
                need(len(corners) >= 3, "a ring has too few corners")
    return Places(labels, points, unit, None, globe)


def label(plain: object) -> Hashable:
    if isinstance(plain, list):
        return tuple(label(part) for part in plain)
    if not isinstance(plain, str | int | float | None):
        raise Fault(f"{plain!a} is no label")
    need(not isinstance(plain, float) or math.isfinite(plain), f"{plain!a} is no label")
    return plain


def compare(name: str, stated: Matrix, a: Places, b: Places) -> None:
    """Raise Fault where a matrix is not, up to rounding, what its name says."""
    if name == "hamming":
        proper = [[0.0 if x == y else 1.0 for y in b.labels] for x in a.labels]
    else:
        if a.points is None or b.points is None:
            raise Fault(f"{name} needs coordinates")
        globe = name == "haversine"
        need(a.globe is globe and b.globe is globe, f"{name} needs other coordinates")
        known = "" not in (a.unit, b.unit)
        frame = a.bounds == b.bounds or (None in (a.bounds, b.bounds) and known)
        frame = frame and (a.unit == b.unit or not known)
        need(globe or frame, "coordinates in two units, or over different bounds")
        need(len(a.points[0]) == len(b.points[0]), "coordinates of different dimensions")
        proper = [[between(name, p, q) for q in b.points] for p in a.points]
    for i, (row, right) in enumerate(paired(stated, proper)):
        for j, (value, d) in enumerate(paired(map(float, row), right)):
            share = 1e-12
            if name == "haversine":  # an arcsine near 1 loses half of the digits
                share = 1e-9 if d < 0.9999 * math.pi * EARTH_RADIUS_KM else 1e-7
            lost = 0 < max(value, d) < 2.0**-960  # fewer digits than are compared
            if lost or not abs(value - d) <= share * d < math.inf:
                raise Fault(f"{value!a} at [{i}, {j}] is not {name}")


SQUARES = "euclidean^2"
NAMED = ("euclidean", "manhattan", "haversine", "hamming")  # distances that are computed again
LOSSES = (*NAMED, SQUARES)


def between(name: str, p: list[float], q: list[float]) -> float:
    if name == "haversine":
        (lon, lat), (lon2, lat2) = (map(math.radians, point) for point in (p, q))
        cosines = math.cos(lat) * math.cos(lat2)
        across = math.sqrt(max(cosines, 0.0)) * math.sin((lon - lon2) / 2)
        half = math.hypot(math.sin((lat - lat2) / 2), across)  # no square may underflow
        return 2 * EARTH_RADIUS_KM * math.asin(min(half, 1.0))
    steps = [x - y for x, y in paired(p, q)]
    if name == "manhattan":
        return math.fsum(map(abs, steps))
    return math.hypot(*steps) ** (2 if name == SQUARES else 1)
