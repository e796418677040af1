"""Domains as the places of a packed file, and back; and which place a position belongs to."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.packed.cbor import Tag, typed, untyped
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import decode_label, encode_label

Plain = Any
_KEYS = {
    "grid": {"kind", "rows", "columns", "cell", "origin", "unit", "bounds"},
    "points": {"kind", "labels", "dimension", "points", "unit", "coordinates", "aspect"},
    "h3": {"kind", "cells", "points", "aspect"},
    "labels": {"kind", "labels", "unit"},
}
MOST_PLACES = 2**16
_HEXAGON = 15
"""Digits of an H3 index in its usual form."""


def encode_places(domain: Domain) -> Plain:
    """A domain without its outlines. Raises ProblemError on labels that cannot be written."""
    if type(domain) is Grid:
        return {
            "kind": "grid",
            "rows": domain.rows,
            "columns": domain.columns,
            "cell": typed(list(domain.cell), 86),
            "origin": typed(list(domain.origin), 86),
            "unit": domain.unit,
            "bounds": None if domain.bounds is None else typed(list(domain.bounds), 86),
        }
    if domain.points is None:
        labels = [encode_label(label) for label in domain.labels]
        return {"kind": "labels", "labels": labels, "unit": domain.unit}
    points, aspect = typed(domain.points.ravel(), 86), aspect_of(domain)
    cells = _hexagons(domain)
    if cells is not None:
        return {"kind": "h3", "cells": typed(cells, 71), "points": points, "aspect": aspect}
    return {
        "kind": "points",
        "labels": [encode_label(label) for label in domain.labels],
        "dimension": domain.points.shape[1],
        "points": points,
        "unit": domain.unit,
        "coordinates": domain.coordinates,
        "aspect": aspect,
    }


def decode_places(plain: Plain) -> Domain:
    """The inverse. Raises ProblemError on anything that ``encode_places`` does not write."""
    kind = plain.get("kind") if isinstance(plain, dict) else None
    if kind not in _KEYS:
        raise ProblemError(f"{str(kind)[:40]!r} is no kind of places", where="kind")
    require_keys(plain, _KEYS[kind], "places")
    if kind == "grid":
        box = plain["bounds"]
        rows, columns = (_count(plain[name]) for name in ("rows", "columns"))
        _count(rows * columns)
        return Grid(
            rows,
            columns,
            _floats(plain["cell"], 2),
            unit=_text(plain["unit"]),
            origin=_floats(plain["origin"], 2),
            bounds=None if box is None else _floats(box, 4),
        )
    if kind == "h3":
        cells = untyped(plain["cells"], 71)
        _count(len(cells))
        found = Domain.geographic([f"{cell:0{_HEXAGON}x}" for cell in cells], _rows(plain, 2))
    else:
        if type(plain["labels"]) is not list:
            raise ProblemError("is no list", where="labels")
        _count(len(plain["labels"]))
        labels = [_label(label) for label in plain["labels"]]
        unit = _text(plain["unit"])
        if kind == "labels":
            return Domain(labels, unit=unit)
        points = _rows(plain, _count(plain["dimension"]))
        found = Domain(labels, points, unit, coordinates=plain["coordinates"])
    if type(plain["aspect"]) is not float or not 0 < plain["aspect"] <= 1:
        raise ProblemError(f"{plain['aspect']!r} is no cosine above 0", where="aspect")
    if not math.isclose(plain["aspect"], aspect_of(found), rel_tol=1e-12):
        raise ProblemError("is not the cosine of the middle latitude", where="aspect")
    return found


def aspect_of(domain: Domain) -> float:
    """What a degree of longitude is in degrees of latitude, in the middle of the places; 1.0 in the
    plane."""
    if domain.points is None or domain.coordinates != "lonlat":
        return 1.0
    return cosine_of_middle(domain.points[:, 1])


def cosine_of_middle(latitude: Floats) -> float:
    """The cosine of the middle between the least and the largest latitude, above 0."""
    middle = (float(latitude.min()) + float(latitude.max())) / 2
    return max(math.cos(math.radians(middle)), 1e-9)


def reach_of(domain: Domain) -> float | None:
    """How far from the nearest place a position may be to belong to the region: the largest
    distance from a place to its nearest neighbour, in the coordinates' unit. None for grids, which
    have borders, and where there is no second place."""
    if type(domain) is Grid or domain.points is None or len(domain) < 2:
        return None
    aspect = aspect_of(domain)
    largest = 0.0
    for k in range(len(domain)):
        apart = _apart(domain, domain.points[k], aspect)
        apart[k] = np.inf
        largest = max(largest, float(apart.min()))
    return math.sqrt(largest)


def place_of(
    domain: Domain, position: Floats, reach: float | None, aspect: float, outside: str
) -> int | None:
    """The number of the place that a position (x, y), or (longitude, latitude), belongs to; None
    outside, where nothing is said of such positions."""
    if isinstance(domain, Grid):
        if domain.bounds is None:
            (x0, y0), (width, height) = domain.origin, domain.cell
            west, south = x0, y0
            east, north = x0 + domain.columns * width, y0 + domain.rows * height
        else:
            west, south, east, north = domain.bounds
        x, y = float(position[0]), float(position[1])
        if outside == "nearest":
            x, y = min(max(x, west), east), min(max(y, south), north)
        if not (west <= x <= east and south <= y <= north):
            return None
        column = int((x - west) / (east - west) * domain.columns)
        row = int((y - south) / (north - south) * domain.rows)
        return min(row, domain.rows - 1) * domain.columns + min(column, domain.columns - 1)
    apart = _apart(domain, position, aspect)
    nearest = int(apart.argmin())
    if reach is not None and outside == "refuse" and not apart[nearest] <= reach * reach:
        return None
    return nearest


def _apart(domain: Domain, position: Floats, aspect: float) -> Floats:
    """Squared distances to all places, evaluated as the specification says."""
    points = domain.require_points("look up a position")
    step = position - points
    if domain.coordinates == "lonlat":
        step[:, 0] = np.where(step[:, 0] > 180, step[:, 0] - 360, step[:, 0])
        step[:, 0] = np.where(step[:, 0] < -180, step[:, 0] + 360, step[:, 0])
    step[:, 0] *= aspect
    out = step[:, 0] * step[:, 0]
    for k in range(1, step.shape[1]):
        out = out + step[:, k] * step[:, k]
    return np.asarray(out)


def _hexagons(domain: Domain) -> list[int] | None:
    """The labels as H3 indices, where all of them look like that."""
    if domain.coordinates != "lonlat":
        return None
    found = []
    for label in domain.labels:
        if not isinstance(label, str) or len(label) != _HEXAGON or label[0] != "8":
            return None
        try:
            found.append(int(label, 16))
        except ValueError:
            return None
        if f"{found[-1]:x}" != label:
            return None
    return found


def _label(plain: Plain) -> Hashable:
    found = decode_label(plain)
    try:
        hash(found)
    except TypeError:
        found = b""
    if isinstance(found, bytes | Tag):
        raise ProblemError("is no label", where="labels")
    return found


def _count(value: Plain) -> int:
    if type(value) is not int or not 1 <= value <= MOST_PLACES:
        raise ProblemError(f"{str(value)[:40]} is no number of places", where="places")
    return value


def _text(value: Plain) -> str:
    if type(value) is not str:
        raise ProblemError("is no text", where="unit")
    return value


def _floats(item: Plain, count: int) -> list[float]:
    found = untyped(item, 86)
    if len(found) != count:
        raise ProblemError(f"{len(found)} numbers instead of {count}", where="places")
    return [float(value) for value in found]


def _rows(plain: Plain, dimension: int) -> Floats:
    values = untyped(plain["points"], 86)
    if len(values) % dimension:
        raise ProblemError(f"{len(values)} coordinates in {dimension} dimensions", where="points")
    return np.array(values.reshape(-1, dimension), dtype=np.float64)


def coordinates_of(domain: Domain, place: int) -> tuple[float, ...] | None:
    """The coordinates of a place as positions are given: of a grid over bounds in degrees."""
    if isinstance(domain, Grid) and domain.bounds is not None:
        row, column = divmod(place, domain.columns)
        west, south, east, north = domain.bounds
        x = west + (column + 0.5) / domain.columns * (east - west)
        y = south + (row + 0.5) / domain.rows * (north - south)
        return x, y
    return None if domain.points is None else tuple(map(float, domain.points[place]))
