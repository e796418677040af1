"""What is wanted: a problem, its constraints, and the statement that they make."""

from optmech.problem.constraint import Constraint as Constraint
from optmech.problem.constraints import (
    AdditiveCapacity as AdditiveCapacity,
    Bias as Bias,
    DifferentialPrivacy as DifferentialPrivacy,
    DistortionPrivacy as DistortionPrivacy,
    DistributionPrivacy as DistributionPrivacy,
    FixedRows as FixedRows,
    GainLeakage as GainLeakage,
    Linear as Linear,
    LossBound as LossBound,
    MaximalLeakage as MaximalLeakage,
    MetricPrivacy as MetricPrivacy,
    MutualInformation as MutualInformation,
    PointwiseMaximalLeakage as PointwiseMaximalLeakage,
    PolicyGraph as PolicyGraph,
    Pufferfish as Pufferfish,
    Ratios as Ratios,
    RenyiPrivacy as RenyiPrivacy,
    Support as Support,
)
from optmech.problem.problem import (
    MaximizeDistortion as MaximizeDistortion,
    MinimizeLeakage as MinimizeLeakage,
    Problem as Problem,
)
from optmech.problem.statistics import MinimizeVariance as MinimizeVariance
