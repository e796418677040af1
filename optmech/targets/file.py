"""Families of mechanisms as files: everything that is needed to prove them again.

A file has the inputs, the flows of every plan and its potentials as whole numbers, the distances,
the multipliers and the claims. The mechanisms are the flows divided by their row sums: nothing is
stored twice. Reading computes every claim anew and in exact arithmetic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optmech.certificate.check import Check
from optmech.design_file import CheckReport
from optmech.domain import Floats, finite_array
from optmech.encoding.problem import decode_domain, encode_domain
from optmech.errors import ProblemError, VerificationError
from optmech.exact import Exact, parse_exact
from optmech.rationals import Shares
from optmech.sealed import FAMILY, decoding, read_sealed, seal
from optmech.storage import write_atomically
from optmech.targets.closeness import are_close, max_divergence
from optmech.targets.design import TargetDesign
from optmech.transport.rational import RationalPlan, is_crowded

Plain = Any
_REWRITE = "Make the design again and save it"
_HEX = re.compile(r"-?[0-9a-f]{1,100000}", re.ASCII)


def save_target(design: TargetDesign, path: str | Path) -> None:
    """Write a design; raises ProblemError where labels cannot be written or the path cannot."""
    body = {
        "format": FAMILY,
        "task": design.task,
        "p": "inf" if np.isinf(design.order) else 1,
        "epsilon": design.epsilon.text,
        "delta": design.delta.text,
        "outside": design.outside,
        "secrets": encode_domain(design.secrets),
        "observables": encode_domain(design.observables),
        "names": list(design.names),
        "weights": _numbers(design.weights.units),
        "distance": design.distance.tolist(),
        "plans": [_encode_plan(plan) for plan in design.plans],
        "multipliers": None if design.multipliers is None else design.multipliers.tolist(),
        "crowded": [list(sources) for sources in design.crowded],
        "claims": {
            "loss": design.loss,
            "lower_bound": design.lower_bound,
            "losses": list(design.losses),
            "worst_moves": list(design.worst_moves),
        },
        "seconds": design.seconds,
    }
    write_atomically(path, seal(json.dumps(body, allow_nan=False).encode()))


def load_target(path: str | Path) -> TargetDesign:
    """Read a design and check it again.

    Raises
    ------
    ProblemError
        If the file cannot be read or is not one of this format.
    VerificationError
        If it was altered, or does not hold what it claims.
    """
    body = read_sealed(path, (FAMILY,), _REWRITE)
    report = examine_target(body, str(path))
    if not report.passed:
        raise VerificationError(report.faults[0], where=str(path), remedy=_REWRITE)
    return _decode(body, str(path))


def examine_target(body: dict[str, Any], path: str) -> CheckReport:
    """Every claim of a file, recomputed from its numbers."""
    design = _decode(body, path)
    checks = tuple(_checks(design))
    faults = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    claims = body["claims"]
    for name, proper, sense in (
        ("loss", design.loss, 0),
        ("losses", list(design.losses), 0),
        ("worst_moves", list(design.worst_moves), 0),
        ("lower_bound", design.lower_bound, 1),
    ):
        claimed = claims[name]
        if not (claimed == proper or (sense and claimed <= proper)):
            faults.append(f"{name} is {claimed!r} in the file and {proper!r} recomputed")
    return CheckReport(
        path=path,
        status="optimal" if design.gap <= 1e-6 else "feasible",
        checks=checks,
        objective=design.loss,
        bound=design.lower_bound,
        gap=design.gap,
        loss=design.loss,
        lower_bound=design.lower_bound,
        faults=tuple(faults),
    )


def _checks(design: TargetDesign) -> Iterator[Check]:
    count, (n, m) = len(design.plans), design.distance.shape
    yield Check(
        "distributions",
        None,
        count * n * (m + 1),
        True,
        0.0,
        f"{count} inputs, whole numbers, every row a distribution",
    )
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
    worst = max(max_divergence(p, q) for p in outputs for q in outputs)
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


def _decode(body: dict[str, Any], path: str) -> TargetDesign:
    with decoding(path, _REWRITE):
        return _design(body)


def _design(body: dict[str, Any]) -> TargetDesign:
    secrets, observables = decode_domain(body["secrets"]), decode_domain(body["observables"])
    distance = finite_array(body["distance"], where="distance", ndim=2)
    shape = (len(secrets), len(observables))
    names = tuple(map(str, body["names"]))
    weights = _shares(body["weights"], len(names))
    _require(distance.shape == shape and bool((distance >= 0).all()), "the distances do not fit")
    _require(body["task"] in ("coupling", "target"), "the task is unknown")
    _require(body["outside"] in ("target", "nearest"), "the rule for other inputs is unknown")
    _require(body["p"] in (1, "inf"), "p is neither 1 nor inf")
    _require(len(body["plans"]) == len(names) == len(set(names)), "a plan or a name is missing")
    _require(len(body["crowded"]) in (0, len(names)), "the sets of points do not fit")
    _require(bool(body["crowded"]) == (body["p"] == "inf"), "the sets of points do not fit p")
    _require(type(body["claims"]) is dict, "there are no claims")
    multipliers = body["multipliers"]
    if multipliers is not None:
        multipliers = finite_array(multipliers, where="multipliers", ndim=3)
        fits = multipliers.shape == (len(names), len(names), shape[1])
        _require(fits, "the multipliers do not fit")
    return TargetDesign(
        secrets=secrets,
        observables=observables,
        names=names,
        weights=weights,
        distance=distance,
        plans=tuple(_decode_plan(plain, shape) for plain in body["plans"]),
        task=body["task"],
        epsilon=_exact(body["epsilon"], "epsilon"),
        delta=_exact(body["delta"], "delta"),
        order=float(body["p"]),
        outside=body["outside"],
        multipliers=multipliers,
        crowded=tuple(_indices(sources, shape[0]) for sources in body["crowded"]),
        seconds=float(body["seconds"]),
    )


def _exact(value: Plain, where: str) -> Exact:
    return parse_exact(value, where=where)


def _encode_plan(plan: RationalPlan) -> Plain:
    moves = sorted(plan.flows.items())
    return {
        "input": _numbers(plan.first.units),
        "output": _numbers(plan.second.units),
        "moves": [[x, y, f"{flow:x}"] for (x, y), flow in moves],
        "potentials": [_numbers(side) for side in plan.potentials],
        "shift": plan.shift,
    }


def _decode_plan(plain: Plain, shape: tuple[int, int]) -> RationalPlan:
    """The plan, with both marginals decided in whole numbers."""
    first, second = _shares(plain["input"], shape[0]), _shares(plain["output"], shape[1])
    u, v = (
        tuple(_whole(text) for text in side)
        for side, count in zip(plain["potentials"], shape, strict=True)
        if len(side) == count
    )
    flows: dict[tuple[int, int], int] = {}
    sums = [[0] * shape[0], [0] * shape[1]]
    for x, y, text in plain["moves"]:
        flow = _whole(text)
        fresh = type(x) is type(y) is int and min(x, y) >= 0 and (x, y) not in flows
        _require(fresh and flow > 0, "a move is not one")
        flows[x, y] = flow
        sums[0][x] += flow
        sums[1][y] += flow
    total = sum(flows.values())
    for side, given in zip(sums, (first, second), strict=True):
        exact = all(a * given.total == b * total for a, b in zip(side, given.units, strict=True))
        _require(exact, "a plan does not have its marginals")
    _require(type(plain["shift"]) is int and 0 <= plain["shift"] <= 5000, "the shift is unusable")
    return RationalPlan(first, second, flows, total, (u, v), plain["shift"])


def _numbers(values: tuple[int, ...]) -> list[str]:
    return [f"{value:x}" for value in values]


def _whole(text: Plain) -> int:
    _require(type(text) is str and _HEX.fullmatch(text) is not None, f"{text!r} is no number")
    return int(text, 16)


def _shares(texts: Plain, count: int) -> Shares:
    units = [_whole(text) for text in texts]
    _require(len(units) == count and min(units) >= 0 and any(units), "no distribution")
    return Shares.reduced(units)


def _indices(values: Plain, count: int) -> tuple[int, ...]:
    _require(all(type(k) is int and 0 <= k < count for k in values), "a point is outside")
    return tuple(values)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ProblemError(message, where="targets")
