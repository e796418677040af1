"""Problem files (TOML or JSON) and the gallery."""

from __future__ import annotations

from typing import Any

from optmech.files.gallery import GalleryEntry, find_problem, list_gallery, list_traces
from optmech.files.load import ProblemFile, build_problem, load_problem, load_task, read_problem

__all__ = [
    "GalleryEntry",
    "ProblemFile",
    "build_problem",
    "find_problem",
    "list_gallery",
    "list_traces",
    "load_problem",
    "load_task",
    "problem_schema",
    "read_problem",
    "sweep_schema",
    "trace_schema",
]


def problem_schema() -> dict[str, Any]:
    """The JSON Schema of problem files, format 1."""
    from optmech.files.schema import problem_schema as schema

    return schema()


def trace_schema() -> dict[str, Any]:
    """The JSON Schema of trace files, format 1."""
    from optmech.files.schema.traces import trace_schema as schema

    return schema()


def sweep_schema() -> dict[str, Any]:
    """The JSON Schema of sweep files, format 1."""
    from optmech.files.schema.sweep import sweep_schema as schema

    return schema()
