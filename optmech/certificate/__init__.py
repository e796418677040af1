"""The proof layer: checks matrices and bounds against a ``Statement``, trusting no solver."""

from optmech.certificate.bound import infeasibility_margin, lower_bound
from optmech.certificate.check import Check
from optmech.certificate.exact import check_exact
from optmech.certificate.lagrangian import Bound
from optmech.certificate.multipliers import Multipliers

__all__ = [
    "Bound",
    "Check",
    "Multipliers",
    "check_exact",
    "infeasibility_margin",
    "lower_bound",
]
