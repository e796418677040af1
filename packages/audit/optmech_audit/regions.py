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

from optmech_audit.designs import (
    Verdict,
    agreed_gap,
    outer_of,
    promises_of,
    proved_by_cells,
    read_result,
    why_infeasible,
)
from optmech_audit.document import (
    DESIGN_KEYS,
    Body,
    Rows,
    Table,
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
from optmech_audit.globe import kilometres, root_up
from optmech_audit.inequalities import Divergences, Fixed, Information, Ratios
from optmech_audit.mechanisms import (
    FINER,
    LEAST_MARGIN,
    MOST_ENTRIES,
    SCALE,
    Lagrangian,
    Mechanism,
    read_mechanism,
)
from optmech_audit.numbers import (
    ZERO,
    Fault,
    Interval,
    Real,
    dot,
    inside,
    interval,
    need,
    paired,
    rounded_up,
    transposed,
    up,
)
from optmech_audit.places import between, spans
from optmech_audit.statements import Statement, checked

Point = tuple[int, int]
Index = tuple[int, int, int]
At = tuple[list[int], list[int]]  # control points, and what they count for over their sum


class Region:
    """Triangles, proved to tile a convex region edge to edge."""

    def __init__(self, plain: object, places: Table) -> None:
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
        self.words = f"{len(self.triangles)} triangles tile a convex region edge to edge"
        self.stretch = [(1, 1)] * len(self.triangles)
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
        x, y = self.stretch[t]
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
        self.control: Rows = []
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
    """A problem with a promise for every point of a region: gradients, loss, and the bounds."""

    def __init__(self, body: Body) -> None:
        keys(body, DESIGN_KEYS, "outer")
        bodies, lines = promises_of(body), list[str]()
        everywhere = [k for k, c in enumerate(bodies) if "everywhere" in c]
        need(len(everywhere) == 1, "there is not one promise at every point")
        (index,) = everywhere
        # the promise is not one about secrets: it is read here
        self.lines, self.stated = lines, Statement(body["problem"], lines, index)
        for k, part in self.stated.parts:
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
            self.region = region = Region(mesh, secrets.points or [])
            need(region.globe is globe, "the mesh is not in the coordinates of the places")
            units = secrets.unit, region.measure
            fits = units[1] == "km" if globe else "" in units or units[0] == units[1]
            need(fits, "the mesh is in another unit than the places")
        self.located = [region.shares(place) for place in region.places]
        self.mechanism: Mechanism | None = None
        with inside("multipliers"):
            self.read_vectors(body["multipliers"])
        with inside("result"):
            result = read_result(body["result"], body["mechanism"] is not None)
        if body["mechanism"] is None:
            return
        with inside("mechanism"):
            self.mechanism = read_mechanism(body["mechanism"], region.count, self.stated.m)
        with inside("result"):
            need(result["approximations"] == [], "an approximation of a promise at every point")
            names = ("objective", "loss", "bound", "lower_bound")
            value, *self.figures = fractions([result[k] for k in names])
            self.status = result["status"]
            need(value == self.figures[0], "the objective is not the loss")

    def read_vectors(self, plain: object) -> None:
        """Two numbers for each control point, of the reports of every triangle that have some."""
        given, count = dict(fields(plain)), len(self.region.triangles)
        stated = listing(given.pop("gradient", None))
        none = {"bits": 0, "vectors": [[[], []]] * count}
        need(len(stated) < 2, "there is not one promise at every point")
        self.joint, (bits, vectors) = given, members(stated[0] if stated else none, "bits vectors")
        self.bits = whole(bits, 2000)
        self.vectors: list[dict[int, list[int]]] = []
        for part in listing(vectors, count):
            own: dict[int, list[int]] = {}
            for place, vector in together(*listing(part, 2)):
                o = whole(place, self.stated.m)
                need(o > max(own, default=-1), "reports are out of order")
                own[o] = [signed(v) for v in listing(vector, 2 * len(self.region.indices))]
            self.vectors.append(own)

    def log_ratio(self, s: int, t: int) -> Fraction:
        return self.epsilon.times(self.apart(s, t), 256).high

    def check(self, p: Mechanism) -> list[str]:
        """‖a d₂ - b d₁‖ <= ε D P[α] at every control point, squared, in whole numbers; and what is
        said of the places."""
        rate, region = self.epsilon.bounds().low, self.region
        for t, control in enumerate(region.control):
            first, second = region.edges(t)
            limit = (rate * cross(first, second)) / region.unit
            top, bottom = limit.numerator, limit.denominator
            for o, values in enumerate(transposed(p.rows[k] for k in control)):
                for own, *rises in zip(values, *region.rises, strict=True):
                    a, b = (sum(n * (values[j] - values[i]) for n, i, j in r) for r in rises)
                    x, y = a * second[0] - b * first[0], a * second[1] - b * first[1]
                    if bottom * bottom * (x * x + y * y) > (top * own) ** 2:
                        raise Fault(f"triangle {t}: the probability of report {o} is too steep")
        count = len(region.indices) * len(region.triangles) * self.stated.m
        said = f"{count} gradients, each within ε at all points of the region"
        return [said, *checked(self.stated.parts, self.there(p), ", at the places")]

    def there(self, p: Mechanism) -> Mechanism:
        """The mechanism of the places: Σ_α B_α(x) P[α,o], exactly, or between multiples of
        2^-(bits + 64), of which the one that is harder to keep counts."""
        shares = []
        for control, weights in self.located if self.stated.parts else ():
            columns = transposed(p.rows[k] for k in control)
            row = [sum(w * v for w, v in paired(weights, column)) for column in columns]
            shares.append((row, sum(weights)))
        low = [[(v << FINER) // total for v in row] for row, total in shares]
        high = [[-((-v << FINER) // total) for v in row] for row, total in shares]
        return Mechanism(p.bits + FINER, low, high, shares)

    def expected(self, p: Mechanism) -> Interval:
        """Σ_x π(x) Σ_α B_α(x) Σ_o c(x,o) P[α,o], between multiples of 2^-SCALE."""
        low, high = 0, 0
        for (control, weights), mass, costs in self.places():
            terms = (dot(p.rows[k], costs) for k in control)
            value = mass * dot(weights, terms) / (sum(weights) << p.bits) * 2**SCALE
            low, high = low + math.floor(value), high + math.ceil(value)
        return interval(low, high, 1 << SCALE)

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
        need(self.mesh_bound(False) > LEAST_MARGIN, "nothing proves that the problem is infeasible")
        return "infeasible: all constraints demand more than there is on this mesh"

    def mesh_bound(self, objective: bool = True) -> Fraction:
        """For any vectors w, |w| ε D P[α] + w·(D G[α]) >= 0 at every control point α, G those of
        ∇p: taken off the costs, these leave the sum of the least entries of the rows."""
        rate, region = self.epsilon.bounds().high, self.region
        # what is never reported from one place is not reported from any point
        allowed = [all(column) for column in transposed(self.stated.allowed)]
        need(any(allowed), "no observable is allowed at all places")
        bound = Lagrangian([allowed] * region.count)
        with inside("multipliers"):
            joint = self.stated.lagrangian(self.joint, objective)
        bound.K = joint.K
        for (control, weights), row in paired(self.located, joint.L):
            costs = [Fraction(v, sum(weights) << SCALE) for v in row]
            for k, weight in paired(control, weights):
                bound.add_row(k, Fraction(weight), costs)
        for t, control in enumerate(region.control):
            first, second = region.edges(t)
            steep = rate * cross(first, second) / region.unit**2
            for o, w in self.vectors[t].items():
                slopes = [0] * len(control)
                for at, (k, x, y) in enumerate(zip(control, w[::2], w[1::2], strict=True)):
                    size = root_up(x * x + y * y)
                    bound.add(k, o, -steep * Fraction(size, 1 << self.bits))
                    # (x, y)' · w = y w_x - x w_y
                    sides = cross((x, y), second), -cross((x, y), first)
                    for side, rises in paired(sides, region.rises):
                        for n, i, j in rises[at]:
                            slopes[i] += n * side
                            slopes[j] -= n * side
                for k, v in paired(control, slopes):
                    bound.add(k, o, Fraction(v, region.unit << self.bits))
        return bound.value()

    def outer_bound(self, plain: object, objective: bool = True) -> Fraction:
        """The bound of the problem whose secrets are the places, with distances rounded up: what is
        private at every point is private between them."""
        stated, places = self.stated, range(self.stated.n)
        need(stated.n**2 <= MOST_ENTRIES, "too many places for a bound by these alone")
        apart = [{t: self.apart(s, t) for t in places if s != t} for s in places]
        stated.parts = [(0, Ratios(self.epsilon, apart)), *stated.parts]
        with inside("outer"):
            return stated.lagrangian(plain, objective).value()

    def apart(self, s: int, t: int) -> Fraction:
        """A number that is not below the distance of two places."""
        if self.region.globe:  # on the globe floats err by far less than what is added
            both = self.stated.secrets.points or []
            return Fraction(between("haversine", both[s], both[t]) * (1 + 1e-9) + 1e-9)
        p, q = self.region.places[s], self.region.places[t]
        square = (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2
        return rounded_up(Fraction(root_up(square << 256), self.region.unit << 128))


def judge_region(body: Body) -> Verdict:
    made = Everywhere(body)
    stated, region, mechanism = made.stated, made.region, made.mechanism
    unchecked = "title, labels, units, engine, reason, notes, seconds, rounding cost"
    lines = [*made.lines, region.words]
    if mechanism is None:
        lines.append(made.why_infeasible())
        if "outer" in body:
            given = keys(outer_of(body["outer"]), "cells multipliers")
            need(given["cells"] is None and made.outer_bound(given["multipliers"], False)
                 > LEAST_MARGIN, "nothing is proved of every mechanism")  # fmt: skip
            lines.append("nor on any other mesh")
        return lines, unchecked
    loss, bound, least = made.figures
    lines += [f"{region.count} rows of {stated.m} whole numbers", *made.check(mechanism)]
    need(loss in map(rounded_up, made.expected(mechanism)), "the loss is another one")
    need(bound <= max(made.mesh_bound(), ZERO), "the bound is not proved")
    gap = agreed_gap(made.status, loss, bound)
    lines.append(f"loss {float(loss):.15g}, on this mesh at least "
                 f"{float(bound)!r}: a gap of {up(gap)}")  # fmt: skip
    words, proved = f"{float(least)!r} as a lower bound of every mechanism", ZERO
    if body.get("outer") is not None:
        outer = outer_of(body["outer"])
        if outer["cells"] is None:
            keys(outer, "cells multipliers")
            beside = " and keeps the other constraints" * bool(stated.parts)
            proved = made.outer_bound(outer["multipliers"])
            lines.append(f"{words} that is private at every point{beside}, by the places alone")
        elif found := proved_by_cells(outer, stated, made.log_ratio):
            count, proved = f"{found[0]} cells of the {stated.n} places", found[1]
            lines.append(f"{words} that is private at every point, by {count}")
        else:
            return lines, f"{unchecked}; {words}, by cells of the places"
    need(least <= max(proved, ZERO), "the lower bound is not proved")
    return lines, unchecked


def signed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise Fault(f"{value!a} is no whole number")
    return value
