"""Families of mechanisms as files: everything that is needed to prove them again.

A file has the inputs, the flows of every plan and its potentials as whole numbers, the distances,
the multipliers and the claims. The mechanisms are the flows divided by their row sums: nothing is
stored twice. Reading computes every claim anew and in exact arithmetic, and distances that have a
name from the coordinates. Labels, coordinates, units, names of inputs and seconds are the file's
own words, and reports say so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.storage import compressed, write_atomically
from optmech.certificate.check import Check, CheckReport
from optmech.certificate.claims import Claim, bounded, proved, report_on
from optmech.certificate.objective import Figures
from optmech.designs.encoding.problem import decode_domain, encode_domain
from optmech.errors import ProblemError
from optmech.exact.checked import probability, require_keys
from optmech.exact.number import parse_exact
from optmech.mechanisms.targets.design import TargetDesign
from optmech.reading.sealed import FAMILY, decoding, read_sealed, seal
from optmech.spaces.domain import Domain
from optmech.spaces.rationals import Shares
from optmech.spaces.tabulated import NAMED, misnamed, table
from optmech.transport.joint import Multipliers
from optmech.transport.outputs import are_close, largest_divergence, relative_gap
from optmech.transport.rational import RationalPlan, is_crowded

Plain = Any
NAMELESS = "matrix"
"""The name of distances that cannot be computed again."""
REWRITE = "Make the design again and save it"
_CLAIMS = {"status", "loss", "lower_bound", "losses", "worst_moves"}
_SIDES = ("input", "output")
_LARGEST_SHIFT = 5000
_OWN_WORDS = (
    "the labels, coordinates and units, the names of the inputs and the seconds are the file's own "
    "words: nothing in it can prove them"
)


def save_target(design: TargetDesign, path: str | Path) -> None:
    """Write a design; raises ProblemError where labels cannot be written or the path cannot."""
    body = {**_encode(design, _name(design)), "claims": design.claims()}
    content = seal(json.dumps(body, allow_nan=False).encode())
    write_atomically(path, compressed(path, content))


def load_target(path: str | Path) -> TargetDesign:
    """Read a design and check it again; raises ProblemError where the file cannot be read or is
    not one of this format, VerificationError where it does not hold what it claims."""
    return proved(decode_target, read_sealed(path, (FAMILY,), REWRITE), str(path), REWRITE)


def decode_target(body: dict[str, Any], path: str) -> tuple[TargetDesign, CheckReport]:
    """A design from a file's content, and every claim of it recomputed."""
    with decoding(path, REWRITE):
        design, claims = decode_family(body), _claims(body)
    return design, _examined(design, claims, body["distance_name"], path)


def decode_family(body: Plain) -> TargetDesign:
    """The inverse of what ``save_target`` writes. Raises ProblemError, LookupError, TypeError or
    ValueError where the entries make no design: plans without their marginals, distances that are
    not what their name says; and where the design would be written otherwise, which finds whatever
    is unknown, of another type or out of order."""
    coupled, name = body["task"] == "coupling", body["distance_name"]
    _require(coupled or body["task"] == "target", "the task is unknown")
    _require(body["outside"] in ("target", "nearest"), "the rule for other inputs is unknown")
    _require(name in NAMED or name == NAMELESS, "the name of the distances is unknown")
    distance = np.array(body["distance"], dtype=np.float64)
    _require(distance.ndim == 2 and distance.size > 0, "the distances are no matrix")
    _require(bool((distance >= 0).all()), "a distance is below 0, or no number")
    distance.setflags(write=False)
    n, m = distance.shape
    secrets, observables = _domain(body["secrets"], n), _domain(body["observables"], m)
    table(name, [(secrets, observables, distance)])
    names = tuple(map(str, body["names"]))
    count = len(names)
    _require(0 < count == len(set(names)), "names are missing or not distinct")
    order = float(body["p"])
    _require(order == 1 or (coupled and order == math.inf), "p does not fit the task")
    epsilon = parse_exact(body["epsilon"], where="epsilon")
    delta = probability(body["delta"])
    _require(not coupled or not (epsilon or delta), "outputs of a coupling are equal")
    _require(len(body["plans"]) == count, "there is not one plan for every input")
    _require(not coupled or body["multipliers"] is None, "a coupling has no multipliers")
    sets = [tuple(_index(x, n) for x in points) for points in body["crowded"]]
    _require(len(sets) == (count if order == math.inf else 0), "there are no sets for the plans")
    # their masses are added
    _require(all(len(set(points)) == len(points) for points in sets), "a point occurs twice")
    _require(float(body["seconds"]) >= 0, "the seconds are below 0")
    design = TargetDesign(
        secrets=secrets,
        observables=observables,
        names=names,
        weights=_shares(body["weights"], count),
        distance=distance,
        plans=tuple(_plan(plain, (n, m), proof=coupled) for plain in body["plans"]),
        task=body["task"],
        epsilon=epsilon,
        delta=delta,
        order=order,
        outside=body["outside"],
        multipliers=_multipliers(body["multipliers"], (count, count, m)),
        crowded=tuple(sets),
        seconds=float(body["seconds"]),
    )
    stated = {key: value for key, value in body.items() if key not in ("digest", "claims")}
    _require(_text(_encode(design, name)) == _text(stated), "it is not written as families are")
    return design


def _claims(body: Plain) -> dict[str, Any]:
    """As ``TargetDesign.claims``, of the types that these have."""
    claims, count = body["claims"], len(body["names"])
    require_keys(claims, _CLAIMS, "claims")
    every = {name: tuple(claims[name]) for name in ("losses", "worst_moves")}
    numbers = [claims["loss"], claims["lower_bound"], *every["losses"], *every["worst_moves"]]
    usable = all(type(value) is float and 0 <= value < math.inf for value in numbers)
    _require(usable and {*map(len, every.values())} == {count}, "a claim is no number >= 0")
    return {**claims, **every}


def _examined(
    design: TargetDesign, claims: dict[str, Any], distance_name: str, path: str
) -> CheckReport:
    proper = design.claims()
    # a file may claim less than it proves, and its status then follows from that
    bound = claims["lower_bound"]
    exact = Fraction(bound) if bound < design.lower_bound else design.exact_bound
    gap = relative_gap(design.exact_loss, exact)
    return report_on(
        path,
        tuple(_checks(design)),
        [
            *(
                Claim(name, claims[name], proper[name])
                for name in ("loss", "losses", "worst_moves")
            ),
            bounded("lower_bound", bound, proper["lower_bound"]),
        ],
        claims["status"],
        Figures(design.loss, bound, design.loss, bound, gap),
        notes=(
            "the distances are a matrix of the file, not compared with any coordinates"
            if distance_name == NAMELESS
            else f"the distances are {distance_name}, computed again from the file's labels "
            "and coordinates",
            _OWN_WORDS,
        ),
    )


def _checks(design: TargetDesign) -> Iterator[Check]:
    count, (n, m) = len(design.plans), design.distance.shape
    detail = f"{count} inputs, whole numbers, every row a distribution"
    yield Check("distributions", None, count * n * (m + 1), True, 0.0, detail)
    yield _closeness(design)
    if design.task == "coupling":
        for name, plan in zip(design.names, design.plans, strict=True):
            yield _optimality(name, plan, design)
        for name, plan, sources in zip(
            design.names, design.plans, design.crowded, strict=bool(design.crowded)
        ):
            yield _worst_move(name, plan, sources, design.distance)


def _closeness(design: TargetDesign) -> Check:
    outputs = design.exact_outputs
    pairs = len(outputs) * (len(outputs) - 1) * design.distance.shape[1]
    if design.is_common:
        detail = "all outputs are one distribution, exactly"
        return Check("outputs", None, pairs, True, 0.0, detail)
    passed = design.task == "target" and are_close(outputs, design.epsilon, design.delta)
    worst = largest_divergence(outputs)
    detail = (
        f"pairwise ({float(design.epsilon):.9g}, {float(design.delta):.9g})-close, "
        f"largest max divergence {worst:.12g}"
    )
    return Check("outputs", None, pairs, passed, worst, detail if passed else f"not {detail}")


def _optimality(name: str, plan: RationalPlan, design: TargetDesign) -> Check:
    """u + v <= c between points with mass, and equality where mass moves, in whole numbers. For
    order inf c counts up to the longest move only: all plans compared move no farther."""
    limit = plan.longest(design.distance) if np.isinf(design.order) else np.inf
    u, v = plan.potentials
    unit = 1 << plan.shift
    passed, count = True, 0
    for x in plan.first.support:
        for y in plan.second.support:
            d = float(design.distance[x, y])
            if d > limit:
                continue
            count += 1
            slack = Fraction(d) * unit - u[x] - v[y]
            passed &= slack >= 0 and (slack == 0 or (x, y) not in plan.flows)
    detail = f"{name}: potentials {'prove' if passed else 'do not prove'} the plan optimal"
    return Check("plan", None, count, passed, 0.0, detail)


def _worst_move(name: str, plan: RationalPlan, sources: tuple[int, ...], distance: Floats) -> Check:
    longest = plan.longest(distance)
    passed = longest == 0 or (
        bool(sources) and is_crowded(plan.first, plan.second, sources, distance < longest)
    )
    detail = f"{name}: longest move {longest:.9g}, and {'no' if passed else 'maybe a'} shorter one"
    return Check("longest move", None, 1, passed, longest, detail)


def _name(design: TargetDesign) -> str:
    """The distance that the matrix is, of those that a reader can compute again."""
    for name in NAMED:
        try:
            if misnamed(name, design.secrets, design.observables, design.distance) is None:
                return name
        except ProblemError:
            continue
    return NAMELESS


def _encode(design: TargetDesign, distance_name: str) -> Plain:
    """What a file has of a design, but for its claims."""
    multipliers = design.multipliers
    return {
        "format": FAMILY,
        "task": design.task,
        "p": "inf" if np.isinf(design.order) else 1,
        "epsilon": design.epsilon.text,
        "delta": design.delta.text,
        "outside": design.outside,
        "secrets": encode_domain(design.secrets),
        "observables": encode_domain(design.observables),
        "names": list(design.names),
        "weights": _texts(design.weights.units),
        "distance_name": distance_name,
        "distance": design.distance.tolist(),
        "plans": [_encode_plan(plan, design.task == "coupling") for plan in design.plans],
        "multipliers": None
        if multipliers is None
        else {
            "values": [[_texts(row) for row in part] for part in multipliers.units],
            "shift": multipliers.shift,
        },
        "crowded": [list(points) for points in design.crowded],
        "seconds": design.seconds,
    }


def _encode_plan(plan: RationalPlan, proof: bool) -> Plain:
    out: Plain = {
        "input": _texts(plan.first.units),
        "output": _texts(plan.second.units),
        "moves": [[x, y, f"{flow:x}"] for (x, y), flow in sorted(plan.flows.items())],
    }
    if proof:
        out |= {"potentials": [_texts(side) for side in plan.potentials], "shift": plan.shift}
    return out


def _plan(plain: Plain, shape: tuple[int, int], *, proof: bool) -> RationalPlan:
    """The plan, with both marginals decided in whole numbers."""
    first, second = (_shares(plain[k], size) for k, size in zip(_SIDES, shape, strict=True))
    flows = {
        (_index(x, shape[0]), _index(y, shape[1])): int(text, 16) for x, y, text in plain["moves"]
    }
    _require(min(flows.values()) > 0, "a move moves nothing")
    total = sum(flows.values())
    for side, given in enumerate((first, second)):
        sums = [0] * shape[side]
        for place, flow in flows.items():
            sums[place[side]] += flow
        exact = all(a * given.total == b * total for a, b in zip(sums, given.units, strict=True))
        _require(exact, "a plan does not have its marginals")
    if not proof:
        return RationalPlan(first, second, flows, total, ((0,) * shape[0], (0,) * shape[1]), 0)
    u, v = (_numbers(side) for side in plain["potentials"])
    for potentials, given in ((u, first), (v, second)):
        idle = [p for p, unit in zip(potentials, given.units, strict=True) if not unit]
        _require(not any(idle), "a point without mass has a potential")
    return RationalPlan(first, second, flows, total, (u, v), _shift(plain["shift"]))


def _multipliers(plain: Plain, shape: tuple[int, int, int]) -> Multipliers | None:
    if plain is None:
        return None
    values = tuple(tuple(_numbers(row) for row in part) for part in plain["values"])
    array = np.array(values, dtype=object)
    _require(array.shape == shape and array.min() >= 0, "multipliers are missing or below 0")
    own = any(any(part[t]) for t, part in enumerate(values))
    _require(not own, "an input has a multiplier with itself")
    return Multipliers(values, _shift(plain["shift"]))


def _domain(plain: Plain, count: int) -> Domain:
    """A domain of as many points: a grid may be far larger than its file."""
    size = math.prod(plain["grid"]) if "grid" in plain else len(plain["labels"])
    _require(size == count, f"{size} points for {count} rows or columns of distances")
    return decode_domain(plain)


def _shares(texts: Plain, count: int) -> Shares:
    units = _numbers(texts)
    _require(len(units) == count and min(units) >= 0 and any(units), "no distribution")
    return Shares(units, sum(units))


def _index(value: Plain, count: int) -> int:
    _require(0 <= value < count, f"{value!r} is no point")
    return int(value)


def _shift(value: Plain) -> int:
    _require(0 <= value <= _LARGEST_SHIFT, "a shift is unusable")
    return int(value)


def _numbers(texts: Plain) -> tuple[int, ...]:
    return tuple(int(text, 16) for text in texts)


def _texts(values: tuple[int, ...]) -> list[str]:
    return [f"{value:x}" for value in values]


def _text(plain: Plain) -> str:
    # true is not 1, nor 1 the same as 1.0
    return json.dumps(plain, sort_keys=True, allow_nan=False)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ProblemError(message, where="targets")
