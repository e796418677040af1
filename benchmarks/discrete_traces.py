"""Sequential design against one mechanism repeated, on GPS traces of Beijing (GeoLife).

    python benchmarks/discrete_traces.py                  # every part that is not there yet
    python benchmarks/discrete_traces.py --part utility   # one of them, anew
    python benchmarks/discrete_traces.py --figure docs/traces-discrete.svg

25 cells of 1.36 x 1.33 km, a position every two minutes, traces of 12 times. The chain is estimated
from every other sequence; the traces that are released are cut from the others. Distances and
losses are in km. Results go to results/discrete_traces.json, part by part, with the machine and the
versions; everything is drawn from one seed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from given import add_files, settle
from optmech_traces import (
    AdversaryReport,
    ConditionalDistortion,
    ConditionalPrivacy,
    FixedPolicy,
    Fixes,
    MarkovPrior,
    SequentialDesigner,
    leakage_about,
    simulate,
)
from scipy.optimize import brentq

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "discrete_traces.json"
FIXES = "geolife_beijing_11users.csv"
BOX = (116.28, 39.96, 116.36, 40.02)
SIDE, INTERVAL, GAP, STEPS, SEED = 5, 120, 180, 12, 20261121
EUCLIDEAN = om.distances.euclidean()
GAP_ASKED = 1e-4
DISTORTION = om.MaximizeDistortion(EUCLIDEAN)


class Setting:
    """The chain, the mechanism's prior for single locations, and the traces to release."""

    def __init__(self, data: Path, traces: int) -> None:
        fixes = Fixes.from_csv(data / FIXES, user="user", time="utc", x="lon", y="lat")
        self.grid = om.Grid.geographic(SIDE, SIDE, BOX)
        sequences = fixes.sequences(self.grid, INTERVAL, GAP)
        base = MarkovPrior.random_walk(self.grid, EUCLIDEAN, 0.5)
        self.chain = MarkovPrior.from_sequences(
            self.grid, [s.cells for s in sequences[::2]], smoothing=1.0, base=base
        )
        self.known = sum(int((s.cells >= 0).sum()) for s in sequences[::2])
        found = [w for s in sequences[1::2] for w in windows(s.cells)]
        chosen = np.random.default_rng(SEED).permutation(len(found))[:traces]
        self.available = len(found)
        self.traces = [found[k] for k in sorted(chosen.tolist())]
        self.size = traces

    def repeated(self, **stated: Any) -> FixedPolicy:
        """The optimum for a single location drawn from P(X_0), at every time."""
        single = om.Problem(om.Prior(self.grid, self.chain.initial), EUCLIDEAN, **stated)
        return FixedPolicy(self.chain, om.solve(single, gap=GAP_ASKED).mechanism)

    def laplace(self, loss: float) -> FixedPolicy:
        """Planar Laplace noise, remapped by nothing, at the same expected loss."""
        first = om.Prior(self.grid, self.chain.initial)

        def excess(rate: float) -> float:
            made = om.mechanisms.planar_laplace(self.grid, rate)
            return om.measures.expected_loss(made, first, EUCLIDEAN) - loss

        rate = brentq(excess, 0.1, 50.0)
        return FixedPolicy(self.chain, om.mechanisms.planar_laplace(self.grid, rate))

    def sequential(self, constraints: list[Any], **stated: Any) -> SequentialDesigner:
        return SequentialDesigner(self.chain, EUCLIDEAN, constraints, gap=GAP_ASKED, **stated)

    def figures(self, policy: Any) -> dict[str, Any]:
        """The adversary against traces of the chain, and against the real ones."""
        simulated = simulate(
            policy, EUCLIDEAN, steps=STEPS, count=self.size, seed=SEED, progress=note
        )
        real = simulate(policy, EUCLIDEAN, traces=self.traces, seed=SEED, progress=note)
        return {"chain": plain(simulated), "real": plain(real)}


def windows(cells: np.ndarray) -> list[list[int]]:
    """Disjoint stretches of STEPS known cells."""
    out, run = [], []
    for cell in cells.tolist():
        run = [*run, cell] if cell >= 0 else []
        if len(run) == STEPS:
            out.append(run)
            run = []
    return out


def note(text: str) -> None:
    print(f"\r{text}   ", end="", file=sys.stderr, flush=True)


def plain(report: AdversaryReport) -> dict[str, Any]:
    series = {
        "filtering": report.filtering,
        "smoothing": report.smoothing,
        "filtering_on_traces": report.filtering_on_traces,
        "smoothing_on_traces": report.smoothing_on_traces,
        "loss": report.loss,
    }
    return {
        "blind": np.round(report.blind, 4).tolist(),
        **{
            name: {
                "mean": np.round(values.mean, 4).tolist(),
                "standard_error": np.round(values.standard_error, 4).tolist(),
                "average": round(values.average, 4),
                "average_error": round(values.average_error, 4),
            }
            for name, values in series.items()
            if values is not None
        },
        "actions": report.actions,
        "traces": report.traces,
    }


def overview(at: Setting) -> list[dict[str, Any]]:
    still = np.diag(at.chain.transition(0))
    blind = at.chain.marginals(STEPS) @ EUCLIDEAN(at.grid, at.grid)
    return [
        {
            "cells": len(at.grid),
            "cell_km": [round(x, 3) for x in at.grid.cell],
            "positions_for_the_chain": at.known,
            "chance_to_stay": round(float(at.chain.initial @ still), 4),
            "blind_km": np.round(blind.min(axis=1), 3).tolist(),
            "windows": at.available,
            "released": len(at.traces),
        }
    ]


def utility(at: Setting) -> list[dict[str, Any]]:
    """Equal expected loss at every step; the designs maximise distortion under it."""
    out = []
    for loss in (0.4, 0.8):
        constraints = [om.LossBound(loss)]
        for name, policy in (
            ("planar Laplace, repeated", at.laplace(loss)),
            ("repeated", at.repeated(constraints=constraints, objective=DISTORTION)),
            ("sequential", at.sequential(constraints, objective=DISTORTION)),
        ):
            out.append({"policy": name, "loss_bound_km": loss, **at.figures(policy)})
    return out


def epsilon(at: Setting) -> list[dict[str, Any]]:
    """Equal metric privacy at every step; each policy minimises expected loss under it."""
    out = []
    for rate in (1.0, 2.0):
        constraints = [om.MetricPrivacy(rate, EUCLIDEAN)]
        for name, policy in (
            ("repeated", at.repeated(constraints=constraints)),
            ("sequential", at.sequential(constraints)),
        ):
            out.append({"policy": name, "epsilon_per_km": rate, **at.figures(policy)})
    return out


def joint(at: Setting) -> list[dict[str, Any]]:
    """Metric privacy of 2 per km and a distortion of 0.6 km, asked of single locations, of the
    filtering adversary, and of whoever waits for up to two more releases."""
    metric = om.MetricPrivacy(2.0, EUCLIDEAN)
    now = om.DistortionPrivacy(0.6, EUCLIDEAN)
    later = ConditionalDistortion(0.6, EUCLIDEAN, lags=(0, 1, 2))
    return [
        {"policy": name, "epsilon_per_km": 2.0, "minimum_km": 0.6, **at.figures(policy)}
        for name, policy in (
            ("repeated", at.repeated(constraints=[metric, now])),
            ("sequential", at.sequential([metric, now], on_infeasible="relax")),
            ("sequential, lags 0 to 2", at.sequential([metric, later], on_infeasible="relax")),
        )
    ]


def conditional(at: Setting) -> list[dict[str, Any]]:
    """What it costs to bound what a release tells about the location one step earlier."""
    metric = om.MetricPrivacy(2.0, EUCLIDEAN)
    return [
        {
            "policy": "sequential",
            "epsilon_per_km": 2.0,
            "about_the_step_before_per_km": rate,
            **at.figures(
                at.sequential([metric, ConditionalPrivacy(rate, lags=1, distance=EUCLIDEAN)])
            ),
        }
        for rate in (1.0,)
    ]


def accounting(at: Setting) -> list[dict[str, Any]]:
    """Twelve releases with 2 per km each: composition against the leakage that is proved."""
    m = at.repeated(constraints=[om.MetricPrivacy(2.0, EUCLIDEAN)]).mechanisms[0]
    apart = EUCLIDEAN(at.grid, at.grid)
    out = []
    for moment in (0, STEPS // 2, STEPS - 1):
        found = leakage_about(at.chain, [m] * STEPS, moment)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = [
                float(np.nanmax(np.where(apart > 0, values / apart, np.nan)))
                for values in (found.pair_lower, found.pair_upper)
            ]
        out.append(
            {
                "time": moment,
                "single_release_per_km": om.measures.epsilon(m, EUCLIDEAN),
                "composition_per_km_if_nobody_moves": 2.0 * STEPS,
                "leakage_per_km": [round(x, 4) for x in rate],
                "leakage_all_pairs": [round(found.lower, 4), round(found.upper, 4)],
            }
        )
    return out


PARTS: dict[str, Callable[[Setting], list[dict[str, Any]]]] = {
    "overview": overview,
    "utility": utility,
    "epsilon": epsilon,
    "joint": joint,
    "conditional": conditional,
    "accounting": accounting,
}


def figure(known: dict[str, Any], path: Path) -> None:
    """Distortion privacy over time at equal loss: both adversaries, chain and real traces."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "optmech", "svg.fonttype": "none"}
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    colours = {"planar Laplace, repeated": "tab:green", "repeated": "tab:orange"}
    colours["sequential"] = "tab:blue"
    largest = max(row["loss_bound_km"] for row in known["utility"]["rows"])
    for ax, kind in zip(axes, ("chain", "real"), strict=True):
        for row in known["utility"]["rows"]:
            if row["loss_bound_km"] != largest:
                continue
            suffix = "" if kind == "chain" else "_on_traces"
            for attack, style in (("filtering", "-"), ("smoothing", "--")):
                values = row[kind][attack + suffix]
                ax.errorbar(
                    range(STEPS),
                    values["mean"],
                    values["standard_error"],
                    fmt=style,
                    color=colours[row["policy"]],
                    label=f"{row['policy']}, {attack}",
                    capsize=2,
                )
        ax.plot(range(STEPS), row[kind]["blind"], ":", color="grey", label="nothing released")
        ax.set_title("traces of the chain" if kind == "chain" else "real traces")
        ax.set_xlabel("time (steps of two minutes)")
    axes[0].set_ylabel("error of the attack (km)")
    axes[0].set_ylim(bottom=0)
    axes[1].legend(fontsize=7)
    fig.tight_layout()
    fig.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="default: the missing ones")
    parser.add_argument(
        "--traces",
        type=int,
        default=30,
        help="per policy and kind (default 30; the part conditional was run with 8)",
    )
    add_files(parser, RESULTS)
    parser.add_argument("--figure", type=Path, help="draw the figure from the results")
    args = parser.parse_args()
    if args.figure:
        figure(json.loads(args.results.read_text(encoding="utf-8")), args.figure)
        return
    settle(args, FIXES)
    there = args.results.exists()
    known = json.loads(args.results.read_text(encoding="utf-8")) if there else {}
    at = Setting(args.data, args.traces)
    for part in args.part or [name for name in PARTS if name not in known]:
        started = time.perf_counter()
        found = PARTS[part](at)
        known[part] = {
            "seconds": round(time.perf_counter() - started, 1),
            "machine": platform.processor() or platform.machine(),
            "versions": {name: version(name) for name in ("optmech", "numpy", "scipy", "highspy")},
            "seed": SEED,
            "rows": found,
        }
        args.results.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        print(f"\n{part}: {known[part]['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
