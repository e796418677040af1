"""optmech: provably optimal privacy mechanisms by linear programming.

Every public name is imported on first use, so that ``import optmech`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech import (
        exchange as exchange,
        mechanisms as mechanisms,
        noise as noise,
        traces as traces,
        transport as transport,
    )
    from optmech.analysis import (
        attacks as attacks,
        distributional as distributional,
        divergences as divergences,
        estimate as estimate,
        guarantees as guarantees,
        leakage as leakage,
        measures as measures,
        remap as remap,
    )
    from optmech.base.version import __version__ as __version__
    from optmech.certificate.check import CheckReport as CheckReport
    from optmech.designs import prices as prices
    from optmech.designs.design import Design as Design
    from optmech.errors import (
        InfeasibleError as InfeasibleError,
        OptmechError as OptmechError,
        ProblemError as ProblemError,
        SolverError as SolverError,
        TooLargeError as TooLargeError,
        VerificationError as VerificationError,
    )
    from optmech.files import load_problem as load_problem, load_task as load_task
    from optmech.packed.documents import check as check, load as load
    from optmech.packed.earth import Earth as Earth
    from optmech.packed.everywhere import PackedEverywhere as PackedEverywhere
    from optmech.packed.ledger import Ledger as Ledger
    from optmech.packed.load import PackedMechanism as PackedMechanism, load_packed as load_packed
    from optmech.packed.make import check_packed as check_packed, pack as pack
    from optmech.packed.sticky import StickyReports as StickyReports
    from optmech.pipeline.profiles import Profile as Profile
    from optmech.pipeline.redesign import redesign as redesign
    from optmech.pipeline.solve import solve as solve
    from optmech.problem import (
        AdditiveCapacity as AdditiveCapacity,
        Bias as Bias,
        DifferentialPrivacy as DifferentialPrivacy,
        DistortionPrivacy as DistortionPrivacy,
        DistributionPrivacy as DistributionPrivacy,
        FixedRows as FixedRows,
        GainLeakage as GainLeakage,
        LossBound as LossBound,
        MaximalLeakage as MaximalLeakage,
        MaximizeDistortion as MaximizeDistortion,
        MetricPrivacy as MetricPrivacy,
        MinimizeLeakage as MinimizeLeakage,
        MutualInformation as MutualInformation,
        PolicyGraph as PolicyGraph,
        Problem as Problem,
        Pufferfish as Pufferfish,
        RenyiPrivacy as RenyiPrivacy,
        Support as Support,
    )
    from optmech.protection.data import protect as protect
    from optmech.show import plots as plots
    from optmech.show.reports import report as report
    from optmech.spaces import (
        beliefs as beliefs,
        distances as distances,
        losses as losses,
        observables as observables,
        regions as regions,
    )
    from optmech.spaces.domain import Domain as Domain, Grid as Grid
    from optmech.spaces.mechanism import Mechanism as Mechanism
    from optmech.spaces.mesh import Mesh as Mesh
    from optmech.spaces.mesh.network import Network as Network
    from optmech.spaces.prior import Prior as Prior
    from optmech.sweeps import SweepResult as SweepResult, frontier as frontier, sweep as sweep
else:
    __getattr__, __dir__ = lazily(__name__)
