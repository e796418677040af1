"""Runs of a result file beside one another: gaps, agreement of answers, growth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from engines import results
from registry import OURS, UNIT, Task

NAMES = {
    "auto": "optmech",
    "structured": "optmech, structured engine always",
    "libqif": "libqif, default (CLP)",
    "libqif-soplex": "libqif, SoPlex",
    "libqif-best": "libqif, GLOP, chainable pairs left out",
    "highs-default": "scipy linprog, default",
    "highs-simplex": "HiGHS simplex",
    "highs-ipm": "HiGHS interior point",
    "highs-hipo": "HiGHS HiPO",
    "highs-pdlp": "HiGHS PDLP",
    "cvxpy-default": "cvxpy, default (Clarabel)",
}


@dataclass(frozen=True)
class Run:
    """A run, beside the best certified lower bound and the best loss known for its problem."""

    task: Task
    line: dict
    bound: float | None
    best: float | None

    @property
    def finished(self) -> bool:
        """A matrix within the limit; from optmech, within the gap that was asked for."""
        return "failed" not in self.line and (self.line["gap"] or 0.0) <= self.task.gap

    @property
    def seconds(self) -> float:
        return self.line["process_seconds"]

    @property
    def gap(self) -> float | None:
        """Certified by the run itself, or by optmech for a peer's loss; below 0 where the loss is
        below what any private mechanism can have."""
        if self.line["gap"] is not None or self.bound is None:
            return self.line["gap"]
        return (self.line["loss"] - self.bound) / self.line["loss"]

    @property
    def factor(self) -> float:
        """The matrix's ε as a multiple of the stated one."""
        return np.inf if self.line["epsilon_factor"] is None else self.line["epsilon_factor"]


def load(path: Path) -> list[Run]:
    """Runs of a file, each beside the best that optmech certified for the same problem."""
    lines = [(Task.read(line["task"]), line) for line in results(path)]
    bounds: dict[tuple, float] = {}
    best: dict[tuple, float] = {}
    for task, line in lines:
        if task.solver in OURS and "failed" not in line:
            known = bounds.get(task.problem, -np.inf)
            bounds[task.problem] = max(known, line["lower_bound"])
            best[task.problem] = min(best.get(task.problem, np.inf), line["loss"])
    runs = [Run(t, line, bounds.get(t.problem), best.get(t.problem)) for t, line in lines]
    for run in runs:
        if run.finished and run.line["private"] and (run.gap or 0.0) < -1e-9:
            raise SystemExit(f"below the lower bound, and private: {run.task.key}")
    return runs


def comparison(runs: list[Run], solver: str) -> list[Run]:
    """A solver's runs by size: unit cells, ε = 1, Euclidean loss, uniform prior."""
    own = [
        run
        for run in runs
        if run.task.solver == solver
        and run.task.problem[2:] == (UNIT, 1.0, "euclidean", "uniform", 0.0)
    ]
    return sorted(own, key=lambda run: run.task.size)


def exponent(sizes: list[int], seconds: list[float]) -> tuple[float, int, int] | None:
    """Slope of a least-squares line through log seconds against log size over the larger half of
    the sizes (three at least, else None), and the sizes it runs between."""
    half = max(3, (len(sizes) + 1) // 2)
    if len(sizes) < half:
        return None
    n, t = np.array(sizes[-half:]), np.array(seconds[-half:])
    return float(np.polyfit(np.log(n), np.log(t), 1)[0]), int(n[0]), int(n[-1])


def growth(runs: list[Run], solver: str) -> tuple[float, int, int] | None:
    """The exponent of a solver's finished runs at the gap that all are compared at."""
    own = [run for run in comparison(runs, solver) if run.finished and run.task.gap == 1e-6]
    return exponent([run.task.size for run in own], [run.seconds for run in own])


def to_one_per_cent(run: Run) -> float | None:
    """Seconds after which a run of optmech had certified a gap of 1 %."""
    found = [at for at, gap in run.line["history"] if gap <= 1e-2]
    last = run.seconds if (run.line["gap"] or 0.0) <= 1e-2 else None
    return min(found, default=last)
