"""Mechanisms that are private at every point (theory, "Privacy at every point").

p_o is a polynomial of degree d in every triangle, with a coefficient P[α] for each of its control
points α = (α₀, α₁, α₂), Σα = d, in Bernstein's form: Σ_α d!/α! λ^α P[α]; linear for d = 1. In
whole numbers over a power of two: edges d₁, d₂ of a triangle, D = d₁ × d₂, rises a, b of the
coefficients along them; then those of D ∇p_o are a d₂' - b d₁' with (x, y)' = (y, -x).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import combinations, pairwise, product

from optmech.audit.designs import (
    Verdict,
    check_status,
    gap_of,
    outer_of,
    promises_of,
    proved_by_cells,
    read_result,
    why_infeasible,
)
from optmech.audit.document import (
    Body,
    fields,
    fractions,
    indices,
    keys,
    listing,
    members,
    one_of,
    reals,
    text,
    together,
    whole,
)
from optmech.audit.globe import kilometres, root_up
from optmech.audit.inequalities import Divergences, Fixed, Information, Ratios
from optmech.audit.mechanisms import (
    FINER,
    MOST_ENTRIES,
    SCALE,
    Lagrangian,
    Mechanism,
    read_mechanism,
)
from optmech.audit.numbers import (
    ZERO,
    Fault,
    Interval,
    Real,
    dot,
    inside,
    need,
    paired,
    rounded_up,
    transposed,
)
from optmech.audit.places import between, spans
from optmech.audit.statements import Statement, checked

Point = tuple[int, int]
Index = tuple[int, int, int]
At = tuple[list[int], list[int]]  # control points, and what they count for over their sum


class Region:
    """Triangles, proved to tile a convex region edge to edge."""

    def __init__(self, plain: object, places: list[list[float]]) -> None:
        body = keys(plain, "vertices triangles unit coordinates", "degree")
        self.degree = whole(body.get("degree", 1), 7)
        need(self.degree > 0, "the degree is none")
        self.measure = text(body["unit"], "the unit")
        self.globe = one_of(body["coordinates"], ("plane", "lonlat"), "the system") == "lonlat"
        given = [reals(v, 2) for v in listing(body["vertices"])]
        need(all(len(p) == 2 for p in places), "a place is not in the plane")
        floats = [v for p in given + places for v in p]
        self.unit = max(Fraction(v).denominator for v in floats)
        self.vertices = [self.scaled(p) for p in given]
        self.ends = spans(self.vertices)
        self.places = [self.turned(self.scaled(p)) for p in places]
        self.triangles = [indices(row, len(given), 3) for row in listing(body["triangles"])]
        self.stretch: list[tuple[int, int]] = []
        self.check_tiling()
        if self.globe:
            counts = [(Fraction(x), Fraction(y)) for x, y in kilometres(given, self.triangles)]
            grain = max(k.denominator for pair in counts for k in pair)
            self.stretch = [(int(x * grain), int(y * grain)) for x, y in counts]
            self.unit *= grain  # of the edges, from here on
        self.buckets = self.sorted_into_buckets()
        self.number_control_points()

    def scaled(self, point: list[float]) -> Point:
        x, y = (int(Fraction(v) * self.unit) for v in point)
        return x, y

    def turned(self, place: Point) -> Point:
        """On the globe the same place within half a turn of the region's middle."""
        if not self.globe:
            return place
        west, east = self.ends[0]
        turn = 360 * self.unit
        return place[0] - round(Fraction(2 * place[0] - west - east, 2 * turn)) * turn, place[1]

    def edges(self, t: int) -> tuple[Point, Point]:
        (ax, ay), (bx, by), (cx, cy) = (self.vertices[k] for k in self.triangles[t])
        x, y = self.stretch[t] if self.stretch else (1, 1)
        return (x * (bx - ax), y * (by - ay)), (x * (cx - ax), y * (cy - ay))

    def check_tiling(self) -> None:
        """Counterclockwise triangles, no edge twice, every vertex used, and the edges without a
        reverse form one ring that turns left only, once around."""
        seen: set[tuple[int, int]] = set()
        for t, (a, b, c) in enumerate(self.triangles):
            need(cross(*self.edges(t)) > 0, f"triangle {t} has no area, or runs clockwise")
            for edge in ((a, b), (b, c), (c, a)):
                need(edge not in seen, "two triangles lie on one side of an edge")
                seen.add(edge)
        need(len({a for a, _ in seen}) == len(self.vertices), "a vertex is in no triangle")
        single = [(a, b) for a, b in seen if (b, a) not in seen]
        border = dict(single)
        need(len(border) == len(single), "the border meets itself")
        ring = [min(border)]
        while border[ring[-1]] != ring[0] and len(ring) <= len(border):
            ring.append(border[ring[-1]])
        need(len(ring) == len(border), "the border is not one ring")
        corners = [self.vertices[k] for k in ring]
        steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise([*corners, corners[0]])]
        for before, step in pairwise([steps[-1], *steps]):
            straight = cross(before, step) == 0 and before[0] * step[0] + before[1] * step[1] > 0
            need(cross(before, step) > 0 or straight, "the border is not convex")
        up = [y > 0 or (y == 0 and x > 0) for x, y in steps]
        rises = sum(here and not before for before, here in pairwise([up[-1], *up]))
        need(rises == 1, "the border goes around more than once")

    def number_control_points(self) -> None:
        """Vertices first, then those along each edge from its lower vertex, the edges in order,
        then those inside of each triangle."""
        d = self.degree
        self.indices = [(d - j - k, j, k) for k in range(d + 1) for j in range(d + 1 - k)]
        known: dict[tuple[Point, ...], int] = {((v, d),): v for v in range(len(self.vertices))}
        edges = {edge for corners in self.triangles for edge in combinations(sorted(corners), 2)}
        for start, end in sorted(edges):
            for step in range(1, d):
                known[(start, d - step), (end, step)] = len(known)
        self.control: list[list[int]] = []
        for corners in self.triangles:
            held = (sorted((v, n) for v, n in paired(corners, at) if n) for at in self.indices)
            self.control.append([known.setdefault(tuple(own), len(known)) for own in held])
        self.count = len(known)
        # rises at α: Σ_k α_k (P[α - e_k + e_1] - P[α - e_k + e_0]), and with e_2 in place of e_1
        place = {index: i for i, index in enumerate(self.indices)}
        self.rises = [
            [[(n, place[moved(at, k, 0)], place[moved(at, k, e)]) for k, n in enumerate(at) if n]
             for at in self.indices] for e in (1, 2)
        ]  # fmt: skip

    def bucket(self, point: Iterable[int]) -> tuple[int, ...]:
        sides = paired(point, self.ends)
        return tuple((v - low) * self.side // (high - low) for v, (low, high) in sides)

    def sorted_into_buckets(self) -> dict[tuple[int, ...], list[int]]:
        """The triangles whose boxes meet each cell of a grid over the region."""
        self.side = math.isqrt(len(self.triangles)) + 1
        out: dict[tuple[int, ...], list[int]] = {}
        for t, corners in enumerate(self.triangles):
            box = spans(self.vertices[k] for k in corners)
            first, last = map(self.bucket, transposed(box))
            for key in product(*(range(a, b + 1) for a, b in paired(first, last))):
                out.setdefault(key, []).append(t)
        return out

    def shares(self, place: Point) -> At:
        """The control points around a place, and the values of Bernstein's polynomials there."""
        for t in self.buckets.get(self.bucket(place), ()):
            corners = self.triangles[t]
            away = [(x - place[0], y - place[1]) for x, y in (self.vertices[k] for k in corners)]
            weights = [cross(away[k - 2], away[k - 1]) for k in range(3)]
            if min(weights) >= 0:
                top, x, y, z = math.factorial(self.degree), *weights
                values = [
                    top // math.prod(map(math.factorial, (i, j, k))) * x**i * y**j * z**k
                    for i, j, k in self.indices
                ]
                return self.control[t], values
        raise Fault("a place lies outside of the region")


def moved(index: Index, one: int, other: int) -> Index:
    a, b, c = (n - (k == one) + (k == other) for k, n in enumerate(index))
    return a, b, c


def cross(a: Point, b: Point) -> int:
    return a[0] * b[1] - a[1] * b[0]


class Everywhere:
    """The mechanism of a region: gradients, loss, and the bounds."""

    def __init__(self, body: Body) -> None:
        keys(body, "digest format problem result mechanism multipliers", "outer")
        problem, bodies = body["problem"], promises_of(body)
        self.lines: list[str] = []
        everywhere = [k for k, c in enumerate(bodies) if "everywhere" in c]
        need(len(everywhere) == 1, "there is not one promise at every point")
        (index,) = everywhere
        # the promise is not one about secrets: it is read here
        self.stated = Statement(problem, self.lines, index)
        self.beside = self.stated.parts
        for k, part in self.beside:
            alone = isinstance(part, Divergences | Information | Fixed)
            need(not alone, f"constraints[{k}] does not stand beside a promise at every point")
        need(self.stated.objective == "expected_loss", "the objective is not the expected loss")
        with inside(f"constraints[{index}]"):
            wanted, known = "kind epsilon distance everywhere", ("euclidean", "haversine")
            kind, epsilon, distance, mesh = members(bodies[index], wanted)
            fits = kind == "metric_privacy" and distance in known
            need(fits, f"is no metric privacy by a distance that is measured here: {known}")
            self.epsilon = Real.read(epsilon)
            secrets, globe = self.stated.secrets, distance == "haversine"
            need(secrets.points is not None and secrets.globe is globe and secrets.bounds is None,
                 "the places are not points that this distance measures")  # fmt: skip
            self.region = Region(mesh, secrets.points or [])
            need(self.region.globe is globe, "the mesh is not in the coordinates of the places")
            units = secrets.unit, self.region.measure
            fits = units[1] == "km" if globe else "" in units or units[0] == units[1]
            need(fits, "the mesh is in another unit than the places")
        self.located = [self.region.shares(place) for place in self.region.places]
        self.released = body["mechanism"] is not None
        with inside("multipliers"):
            self.read_vectors(body["multipliers"])
        with inside("result"):
            result = read_result(body["result"], self.released)
        self.outer = body.get("outer")
        if not self.released:
            return
        with inside("mechanism"):
            self.rows = read_mechanism(body["mechanism"], self.region.count, self.stated.m)
        with inside("result"):
            need(result["approximations"] == [], "an approximation of a promise at every point")
            self.status = str(result["status"])
            names = ("objective", "loss", "bound", "lower_bound")
            value, self.loss, self.bound, self.least = fractions([result[k] for k in names], 4)
            need(value == self.loss, "the objective is not the loss")

    def read_vectors(self, plain: object) -> None:
        """Two numbers for each control point, of the reports of every triangle that have some."""
        numbers = 2 * len(self.region.indices)
        given = dict(fields(plain))
        stated = listing(given.pop("gradient", None))
        none = {"bits": 0, "vectors": [[[], []] for _ in self.region.triangles]}
        need(len(stated) < 2, "there is not one promise at every point")
        self.joint, (bits, vectors) = given, members(stated[0] if stated else none, "bits vectors")
        self.bits = whole(bits, 2000)
        self.vectors: list[dict[int, list[int]]] = []
        for part in listing(vectors, len(self.region.triangles)):
            own: dict[int, list[int]] = {}
            for place, vector in together(*listing(part, 2)):
                o = whole(place, self.stated.m)
                need(o > max(own, default=-1), "reports are out of order")
                own[o] = [signed(v) for v in listing(vector, numbers)]
            self.vectors.append(own)

    def check(self) -> Verdict:
        region, unchecked = self.region, "title, labels, units, engine, reason, notes, seconds, "
        unchecked += "rounding cost"
        self.lines.append(f"{len(region.triangles)} triangles tile a convex region edge to edge")
        if not self.released:
            self.lines.append(self.why_infeasible())
            return self.lines, unchecked
        self.lines.append(f"{region.count} rows of {self.stated.m} whole numbers")
        self.check_gradients()
        self.check_beside()
        low, high = self.expected()
        need(self.loss in (rounded_up(low), rounded_up(high)), "the loss is another one")
        need(self.bound <= max(self.mesh_bound(), ZERO), "the bound is not proved")
        gap = gap_of(self.loss, self.bound)
        check_status(self.status, gap)
        self.lines.append(f"loss {float(self.loss):.15g}, on this mesh at least "
                          f"{float(self.bound):.15g}: a gap of {gap:.2g}")  # fmt: skip
        words = f"{float(self.least):.15g} as a lower bound of every mechanism"
        if self.outer is None:
            need(self.least == 0, "the lower bound is not proved")
        elif (outer := outer_of(self.outer))["cells"] is None:
            keys(outer, "cells multipliers")
            need(self.least <= max(self.outer_bound(outer), ZERO), "the lower bound is not proved")
            beside = " and keeps the other constraints" * bool(self.beside)
            self.lines.append(
                f"{words} that is private at every point{beside}, by the places alone"
            )
        elif (found := proved_by_cells(outer, self.stated, self.log_ratio)) is None:
            unchecked += f"; {words}, by cells of the places"
        else:
            need(self.least <= max(found[1], ZERO), "the lower bound is not proved")
            count = f"{found[0]} cells of the {self.stated.n} places"
            self.lines.append(f"{words} that is private at every point, by {count}")
        return self.lines, unchecked

    def log_ratio(self, s: int, t: int) -> Fraction:
        return self.epsilon.bounds().high * self.apart(s, t)

    def check_gradients(self) -> None:
        """‖a d₂ - b d₁‖ <= ε D P[α] at every control point, squared, in whole numbers."""
        rate, rows = self.epsilon.bounds().low, self.rows.rows
        for t, control in enumerate(self.region.control):
            first, second = self.region.edges(t)
            limit = (rate * cross(first, second)) / self.region.unit
            top, bottom = limit.numerator, limit.denominator
            for o, values in enumerate(transposed(rows[k] for k in control)):
                for own, *rises in zip(values, *self.region.rises, strict=True):
                    a, b = (sum(n * (values[j] - values[i]) for n, i, j in r) for r in rises)
                    x, y = a * second[0] - b * first[0], a * second[1] - b * first[1]
                    if bottom * bottom * (x * x + y * y) > (top * own) ** 2:
                        raise Fault(f"triangle {t}: the probability of report {o} is too steep")
        count = len(self.region.indices) * len(self.region.triangles) * self.stated.m
        self.lines.append(f"{count} gradients, each within ε at all points of the region")

    def check_beside(self) -> None:
        """What is said of the places, of the mechanism there: Σ_α B_α(x) P[α,o], exactly, or
        between multiples of 2^-(bits + 64), of which the one that is harder to keep counts."""
        if not self.beside:
            return
        shares = []
        for control, weights in self.located:
            columns = transposed(self.rows.rows[k] for k in control)
            row = [sum(w * v for w, v in paired(weights, column)) for column in columns]
            shares.append((row, sum(weights)))
        low = [[(v << FINER) // total for v in row] for row, total in shares]
        high = [[-((-v << FINER) // total) for v in row] for row, total in shares]
        there = Mechanism(self.rows.bits + FINER, low, high, shares)
        self.lines += checked(self.beside, there, ", at the places")

    def expected(self) -> Interval:
        """Σ_x π(x) Σ_α B_α(x) Σ_o c(x,o) P[α,o], between multiples of 2^-SCALE."""
        low, high = 0, 0
        for (control, weights), mass, costs in self.places():
            terms = (dot(self.rows.rows[k], costs) for k in control)
            value = mass * dot(weights, terms) / (sum(weights) << self.rows.bits) * 2**SCALE
            low, high = low + math.floor(value), high + math.ceil(value)
        return Interval(Fraction(low, 1 << SCALE), Fraction(high, 1 << SCALE))

    def places(self) -> Iterator[tuple[At, Fraction, list[Fraction]]]:
        return zip(self.located, self.stated.prior, self.stated.loss, strict=True)

    def why_infeasible(self) -> str:
        """What proves that the mesh has no mechanism that satisfies everything."""
        with inside("multipliers"):
            bound = self.stated.lagrangian(self.joint, objective=False)
        if not any(map(all, transposed(self.stated.allowed))):
            return "infeasible: no observable is allowed at all places"
        with suppress(Fault):
            return why_infeasible(self.stated, bound)
        need(self.mesh_bound(False) > 0, "nothing proves that the problem is infeasible")
        return "infeasible: the multipliers of all constraints demand more than there is"

    def mesh_bound(self, objective: bool = True) -> Fraction:
        """For any vectors w, |w| ε D P[α] + w·(D G[α]) >= 0 at every control point α, G those of
        ∇p: taken off the costs, these leave the sum of the least entries of the rows."""
        rate, unit = self.epsilon.bounds().high, self.region.unit
        # what is never reported from one place is not reported from any point
        allowed = [all(column) for column in transposed(self.stated.allowed)]
        need(any(allowed), "no observable is allowed at all places")
        bound = Lagrangian([allowed for _ in range(self.region.count)])
        with inside("multipliers"):
            joint = self.stated.lagrangian(self.joint, objective)
        bound.K = joint.K
        costs = [[Fraction(v, 1 << SCALE) for v in row] for row in joint.L]
        for (control, weights), row in paired(self.located, costs):
            for k, weight in paired(control, weights):
                bound.add_row(k, Fraction(weight, sum(weights)), row)
        for t, control in enumerate(self.region.control):
            first, second = self.region.edges(t)
            steep = rate * cross(first, second) / unit**2
            for o, w in self.vectors[t].items():
                slopes = [0] * len(control)
                for at, (k, x, y) in enumerate(zip(control, w[::2], w[1::2], strict=True)):
                    size = root_up(x * x + y * y)
                    bound.add(k, o, -steep * Fraction(size, 1 << self.bits))
                    # (x, y)' · w = y w_x - x w_y
                    sides = cross((x, y), second), -cross((x, y), first)
                    for side, rises in paired(sides, self.region.rises):
                        for n, i, j in rises[at]:
                            slopes[i] += n * side
                            slopes[j] -= n * side
                for k, v in paired(control, slopes):
                    bound.add(k, o, Fraction(v, unit << self.bits))
        return bound.value()

    def outer_bound(self, plain: Body) -> Fraction:
        """The bound of the problem whose secrets are the places, with distances rounded up: what is
        private at every point is private between them."""
        need(self.stated.n**2 <= MOST_ENTRIES, "too many places for a bound by these alone")
        apart = [
            [None if s == t else self.apart(s, t) for t in range(len(self.region.places))]
            for s in range(len(self.region.places))
        ]
        self.stated.parts = [(0, Ratios(self.epsilon, apart, None, None)), *self.beside]
        with inside("outer"):
            return self.stated.lagrangian(plain["multipliers"]).value()

    def apart(self, s: int, t: int) -> Fraction:
        """A number that is not below the distance of two places."""
        if self.region.globe:  # on the globe floats err by far less than what is added
            both = self.stated.secrets.points or []
            return Fraction(between("haversine", both[s], both[t]) * (1 + 1e-9) + 1e-9)
        p, q = self.region.places[s], self.region.places[t]
        square = (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2
        return rounded_up(Fraction(root_up(square << 256), self.region.unit << 128))


def signed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise Fault(f"{value!a} is no whole number")
    return value
