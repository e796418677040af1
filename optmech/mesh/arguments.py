"""Arguments of meshes, checked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.exact.number import Number, parse_exact
from optmech.spaces.domain import EARTH_RADIUS_KM, Coordinates
from optmech.spaces.domain_arguments import require_lonlat


def kilometres(points: Floats) -> Floats:
    """Kilometres per degree of longitude and latitude, about."""
    middle = (points[:, 1].min() + points[:, 1].max()) / 2
    return float(np.radians(EARTH_RADIUS_KM)) * np.array([float(np.cos(np.radians(middle))), 1.0])


def widths_of(width: Number, box: Floats, coordinates: Coordinates) -> Floats:
    """The width of a mesh in units of the coordinates, each way."""
    step = float(parse_exact(width, where="width", positive=True))
    if coordinates == "lonlat":
        require_lonlat(box)
        return step / kilometres(box)
    return np.array([step, step])


def corners_of(value: ArrayLike, count: int) -> Ints:
    """Triangles as indices of ``count`` vertices, (T, 3)."""
    rows = finite_array(value, where="triangles", ndim=2)
    if rows.shape[1] != 3 or not len(rows):
        raise ProblemError(f"shape {rows.shape} is not (T, 3)", where="triangles")
    wrong = np.flatnonzero(((rows != np.floor(rows)) | (rows < 0) | (rows >= count)).any(axis=1))
    if len(wrong):
        raise ProblemError(
            f"{rows[wrong[0]].tolist()} are not three of the {count} vertices",
            where=f"triangles[{wrong[0]}]",
            remedy=f"Give indices from 0 to {count - 1}",
        )
    return rows.astype(np.int64)


def weights_of(value: ArrayLike, count: int, where: str, each: str) -> Floats:
    """A number >= 0 for each of ``count`` things."""
    values = finite_array(value, where=where)
    if values.shape != (count,) or (values < 0).any():
        raise ProblemError(f"shape {values.shape} is not one number >= 0 {each}", where=where)
    return values


def both_rational(point: Sequence[float | Fraction]) -> tuple[Fraction, Fraction]:
    """The two coordinates of a point, exactly."""
    try:
        x, y = point
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{point!r} is no point", where="point", remedy="Give two coordinates"
        ) from error
    return rational(x), rational(y)


def rational(value: float | Fraction) -> Fraction:
    """A coordinate, exactly."""
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(
            f"{value!r} is no finite number", where="point", remedy="Give two coordinates"
        ) from error
