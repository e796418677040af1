"""Divergences of distributions, and what they say of a mechanism (CM19 §II-E, §III, §V).

``kl``, ``reverse_kl``, ``total_variation``, ``chi_squared``, ``squared_hellinger``, any convex
function through ``f_divergence``, ``max_divergence`` and its δ-approximation, ``hockey_stick`` and
``renyi`` take two distributions of shape (m,), arrays or ``Prior``, and are in nats. They are
computed to a few units in the last place, also of distributions that nearly agree; zero masses
count exactly, with inf where it is due. ``enclosure`` gives rigorous bounds.

Sources: CM19 = Kawamoto and Murakami, Local Distribution Obfuscation via Probability Coupling
(Allerton 2019); Liese and Vajda, On divergences and informations (IEEE Trans. Inf. Theory 2006).
"""

from optmech.analysis.guarantees import Guarantee as DivergenceGuarantee
from optmech.analysis.guarantees import (
    compose_independent,
    compose_shared,
    lift,
    post_process,
    pre_process,
    restrict,
    weaken,
    weaken_metric,
)
from optmech.analysis.guarantees.lifting import lift_metric_pair_exactly as lift_metric_pair
from optmech.analysis.guarantees.lifting import lift_pair_exactly as lift_pair
from optmech.divergences.general import f_divergence
from optmech.divergences.misestimated import chord, misestimated, named_chord
from optmech.divergences.named import (
    chi_squared,
    enclosure,
    hockey_stick,
    kl,
    max_divergence,
    reverse_kl,
    squared_hellinger,
    total_variation,
)
from optmech.divergences.orders import renyi
from optmech.divergences.pointwise import by_transport
from optmech.divergences.premises import distributions, points
from optmech.divergences.privacy import (
    distribution_epsilon,
    pairwise,
    point_epsilon,
)

__all__ = [
    "DivergenceGuarantee",
    "by_transport",
    "chi_squared",
    "chord",
    "compose_independent",
    "compose_shared",
    "distribution_epsilon",
    "distributions",
    "enclosure",
    "f_divergence",
    "hockey_stick",
    "kl",
    "lift",
    "lift_metric_pair",
    "lift_pair",
    "max_divergence",
    "misestimated",
    "named_chord",
    "pairwise",
    "point_epsilon",
    "points",
    "post_process",
    "pre_process",
    "renyi",
    "restrict",
    "reverse_kl",
    "squared_hellinger",
    "total_variation",
    "weaken",
    "weaken_metric",
]


def __dir__() -> list[str]:
    return __all__
