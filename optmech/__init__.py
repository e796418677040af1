"""optmech: provably optimal privacy mechanisms by linear programming.

Every public name is imported on first use, so that ``import optmech`` costs nothing.

Names in signatures that stand for several types:

* ``Number``: a whole number, a float, a ``Fraction`` or a text such as "1/3", "0.1" or "2 ln 3".
  Texts and fractions are kept exactly; a float counts as the binary fraction that it is.
* ``Exact``: a float that remembers its exact value, a fraction or a multiple of a logarithm.
* ``ArrayLike``: whatever ``numpy.asarray`` takes. ``Floats`` and ``Ints`` are arrays of float64 and
  int64.
* ``Distribution``: a ``Prior``, or weights >= 0 in the order of the secrets, which are normalised.
  ``Weights`` is the same in ``guarantees``, ``Counts`` how often each observable was reported: an
  array, or a mapping from label to count.
* ``DistanceLike``: what ``om.distances`` makes, a function of two domains, an array of shape
  (secrets, observables), or a table of pandas or xarray with their labels.
* ``Hashable``: a label of a secret or an observable; of a grid ``(row, column)``.
* ``IndexPairs``: pairs of indices of secrets, shape (k, 2).
* ``Gain``: "identity", or an array of shape (guesses, secrets) with what each guess earns.
* ``Divergence``: the name of a divergence, or a function of two arrays. ``Function``: a convex
  function of one.
* ``LossLike``: "absolute", "square", "threshold", a table, or a function of the noise; ``Loss`` is
  one of the first two. ``Curve`` or ``Pairs``: several pairs (ε, δ), all of which hold; of
  distributions, ``Pairs`` are those that are told apart.
* ``Shares``, ``RationalPlan``: a distribution, and a transport plan, in fractions.
* ``Multipliers``, ``NoiseMultipliers``, ``Tangents``: what proves a lower bound; they need not be
  trusted.
* ``Coordinates``: "plane" or "lonlat". ``Outside``: "target" or "nearest". ``Order``: "average",
  "max" or "privacy". ``Structure``: "full", "diagonal" or "isotropic". ``Reduce``: "mean", "min" or
  "max". ``Objective``: "expected_loss" or "worst_loss".
* ``Policy``: what releases a trace, such as ``FixedPolicy`` or ``SequentialDesigner``; ``State``:
  where it stands after some releases.
* ``Plan``: how a problem is solved, with its ``name`` and ``reason``, as ``om.plan`` gives it.
* ``Note``: a function that gets a line of progress. ``Source``: lines behind a map, as of
  ``om.report``. ``Parts``: what a packed file was read as.
* ``Renyi``: (order, ε), a list of such pairs, or with a budget an order alone, from 1 on;
  ``Bounds`` are pairs with exact numbers.
* ``Figure``: one of matplotlib. ``GeoDataFrame``: a table of GeoPandas. ``CertifiedNoise`` and
  ``CellNoise``: noise of any of the classes of ``noise``, on whole numbers and on the real line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech import (
        errors as errors,
        exchange as exchange,
        mechanisms as mechanisms,
        transport as transport,
    )
    from optmech.analysis import (
        attacks as attacks,
        distributional as distributional,
        divergences as divergences,
        guarantees as guarantees,
        measures as measures,
    )
    from optmech.base.version import __version__ as __version__
    from optmech.certificate.check import CheckReport as CheckReport
    from optmech.designs import prices as prices
    from optmech.designs.design import Design as Design
    from optmech.designs.documents import check as check, load as load
    from optmech.errors import (
        InfeasibleError as InfeasibleError,
        OptmechError as OptmechError,
        ProblemError as ProblemError,
        SolverError as SolverError,
        VerificationError as VerificationError,
    )
    from optmech.files import load_problem as load_problem, load_task as load_task
    from optmech.pipeline.plan import plan as plan
    from optmech.pipeline.profiles import Profile as Profile
    from optmech.pipeline.solve import solve as solve
    from optmech.problem import (
        DifferentialPrivacy as DifferentialPrivacy,
        DistortionPrivacy as DistortionPrivacy,
        DistributionPrivacy as DistributionPrivacy,
        Linear as Linear,
        LossBound as LossBound,
        MaximizeDistortion as MaximizeDistortion,
        MetricPrivacy as MetricPrivacy,
        MinimizeLeakage as MinimizeLeakage,
        MinimizeVariance as MinimizeVariance,
        Problem as Problem,
        Ratios as Ratios,
        Support as Support,
        constraints as constraints,
    )
    from optmech.show import plots as plots
    from optmech.show.reports import report as report
    from optmech.spaces import (
        beliefs as beliefs,
        distances as distances,
        losses as losses,
        observables as observables,
    )
    from optmech.spaces.domain import Domain as Domain, Grid as Grid
    from optmech.spaces.mechanism import Mechanism as Mechanism
    from optmech.spaces.mesh import Mesh as Mesh
    from optmech.spaces.mesh.network import Network as Network
    from optmech.spaces.prior import Prior as Prior
else:
    _RARER = "CheckReport Comparison SweepResult Profile load_task redesign "
    _RARER += "OptmechError ProblemError InfeasibleError SolverError VerificationError"
    # earlier names, which are found and not shown
    _MOVED = {
        "constraints": "AdditiveCapacity Bias FixedRows GainLeakage MaximalLeakage "
        "MutualInformation PointwiseMaximalLeakage PolicyGraph Pufferfish RenyiPrivacy",
        "devices": "Earth Ledger PackedEverywhere PackedMechanism StickyReports check_packed "
        "load_packed pack protect",
        "errors": "EngineError TooLargeError",
    }
    _EARLIER = {name: f"{space}.{name}" for space, had in _MOVED.items() for name in had.split()}
    __getattr__, __dir__ = lazily(
        __name__, "", _RARER, **_EARLIER, regions="observables", remap="mechanisms"
    )
