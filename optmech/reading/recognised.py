"""What a file is that was given for another: of the kinds that optmech knows, and others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from optmech.base.paths import path_of

Kind = Literal[
    "problem", "sweep", "trace", "noise", "profile", "run", "map",
    "design", "region", "family", "counts", "packed",
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
}
"""What each is, and the command for it."""
_FORMATS: dict[str, Kind] = {
    "optmech-design/": "design",
    "optmech-everywhere/": "region",
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
