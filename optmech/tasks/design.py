"""A design problem as a task: what ``solve`` answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optmech.designs.design import Design
from optmech.problem import Problem


@dataclass(frozen=True, eq=False)
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
