"""Mechanisms with an auxiliary input: couplings and targets (theory, "Coupling
mechanisms and optimal targets").

For every value t of the auxiliary input a plan moves the input's distribution λ_t to the output's
μ_t. The outputs have to be equal or close, and the loss is Σ_t w_t Σ γ_t d.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from optmech_audit.constraints import small
from optmech_audit.designs import Verdict, check_status
from optmech_audit.document import (
    Body,
    Matrix,
    Rows,
    Vector,
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
    wholes,
)
from optmech_audit.mechanisms import MOST_ENTRIES
from optmech_audit.numbers import (
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
    up,
)
from optmech_audit.places import NAMED, compare, read_places

MOST_EPSILON = 1000  # beyond e^1000 multipliers prove nothing
MOST_SHIFT = 5001


class Plan(NamedTuple):
    """A coupling γ in whole numbers, its marginals proved, and the potentials of a proof: these are
    times 2^shift, and input, output and flows have sums of their own."""

    input: list[int]
    output: list[int]
    flows: dict[tuple[int, int], int]
    potentials: tuple[list[int], list[int]]
    shift: int

    def cost(self, d: Matrix) -> Fraction:
        moved = sum((flow * d[x][y] for (x, y), flow in self.flows.items()), ZERO)
        return moved / sum(self.flows.values())

    def dual(self) -> Fraction:
        """Σ λ u + Σ μ v: no plan costs less if u + v <= d."""
        total = ZERO
        for side, given in paired(self.potentials, (self.input, self.output)):
            total += Fraction(sum(a * b for a, b in paired(side, given)), sum(given))
        return total / (1 << self.shift)

    def is_optimal(self, d: Matrix, limit: Fraction | float) -> bool:
        """u + v <= d between points with mass, up to a limit of d; equality where mass moves."""
        u, v = self.potentials
        for x, unit in enumerate(self.input):
            for y, other in enumerate(self.output):
                if unit and other and d[x][y] <= limit:
                    slack = d[x][y] * 2**self.shift - u[x] - v[y]
                    if slack < 0 or (slack and (x, y) in self.flows):
                        return False
        return True

    def is_crowded(self, points: list[int], d: Matrix, longest: Fraction) -> bool:
        """Whether ``points`` hold more mass than all that is nearer than ``longest`` (Hall)."""
        near = [
            mass for y, mass in enumerate(self.output) if any(d[x][y] < longest for x in points)
        ]
        held = sum(self.input[x] for x in points) * sum(self.output)
        return held > sum(near) * sum(self.input)


def read_plan(plain: object, n: int, m: int, proof: bool) -> Plan:
    wanted = "input output moves" + " potentials shift" * proof
    given, reached, moves, *proofs = members(plain, wanted)
    start, end = masses(given, n), masses(reached, m)
    flows: dict[tuple[int, int], int] = {}
    before, rows, columns = (-1, -1), [0] * n, [0] * m
    for move in listing(moves):
        source, sink, amount = listing(move, 3)
        x, y = whole(source, n), whole(sink, m)
        need((x, y) > before, "moves are not in order")
        before, flow = (x, y), integer(amount, 1)
        flows[x, y] = flow
        rows[x] += flow
        columns[y] += flow
    fits = any(rows) and same(start, rows) and same(end, columns)
    need(fits, "a plan does not have its marginals")
    u, v, shift = [0] * n, [0] * m, 0
    if proof:
        first, second = listing(proofs[0], 2)
        u, v = list(map(integer, listing(first, n))), list(map(integer, listing(second, m)))
        shift = whole(proofs[1], MOST_SHIFT)
        known = paired(u + v, start + end)
        need(all(mass or not p for p, mass in known), "a point without mass has a potential")
    return Plan(start, end, flows, (u, v), shift)


def masses(value: object, count: int) -> list[int]:
    out = wholes(value, count)
    need(any(out), "a distribution has no mass")
    return out


def same(p: list[int], q: list[int]) -> bool:
    """Whether two lists of masses are one distribution."""
    one, other = sum(p), sum(q)
    return all(a * other == b * one for a, b in paired(p, q))


def judge_family(body: Body) -> Verdict:
    """Mechanisms with an auxiliary input, one plan for each: losses, outputs, and the bound."""
    keys(body, "digest format task p epsilon delta outside secrets observables names weights "
         "distance_name distance plans multipliers crowded claims seconds")  # fmt: skip
    lines: list[str] = []
    coupled = one_of(body["task"], ("coupling", "target"), "the task") == "coupling"
    one_of(body["outside"], ("target", "nearest"), "the rule for other inputs")
    bottleneck, plain = body["p"] == "inf", type(body["p"]) is int and body["p"] == 1
    need(plain or (bottleneck and coupled), "p is unknown, or does not fit the task")
    d = read_distances(body, lines)
    n, m = len(d), len(d[0])
    names = [text(name, "a name") for name in listing(body["names"])]
    count = len(names)
    need(0 < count == len(set(names)), "names are missing or not distinct")
    epsilon, delta = Real.read(body["epsilon"]), small(body["delta"])
    free = epsilon.nearest > 0 or delta.nearest > 0
    need(not (coupled and free), "outputs of a coupling are equal")
    plans = []
    for t, part in enumerate(listing(body["plans"], count)):
        with inside(f"plan {t}"):
            plans.append(read_plan(part, n, m, coupled))
    weights, crowded = masses(body["weights"], count), []
    for points in listing(body["crowded"], count if bottleneck else 0):
        found = indices(points, n)
        need(len(set(found)) == len(found), "a point occurs twice in a set")
        crowded.append(found)
    z, shift = [[[0] * m for _ in names] for _ in names], 0
    if body["multipliers"] is not None:
        need(not coupled, "a coupling has no multipliers")
        with inside("multipliers"):
            z, shift = read_prices(body["multipliers"], count, m)
    real(body["seconds"], 0)
    wanted = "status loss lower_bound losses worst_moves"
    status, *figures, losses, longest = members(body["claims"], wanted)
    one_of(status, ("optimal", "feasible"), "the status")
    claimed, least = fractions(figures)
    each, moved = (fractions(own, count) for own in (losses, longest))
    lines += [f"{count} plans, each with its marginals, in whole numbers",
              close_outputs([plan.output for plan in plans], coupled, epsilon, delta)]  # fmt: skip
    limits = [max(d[x][y] for x, y in plan.flows) for plan in plans]
    for t, (plan, limit) in enumerate(paired(plans, limits)):
        if coupled:
            proved = plan.is_optimal(d, limit if bottleneck else math.inf)
            need(proved, f"plan {t}: is not proved to be optimal")
        if bottleneck and limit:
            proved = plan.is_crowded(crowded[t], d, limit)
            need(proved, f"plan {t}: maybe a longest move is shorter")
    if coupled:
        lines.append(f"no plan moves less{', or less far' if bottleneck else ''}")
    costs, shares = [plan.cost(d) for plan in plans], [Fraction(w, sum(weights)) for w in weights]
    if coupled:
        bound = dot(shares, [plan.dual() for plan in plans])
    else:
        bound = common_bound(plans, shares, d, epsilon, delta, z, shift)
    loss = dot(shares, costs)
    need(each == [rounded_up(cost) for cost in costs], "the losses are other ones")
    need(moved == limits, "the longest moves are other ones")
    need(claimed == rounded_up(loss), "the loss is another one")
    proper = -rounded_up(-bound)
    need(least <= proper, "the bound is not proved")
    bound = least if least < proper else bound
    gap = rounded_up((loss - bound) / loss) if loss else ZERO
    words = check_status(status, gap)
    lines += [f"loss {float(claimed):.15g}, lower bound {float(least)!r}",
              f"gap {up(gap)}: {words}"]  # fmt: skip
    return lines, "labels, coordinates and units, names of the inputs, seconds"


def read_distances(body: Body, lines: list[str]) -> Matrix:
    rows = listing(body["distance"])
    n, m = len(rows), len(listing(rows[0]))
    need(0 < n * m <= MOST_ENTRIES, "is too large for this audit, or empty")
    secrets, observables = read_places(body, "secrets", n), read_places(body, "observables", m)
    for places in (secrets, observables):
        need(places.unit == "km" or not places.globe, "a domain on the globe is written otherwise")
    d = matrix(rows, n, m)
    name = one_of(body["distance_name"], ("matrix", *NAMED), "the name of the distances")
    if name == "matrix":
        lines.append("the distances are a matrix of the file: compared with nothing")
        return d
    with inside("the distances"):
        compare(name, d, secrets, observables)
    lines.append(f"the distances are {name}, computed again")
    return d


def read_prices(plain: object, count: int, m: int) -> tuple[list[Rows], int]:
    """Multipliers z[t][t'][y] times 2^shift, and the shift."""
    values, digits = members(plain, "values shift")
    shift = whole(digits, MOST_SHIFT)
    z = [[wholes(row, m) for row in listing(part, count)] for part in listing(values, count)]
    need(not any(any(part[t]) for t, part in enumerate(z)), "an input has a multiplier with itself")
    return z, shift


def close_outputs(outputs: Rows, coupled: bool, epsilon: Real, delta: Real) -> str:
    if all(same(outputs[0], output) for output in outputs):
        return "all outputs are one distribution"
    need(not coupled, "the outputs are not one distribution")
    for a, p in enumerate(outputs):
        for b, q in enumerate(outputs):
            need(a == b or is_close(p, q, epsilon, delta), f"outputs {a} and {b} are not close")
    return "all outputs are close in pairs"


def is_close(p: list[int], q: list[int], epsilon: Real, delta: Real) -> bool:
    """Σ max(0, p - e^ε q) <= δ."""
    one = sum(p) * sum(q)
    sides = [(a * sum(q), b * sum(p)) for a, b in paired(p, q)]
    if not delta.nearest > 0:
        return all(at_most(a, b, epsilon, ONE) for a, b in sides)
    low, _ = epsilon.exp(ONE, one.bit_length() + 256)
    spent = sum((max(ZERO, a - low * b) for a, b in sides), ZERO)
    return spent <= delta.bounds().low * one


def common_bound(
    plans: list[Plan], weights: Vector, d: Matrix, epsilon: Real, delta: Real,
    z: list[Rows], shift: int,
) -> Fraction:  # fmt: skip
    """Σ_t Σ_x λ_t[x] min_y (w_t d(x,y) + g_t[y]) - δ Σ max_y z, with e^ε and δ rounded up, and
    g_t[y] = Σ_t' (z[t][t'][y] - e^ε z[t'][t][y])."""
    factor, none = ZERO, epsilon.bounds(128).low > MOST_EPSILON
    if none:
        z = [[[0] * len(row) for row in part] for part in z]
    else:
        factor = raised(epsilon.enclosed(ONE, 4096))
    most = sum(max(row) for part in z for row in part)
    total = -raised(delta.bounds(2048)) * Fraction(most, 1 << shift)
    # in whole numbers of one unit: fractions are slow
    denominator = math.lcm(*(v.denominator for row in d for v in row))
    units = [[int(v * denominator) for v in row] for row in d]
    for t, (plan, weight) in enumerate(paired(plans, weights)):
        pairs = [(z[t][o], z[o][t]) for o in range(len(plans))]
        g = [
            sum((own[y] - factor * other[y] for own, other in pairs), ZERO) / 2**shift
            for y in range(len(d[0]))
        ]
        unit = math.lcm(*(v.denominator for v in g), weight.denominator * denominator)
        added, scale = [int(v * unit) for v in g], int(weight * unit / denominator)
        for row, mass in paired(units, plan.input):
            if mass:
                least = min(c * scale + v for c, v in paired(row, added))
                total += Fraction(mass * least, sum(plan.input) * unit)
    return max(ZERO, total)


def raised(known: Interval) -> Fraction:
    """The number where it is rational, else the next multiple of 2^-256 above it."""
    low, high = known
    return high if low == high else Fraction(math.floor(high * 2**256) + 1, 2**256)
