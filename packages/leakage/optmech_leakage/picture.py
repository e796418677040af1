"""Two mechanisms side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optmech.analysis import measures
from optmech.errors import ProblemError
from optmech.show.plots.drawing import SERIES, new_figure, plain_text
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_leakage.vulnerability import (
    posterior_vulnerability,
    prior_vulnerability,
    require_same_secrets,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_POINTS = 40
_FAR = 12.0
"""An ε beyond which nobody looks, where a mechanism has none."""


@checked_arguments
def compared(
    a: Mechanism, b: Mechanism, prior: Prior, *, names: Sequence[str] = ("first", "second")
) -> Figure:
    """Two mechanisms on the same secrets: how often the best guess is right, blind and after a
    report, and the least δ of (ε, δ)-differential privacy for all pairs at every ε.

    Raises
    ------
    ProblemError
        On mechanisms with different secrets, or a prior over others; unless there are two names.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.mechanisms.randomized_response(sides, "ln 3")
    >>> b = om.mechanisms.randomized_response(sides, "ln 2")
    >>> figure = om.plots.compared(a, b, om.Prior.uniform(sides), names=["ln 3", "ln 2"])
    >>> len(figure.axes)
    2
    """
    require_same_secrets(a, b)
    if len(names) != 2:
        raise ProblemError(f"{len(names)} names for two mechanisms", where="names")
    figure = new_figure(8.6, 3.8)
    left, right = figure.subplots(1, 2)
    guesses = [
        prior_vulnerability(prior),
        *(posterior_vulnerability(m, prior) for m in (a, b)),
    ]
    titles = ["blind", *map(plain_text, names)]
    left.bar(range(3), guesses, color=["#999999", *SERIES[:2]])
    left.set_xticks(range(3), titles)
    left.set_ylabel("best guess is right with probability")
    top = max(min(measures.epsilon(m), _FAR) for m in (a, b)) or 1.0
    grid = np.linspace(0.0, top, _POINTS)
    for m, name, colour in zip((a, b), names, SERIES, strict=False):
        spent = [measures.delta(m, float(epsilon)) for epsilon in grid]
        right.plot(grid, spent, color=colour, label=plain_text(name))
    right.set_xlabel("ε")
    right.set_ylabel("least δ, all pairs of secrets")
    right.set_ylim(0.0, None)
    right.grid(alpha=0.3)
    right.legend()
    return figure
