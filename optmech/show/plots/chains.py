"""Pictures of distortion privacy over time. Needs matplotlib, and draws without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optmech.show import words
from optmech.show.plots.drawing import SERIES, new_figure, require_matplotlib, save

if TYPE_CHECKING:
    from optmech.traces.chains.adversary import AdversaryReport

__all__ = ["chain_picture"]


def chain_picture(
    sequential: AdversaryReport,
    repeated: AdversaryReport | None,
    file: str | Path,
    unit: str = "",
    title: str = "",
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
        axes.set_xlabel("time")
        axes.set_ylabel(f"{what}{words.in_brackets(unit)}")
        axes.set_ylim(bottom=0.0)
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    save(figure, file)
