"""Families of mechanisms as files: everything that is needed to prove them again.

A file has the inputs, the flows of every plan and its potentials as whole numbers, the distances,
the multipliers and the claims. The mechanisms are the flows divided by their row sums: nothing is
stored twice. Reading computes every claim anew and in exact arithmetic, and distances that have a
name from the coordinates. Labels, coordinates, units, names of inputs and seconds are the file's
own words, and reports say so.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, opened
from optmech.designs.encoding import decode_domain, encode_domain
from optmech.errors import ProblemError
from optmech.exact.checked import probability, text
from optmech.exact.codec import (
    Codec,
    amount,
    digits,
    exact,
    is_same,
    listing,
    one_of,
    optional,
    record,
    within,
)
from optmech.mechanisms.targets.design import NAMELESS, TargetDesign
from optmech.spaces.domain import Domain
from optmech.spaces.rationals import Shares
from optmech.spaces.tabulated import NAMED, table
from optmech.transport.joint import Multipliers
from optmech.transport.rational import Flows, RationalPlan

Plain = Any
_WHERE = "targets"
_LONGEST = 100_000
_WHOLE, _SIGNED = digits(_LONGEST), digits(_LONGEST, "-?")
_SHIFT = within("shift", 0, 5000)


def encode(design: TargetDesign) -> dict[str, Any]:
    """The object of a file."""
    codec = _family(design.task, design.order, design.distance.shape, len(design.names))
    return design.enclosed(codec.write(design))


def decode(body: dict[str, Any], where: str) -> tuple[Proved, CheckReport]:
    """A design from a file's object, and every claim of it recomputed."""
    rows = body["distance"]
    shape = len(rows), len(rows[0])
    codec = _family(body["task"], body["p"], shape, len(body["names"]))
    return opened(codec, body, where)


def _family(task: str, order: object, shape: tuple[int, ...], count: int) -> Codec[TargetDesign]:
    """How a family of ``count`` inputs is written, with distances of this shape."""
    n, m = shape
    coupled = task == "coupling"
    plan: dict[str, Any] = {
        "input": ("first", _shares(n)),
        "output": ("second", _shares(m)),
        "moves": ("flows", _moves(n, m)),
    }
    if coupled:
        plan |= {"potentials": listing(listing(_SIGNED), 2), "shift": _SHIFT}
    table_of = listing(listing(listing(_WHOLE, m), count), count)
    multipliers = record(Multipliers, "multipliers", values=("units", table_of), shift=_SHIFT)
    crowded = listing(
        listing(within("point", 0, n - 1)), count if order in ("inf", math.inf) else 0
    )
    return record(
        _design,
        _WHERE,
        task=one_of("task", ("coupling", "target")),
        p=(
            "order",
            Codec(lambda order: "inf" if math.isinf(order) else 1, partial(_decode_order, coupled)),
        ),
        epsilon=exact("epsilon"),
        delta=exact("delta", probability),
        outside=one_of("outside", ("target", "nearest")),
        secrets=_domain(n),
        observables=_domain(m),
        names=listing(Codec(str, partial(text, where="names"))),
        weights=_shares(count),
        distance_name=one_of("distance_name", (*NAMED, NAMELESS)),
        distance=Codec(np.ndarray.tolist, listing(listing(amount("distance"), m), n).read),
        plans=listing(record(partial(_plan, (n, m)), "plan", **plan), count),
        multipliers=optional(multipliers),
        crowded=crowded,
    )


def _design(distance_name: str, **given: Any) -> TargetDesign:
    """Distances are what their name says, inputs differ, and the proof is of the task."""
    design = TargetDesign(**given | {"distance": np.array(given["distance"])})
    table(distance_name, [(design.secrets, design.observables, design.distance)])
    names, multipliers = design.names, design.multipliers
    _require(0 < len(names) == len(set(names)), "names are missing or not distinct")
    if design.task == "coupling":
        _require(not (design.epsilon or design.delta), "outputs of a coupling are equal")
        _require(multipliers is None, "a coupling has no multipliers")
    own = multipliers is not None and any(any(part[t]) for t, part in enumerate(multipliers.units))
    _require(not own, "an input has a multiplier with itself")
    distinct = all(len(set(points)) == len(points) for points in design.crowded)
    # their masses are added
    _require(distinct, "a point occurs twice in a set")
    return design


def _decode_order(coupled: bool, plain: Plain) -> float:
    known = (type(plain) is int and plain == 1) or (coupled and plain == "inf")
    _require(known, "p is neither 1 nor inf, or does not fit the task")
    return float(plain)


def _domain(count: int) -> Codec[Domain]:
    """A domain of as many points: a grid may be far larger than its file."""

    def read(plain: Plain) -> Domain:
        size = math.prod(plain["grid"]) if "grid" in plain else len(plain["labels"])
        _require(size == count, f"{size} points for {count} rows or columns of distances")
        domain = decode_domain(plain)
        _require(is_same(encode_domain(domain), plain), "a domain is written otherwise")
        return domain

    return Codec(encode_domain, read)


def _shares(count: int) -> Codec[Shares]:
    units = listing(_WHOLE, count)

    def read(plain: Plain) -> Shares:
        found = units.read(plain)
        _require(any(found), "no distribution")
        return Shares.reduced(found)

    return Codec(lambda shares: units.write(shares.units), read)


def _moves(n: int, m: int) -> Codec[Flows]:
    """Flows > 0 in the order of their arcs."""
    x, y = within("point", 0, n - 1), within("point", 0, m - 1)

    def read(plain: Plain) -> Flows:
        flows = {(x.read(a), y.read(b)): _WHOLE.read(flow) for a, b, flow in plain}
        ordered = list(flows) == sorted(flows) and len(flows) == len(plain)
        _require(ordered and all(flows.values()), "moves are not in order, or move nothing")
        return flows

    return Codec(
        lambda flows: [[x, y, _WHOLE.write(flow)] for (x, y), flow in sorted(flows.items())], read
    )


def _plan(
    shape: tuple[int, int],
    first: Shares,
    second: Shares,
    flows: Flows,
    potentials: tuple[tuple[int, ...], ...] | None = None,
    shift: int = 0,
) -> RationalPlan:
    """The plan, with both marginals decided in whole numbers."""
    sums = [[0] * count for count in shape]
    for (x, y), flow in flows.items():
        sums[0][x] += flow
        sums[1][y] += flow
    total = sum(flows.values())
    _require(total > 0, "a plan moves nothing")
    u, v = potentials or [(0,) * count for count in shape]
    for side, given, prices in zip(sums, (first, second), (u, v), strict=True):
        exactly = all(a * given.total == b * total for a, b in zip(side, given.units, strict=True))
        _require(exactly, "a plan does not have its marginals")
        idle = [p for p, unit in zip(prices, given.units, strict=True) if not unit]
        _require(not any(idle), "a point without mass has a potential")
    return RationalPlan(first, second, flows, total, (u, v), shift)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ProblemError(message, where=_WHERE)
