"""The figures of a design that a run records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optmech.designs.design import Design


def figures_of(design: Design) -> dict[str, Any]:
    """Its summary, and ``attack_error``: what the optimal attack on its mechanism is left with, in
    the distance of ``choose_distance``; None where there is no mechanism."""
    found = design.summary()
    found["attack_error"] = None if design.matrix is None else _attack_error(design)
    return found


def _attack_error(design: Design) -> float:
    from optmech.analysis import attacks
    from optmech.problem.attacked import choose_distance

    distance = choose_distance(design.problem)[1]
    return float(attacks.optimal(design.mechanism, design.problem.prior, distance).error)
