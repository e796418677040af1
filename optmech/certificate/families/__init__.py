"""The families of inequalities that the certificate decides, one module each."""

from optmech.certificate.families.base import FAMILIES as FAMILIES
from optmech.certificate.families.base import Trusted as Trusted
from optmech.certificate.families.base import known as known
from optmech.certificate.families.base import trusted as trusted
from optmech.certificate.families.divergence import Divergence as Divergence
from optmech.certificate.families.divergence import DivergenceMultipliers as DivergenceMultipliers
from optmech.certificate.families.divergence import Information as Information
from optmech.certificate.families.fixed import Fixed as Fixed
from optmech.certificate.families.fixed import Support as Support
from optmech.certificate.families.gradient import Gradient as Gradient
from optmech.certificate.families.gradient import MeshMultipliers as MeshMultipliers
from optmech.certificate.families.leakage import AttackMultipliers as AttackMultipliers
from optmech.certificate.families.leakage import Distortion as Distortion
from optmech.certificate.families.leakage import Leakage as Leakage
from optmech.certificate.families.loss import Bias as Bias
from optmech.certificate.families.loss import LossLimit as LossLimit
from optmech.certificate.families.pushed import Approximate as Approximate
from optmech.certificate.families.pushed import (
    ApproximateMultipliers as ApproximateMultipliers,
)
from optmech.certificate.families.pushed import LiftedRatio as LiftedRatio
from optmech.certificate.families.ratio import PairMultipliers as PairMultipliers
from optmech.certificate.families.ratio import Ratio as Ratio
