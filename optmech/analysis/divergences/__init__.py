"""Divergences of distributions, and what they say of a mechanism (CM19 §II-E, §III, §V).

``kl``, ``reverse_kl``, ``total_variation``, ``chi_squared``, ``squared_hellinger``, any convex
function through ``f_divergence``, ``max_divergence`` and its δ-approximation, ``hockey_stick`` and
``renyi`` take two distributions of shape (m,), arrays or ``Prior``, and are in nats. They are
computed to a few units in the last place, also of distributions that nearly agree; zero masses
count exactly, with inf where it is due. ``enclosure`` gives rigorous bounds.

Sources: CM19 = Kawamoto and Murakami, Local Distribution Obfuscation via Probability Coupling
(Allerton 2019); Liese and Vajda, On divergences and informations (IEEE Trans. Inf. Theory 2006).
"""

from optmech.analysis.divergences.general import chord, f_divergence, misestimated, named_chord
from optmech.analysis.divergences.named import (
    chi_squared,
    enclosure,
    hockey_stick,
    kl,
    max_divergence,
    renyi,
    reverse_kl,
    squared_hellinger,
    total_variation,
)
from optmech.analysis.divergences.privacy import (
    by_transport,
    epsilon_of_distributions,
    pairwise,
    point_epsilon,
)

__all__ = [
    "by_transport",
    "chi_squared",
    "chord",
    "enclosure",
    "epsilon_of_distributions",
    "f_divergence",
    "hockey_stick",
    "kl",
    "max_divergence",
    "misestimated",
    "named_chord",
    "pairwise",
    "point_epsilon",
    "renyi",
    "reverse_kl",
    "squared_hellinger",
    "total_variation",
]
__dir__ = __all__.copy

# an earlier name
distribution_epsilon = epsilon_of_distributions
