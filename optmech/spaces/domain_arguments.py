"""Arguments of domains, checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.labels import is_name
from optmech.errors import ProblemError
from optmech.exact.arguments import one_of, text

Box = tuple[float, float, float, float]
"""(west, south, east, north), or what else there is four of: a place and two scales."""
Outlines = tuple[tuple[Floats, ...], ...]
"""For every element its rings, each of shape (k, 2)."""


def unit_text(value: object, coordinates: str) -> str:
    """A unit as text; of longitude and latitude always km. Refuses other coordinates than these and
    those of a plane."""
    one_of(coordinates, ("plane", "lonlat"), "coordinates")
    unit = text(value, "unit")
    if coordinates == "lonlat" and unit not in ("", "km"):
        raise ProblemError(
            f"{unit!r} is not the unit of distances between longitudes and latitudes",
            where="unit",
            remedy='They are measured in km: leave the unit out, or give "km"',
        )
    return "km" if coordinates == "lonlat" else unit


def require_labels(labels: tuple[Hashable, ...]) -> None:
    """Refuse no labels, unhashable ones and duplicates."""
    if not labels:
        raise ProblemError("the domain is empty", where="labels", remedy="Give at least one label")
    seen: dict[Hashable, int] = {}
    for k, label in enumerate(labels):
        try:
            first = seen.setdefault(label, k)
        except TypeError:
            kind = type(label).__name__
            raise ProblemError(f"{kind} is not hashable", where=f"labels[{k}]") from None
        if first != k:
            which = f"label {label!r}" if is_name(label) else "the label"
            raise ProblemError(
                f"{which} occurs twice: entry {first} is the same",
                where=f"labels[{k}]",
                remedy="Make labels distinct",
            )


def rings_of(outlines: Iterable[Iterable[ArrayLike]], points: Floats | None) -> Outlines:
    """Outlines as arrays of corners, rings for every point."""
    out = []
    try:
        listed = [list(rings) for rings in outlines]
    except TypeError:
        raise ProblemError(
            "is not a list of rings for every element",
            where="outlines",
            remedy="Give rings of shape (k, 2) for each of them",
        ) from None
    for k, rings in enumerate(listed):
        where = f"outlines[{k}]"
        kept = tuple(finite_array(ring, where=where, ndim=2) for ring in rings)
        if not kept or any(len(ring) < 3 or ring.shape[1] != 2 for ring in kept):
            raise ProblemError(
                "needs rings of at least three corners with two coordinates each", where=where
            )
        out.append(kept)
    if points is None or points.shape[1] != 2 or len(out) != len(points):
        raise ProblemError(
            f"{len(out)} outlines do not fit the points",
            where="outlines",
            remedy="Give points of shape (n, 2), and rings for each of them",
        )
    return tuple(out)


def require_lonlat(points: Floats | None) -> None:
    """Refuse what cannot be longitude and latitude in degrees."""
    if points is None or points.shape[1] != 2:
        raise ProblemError("longitude and latitude need points of shape (n, 2)", where="points")
    bad = np.flatnonzero((np.abs(points[:, 0]) > 360) | (np.abs(points[:, 1]) > 90))
    if len(bad):
        raise ProblemError(
            "is not a longitude and latitude in degrees",
            where=f"points[{bad[0]}]",
            remedy="Give (longitude, latitude), in that order",
        )


def pair_of(value: float | Sequence[float], where: str) -> tuple[float, float]:
    """Two numbers; one stands for both."""
    array = finite_array(value, where=where)
    if array.ndim == 0:
        return float(array), float(array)
    if array.shape != (2,):
        raise ProblemError("needs two numbers", where=where, remedy="Give (width, height)")
    return float(array[0]), float(array[1])


def box_of(value: Sequence[float]) -> Box:
    """(west, south, east, north) in degrees."""
    array = finite_array(value, where="bounds")
    if array.shape != (4,):
        raise ProblemError("needs (west, south, east, north)", where="bounds")
    west, south, east, north = array.tolist()
    if not (-360 <= west < east <= 360 and -90 <= south < north <= 90):
        raise ProblemError(
            f"({west}, {south}, {east}, {north}) is not a box of degrees",
            where="bounds",
            remedy="Give (west, south, east, north) with west < east and south < north",
        )
    return west, south, east, north
