"""How a problem is solved: a value that is chosen before anything is searched, says why, and does
the work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from optmech.certificate.bound import closed_form_reason, support_reason
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.pipeline import search
from optmech.pipeline.networks import along_edges, by_edges
from optmech.pipeline.profiles import Profile, load_profile
from optmech.pipeline.session import Clock, Progress
from optmech.pipeline.sizes import resolution_for
from optmech.problem import Problem
from optmech.spaces.arguments import checked_arguments


@dataclass(frozen=True)
class Asked:
    """What ``solve`` is asked for."""

    problem: Problem
    profile: Profile
    clock: Clock
    progress: Progress | None = None
    start: Design | None = None
    device: str | None = None
    resolution: int | None = None

    @property
    def plainly(self) -> bool:
        """Whether nothing was said about where to begin and what computes."""
        return self.start is None and not self.device

    def refuse(self, *names: str, words: str) -> None:
        """Raise ProblemError where one of these is given."""
        for name in names:
            if getattr(self, name):
                raise ProblemError(f"is not used {words}", where=name, remedy="Leave it out")


@dataclass(frozen=True)
class Plan(ABC):
    """One way to solve a problem, and why it is taken."""

    name: ClassVar[str]
    asked: Asked

    @classmethod
    @abstractmethod
    def of(cls, asked: Asked) -> Self | None:
        """The plan where it is the way to go; None where it is not."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why, in words."""

    @abstractmethod
    def work(self) -> Design | None:
        """The design; None where what computes broke off, and the next plan is to be taken."""

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True)
class OnMesh(Plan):
    """On the mesh that the problem states."""

    program: ClassVar[str]
    """What the program is over, in words, with room for a number of control points."""

    @property
    def reason(self) -> str:
        mesh = self.asked.problem.mesh
        assert mesh is not None
        program = self.program.format(mesh.rows)
        return f"privacy at every point of {mesh.words}: a program over {program}"


@dataclass(frozen=True)
class EveryPoint(OnMesh):
    """On the triangles of a region."""

    name = "every point"
    program = "cones of its {:,} control points, and cells for the bound of every mechanism"

    @classmethod
    def of(cls, asked: Asked) -> Self | None:
        mesh = asked.problem.mesh
        if mesh is None or not mesh.is_region:
            return None
        asked.refuse("start", "device", "resolution", words="for privacy at every point")
        return cls(asked)

    def work(self) -> Design:
        # nearly all problems do without what this loads
        from optmech.pipeline.meshes import solve_everywhere

        return solve_everywhere(self.asked.problem, self.asked.profile, self.asked.progress)


@dataclass(frozen=True)
class ForStatistics(Plan):
    """A mechanism for estimates from many reports."""

    name = "for statistics"

    @classmethod
    def of(cls, asked: Asked) -> Self | None:
        if asked.problem.statement.survey is None:
            return None
        asked.refuse("start", "device", "resolution", words="for a variance")
        return cls(asked)

    @property
    def reason(self) -> str:
        count = len(self.asked.problem.secrets)
        return (
            f"the variance of a statistic of {count:,} secrets: a program over symmetric matrices, "
            "rounded to extreme columns"
        )

    def work(self) -> Design:
        from optmech.pipeline.crowd import solve_crowd

        own = self.asked
        clock = own.clock
        if own.progress is not None:
            clock.progress = own.progress
        return solve_crowd(own.problem, own.profile.gap, clock)


@dataclass(frozen=True)
class AlongNetwork(OnMesh):
    """At every point of a line or of roads."""

    name = "along a network"
    program = "its {:,} vertices, and one for the bound of every mechanism"

    @classmethod
    def of(cls, asked: Asked) -> Self | None:
        if asked.problem.mesh is None or asked.problem.mesh.is_region:
            return None
        asked.refuse("resolution", words="for privacy at every point")
        return cls(asked)

    def work(self) -> Design:
        from optmech.pipeline.meshes import solve_network

        own = self.asked
        return solve_network(own.problem, own.profile, own.progress, own.start, own.device)


@dataclass(frozen=True)
class AlongEdges(Plan):
    """Along the edges of a graph, where they are all that limits pairs of many secrets."""

    name = "along edges"

    @classmethod
    def of(cls, asked: Asked) -> Self | None:
        fits = asked.plainly and asked.resolution is None and along_edges(asked.problem)
        return cls(asked) if fits else None

    @property
    def reason(self) -> str:
        secrets = len(self.asked.problem.secrets)
        return f"nothing but ratios along edges limits {secrets:,} secrets: no table of pairs"

    def work(self) -> Design | None:
        return by_edges(self.asked.problem, self.asked.profile, self.asked.progress)


@dataclass(frozen=True)
class AtResolution(Plan):
    """By cells of the secrets, and then by the whole program where that is worth it."""

    name = "at a resolution"
    cells: int
    why: str

    @classmethod
    def of(cls, asked: Asked) -> Self | None:
        if not asked.plainly:
            asked.refuse("resolution", words="with a start or a device")
            return None
        named = asked.resolution is not None
        cells, why = resolution_for(asked.problem, asked.profile, asked=named)
        return cls(asked, cells, why) if cells else None

    @property
    def reason(self) -> str:
        return self.why

    def work(self) -> Design:
        from optmech.pipeline.resolution import solve_at_resolution

        own, profile = self.asked, self.asked.profile
        left, onward = own.clock.rest(profile).at_resolution(self.cells), not profile.resolution
        return solve_at_resolution(own.problem, left, own.progress, self.why, onward=onward)


@dataclass(frozen=True)
class Whole(Plan):
    """The whole program, whose engine goes by its size and kind."""

    name = "whole program"

    @classmethod
    def of(cls, asked: Asked) -> Self:
        return cls(asked)

    @cached_property
    def reason(self) -> str:
        problem = self.asked.problem
        statement = problem.statement
        if none := support_reason(statement) or closed_form_reason(statement):
            return f"no search is needed: {none}"
        engine, why = search.first_choice(
            statement, self.asked.profile.on_device(self.asked.device)
        )
        size = f"{len(problem.secrets):,} secrets, {len(problem.observables):,} reports"
        return f"{size}; engine {engine}: {why}"

    def work(self) -> Design:
        own = self.asked
        return search.solve(
            own.problem,
            own.clock.rest(own.profile),
            progress=own.progress,
            start=own.start,
            device=own.device,
        )


PLANS: tuple[type[Plan], ...] = (
    ForStatistics, EveryPoint, AlongNetwork, AlongEdges, AtResolution, Whole,
)  # fmt: skip
"""The ways there are; the first that fits is taken."""


def plans(asked: Asked) -> Iterator[Plan]:
    """Those that fit, the one to take first. Raises ProblemError where something is asked for that
    none of them uses."""
    return filter(None, (kind.of(asked) for kind in PLANS))


@checked_arguments
def plan(problem: Problem, profile: str | Path | Profile = "auto") -> Plan:
    """How ``solve`` would go about a problem, and why; nothing is solved.

    Parameters
    ----------
    problem:
        What is wanted.
    profile:
        As of ``solve``.

    Returns
    -------
    Plan
        With a ``name`` and a ``reason``, which ``print`` shows: on a mesh for privacy at every
        point, along the edges of a graph, by cells where the whole program is too large, or the
        whole program with the engine that is taken for it first.

    Raises
    ------
    ProblemError
        On a profile that there is not, or a program too large to write down.

    Examples
    --------
    >>> cells = om.Grid(rows=2, columns=2, unit="km")
    >>> km = om.distances.euclidean()
    >>> promise = om.MetricPrivacy("ln 2", km)
    >>> print(om.plan(om.Problem(om.Prior.uniform(cells), km, constraints=[promise])))
    whole program: 4 secrets, 4 reports; engine highs: 48 pair rows are few enough ...
    """
    chosen = load_profile(profile)
    asked = Asked(problem, chosen.at_resolution(None), Clock(chosen.time_limit))
    return next(plans(asked))
