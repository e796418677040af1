"""Mechanisms with an auxiliary input: couplings and targets (theory, "Coupling
mechanisms and optimal targets").

For every value t of the auxiliary input a plan moves the input's distribution λ_t to the output's
μ_t. The outputs have to be equal or close, and the loss is Σ_t w_t Σ γ_t d.
"""

from __future__ import annotations

import math
from fractions import Fraction

from optmech.audit.constraints import small
from optmech.audit.designs import Verdict, check_status
from optmech.audit.document import (
    Body,
    Matrix,
    fractions,
    indices,
    integer,
    keys,
    listing,
    matrix,
    members,
    one_of,
    text,
    whole,
)
from optmech.audit.mechanisms import MOST_ENTRIES
from optmech.audit.numbers import (
    ONE,
    ZERO,
    Interval,
    Real,
    at_most,
    dot,
    inside,
    need,
    paired,
    real,
    rounded_up,
)
from optmech.audit.places import NAMED, compare, read_places

MOST_EPSILON = 1000  # beyond e^1000 multipliers prove nothing
MOST_SHIFT = 5001


class Plan:
    """A coupling γ in whole numbers, its marginals proved, and the potentials of a proof: u and v
    are times 2^shift, and input, output and flows have sums of their own."""

    def __init__(self, plain: object, n: int, m: int, proof: bool) -> None:
        wanted = "input output moves" + " potentials shift" * proof
        given, reached, moves, *proofs = members(plain, wanted)
        self.input, self.output = masses(given, n), masses(reached, m)
        self.flows: dict[tuple[int, int], int] = {}
        before, rows, columns = (-1, -1), [0] * n, [0] * m
        for move in listing(moves):
            source, sink, flow = listing(move, 3)
            x, y = whole(source, n), whole(sink, m)
            need((x, y) > before, "moves are not in order")
            before, self.flows[x, y] = (x, y), integer(flow, 1)
            rows[x] += self.flows[x, y]
            columns[y] += self.flows[x, y]
        fits = any(rows) and same(self.input, rows) and same(self.output, columns)
        need(fits, "a plan does not have its marginals")
        self.u, self.v, self.shift = [0] * n, [0] * m, 0
        if proof:
            first, second = listing(proofs[0], 2)
            self.u = list(map(integer, listing(first, n)))
            self.v = list(map(integer, listing(second, m)))
            self.shift = whole(proofs[1], MOST_SHIFT)
            known = paired(self.u + self.v, self.input + self.output)
            need(all(mass or not p for p, mass in known), "a point without mass has a potential")

    def cost(self, d: Matrix) -> Fraction:
        total = sum(self.flows.values())
        return sum((flow * d[x][y] for (x, y), flow in self.flows.items()), ZERO) / total

    def longest(self, d: Matrix) -> Fraction:
        return max(d[x][y] for x, y in self.flows)

    def dual(self) -> Fraction:
        """Σ λ u + Σ μ v: no plan costs less if u + v <= d."""
        first, second = (
            Fraction(sum(a * b for a, b in paired(side, given)), sum(given))
            for side, given in ((self.u, self.input), (self.v, self.output))
        )
        return (first + second) / Fraction(1 << self.shift)

    def is_optimal(self, d: Matrix, limit: Fraction | None) -> bool:
        """u + v <= d between points with mass, up to a limit of d; equality where mass moves."""
        for x, unit in enumerate(self.input):
            for y, other in enumerate(self.output):
                if not unit or not other or (limit is not None and d[x][y] > limit):
                    continue
                slack = d[x][y] * 2**self.shift - self.u[x] - self.v[y]
                if slack < 0 or (slack and (x, y) in self.flows):
                    return False
        return True

    def is_crowded(self, points: list[int], d: Matrix, longest: Fraction) -> bool:
        """Whether ``points`` hold more mass than all that is nearer than ``longest`` (Hall)."""
        near = [y for y in range(len(self.output)) if any(d[x][y] < longest for x in points)]
        held = sum(self.input[x] for x in points) * sum(self.output)
        return held > sum(self.output[y] for y in near) * sum(self.input)


def masses(value: object, count: int) -> list[int]:
    out = [integer(v, 0) for v in listing(value, count)]
    need(any(out), "a distribution has no mass")
    return out


def same(p: list[int], q: list[int]) -> bool:
    """Whether two lists of masses are one distribution."""
    one, other = sum(p), sum(q)
    return all(a * other == b * one for a, b in paired(p, q))


class Family:
    """Mechanisms with an auxiliary input, one plan for each: losses, outputs, and the bound."""

    def __init__(self, body: Body) -> None:
        keys(body, "digest format task p epsilon delta outside secrets observables names weights "
             "distance_name distance plans multipliers crowded claims seconds")  # fmt: skip
        self.lines: list[str] = []
        self.coupled = one_of(body["task"], ("coupling", "target"), "the task") == "coupling"
        one_of(body["outside"], ("target", "nearest"), "the rule for other inputs")
        self.bottleneck, plain = body["p"] == "inf", type(body["p"]) is int and body["p"] == 1
        need(plain or (self.bottleneck and self.coupled), "p is unknown, or does not fit the task")
        self.read_distances(body)
        names = [text(name, "a name") for name in listing(body["names"])]
        self.count = len(names)
        need(0 < self.count == len(set(names)), "names are missing or not distinct")
        self.epsilon, self.delta = Real.read(body["epsilon"]), small(body["delta"])
        free = self.epsilon.nearest > 0 or self.delta.nearest > 0
        need(not (self.coupled and free), "outputs of a coupling are equal")
        self.plans = []
        for t, part in enumerate(listing(body["plans"], self.count)):
            with inside(f"plan {t}"):
                self.plans.append(Plan(part, self.n, self.m, self.coupled))
        self.weights = masses(body["weights"], self.count)
        self.read_proofs(body)
        real(body["seconds"], 0)
        wanted = "status loss lower_bound losses worst_moves"
        status, loss, least, losses, longest = members(body["claims"], wanted)
        self.status = one_of(status, ("optimal", "feasible"), "the status")
        self.loss, self.least = fractions([loss, least])
        self.losses, self.longest = (fractions(own, self.count) for own in (losses, longest))

    def read_distances(self, body: Body) -> None:
        rows = listing(body["distance"])
        self.n, self.m = len(rows), len(listing(rows[0]))
        need(0 < self.n * self.m <= MOST_ENTRIES, "is too large for this audit, or empty")
        secrets = read_places(body, "secrets", self.n)
        observables = read_places(body, "observables", self.m)
        self.d = matrix(rows, self.n, self.m)
        name = one_of(body["distance_name"], ("matrix", *NAMED), "the name of the distances")
        if name == "matrix":
            self.lines.append("the distances are a matrix of the file: compared with nothing")
            return
        with inside("the distances"):
            compare(name, self.d, secrets, observables)
        self.lines.append(f"the distances are {name}, computed again")

    def read_proofs(self, body: Body) -> None:
        """Points too full for shorter moves, and multipliers z[t][t'][y] times 2^shift."""
        self.crowded: list[list[int]] = []
        for points in listing(body["crowded"], self.count if self.bottleneck else 0):
            found = indices(points, self.n)
            need(len(set(found)) == len(found), "a point occurs twice in a set")
            self.crowded.append(found)
        size, self.shift = self.count, 0
        self.z = [[[0] * self.m for _ in range(size)] for _ in range(size)]
        if body["multipliers"] is None:
            return
        need(not self.coupled, "a coupling has no multipliers")
        with inside("multipliers"):
            values, shift = members(body["multipliers"], "values shift")
            self.shift = whole(shift, MOST_SHIFT)
            self.z = [
                [[integer(v, 0) for v in listing(row, self.m)] for row in listing(part, size)]
                for part in listing(values, size)
            ]
            own = any(any(part[t]) for t, part in enumerate(self.z))
            need(not own, "an input has a multiplier with itself")

    def check(self) -> Verdict:
        self.lines.append(f"{self.count} plans, each with its marginals, in whole numbers")
        self.check_outputs()
        limits = [plan.longest(self.d) for plan in self.plans]
        for t, (plan, limit) in enumerate(paired(self.plans, limits)):
            if self.coupled:
                proved = plan.is_optimal(self.d, limit if self.bottleneck else None)
                need(proved, f"plan {t}: is not proved to be optimal")
            if self.bottleneck and limit:
                proved = plan.is_crowded(self.crowded[t], self.d, limit)
                need(proved, f"plan {t}: maybe a longest move is shorter")
        if self.coupled:
            far = ", or less far" if self.bottleneck else ""
            self.lines.append(f"no plan moves less{far}")
        self.check_figures(limits)
        return self.lines, "labels, coordinates and units, names of the inputs, seconds"

    def check_outputs(self) -> None:
        outputs = [plan.output for plan in self.plans]
        if all(same(outputs[0], output) for output in outputs):
            self.lines.append("all outputs are one distribution")
            return
        need(not self.coupled, "the outputs are not one distribution")
        for a, p in enumerate(outputs):
            for b, q in enumerate(outputs):
                need(a == b or self.is_close(p, q), f"outputs {a} and {b} are not close")
        self.lines.append("all outputs are close in pairs")

    def is_close(self, p: list[int], q: list[int]) -> bool:
        """Σ max(0, p - e^ε q) <= δ."""
        one = sum(p) * sum(q)
        sides = [(a * sum(q), b * sum(p)) for a, b in paired(p, q)]
        if not self.delta.nearest > 0:
            return all(at_most(a, b, self.epsilon, ONE) for a, b in sides)
        low, _ = self.epsilon.exp(ONE, one.bit_length() + 256)
        spent = sum((max(ZERO, a - low * b) for a, b in sides), ZERO)
        return spent <= self.delta.bounds().low * one

    def bound(self) -> Fraction:
        """Σ_t Σ_x λ_t[x] min_y (w_t d(x,y) + g_t[y]) - δ Σ max_y z, with e^ε and δ rounded up, and
        g_t[y] = Σ_t' (z[t][t'][y] - e^ε z[t'][t][y]). For given outputs, the duals of the plans."""
        weights = [Fraction(w, sum(self.weights)) for w in self.weights]
        if self.coupled:
            return dot(weights, [plan.dual() for plan in self.plans])
        factor, z = ZERO, [[[0] * self.m for _ in part] for part in self.z]
        if self.epsilon.bounds(128).low <= MOST_EPSILON:
            factor, z = raised(self.epsilon.enclosed(ONE, 4096)), self.z
        most = sum(max(row) for part in z for row in part)
        total = -raised(self.delta.bounds(2048)) * Fraction(most, 1 << self.shift)
        # in whole numbers of one unit: fractions are slow
        denominator = math.lcm(*(v.denominator for row in self.d for v in row))
        d = [[int(v * denominator) for v in row] for row in self.d]
        for t, (plan, weight) in enumerate(paired(self.plans, weights)):
            g = [
                sum((z[t][o][y] - factor * z[o][t][y] for o in range(self.count)), ZERO)
                / 2**self.shift
                for y in range(self.m)
            ]
            unit = math.lcm(*(v.denominator for v in g), weight.denominator * denominator)
            added, scale = [int(v * unit) for v in g], int(weight * unit / denominator)
            for x, mass in enumerate(plan.input):
                if mass:
                    least = min(c * scale + v for c, v in paired(d[x], added))
                    total += Fraction(mass * least, sum(plan.input) * unit)
        return max(ZERO, total)

    def check_figures(self, limits: list[Fraction]) -> None:
        costs = [plan.cost(self.d) for plan in self.plans]
        loss, bound = dot(self.weights, costs) / sum(self.weights), self.bound()
        need(self.losses == [rounded_up(cost) for cost in costs], "the losses are other ones")
        need(self.longest == limits, "the longest moves are other ones")
        need(self.loss == rounded_up(loss), "the loss is another one")
        proper = -rounded_up(-bound)
        need(self.least <= proper, "the bound is not proved")
        bound = self.least if self.least < proper else bound
        gap = rounded_up((loss - bound) / loss) if loss else ZERO
        status = check_status(self.status, gap)
        self.lines.append(f"loss {float(self.loss):.15g}, lower bound {float(self.least):.15g}")
        self.lines.append(f"gap {float(gap):.2g}: {status}")


def raised(known: Interval) -> Fraction:
    """The number where it is rational, else the next multiple of 2^-256 above it."""
    low, high = known
    return high if low == high else Fraction(math.floor(high * 2**256) + 1, 2**256)
