"""The tasks of a sweep: every combination of its axes' points, in an order that allows reuse."""

import math
from collections.abc import Iterator
from dataclasses import asdict, replace

from optmech.base.read_only import record
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.pipeline.profiles import Profile
from optmech.sweeps.axes import Axis, Cell, Point
from optmech.sweeps.templates import Template, digest

MOST_TASKS = 10_000_000
FORMAT = "optmech-sweep/1"


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
        return {
            "format": FORMAT,
            "problem": digest(self.template.identity()),
            "axes": digest([[axis.columns, self._content(axis)] for axis in self.axes]),
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

    def _content(self, axis: Axis) -> object:
        return [[point.cells, self.template.values(point.settings)] for point in axis.points]
