"""Problem files (TOML or JSON) and the gallery."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from optmech.base.extensions import FILES, TASKS, extension
from optmech.files.gallery import GalleryEntry, find_problem, list_gallery, list_tasks
from optmech.files.load import ProblemFile, build_problem, load_problem, load_task, read_problem

__all__ = [
    "GalleryEntry",
    "ProblemFile",
    "build_problem",
    "find_problem",
    "list_gallery",
    "list_tasks",
    "load_problem",
    "load_task",
    "problem_schema",
    "read_problem",
    "sweep_schema",
    "task_schema",
]


def problem_schema() -> dict[str, Any]:
    """The JSON Schema of problem files, format 1."""
    from optmech.files.problem import problem_section

    return _schema(problem_section)


def task_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of files for a kind of task of another distribution, format 1."""
    return _schema(lambda: extension(TASKS, kind).schema_model())


def sweep_schema() -> dict[str, Any]:
    """The JSON Schema of sweep files, format 1."""
    return _schema(lambda: extension(FILES, "run").schema_model())


def _schema(*models: Callable[[], Any]) -> dict[str, Any]:
    """What fits one of the models, with the kinds of constraints of installed packages."""
    from pydantic import TypeAdapter

    from optmech.problem.constraint import require_installed

    require_installed()
    content = TypeAdapter(reduce(or_, [model() for model in models])).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **content}
