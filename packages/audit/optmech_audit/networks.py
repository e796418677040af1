"""Mechanisms that are private at every point of a line or of roads (theory, "Privacy at every point
of a line or a road").

p_o is linear on every segment, between the rows of its ends. |p' - p| <= ε ℓ min(p, p') at the two
ends of every segment of length ℓ is all that metric privacy asks for, along all paths; differential
privacy asks for ratios between all vertices.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

from optmech_audit.document import Body, Matrix, indices, keys, listing, members, reals, text
from optmech_audit.inequalities import Ratios
from optmech_audit.mechanisms import Shares
from optmech_audit.numbers import ZERO, Real, need, paired
from optmech_audit.places import SQUARES, label
from optmech_audit.statements import Statement

Step = tuple[int, int, Fraction]
MANY_VERTICES = 1_000  # from which on the lower bound is by segments alone, too
FEW_VERTICES = 400  # up to which those without prior weight count in the lower bound, too


class Roads:
    """Chains of vertices, proved to be one connected network in which no two steps join the same
    vertices, or the whole of a line."""

    def __init__(self, plain: object, stated: Statement) -> None:
        body = keys(plain, "vertices ways unit coordinates", "labels lengths")
        secrets = stated.secrets
        given = [reals(v) for v in listing(body["vertices"], stated.n)]
        need(given == secrets.points and secrets.bounds is None, "the secrets are not the vertices")
        named = list(map(label, listing(body.get("labels", [])))) or list(range(stated.n))
        need(named == list(secrets.labels), "the labels are others")
        globe = body["coordinates"] == "lonlat"
        need(globe or body["coordinates"] == "plane", "the system of coordinates is unknown")
        units = secrets.unit, text(body["unit"], "the unit")
        fits = "km" in units and "" not in units if globe else "" in units or units[0] == units[1]
        need(globe is secrets.globe and fits, "the network is in another unit than the secrets")
        self.line = len(given[0]) == 1
        roads = [indices(road, stated.n) for road in listing(body["ways"])]
        pairs = [pair for road in roads for pair in pairwise(road)]
        if self.line:
            need(roads == [list(range(stated.n))] and "lengths" not in body, "no line")
            need(all(given[a][0] < given[b][0] for a, b in pairs), "the line turns back")
            lengths = [Fraction(given[b][0]) - Fraction(given[a][0]) for a, b in pairs]
        else:
            lengths = [Fraction(v) for v in reals(body["lengths"], len(pairs))]
        need(all(v > 0 for v in lengths), "a segment has no length")
        need(all(a != b for a, b in pairs), "a segment joins a vertex with itself")
        distinct = {frozenset(pair) for pair in pairs}
        need(len(distinct) == len(pairs) > 0, "two segments join the same vertices")
        self.steps: list[Step] = [(a, b, v) for (a, b), v in paired(pairs, lengths)]
        self.beside: list[dict[int, int]] = [{} for _ in range(stated.n)]
        self.unit = max(v.denominator for v in lengths)
        for a, b, v in self.steps:
            self.beside[a][b] = self.beside[b][a] = int(v * self.unit)
        need(len(self.away(0)) == stated.n, "the network is not connected")

    @property
    def lengths(self) -> list[dict[int, Fraction]]:
        """Of the segments at every vertex, by the other end."""
        return [{b: Fraction(v, self.unit) for b, v in own.items()} for own in self.beside]

    def away(self, start: int) -> Shares:
        """The distance from one vertex to every one, exactly (Dijkstra)."""
        found: dict[int, int] = {}
        waiting = [(0, start)]
        while waiting:
            so_far, a = heapq.heappop(waiting)
            if a not in found:
                found[a] = so_far
                for b, length in self.beside[a].items():
                    if b not in found:
                        heapq.heappush(waiting, (so_far + length, b))
        return {b: Fraction(length, self.unit) for b, length in found.items()}


@dataclass(frozen=True, eq=False)
class Linear(Real):
    """1 + ε ℓ in the place of e^{ε d}, of which ε ℓ is not below the logarithm."""

    @cache  # noqa: B019
    def exp(self, d: Fraction, bits: int) -> tuple[Fraction, Fraction | None]:
        low, high = self.times(d, bits)
        return 1 + low, 1 + high


def roads_of(plain: object, stated: Statement) -> Roads:
    """The network of a promise for every point, which is that of all such promises."""
    # read each time: equal numbers may be of two types
    made = Roads(plain, stated)
    if stated.roads is None:
        stated.roads = plain, made
        if stated.objective == "worst_loss" and made.line:
            stated.segments = [(a, b, bend(stated, a, b)) for a, b, _ in made.steps]
    need(plain == stated.roads[0], "another mesh than that of a constraint before")
    return stated.roads[1]


def bend(stated: Statement, a: int, b: int) -> Fraction:
    """By t (1 - t) times how much the loss lies below a straight line, at the share t of the way:
    the square of the length, as a float, for squares; nothing is taken off from others."""
    points = stated.secrets.points
    if stated.loss_name != SQUARES or points is None:
        return ZERO
    length = points[b][0] - points[a][0]
    return Fraction(length * length)


def along_segments(stated: Statement, c: Body) -> Ratios:
    """|p' - p| <= ε ℓ min(p, p') at the ends of every segment."""
    keys(c, "kind epsilon distance everywhere")
    roads = roads_of(c["everywhere"], stated)
    need(c["distance"] == ("euclidean" if roads.line else "roads"), "another distance")
    epsilon = Linear.read(c["epsilon"])
    need(not epsilon.zero, "ε is zero")
    stated.say(f"{len(roads.steps)} segments, whose ends imply all points between them")
    stated.metric.append(stated.index)
    return Ratios(epsilon, roads.lengths)


def outside(stated: Statement, outer: object, own: Fraction, bodies: Sequence[Body]) -> Fraction:
    """A lower bound of every mechanism that is private at every point: that of the program over the
    vertices, with distances along the roads."""
    assert stated.roads is not None
    metric = stated.metric
    if not stated.segments and not metric:
        need(outer is None, "a bound that is that of the mesh")
        return own
    return ZERO if outer is None else max(at_vertices(stated, outer, bodies), ZERO)


def at_vertices(
    stated: Statement, outer: object, bodies: Sequence[Body], objective: bool = True
) -> Fraction:
    """What the multipliers of the program over the vertices prove."""
    assert stated.roads is not None
    roads, metric, n = stated.roads[1], stated.metric, stated.n
    cells, multipliers = members(outer, "cells multipliers")
    need(cells is None, "cells of a network")
    alone = stated.objective != "worst_loss" and len(metric) == len(bodies)
    kept, apart = list(range(n)), roads.lengths
    # among many e^{ε ℓ} between the ends of segments, which imply the rest
    if not alone or len(bodies) > 1 or n < MANY_VERTICES:
        if alone and n > FEW_VERTICES:
            kept = [s for s in kept if stated.prior[s] > 0]
        away = (roads.away(k) for k in kept)
        apart = [{j: own[t] for j, t in enumerate(kept) if i != j} for i, own in enumerate(away)]
    return along(stated, kept, apart, bodies, multipliers, objective)


def along(
    stated: Statement,
    kept: list[int],
    apart: Sequence[Shares],
    bodies: Sequence[Body],
    plain: object,
    objective: bool,
) -> Fraction:
    """The bound of the multipliers where metric privacy holds for the distances ``apart``."""
    inner = copy.copy(stated)
    inner.n, inner.segments = len(kept), []
    inner.prior = [stated.prior[s] for s in kept]
    inner.loss = Matrix([stated.loss[s] for s in kept])
    inner.allowed = [stated.allowed[s] for s in kept]
    inner.parts = [
        (k, Ratios(Real.read(bodies[k]["epsilon"]), apart)) if k in stated.metric else (k, part)
        for k, part in stated.parts
    ]
    return inner.lagrangian(plain, objective).value()
