"""Pictures of what a survey estimates."""

from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats
from optmech.show.plots.drawing import draw_values, new_panels, require_matplotlib, save
from optmech.spaces.domain import Domain


def estimate_picture(secrets: Domain, values: Floats, errors: Floats, path: str | Path) -> None:
    """Draw estimated shares, those below 0 as 0, beside their standard errors on the same scale."""
    require_matplotlib(path)
    figure, panels = new_panels(2, 5.5, 4.5)
    top = max(float(values.max()), float(errors.max()))
    for axes, own, title in (
        (panels[0], values, "estimated share, without bias"),
        (panels[1], errors, "its standard error"),
    ):
        draw_values(axes, secrets, np.maximum(own, 0.0), title, top, linear=True, what="share")
    save(figure, path)
