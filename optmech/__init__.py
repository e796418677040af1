"""optmech: provably optimal privacy mechanisms by linear programming.

Every public name is imported on first use, so that ``import optmech`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optmech import divergences as divergences
    from optmech import exchange as exchange
    from optmech import mechanisms as mechanisms
    from optmech import traces as traces
    from optmech import transport as transport
    from optmech.analysis import attacks as attacks
    from optmech.analysis import distributional as distributional
    from optmech.analysis import guarantees as guarantees
    from optmech.analysis import measures as measures
    from optmech.certificate.verdict import CheckReport as CheckReport
    from optmech.designs import prices as prices
    from optmech.designs.design import Design as Design
    from optmech.errors import InfeasibleError as InfeasibleError
    from optmech.errors import OptmechError as OptmechError
    from optmech.errors import ProblemError as ProblemError
    from optmech.errors import SolverError as SolverError
    from optmech.errors import TooLargeError as TooLargeError
    from optmech.errors import VerificationError as VerificationError
    from optmech.files import load_problem as load_problem
    from optmech.mesh import Mesh as Mesh
    from optmech.pipeline.profiles import Profile as Profile
    from optmech.pipeline.search import solve as solve
    from optmech.pipeline.verify import check as check
    from optmech.problem.constraints import DifferentialPrivacy as DifferentialPrivacy
    from optmech.problem.constraints import DistortionPrivacy as DistortionPrivacy
    from optmech.problem.constraints import DistributionPrivacy as DistributionPrivacy
    from optmech.problem.constraints import LossBound as LossBound
    from optmech.problem.constraints import MaximizeDistortion as MaximizeDistortion
    from optmech.problem.constraints import MetricPrivacy as MetricPrivacy
    from optmech.problem.constraints import Support as Support
    from optmech.problem.problem import Problem as Problem
    from optmech.show import plots as plots
    from optmech.show.reports import report as report
    from optmech.spaces import distances as distances
    from optmech.spaces import losses as losses
    from optmech.spaces import observables as observables
    from optmech.spaces import regions as regions
    from optmech.spaces.domain import Domain as Domain
    from optmech.spaces.domain import Grid as Grid
    from optmech.spaces.mechanism import Mechanism as Mechanism
    from optmech.spaces.prior import Prior as Prior
    from optmech.sweeps import SweepResult as SweepResult
    from optmech.sweeps import frontier as frontier
    from optmech.sweeps import sweep as sweep

_HOME = {
    "DifferentialPrivacy": "problem.constraints",
    "DistortionPrivacy": "problem.constraints",
    "DistributionPrivacy": "problem.constraints",
    "LossBound": "problem.constraints",
    "MaximizeDistortion": "problem.constraints",
    "MetricPrivacy": "problem.constraints",
    "Support": "problem.constraints",
    "Design": "designs.design",
    "check": "pipeline.verify",
    "CheckReport": "certificate.verdict",
    "Domain": "spaces.domain",
    "Grid": "spaces.domain",
    "InfeasibleError": "errors",
    "OptmechError": "errors",
    "ProblemError": "errors",
    "SolverError": "errors",
    "TooLargeError": "errors",
    "VerificationError": "errors",
    "load_problem": "files",
    "Mechanism": "spaces.mechanism",
    "Mesh": "mesh",
    "solve": "pipeline.search",
    "Prior": "spaces.prior",
    "Problem": "problem.problem",
    "Profile": "pipeline.profiles",
    "SweepResult": "sweeps",
    "sweep": "sweeps",
    "report": "show.reports",
}
_MODULES = {
    "attacks": "analysis.attacks",
    "distances": "spaces.distances",
    "distributional": "analysis.distributional",
    "exchange": "exchange",
    "divergences": "divergences",
    "frontier": "sweeps.frontier",
    "guarantees": "analysis.guarantees",
    "losses": "spaces.losses",
    "measures": "analysis.measures",
    "mechanisms": "mechanisms",
    "observables": "spaces.observables",
    "plots": "show.plots",
    "prices": "designs.prices",
    "regions": "spaces.regions",
    "traces": "traces",
    "transport": "transport",
}

__all__ = list(_HOME) + list(_MODULES) + ["__version__"]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"optmech.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"optmech.{_MODULES[name]}")
    if name == "__version__":
        from importlib.metadata import version

        return version("optmech")
    raise AttributeError(f"module 'optmech' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
