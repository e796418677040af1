"""What a mesh promises at every point rests on: whether its triangles tile a convex region, decided
in whole numbers, or its segments are a line or a connected network; and how many kilometres a
degree counts for at most: distances on the globe along straight lines of the map of longitudes and
latitudes, with all that is lost charged (theory: "Privacy at every point").

This is trusted. Nothing here searches.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import flint
import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.errors import ProblemError
from optmech.exact.rounding import below
from optmech.spaces.domain import EARTH_RADIUS_KM

Place = tuple[int, int]
Corners = tuple[int, int, int]


def doubled_area(a: Place, b: Place, c: Place) -> int:
    """Twice the signed area of a triangle, positive where its corners run counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def covering_flaw(places: Sequence[Place], triangles: Sequence[Corners]) -> str:
    """Why the triangles do not tile a convex region edge to edge; empty where they do.

    ``places`` are the vertices in whole numbers, ``triangles`` their corners by index. Every
    triangle has to run counterclockwise, every directed edge to occur once, every vertex to be
    used, and the edges whose reverse does not occur to form one ring that turns left only, and
    once around. Winding numbers then leave no overlap, no gap and no vertex on another's edge.
    """
    edges: set[tuple[int, int]] = set()
    for t, (a, b, c) in enumerate(triangles):
        if doubled_area(places[a], places[b], places[c]) <= 0:
            return f"triangle {t} has no area, or runs clockwise"
        for edge in ((a, b), (b, c), (c, a)):
            if edge in edges:
                return f"two triangles lie on one side of the edge from vertex {a} of triangle {t}"
            edges.add(edge)
    if not edges:
        return "there are no triangles"
    unused = len(places) - len({a for a, _ in edges})
    if unused:
        return f"{unused} of the vertices are in no triangle"
    return _border_flaw(places, [(a, b) for a, b in edges if (b, a) not in edges])


def _border_flaw(places: Sequence[Place], border: list[tuple[int, int]]) -> str:
    following = dict(border)
    if len(following) < len(border):
        return "the border meets itself in a vertex"
    ring = [min(following)]
    while (after := following.get(ring[-1], ring[0])) != ring[0]:
        if len(ring) > len(border):
            break
        ring.append(after)
    if len(ring) != len(border):
        return "the border is not one ring: there is a hole, or two parts"
    steps = [
        (places[b][0] - places[a][0], places[b][1] - places[a][1])
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True)
    ]
    for k, (step, before) in enumerate(zip(steps, steps[-1:] + steps[:-1], strict=True)):
        turn = before[0] * step[1] - before[1] * step[0]
        ahead = before[0] * step[0] + before[1] * step[1]
        if turn < 0 or (turn == 0 and ahead <= 0):
            return f"the border is not convex at vertex {ring[k]}"
    upward = [y > 0 or (y == 0 and x > 0) for x, y in steps]
    if sum(up and not upward[k - 1] for k, up in enumerate(upward)) != 1:
        return "the border goes around more than once"
    return ""


def network_flaw(
    vertices: Sequence[Sequence[float]],
    roads: Sequence[Sequence[int]],
    lengths: Sequence[float] | None,
) -> str:
    """Why roads over vertices with coordinates are no network; empty where they are one: a line, or
    connected segments of positive length, none of which joins what another joins."""
    steps = [step for road in roads for step in pairwise(road)]
    if not steps:
        return "there are no segments"
    if len(vertices[0]) == 1:
        rising = all(a[0] < b[0] for a, b in pairwise(vertices))
        straight = [list(road) for road in roads] == [list(range(len(vertices)))]
        if lengths is None and rising and straight:
            return ""
        return "a line is one road through increasing numbers, without lengths of its own"
    if lengths is None or len(lengths) != len(steps):
        return "there is not one length for every segment"
    joined: set[tuple[int, int]] = set()
    beside: dict[int, list[int]] = {}
    for k, ((a, b), length) in enumerate(zip(steps, lengths, strict=True)):
        pair = (min(a, b), max(a, b))
        if a == b or not length > 0 or pair in joined:
            what = "joins a vertex with itself" if a == b else "has no length"
            return f"segment {k} {'joins what another joins' if pair in joined else what}"
        joined.add(pair)
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    reached, waiting = {0}, [0]
    while waiting:
        for other in beside.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    missed = len(vertices) - len(reached)
    return f"{missed} of the {len(vertices)} vertices cannot be reached along it" if missed else ""


def lengths_of(
    vertices: Sequence[Sequence[float]],
    segments: Sequence[Sequence[int]],
    lengths: Sequence[float] | None,
) -> tuple[Fraction, ...]:
    """The length of every segment, exactly: as given, or between the numbers of a line."""
    if lengths is not None:
        return tuple(map(Fraction, lengths))
    return tuple(Fraction(vertices[b][0]) - Fraction(vertices[a][0]) for a, b in segments)


_BITS = 128
_POLEWARD = 85.0
"""Degrees of latitude; beyond them a map of degrees is no map."""


def kilometres_per_degree(vertices: Floats, triangles: Ints) -> Floats:
    """For every triangle, floats that a degree of longitude and of latitude count for, (T, 2).

    With them the length of any segment of the region, measured triangle by triangle, is at most
    the great-circle distance of its ends on a sphere of radius 6371.0088 km.

    Raises
    ------
    ProblemError
        On a region beyond 85 degrees of latitude, or so large that a straight line of the map
        says nothing about a distance.
    """
    poleward = np.abs(vertices[:, 1])
    with flint.ctx.workprec(_BITS):
        share = _share(vertices) * flint.arb(EARTH_RADIUS_KM) * flint.arb.pi() / 180
        top = poleward[triangles].max(axis=1)
        distinct, back = np.unique(top, return_inverse=True)
        across = np.array([below(share * _radians(d).cos()) for d in distinct.tolist()])
        along = below(share)
    return np.column_stack([across[back], np.full(len(triangles), along)])


def least_share(vertices: Floats) -> float:
    """A float that no great-circle distance within the box of the vertices falls below, relative
    to the length of the straight line of the map between the same points."""
    with flint.ctx.workprec(_BITS):
        return below(_share(vertices))


def _share(vertices: Floats) -> Any:
    """A ball whose lower end is at most distance over length for all segments: Schur's comparison
    of a curve of geodesic curvature at most (4/3)√(2/3) tan φ with an arc of a circle."""
    west, south = vertices.min(axis=0).tolist()
    east, north = vertices.max(axis=0).tolist()
    top = max(abs(south), abs(north))
    least = 0.0 if south <= 0 <= north else min(abs(south), abs(north))
    if top > _POLEWARD or east - west >= 180:
        raise _too_large()
    across = (_radians(east) - _radians(west)) * _radians(least).cos()
    along = _radians(north) - _radians(south)
    length = (across * across + along * along).sqrt()
    curvature = (1 + (_radians(top).tan() ** 2) * 32 / 27).sqrt()
    turn = curvature * length
    if not turn < 3:
        raise _too_large()
    half = (turn / 2).sin() / curvature
    return 2 * half.asin() / length


def _radians(degrees: float) -> Any:
    return flint.arb(degrees) * flint.arb.pi() / 180


TOO_LARGE = "the region is too large, or too close to a pole, for a map of degrees"


def _too_large() -> ProblemError:
    return ProblemError(
        TOO_LARGE,
        where="mesh",
        remedy="Mesh a smaller region, or project the points to a plane",
    )
