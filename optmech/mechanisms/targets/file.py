"""Families of mechanisms as files: everything that is needed to prove them again.

A file has the inputs, the flows of every plan and its potentials as whole numbers, the distances,
the multipliers and the claims. The mechanisms are the flows divided by their row sums: nothing is
stored twice. Reading computes every claim anew and in exact arithmetic, and distances that have a
name from the coordinates. Labels, coordinates, units, names of inputs and seconds are the file's
own words, and reports say so.
"""

from __future__ import annotations

import json
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
from optmech.designs.encoding.problem import encode_domain
from optmech.errors import ProblemError
from optmech.mechanisms.targets.closeness import are_close, largest_divergence
from optmech.mechanisms.targets.decoding import NAMELESS, StatedDesign, decode_design
from optmech.mechanisms.targets.design import TargetDesign
from optmech.reading.sealed import FAMILY, decoding, read_sealed, seal
from optmech.spaces.tabulated import NAMED, misnamed
from optmech.transport.barycenters import relative_gap
from optmech.transport.joint import Multipliers
from optmech.transport.rational import RationalPlan, is_crowded

Plain = Any
REWRITE = "Make the design again and save it"
_OWN_WORDS = (
    "the labels, coordinates and units, the names of the inputs and the seconds are the file's own "
    "words: nothing in it can prove them"
)


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
        "distance_name": _name(design),
        "distance": design.distance.tolist(),
        "plans": [_encode_plan(plan, design.task == "coupling") for plan in design.plans],
        "multipliers": _encode_multipliers(design.multipliers),
        "crowded": [list(sources) for sources in design.crowded],
        "claims": design.claims(),
        "seconds": design.seconds,
    }
    content = seal(json.dumps(body, allow_nan=False).encode())
    write_atomically(path, compressed(path, content))


def load_target(path: str | Path) -> TargetDesign:
    """Read a design and check it again; raises ProblemError where the file cannot be read or is
    not one of this format, VerificationError where it does not hold what it claims."""
    return proved(decode_target, read_sealed(path, (FAMILY,), REWRITE), str(path), REWRITE)


def decode_target(body: dict[str, Any], path: str) -> tuple[TargetDesign, CheckReport]:
    """A design from a file's content, and every claim of it recomputed."""
    with decoding(path, REWRITE):
        stated = decode_design(body)
    return stated.design, _examined(stated, path)


def _examined(stated: StatedDesign, path: str) -> CheckReport:
    design, claims, proper = stated.design, stated.claims, stated.design.claims()
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
            if stated.distance_name == NAMELESS
            else f"the distances are {stated.distance_name}, computed again from the file's labels "
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


def _encode_plan(plan: RationalPlan, proof: bool) -> Plain:
    out: Plain = {
        "input": _numbers(plan.first.units),
        "output": _numbers(plan.second.units),
        "moves": [[x, y, f"{flow:x}"] for (x, y), flow in sorted(plan.flows.items())],
    }
    if proof:
        out |= {"potentials": [_numbers(side) for side in plan.potentials], "shift": plan.shift}
    return out


def _encode_multipliers(multipliers: Multipliers | None) -> Plain:
    if multipliers is None:
        return None
    values = [[_numbers(row) for row in table] for table in multipliers.units]
    return {"values": values, "shift": multipliers.shift}


def _numbers(values: tuple[int, ...]) -> list[str]:
    return [f"{value:x}" for value in values]
