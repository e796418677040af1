"""What is wanted: a problem, its constraints, and the statement that they make."""

from optmech.problem.constraint import Constraint as Constraint
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
from optmech.problem.problem import (
    MaximizeDistortion as MaximizeDistortion,
    MinimizeLeakage as MinimizeLeakage,
    Problem as Problem,
)
from optmech.problem.statistics import MinimizeVariance as MinimizeVariance
