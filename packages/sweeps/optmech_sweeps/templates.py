"""What a sweep varies: the document of a problem file, or a ``Problem``; and its axes, which are
columns of its table and places in a problem that every point changes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.read_only import record
from optmech.base.shown import names_of_fields
from optmech.designs.encoding import encode_problem
from optmech.errors import ProblemError, inside
from optmech.exact.number import Exact
from optmech.files import build_problem, find_problem
from optmech.problem import Problem
from optmech.reading.bounded import MAX_BYTES, opened
from optmech.reading.data import DataFile
from optmech.reading.errors import path_text
from optmech.reading.sealed import MAX_BYTES as DESIGN_BYTES
from optmech.reading.source import read_document
from optmech.spaces.distances import Named
from optmech.spaces.prior import Prior
from optmech_sweeps.files import PLACE

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
MEASURED = ("attack_error", "true_epsilon", "repaired_loss")
"""Columns that are measured anew from a design: of its summary they are no part. The last two are
of designs with thresholds: the ε that they really have, and the objective once that is repaired."""
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


Settings = Iterable[tuple[str, Any]]
_TEXTS = ("title", "description", "source", "kind")
"""Keys whose texts name no files."""
_LONGEST_NAME = 4096
_PARTS = ("prior", "loss", "observables", "objective", "constraints")


@dataclass(frozen=True)
class DocumentTemplate:
    """The document of a problem file; names of data files in it are relative to ``path``."""

    document: dict[str, Any]
    path: Path

    @classmethod
    def read(cls, name: str | Path) -> DocumentTemplate:
        """That of a file, or of the gallery by its name."""
        path = find_problem(name)
        return cls(read_document(path), path.absolute())

    def source(self, settings: Settings) -> DocumentTemplate:
        """The template with values changed at places; raises ProblemError where one is missing."""
        document: Any = self.document
        for place, value in settings:
            document = with_value(document, parse_place(place), value)
        return DocumentTemplate(document, self.path)

    def identity(self) -> object:
        """What tells templates apart: the document, with the content of its data files in place of
        their names.

        Any text that names a file is taken for a data file, whatever its key.
        """
        return self._with_content(self.document)

    def values(self, settings: Settings) -> object:
        """What tells settings apart."""
        return [[place, self._with_content(value)] for place, value in settings]

    def build(self) -> Problem:
        """The problem of the document; raises ProblemError where it does not make one."""
        return build_problem(self.document, self.path).problem

    def _with_content(self, node: Any) -> Any:
        if isinstance(node, Mapping):
            inner = {
                key: value if key in _TEXTS else self._with_content(value)
                for key, value in node.items()
            }
            package, resource = node.get("package"), node.get("resource")
            if isinstance(package, str) and isinstance(resource, str):
                inner["resource"] = None
                with suppress(ProblemError):
                    path = DataFile(package=package, resource=resource).path(Path())
                    inner["resource"] = _digest(path.parent, path.name)
            return inner
        if isinstance(node, list):
            return [self._with_content(value) for value in node]
        found = _digest(self.path.parent, node) if isinstance(node, str) else None
        return node if found is None else {"content": found}


@record
class ObjectTemplate:
    """A ``Problem``; places are its arguments and those of its constraints."""

    problem: Problem
    settings: tuple[tuple[str, Any], ...] = ()

    def source(self, settings: Settings) -> ObjectTemplate:
        """The template with arguments changed; raises ProblemError where one is missing."""
        listed = tuple(settings)
        for place, _ in listed:
            _require_place(self.problem, place)
        return replace(self, settings=listed)

    def identity(self) -> object:
        """The problem as a design file would hold it, but for a name that the numbers imply."""
        return _content(self.problem)

    def values(self, settings: Settings) -> object:
        """What tells settings apart."""
        return [[place, value] for place, value in settings]

    def build(self) -> Problem:
        """The problem with the changed arguments."""
        parts: dict[Any, Any] = {name: getattr(self.problem, name) for name in _PARTS}
        for place, value in self.settings:
            match parse_place(place):
                case (_, int(k), key):
                    parts["constraints"] = listed = list(parts["constraints"])
                    with inside(f"constraints[{k}]"):
                        listed[k] = replace(listed[k], **{str(key): value})
                case (part, *_):
                    parts[part] = value
        return Problem(**parts, title=self.problem.title)


Template = DocumentTemplate | ObjectTemplate
"""A problem with places to change: small, and ready to be sent to another process."""


def same_problem(a: Problem, b: Problem) -> bool:
    """Whether two problems are written in the same numbers and words."""
    return digest(_content(a)) == digest(_content(b))


def _content(problem: Problem) -> object:
    # along a line the loss between vertices goes by the name
    implied = set() if problem.statement.segments is not None else {"loss_name"}
    return {k: v for k, v in encode_problem(problem).items() if k not in implied}


def _require_place(problem: Problem, place: str) -> None:
    match parse_place(place):
        case (part,) if part in _PARTS:
            return
        case ("constraints", int(k), name):
            known = len(problem.constraints)
            if k >= known:
                raise ProblemError(
                    f"does not exist: the problem has {known} constraints",
                    where=f"constraints[{k}]",
                    remedy="Name one of them",
                )
            names = names_of_fields(problem.constraints[k])
            if name not in names:
                raise ProblemError(
                    f"there is no argument {name!r}",
                    where=f"constraints[{k}]",
                    remedy=f"Use one of {', '.join(names)}",
                )
        case _:
            raise ProblemError(
                "is no place in a Problem",
                where=place,
                remedy=f"Use {', '.join(_PARTS[:-1])}, or constraints[k] with one of its arguments",
            )


def plain(value: Any) -> object:
    """A value as JSON that differs where the value does. Raises ProblemError on an object whose
    content cannot be told."""
    if isinstance(value, Exact):
        return value.text
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        data = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return [str(value.dtype), list(value.shape), data]
    if isinstance(value, Prior):
        return [list(map(str, value.domain.labels)), plain(value.weights)]
    if isinstance(value, Named):
        return {"type": repr(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        inside = {name: plain(getattr(value, name)) for name in names_of_fields(value)}
        return {"type": type(value).__qualname__, **inside}
    raise ProblemError(
        f"a {type(value).__name__} cannot be told from another in a later run",
        where="axes",
        remedy="Give numbers, texts, arrays, priors, or distances of optmech",
    )


def digest(value: object) -> str:
    """SHA-256 of plain values."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(directory: Path, name: str) -> str | None:
    """SHA-256 of the file of that name, None where there is none that could be read as one: a pipe,
    a file without an end, or one longer than any that is read."""
    design = name.lower().endswith((".json", ".gz"))
    left = DESIGN_BYTES if design else MAX_BYTES
    with suppress(ProblemError):
        if 0 < len(name) < _LONGEST_NAME:
            found = hashlib.sha256()
            with opened(directory / name, left) as stream:
                while part := stream.read(min(left, 2**20)):
                    found.update(part)
                    left -= len(part)
            return found.hexdigest()
    return None
