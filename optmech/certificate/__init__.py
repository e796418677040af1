"""The proof layer: checks matrices and bounds against a ``Statement``, trusting no solver."""

from optmech.certificate.bound import Bound, infeasibility_margin, lower_bound
from optmech.certificate.check import Check, check_matrix
from optmech.certificate.multipliers import (
    AttackMultipliers,
    Multipliers,
    PairMultipliers,
    TestMultipliers,
)

__all__ = [
    "AttackMultipliers",
    "Bound",
    "Check",
    "Multipliers",
    "PairMultipliers",
    "TestMultipliers",
    "check_matrix",
    "infeasibility_margin",
    "lower_bound",
]
