"""Places in a problem, like ``constraints[0].epsilon``, and documents with other values there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from optmech.errors import ProblemError
from optmech.reading.errors import path_text

_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")
_PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[0-9]+\]|\.[A-Za-z_][A-Za-z0-9_]*)*")

Steps = tuple[str | int, ...]


def parse_place(text: object) -> Steps:
    """The keys and indices of a place. Raises ProblemError on anything that is not written like
    ``constraints[0].epsilon``."""
    if not isinstance(text, str) or not _PLACE.fullmatch(text):
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
