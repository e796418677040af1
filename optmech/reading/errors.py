"""Every error of a problem file at once, one line each, with its path into the file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from optmech.errors import OptmechError, ProblemError

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

    def add(self, error: OptmechError) -> None:
        """Keep an error, unless the same is kept already."""
        remedy = _in_keys(error.remedy) or "Correct this value"
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


def _in_keys(remedy: str) -> str:
    """A remedy for Python in the words of files."""
    for python, keys in _KEYS:
        remedy = python.sub(keys, remedy)
    return remedy


def _placed(file: str, error: OptmechError) -> OptmechError:
    """The error of a file, printable."""
    where = f"{file}: {error.where}" if error.where else file
    return type(error)(
        printable(error.message), where=printable(where), remedy=printable(error.remedy)
    )
