"""Which command a document is for, where it was given to another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from optmech.errors import ProblemError

Kind = Literal["problem", "sweep", "trace", "noise", "profile", "design", "family", "run"]
_WORDS: dict[Kind, tuple[str, str]] = {
    "problem": ("a problem file", "Use optmech solve"),
    "sweep": ("a sweep file", "Use optmech sweep"),
    "trace": ("a trace file", "Use optmech trace"),
    "noise": ("noise for a trace", 'Name it in a trace file: noise = { file = "..." }'),
    "profile": ("a solver profile", "Use optmech solve FILE --profile with it"),
    "design": ("a design", "Use optmech check, attack, measure, sample or report"),
    "family": ("a family of mechanisms", "Use optmech check or sample"),
    "run": ("the manifest of a sweep", "Use optmech sweep with the sweep file"),
}
_FORMATS: dict[str, Kind] = {
    "optmech-design/": "design",
    "optmech-targets/": "family",
    "optmech-sweep/": "run",
}


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """What a document looks like, None where that cannot be told."""
    written = document.get("format")
    for prefix, kind in _FORMATS.items():
        if isinstance(written, str) and written.startswith(prefix):
            return kind
    if "kind" in document:
        return "noise" if document["kind"] == "noise" else "trace"
    if "axes" in document or "problem" in document:
        return "sweep"
    if {"secrets", "loss", "constraints", "prior"} & set(document):
        return "problem"
    return "profile" if "engine" in document else None


def require_kind(document: Mapping[str, Any], wanted: Kind, path: Path) -> None:
    """Raises ProblemError, with the command to use, where a document is clearly of another kind."""
    found = kind_of(document)
    if found is not None and found != wanted:
        what, remedy = _WORDS[found]
        raise ProblemError(
            f"this is {what}, not {_WORDS[wanted][0]}", where=str(path), remedy=remedy
        )
