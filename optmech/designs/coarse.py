"""The arrays of a coarse problem as a problem, whose design proves a lower bound of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.problem import MetricPrivacy, Problem
from optmech.spaces import distances
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Prior

if TYPE_CHECKING:
    from optmech.reductions.aggregation import Coarse


def problem_over(coarse: Coarse, observables: Domain) -> Problem:
    """Cells as secrets, with their mass, costs and finite log ratios."""
    return Problem(
        Prior(Domain(range(len(coarse.prior))), coarse.prior),
        coarse.cost,
        observables,
        constraints=[MetricPrivacy(1, distances.matrix(coarse.log_ratio))],
    )
