"""What a mechanism leaks, in the terms of quantitative information flow, decided exactly.

Vulnerabilities under any gain, capacities, hyper-distributions, refinement with a witness, and k
independent reports. Sources: QIF = Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith,
The Science of Quantitative Information Flow (Springer 2020), and the papers that the docstrings
name.

Matrices count as what is drawn with, ``Mechanism.rational``: whole numbers over a total where there
are some, else the floats of each row over their exact sum; priors likewise. Values are the
floats nearest to the exact number, which an ``Exact`` holds in ``factor`` (and ``log_of``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech.analysis.probabilities import best_guesses as best_guesses
    from optmech_leakage.capacities import (
        Capacity as Capacity,
        ShannonCapacity as ShannonCapacity,
        additive_capacity as additive_capacity,
        bayes_risk_capacity as bayes_risk_capacity,
        maximal_leakage as maximal_leakage,
        multiplicative_capacity as multiplicative_capacity,
        pointwise_maximal_leakage as pointwise_maximal_leakage,
        predicate_capacity as predicate_capacity,
        shannon_capacity as shannon_capacity,
        shannon_leakage as shannon_leakage,
    )
    from optmech_leakage.comparison import (
        Change as Change,
        RefinementDistance as RefinementDistance,
        Versions as Versions,
        refinement_distance as refinement_distance,
        versions as versions,
    )
    from optmech_leakage.composition import (
        Parallel as Parallel,
        Repeated as Repeated,
        parallel as parallel,
        repeated as repeated,
    )
    from optmech_leakage.refinement import Refinement as Refinement, refines as refines
    from optmech_leakage.vulnerability import (
        Hyper as Hyper,
        additive_leakage as additive_leakage,
        guessing_entropy as guessing_entropy,
        hyper as hyper,
        multiplicative_leakage as multiplicative_leakage,
        partition as partition,
        posterior_vulnerability as posterior_vulnerability,
        predicate as predicate,
        prior_vulnerability as prior_vulnerability,
        reduced as reduced,
    )
else:
    __getattr__, __dir__ = lazily(__name__, mutual_information="shannon_leakage")
