"""What each constraint of a problem promises, with its name and its words."""

from __future__ import annotations

from typing import Any

from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.problem import Problem
from optmech.problem.promised import Promised


@record
class Stated(Shown):
    """One constraint: its place in the problem, its name and words, and what it promises.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(line), km, constraints=[om.MetricPrivacy("ln 2", km)])
    >>> stated = promises_of(problem)[0]
    >>> stated.title, stated.promised.scope, stated.promised.measure.course
    ('metric privacy', 'places', 'straight')
    """

    index: int
    kind: str
    title: str
    words: str
    promised: Promised

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        own = {"index": self.index, "kind": self.kind, "words": self.words}
        return own | self.promised.plain()


def promises_of(problem: Problem) -> tuple[Stated, ...]:
    """What each constraint of a problem promises."""
    space = problem.space
    return tuple(
        Stated(k, c.kind, c.called, c.promise(space), c.promised(space))
        for k, c in enumerate(problem.constraints)
    )
