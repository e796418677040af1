"""Arrays of float64 as arguments: checked, read-only, in the order that is meant."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.labels import refuse_unordered
from optmech.base.numerals import are_numerals
from optmech.base.read_only import locked
from optmech.errors import ProblemError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64] | NDArray[np.int32]
"""Short ones where there are very many."""


def ends_of(points: Floats) -> tuple[Floats, Floats]:
    """The least and the largest coordinates (k,) of points (n, k)."""
    return points.min(axis=0), points.max(axis=0)


def largest_entry(values: Floats) -> tuple[int, int]:
    """Row and column of the largest entry of a matrix, the first of equal ones."""
    return divmod(int(values.argmax()), len(values[0]))


def finite_array(
    value: ArrayLike, *, where: str, ndim: int | None = None, observations: bool = False,
    infinite: bool = False,
) -> Floats:  # fmt: skip
    """A read-only float64 copy of ``value``; refuses what is not numeric, masked or not finite,
    but for inf where numbers may be ``infinite``.

    A pandas or xarray object with labels of its own is refused, since they are not looked at here,
    unless its rows are ``observations``, whose order has no meaning beyond the value itself.
    """
    if not observations:
        refuse_unordered(value, where=where)
    words = "not a rectangular array of numbers"
    array = np.array(real_array(value, where, words, "Give numbers of one shape"))
    if ndim is not None and array.ndim != ndim:
        raise ProblemError(
            f"has {array.ndim} dimension(s), needs {ndim}", where=where, remedy="Reshape it"
        )
    bad = np.argwhere(~(np.isfinite(array) | (infinite & (array == np.inf))))
    if len(bad):
        index = tuple(int(k) for k in bad[0])
        if not index:
            raise ProblemError(
                f"{float(array):g} is NaN or infinite", where=where, remedy="Give a finite number"
            )
        raise ProblemError(
            f"{len(bad)} value(s) are NaN or infinite, the first at index {list(index)}",
            where=where,
            remedy="Give finite numbers only",
        )
    return locked(array)


def begins(counts: ArrayLike) -> Ints:
    """Where parts of so many entries begin, one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)], dtype=np.int64)


def slices(rows: int, each: float, most: int) -> list[slice]:
    """``rows`` in parts that are worked on at a time: of at most ``most`` entries, ``each`` of a
    row, and of one row at least."""
    step = int(max(1, most // max(1, each)))
    return [slice(begin, begin + step) for begin in range(0, rows, step)]


def normalised(weights: Floats) -> Floats:
    """Non-negative weights divided by their sum; already normalised ones are left untouched, so
    that writing and reading a distribution does not change it."""
    # summed exactly, so that every reader of a file decides alike
    if weights.max() < 2 and abs(math.fsum([*weights.tolist(), -1.0])) <= 2.0**-52 * len(weights):
        return weights
    scaled = weights / weights.max()
    out: Floats = scaled / scaled.sum()
    return locked(out)


def normalised_rows(weights: Floats) -> Floats:
    """Every row divided by its sum."""
    out: Floats = weights / weights.sum(axis=1, keepdims=True)
    return out


def sums_from(values: Floats, axis: int) -> Floats:
    """Of every entry the sum of it and of all after it along an axis, from the far end on."""
    return np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis)


_ODD = (
    *(bool, np.bool_, complex, np.complexfloating, np.datetime64, np.timedelta64, np.void),
    *(date, timedelta),
)
"""Types that NumPy turns into floats, or into something of their memory, and that no caller means
as numbers."""
_DEEPEST = 3
"""Dimensions of lists in lists that are looked through."""


def _types_in(value: Any, depth: int = _DEEPEST) -> set[type]:
    """The types of the entries, and that of masked arrays where any is masked."""
    if isinstance(value, np.ma.MaskedArray):
        own = {np.ma.MaskedArray} if np.ma.is_masked(value) else set()
        return own | {value.dtype.type}
    if not isinstance(value, list | tuple):
        array = np.asarray(value)
        return set(map(type, array.flat)) if array.dtype == object else {array.dtype.type}
    found = set(map(type, value))
    if depth and any(issubclass(kind, list | tuple | np.ndarray) for kind in found):
        return set().union(*(_types_in(row, depth - 1) for row in value))
    return found


def real_array(
    value: ArrayLike, where: str, words: str = "not an array of numbers", remedy: str = ""
) -> Floats:
    """``value`` as an array of floats, itself where it is one; refuses in these ``words`` what is
    none, truth values, times and complex numbers among them, and what is masked."""
    try:
        kinds = _types_in(value)
        masked = any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
        odd = any(issubclass(kind, _ODD) for kind in kinds)
        if any(issubclass(kind, str | bytes) for kind in kinds):
            entries = np.asarray(value, dtype=object).ravel().tolist()
            odd = odd or not are_numerals([str(entry).strip() for entry in entries])
        array = None if odd or masked else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(words, where=where, remedy=remedy) from error
    if masked:
        raise ProblemError(
            "has masked entries",
            where=where,
            remedy="Fill them with the numbers that are meant, or leave them out",
        )
    if array is None:
        raise ProblemError(words, where=where, remedy=remedy)
    return array


def unmasked(value: Any) -> Any:
    """Numbers with NaN in the place of those that are masked; anything else as it is."""
    if isinstance(value, list | tuple):
        rows = any(isinstance(v, list | tuple | np.ma.MaskedArray) for v in value)
        return [unmasked(row) for row in value] if rows else value
    if value is np.ma.masked:
        return np.nan
    if isinstance(value, np.ma.MaskedArray) and value.dtype.kind in "fiu":
        return np.ma.filled(value.astype(np.float64), np.nan)
    return value


def square_array(value: ArrayLike, where: str) -> Floats:
    """``value`` as an array of floats of shape (n, n), n >= 1, itself where it is one."""
    array = real_array(value, where, "not a square array of numbers")
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ProblemError(f"shape {array.shape} is not square", where=where)
    return array


def coordinate_rows(xy: ArrayLike, width: int) -> Floats:
    """Rows of ``width`` coordinates, NaN where one is missing or masked; one row may come alone."""
    rows = real_array(unmasked(xy), "points")
    if rows.size == 0:
        return rows.reshape(0, width)
    if rows.ndim < 2:
        rows = rows.reshape((-1, 1) if width == 1 else (1, -1))
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ProblemError(f"shape {rows.shape} is not (m, {width})", where="points")
    return rows


def unwrapped(points: Floats, near: Floats) -> Floats:
    """Longitudes and latitudes with every longitude within 180 degrees of that of ``near``, so
    that means and differences do not go around the globe."""
    turns = np.round((points[:, 0] - near[..., 0]) / 360)
    return np.column_stack([points[:, 0] - 360 * turns, points[:, 1]])
