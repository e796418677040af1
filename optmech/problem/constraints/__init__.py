"""The kinds of constraints, related ones in one file; all modules of this folder are imported.

Sources: PG = Shokri, Privacy Games (PETS 2015); DP19 = Kawamoto and Murakami, Local Obfuscation
Mechanisms for Hiding Probability Distributions (ESORICS 2019); CM19 = the same, Local Distribution
Obfuscation via Probability Coupling (Allerton 2019).
"""

from importlib import import_module
from pkgutil import iter_modules

from optmech.problem.constraints.differential import DifferentialPrivacy as DifferentialPrivacy
from optmech.problem.constraints.distortion import DistortionPrivacy as DistortionPrivacy
from optmech.problem.constraints.distribution import (
    DistributionPrivacy as DistributionPrivacy,
    Pufferfish as Pufferfish,
)
from optmech.problem.constraints.fixed_rows import FixedRows as FixedRows
from optmech.problem.constraints.information import (
    MutualInformation as MutualInformation,
    RenyiPrivacy as RenyiPrivacy,
)
from optmech.problem.constraints.leakage import (
    AdditiveCapacity as AdditiveCapacity,
    GainLeakage as GainLeakage,
    MaximalLeakage as MaximalLeakage,
    PointwiseMaximalLeakage as PointwiseMaximalLeakage,
)
from optmech.problem.constraints.metric import MetricPrivacy as MetricPrivacy
from optmech.problem.constraints.policy import PolicyGraph as PolicyGraph
from optmech.problem.constraints.support import Support as Support
from optmech.problem.constraints.utility import Bias as Bias, LossBound as LossBound

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
