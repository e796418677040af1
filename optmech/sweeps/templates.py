"""What a sweep varies: the document of a problem file, or a ``Problem``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from optmech.base.read_only import record
from optmech.base.shown import names_of_fields
from optmech.designs.encoding import encode_problem
from optmech.errors import ProblemError, inside
from optmech.exact.number import Exact
from optmech.files import build_problem, find_problem
from optmech.problem import Problem
from optmech.reading.data import DataFile
from optmech.reading.source import read_document
from optmech.spaces.distances import Named
from optmech.spaces.prior import Prior
from optmech.sweeps.axes import parse_place, with_value

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
                        listed[k] = attrs.evolve(listed[k], **{str(key): value})
                case (part, *_):
                    parts[part] = value
        return Problem(**parts, title=self.problem.title)


Template = DocumentTemplate | ObjectTemplate
"""A problem with places to change: small, and ready to be sent to another process."""


def same_problem(a: Problem, b: Problem) -> bool:
    """Whether two problems are written in the same numbers and words."""
    return digest(_content(a)) == digest(_content(b))


def _content(problem: Problem) -> object:
    return {k: v for k, v in encode_problem(problem).items() if k != "loss_name"}


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
    if (is_dataclass(value) or attrs.has(type(value))) and not isinstance(value, type):
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
    """SHA-256 of the regular file of that name, None where there is none."""
    path = directory / name
    with suppress(OSError, ValueError):
        if 0 < len(name) < _LONGEST_NAME and path.is_file():
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
    return None
