"""Known mechanisms as matrices on finite domains, the tupling mechanism (DP19 §5, §6), coupling
mechanisms and optimal targets (CM19 §VI).

Each docstring says what the mechanism promises; ``om.measures`` says what a matrix really gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.lazily import lazily

if TYPE_CHECKING:
    from optmech.mechanisms.coarsening import dense_areas as dense_areas
    from optmech.mechanisms.coarsening import offset_snapped as offset_snapped
    from optmech.mechanisms.coarsening import rounded_degrees as rounded_degrees
    from optmech.mechanisms.coarsening import snapped as snapped
    from optmech.mechanisms.discrete import exponential as exponential
    from optmech.mechanisms.discrete import geometric as geometric
    from optmech.mechanisms.discrete import optimised_unary_encoding as optimised_unary_encoding
    from optmech.mechanisms.discrete import randomized_response as randomized_response
    from optmech.mechanisms.discrete import rappor as rappor
    from optmech.mechanisms.discrete import restricted_laplace as restricted_laplace
    from optmech.mechanisms.discrete import subset_selection as subset_selection
    from optmech.mechanisms.discrete import tight_constraints as tight_constraints
    from optmech.mechanisms.planar import planar_gaussian as planar_gaussian
    from optmech.mechanisms.planar import planar_geometric as planar_geometric
    from optmech.mechanisms.planar import planar_laplace as planar_laplace
    from optmech.mechanisms.targets.build import coupling as coupling
    from optmech.mechanisms.targets.build import coupling_design as coupling_design
    from optmech.mechanisms.targets.build import no_obfuscation_epsilon as no_obfuscation_epsilon
    from optmech.mechanisms.targets.build import optimal_target as optimal_target
    from optmech.mechanisms.targets.build import target_frontier as target_frontier
    from optmech.mechanisms.targets.build import target_mechanisms as target_mechanisms
    from optmech.mechanisms.targets.build import target_problem as target_problem
    from optmech.mechanisms.targets.design import TargetDesign as TargetDesign
    from optmech.mechanisms.tupling import Interval as Interval
    from optmech.mechanisms.tupling import Tupling as Tupling
    from optmech.mechanisms.tupling import theorem3_epsilon as theorem3_epsilon
    from optmech.mechanisms.tupling import tupling as tupling
else:
    # before the module of this name takes its place
    from optmech.mechanisms.tupling import tupling  # noqa: F401

    __getattr__, __dir__ = lazily(__name__)
