"""Domains as the places of a packed file, and back; and which place a position belongs to."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, record as frozen_record
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.codec import Codec, optional, record
from optmech.spaces.domain import EARTH_RADIUS_KM, Domain, Grid, great_circle
from optmech.spaces.labels import decode_label, encode_label
from optmech.spaces.sphere import FAR, nearest, sines, squares, vectors
from optmech_devices.packed.cbor import Tag, typed, untyped

Plain = Any
_KEYS = {
    "points": {"labels", "dimension", "points", "unit", "coordinates"},
    "h3": {"cells", "points"},
}
MOST_PLACES = 2**16
_CELL = re.compile("8[0-9a-f]{14}")
"""An H3 index in its usual form."""
_DEEPEST = 8
"""Levels of lists in a label."""
_HALF_TURN = 180.0


def encode_places(domain: Domain) -> Plain:
    """A domain without its outlines. Raises ProblemError on labels that cannot be written."""
    if type(domain) is Grid:
        require_near([*domain.cell, *domain.origin])
        return {"kind": "grid", **_GRID.write(domain)}
    if domain.points is None:
        return {"kind": "labels", **_NAMED.write(domain)}
    require_near(domain.points)
    points = typed(domain.points.ravel(), 86)
    cells = _hexagons(domain)
    if cells is not None:
        return {"kind": "h3", "cells": typed(cells, 71), "points": points}
    return {
        "kind": "points",
        **_NAMED.write(domain),
        "dimension": domain.points.shape[1],
        "points": points,
        "coordinates": domain.coordinates,
    }


def decode_places(plain: Plain) -> Domain:
    """The places of a file. Raises ProblemError on what ``encode_places`` does not write."""
    body = dict(plain) if isinstance(plain, dict) else {}
    kind = body.pop("kind", None)
    if kind == "grid":
        return _GRID.read(body)  # type: ignore[no-any-return]
    if kind == "labels":
        return _NAMED.read(body)  # type: ignore[no-any-return]
    if kind not in _KEYS:
        raise ProblemError(f"{str(kind)[:40]!r} is no kind of places", where="kind")
    require_keys(body, _KEYS[kind], "places")
    if kind == "h3":
        cells = untyped(body["cells"], 71)
        _count(len(cells))
        return Domain.geographic([f"{cell:015x}" for cell in cells], _rows(body, 2))
    labels, unit = _LABELS.read(body["labels"]), _UNIT.read(body["unit"])
    points = _rows(body, _count(body["dimension"]))
    found = Domain(labels, points, unit, coordinates=body["coordinates"])
    if found.unit != unit:
        raise ProblemError("is not that of degrees, km", where="unit")
    return found


def _grid(rows: int, columns: int, cell: Any, origin: Any, **others: Any) -> Grid:
    _count(rows * columns)
    require_near([*cell, *origin])
    return Grid(rows, columns, cell, origin=origin, **others)


def require_near(values: ArrayLike, where: str = "places") -> None:
    """Raise ProblemError on coordinates whose squares would be no numbers."""
    if (np.abs(values) > FAR).any():
        raise ProblemError(
            "has a coordinate beyond 2^100", where=where, remedy="Use a larger unit of distance"
        )


def reach_of(domain: Domain) -> float | None:
    """How far from the nearest place a position may be to belong to the region: the largest
    distance from a place to its nearest neighbour, in the coordinates' unit, of degrees along great
    circles. None for grids, which have borders, and where there is no second place."""
    if type(domain) is Grid or domain.points is None or len(domain) < 2:
        return None
    largest = max(float(np.delete(apart(domain, k), k).min()) for k in range(len(domain)))
    return (
        largest / (EARTH_RADIUS_KM * math.pi / 180) if domain.coordinates == "lonlat" else largest
    )


def apart(domain: Domain, place: int) -> Floats:
    """Distances from the place of a number to every one, in the coordinates' unit, of degrees in km
    along great circles."""
    points = domain.require_points("measure distances")
    if domain.coordinates == "lonlat":
        return great_circle(points, points[place])
    return np.sqrt(squares(points - points[place]))


def chord(degrees: float) -> float:
    """The straight line between two points of the globe, in its radii."""
    return 2 * float(sines(np.array(min(degrees, _HALF_TURN) / 2))[0])


@frozen_record
class Finder(ReadOnly):
    """Which place a position (x, y), or (longitude, latitude), belongs to; ``reach`` and
    ``outside`` as in a header."""

    domain: Domain
    reach: float | None
    outside: str

    @property
    def globe(self) -> bool:
        """Whether positions are longitude and latitude in degrees."""
        return self.domain.coordinates == "lonlat" or bool(self.domain.frame)

    @cached_property
    def _own(self) -> Floats:
        points = self.domain.require_points("look up a position")
        return vectors(points) if self.globe else points

    def find(self, positions: Floats) -> Ints:
        """The number of the place of every position (n, k), -1 outside."""
        if isinstance(self.domain, Grid):
            if self.outside == "nearest":
                return self.domain.nearest_index(positions)
            return self.domain.located(positions)
        index, apart = nearest(self._own, vectors(positions) if self.globe else positions)
        if self.reach is None or self.outside == "nearest":
            return index
        limit = chord(self.reach) if self.globe else self.reach
        return np.where(apart <= limit * limit, index, -1)


def _hexagons(domain: Domain) -> list[int] | None:
    """The labels as H3 indices, where all of them look like that."""
    texts = [label for label in domain.labels if isinstance(label, str) and _CELL.fullmatch(label)]
    if domain.coordinates != "lonlat" or len(texts) < len(domain):
        return None
    return [int(text, 16) for text in texts]


def _plain(label: Hashable) -> Plain:
    _require_flat(label)
    return encode_label(label)


def _labels(plain: Plain) -> list[Hashable]:
    if type(plain) is not list:
        raise ProblemError("is no list", where="labels")
    _count(len(plain))
    return list(map(_label, plain))


def _label(plain: Plain) -> Hashable:
    _require_flat(plain)
    found = decode_label(plain)
    try:
        hash(found)
    except TypeError:
        found = b""
    if isinstance(found, bytes | Tag):
        raise ProblemError("is no label", where="labels")
    return found


def _require_flat(label: Any, depth: int = 0) -> None:
    """Raise ProblemError on lists in lists without end."""
    if isinstance(label, list | tuple):
        if depth == _DEEPEST:
            raise ProblemError(f"nests deeper than {_DEEPEST} levels", where="labels")
        for part in label:
            _require_flat(part, depth + 1)


def _count(value: Plain) -> int:
    if type(value) is not int or not 1 <= value <= MOST_PLACES:
        raise ProblemError(f"{str(value)[:40]} is no number of places", where="places")
    return value


def _text(value: Plain) -> str:
    if type(value) is not str:
        raise ProblemError("is no text", where="unit")
    return value


def _floats(count: int) -> Codec[Sequence[float]]:
    def read(item: Plain) -> list[float]:
        found: list[float] = untyped(item, 86).tolist()
        if len(found) != count:
            raise ProblemError(f"{len(found)} numbers instead of {count}", where="places")
        return found

    return Codec(lambda values: typed(list(values), 86), read)


def _rows(plain: Plain, dimension: int) -> Floats:
    values = untyped(plain["points"], 86)
    if len(values) % dimension:
        raise ProblemError(f"{len(values)} coordinates in {dimension} dimensions", where="points")
    require_near(values)
    return np.array(values.reshape(-1, dimension), dtype=np.float64)


_COUNT, _UNIT = Codec(int, _count), Codec(str, _text)
_LABELS: Codec[Sequence[Hashable]] = Codec(lambda labels: list(map(_plain, labels)), _labels)
_NAMED = record(Domain, "places", labels=_LABELS, unit=_UNIT)
_GRID = record(
    _grid, "places", rows=_COUNT, columns=_COUNT, cell=_floats(2), origin=_floats(2), unit=_UNIT,
    bounds=optional(_floats(4)),
)  # fmt: skip


def coordinates_of(domain: Domain, place: int) -> tuple[float, ...] | None:
    """The coordinates of a place as positions are given: of a grid over bounds in degrees.
    Longitudes are between -180 and 180, also of regions that are stated beyond."""
    if isinstance(domain, Grid) and domain.bounds is not None:
        row, column = divmod(place, domain.columns)
        west, south, east, north = domain.bounds
        x = west + (column + 0.5) / domain.columns * (east - west)
        y = south + (row + 0.5) / domain.rows * (north - south)
        return _on_map(x), y
    found = None if domain.points is None else tuple(map(float, domain.points[place]))
    return (_on_map(found[0]), *found[1:]) if found and domain.coordinates == "lonlat" else found


def _on_map(longitude: float) -> float:
    if abs(longitude) <= _HALF_TURN:
        return longitude
    return longitude - 360 if longitude > 0 else longitude + 360
