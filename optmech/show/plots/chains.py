"""Pictures of distortion privacy over time. Needs matplotlib, and draws without a display."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optmech.show.plots.drawing import require_matplotlib, save

if TYPE_CHECKING:
    from optmech.traces.chains.adversary import AdversaryReport

__all__ = ["chain_picture"]

_COLOURS = ("#0072b2", "#d55e00")


def chain_picture(
    sequential: AdversaryReport,
    repeated: AdversaryReport | None,
    file: str | Path,
    unit: str = "",
    title: str = "",
) -> None:
    """Draw the error of the filtering and the smoothing adversary, and the loss, over time.

    ``repeated`` is the report on one mechanism at every time, where there is one to compare with.
    Bars are standard errors.

    Raises
    ------
    ProblemError
        Without matplotlib, or on a path that is not .png, .pdf or .svg.
    """
    require_matplotlib(file)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    times = range(len(sequential.blind))
    left.plot(times, sequential.blind, ":", color="#999999", label="nothing released")
    for name, report, colour in zip(
        ("sequential", "repeated"), (sequential, repeated), _COLOURS, strict=True
    ):
        if report is None:
            continue
        for attack, series, style in (
            ("filtering", report.filtering, "o-"),
            ("smoothing", report.smoothing, "s--"),
        ):
            left.errorbar(
                times,
                series.mean,
                series.standard_error,
                fmt=style,
                ms=4,
                color=colour,
                label=f"{name}, {attack}",
            )
        right.errorbar(
            times, report.loss.mean, report.loss.standard_error, fmt="o-", ms=4, color=colour,
            label=name,
        )  # fmt: skip
    suffix = f" ({unit})" if unit else ""
    for axes, what in ((left, "error of the best attack"), (right, "expected loss")):
        axes.set_xlabel("time")
        axes.set_ylabel(f"{what}{suffix}")
        axes.set_ylim(bottom=0.0)
        axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    save(figure, file)
