"""Pictures of traces. Needs matplotlib, and draws without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats
from optmech.show import words
from optmech.show.plots.drawing import MARK, SERIES, new_figure, require_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech.tasks.gaussian import GaussianTask
    from optmech.traces.gaussian.loss import TraceLoss

__all__ = ["trace_picture"]

_RELEASES = 5
_PATH, _RELEASE = SERIES[0], "#999999"


def trace_picture(
    task: GaussianTask, noise: Floats, loss: TraceLoss, file: str | Path, seed: int = 0
) -> None:
    """Draw a path, five releases of it, the worst hypothesis about the secrets, and the noise.

    The path is the real one where the file has one, and else drawn from the prior. The
    hypothesis s + Δ is what the release tells apart from the path best.

    Raises
    ------
    ProblemError
        Without matplotlib, or on a path that is not .png, .pdf or .svg.
    """
    require_matplotlib(file)
    trace = task.trace
    path = task.path if task.path is not None else trace.sample(seed)
    path = path.reshape(len(trace), -1)
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(noise)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = (root @ rng.standard_normal((len(noise), _RELEASES))).T
    releases = path + draws.reshape(_RELEASES, *path.shape)
    secrets = np.array(loss.secrets)
    other = path[secrets] + loss.hypothesis.reshape(len(secrets), -1)

    flat = path.shape[1] == 2
    panels = 2 if flat else path.shape[1] + 1
    figure = new_figure(6.2 * panels, 5.2)
    axes: list[Axes] = list(figure.subplots(1, panels))
    if flat:
        _plane(axes[0], path, releases, secrets, other, task.unit)
    else:
        for a in range(path.shape[1]):
            columns = (path[:, a], releases[:, :, a], secrets, other[:, a])
            _line(axes[a], trace.times, *columns, task.unit)
    _noise(axes[-1], trace.times, noise, path.shape[1], secrets, task.unit)
    figure.suptitle(
        f"Rényi loss of order {task.order:g}: {loss.upper:.4g} within "
        f"{task.radius:g}{words.after(task.unit)}",
        fontsize=10,
    )
    save(figure, file)


def _line(
    axes: Axes,
    times: Floats,
    path: Floats,
    releases: Floats,
    secrets: Floats,
    other: Floats,
    unit: str,
) -> None:
    for k, release in enumerate(releases):
        axes.plot(times, release, color=_RELEASE, lw=0.7, label=None if k else "releases")
    axes.plot(times, path, "o-", color=_PATH, ms=4, label="positions")
    for s, value in zip(secrets, other, strict=True):
        axes.plot([times[int(s)]] * 2, [path[int(s)], value], color=MARK, lw=1.2)
    axes.plot(times[secrets], other, "s", color=MARK, ms=5, label="worst hypothesis")
    axes.set_xlabel("time")
    axes.set_ylabel(f"position{words.in_brackets(unit)}")
    axes.legend(fontsize=8)


def _plane(
    axes: Axes, path: Floats, releases: Floats, secrets: Floats, other: Floats, unit: str
) -> None:
    for k, release in enumerate(releases):
        axes.plot(*release.T, color=_RELEASE, lw=0.6, label=None if k else "releases")
    axes.plot(*path.T, "o-", color=_PATH, ms=3, lw=1.4, label="positions")
    for s, value in zip(secrets, other, strict=True):
        axes.plot(*np.array([path[int(s)], value]).T, color=MARK, lw=1.0)
    axes.plot(*other.T, "s", color=MARK, ms=4, label="worst hypothesis")
    axes.set_aspect("equal")
    axes.set_xlabel(f"x{words.in_brackets(unit)}")
    axes.set_ylabel(f"y{words.in_brackets(unit)}")
    axes.legend(fontsize=8)


def _noise(
    axes: Axes, times: Floats, noise: Floats, dimensions: int, secrets: Floats, unit: str
) -> None:
    deviations = np.sqrt(np.diag(noise).reshape(-1, dimensions))
    for a in range(dimensions):
        axes.plot(times, deviations[:, a], ".-", label=f"axis {a}" if dimensions > 1 else None)
    axes.plot(times[secrets], deviations[secrets, 0], "s", color=MARK, ms=5, label="secret")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("time")
    axes.set_ylabel(f"standard deviation of the noise{words.in_brackets(unit)}")
    axes.legend(fontsize=8)
