"""What a packed file says in plain words: all of it follows from the design, and from what is done
with positions outside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import flint

from optmech.exact.number import Exact, rounded_up
from optmech.exact.rounding import above
from optmech.packed.meshes import vertices_of
from optmech.problem import Problem
from optmech.problem.constraint import load_constraint, write_constraint
from optmech.problem.gains import gain_words
from optmech.problem.problem import MaximizeDistortion, MinimizeLeakage
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mesh import Mesh

NOT_CHECKED = ("title", "date of the prior", "whether positions outside are refused")
"""What a file says by itself: no design decides it."""
_BITS = 256
_TIMES = (
    "Every report spends the stated ε again: n independent reports about one place promise only n "
    "times ε. Repeat the report for as long as the place is the same.",
    "Reports from several times tell more than each of them alone: positions follow one another.",
    "That a report was made, when, how often and from which network address is not hidden.",
)
_GUESSES = (
    "An adversary who knows more than the prior may guess better than the stated accuracy; what is "
    "promised of probabilities holds whatever is known."
)
_REFUSED = "That a position lay outside the region is seen where no report is made for it."
_PLACES = (
    "A position counts as its place: two positions that are close to each other, on both sides of "
    "a border between places, are told apart as these places are."
)
_NEAREST_PLACE = (
    "A position outside the region counts as the nearest place, however far that is: what is "
    "promised of it is what is promised of that place."
)
_MOVED = (
    "Before a draw a position of the region is moved, by at most snap: the promise between two of "
    "them that are d apart is that for a distance of d + 2 snap."
)
_NEAREST_POINT = (
    "A position outside the region counts as the nearest point of its border, however far that is: "
    "what is promised of it is what is promised of that point."
)
_GLOBE = (
    "Two positions outside the region that are close to each other may have nearest points that "
    "are far apart."
)

_CELLS = (
    "A position counts as the centre of its cell, and a report as that of its own: the promise "
    "between positions that are d apart is that for a distance of d + 2 snap."
)
_SPHERE = (
    "Distances are those along great circles of a sphere of 6371.0088 km; on the ellipsoid they "
    "differ by up to 0.6 %."
)
EARTH = (*_TIMES, _CELLS, _SPHERE)
"""What files for the whole earth do not promise."""


@dataclass(frozen=True)
class Words:
    """The sentences of a file's header."""

    protects: tuple[str, ...]
    does_not_promise: tuple[str, ...]
    constraints: tuple[dict[str, Any], ...]
    region: str
    prior: str
    objective: str


def words_of(problem: Problem, outside: str, mesh: Mesh | None = None) -> Words:
    """Every sentence of a packed file of a problem, over its secrets or at every point of a mesh;
    ``outside`` as in the header."""
    constraints = _constraints(problem)
    region = region_of(problem.secrets)
    if mesh is not None:
        where = region_of(vertices_of(mesh))
        region = f"every point of {len(mesh.triangles)} triangles: {where}"
    return Words(
        protects=tuple(f"{part['kind']}: {part['promise']}" for part in constraints),
        does_not_promise=(*_TIMES, _GUESSES, *_of_positions(problem.secrets, outside, mesh)),
        constraints=constraints,
        region=region,
        prior=f"entropy {problem.prior.entropy:.3f} bits over {len(problem.secrets)} places",
        objective=_objective(problem),
    )


def _of_positions(secrets: Domain, outside: str, mesh: Mesh | None) -> tuple[str, ...]:
    """What is not promised of positions, where there are any."""
    refused = outside == "refuse"
    if mesh is not None:
        globe = (_GLOBE,) if mesh.coordinates == "lonlat" else ()
        return (_MOVED, *((_REFUSED,) if refused else (_NEAREST_POINT, *globe)))
    if secrets.points is None:
        return ()
    return (_PLACES, _REFUSED if refused else _NEAREST_PLACE)


def _objective(problem: Problem) -> str:
    goal = problem.objective
    if isinstance(goal, MinimizeLeakage):
        # as the file has it
        return f"leakage ({gain_words(goal.plain(problem.space)['gain'])})"
    if isinstance(goal, MaximizeDistortion):
        return "distortion of the best attack"
    return goal.replace("_", " ")


def _constraints(problem: Problem) -> tuple[dict[str, Any], ...]:
    """Kind, promise in words, ε (rounded up; None where there is none) and what it is per: as a
    reader of the design's file has them."""
    found = []
    for given in problem.constraints:
        stated = load_constraint(write_constraint(given, problem.space), problem.space)
        epsilon = getattr(stated, "epsilon", None)
        distance = getattr(stated, "distance", None)
        found.append(
            {
                "kind": stated.kind,
                "promise": stated.promise(problem.space),
                "epsilon": least_above(epsilon) if isinstance(epsilon, Exact) else None,
                "per": "" if distance is None else problem.space.per(distance),
            }
        )
    return tuple(found)


def least_above(value: Exact) -> float:
    """The least float that is not below a number."""
    if value.log_of is None:
        return rounded_up(value.factor)
    with flint.ctx.workprec(_BITS):
        factor, of = (
            flint.arb(flint.fmpq(part.numerator, part.denominator))
            for part in (value.factor, value.log_of)
        )
        ball = factor * of.log()
        found = above(ball)
        while flint.arb(math.nextafter(found, -math.inf)) >= ball:
            found = math.nextafter(found, -math.inf)
    return found


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
