"""What is measured: tasks, their problems as plain arrays, and suites of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from peers import PEERS

SEED = 0
LIMIT = 600.0
OURS = ("auto", "structured")
UNIT, PAPER = (1.0, 1.0), (0.75, 0.5333)
LOSSES, PRIORS = ("euclidean", "hamming"), ("uniform", "dirichlet")

# Rows and columns of the grids on which solvers are compared, and beyond where peers end.
SIZES = (
    (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10), (11, 11), (12, 12), (14, 14), (17, 17)
)  # fmt: skip
BEYOND = ((15, 15), (20, 15), (20, 20), (23, 23), (26, 26), (32, 32))

# Seconds at 64 secrets and their growth, a power of the number of secrets. Only the order in which
# runs are started follows from these.
EXPECTED = {
    "auto": (1.2, 2.2),
    "structured": (1.2, 2.2),
    "libqif": (45.0, 5.0),
    "libqif-soplex": (90.0, 5.5),
    "libqif-best": (15.0, 5.0),
    "highs-default": (45.0, 5.0),
    "highs-simplex": (45.0, 5.0),
    "highs-ipm": (30.0, 4.5),
    "highs-hipo": (20.0, 4.0),
    "highs-pdlp": (60.0, 4.0),
    "cvxpy-default": (6.5, 4.0),
}


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
    limit: float = LIMIT  # seconds from the start of the process to the matrix

    @property
    def size(self) -> int:
        return self.rows * self.columns

    @property
    def key(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def problem(self) -> tuple:
        """What is to be solved, whoever solves it."""
        return (
            self.rows, self.columns, tuple(self.cell), self.epsilon,
            self.loss, self.prior, self.distortion,
        )  # fmt: skip

    @property
    def ladder(self) -> tuple:
        """Tasks that differ in size alone."""
        return (*self.problem[2:], self.solver, self.gap)

    @classmethod
    def read(cls, values: dict) -> Task:
        return cls(**{**values, "cell": tuple(values["cell"])})


@dataclass(frozen=True)
class Arrays:
    """The problem as peers take it: prior (n,), loss (n, n) and ε d (n, n)."""

    weights: np.ndarray
    loss: np.ndarray
    log_ratio: np.ndarray
    distance: np.ndarray


def prior_weights(name: str, count: int) -> np.ndarray:
    """Uniform, Dirichlet(1) or sparse: a tenth of the cells hold almost all of a user's visits."""
    rng = np.random.default_rng(SEED)
    if name == "uniform":
        return np.full(count, 1 / count)
    if name == "dirichlet":
        return rng.dirichlet(np.ones(count))
    weights = np.zeros(count)
    chosen = rng.choice(count, max(2, count // 10), replace=False)
    weights[chosen] = 1 / np.arange(1, len(chosen) + 1) ** 1.2
    return weights / weights.sum()


def arrays(task: Task) -> Arrays:
    """Computed here and not by optmech: peers need not load it, and checks do not rest on it."""
    row, column = np.divmod(np.arange(task.size), task.columns)
    x, y = column * task.cell[0], row * task.cell[1]
    d = np.hypot(x[:, None] - x, y[:, None] - y)
    loss = d if task.loss == "euclidean" else 1.0 - np.eye(task.size)
    return Arrays(prior_weights(task.prior, task.size), loss, task.epsilon * d, d)


def suite(name: str) -> Iterator[Task]:
    """The tasks of a suite."""
    if name == "small":
        for side in (8, 10):
            for epsilon in (0.7, 1.0):
                for loss in LOSSES:
                    for prior in PRIORS:
                        yield Task(side, side, UNIT, epsilon, loss, prior, 0.0, "auto")
    elif name == "peers":
        for solver in (*OURS, *PEERS):
            for loss in LOSSES:
                yield Task(8, 8, UNIT, 1.0, loss, "uniform", 0.0, solver)
    elif name == "paper":
        for distortion in (0.0, 0.6, 0.9):
            for epsilon in (0.15, 0.3, 0.6, 0.9):
                for loss in LOSSES:
                    for prior in (*PRIORS, "sparse"):
                        yield Task(15, 20, PAPER, epsilon, loss, prior, distortion, "auto")
    elif name == "scaling":
        for solver in ("auto", *PEERS):
            for shape in (*SIZES, *(BEYOND if solver == "auto" else ())):
                yield Task(*shape, UNIT, 1.0, "euclidean", "uniform", 0.0, solver)
        for shape in SIZES[:5]:
            yield Task(*shape, UNIT, 1.0, "euclidean", "uniform", 0.0, "structured")
        yield Task(32, 32, UNIT, 1.0, "euclidean", "uniform", 0.0, "auto", 1e-2)
    elif name == "smoke":
        for solver in (*OURS, *PEERS):
            for side in (3, 4):
                yield Task(side, side, UNIT, 1.0, "euclidean", "uniform", 0.0, solver, limit=60.0)
    elif name == "large":
        for loss in LOSSES:  # the history of a run also tells when 1e-2 was reached
            yield Task(32, 32, UNIT, 0.5, loss, "dirichlet", 0.0, "structured", 1e-3, 1200.0)
    else:
        raise SystemExit(f"unknown suite {name!r}")


def expected_seconds(task: Task, finished: dict[int, float]) -> float:
    """From the largest size of the ladder that is finished, growing as it did since the size before
    it, or as in the table above."""
    seconds, power = EXPECTED[task.solver]
    size = 64
    slow = sorted(n for n, taken in finished.items() if taken > 3.0)
    if finished:
        size = max(finished)
        seconds = finished[size]
    if len(slow) > 1:
        before, after = slow[-2:]
        grown = np.log(finished[after] / finished[before]) / np.log(after / before)
        power = float(np.clip(grown, 1.0, 8.0))
    return seconds * (task.size / size) ** power
