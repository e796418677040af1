"""The families of inequalities that the certificate decides, one module each."""

from optmech.certificate.families.approximate import Approximate, ApproximateMultipliers
from optmech.certificate.families.base import FAMILIES, Trusted, known, trusted
from optmech.certificate.families.distortion import AttackMultipliers, Distortion
from optmech.certificate.families.divergence import Divergence, DivergenceMultipliers
from optmech.certificate.families.lifted import LiftedRatio
from optmech.certificate.families.loss import LossLimit
from optmech.certificate.families.ratio import PairMultipliers, Ratio
from optmech.certificate.families.support import Support

__all__ = [
    "FAMILIES",
    "Approximate",
    "ApproximateMultipliers",
    "AttackMultipliers",
    "Distortion",
    "Divergence",
    "DivergenceMultipliers",
    "LiftedRatio",
    "LossLimit",
    "PairMultipliers",
    "Ratio",
    "Support",
    "Trusted",
    "known",
    "trusted",
]
