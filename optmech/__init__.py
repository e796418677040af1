"""optmech: provably optimal privacy mechanisms by linear programming.

Every public name is imported on first use, so that ``import optmech`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech import exchange as exchange
    from optmech import mechanisms as mechanisms
    from optmech import noise as noise
    from optmech import traces as traces
    from optmech import transport as transport
    from optmech.analysis import attacks as attacks
    from optmech.analysis import distributional as distributional
    from optmech.analysis import divergences as divergences
    from optmech.analysis import estimate as estimate
    from optmech.analysis import guarantees as guarantees
    from optmech.analysis import leakage as leakage
    from optmech.analysis import measures as measures
    from optmech.analysis import remap as remap
    from optmech.base.version import __version__ as __version__
    from optmech.certificate.check import CheckReport as CheckReport
    from optmech.designs import prices as prices
    from optmech.designs.design import Design as Design
    from optmech.errors import InfeasibleError as InfeasibleError
    from optmech.errors import OptmechError as OptmechError
    from optmech.errors import ProblemError as ProblemError
    from optmech.errors import SolverError as SolverError
    from optmech.errors import TooLargeError as TooLargeError
    from optmech.errors import VerificationError as VerificationError
    from optmech.files import load_problem as load_problem
    from optmech.files import load_task as load_task
    from optmech.packed.documents import check as check
    from optmech.packed.documents import load as load
    from optmech.packed.everywhere import PackedEverywhere as PackedEverywhere
    from optmech.packed.ledger import Ledger as Ledger
    from optmech.packed.load import PackedMechanism as PackedMechanism
    from optmech.packed.load import load_packed as load_packed
    from optmech.packed.make import check_packed as check_packed
    from optmech.packed.make import pack as pack
    from optmech.packed.sticky import StickyReports as StickyReports
    from optmech.pipeline.profiles import Profile as Profile
    from optmech.pipeline.redesign import redesign as redesign
    from optmech.pipeline.solve import solve as solve
    from optmech.problem import AdditiveCapacity as AdditiveCapacity
    from optmech.problem import Bias as Bias
    from optmech.problem import DifferentialPrivacy as DifferentialPrivacy
    from optmech.problem import DistortionPrivacy as DistortionPrivacy
    from optmech.problem import DistributionPrivacy as DistributionPrivacy
    from optmech.problem import FixedRows as FixedRows
    from optmech.problem import GainLeakage as GainLeakage
    from optmech.problem import LossBound as LossBound
    from optmech.problem import MaximalLeakage as MaximalLeakage
    from optmech.problem import MaximizeDistortion as MaximizeDistortion
    from optmech.problem import MetricPrivacy as MetricPrivacy
    from optmech.problem import MinimizeLeakage as MinimizeLeakage
    from optmech.problem import MutualInformation as MutualInformation
    from optmech.problem import PolicyGraph as PolicyGraph
    from optmech.problem import Problem as Problem
    from optmech.problem import Pufferfish as Pufferfish
    from optmech.problem import RenyiPrivacy as RenyiPrivacy
    from optmech.problem import Support as Support
    from optmech.protection.data import protect as protect
    from optmech.show import plots as plots
    from optmech.show.reports import report as report
    from optmech.spaces import beliefs as beliefs
    from optmech.spaces import distances as distances
    from optmech.spaces import losses as losses
    from optmech.spaces import observables as observables
    from optmech.spaces import regions as regions
    from optmech.spaces.domain import Domain as Domain
    from optmech.spaces.domain import Grid as Grid
    from optmech.spaces.mechanism import Mechanism as Mechanism
    from optmech.spaces.mesh import Mesh as Mesh
    from optmech.spaces.prior import Prior as Prior
    from optmech.sweeps import SweepResult as SweepResult
    from optmech.sweeps import frontier as frontier
    from optmech.sweeps import sweep as sweep
else:
    __getattr__, __dir__ = lazily(__name__)
