"""Pictures of coupling mechanisms and optimal targets. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.exact.number import from_below
from optmech.show.plots.drawing import (
    MARK,
    draw_values,
    in_plane,
    new_figure,
    plain_text,
    require_matplotlib,
    save,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech.mechanisms.targets.design import TargetDesign

__all__ = ["target_picture"]

_MOVES = 60
"""Largest moves that are drawn as arrows."""


def target_picture(design: TargetDesign, path: str | Path, title: str = "") -> None:
    """Draw every input λ_t above its output μ_t, on one scale, with the largest moves between
    different points of the plane as arrows. Raises ProblemError without matplotlib, on a path that
    is not .png, .pdf or .svg, or cannot be written."""
    require_matplotlib(path)
    count = len(design.names)
    figure = new_figure(max(6.0, 4.2 * count), 8.2)
    axes = figure.subplots(2, count, squeeze=False)
    top = float(max(design.inputs.max(), design.outputs.max()))
    for t, name in enumerate(design.names):
        label = plain_text(name)
        draw_values(axes[0][t], design.secrets, design.inputs[t], f"input of {label}", top)
        text = f"output of {label}: loss {design.losses[t]:.4g}"
        draw_values(axes[1][t], design.observables, design.outputs[t], text, top)
        _arrows(axes[1][t], design, t)
    caption = f"loss {design.loss:.6g}, proved bound {from_below(design.lower_bound)}"
    privacy = (
        "outputs equal"
        if design.is_common
        else f"outputs ({float(design.epsilon):.4g}, {float(design.delta):.4g})-close"
    )
    lines = [plain_text(title), f"{caption} · {privacy}"]
    figure.suptitle("\n".join(line for line in lines if line), fontsize=10)
    save(figure, path)


def _arrows(axes: Axes, design: TargetDesign, t: int) -> None:
    start, end = in_plane(design.secrets), in_plane(design.observables)
    if start is None or end is None:
        return
    plan = design.plans[t]
    moves = [
        (flow / plan.total, x, y)
        for (x, y), flow in plan.flows.items()
        if not np.array_equal(start[x], end[y])
    ]
    moves.sort(reverse=True)
    for mass, x, y in moves[:_MOVES]:
        axes.annotate(
            "",
            xy=end[y].tolist(),
            xytext=start[x].tolist(),
            arrowprops={
                "arrowstyle": "->",
                "color": MARK,
                "linewidth": 0.4 + 2.6 * mass / moves[0][0],
                "alpha": 0.8,
            },
        )
