"""The tasks of a sweep: every combination of its axes' points, in an order that allows reuse."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.files.gallery import SWEEPS, find_problem
from optmech.files.validate import checked, require_kind, validate
from optmech.pipeline.profiles import Profile, load_profile
from optmech.reading.errors import Collector
from optmech.reading.source import read_document
from optmech_sweeps import files as schema
from optmech_sweeps.templates import (
    Axis,
    Cell,
    DocumentTemplate,
    Point,
    Template,
    digest,
    named,
    simple_axis,
    zipped,
)

MOST_TASKS = 10_000_000
FORMAT = "optmech-sweep/1"
_MOST_TRIED = 200
"""Points of an axis that are tried in the template before anything is solved."""


@record
class Plan:
    """A template, axes, and how to solve.

    Tasks are numbered with the last axis moving fastest. Neighbours on that axis form chains of
    up to ``chain`` tasks, in which every task starts from the design of the one before it. Chains
    depend on the plan alone, so that a task's start is the same however the work is spread over
    processes and time.
    """

    template: Template
    axes: tuple[Axis, ...]
    profile: Profile
    chain: int = 10
    title: str = ""

    def __post_init__(self) -> None:
        if self.count > MOST_TASKS:
            raise ProblemError(
                f"{self.count:,} tasks are more than {MOST_TASKS:,}",
                where="axes",
                remedy="Split the sweep",
            )
        whole(self.chain, "chain", least=1)
        # tasks are solved side by side: more threads in each would only get in the way
        object.__setattr__(self, "profile", replace(self.profile, threads=1))

    @property
    def count(self) -> int:
        """Number of tasks."""
        return math.prod(len(axis.points) for axis in self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the axes fill."""
        return tuple(name for axis in self.axes for name in axis.columns)

    def cells(self, task: int) -> dict[str, Cell]:
        """What the table shows of a task's values."""
        values = (cell for point in self._points(task) for cell in point.cells)
        return dict(zip(self.columns, values, strict=True))

    def source(self, task: int) -> Template:
        """The problem of a task."""
        return self.template.source(
            setting for point in self._points(task) for setting in point.settings
        )

    def before(self, task: int) -> int | None:
        """The task whose design this one starts from, None at the head of a chain."""
        place = task % len(self.axes[-1].points)
        return None if place % self.chain == 0 else task - 1

    def after(self, task: int) -> int | None:
        """The task that starts from this one's design."""
        following = task + 1
        return following if following < self.count and self.before(following) == task else None

    def identity(self) -> dict[str, object]:
        """Digests by part: two plans with the same ones have the same results."""
        values = self.template.values
        axes = [
            [axis.columns, [[point.cells, values(point.settings)] for point in axis.points]]
            for axis in self.axes
        ]
        return {
            "format": FORMAT,
            "problem": digest(self.template.identity()),
            "axes": digest(axes),
            "profile": digest(asdict(replace(self.profile, name="", description=""))),
            "chain": self.chain,
            "tasks": self.count,
        }

    def _points(self, task: int) -> Iterator[Point]:
        rest = self.count
        for axis in self.axes:
            rest //= len(axis.points)
            index, task = divmod(task, rest)
            yield axis.points[index]


def read_plan(name: object) -> Plan:
    """Read a sweep file, or a sweep of the gallery by its name. Raises ProblemError with every
    error of the file at once; those of the template under ``problem``, those of a value under its
    axis."""
    if not isinstance(name, str | Path):
        raise ProblemError(
            f"{type(name).__name__} is not a sweep file",
            where="problem",
            remedy="Give axes as well, or the path of a sweep file",
        )
    path = find_problem(name, SWEEPS)
    errors = Collector()
    document = read_document(path)
    require_kind(document, "sweep", path)
    spec = checked(schema.SweepSection, document, errors, path)
    template = errors.tried("problem", _template, spec.problem, path)
    tried = (
        errors.tried(f"axes[{k}]", _axis, given, path.parent) for k, given in enumerate(spec.axes)
    )
    axes = [axis for axis in tried if axis is not None]
    columns = errors.tried("", named, axes)
    profile = None
    if template is not None:
        _try(template, axes, errors)
        name = spec.profile or template.document.get("profile") or "auto"
        profile = errors.tried("profile", load_profile, str(name))
    errors.refuse(str(path))
    assert template is not None
    assert columns is not None
    assert profile is not None
    limited = profile.with_limits(spec.gap, spec.time_limit)
    return Plan(template, columns, limited, spec.chain, spec.title or path.stem)


def _template(problem: str | dict[str, Any], path: Path) -> DocumentTemplate:
    if isinstance(problem, dict):
        return DocumentTemplate({"format": 1, **problem}, path.absolute())
    beside = path.parent / problem
    return DocumentTemplate.read(beside if os.path.isfile(beside) else problem)


def _axis(spec: schema.AnyAxis, folder: Path) -> Axis:
    if isinstance(spec, schema.ZipAxis):
        return zipped([_axis(inner, folder) for inner in spec.axes])
    return simple_axis(spec.path, spec.listed(folder), spec.column)


def _try(template: DocumentTemplate, axes: Sequence[Axis], errors: Collector) -> None:
    """Put every point of every axis into the template once, and keep what is wrong with it."""
    base = template
    for axis in axes:
        with errors.at("axes"):
            base = base.source(axis.points[0].settings)
    known = Collector()
    validate(base.document, known)
    if not known.errors:
        with errors.at("problem"):
            base.build()
    for k, axis in enumerate(axes):
        for j, point in enumerate(axis.points[:_MOST_TRIED]):
            with errors.at(f"axes[{k}], value {j + 1}"):
                own = Collector()
                validate(base.source(point.settings).document, own)
                for error in own.errors:
                    errors.add(error.at(f"axes[{k}], value {j + 1}"))
