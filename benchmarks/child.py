"""One task in a process of its own: solve, say when and with how much memory, then check.

    python benchmarks/child.py TASK

Prints one line of JSON once the matrix is there, and another when all its pairs have been checked.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from pathlib import Path

import numpy as np
from peers import PEERS
from registry import Arrays, Task, arrays

SPAWNED = "OPTMECH_BENCHMARK_SPAWNED"
MARGIN = 0.05  # of the time limit, for what an engine does after it was told to stop


def main() -> None:
    started = float(os.environ.get(SPAWNED, time.monotonic()))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", type=json.loads, help="as JSON: see registry.Task")
    task = Task.read(parser.parse_args().task)
    given = arrays(task)
    found, matrix = solve(task, given, started)
    found |= {
        "process_seconds": round(time.monotonic() - started, 3),
        "processor_seconds": round(time.process_time(), 3),
        "memory_mib": peak_memory("self"),
    }
    print(json.dumps({"solved": found}), flush=True)
    print(json.dumps({"checked": checked(task, given, matrix, found["lower_bound"])}), flush=True)


def solve(task: Task, given: Arrays, started: float) -> tuple[dict, np.ndarray]:
    """The matrix, and what the solver says of it. ``seconds`` are those of the call."""
    begun = time.monotonic()
    if task.solver in PEERS:
        matrix, claim = PEERS[task.solver](given.weights, given.loss, given.log_ratio)
        seconds = time.monotonic() - begun
        return {
            "seconds": round(seconds, 3), "lower_bound": None, "engine": task.solver,
            "claim": claim, "history": [],
        }, matrix  # fmt: skip

    import optmech as om

    history: list[tuple[float, float]] = []

    def follow(text: str) -> None:
        if "gap" in text:
            gap = float(text.rsplit("gap", 1)[1])
            history.append((round(time.monotonic() - started, 2), gap))

    grid = om.Grid(task.rows, task.columns, task.cell)
    euclidean = om.distances.euclidean()
    constraints: list[object] = [om.MetricPrivacy(task.epsilon, euclidean)]
    if task.distortion:
        blind = float((given.distance * given.weights).sum(axis=1).min())
        constraints.append(om.DistortionPrivacy(task.distortion * blind, euclidean))
    loss = getattr(om.distances, task.loss)()
    problem = om.Problem(om.Prior(grid, given.weights), loss, constraints=constraints)
    left = task.limit * (1 - MARGIN) - (time.monotonic() - started)
    begun = time.monotonic()
    design = om.solve(problem, profile=task.solver, gap=task.gap, time_limit=left, progress=follow)
    return {
        "seconds": round(time.monotonic() - begun, 3), "lower_bound": design.lower_bound,
        "engine": design.engine, "claim": design.status, "history": history,
    }, design.mechanism.matrix  # fmt: skip


def checked(task: Task, given: Arrays, matrix: np.ndarray, bound: float | None) -> dict:
    """What the matrix is worth, on all pairs. A matrix that is not quite stochastic gets every
    courtesy before its privacy is judged: negative entries set to zero, rows divided by sums."""
    value = float(given.weights @ (given.loss * matrix).sum(axis=1))
    sums = float(np.abs(matrix.sum(axis=1) - 1).max())
    kept = np.maximum(matrix, 0.0)
    kept = kept / kept.sum(axis=1, keepdims=True)
    factor, delta = violation(kept, given.log_ratio)
    return {
        "loss": value,
        "gap": None if bound is None else (value - bound) / value,
        "least_entry": float(matrix.min()),
        "sums_off": sums,
        "epsilon_factor": None if math.isinf(factor) else factor,
        "delta": delta,
        "private": factor <= 1 + 1e-12,
    }


def violation(matrix: np.ndarray, log_ratio: np.ndarray) -> tuple[float, float]:
    """The true ε as a multiple of the stated one (inf where a report is possible for one secret
    and impossible for another), and the δ with which the stated one is kept: worst pairs."""
    factor, delta = 0.0, 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = np.log(matrix)
        for i in range(len(matrix)):
            others = np.arange(len(matrix)) != i
            ratios = logs[i] - logs[others]
            ratios[np.isnan(ratios)] = -np.inf  # impossible for both
            factor = max(factor, float((ratios.max(axis=1) / log_ratio[i, others]).max()))
            scaled = np.exp(log_ratio[i, others])[:, None] * matrix[others]
            over = np.maximum(matrix[i] - scaled, 0.0).sum(axis=1)
            delta = max(delta, float(over.max()))
    return factor, delta


def peak_memory(process: int | str) -> int:
    """Largest resident set of a process so far, MiB; 0 where it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 * (process == "self")
    for line in status.splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    main()
