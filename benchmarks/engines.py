"""Times engines and peers on the same problems, one fresh process each, into a JSON-lines file.

    python benchmarks/engines.py --suite small            # n = 64 and 100, engines only
    python benchmarks/engines.py --suite peers            # n = 64 beside libqif, HiGHS, cvxpy
    python benchmarks/engines.py --suite paper            # n = 300, metric and joint
    python benchmarks/engines.py --suite scaling          # every peer, n = 16 to ten minutes each
    python benchmarks/engines.py --suite large            # n = 1024, stopped by a time limit
    python benchmarks/engines.py --suite smoke --results FILE     # everything small, in a minute
    python benchmarks/engines.py --report                 # a table of what is there

A run that is already in the file is not repeated: interrupt and resume at will. Every line has
the machine, the versions, its load, the certified gap, and whether the matrix passed an
independent check over all pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from peers import PEERS

RESULTS = Path(__file__).resolve().parent / "results" / "engines.jsonl"


@dataclass(frozen=True)
class Task:
    """One problem for one solver."""

    rows: int
    columns: int
    cell: tuple[float, float]
    epsilon: float
    loss: str
    prior: str
    distortion: float  # as a part of d_max; 0 for none
    solver: str
    gap: float = 1e-6
    limit: float = 600.0

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def prior_weights(name: str, count: int) -> np.ndarray:
    """Uniform, Dirichlet(1) or sparse: a tenth of the cells hold almost all of a user's visits."""
    rng = np.random.default_rng(0)
    if name == "uniform":
        return np.full(count, 1 / count)
    if name == "dirichlet":
        return rng.dirichlet(np.ones(count))
    weights = np.zeros(count)
    chosen = rng.choice(count, max(2, count // 10), replace=False)
    weights[chosen] = 1 / np.arange(1, len(chosen) + 1) ** 1.2
    return weights / weights.sum()


def suite(name: str) -> Iterator[Task]:
    """The tasks of a suite."""
    unit, paper = (1.0, 1.0), (0.75, 0.5333)
    losses, priors = ("euclidean", "hamming"), ("uniform", "dirichlet")
    if name == "small":
        for side in (8, 10):
            for epsilon in (0.7, 1.0):
                for loss in losses:
                    for prior in priors:
                        yield Task(side, side, unit, epsilon, loss, prior, 0.0, "auto")
    elif name == "peers":
        for solver in ("structured", "libqif", "highs-default", "cvxpy-default"):
            for loss in losses:
                yield Task(8, 8, unit, 1.0, loss, "uniform", 0.0, solver, limit=590.0)
    elif name == "paper":
        for distortion in (0.0, 0.6, 0.9):
            for epsilon in (0.15, 0.3, 0.6, 0.9):
                for loss in losses:
                    for prior in (*priors, "sparse"):
                        yield Task(15, 20, paper, epsilon, loss, prior, distortion, "auto")
    elif name in ("scaling", "smoke"):
        for solver in ("auto", *PEERS):
            for side in (4, 5, 6, 7, 8, 9, 10, 12, 14, 17) if name == "scaling" else (3, 4):
                yield Task(side, side, unit, 1.0, "euclidean", "uniform", 0.0, solver)
    elif name == "large":
        for loss in losses:
            for gap, limit in ((1e-2, 480.0), (1e-3, 1200.0)):
                yield Task(32, 32, unit, 0.5, loss, "dirichlet", 0.0, "structured", gap, limit)
    else:
        raise SystemExit(f"unknown suite {name!r}")


def run(task: Task) -> dict[str, object]:
    """Solve one task in this process and check the matrix independently."""
    import optmech as om

    grid = om.Grid(task.rows, task.columns, task.cell)
    euclidean = om.distances.euclidean()
    weights = prior_weights(task.prior, len(grid))
    d = euclidean(grid, grid)
    constraints: list[object] = [om.MetricPrivacy(task.epsilon, euclidean)]
    if task.distortion:
        blind = float((d * weights[None, :]).sum(axis=1).min())
        constraints.append(om.DistortionPrivacy(task.distortion * blind, euclidean))
    loss = getattr(om.distances, task.loss)()
    problem = om.Problem(om.Prior(grid, weights), loss, constraints=constraints)
    history: list[tuple[float, float]] = []
    started = time.monotonic()
    if task.solver in PEERS:
        matrix = PEERS[task.solver](weights, loss(grid, grid), task.epsilon * d)
        seconds, bound, engine = time.monotonic() - started, None, task.solver
    else:

        def follow(text: str) -> None:
            if "gap" in text:
                gap = float(text.rsplit("gap", 1)[1])
                history.append((round(time.monotonic() - started, 2), gap))

        design = om.solve(
            problem, profile=task.solver, gap=task.gap, time_limit=task.limit, progress=follow
        )
        seconds, bound, engine = time.monotonic() - started, design.lower_bound, design.engine
        matrix = design.mechanism.matrix
    value = float(weights @ (loss(grid, grid) * matrix).sum(axis=1))
    return {
        "seconds": round(seconds, 3),
        "loss": value,
        "lower_bound": bound,
        "gap": None if bound is None else (value - bound) / value,
        "private": private(matrix, task.epsilon * d),
        "engine": engine,
        "history": history,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def private(matrix: np.ndarray, log_ratio: np.ndarray) -> bool:
    """Whether all pairs keep their ratios, relative error 1e-12 in ε, and rows sum to one."""
    if np.abs(matrix.sum(axis=1) - 1).max() > 1e-12 or matrix.min() < 0:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix)
        for i in range(len(matrix)):
            excess = logs[i][None, :] - logs - log_ratio[i][:, None] * (1 + 1e-12)
            if (excess[np.arange(len(matrix)) != i] > 1e-15).any():
                return False
    zero = matrix == 0
    return bool((zero.all(axis=0) | ~zero.any(axis=0)).all())


def about() -> dict[str, object]:
    """Machine and versions."""
    found = {}
    for name in ("optmech", "numpy", "scipy", "highspy", "cvxpy", "clarabel", "numba", "qif"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "versions": found,
    }


def drive(name: str, path: Path) -> None:
    """Run what is missing of a suite, each task in a fresh process. Where a solver did not finish
    a size, larger ones of the same suite are not tried."""
    path.parent.mkdir(exist_ok=True)
    done = {json.dumps(line["task"], sort_keys=True): line for line in results(path)}
    given_up: set[str] = set()
    for task in suite(name):
        if task.key in done:
            if "failed" in done[task.key]:
                given_up.add(task.solver)
            continue
        if name == "scaling" and task.solver in given_up:
            continue
        context = about()
        command = [sys.executable, __file__, "--task", task.key]
        print(task.key, flush=True)
        try:
            out = subprocess.run(
                command, capture_output=True, text=True, timeout=task.limit + 120, check=True
            ).stdout
            outcome = json.loads(out.splitlines()[-1])
        except subprocess.TimeoutExpired:
            outcome = {"failed": f"not finished in {task.limit + 120:.0f} s"}
        except subprocess.CalledProcessError as error:
            outcome = {"failed": error.stderr.strip().splitlines()[-1:]}
        if "failed" in outcome:
            given_up.add(task.solver)
        print("   ", {k: v for k, v in outcome.items() if k != "history"}, flush=True)
        with path.open("a") as stream:
            stream.write(json.dumps({"task": asdict(task), **context, **outcome}) + "\n")


def results(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(path: Path) -> None:
    """Medians by size, kind and solver."""
    groups: dict[tuple, list[dict]] = {}
    for line in results(path):
        task = line["task"]
        kind = f"joint {task['distortion']}" if task["distortion"] else "metric"
        groups.setdefault((task["rows"] * task["columns"], kind, task["solver"]), []).append(line)
    print("| n | kind | solver | runs | median s | slowest s | worst gap | private | MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (n, kind, solver), lines in sorted(groups.items()):
        ok = [line for line in lines if "seconds" in line]
        if not ok:
            print(f"| {n} | {kind} | {solver} | {len(lines)} | none finished | | | | |")
            continue
        seconds = [line["seconds"] for line in ok]
        gaps = [line["gap"] for line in ok if line["gap"] is not None]
        print(
            f"| {n} | {kind} | {solver} | {len(ok)} of {len(lines)} | {np.median(seconds):.2f} | "
            f"{max(seconds):.2f} | {f'{max(gaps):.1e}' if gaps else 'not certified'} | "
            f"{sum(line['private'] for line in ok)} of {len(ok)} | "
            f"{max(line['memory_mib'] for line in ok)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, help="a file of JSON lines")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        values = json.loads(arguments.task)
        values["cell"] = tuple(values["cell"])
        print(json.dumps(run(Task(**values))))
    elif arguments.suite:
        drive(arguments.suite, arguments.results)
    if arguments.report:
        report(arguments.results)


if __name__ == "__main__":
    main()
