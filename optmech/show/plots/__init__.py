"""Pictures of designs for papers. Needs matplotlib, and draws without a display.

Functions return a matplotlib figure, which ``save`` writes and which can be changed before.
"""

from optmech.show.plots.comparison import compared, tradeoff
from optmech.show.plots.drawing import save
from optmech.show.plots.figures import (
    attack_error,
    constraint_slack,
    mechanism,
    mechanism_picture,
    posteriors,
)
from optmech.show.plots.region import field, region_picture

__all__ = [
    "attack_error",
    "compared",
    "constraint_slack",
    "field",
    "mechanism",
    "mechanism_picture",
    "posteriors",
    "region_picture",
    "save",
    "tradeoff",
]
__dir__ = __all__.copy

# earlier names
frontier = tradeoff
posterior = posteriors
