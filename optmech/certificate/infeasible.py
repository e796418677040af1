"""Closed-form reasons why a statement cannot be satisfied, each with its numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optmech.certificate.bound import infeasibility_margin
from optmech.certificate.families import known
from optmech.certificate.multipliers import Multipliers
from optmech.statement import Statement


def closed_form_reason(statement: Statement) -> str:
    """A proof by arithmetic that nothing is feasible, in words; empty where there is none."""
    reasons = (family.impossible(statement) for family in known(statement))
    return next(filter(None, reasons), "")


def forced_zeros(statement: Statement) -> NDArray[np.bool_]:
    """Entries (S, O) that must be zero: outside the support, or facing a forced zero in a ratio
    constraint that holds there."""
    families = known(statement)
    zero = ~statement.allowed
    while zero.any():
        grown = zero
        for family in families:
            grown = grown | family.forced_zeros(zero)
        if np.array_equal(grown, zero):
            break
        zero = grown
    return zero


def support_reason(statement: Statement) -> str:
    """Whether the support and the ratio constraints together leave a secret with nothing."""
    empty = np.flatnonzero(forced_zeros(statement).all(axis=1))
    if not len(empty):
        return ""
    return (
        f"the support leaves {len(empty)} secret(s) without observables, the first of index "
        f"{empty[0]}: finite ε makes p(o|s) = 0 wherever p(o|s') = 0 for a constrained pair"
        + (
            ", and at every point what is 0 at one of them. Widen the support until some "
            "observable is allowed at every place"
            if statement.spread is not None
            else ". Widen the support, or constrain fewer pairs"
        )
    )


def multiplier_reason(statement: Statement, multipliers: Multipliers) -> str:
    """Words for a Farkas certificate, if the multipliers are one; empty where they are not."""
    margin = infeasibility_margin(statement, multipliers)
    if not margin > 0:
        return ""
    named = (family.in_words(given) for family, given in multipliers.of(statement))
    parts = list(dict.fromkeys(filter(None, named)))
    return (
        f"{', '.join(parts) or 'the constraints'} cannot hold together: their combination with "
        f"the recorded multipliers demands 0 >= {margin:.3g}. Relax at least one of them"
    )
