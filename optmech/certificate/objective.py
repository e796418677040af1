"""The value of a matrix under a statement's objective, in minimised form."""

from __future__ import annotations

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.statement import Statement


def objective_value(statement: Statement, matrix: Floats) -> float:
    """Expected loss (PG 3), worst loss (PG 4), or minus the distortion (PG 21)."""
    if statement.objective == "maximize_distortion":
        assert statement.target is not None
        return -float((statement.target @ matrix).min(axis=0).sum())
    per_secret = (statement.loss * matrix).sum(axis=1)
    if statement.objective == "worst_loss":
        return float(per_secret.max())
    return float(statement.prior @ per_secret)


OPTIMAL_GAP = 1e-6
"""Up to this certified relative gap a mechanism is called optimal, whatever gap was asked for."""


def is_optimal(gap: float) -> bool:
    """Whether a certified relative gap is small enough for the word; never where it is unknown."""
    return gap <= OPTIMAL_GAP


def relative_gap(value: float, bound: float) -> float:
    """(value - bound) / |value|, and 0 where they agree to rounding."""
    difference = max(0.0, value - bound)
    if difference == 0:
        return 0.0
    return difference / abs(value) if value != 0 else np.inf


def trivial_bound(statement: Statement) -> float:
    """What holds for every mechanism: losses are >= 0, distortion is at most that of silence."""
    if statement.objective == "maximize_distortion":
        assert statement.target_factors is not None
        return values.rounded_down(-values.blind(*statement.target_factors))
    return 0.0
