"""The scaling figure: seconds and memory against the number of places, one line a solver."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from compared import NAMES, Run, comparison, growth
from peers import PEERS
from registry import LIMIT

# Colours of Okabe and Ito; every line also has a marker and a dash of its own, for print in grey.
STYLES: dict[str, tuple[str, str, Any]] = {
    "auto": ("#000000", "o", "-"),
    "libqif": ("#0072B2", "s", "-"),
    "libqif-soplex": ("#0072B2", "D", (0, (4, 2))),
    "libqif-best": ("#0072B2", "h", (0, (1, 1.5))),
    "highs-default": ("#56B4E9", "p", (0, (6, 2))),
    "highs-simplex": ("#D55E00", "^", "-"),
    "highs-ipm": ("#D55E00", "v", (0, (4, 2))),
    "highs-hipo": ("#E69F00", "<", (0, (5, 1, 1, 1))),
    "highs-pdlp": ("#CC79A7", ">", (0, (1, 1.5))),
    "cvxpy-default": ("#009E73", "P", "-"),
}


def label(runs: list[Run], solver: str) -> str:
    found = growth(runs, solver)
    return NAMES[solver] + ("" if found is None else f": $n^{{{found[0]:.1f}}}$")


def draw(runs: list[Run], path: Path) -> None:
    """Filled markers are private matrices, hollow ones are not; a cross was not finished."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(9.6, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    time, memory = figure.subplots(1, 2)
    sizes: set[int] = set()
    for solver in ("auto", *PEERS):
        own = [run for run in comparison(runs, solver) if run.task.gap == 1e-6]
        done = [run for run in own if run.finished]
        if not done:
            continue
        colour, marker, dash = STYLES[solver]
        n = [run.task.size for run in done]
        sizes.update(n)
        front = {"zorder": 4, "lw": 2.2} if solver == "auto" else {"zorder": 3, "lw": 1.2}
        for axes, values in (
            (time, [run.seconds for run in done]),
            (memory, [run.line["memory_mib"] / 1024 for run in done]),
        ):
            line = {"color": colour, "ls": dash, **front}
            axes.plot(n, values, label=label(runs, solver), marker=marker, ms=6, **line)
            for run, value in zip(done, values, strict=True):
                if not run.line["private"]:
                    hollow = {"mfc": "white", "mec": colour, "mew": 1.2, "zorder": 5}
                    axes.plot([run.task.size], [value], marker, ms=6, **hollow)
        for run in own:
            if not run.finished:
                x, y = run.task.size, run.line["memory_mib"] / 1024
                time.plot([x], [run.seconds], "x", color=colour, ms=7, mew=1.8, zorder=6)
                memory.plot([x], [y], "x", color=colour, ms=7, mew=1.8, zorder=6)
    time.axhline(LIMIT, color="#777777", lw=0.8, ls=":")
    time.annotate("ten minutes", (min(sizes), LIMIT), (2, 3), textcoords="offset points", size=8)
    ticks = [n for n in (16, 25, 36, 64, 100, 144, 225, 400, 676) if min(sizes) <= n <= max(sizes)]
    for axes, what in ((time, "seconds, start of the process to matrix"), (memory, "peak GiB")):
        axes.set(xscale="log", yscale="log", xlabel="places", ylabel=what)
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
    handles, labels = time.get_legend_handles_labels()
    title = "filled: private; hollow: not private; ×: not finished"
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5,
        title=title, title_fontsize=8.5,
    )  # fmt: skip
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
