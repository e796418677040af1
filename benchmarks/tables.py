"""The blocks of text that ``scaling.py`` puts into documents, from runs alone."""

from __future__ import annotations

import numpy as np
from compared import NAMES, Run, comparison, growth, to_one_per_cent
from peers import PEERS
from registry import BEYOND, OURS, SIZES, UNIT, suite

FIGURE = "docs/figures/scaling.svg"
AGREE = 1e-6


def number(value: float) -> str:
    """Three significant digits, and thousands apart."""
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def gap_text(gap: float | None) -> str:
    if gap is None:
        return "unknown"
    digit, power = f"{gap:.0e}".split("e")
    return f"{digit}e{int(power)}".replace("-", "−") if gap else "0"


def factor_text(run: Run) -> str:
    """Whether a matrix is private, else its true ε, and δ at the stated ε."""
    if run.line["private"]:
        return "yes"
    delta = f"(δ = {gap_text(run.line['delta'])})"
    if np.isinf(run.factor):
        return f"**no**: ε = ∞ {delta}"
    if run.factor - 1 < 1e-3:
        return f"**no**: ε × (1 + {gap_text(run.factor - 1)}) {delta}"
    return f"**no**: ε × {run.factor:.3g} {delta}"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Markdown, numbers to the right."""
    lines = [" | ".join(heads), "|".join(["---"] + ["---:"] * (len(heads) - 1))]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row) for row in rows)])


def growth_text(found: tuple[float, int, int] | None) -> str:
    return "–" if found is None else f"n^{found[0]:.1f} ({found[1]}–{found[2]})"


def machine_text(runs: list[Run]) -> str:
    """One sentence on the machine and the versions, from the lines themselves."""
    lines = [run.line for run in runs]
    kinds = {(x["processor"], x["cores"], x["memory_gib"], x["jobs"], x["python"]) for x in lines}
    if len(kinds) != 1:
        raise SystemExit(f"runs of different machines or settings in one file: {sorted(kinds)}")
    processor, cores, memory, jobs, python = kinds.pop()
    versions: dict[str, set[str]] = {}
    for line in lines:
        for name, version in line["versions"].items():
            versions.setdefault(name, set()).add(version.removeprefix("0+"))
    ours = ", ".join(sorted(versions.pop("optmech")))
    listed = ", ".join(f"{name} {' and '.join(sorted(found))}" for name, found in versions.items())
    if len(threads := {x["physical_cores"] for x in lines}) == 1 and threads != {cores}:
        cores = f"{cores} threads of {threads.pop()}"
    used = " or ".join(str(n) for n in sorted({len(x["used_cores"]) for x in lines}))
    beside = "one run at a time" if jobs == 1 else f"{jobs} runs side by side"
    return (
        f"{processor}, {cores} cores, {memory:.0f} GiB; {beside}, each pinned to {used} of them "
        f"alone; Python {python}, optmech at commits {ours}; {listed}."
    )


def peer_rows(runs: list[Run]) -> list[list[str]]:
    """One row a solver: times at two sizes, and the largest size finished in ten minutes."""
    rows = []
    for solver in ("auto", *PEERS):
        own = [run for run in comparison(runs, solver) if run.task.gap == 1e-6]
        done = [run for run in own if run.finished]
        if not own:
            continue
        if not done:
            rows.append([NAMES[solver], "–", "–", "–", short(own[0]), *["–"] * 4])
            continue
        at = {run.task.size: number(run.seconds) for run in done}
        last = done[-1]
        private = sum(run.line["private"] for run in done)
        worst = max(done, key=lambda run: run.factor)
        verdict = f"{private} of {len(done)}"
        if private < len(done):
            verdict += f"; worst {factor_text(worst).removeprefix('**no**: ')}"
        rows.append(
            [
                NAMES[solver], at.get(64, "–"), at.get(100, "–"),
                f"{last.task.size} in {number(last.seconds)} s", after(own, solver),
                f"{last.line['memory_mib'] / 1024:.1f}", gap_text(last.gap), verdict,
                growth_text(growth(runs, solver)),
            ]
        )  # fmt: skip
    return rows


def short(run: Run) -> str:
    """Why a run does not count as finished."""
    return (
        run.line["failed"] if "failed" in run.line else f"stopped at a gap of {gap_text(run.gap)}"
    )


def after(own: list[Run], solver: str) -> str:
    """What became of the size above the largest one that a solver finished."""
    largest = max(run.task.size for run in own if run.finished)
    sizes = (rows * columns for rows, columns in (*SIZES, *(BEYOND if solver == "auto" else ())))
    size = min((n for n in sizes if n > largest), default=None)
    if size is None:
        return "–"
    for run in own:
        if run.task.size == size:
            return f"{size}: {short(run)}"
    return f"{size}: not tried"


def peers_block(runs: list[Run]) -> str:
    heads = [
        "solver", "64 places, s", "100 places, s", "largest in ten minutes", "the next size",
        "GiB there", "gap there", "matrices private", "time grows as (sizes)",
    ]  # fmt: skip
    return table(heads, peer_rows(runs))


SHOWN = ("auto", "cvxpy-default", "highs-ipm", "highs-default", "libqif")
"""Of the comparison, what the README has room for: the fastest and the best known."""


def readme_block(runs: list[Run]) -> str:
    """The largest size of a few solvers, as a table with one column each."""
    rows = {row[0]: row for row in peer_rows(runs)}
    shown = [rows[NAMES[solver]] for solver in SHOWN if NAMES[solver] in rows]
    heads = ["", *(row[0].removesuffix(", default") for row in shown)]
    picked = {"64 places, s": 1, "largest in ten minutes": 3, "private, of those solved": 7}
    return table(
        heads, [[name, *(row[k].partition(";")[0] for row in shown)] for name, k in picked.items()]
    )


def sizes_block(runs: list[Run]) -> str:
    """Seconds and memory of every run of the comparison."""
    solvers = [s for s in ("auto", "structured", *PEERS) if comparison(runs, s)]
    by = {
        (s, run.task.size): run
        for s in solvers
        for run in comparison(runs, s)
        if run.task.gap == 1e-6
    }
    rows = []
    for size in sorted({size for _, size in by}):
        cells = [str(size)]
        for solver in solvers:
            run = by.get((solver, size))
            if run is None:
                cells.append("")
            elif run.finished:
                cells.append(f"{number(run.seconds)} ({run.line['memory_mib']:,})")
            else:
                cells.append(f"{short(run)} ({run.line['memory_mib']:,})")
        rows.append(cells)
    return table(["n", *(NAMES[s] for s in solvers)], rows)


def losses_block(runs: list[Run]) -> str:
    """Both losses at 64 places: what every solver claims and what its matrix is."""
    rows = []
    for solver in (*OURS, *PEERS):
        for loss in ("euclidean", "hamming"):
            for run in runs:
                if run.task.problem != (8, 8, UNIT, 1.0, loss, "uniform", 0.0):
                    continue
                if run.task.solver != solver or "failed" in run.line:
                    continue
                rows.append(
                    [
                        f"{NAMES[solver]}, {loss}", number(run.seconds),
                        f"{run.line['memory_mib']:,}", run.line["claim"],
                        f"{run.line['loss']:.9f}", gap_text(run.gap), factor_text(run),
                    ]
                )  # fmt: skip
    heads = ["solver, loss", "s", "MiB", "claims", "loss", "gap", "private"]
    return table(heads, rows)


def ours_block(runs: list[Run]) -> str:
    """optmech beyond its peers, and its growth from 64 places on."""
    own = [run for run in comparison(runs, "auto") if "failed" not in run.line]
    own = [run for run in own if run.task.size >= 64]
    rows, sizes, seconds = [], [], []
    for run in own:
        first = to_one_per_cent(run)
        rows.append(
            [
                f"{run.task.size:,}", number(run.seconds), gap_text(run.gap),
                "–" if first is None else number(first), f"{run.line['memory_mib']:,}",
            ]
        )  # fmt: skip
        if first is not None and (run.task.size not in sizes):
            sizes.append(run.task.size)
            seconds.append(first)
    text = table(["n", "s", "certified gap", "s to a gap of 1 %", "MiB"], rows)
    if len(sizes) > 2:
        power = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        text += f"\n\nTo a gap of 1 %: n^{power:.1f} from {sizes[0]} to {sizes[-1]:,} places."
    if found := growth(runs, "auto"):
        text += f" To 1e−6: n^{found[0]:.1f} from {found[1]} to {found[2]}."
    return text


def suites_block(runs: list[Run]) -> str:
    """Medians over the suites with several ε, losses and priors."""
    groups: dict[tuple, list[Run]] = {}
    wanted = {task.key for name in ("small", "paper") for task in suite(name)}
    for run in runs:
        if run.task.key in wanted:
            kind = f"joint, d_m = {run.task.distortion} d_max" if run.task.distortion else "metric"
            groups.setdefault((run.task.size, kind), []).append(run)
    rows = []
    for (size, kind), own in sorted(groups.items()):
        done = [run for run in own if "failed" not in run.line]
        if not done:
            continue
        seconds = [run.seconds for run in done]
        rows.append(
            [
                f"{size}, {kind}", f"{len(done)} of {len(own)}", number(float(np.median(seconds))),
                number(max(seconds)), gap_text(max(run.gap or 0.0 for run in done)),
                f"{sum(run.line['private'] for run in done)}",
                f"{max(run.line['memory_mib'] for run in done):,}",
            ]
        )  # fmt: skip
    heads = ["n, problem", "runs", "median s", "slowest s", "worst gap", "private", "MiB"]
    return table(heads, rows)


def answers_block(runs: list[Run]) -> str:
    """Where a finished run's loss is not the one that optmech certified, to AGREE."""
    finished = [run for run in runs if run.finished and run.task.solver in PEERS]
    judged = [run for run in finished if run.best is not None]
    rows = []
    for run in judged:
        off = run.line["loss"] / (run.best or np.nan) - 1
        if abs(off) > AGREE + run.task.gap:
            rows.append(
                [
                    NAMES[run.task.solver], str(run.task.size), run.task.loss, run.line["claim"],
                    f"{off:+.1e}".replace("-", "−"), factor_text(run),
                ]
            )  # fmt: skip
    text = (
        f"{len(judged) - len(rows)} of {len(judged)} losses of peers agree with the certified ones "
        f"to {gap_text(AGREE)} beyond the certified gap."
    )
    if not rows:
        return text
    heads = ["solver", "n", "loss", "claims", "relative to the certified loss", "private"]
    return text + " The others:\n\n" + table(heads, rows)
