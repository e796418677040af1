"""Draws the certified gap against time at 300 cells, from what ``engines.py`` measured.

    python benchmarks/gap_figure.py docs/figures/gap-against-time.svg

Prints the seconds to every gap, and with --growth the exponent of time in the number of secrets.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from engines import RESULTS, results
from registry import PAPER

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)


def histories() -> list[list[tuple[float, float]]]:
    """(seconds, certified gap) of every metric-privacy run at 300 cells, released gap last."""
    found = []
    for line in results(RESULTS):
        task = line["task"]
        plain = task["solver"] in ("auto", "structured") and not task["distortion"]
        if plain and task["cell"] == list(PAPER) and line.get("history"):
            found.append(followed(line))
    return found


def followed(line: dict) -> list[tuple[float, float]]:
    """(seconds, certified gap) of one run; younger lines count from the start of the process."""
    end = line.get("process_seconds", line["seconds"])
    return [*map(tuple, line["history"]), (end, line["gap"])]


def seconds_to(history: list[tuple[float, float]], gap: float) -> float:
    """When the gap was first certified; nan where it was not."""
    return min((seconds for seconds, reached in history if reached <= gap), default=np.nan)


def growth(kind: str) -> tuple[float, dict[int, float]]:
    """Exponent of a fit of the median seconds, a power of the number of secrets, and these."""
    times: dict[int, list[float]] = {}
    for line in results(RESULTS):
        task = line["task"]
        fits = task["loss"] == kind and task["prior"] == "dirichlet" and not task["distortion"]
        if fits and task["solver"] in ("auto", "structured") and line.get("history"):
            history = followed(line)
            size = task["rows"] * task["columns"]
            times.setdefault(size, []).append(seconds_to(history, 1e-2))
    medians = {size: float(np.nanmedian(own)) for size, own in sorted(times.items())}
    sizes, seconds = np.array(list(medians)), np.array(list(medians.values()))
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), medians


def draw(path: Path) -> None:
    """One thin line per run, and the median seconds to every gap."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "optmech"
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    runs = histories()
    for history in runs:
        seconds, gaps = np.array(history).T
        axes.step(seconds, np.minimum.accumulate(gaps), where="post", color="#9db4c8", lw=0.8)
    median = [np.nanmedian([seconds_to(history, gap) for history in runs]) for gap in GAPS]
    axes.plot(median, GAPS, "o-", color="#1f4e79", label=f"median of {len(runs)} runs")
    axes.set(xlabel="seconds", ylabel="certified gap", xscale="log", yscale="log")
    axes.set(ylim=(1e-7, 1.2), title="300 cells, metric privacy, two cores")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(buffer.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", type=Path)
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    draw(arguments.figure)
    runs = histories()
    for gap in GAPS:
        taken = [seconds_to(history, gap) for history in runs]
        print(f"{gap:.0e}: median {np.nanmedian(taken):.1f} s, slowest {np.nanmax(taken):.1f} s")
    if arguments.growth:
        for kind in ("hamming", "euclidean"):
            exponent, medians = growth(kind)
            print(f"{kind}: seconds to a gap of 1 % {medians}, exponent {exponent:.2f}")


if __name__ == "__main__":
    main()
