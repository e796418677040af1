"""Known mechanisms as matrices on finite domains, the tupling mechanism (Kawamoto and Murakami,
ESORICS 2019, §5, §6), coupling mechanisms and optimal targets (Kawamoto and Murakami, Allerton
2019, §VI).

Each docstring says what the mechanism promises; ``om.measures`` says what a matrix really gives.
"""

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech.mechanisms.composition import composed as composed, optimal_remap as optimal_remap
    from optmech.mechanisms.discrete import (
        exponential as exponential,
        geometric as geometric,
        optimised_unary_encoding as optimised_unary_encoding,
        randomized_response as randomized_response,
        rappor as rappor,
        restricted_laplace as restricted_laplace,
        subset_selection as subset_selection,
        tight_constraints as tight_constraints,
    )
    from optmech.mechanisms.planar import (
        planar_gaussian as planar_gaussian,
        planar_geometric as planar_geometric,
        planar_laplace as planar_laplace,
    )
    from optmech.mechanisms.targets.build import (
        coupling as coupling,
        coupling_design as coupling_design,
        no_obfuscation_epsilon as no_obfuscation_epsilon,
        optimal_target as optimal_target,
        target_frontier as target_frontier,
        target_mechanisms as target_mechanisms,
        target_problem as target_problem,
    )
    from optmech.mechanisms.targets.design import TargetDesign as TargetDesign
    from optmech.mechanisms.tupling import (
        Interval as Interval,
        Tupling as Tupling,
        theorem3_epsilon as theorem3_epsilon,
        tupling as tupling,
    )
else:
    # before the modules of these names take their place
    from optmech.mechanisms.tupling import tupling  # noqa: F401

    __getattr__, __dir__ = lazily(__name__, "mechanisms.")
