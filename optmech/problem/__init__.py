"""What is wanted: a problem, its constraints, and the statement that they make."""

from optmech.problem.constraint import Constraint as Constraint
from optmech.problem.constraints import AdditiveCapacity as AdditiveCapacity
from optmech.problem.constraints import Bias as Bias
from optmech.problem.constraints import DifferentialPrivacy as DifferentialPrivacy
from optmech.problem.constraints import DistortionPrivacy as DistortionPrivacy
from optmech.problem.constraints import DistributionPrivacy as DistributionPrivacy
from optmech.problem.constraints import FixedRows as FixedRows
from optmech.problem.constraints import GainLeakage as GainLeakage
from optmech.problem.constraints import LossBound as LossBound
from optmech.problem.constraints import MaximalLeakage as MaximalLeakage
from optmech.problem.constraints import MetricPrivacy as MetricPrivacy
from optmech.problem.constraints import MutualInformation as MutualInformation
from optmech.problem.constraints import PolicyGraph as PolicyGraph
from optmech.problem.constraints import Pufferfish as Pufferfish
from optmech.problem.constraints import RenyiPrivacy as RenyiPrivacy
from optmech.problem.constraints import Support as Support
from optmech.problem.problem import MaximizeDistortion as MaximizeDistortion
from optmech.problem.problem import MinimizeLeakage as MinimizeLeakage
from optmech.problem.problem import Problem as Problem
