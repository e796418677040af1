"""The families of inequalities that the certificate decides, one module each."""

from optmech.certificate.families.base import (
    FAMILIES as FAMILIES,
    Trusted as Trusted,
    known as known,
    trusted as trusted,
)
from optmech.certificate.families.fixed import Fixed as Fixed, Support as Support
from optmech.certificate.families.gradient import (
    Gradient as Gradient,
    MeshMultipliers as MeshMultipliers,
)
from optmech.certificate.families.limits import (
    AttackMultipliers as AttackMultipliers,
    Bias as Bias,
    Distortion as Distortion,
    Leakage as Leakage,
    LossLimit as LossLimit,
)
from optmech.certificate.families.linear import Linear as Linear
from optmech.certificate.families.pushforward import (
    Approximate as Approximate,
    ApproximateMultipliers as ApproximateMultipliers,
    Divergence as Divergence,
    DivergenceMultipliers as DivergenceMultipliers,
    Information as Information,
    LiftedRatio as LiftedRatio,
)
from optmech.certificate.families.ratio import PairMultipliers as PairMultipliers, Ratio as Ratio
