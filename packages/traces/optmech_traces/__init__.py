"""Location traces: privacy under conditional priors (Meehan and Chaudhuri 2019, the workshop
version). Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech_traces.chains.adversary import (
        AdversaryReport as AdversaryReport,
        Series as Series,
        enumerate_releases as enumerate_releases,
        simulate as simulate,
    )
    from optmech_traces.chains.conditional import (
        ConditionalDistortion as ConditionalDistortion,
        ConditionalPrivacy as ConditionalPrivacy,
    )
    from optmech_traces.chains.leakage import (
        Leakage as Leakage,
        leakage_about as leakage_about,
        step_leakage as step_leakage,
    )
    from optmech_traces.chains.markov import MarkovPrior as MarkovPrior
    from optmech_traces.chains.policy import (
        FixedPolicy as FixedPolicy,
        ProtectedTrace as ProtectedTrace,
        release as release,
    )
    from optmech_traces.chains.sequences import CellSequence as CellSequence, Fixes as Fixes
    from optmech_traces.chains.sequential import (
        SequentialDesigner as SequentialDesigner,
        Step as Step,
    )
    from optmech_traces.gaussian.fitting import Fit as Fit, fit as fit
    from optmech_traces.gaussian.intervals import (
        IntervalLoss as IntervalLoss,
        RobustNoise as RobustNoise,
        robust_noise as robust_noise,
        worst_length_scale as worst_length_scale,
    )
    from optmech_traces.gaussian.kernels import (
        Kernel as Kernel,
        constant as constant,
        custom as custom,
        matern as matern,
        ornstein_uhlenbeck as ornstein_uhlenbeck,
        periodic as periodic,
        rbf as rbf,
        white as white,
    )
    from optmech_traces.gaussian.loss import (
        TraceLoss as TraceLoss,
        calibrate as calibrate,
        privacy_loss as privacy_loss,
        renyi_delta as renyi_delta,
        renyi_epsilon as renyi_epsilon,
    )
    from optmech_traces.gaussian.noise import (
        GaussianNoise as GaussianNoise,
        optimal_noise as optimal_noise,
    )
    from optmech_traces.gaussian.prior import GaussianPrior as GaussianPrior
    from optmech_traces.gaussian.subsets import (
        WorstSubset as WorstSubset,
        worst_subset as worst_subset,
    )
    from optmech_traces.gaussian.terms import LossTerms as LossTerms, loss_terms as loss_terms
else:
    __getattr__, __dir__ = lazily(__name__, NoiseDesign="GaussianNoise", protect="release")
