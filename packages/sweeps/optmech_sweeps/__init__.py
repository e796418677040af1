"""Many designs: from one template into a run directory that survives anything, along Pareto fronts,
and beside what people use in their place. Every name is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech_sweeps.baselines import known as known
    from optmech_sweeps.comparing import Comparison as Comparison, compare as compare
    from optmech_sweeps.frontier import (
        LeastEpsilon as LeastEpsilon,
        cheapest as cheapest,
        least_epsilon as least_epsilon,
        pareto_front as pareto_front,
    )
    from optmech_sweeps.run import SweepResult as SweepResult, sweep as sweep
    from optmech_sweeps.snapping import (
        dense_areas as dense_areas,
        offset_snapped as offset_snapped,
        rounded_degrees as rounded_degrees,
        snapped as snapped,
    )
else:
    __getattr__, __dir__ = lazily(__name__)
