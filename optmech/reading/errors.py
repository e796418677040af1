"""Every error of a problem file at once, one line each, with its path into the file; and what a
file is that was given for another: of the kinds that optmech knows, and others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from optmech.base.storage import path_of
from optmech.errors import OptmechError, ProblemError

P = ParamSpec("P")
T = TypeVar("T")
MAX_LINES = 50
MAX_KEPT = 200
"""Errors of a file that are put into words: nobody reads more, and a file may have millions."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of Unicode that a terminal obeys instead of showing: controls, marks of direction and
other formats, halves of surrogate pairs, private use, separators of lines and paragraphs."""


_KEYS = [
    (re.compile(python), keys)
    for python, keys in (
        (r"om\.distances\.(\w+)\(\)", r'distance = "\1"'),
        (r"om\.Mesh\.grid or om\.Mesh\.around", 'everywhere = { kind = "grid", ... }'),
        (r"\bobservables\.(coarser|subsets)\b", r'[observables] kind = "\1"'),
        (r"\bobservables\.suppressible\b", 'observables.suppress = "..."'),
        (r"\ba Domain of points\b", 'secrets of kind = "points" or "lonlat"'),
        (r"Domain\.range\(count\)", 'kind = "line" with count'),
        (r"Domain\.geographic\(labels, lonlat\)", 'kind = "lonlat"'),
        (r"; Domain\.geographic in Python", ""),
    )
]
"""What is said in the words of Python, and what stands for it in a file."""


class ProblemFileError(ProblemError):
    """Several errors of one problem file; ``errors`` holds them, ``str`` has a line for each."""

    errors: tuple[OptmechError, ...] = ()
    uncounted: int = 0

    def __str__(self) -> str:
        lines = [str(_placed(self.where, error)) for error in self.errors[:MAX_LINES]]
        more = len(self.errors) - len(lines) + self.uncounted
        if more > 0:
            lines.append(f"{printable(self.where)}: and {more} more errors")
        return "\n".join(lines)


@dataclass
class Collector:
    """Gathers the errors of independent parts of a file, the first ``MAX_KEPT`` of them."""

    errors: list[OptmechError] = field(default_factory=list)
    uncounted: int = 0
    """How many more there are."""
    _seen: set[str] = field(default_factory=set)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Keeps a ProblemError raised inside, reported under ``place``, or at its own place where
        that is empty."""
        try:
            yield
        except ProblemError as error:
            self.add(error.at(place) if place else error)

    def tried(self, place: str, make: Callable[P, T], *args: P.args, **given: P.kwargs) -> T | None:
        """What is made, or None where that raises a ProblemError, which is kept as by ``at``."""
        try:
            return make(*args, **given)
        except ProblemError as error:
            self.add(error.at(place) if place else error)
            return None

    def add(self, error: OptmechError) -> None:
        """Keep an error, unless the same is kept already."""
        remedy = error.remedy or "Correct this value"
        for python, keys in _KEYS:
            remedy = python.sub(keys, remedy)
        if remedy != error.remedy:
            error = type(error)(error.message, where=error.where, remedy=remedy)
        if len(self.errors) >= MAX_KEPT:
            self.uncounted += 1
        elif str(error) not in self._seen:
            self._seen.add(str(error))
            self.errors.append(error)

    def refuse(self, file: str) -> None:
        """Raise what was gathered, if anything, as the errors of ``file``."""
        if len(self.errors) == 1:
            raise _placed(file, self.errors[0])
        if self.errors:
            count = len(self.errors) + self.uncounted
            failure = ProblemFileError(f"{count:,} errors", where=file)
            failure.errors, failure.uncounted = tuple(self.errors), self.uncounted
            raise failure


def printable(text: str) -> str:
    """``text`` with every character shown as an escape that a terminal would obey: controls, line
    breaks, marks of the direction of writing and other invisible formats."""
    if text.isprintable():
        return text
    return "".join(
        ascii(char)[1:-1] if unicodedata.category(char) in _UNSEEN else char for char in text
    )


def show(value: object) -> str:
    """A value of a file, short enough for one line of a message."""
    try:
        text = repr(value)
    except ValueError:
        text = f"a {type(value).__name__}"
    return printable(text if len(text) <= 60 else text[:57] + "...")


def path_text(parts: Iterable[str | int]) -> str:
    """A path into a file: ``constraints[1].epsilon``; unusual keys are quoted."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text


def _placed(file: str, error: OptmechError) -> OptmechError:
    """The error of a file, printable."""
    where = f"{file}: {error.where}" if error.where else file
    return type(error)(
        printable(error.message), where=printable(where), remedy=printable(error.remedy)
    )


Kind = Literal[
    "problem", "sweep", "trace", "noise", "profile", "run", "map",
    "design", "region", "family", "counts", "packed", "ledger",
]  # fmt: skip
WORDS: dict[Kind, tuple[str, str]] = {
    "problem": ("a problem file", "Use optmech solve"),
    "sweep": ("a sweep file", "Use optmech sweep"),
    "trace": ("a trace file", "Use optmech trace"),
    "noise": ("noise for a trace", 'Name it in a trace file: noise = { file = "..." }'),
    "profile": ("a solver profile", "Use optmech solve FILE --profile with it"),
    "run": ("the manifest of a sweep", "Use optmech sweep with the sweep file"),
    "map": ("a map", "Name it in a problem file, or protect its points with optmech protect"),
    "design": ("a design", "Use optmech check, attack, measure, sample, protect or report"),
    "region": (
        "a design for every point of a region, of a format that is not read any more",
        "Solve its problem again with optmech solve -o",
    ),
    "family": ("a family of coupling mechanisms", "Use optmech check, sample or protect"),
    "counts": ("noise for numbers", "Use optmech check or sample"),
    "packed": (
        "a packed mechanism",
        "Use optmech sample or protect, or optmech check city.omm design.json; all else works on "
        "the design that it was packed from",
    ),
    "ledger": ("a ledger of draws", "Use optmech show"),
}
"""What each is, and the command for it."""
_FORMATS: dict[str, Kind] = {
    "optmech-design/": "design",
    "optmech-everywhere/": "region",
    "optmech-targets/": "family",
    "optmech-noise/": "counts",
    "optmech-sweep/": "run",
    "optmech-ledger/": "ledger",
}
_TABLE = (
    "a table of data",
    "Write a problem file for it with optmech init; a matrix needs --problem",
)
_ENDINGS = {
    ".csv": _TABLE,
    ".tsv": _TABLE,
    ".parquet": _TABLE,
    ".xlsx": ("a spreadsheet", "Save it as CSV"),
    ".html": ("a page", "Give the design that it shows"),
    ".png": ("a picture", "Give the design that it shows"),
    ".svg": ("a picture", "Give the design that it shows"),
    ".pdf": ("a picture", "Give the design that it shows"),
    ".omm": WORDS["packed"],
    ".npy": ("a matrix", "Give it with --problem, or take it in with optmech adopt"),
    ".nc": ("a matrix", "Give it with --problem, or take it in with optmech adopt"),
    ".py": ("a program", "Give what it saves"),
}
_PACKED = (".gz", ".bz2", ".xz")


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """What a document looks like, None where that cannot be told."""
    if (kind := kind_of_format(document.get("format"))) is not None:
        return kind
    if document.get("type") == "FeatureCollection":
        return "map"
    if "kind" in document:
        return "noise" if document["kind"] == "noise" else "trace"
    if "axes" in document or "problem" in document:
        return "sweep"
    if {"secrets", "loss", "constraints", "prior"} & set(document):
        return "problem"
    return "profile" if "engine" in document else None


def kind_of_format(written: object) -> Kind | None:
    """What a document of that format is, of whichever version; None for any other."""
    if not isinstance(written, str):
        return None
    return next((kind for prefix, kind in _FORMATS.items() if written.startswith(prefix)), None)


def by_ending(path: str | Path) -> tuple[str, str] | None:
    """What a file is by its name, and what to do with it; None where its name says nothing."""
    plain = path_of(path)
    if plain.suffix.lower() in _PACKED:
        plain = plain.with_suffix("")
    return _ENDINGS.get(plain.suffix.lower())
