"""Every inequality of a statement, decided exactly on an integer matrix (theory: "The check").

Ratios and (ε, δ) sums are first evaluated in floating point with a proved bound of its error;
what that cannot decide is decided in whole numbers against enclosures of e^{εd}.
"""

import numpy as np

from optmech.certificate.check import Check
from optmech.certificate.families import known
from optmech.certificate.families.gradient import check_mesh
from optmech.certificate.statement import Statement
from optmech.certificate.values import at_places
from optmech.errors import VerificationError
from optmech.exact.numerators import Numerators


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
        return (rows, *(family.decide(statement, released, released) for family in families))
    between = at_places(spread, released) if len(families) > 1 else (released, released)
    decided = [rows, check_mesh(spread.mesh)]
    for family in families:
        if family.spread() is not None:
            decided.append(family.decide(statement, released, released))
        elif family.alone:
            raise VerificationError(
                f"nothing is decided of {family.kind} families beside privacy at every point",
                where=f"constraints[{family.index}]",
            )
        else:
            decided.append(family.decide(statement, *between))
    return tuple(decided)
