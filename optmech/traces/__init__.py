"""Location traces: privacy under conditional priors (TP19). Every name is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optmech.traces.adversary import AdversaryReport as AdversaryReport
    from optmech.traces.adversary import Series as Series
    from optmech.traces.adversary import enumerate_releases as enumerate_releases
    from optmech.traces.adversary import simulate as simulate
    from optmech.traces.calibration import calibrate as calibrate
    from optmech.traces.conditional import ConditionalDistortion as ConditionalDistortion
    from optmech.traces.conditional import ConditionalPrivacy as ConditionalPrivacy
    from optmech.traces.conversion import renyi_delta as renyi_delta
    from optmech.traces.conversion import renyi_epsilon as renyi_epsilon
    from optmech.traces.fitting import Fit as Fit
    from optmech.traces.fitting import fit as fit
    from optmech.traces.intervals import IntervalLoss as IntervalLoss
    from optmech.traces.intervals import worst_length_scale as worst_length_scale
    from optmech.traces.kernels import Kernel as Kernel
    from optmech.traces.kernels import constant as constant
    from optmech.traces.kernels import custom as custom
    from optmech.traces.kernels import matern as matern
    from optmech.traces.kernels import ornstein_uhlenbeck as ornstein_uhlenbeck
    from optmech.traces.kernels import periodic as periodic
    from optmech.traces.kernels import rbf as rbf
    from optmech.traces.kernels import white as white
    from optmech.traces.leakage import Leakage as Leakage
    from optmech.traces.leakage import leakage_about as leakage_about
    from optmech.traces.leakage import step_leakage as step_leakage
    from optmech.traces.loss import TraceLoss as TraceLoss
    from optmech.traces.loss import privacy_loss as privacy_loss
    from optmech.traces.markov import MarkovPrior as MarkovPrior
    from optmech.traces.noise import NoiseDesign as NoiseDesign
    from optmech.traces.noise import optimal_noise as optimal_noise
    from optmech.traces.policy import FixedPolicy as FixedPolicy
    from optmech.traces.policy import ProtectedTrace as ProtectedTrace
    from optmech.traces.policy import protect as protect
    from optmech.traces.prior import GaussianPrior as GaussianPrior
    from optmech.traces.robust import RobustNoise as RobustNoise
    from optmech.traces.robust import robust_noise as robust_noise
    from optmech.traces.sequences import CellSequence as CellSequence
    from optmech.traces.sequences import Fixes as Fixes
    from optmech.traces.sequential import SequentialDesigner as SequentialDesigner
    from optmech.traces.sequential import Step as Step
    from optmech.traces.subsets import WorstSubset as WorstSubset
    from optmech.traces.subsets import worst_subset as worst_subset

_HOME = {
    "AdversaryReport": "adversary",
    "Series": "adversary",
    "enumerate_releases": "adversary",
    "simulate": "adversary",
    "calibrate": "calibration",
    "ConditionalDistortion": "conditional",
    "ConditionalPrivacy": "conditional",
    "renyi_delta": "conversion",
    "renyi_epsilon": "conversion",
    "Fit": "fitting",
    "fit": "fitting",
    "IntervalLoss": "intervals",
    "worst_length_scale": "intervals",
    "Kernel": "kernels",
    "constant": "kernels",
    "custom": "kernels",
    "matern": "kernels",
    "ornstein_uhlenbeck": "kernels",
    "periodic": "kernels",
    "rbf": "kernels",
    "white": "kernels",
    "TraceLoss": "loss",
    "privacy_loss": "loss",
    "MarkovPrior": "markov",
    "NoiseDesign": "noise",
    "optimal_noise": "noise",
    "FixedPolicy": "policy",
    "Leakage": "leakage",
    "leakage_about": "leakage",
    "step_leakage": "leakage",
    "ProtectedTrace": "policy",
    "protect": "policy",
    "GaussianPrior": "prior",
    "CellSequence": "sequences",
    "Fixes": "sequences",
    "SequentialDesigner": "sequential",
    "Step": "sequential",
    "RobustNoise": "robust",
    "robust_noise": "robust",
    "WorstSubset": "subsets",
    "worst_subset": "subsets",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"optmech.traces.{_HOME[name]}"), name)
    raise AttributeError(f"module 'optmech.traces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
