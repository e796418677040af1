"""What a packed file says in plain words: all of it follows from the design, and from what is done
with positions outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flint

from optmech.designs.promise import Promise, at_every_point, between, guess_words
from optmech.exact.exponentials import log_ball
from optmech.exact.number import Exact, rounded_up
from optmech.exact.rounding import above
from optmech.packed.header import Header
from optmech.packed.meshes import vertices_of
from optmech.problem import Problem
from optmech.problem.constraint import load_constraint, write_constraint
from optmech.problem.gains import gain_words
from optmech.problem.problem import MaximizeDistortion, MinimizeLeakage
from optmech.problem.promised import Measure
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.network import Network

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
_MATCHED = (
    "A position counts as the point of a road next to it, moved along the road by at most snap: "
    "the promise between two of these points that are d apart along the roads is that for a "
    "distance of d + 2 snap. Positions that are close to each other may be next to roads that are "
    "far apart."
)
_NEAREST_ROAD = (
    "A position outside the region counts as the nearest point of a road, however far that is: "
    "what is promised of it is what is promised of that point."
)
_NEAREST_END = (
    "A number beyond the line counts as its nearest end, however far that is: what is promised of "
    "it is what is promised of that end."
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


def words_of(
    problem: Problem, outside: str, packed: Mechanism, snap: float | None
) -> dict[str, Any]:
    """The sentences of the header of a problem's packed file, but for the objective: of what is
    ``packed``, over the secrets or at every point of a mesh; ``outside`` and ``snap`` as there."""
    constraints = _constraints(problem)
    region, mesh = region_of(problem.secrets), problem.mesh
    protects = [f"{part['kind']}: {part['promise']}" for part in constraints]
    promise = promised(protects, constraints, mesh or problem.secrets, snap)
    if mesh is not None:
        where = region_of(vertices_of(mesh))
        cells = "triangles" if mesh.is_region else "segments"
        region = f"every point of {len(mesh.triangles)} {cells}: {where}"
    return {
        "protects": (*protects, *in_odds(promise)),
        "does_not_promise": (
            *_TIMES,
            guess_words(packed, problem.prior),
            _GUESSES,
            *_of_positions(problem.secrets, outside, mesh),
        ),
        "constraints": constraints,
        "region": region,
        "prior": f"entropy {problem.prior.entropy:.3f} bits over {len(problem.secrets)} places",
    }


def promised(
    protects: Sequence[str],
    constraints: Sequence[dict[str, Any]],
    places: Domain | Mesh | None,
    snap: float | None,
    mechanism: Mechanism | None = None,
) -> Promise:
    """What a file promises about points by these entries of its header: between places, or at
    every point, of a mesh where there is one; with the ``mechanism`` it is measured what edges of
    cells reveal."""
    metric = next((part for part in constraints if part["kind"] == "metric_privacy"), None)
    limited = (" up to ", ", δ = ")
    if metric is None or metric["epsilon"] is None or any(w in metric["promise"] for w in limited):
        said = f"Between secrets: {protects[0]}." if protects else "Between secrets: nothing."
        return Promise("secrets" if protects else "use", said)
    unit, _, name = metric["per"].partition(" (")
    measure = Measure.called(name.rstrip(")"), unit, places)
    rate = metric["epsilon"], f"ε = {metric['epsilon']:.6g} per {metric['per']}", measure
    if not isinstance(places, Domain):
        return at_every_point(*rate, slack=2 * (snap or 0.0), mesh=places)
    return between(places, rate, mechanism)


def promise_of_header(
    header: Header, mechanism: Mechanism | None, mesh: Mesh | None = None
) -> Promise:
    """``promised`` by a header: between the secrets of the ``mechanism``, or at every point."""
    places = mesh if mechanism is None else mechanism.secrets
    return promised(header.protects, header.constraints, places, header.snap, mechanism)


def in_odds(promise: Promise) -> tuple[str, ...]:
    """The sentence that says a promise in odds, where ε is per a length."""
    return (f"in odds: {promise.odds_words}",) if promise.odds else ()


def _of_positions(secrets: Domain, outside: str, mesh: Mesh | None) -> tuple[str, ...]:
    """What is not promised of positions, where there are any."""
    said: tuple[str, ...] = (_MOVED, _NEAREST_POINT)
    if mesh is None:
        said = () if secrets.points is None else (_PLACES, _NEAREST_PLACE)
    elif isinstance(mesh, Network):
        said = (_MOVED, _NEAREST_END) if mesh.is_line else (_MATCHED, _NEAREST_ROAD)
    elif mesh.coordinates == "lonlat":
        said = (*said, _GLOBE)
    return (said[0], _REFUSED) if said and outside == "refuse" else said


def objective_words(problem: Problem) -> str:
    """What is optimised."""
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
        ball = log_ball(value, 1.0)
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
