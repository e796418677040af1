"""Guarantees that follow by theorem, without looking at a matrix (Kawamoto and Murakami, ESORICS
2019, §3.4, §4, §5, App. B; Kawamoto and Murakami, Allerton 2019, §IV, §V).

Every function returns a ``Guarantee``: what holds, under which divergence, for which pairs, and by
which theorem. The constants are the tight ones of docs/theory/families.md, where the proofs are,
and the counterexamples to what the papers state too widely; Kawamoto and Murakami, ESORICS 2019,
lose a factor |Φ| on δ without need."""

from optmech.analysis.guarantees.derivation import (
    close_beliefs,
    close_beliefs_metric,
    compose_independent,
    compose_shared,
    estimated,
    estimated_pair,
    from_probabilistic,
    misestimated_inputs,
    mixtures,
    post_process,
    pre_process,
    to_probabilistic,
    with_dummies,
)
from optmech.analysis.guarantees.guarantee import (
    Guarantee,
    distributions,
    points,
    probabilistic,
    weaken,
)
from optmech.analysis.guarantees.lifting import (
    lift,
    lift_metric_pair,
    lift_pair,
    restrict,
    weaken_metric,
)
from optmech.transport.gains import CarryOver, carry_over, carry_over_many

__all__ = [
    "CarryOver",
    "Guarantee",
    "carry_over",
    "carry_over_many",
    "close_beliefs",
    "close_beliefs_metric",
    "compose_independent",
    "compose_shared",
    "distributions",
    "estimated",
    "estimated_pair",
    "from_probabilistic",
    "lift",
    "lift_metric_pair",
    "lift_pair",
    "misestimated_inputs",
    "mixtures",
    "points",
    "post_process",
    "pre_process",
    "probabilistic",
    "restrict",
    "to_probabilistic",
    "weaken",
    "weaken_metric",
    "with_dummies",
]
__dir__ = __all__.copy
