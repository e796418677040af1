"""The proof layer: checks matrices and bounds against a ``Statement``, trusting no solver."""

from optmech.certificate.bound import Bound, infeasibility_margin, lower_bound
from optmech.certificate.check import Check, check_matrix
from optmech.certificate.exact import check_exact
from optmech.certificate.multipliers import (
    ApproximateMultipliers,
    AttackMultipliers,
    DivergenceMultipliers,
    Multipliers,
    PairMultipliers,
)

__all__ = [
    "ApproximateMultipliers",
    "AttackMultipliers",
    "Bound",
    "Check",
    "DivergenceMultipliers",
    "Multipliers",
    "PairMultipliers",
    "check_exact",
    "check_matrix",
    "infeasibility_margin",
    "lower_bound",
]
