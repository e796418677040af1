"""Trace files: read, checked and built, with every error at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.errors import ProblemError
from optmech.files.gallery import TRACES, find_problem, gallery_names
from optmech.files.validate import checked, closest, look_for_kinds, require_keys, require_kind
from optmech.reading.data import named_files
from optmech.reading.errors import Collector, show
from optmech.reading.source import read_document

if TYPE_CHECKING:
    from optmech.traces.chains.task import ChainTask
    from optmech.traces.gaussian.task import GaussianTask

_OF_OTHERS = {"loss", "constraints", "axes", "problem", "engine"}


@dataclass(frozen=True, eq=False)
class TraceFile:
    """A task about a trace, and where it stands."""

    task: GaussianTask | ChainTask
    path: Path
    inputs: tuple[Path, ...] = ()
    """The file itself and those that it names: what no output may replace."""


def trace_names() -> list[str]:
    """Names of the trace files of the gallery."""
    return gallery_names(TRACES)


def read_trace(name: str | Path) -> TraceFile:
    """Read a trace file (TOML or JSON), or one of the gallery by its name. Raises ProblemError with
    every error of the file at once, one line each."""
    from optmech.files import gaussian, markov

    path = find_problem(name, TRACES)
    document = read_document(path)
    # what lacks a kind and nothing else is a trace file
    if document.get("kind", "noise" if _OF_OTHERS & set(document) else None) == "noise":
        require_kind(document, "trace", path)
    errors = Collector()
    known: dict[str, Any] = {"gaussian": gaussian, "markov": markov}
    kind = known[_kind(document, list(known), path)]
    require_keys(document, kind.REQUIRED, errors)
    look_for_kinds(document)
    spec = checked(kind.section(), document, errors, path)
    task: GaussianTask | ChainTask | None
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        task = kind.build(spec, path.parent, errors, spec.title or path.stem)
    errors.refuse(str(path))
    if task is None:
        raise ProblemError("could not be built", where=str(path))
    inputs = (path, *named_files(document, path.parent))
    return TraceFile(task, path, inputs)


def _kind(document: Mapping[str, Any], known: list[str], path: Path) -> str:
    kind = document.get("kind")
    if kind in known and isinstance(kind, str):
        return kind
    if kind is None:
        raise ProblemError("is missing", where=f"{path}: kind", remedy=f'Write kind = "{known[0]}"')
    remedy = closest(kind, known)
    raise ProblemError(f"{show(kind)} is unknown", where=f"{path}: kind", remedy=remedy)
