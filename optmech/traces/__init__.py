"""Location traces: privacy under conditional priors (TP19). Every name is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech.traces.chains.adversary import AdversaryReport as AdversaryReport
    from optmech.traces.chains.adversary import Series as Series
    from optmech.traces.chains.adversary import enumerate_releases as enumerate_releases
    from optmech.traces.chains.adversary import simulate as simulate
    from optmech.traces.chains.conditional import ConditionalDistortion as ConditionalDistortion
    from optmech.traces.chains.conditional import ConditionalPrivacy as ConditionalPrivacy
    from optmech.traces.chains.leakage import Leakage as Leakage
    from optmech.traces.chains.leakage import leakage_about as leakage_about
    from optmech.traces.chains.leakage import step_leakage as step_leakage
    from optmech.traces.chains.markov import MarkovPrior as MarkovPrior
    from optmech.traces.chains.policy import FixedPolicy as FixedPolicy
    from optmech.traces.chains.policy import ProtectedTrace as ProtectedTrace
    from optmech.traces.chains.policy import protect as protect
    from optmech.traces.chains.sequences import CellSequence as CellSequence
    from optmech.traces.chains.sequences import Fixes as Fixes
    from optmech.traces.chains.sequential import SequentialDesigner as SequentialDesigner
    from optmech.traces.chains.sequential import Step as Step
    from optmech.traces.gaussian.fitting import Fit as Fit
    from optmech.traces.gaussian.fitting import fit as fit
    from optmech.traces.gaussian.intervals import IntervalLoss as IntervalLoss
    from optmech.traces.gaussian.intervals import RobustNoise as RobustNoise
    from optmech.traces.gaussian.intervals import robust_noise as robust_noise
    from optmech.traces.gaussian.intervals import worst_length_scale as worst_length_scale
    from optmech.traces.gaussian.kernels import Kernel as Kernel
    from optmech.traces.gaussian.kernels import constant as constant
    from optmech.traces.gaussian.kernels import custom as custom
    from optmech.traces.gaussian.kernels import matern as matern
    from optmech.traces.gaussian.kernels import ornstein_uhlenbeck as ornstein_uhlenbeck
    from optmech.traces.gaussian.kernels import periodic as periodic
    from optmech.traces.gaussian.kernels import rbf as rbf
    from optmech.traces.gaussian.kernels import white as white
    from optmech.traces.gaussian.loss import TraceLoss as TraceLoss
    from optmech.traces.gaussian.loss import calibrate as calibrate
    from optmech.traces.gaussian.loss import privacy_loss as privacy_loss
    from optmech.traces.gaussian.loss import renyi_delta as renyi_delta
    from optmech.traces.gaussian.loss import renyi_epsilon as renyi_epsilon
    from optmech.traces.gaussian.noise import NoiseDesign as NoiseDesign
    from optmech.traces.gaussian.noise import optimal_noise as optimal_noise
    from optmech.traces.gaussian.prior import GaussianPrior as GaussianPrior
    from optmech.traces.gaussian.subsets import WorstSubset as WorstSubset
    from optmech.traces.gaussian.subsets import worst_subset as worst_subset
else:
    __getattr__, __dir__ = lazily(__name__)
