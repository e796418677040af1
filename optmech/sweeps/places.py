"""Places in a problem, like ``constraints[0].epsilon``, and documents with other values there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from optmech.errors import ProblemError

_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")
_PLACE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[0-9]+\]|\.[A-Za-z_][A-Za-z0-9_]*)*")

Steps = tuple[str | int, ...]


def parse_place(text: object) -> Steps:
    """The keys and indices of a place.

    Raises
    ------
    ProblemError
        On anything that is not written like ``constraints[0].epsilon``.
    """
    if not isinstance(text, str) or not _PLACE.fullmatch(text):
        raise ProblemError(
            f"{str(text)[:60]!r} is not a place in a problem",
            where="axes",
            remedy="Write it like constraints[0].epsilon or prior",
        )
    return tuple(
        match[1] if match[1] is not None else int(match[2]) for match in _STEP.finditer(text)
    )


def with_value(document: Any, steps: Steps, value: Any) -> Any:
    """A copy of ``document`` with ``value`` at a place; all that is above must be there.

    Raises
    ------
    ProblemError
        Where a table or array on the way is missing.
    """
    return _changed(document, steps, 0, value)


def _changed(node: Any, steps: Steps, depth: int, value: Any) -> Any:
    if depth == len(steps):
        return value
    step = steps[depth]
    last = depth + 1 == len(steps)
    if isinstance(step, int):
        if not isinstance(node, list):
            raise _missing(steps[: depth + 1], "is not an array there")
        if step >= len(node):
            raise _missing(steps[: depth + 1], f"does not exist: there are {len(node)}")
        return [*node[:step], _changed(node[step], steps, depth + 1, value), *node[step + 1 :]]
    if not isinstance(node, dict):
        raise _missing(steps[:depth], "is not a table")
    if step not in node and not last:
        raise _missing(steps[: depth + 1], "does not exist in the problem")
    inner = value if last else _changed(node[step], steps, depth + 1, value)
    return {**node, step: inner}


def _missing(steps: Sequence[str | int], what: str) -> ProblemError:
    return ProblemError(
        what, where=written(steps), remedy="Name a place that the problem template has"
    )


def written(steps: Sequence[str | int]) -> str:
    """The inverse of ``parse_place``."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text
