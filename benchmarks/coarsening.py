"""Shipped coarsening on a real prior and real traces (docs/coarsening.md).

    python benchmarks/coarsening.py          # ../shared/data, results/coarsening.json
    python benchmarks/coarsening.py --table --figure docs/figures/coarsening.svg

The places are 100 cells of about 1 km in Beijing, the prior is where eleven users of GeoLife were
every two minutes, and the Markov chain is estimated from every other of their sequences; traces of
12 times are cut from the others. Distances are in km. For every way of coarsening: expected loss,
least ε, error of the optimal attack on one report, and on all reports of a trace (forward and
backward, measured against where the user was); beside the certified design of the least ε that
loses no more, with the same attacks. The offset of Android's grid is drawn once for a trace, and
the attacker considers 49 offsets, by their posterior. Everything is drawn from one seed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from discrete_traces import FIXES, STEPS, windows
from given import add_files, settle
from optmech_sweeps.coarsening import compare_coarsening, shipped
from optmech_traces import Fixes, MarkovPrior
from sticky import attack, estimate, smoothed

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "coarsening.json"
BOX = (116.27, 39.95, 116.39, 40.04)
SIDE, INTERVAL, GAP, TRACES, SEED = 10, 120, 180, 150, 20261122
EUCLIDEAN = om.distances.euclidean()
NAMES = ("loss", "epsilon", "attack", "trace", "sticky")
OFFSET = "offset grid of 2 km (Android)"
Floats = np.ndarray[Any, np.dtype[np.float64]]


def smooth(chain: MarkovPrior, likelihoods: Floats) -> Floats:
    """Posteriors (T, n) from likelihoods (T, n), and nothing of a release that is impossible."""
    found = chain.given(dict(enumerate(likelihoods)))
    return np.asarray(found.marginals(len(likelihoods)))


def offsets(size: float) -> list[tuple[float, Floats]]:
    """Weights and vectors of 49 offsets, the nodes of Gauss and Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(7)
    weights = weights / weights.sum()
    return [
        (float(a * b), np.array([x, y]) * size / 4)
        for x, a in zip(nodes, weights, strict=True)
        for y, b in zip(nodes, weights, strict=True)
    ]


def follow(grid: om.Grid, chain: MarkovPrior, traces: list[list[int]], m: om.Mechanism) -> float:
    """Mean error about the traces, of the attack on all reports."""
    rng = np.random.default_rng(SEED)
    apart = EUCLIDEAN(grid, grid)
    errors = []
    for trace in traces:
        drawn = [int(rng.choice(m.matrix.shape[1], p=m.matrix[s])) for s in trace]
        posterior = smooth(chain, m.matrix[:, drawn].T)
        errors.append(apart[trace, estimate(posterior, apart)].mean())
    return float(np.mean(errors))


def follow_sticky(
    grid: om.Grid, chain: MarkovPrior, traces: list[list[int]], m: om.Mechanism
) -> float:
    """The same where every place has one report for the whole trace: the better of the attack that
    follows (as in sticky.py, returns counted as new draws) and of each report by itself."""
    rng = np.random.default_rng(SEED)
    apart, prior = EUCLIDEAN(grid, grid), np.asarray(chain.initial)
    following, single = [], []
    for trace in traces:
        kept = {s: int(rng.choice(m.matrix.shape[1], p=m.matrix[s])) for s in dict.fromkeys(trace)}
        drawn = np.array([kept[s] for s in trace])
        posterior = attack(drawn, np.zeros(len(trace)), True, m.matrix, chain)
        following.append(apart[trace, estimate(posterior, apart)].mean())
        alone = estimate(prior * m.matrix[:, drawn].T, apart)
        single.append(apart[trace, alone].mean())
    return float(min(np.mean(following), np.mean(single)))


def follow_offset(grid: om.Grid, chain: MarkovPrior, traces: list[list[int]]) -> float:
    """The same where one unknown offset moves all reports of a trace."""
    rng = np.random.default_rng(SEED)
    apart, points, errors = EUCLIDEAN(grid, grid), grid.points, []
    options = offsets(2.0)
    table, start = np.asarray(chain.transition(0)), np.asarray(chain.initial)
    for trace in traces:
        chosen = rng.choice(len(options), p=[weight for weight, _ in options])
        seen = np.rint((points[trace] + options[chosen][1]) / 2.0)
        total = np.zeros((len(trace), len(grid)))
        for weight, offset in options:
            nodes = np.rint((points + offset) / 2.0)
            fits = (nodes[None] == seen[:, None]).all(axis=2).astype(float)
            evidence, belief = weight, start
            for fit in fits:
                belief = belief * fit
                evidence *= belief.sum()
                if evidence == 0:
                    break
                belief = belief / belief.sum() @ table
            if evidence > 0:
                here = smoothed(
                    table, start, lambda t, fits=fits: fits[t][None, :], fits[0], len(trace)
                )
                total += evidence * here
        errors.append(apart[trace, estimate(total, apart)].mean())
    return float(np.mean(errors))


def run(data: Path, count: int, side: int) -> dict[str, Any]:
    """All figures."""
    began = time.process_time()
    fixes = Fixes.from_csv(data / FIXES, user="user", time="utc", x="lon", y="lat")
    grid = om.Grid.geographic(side, side, BOX)
    sequences = fixes.sequences(grid, INTERVAL, GAP)
    visits = np.concatenate([s.cells for s in sequences])
    counts = np.bincount(visits[visits >= 0], minlength=len(grid)) + 0.5
    prior = om.Prior(grid, counts / counts.sum())
    base = MarkovPrior.random_walk(grid, EUCLIDEAN, 0.5)
    chain = MarkovPrior.from_sequences(
        grid, [s.cells for s in sequences[::2]], smoothing=1.0, base=base
    )
    found = [w for s in sequences[1::2] for w in windows(s.cells)]
    chosen = np.random.default_rng(SEED).permutation(len(found))[:count]
    traces = [found[k] for k in sorted(chosen.tolist())]
    rows, models = [], shipped(prior)
    known: dict[float, tuple[float, float]] = {}
    for row in compare_coarsening(prior, progress=lambda text: print(text, flush=True)):
        if row.name == OFFSET:
            trace_attack = follow_offset(grid, chain, traces)
        else:
            trace_attack = follow(grid, chain, traces, models[row.name])
        design_trace = design_sticky = math.nan
        if row.design is not None:
            if row.design_epsilon not in known:
                known[row.design_epsilon] = (
                    follow(grid, chain, traces, row.design.mechanism),
                    follow_sticky(grid, chain, traces, row.design.mechanism),
                )
            design_trace, design_sticky = known[row.design_epsilon]
        rows.append(
            {
                "name": row.name,
                "loss": row.loss,
                "epsilon": None if math.isinf(row.epsilon) else row.epsilon,
                "attack": row.attack,
                "trace": trace_attack,
                "design_loss": row.design_loss,
                "design_epsilon": row.design_epsilon,
                "design_attack": row.design_attack,
                "design_trace": design_trace,
                "design_sticky": design_sticky,
            }
        )
        if row.name.startswith("planar Laplace"):
            cached = follow_sticky(grid, chain, traces, models[row.name])
            rows.append({**rows[-1], "name": f"{row.name}, cached", "trace": cached})
        print(rows[-1], flush=True)
    distance = EUCLIDEAN(grid, grid)
    return {
        "rows": rows,
        "traces": len(traces),
        "steps": STEPS,
        "blind": float((prior.weights @ distance).min()),
        "cell": grid.cell,
        "seconds": time.process_time() - began,
    }


def table(results: dict[str, Any]) -> str:
    """The page's table."""
    lines = [
        "| coarsening | loss | ε per km | attack | on a trace "
        "| certified: loss | ε per km | attack | on a trace | sticky |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        rate = "∞" if row["epsilon"] is None else f"{row['epsilon']:.2f}"
        certified = [row[f"design_{name}"] for name in NAMES]
        cells = " | ".join("–" if math.isnan(v) else f"{v:.2f}" for v in certified)
        lines.append(
            f"| {row['name']} | {row['loss']:.2f} | {rate} | {row['attack']:.2f} "
            f"| {row['trace']:.2f} | {cells} |"
        )
    return "\n".join(lines)


def draw(results: dict[str, Any], figure: Path) -> None:
    """Loss against the attack's error: on the line y = x nothing is given away for nothing."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "optmech"
    from matplotlib import pyplot

    fig, sides = pyplot.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
    for axes, error, words in zip(
        sides, ("attack", "trace"), ("one report", "all reports of a trace"), strict=True
    ):
        for row in results["rows"]:
            axes.plot(row["loss"], row[error], "o", color="C3", ms=4)
            axes.annotate(
                row["name"], (row["loss"], row[error]), fontsize=6, xytext=(3, 2),
                textcoords="offset points",
            )  # fmt: skip
        for name, style, said in (("attack", "s-", ""), ("trace", "s-", ", fresh draws"),
                                  ("sticky", "^--", ", sticky")):  # fmt: skip
            if (name == "attack") == (error == "attack"):
                own = {(row["design_loss"], row[f"design_{name}"]) for row in results["rows"]}
                axes.plot(*zip(*sorted(own), strict=True), style, ms=4, label=f"certified{said}")
        axes.legend(loc="lower right", fontsize=7)
        axes.axhline(results["blind"], color="0.7", lw=0.8)
        axes.set(xlabel="expected loss (km)", title=words, xlim=(0, 4.2), ylim=(0, None))
    sides[0].set_ylabel("error of the attack (km)")
    fig.savefig(figure, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--side", type=int, default=SIDE, help="cells of a side of the box")
    parser.add_argument("--traces", type=int, default=TRACES)
    add_files(parser, RESULTS)
    parser.add_argument("--table", action="store_true", help="print the table of the page")
    parser.add_argument("--figure", type=Path, help="draw the results as SVG")
    args = parser.parse_args()
    if not args.table:
        settle(args, FIXES)
        args.results.write_text(
            json.dumps(run(args.data, args.traces, args.side), indent=1) + "\n", encoding="utf-8"
        )
    results = json.loads(args.results.read_text(encoding="utf-8"))
    print(table(results))
    if args.figure is not None:
        draw(results, args.figure)


if __name__ == "__main__":
    main()
