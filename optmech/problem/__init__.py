"""What is wanted: a problem, its constraints, and the statement that they make."""

from optmech.problem.constraint import Constraint
from optmech.problem.constraints import (
    DifferentialPrivacy,
    DistortionPrivacy,
    DistributionPrivacy,
    LossBound,
    MetricPrivacy,
    Support,
)
from optmech.problem.objective import MaximizeDistortion
from optmech.problem.problem import Problem

__all__ = [
    "Constraint",
    "DifferentialPrivacy",
    "DistortionPrivacy",
    "DistributionPrivacy",
    "LossBound",
    "MaximizeDistortion",
    "MetricPrivacy",
    "Problem",
    "Support",
]
