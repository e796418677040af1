"""What a file is that was given for another: of the kinds that optmech knows, and others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

Kind = Literal[
    "problem", "sweep", "trace", "noise", "counts", "profile", "design", "family", "run", "map"
]
WORDS: dict[Kind, tuple[str, str]] = {
    "problem": ("a problem file", "Use optmech solve"),
    "sweep": ("a sweep file", "Use optmech sweep"),
    "trace": ("a trace file", "Use optmech trace"),
    "noise": ("noise for a trace", 'Name it in a trace file: noise = { file = "..." }'),
    "counts": ("noise for whole numbers", "Use optmech check or sample"),
    "profile": ("a solver profile", "Use optmech solve FILE --profile with it"),
    "design": ("a design", "Use optmech check, attack, measure, sample, protect or report"),
    "family": ("a family of mechanisms", "Use optmech check, sample or protect"),
    "run": ("the manifest of a sweep", "Use optmech sweep with the sweep file"),
    "map": ("a map", "Name it in a problem file, or protect its points with optmech protect"),
}
"""What each is, and the command for it."""
_FORMATS: dict[str, Kind] = {
    "optmech-design/": "design",
    "optmech-targets/": "family",
    "optmech-noise/": "counts",
    "optmech-sweep/": "run",
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
    ".omm": ("a packed mechanism", "Use optmech check, sample or protect"),
    ".npy": ("a matrix", "Give it with --problem, or take it in with optmech adopt"),
    ".nc": ("a matrix", "Give it with --problem, or take it in with optmech adopt"),
    ".py": ("a program", "Give what it saves"),
}
_PACKED = (".gz", ".bz2", ".xz")


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """What a document looks like, None where that cannot be told."""
    written = document.get("format")
    for prefix, kind in _FORMATS.items():
        if isinstance(written, str) and written.startswith(prefix):
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


def by_ending(path: str | Path) -> tuple[str, str] | None:
    """What a file is by its name, and what to do with it; None where its name says nothing."""
    plain = Path(path)
    if plain.suffix.lower() in _PACKED:
        plain = plain.with_suffix("")
    return _ENDINGS.get(plain.suffix.lower())
