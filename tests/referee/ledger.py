"""The ledger against exact privacy losses of adaptive adversaries, in fractions.

A random packed mechanism of few places and reports, and a random tree of positions: at every node,
which the reports so far lead to, one position of the user and one within the radius of it that the
adversary would have the user at. All outcomes are enumerated, places are found by programs of this
module's own, and every figure and every budget is held against the exact laws of the draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from optmech_devices.packed.documents import mechanism_of
from optmech_devices.packed.file import Parts, Table, decode_parts, encode_parts

import optmech as om
from optmech.problem.promised import Measure

VECTORS = Path(__file__).parents[2] / "packages/devices/tests/packed/vectors"
Pair = tuple[int, int]
DEGREE = 6371.0088 * np.pi / 180


def made(
    domain: om.Domain, rows: Sequence[Sequence[int]], bits: int, reach: float | None, rate: float
) -> om.devices.PackedMechanism:
    """A packed mechanism of these whole numbers, through a file."""
    header = om.devices.load_packed(VECTORS / "line.omm").header
    name = "haversine" if domain.coordinates == "lonlat" else "euclidean"
    measure = Measure.called(name, "km" if name == "haversine" else domain.unit, domain)
    stated = replace(header.promises[0], epsilon=rate, measure=measure)
    header = replace(header, promises=(stated,), accuracy=None, reach=reach)
    # equal rows are stored once, and columns of nothing not at all
    distinct = sorted(set(map(tuple, rows)))
    used = [k for k in range(len(rows[0])) if any(row[k] for row in rows)]
    table = np.array([[row[k] for k in used] for row in distinct], dtype=np.uint64)
    row_of = np.array([distinct.index(tuple(row)) for row in rows])
    reports = om.Domain([f"report {k}" for k in range(len(rows[0]))])
    parts = Parts(header, domain, reports, row_of, Table(bits, np.array(used), table))
    found = mechanism_of(decode_parts(encode_parts(parts), "made"))
    assert isinstance(found, om.devices.PackedMechanism)
    return found


def exponential(value: float) -> Fraction:
    """e to a decimal, to fifty digits, rounded down."""
    with mpmath.workdps(60):
        found = mpmath.exp(mpmath.mpf(repr(value)))
        return Fraction(int(mpmath.floor(found * 10**50)), 10**50)


def random_rows(rng: np.random.Generator, places: int, reports: int, bits: int) -> list[list[int]]:
    """Rows that are 0 at the same entries."""
    one, kind = 2**bits, rng.integers(4)
    out = []
    for _ in range(places):
        weights = rng.dirichlet(np.full(reports, rng.choice([0.05, 0.5, 5.0])))
        row = [max(1, int(w * (one - reports))) for w in weights]
        if kind == 0:
            row = [1] * reports  # all but certain of one
        row[int(rng.integers(reports))] += one - sum(row)
        out.append(row)
    if kind == 1:
        out[-1] = out[0]
    if kind == 2:
        out = [[*row, 0] for row in out]
    return out


@dataclass
class Plan:
    """Positions of a tree: the pair of places at a node, and the nodes behind it."""

    pair: Pair
    then: list[Plan]


@dataclass
class World:
    """A mechanism, and pairs of places of positions that are within the radius."""

    mechanism: om.devices.PackedMechanism
    radius: float
    between: str
    pairs: list[Pair]
    rows: list[list[int]]
    one: int
    rate: float
    worst: float
    """The largest log ratio of two rows."""


def random_world(rng: np.random.Generator) -> World:
    """Cells, points of a line or of the plane, or places without coordinates."""
    kind, bits = rng.choice(["cells", "line", "plane", "globe", "none"]), int(rng.choice([16, 48]))
    places = int(rng.integers(1, 6))
    radius = float(rng.choice([0.01, 0.3, 1.0, 2.5]))
    between = str(rng.choice(["positions", "places"]))
    reach = None
    if kind == "cells":
        rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        cell = rng.choice([0.4, 1.0, 1.7], 2)
        domain: om.Domain = om.Grid(rows, columns, cell.tolist(), unit="km")
        places = rows * columns
        centres = np.array(domain.points)
        low, high = np.zeros(2), np.array([columns, rows]) * cell
    elif kind == "none":
        domain, centres = om.Domain(range(places)), np.zeros((places, 1))
        low = high = np.zeros(1)
    else:
        size = 1 if kind == "line" else 2
        centres = rng.integers(0, 4, (places, size)) * 1.0 + rng.choice([0, 0.1]) * rng.random()
        # a few equal places are drawn too
        if kind == "globe":
            centres = centres * 0.01 + (179.98, float(rng.choice([-70.0, 0.0, 47.0])))
            centres[:, 0] = (centres[:, 0] + 180) % 360 - 180
            domain = om.Domain(range(places), centres, "km", coordinates="lonlat")
        else:
            domain = om.Domain(range(places), centres, "km")
        reach = om_reach(centres, kind == "globe")
        low, high = -np.ones(size), 5 * np.ones(size)
    table = random_rows(rng, places, int(rng.integers(1, 4)), bits)
    worst = max(
        float(mpmath.log(mpmath.mpf(max(a, b)) / min(a, b)))
        for one, two in itertools.product(table, repeat=2)
        for a, b in zip(one, two, strict=True)
        if a
    )
    apart = distances(centres, kind == "globe")
    # all that the rows need between two places, and now and then just that
    least = float(min([radius, *apart[apart > 0]]))
    rate = (worst + float(rng.choice([1e-6, 1.0]))) / least
    mechanism = made(domain, table, bits, reach, rate)
    if kind == "none":
        pairs = list(itertools.product(range(places), repeat=2))
    elif between == "places":
        pairs = [(int(a), int(b)) for a, b in np.argwhere(apart <= radius)]
    else:
        pairs = list(sampled(rng, domain, centres, (low, high), radius, reach, kind))
    return World(mechanism, radius, between, pairs, table, 2**bits, rate, worst)


def om_reach(centres: Any, globe: bool) -> float | None:
    """The largest distance to a nearest neighbour, on the globe in degrees."""
    if len(centres) < 2:
        return None
    apart = distances(centres, globe)
    np.fill_diagonal(apart, np.inf)
    return float(apart.min(axis=1).max()) / (DEGREE if globe else 1.0)


def distances(centres: Any, globe: bool) -> Any:
    """Between all places, in km on the globe."""
    if not globe:
        return np.sqrt(((centres[None] - centres[:, None]) ** 2).sum(axis=2))
    x, y = np.radians(centres).T
    unit = np.array([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)]).T
    chord = np.sqrt(((unit[None] - unit[:, None]) ** 2).sum(axis=2))
    return 2 * 6371.0088 * np.arcsin(np.minimum(1, chord / 2))


def sampled(
    rng: np.random.Generator,
    domain: om.Domain,
    centres: Any,
    box: tuple[Any, Any],
    radius: float,
    reach: float | None,
    kind: str,
) -> Iterator[Pair]:
    """Places of two positions within the radius, both in the region."""

    def place(position: Any) -> int | None:
        if kind == "cells":
            assert isinstance(domain, om.Grid)
            if (position < box[0]).any() or (position > box[1]).any():
                return None
            column, row = np.minimum(position // domain.cell, (domain.columns - 1, domain.rows - 1))
            return int(row * domain.columns + column)
        apart = distances(np.vstack([position, centres]), kind == "globe")[0, 1:]
        apart /= DEGREE if kind == "globe" else 1.0
        return None if reach is not None and apart.min() > reach else int(apart.argmin())

    low, high = box
    for _ in range(30):
        if kind == "globe":
            spread = (reach or 0.01) * rng.uniform(-1, 1, 2)
            one = centres[rng.integers(len(centres))] + spread
            turned = rng.normal(size=2)
            turned *= radius * rng.choice([0.0, 0.5, 0.999]) / (111.195 * np.linalg.norm(turned))
            two = one + turned / (np.cos(np.radians(one[1])), 1.0) * (0.9999, 1.0)
            if distances(np.array([one, two]), True)[0, 1] > radius:
                continue
        else:
            one = rng.uniform(low, high)
            step = rng.normal(size=len(one))
            two = one + step / np.linalg.norm(step) * radius * rng.choice([0.0, 0.5, 1.0])
        a, b = place(one), place(two)
        if a is not None and b is not None:
            yield a, b


def random_plan(rng: np.random.Generator, world: World, depth: int) -> Plan:
    """A tree, whose places may depend on all reports before."""
    pair = world.pairs[int(rng.integers(len(world.pairs)))]
    reports = len(world.rows[0]) if depth > 1 else 0
    return Plan(pair, [random_plan(rng, world, depth - 1) for _ in range(reports)])


def paths(
    world: World, plan: Plan, budget: dict[str, Any]
) -> Iterator[tuple[om.devices.Ledger, Fraction, Fraction]]:
    """Every outcome: its ledger, and its probability at the one places and at the others. A refusal
    ends it."""
    labels = world.mechanism.secrets.labels

    def walk(node: Plan | None, visited: list[int], p: Fraction, q: Fraction) -> Any:
        ledger = om.devices.Ledger(
            world.mechanism, None, world.radius, between=world.between, **budget
        )
        ledger._costs = shared._costs
        for place in visited:
            ledger.enter(labels[place])
        if node is None or not ledger.allows(labels[node.pair[0]]):
            yield ledger, p, q
            return
        one, other = node.pair
        for k, (a, b) in enumerate(zip(world.rows[one], world.rows[other], strict=True)):
            behind = node.then[k] if node.then else None
            yield from walk(
                behind, [*visited, one], p * Fraction(a, world.one), q * Fraction(b, world.one)
            )

    shared = om.devices.Ledger(world.mechanism, None, world.radius, between=world.between, **budget)
    yield from walk(plan, [], Fraction(1), Fraction(1))


def judge(rng: np.random.Generator) -> Iterator[str]:
    world = random_world(rng)
    if not world.pairs:
        return
    by = str(rng.choice(["plain", "rows", "composed"]))
    delta = float(rng.choice([1e-6, 1e-3, 0.05, 0.3, 1.0]))
    order = None if rng.random() < 0.5 else float(rng.choice(om_orders()))
    options = {"by": by, "delta": delta, "order": order}
    try:
        first = om.devices.Ledger(
            world.mechanism, None, world.radius, between=world.between, **options
        )
    except om.ProblemError as error:
        # a place that is alone within the radius
        if world.between == "places" and "reaches no place" in str(error):
            return
        raise
    except om.VerificationError:
        points = world.mechanism.secrets.points
        # different rows of equal places keep no promise by distance
        if points is not None and not distances(points, False).any() and world.worst > 0:
            return
        raise
    if rng.random() < 0.7:
        each = float(rng.choice([first.per_draw, world.worst]))
        options["budget"] = each * float(rng.choice([0.2, 1.0, 1.6, 2.0, 3.0]))
    plan = random_plan(rng, world, int(rng.integers(2, 4)))
    found = list(paths(world, plan, options))
    if sum(p for _, p, _ in found) != 1 or sum(q for _, _, q in found) != 1:
        yield "the outcomes are not all there"
    for figure in ("plain", "rows"):
        for ledger, p, q in found:
            factor = exponential(getattr(ledger, figure))
            if p > factor * q * (1 + Fraction(1, 10**40)) or q > factor * p * (
                1 + Fraction(1, 10**40)
            ):
                yield f"{figure} {getattr(ledger, figure)} is below ln of {p} / {q}"
    for direction in (1, -1):
        lost, within = Fraction(0), Fraction(0)
        limit = exponential(options.get("budget") or 0.0)
        for ledger, *both in found:
            p, q = both[::direction]
            lost += max(Fraction(0), p - exponential(ledger.composed) * q)
            within += max(Fraction(0), p - limit * q)
        slack = 1 + Fraction(1, 10**40)
        if lost > Fraction(repr(delta)) * slack:
            yield f"composed: δ is {float(lost):.6g}, and {delta} is stated ({direction})"
        allowed = Fraction(repr(delta)) if by == "composed" else Fraction(1, 10**40)
        if options.get("budget") is not None and within > allowed * slack:
            yield f"a budget of {options['budget']} by {by}: δ is {float(within):.6g} ({direction})"
    if options.get("budget") is not None:
        for ledger, _, _ in found:
            if getattr(ledger, by) > options["budget"] * (1 + 1e-15):
                yield f"{by} {getattr(ledger, by)} is above the budget {options['budget']}"


def om_orders() -> tuple[float, ...]:
    """The orders that a ledger chooses from."""
    from optmech_devices.packed.charges import ORDERS

    return ORDERS
