"""The proof layer: checks matrices and bounds against a ``Statement``, trusting no solver."""

from optmech.certificate.bound import (
    Multipliers as Multipliers,
    infeasibility_margin as infeasibility_margin,
    lower_bound as lower_bound,
)
from optmech.certificate.check import Check as Check
from optmech.certificate.exact import check_exact as check_exact
from optmech.certificate.lagrangian import Bound as Bound
