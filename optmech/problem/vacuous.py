"""Promises that hold for every mechanism: a slip of the pen, and nothing is protected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optmech.problem.constraints import (
    Constraint,
    DifferentialPrivacy,
    DistortionPrivacy,
    DistributionPrivacy,
    MetricPrivacy,
)
from optmech.spaces.distances import Distance, evaluate
from optmech.spaces.domain import Domain


def vacuous_notes(
    constraints: Sequence[Constraint], secrets: Domain, observables: Domain
) -> tuple[str, ...]:
    """A sentence for every privacy constraint, or pair of distributions, that constrains nothing
    whatever the mechanism is."""
    found = []
    for k, constraint in enumerate(constraints):
        for where, why in _reasons(constraint, secrets, observables):
            found.append(f"constraints[{k}]{where} constrains nothing: {why}")
    return tuple(found)


def _reasons(constraint: Constraint, secrets: Domain, observables: Domain) -> list[tuple[str, str]]:
    match constraint:
        case MetricPrivacy() if constraint.delta >= 1:
            return [("", "δ is 1")]
        case MetricPrivacy():
            return _metric(constraint, secrets, observables)
        case DifferentialPrivacy() if constraint.delta >= 1:
            return [("", "δ is 1")]
        case DifferentialPrivacy():
            adjacency = constraint.adjacency
            if len(secrets) == 1 or (
                callable(adjacency[0]) and not _pairs(adjacency[0], float(adjacency[1]), secrets)  # type: ignore[arg-type]
            ):
                return [("", "no two secrets are adjacent")]
        case DistortionPrivacy() if not constraint.minimum > 0:
            return [("", "the minimum is 0")]
        case DistributionPrivacy():
            return _distributions(constraint)
        case _:
            pass
    return []


def _metric(
    constraint: MetricPrivacy, secrets: Domain, observables: Domain
) -> list[tuple[str, str]]:
    if constraint.threshold is None:
        kept = len(secrets) > 1
    else:
        kept = _pairs(constraint.distance, constraint.threshold, secrets)
    if not kept:
        return [("", "no pair of secrets is kept")]
    if constraint.observable_threshold is not None:
        reach = evaluate(constraint.distance, secrets, observables, where="distance")
        if not (reach <= constraint.observable_threshold).any():
            return [("", "no observable is near enough to any secret")]
    return []


def _pairs(distance: Distance, radius: float, secrets: Domain) -> bool:
    """Whether two secrets are at most ``radius`` apart."""
    near = evaluate(distance, secrets, secrets, where="distance") <= radius
    np.fill_diagonal(near, False)
    return bool(near.any())


def _distributions(constraint: DistributionPrivacy) -> list[tuple[str, str]]:
    if constraint.delta >= 1:
        return [("", "δ is 1")]
    equal = [k for k, (a, b) in enumerate(constraint.pairs) if np.array_equal(a, b)]
    if len(equal) == len(constraint.pairs):
        return [("", "both distributions of every pair are the same")]
    if constraint.divergence in ("tv", "hellinger"):
        scale = constraint.scale or (1.0,)
        if constraint.epsilon * min(scale) >= 1:
            return [("", "this divergence never exceeds 1")]
    return [(f".pairs[{k}]", "both distributions are the same") for k in equal]
