"""Pictures of designs for papers. Needs matplotlib, and draws without a display.

Functions return a matplotlib figure, which ``save`` writes and which can be changed before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optmech.base.names import lazily

if TYPE_CHECKING:
    from optmech.show.plots.comparison import tradeoff as tradeoff
    from optmech.show.plots.drawing import save as save
    from optmech.show.plots.figures import (
        attack_error as attack_error,
        constraint_slack as constraint_slack,
        mechanism as mechanism,
        mechanism_picture as mechanism_picture,
        posteriors as posteriors,
    )
    from optmech.show.plots.region import field as field, region_picture as region_picture
else:
    __getattr__, __dir__ = lazily(__name__, "plots.", frontier="tradeoff", posterior="posteriors")
