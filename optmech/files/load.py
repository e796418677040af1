"""``load_problem``, ``load_task``: from the name of a file or of the gallery to what it asks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.extensions import TASKS, added, extension
from optmech.base.read_only import record
from optmech.errors import ProblemError, inside
from optmech.files.gallery import find_problem, gallery_names
from optmech.files.validate import (
    require_kind,
    validate,
)
from optmech.problem import Problem
from optmech.reading.data import named_files
from optmech.reading.errors import Collector, kind_of
from optmech.reading.source import parsed_document, read_document
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.files.transport import TransportTask


@record
class ProblemFile:
    """A problem with what its file says about it."""

    problem: Problem
    path: Path
    title: str
    description: str
    source: str
    profile: str | None
    """Name of the recommended solver profile."""
    optimum: float | None
    """The optimal objective, where it is known."""
    transport: TransportTask | None = None
    """What ``optmech transport`` is asked to do."""
    mechanisms: tuple[dict[str, Any], ...] = ()
    """Tables of known mechanisms, as they were written."""
    inputs: tuple[Path, ...] = ()
    """The file itself and those that it names: what no output may replace."""


@record
class DesignTask:
    """A problem with the profile that its file recommends."""

    problem: Problem
    profile: str = "auto"

    @property
    def title(self) -> str:
        """That of the problem."""
        return self.problem.title

    def solve(self, **options: Any) -> Design:
        """The certified design; ``options`` and errors are those of ``om.solve``."""
        from optmech.pipeline.solve import solve

        return solve(self.problem, **{"profile": self.profile} | options)


@checked_arguments
def load_problem(name: str | Path) -> Problem:
    """Read a problem from a TOML or JSON file, or from the gallery by its name.

    Raises
    ------
    ProblemError
        With every error of the file at once, one line each: the file, the path into it
        (``constraints[1].epsilon``), what is wrong, and what to do.

    Examples
    --------
    >>> problem = om.load_problem("grid-4x4")
    >>> print(problem.title, len(problem.secrets))
    Reference: 4 x 4 unit cells, Euclidean loss 16
    """
    return read_problem(name).problem


@checked_arguments
def load_task(name: str | Path) -> DesignTask | TransportTask | Any:
    """What a problem file or a trace file asks, or one of the gallery by its name: an object whose
    ``solve()`` answers.

    A problem is answered by a ``Design``, a ``[transport]`` table by a certified family of
    mechanisms, a trace file by noise with its proved losses, or by designs for every step of a
    chain with what adversaries learn; the last two have ``summary()`` and ``save(path)``.

    Raises
    ------
    ProblemError
        With every error of the file at once, as ``load_problem``.

    Examples
    --------
    >>> task = om.load_task("line-geometric")
    >>> print(task.solve().status)
    optimal
    """
    if not os.path.exists(name) and str(name) not in gallery_names():
        for kind in added(TASKS):
            if str(name) in gallery_names(kind):
                return extension(TASKS, kind).read(name).task
    path = find_problem(name)
    document = read_document(path)
    if kind_of(document) == "trace":
        return extension(TASKS, "trace").read(path).task
    file = build_problem(document, path)
    return file.transport or DesignTask(file.problem, file.profile or "auto")


def read_problem(name: str | Path) -> ProblemFile:
    """The problem of a file or of the gallery, with its title, source, optimum and profile."""
    path = find_problem(name)
    return build_problem(read_document(path), path)


def read_text(text: str, path: Path) -> ProblemFile:
    """The problem of the text of a TOML file that is to be written to ``path``."""
    return build_problem(parsed_document(text, path), path)


def build_problem(document: dict[str, Any], path: Path) -> ProblemFile:
    """The problem of a document that was read from ``path``; data files are relative to it."""
    from optmech.files.problem import assemble

    require_kind(document, "problem", path)
    errors = Collector()
    spec = validate(document, errors)
    # overflow shows up as a non-finite entry, which is refused with its place
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        built = assemble(spec, path.parent, spec.title or path.stem, errors)
    errors.refuse(str(path))
    if built is None:
        raise ProblemError("could not be built", where=path)
    problem, task = built
    if task is not None and task.asked.divergence is not None:
        with inside(str(path)):
            problem, task = task.as_problem, None
    return ProblemFile(
        problem=problem,
        path=path,
        title=spec.title or path.stem,
        description=spec.description,
        source=spec.source,
        profile=spec.profile,
        optimum=spec.optimum,
        transport=task,
        mechanisms=tuple(spec.mechanisms),
        inputs=(path, *named_files(document, path.parent)),
    )
