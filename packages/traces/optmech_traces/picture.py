"""Pictures of traces and of distortion privacy over time. Needs matplotlib, but no display."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.exact.number import from_above
from optmech.show import words
from optmech.show.plots.drawing import MARK, SERIES, new_figure, require_matplotlib, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optmech_traces.chains.adversary import AdversaryReport
    from optmech_traces.gaussian.loss import TraceLoss
    from optmech_traces.gaussian.task import GaussianTask


__all__ = ["chain_picture", "trace_picture"]

_RELEASES = 5
_PATH, _RELEASE = SERIES[0], "#999999"


def trace_picture(
    task: GaussianTask, noise: Floats, loss: TraceLoss, file: str | Path, seed: int
) -> None:
    """Draw a path, five releases of it, the worst hypothesis about the secrets, and the noise.

    The path is the real one where the file has one, and else drawn from the prior. The hypothesis s
    + Δ is what the release tells apart from the path best. Raises ProblemError without matplotlib,
    or on a path that is not .png, .pdf or .svg.
    """
    require_matplotlib(file)
    trace = task.trace
    path = task.path if task.path is not None else trace.sample(seed)
    path = path.reshape(len(trace), -1)
    rng = np.random.default_rng(seed)
    draws = rng.multivariate_normal(
        np.zeros(len(noise)), noise, _RELEASES, method="eigh", check_valid="ignore"
    )
    releases = path + draws.reshape(_RELEASES, *path.shape)
    secrets = np.array(loss.secrets)
    other = path[secrets] + loss.hypothesis.reshape(len(secrets), -1)

    flat = path.shape[1] == 2
    panels = 2 if flat else path.shape[1] + 1
    figure = new_figure(6.2 * panels, 5.2)
    axes: list[Axes] = list(figure.subplots(1, panels))
    unit = words.in_brackets(task.unit)
    if flat:
        _positions(axes[0], path, releases, secrets, other)
        axes[0].set_aspect("equal")
        _finish(axes[0], f"x{unit}", f"y{unit}")
    else:
        for a in range(path.shape[1]):
            own, *drawn = (np.column_stack([trace.times, x[:, a]]) for x in (path, *releases))
            assumed = np.column_stack([trace.times[secrets], other[:, a]])
            _positions(axes[a], own, drawn, secrets, assumed)
            _finish(axes[a], "time", f"position{unit}")
    _noise(axes[-1], trace.times, noise, path.shape[1], secrets)
    _finish(axes[-1], "time", f"standard deviation of the noise{unit}")
    figure.suptitle(
        f"Rényi loss of order {task.order:g}: {from_above(loss.upper, 4)} within "
        f"{task.radius:g}{words.after(task.unit)}",
        fontsize=10,
    )
    save(figure, file)


def _positions(
    axes: Axes, path: Floats, draws: Iterable[Floats], secrets: Ints, other: Floats
) -> None:
    """Points of the plane: of a path, of draws around it, and of the worst hypothesis."""
    for k, release in enumerate(draws):
        axes.plot(*release.T, color=_RELEASE, lw=0.7, label=None if k else "releases")
    axes.plot(*path.T, "o-", color=_PATH, ms=3.5, label="positions")
    for here, there in zip(path[secrets], other, strict=True):
        axes.plot(*np.array([here, there]).T, color=MARK, lw=1.2)
    axes.plot(*other.T, "s", color=MARK, ms=4.5, label="worst hypothesis")


def _noise(axes: Axes, times: Floats, noise: Floats, dimensions: int, secrets: Ints) -> None:
    deviations = np.sqrt(np.diag(noise).reshape(-1, dimensions))
    for a in range(dimensions):
        axes.plot(times, deviations[:, a], ".-", label=f"axis {a}" if dimensions > 1 else None)
    axes.plot(times[secrets], deviations[secrets, 0], "s", color=MARK, ms=5, label="secret")
    axes.set_ylim(bottom=0.0)


def _finish(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(fontsize=8)


def chain_picture(
    sequential: AdversaryReport,
    repeated: AdversaryReport | None,
    file: str | Path,
    unit: str,
    title: str,
) -> None:
    """Draw the error of the filtering and the smoothing adversary, and the loss, over time.

    ``repeated`` is the report on one mechanism at every time, where there is one to compare with.
    Bars are standard errors. Raises ProblemError without matplotlib, or on a path that is not .png,
    .pdf or .svg.
    """
    require_matplotlib(file)
    figure = new_figure(10.0, 4.4)
    left, right = figure.subplots(1, 2)
    times = range(len(sequential.blind))
    left.plot(times, sequential.blind, ":", color="#999999", label="nothing released")
    for name, report, colour in (
        ("sequential", sequential, SERIES[0]),
        ("repeated", repeated, SERIES[1]),
    ):
        if report is None:
            continue
        for axes, series, style, label in (
            (left, report.filtering, "o-", f"{name}, filtering"),
            (left, report.smoothing, "s--", f"{name}, smoothing"),
            (right, report.loss, "o-", name),
        ):
            axes.errorbar(times, series.mean, series.standard_error, fmt=style, ms=4, color=colour,
                          label=label)  # fmt: skip
    for axes, what in ((left, "error of the best attack"), (right, "expected loss")):
        _finish(axes, "time", f"{what}{words.in_brackets(unit)}")
        axes.set_ylim(bottom=0.0)
    figure.suptitle(title, fontsize=10)
    save(figure, file)
