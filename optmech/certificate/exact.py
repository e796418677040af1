"""Every inequality of a statement, decided exactly on an integer matrix (theory: "The check").

Ratios and (ε, δ) sums are first evaluated in floating point with a proved bound of its error;
what that cannot decide is decided in whole numbers against enclosures of e^{εd}.
"""

from __future__ import annotations

import numpy as np

from optmech.certificate.check import Check
from optmech.certificate.families import known
from optmech.certificate.gradients import check_mesh
from optmech.certificate.places import at_places
from optmech.exact.numerators import Numerators
from optmech.statement import Statement


def check_exact(statement: Statement, released: Numerators) -> tuple[Check, ...]:
    """Check every inequality that the statement claims; never raises on a bad matrix. Raises
    VerificationError where the statement has parts that the certificate does not know."""
    families = known(statement)
    shape, spread = released.shape, statement.spread
    if shape != (statement.rows, statement.observables):
        detail = f"shape {shape} instead of {(statement.rows, statement.observables)}"
        return (Check("matrix", None, 1, False, np.inf, detail),)
    rows = Check(
        "distributions",
        None,
        statement.rows * (statement.observables + 1),
        True,
        0.0,
        f"whole numbers over 2^{released.bits}, every row with sum 2^{released.bits}",
    )
    if spread is None:
        return (rows, *(family.decide(statement, released) for family in families))
    low, high = at_places(spread, released) if len(families) > 1 else (None, None)
    decided = (
        family.decide_between(statement, low, high)
        if low is not None and high is not None and family.spread() is None
        else family.decide(statement, released)
        for family in families
    )
    return (rows, check_mesh(spread.mesh), *decided)
