"""Pictures of traces. Needs matplotlib, and draws without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats
from optmech.show.plots.drawing import require_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech.files.make.traces import TraceProblem
    from optmech.traces.gaussian.loss import TraceLoss

__all__ = ["trace_picture"]

_RELEASES = 5
_PATH, _RELEASE, _WORST = "#0072b2", "#999999", "#d55e00"


def trace_picture(
    problem: TraceProblem, noise: Floats, loss: TraceLoss, file: str | Path, seed: int = 0
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trace = problem.trace
    path = problem.path if problem.path is not None else trace.sample(seed)
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
    figure = Figure(figsize=(6.2 * panels, 5.2), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes: list[Axes] = list(figure.subplots(1, panels))
    if flat:
        _plane(axes[0], path, releases, secrets, other, problem.unit)
    else:
        for a in range(path.shape[1]):
            columns = (path[:, a], releases[:, :, a], secrets, other[:, a])
            _line(axes[a], trace.times, *columns, problem.unit)
    _noise(axes[-1], trace.times, noise, path.shape[1], secrets, problem.unit)
    figure.suptitle(
        f"Rényi loss of order {problem.order:g}: {loss.upper:.4g} within "
        f"{problem.radius:g}{' ' + problem.unit if problem.unit else ''}",
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
        axes.plot([times[int(s)]] * 2, [path[int(s)], value], color=_WORST, lw=1.2)
    axes.plot(times[secrets], other, "s", color=_WORST, ms=5, label="worst hypothesis")
    axes.set_xlabel("time")
    axes.set_ylabel(f"position ({unit})" if unit else "position")
    axes.legend(fontsize=8)


def _plane(
    axes: Axes, path: Floats, releases: Floats, secrets: Floats, other: Floats, unit: str
) -> None:
    for k, release in enumerate(releases):
        axes.plot(*release.T, color=_RELEASE, lw=0.6, label=None if k else "releases")
    axes.plot(*path.T, "o-", color=_PATH, ms=3, lw=1.4, label="positions")
    for s, value in zip(secrets, other, strict=True):
        axes.plot(*np.array([path[int(s)], value]).T, color=_WORST, lw=1.0)
    axes.plot(*other.T, "s", color=_WORST, ms=4, label="worst hypothesis")
    axes.set_aspect("equal")
    suffix = f" ({unit})" if unit else ""
    axes.set_xlabel(f"x{suffix}")
    axes.set_ylabel(f"y{suffix}")
    axes.legend(fontsize=8)


def _noise(
    axes: Axes, times: Floats, noise: Floats, dimensions: int, secrets: Floats, unit: str
) -> None:
    deviations = np.sqrt(np.diag(noise).reshape(-1, dimensions))
    for a in range(dimensions):
        axes.plot(times, deviations[:, a], ".-", label=f"axis {a}" if dimensions > 1 else None)
    axes.plot(times[secrets], deviations[secrets, 0], "s", color=_WORST, ms=5, label="secret")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("time")
    axes.set_ylabel(f"standard deviation of the noise ({unit})" if unit else "σ of the noise")
    axes.legend(fontsize=8)
