"""Axes of a sweep: columns of its table, and the places in a problem that every point changes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optmech.errors import ProblemError
from optmech.files.sweep import PLACE
from optmech.reading.errors import path_text

_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")

Steps = tuple[str | int, ...]


def parse_place(text: object) -> Steps:
    """The keys and indices of a place. Raises ProblemError on anything that is not written like
    ``constraints[0].epsilon``."""
    if not isinstance(text, str) or not PLACE.fullmatch(text):
        raise ProblemError(
            f"{str(text)[:60]!r} is not a place in a problem",
            where="axes",
            remedy="Write it like constraints[0].epsilon or prior",
        )
    return tuple(name or int(index) for name, index in _STEP.findall(text))


def with_value(document: Any, steps: Steps, value: Any, above: Steps = ()) -> Any:
    """A copy of ``document``, found at the place ``above``, with ``value`` at a place in it; all
    that is on the way must be there. Raises ProblemError where a table or array on the way is
    missing."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    here = (*above, step)
    if isinstance(step, int):
        if not isinstance(document, list):
            raise _missing(here, "is not an array there")
        if step >= len(document):
            raise _missing(here, f"does not exist: there are {len(document)}")
        inner = with_value(document[step], rest, value, here)
        return [*document[:step], inner, *document[step + 1 :]]
    if not isinstance(document, dict):
        raise _missing(above, "is not a table")
    if step not in document and rest:
        raise _missing(here, "does not exist in the problem")
    return {**document, step: with_value(document.get(step), rest, value, here)}


def _missing(steps: Sequence[str | int], what: str) -> ProblemError:
    return ProblemError(
        what, where=path_text(steps), remedy="Name a place that the problem template has"
    )


Cell = str | int | float | bool | None
"""A value of the table."""

FIGURES = (
    "status", "loss", "lower_bound", "gap", "objective", "bound", "verified", "engine",
    "secrets", "observables", "reason",
)  # fmt: skip
"""Columns of the table that come from a task's record."""
MEASURED = ("attack_error",)
"""Columns that are measured anew from a design: of its summary they are no part."""
OF_REGIONS = ("total_gap", "vertices")
"""Columns of designs that are private at every point of a region: ``gap`` is about mechanisms on
their mesh, ``total_gap`` about all."""
RESERVED = ("task", *FIGURES, *MEASURED, *OF_REGIONS, "start", "design", "seconds")
"""Columns that the table has anyway."""


@dataclass(frozen=True)
class Point:
    """One point of an axis: what the table shows, and the values by place."""

    cells: tuple[Cell, ...]
    settings: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Axis:
    """Named columns and their points."""

    columns: tuple[str, ...]
    points: tuple[Point, ...]


def simple_axis(place: str, values: Sequence[Any] | Mapping[str, Any], name: str = "") -> Axis:
    """One place with a list of values, or a mapping from what the table shows to the value. Raises
    ProblemError on an empty list."""
    parse_place(place)
    labelled = values.items() if isinstance(values, Mapping) else ((None, v) for v in values)
    points = tuple(
        Point((_cell(value) if label is None else str(label),), ((place, value),))
        for label, value in labelled
    )
    if not points:
        raise ProblemError("is empty", where=f"axes[{place!r}]", remedy="Give at least one value")
    return Axis((name or place,), points)


def zipped(axes: Sequence[Axis]) -> Axis:
    """Axes of equal length that move together. Raises ProblemError on different lengths."""
    lengths = [len(axis.points) for axis in axes]
    if len(set(lengths)) > 1:
        raise ProblemError(
            f"the axes that move together have {' and '.join(map(str, lengths))} points",
            remedy="Give them the same number",
        )
    points = [
        Point(sum((point.cells for point in row), ()), sum((p.settings for p in row), ()))
        for row in zip(*(axis.points for axis in axes), strict=True)
    ]
    return Axis(sum((axis.columns for axis in axes), ()), tuple(points))


def named(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """The axes with short names for columns that are still called by their place: the last key,
    where it says enough. Raises ProblemError where two columns have one name, or one that the table
    has anyway."""
    listed = tuple(axes)
    columns = [name for axis in listed for name in axis.columns]
    places = [place for axis in listed for place, _ in axis.points[0].settings]
    short = [name.rpartition(".")[2] for name in columns]
    plain = []
    for name, place, shorter in zip(columns, places, short, strict=True):
        default = shorter if short.count(shorter) == 1 else name
        taken = f"axis_{name}" if default in RESERVED else default
        plain.append(taken if name == place else name)
    for name in plain:
        if plain.count(name) > 1 or name in RESERVED:
            raise ProblemError(
                f"the name {name!r} is taken", where="axes", remedy="Give the axis another name"
            )
    chosen = iter(plain)
    return tuple(Axis(tuple(next(chosen) for _ in axis.columns), axis.points) for axis in listed)


def _cell(value: Any) -> Cell:
    """A value as the table shows it."""
    if value is None or isinstance(value, str | bool | int | float):
        return float(value) if isinstance(value, float) else value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _cell(value.item())
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and name else type(value).__name__
