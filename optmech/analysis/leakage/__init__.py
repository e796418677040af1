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

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech.analysis.leakage.capacities import Capacity as Capacity
    from optmech.analysis.leakage.capacities import ShannonCapacity as ShannonCapacity
    from optmech.analysis.leakage.capacities import additive_capacity as additive_capacity
    from optmech.analysis.leakage.capacities import bayes_risk_capacity as bayes_risk_capacity
    from optmech.analysis.leakage.capacities import maximal_leakage as maximal_leakage
    from optmech.analysis.leakage.capacities import (
        multiplicative_capacity as multiplicative_capacity,
    )
    from optmech.analysis.leakage.capacities import mutual_information as mutual_information
    from optmech.analysis.leakage.capacities import predicate_capacity as predicate_capacity
    from optmech.analysis.leakage.capacities import shannon_capacity as shannon_capacity
    from optmech.analysis.leakage.comparison import Change as Change
    from optmech.analysis.leakage.comparison import RefinementDistance as RefinementDistance
    from optmech.analysis.leakage.comparison import Versions as Versions
    from optmech.analysis.leakage.comparison import refinement_distance as refinement_distance
    from optmech.analysis.leakage.comparison import versions as versions
    from optmech.analysis.leakage.composition import Parallel as Parallel
    from optmech.analysis.leakage.composition import Repeated as Repeated
    from optmech.analysis.leakage.composition import parallel as parallel
    from optmech.analysis.leakage.composition import repeated as repeated
    from optmech.analysis.leakage.refinement import Refinement as Refinement
    from optmech.analysis.leakage.refinement import refines as refines
    from optmech.analysis.leakage.vulnerability import Hyper as Hyper
    from optmech.analysis.leakage.vulnerability import additive_leakage as additive_leakage
    from optmech.analysis.leakage.vulnerability import best_guesses as best_guesses
    from optmech.analysis.leakage.vulnerability import guessing_entropy as guessing_entropy
    from optmech.analysis.leakage.vulnerability import hyper as hyper
    from optmech.analysis.leakage.vulnerability import (
        multiplicative_leakage as multiplicative_leakage,
    )
    from optmech.analysis.leakage.vulnerability import partition as partition
    from optmech.analysis.leakage.vulnerability import (
        posterior_vulnerability as posterior_vulnerability,
    )
    from optmech.analysis.leakage.vulnerability import predicate as predicate
    from optmech.analysis.leakage.vulnerability import prior_vulnerability as prior_vulnerability
    from optmech.analysis.leakage.vulnerability import reduced as reduced
else:
    __getattr__, __dir__ = lazily(__name__)
