"""What is decided of a family of mechanisms: its outputs, and that its plans are optimal."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate.check import Check
from optmech.transport.outputs import are_close, largest_divergence
from optmech.transport.rational import RationalPlan, is_crowded

if TYPE_CHECKING:
    from optmech.mechanisms.targets.design import TargetDesign


def checks_of(design: TargetDesign) -> Iterator[Check]:
    """Every row, the outputs, and every plan of a coupling."""
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
