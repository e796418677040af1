"""optmech: provably optimal privacy mechanisms by linear programming.

Every public name is imported on first use, so that ``import optmech`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optmech import attacks as attacks
    from optmech import distances as distances
    from optmech import distributional as distributional
    from optmech import divergences as divergences
    from optmech import exchange as exchange
    from optmech import frontier as frontier
    from optmech import guarantees as guarantees
    from optmech import losses as losses
    from optmech import measures as measures
    from optmech import mechanisms as mechanisms
    from optmech import observables as observables
    from optmech import plots as plots
    from optmech import prices as prices
    from optmech import regions as regions
    from optmech import traces as traces
    from optmech import transport as transport
    from optmech.constraints import DifferentialPrivacy as DifferentialPrivacy
    from optmech.constraints import DistortionPrivacy as DistortionPrivacy
    from optmech.constraints import DistributionPrivacy as DistributionPrivacy
    from optmech.constraints import LossBound as LossBound
    from optmech.constraints import MaximizeDistortion as MaximizeDistortion
    from optmech.constraints import MetricPrivacy as MetricPrivacy
    from optmech.constraints import Support as Support
    from optmech.design import Design as Design
    from optmech.design import check as check
    from optmech.design_file import CheckReport as CheckReport
    from optmech.domain import Domain as Domain
    from optmech.domain import Grid as Grid
    from optmech.errors import InfeasibleError as InfeasibleError
    from optmech.errors import OptmechError as OptmechError
    from optmech.errors import ProblemError as ProblemError
    from optmech.errors import SolverError as SolverError
    from optmech.errors import TooLargeError as TooLargeError
    from optmech.errors import VerificationError as VerificationError
    from optmech.files import load_problem as load_problem
    from optmech.mechanism import Mechanism as Mechanism
    from optmech.pipeline import solve as solve
    from optmech.prior import Prior as Prior
    from optmech.problem import Problem as Problem
    from optmech.profiles import Profile as Profile
    from optmech.reports import report as report
    from optmech.sweeps import SweepResult as SweepResult
    from optmech.sweeps import sweep as sweep

_HOME = {
    "DifferentialPrivacy": "constraints",
    "DistortionPrivacy": "constraints",
    "DistributionPrivacy": "constraints",
    "LossBound": "constraints",
    "MaximizeDistortion": "constraints",
    "MetricPrivacy": "constraints",
    "Support": "constraints",
    "Design": "design",
    "check": "design",
    "CheckReport": "design_file",
    "Domain": "domain",
    "Grid": "domain",
    "InfeasibleError": "errors",
    "OptmechError": "errors",
    "ProblemError": "errors",
    "SolverError": "errors",
    "TooLargeError": "errors",
    "VerificationError": "errors",
    "load_problem": "files",
    "Mechanism": "mechanism",
    "solve": "pipeline",
    "Prior": "prior",
    "Problem": "problem",
    "Profile": "profiles",
    "SweepResult": "sweeps",
    "sweep": "sweeps",
    "report": "reports",
}
_MODULES = (
    "attacks",
    "distances",
    "distributional",
    "exchange",
    "divergences",
    "frontier",
    "guarantees",
    "losses",
    "measures",
    "mechanisms",
    "observables",
    "plots",
    "prices",
    "regions",
    "traces",
    "transport",
)

__all__ = list(_HOME) + list(_MODULES) + ["__version__"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"optmech.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"optmech.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("optmech")
    raise AttributeError(f"module 'optmech' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
