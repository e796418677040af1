"""Every kind of constraint; those that most problems have are names of ``om`` too. Related kinds
are in one file, and all modules of this folder are imported.

Sources: PG = Shokri, Privacy Games (PETS 2015); DP19 = Kawamoto and Murakami, Local Obfuscation
Mechanisms for Hiding Probability Distributions (ESORICS 2019); CM19 = the same, Local Distribution
Obfuscation via Probability Coupling (Allerton 2019).
"""

from importlib import import_module
from pkgutil import iter_modules

from optmech.problem.constraints.differential import (
    DifferentialPrivacy as DifferentialPrivacy,
    MetricPrivacy as MetricPrivacy,
    PolicyGraph as PolicyGraph,
)
from optmech.problem.constraints.distribution import (
    DistributionPrivacy as DistributionPrivacy,
    MutualInformation as MutualInformation,
    Pufferfish as Pufferfish,
    RenyiPrivacy as RenyiPrivacy,
)
from optmech.problem.constraints.fixed_rows import FixedRows as FixedRows
from optmech.problem.constraints.leakage import (
    AdditiveCapacity as AdditiveCapacity,
    DistortionPrivacy as DistortionPrivacy,
    GainLeakage as GainLeakage,
    MaximalLeakage as MaximalLeakage,
    PointwiseMaximalLeakage as PointwiseMaximalLeakage,
)
from optmech.problem.constraints.own import Linear as Linear, Ratios as Ratios
from optmech.problem.constraints.utility import (
    Bias as Bias,
    LossBound as LossBound,
    Support as Support,
)

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [name for name in sorted(globals()) if name[0].isupper()]
__dir__ = __all__.copy
