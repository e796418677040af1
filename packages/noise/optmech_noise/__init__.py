"""The best noise for a number that is released: certified against all other noise."""

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech_noise.additive.composition import ComposedPrivacy as ComposedPrivacy
    from optmech_noise.additive.design import NoiseDesign as NoiseDesign, RealNoise as RealNoise
    from optmech_noise.additive.law import Law as Law
    from optmech_noise.additive.loss import NoiseLoss as NoiseLoss
    from optmech_noise.additive.planar import PlanarNoise as PlanarNoise
    from optmech_noise.additive.radial import RadialLaw as RadialLaw, RadialNoise as RadialNoise
    from optmech_noise.additive.real_loss import RealLoss as RealLoss
    from optmech_noise.additive.renyi import (
        RealRenyiNoise as RealRenyiNoise,
        RenyiNoise as RenyiNoise,
    )
    from optmech_noise.additive.rounded import RoundedNoise as RoundedNoise
    from optmech_noise.additive.shaped import (
        ShapedNoise as ShapedNoise,
        ShapedRealNoise as ShapedRealNoise,
    )
    from optmech_noise.additive.shaped_law import ShapedLaw as ShapedLaw, SidedLoss as SidedLoss
    from optmech_noise.baselines import NoisePeer as NoisePeer, peers as peers
    from optmech_noise.composed import Composition as Composition, compose as compose
    from optmech_noise.curves import curve as curve
    from optmech_noise.divergences import (
        least_divergence as least_divergence,
        rdp as rdp,
        zcdp as zcdp,
    )
    from optmech_noise.everyday import (
        clipped_sum as clipped_sum,
        histogram as histogram,
        mean as mean,
        together as together,
    )
    from optmech_noise.line import real as real
    from optmech_noise.optimum import in_range as in_range, optimal as optimal
    from optmech_noise.planar import for_pairs as for_pairs
    from optmech_noise.released import Release as Release
    from optmech_noise.releases import ReleaseNoise as ReleaseNoise, for_releases as for_releases
    from optmech_noise.rings import radial as radial
else:
    __getattr__, __dir__ = lazily(__name__)
