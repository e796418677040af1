"""What a packed file says in plain words."""

from __future__ import annotations

import math
from typing import Any

from optmech.exact.number import Exact, rounded_up
from optmech.problem import Problem
from optmech.spaces.domain import Domain, Grid

DOES_NOT_PROMISE = (
    "Every report spends the stated ε again: n independent reports about one place promise only n "
    "times ε. Repeat the report for as long as the place is the same.",
    "Reports from several times tell more than each of them alone: positions follow one another.",
    "That a report was made, when, how often and from which network address is not hidden.",
    "That a position lay outside the region is seen where no report is made for it.",
    "An adversary who knows more than the prior may guess better than the stated accuracy; what is "
    "promised of probabilities holds whatever is known.",
)

MOVED = (
    "Before a draw a position is moved, by at most snap: the promise between positions that are d "
    "apart is that for a distance of d + 2 snap."
)
"""The same of mechanisms for every point."""


def constraints_of(problem: Problem) -> tuple[dict[str, Any], ...]:
    """Kind, promise in words, ε (rounded up; None where there is none) and what it is per."""
    found = []
    for stated in problem.constraints:
        epsilon = getattr(stated, "epsilon", None)
        distance = getattr(stated, "distance", None)
        exact = isinstance(epsilon, Exact) and epsilon.log_of is None
        rounded = None
        if isinstance(epsilon, Exact):
            rounded = (
                rounded_up(epsilon.factor) if exact else math.nextafter(float(epsilon), math.inf)
            )
        found.append(
            {
                "kind": stated.kind,
                "promise": stated.promise(problem.space),
                "epsilon": rounded,
                "per": "" if distance is None else problem.space.per(distance),
            }
        )
    return tuple(found)


def region_of(domain: Domain) -> str:
    """Where the places are, in words."""
    if isinstance(domain, Grid):
        box = domain.bounds
        size = f"{domain.rows} rows x {domain.columns} columns of cells"
        if box is None:
            return f"{size} of {domain.cell[0]:g} x {domain.cell[1]:g} {domain.unit}".rstrip()
        return f"{size} over {_box(*box)}"
    if domain.points is None:
        return f"{len(domain)} labels"
    low, high = domain.points.min(axis=0), domain.points.max(axis=0)
    if domain.coordinates == "lonlat":
        return f"{len(domain)} places within {_box(low[0], low[1], high[0], high[1])}"
    spans = ", ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
    return f"{len(domain)} places at {spans} {domain.unit}".rstrip()


def _box(west: float, south: float, east: float, north: float) -> str:
    return f"longitude {west:.5f} to {east:.5f}, latitude {south:.5f} to {north:.5f} degrees"
