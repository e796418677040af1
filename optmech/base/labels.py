"""Values that carry labels of their own (pandas, xarray, dicts), put into the order of a domain.

Arrays and lists are in the order of the labels. A Series that was sorted or filtered is not, and
says so in its index: what has an index is read by it, or refused, and never by position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from optmech.errors import ProblemError

_BY_POSITION = "give .to_numpy() to take the values by position"
_LATITUDE = ("lat", "latitude", "latitud", "latitudine", "breitengrad", "breedtegraad", "y")
_EASTING, _NORTHING = ("e", "east", "easting"), ("n", "north", "northing")
_LONGITUDE = (
    *("lon", "lng", "long", "longitude", "longitud", "longitudine"),
    *("längengrad", "laengengrad", "lengtegraad", "x"),
)
"""In English, French, Spanish, Italian, German and Dutch."""


def is_name(label: object) -> bool:
    """Whether a message may say a label: names and whole numbers, as others are coordinates."""
    parts = label if isinstance(label, list | tuple) else (label,)
    return not any(isinstance(part, float | np.floating) for part in parts)


def first_of(labels: Sequence[Hashable]) -> str:
    """Which labels there are, for a message."""
    if not all(map(is_name, labels[:5])):
        return "Labels are numbers here: give one of them"
    return f"The first ones are {', '.join(map(label_text, labels[:5]))}"


def label_text(label: object) -> str:
    """A label as people write it and ``files`` read it back: a grid cell (3, 4) is ``3,4``."""
    if isinstance(label, tuple):
        return ",".join(map(str, label))
    return str(label)


def is_missing(cell: object) -> bool:
    """Whether a cell of a table is None, NaN, NaT, the NA of pandas, or masked."""
    if isinstance(cell, float | np.inexact):
        return bool(cell != cell)
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant")


def own_labels(value: Any) -> tuple[list[Hashable] | None, ...] | None:
    """The labels of every axis of a pandas or xarray object, None for an axis without; None for
    anything else."""
    if hasattr(value, "iloc") and hasattr(value, "index"):
        axes = [value.index, value.columns] if hasattr(value, "columns") else [value.index]
        return tuple(list(axis) for axis in axes)
    if hasattr(value, "dims") and hasattr(value, "indexes") and hasattr(value, "to_numpy"):
        known = value.indexes
        return tuple(list(known[dim]) if dim in known else None for dim in value.dims)
    return None


def in_order(value: Any, *axes: Sequence[Hashable], where: str) -> Any:
    """``value`` with every axis in the order of the labels of ``axes``.

    What has no labels is returned as it is. A mapping from label to number is taken where there is
    one axis. Raises ProblemError when its labels are not exactly those of the axes, each once.
    """
    labels = own_labels(value)
    if isinstance(value, Mapping) and len(axes) == 1:
        labels, array = (list(value),), np.array(list(value.values()))
    elif labels is None:
        return value
    else:
        array = value.to_numpy()
    return reordered(array, labels, axes, where=where)


def reordered(
    array: Any,
    labels: Sequence[Sequence[Hashable] | None],
    axes: Sequence[Sequence[Hashable]],
    *,
    where: str,
) -> Any:
    """An array with these labels in the order of the axes; errors as ``in_order``
    has them."""
    if len(labels) != len(axes):
        raise ProblemError(
            f"has {len(labels)} dimension(s), needs {len(axes)}",
            where=where,
            remedy="Choose a column of the table" if len(axes) == 1 else "Give a table",
        )
    for axis, (mine, wanted) in enumerate(zip(labels, axes, strict=True)):
        if mine is not None:
            array = np.take(array, _order(mine, wanted, where), axis=axis)
    return array


def rows_in_order(value: Any, labels: Sequence[Hashable]) -> Any:
    """A table of points with a row for every label, in their order where its index has them.

    An index that has none of the labels numbers the rows, which are then in order.
    """
    own = own_labels(value)
    if own is None or own[0] is None or own[0] == list(labels):
        return value
    mine: set[object] = {*own[0], *map(label_text, own[0])}
    if not any(label in mine or label_text(label) in mine for label in labels):
        return value.to_numpy()
    return np.take(value.to_numpy(), _order(own[0], labels, "points"), axis=0)


def refuse_unordered(value: Any, *, where: str) -> None:
    """Refuse what has an index other than 0, 1, ..., where it is not known what that stands for."""
    for mine in own_labels(value) or ():
        if mine is not None and mine != list(range(len(mine))):
            raise ProblemError(
                f"has labels of its own ({few(mine)}), which are not looked at here",
                where=where,
                remedy=f"Put it in the order that is meant, and {_BY_POSITION}",
            )


def refuse_other_rows(first: Any, second: Any, *, where: str) -> None:
    """Refuse two tables of the same observations whose indices differ."""
    one, other = own_labels(first), own_labels(second)
    if one and other and None not in (one[0], other[0]) and one[0] != other[0]:
        raise ProblemError(
            "has another index than the points",
            where=where,
            remedy=f"Take both from one table, or {_BY_POSITION}",
        )


def refuse_latitude_first(value: Any, *, where: str) -> None:
    """Refuse a table whose columns say that the latitude comes first."""
    own = own_labels(value)
    if own is None or len(own) != 2 or own[1] is None or len(own[1]) != 2:
        return
    first, second = (str(name).rpartition("_")[2].lower() for name in own[1])
    if first in _LATITUDE and second in _LONGITUDE:
        raise ProblemError(
            f"the columns are {own[1][0]!r}, {own[1][1]!r}: the latitude comes first",
            where=where,
            remedy="Give (longitude, latitude), in that order",
        )


def _order(mine: Sequence[Hashable], wanted: Sequence[Hashable], where: str) -> list[int]:
    """The places of the wanted labels among those there are, found as they are or by their text."""
    readings: tuple[Callable[[Hashable], Hashable], ...] = (lambda label: label, label_text)
    for read in readings:
        place = {read(label): k for k, label in enumerate(mine)}
        if len(place) < len(mine) or len({read(label) for label in wanted}) < len(wanted):
            continue
        if len(mine) == len(wanted) and all(read(label) in place for label in wanted):
            return [place[read(label)] for label in wanted]
    known, given = set(wanted), set(mine)
    unknown = [label for label in mine if label not in known]
    missing = [label for label in wanted if label not in given]
    if unknown:
        no_label = "is no label" if len(unknown) == 1 else "are no labels"
        message = f"its index has {few(unknown)}, which {no_label}"
    elif missing:
        message = f"its index lacks {few(missing)}"
    else:
        message = "a label occurs twice in its index"
    raise ProblemError(
        f"{message}; the labels are {few(wanted)}",
        where=where,
        remedy=f"Make the labels its index, or {_BY_POSITION}",
    )


def few(labels: Iterable[Hashable], most: int = 5) -> str:
    """Up to ``most`` labels, for a message; of more the first, and how many there are."""
    listed = list(labels)
    shown = ", ".join(map(repr, listed if len(listed) <= most else listed[: most - 2]))
    return shown if len(listed) <= most else f"{shown}, ... ({len(listed)} in all)"


_COLUMNS, _LONGEST_NAME = 20, 40
"""Names of columns that are shown, as whoever has to name one looks for it among them, and how long
they may be."""
_NO_NAME = re.compile(r"\d[.,]\d|\d{6}|[^\w .,:;/()%#°²+*-]")


def few_columns(names: Iterable[Hashable]) -> str:
    """The names of columns, for a message. Those that are no names are counted: where a table lacks
    its header, or a file is none, they are what it holds."""
    listed = list(map(str, names))
    shown = [n for n in listed if len(n) <= _LONGEST_NAME and not _NO_NAME.search(n)]
    hidden = len(listed) - len(shown)
    more = f"{hidden} that {'is no name' if hidden == 1 else 'are no names'}" if hidden else ""
    return " and ".join(filter(None, [few(shown, _COLUMNS), more])) or "none"


def coordinate_names(
    names: Iterable[Hashable], degrees: bool | None = None
) -> tuple[str, str] | None:
    """The columns that are called longitude and latitude, x and y, or easting and northing, where
    each is one; degrees before others, or one kind only: those in ``degrees``, or others."""
    ends: dict[str, list[str]] = {}
    for name in dict.fromkeys(map(str, names)):
        ends.setdefault(name.rpartition("_")[2].lower(), []).append(name)
    kinds = (_LONGITUDE[:-1], _LATITUDE[:-1]), (("x",), ("y",)), (_EASTING, _NORTHING)
    for first, second in kinds if degrees is None else kinds[:1] if degrees else kinds[1:]:
        one = [name for end in first for name in ends.get(end, [])]
        other = [name for end in second for name in ends.get(end, [])]
        if len(one) == 1 and len(other) == 1:
            return one[0], other[0]
    return None


def coordinate_pairs(
    names: Iterable[Hashable], degrees: bool | None = None
) -> list[tuple[str, str]]:
    """The pairs of columns that are called longitude and latitude of something, such as start_lon
    and start_lat beside end_lon and end_lat; or x and y, as ``coordinate_names`` chooses. One pair
    where there is one."""
    listed = list(dict.fromkeys(map(str, names)))
    only = coordinate_names(listed, degrees)
    if only is not None:
        return [only]
    groups: dict[str, list[str]] = {}
    for name in listed:
        groups.setdefault(name.rpartition("_")[0], []).append(name)
    for kind in (True, False) if degrees is None else (degrees,):
        found = [coordinate_names(group, kind) for group in groups.values()]
        pairs = [pair for pair in found if pair is not None]
        if pairs:
            return pairs
    return []


def is_degrees(x: str, y: str) -> bool:
    """Whether two columns are called longitude and latitude."""
    found = coordinate_names([x, y])
    return found == (x, y) and x.rpartition("_")[2].lower() in _LONGITUDE[:-1]


_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_PARTS = re.compile(r"[^\W\d_]+|\d+")
_AXES = {*_LATITUDE, *_LONGITUDE, *_EASTING, *_NORTHING}


def parts_of(name: str) -> str:
    """A column's name in small letters, with spaces at its humps: startLat is start lat."""
    return _HUMP.sub(" ", name).lower()


def other_words(x: str, y: str) -> str:
    """What to say where two columns are called like coordinates of different places, such as
    end_lon and start_lat; "" of any others."""
    first, second = (_PARTS.findall(parts_of(name)) for name in (x, y))
    named = not _AXES.isdisjoint(first) and not _AXES.isdisjoint(second)
    if not named or {*first} - _AXES == {*second} - _AXES:
        return ""
    return f"{x!r} and {y!r} are taken for one place, and are called like those of two"
