"""Trace files: what ``optmech trace`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optmech.errors import ProblemError
from optmech.files.gallery import find_problem
from optmech.files.validate import checked, closest, look_for_kinds, require_keys, require_kind
from optmech.reading.data import named_files
from optmech.reading.errors import Collector, show
from optmech.reading.source import read_document
from optmech_traces.chains.task import ChainTask
from optmech_traces.files import gaussian, markov
from optmech_traces.gaussian.task import GaussianTask

WHAT, REMEDY = "a trace", "Use optmech trace {0}"

_OF_OTHERS = {"loss", "constraints", "axes", "problem", "engine"}


@dataclass(frozen=True)
class TraceFile:
    """A task about a trace, and where it stands."""

    task: GaussianTask | ChainTask
    path: Path
    inputs: tuple[Path, ...] = ()
    """The file itself and those that it names: what no output may replace."""


def schema_model() -> Any:
    """What trace files may be, for their JSON Schema."""
    return gaussian.GaussianTrace | markov.section()


def read(name: str | Path) -> TraceFile:
    """Read a trace file (TOML or JSON), or one of the gallery by its name. Raises ProblemError with
    every error of the file at once, one line each."""
    path = find_problem(name, "trace")
    document = read_document(path)
    # what lacks a kind and nothing else is a trace file
    if document.get("kind", "noise" if _OF_OTHERS & set(document) else None) == "noise":
        require_kind(document, "trace", path)
    errors = Collector()
    look_for_kinds(document)
    models: dict[str, Any] = {"gaussian": gaussian.GaussianTrace, "markov": markov.section()}
    kind = document.get("kind")
    if kind is None:
        remedy = 'Write kind = "gaussian"'
        raise ProblemError("is missing", where=f"{path}: kind", remedy=remedy)
    if kind not in [*models]:
        remedy = closest(kind, [*models])
        raise ProblemError(f"{show(kind)} is unknown", where=f"{path}: kind", remedy=remedy)
    require_keys(document, models[kind], errors)
    spec = checked(models[kind], document, errors, path)
    task: GaussianTask | ChainTask | None
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        task = spec.build(path.parent, errors, spec.title or path.stem)
    errors.refuse(str(path))
    if task is None:
        raise ProblemError("could not be built", where=path)
    inputs = (path, *named_files(document, path.parent))
    return TraceFile(task, path, inputs)
