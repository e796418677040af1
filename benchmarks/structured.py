"""Time of the structured engine on grids: certified gap 1e-6, one row per problem.

    python benchmarks/structured.py small      # 64 and 100 cells
    python benchmarks/structured.py paper      # 300 cells, with and without distortion
    python benchmarks/structured.py small --time-limit 20

Seconds are wall time of ``optmech.pipeline.solve``, compilation done beforehand; memory is the
peak of the process so far. One run per row: repeat before relying on a figure.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import optmech as om
from optmech.pipeline import solve
from optmech.profiles import Profile


@dataclass(frozen=True)
class Case:
    """A grid problem; ``share`` is the distortion asked for, as a share of d_max."""

    rows: int
    columns: int
    cell: tuple[float, float]
    epsilon: float
    loss: str
    prior: str
    share: float = 0.0

    def problem(self) -> om.Problem:
        count = self.rows * self.columns
        y, x = np.divmod(np.arange(count), self.columns)
        domain = om.Domain(range(count), points=np.c_[x * self.cell[0], y * self.cell[1]])
        weights = np.full(count, 1 / count)
        if self.prior == "dirichlet":
            weights = np.random.default_rng(0).dirichlet(np.ones(count))
        prior = om.Prior(domain, weights)
        distance = om.distances.euclidean()
        constraints: list[object] = [om.MetricPrivacy(self.epsilon, distance)]
        if self.share:
            blind = float((distance(domain, domain) * weights).sum(axis=1).min())
            constraints.append(om.DistortionPrivacy(self.share * blind, distance))
        loss = distance if self.loss == "euclid" else om.distances.hamming()
        return om.Problem(prior, loss, constraints=constraints)


def small() -> Iterator[Case]:
    """8 x 8 and 10 x 10 unit cells."""
    for side in (8, 10):
        for epsilon in (0.7, 1.0):
            for loss in ("euclid", "hamming"):
                for prior in ("uniform", "dirichlet"):
                    yield Case(side, side, (1.0, 1.0), epsilon, loss, prior)


def paper() -> Iterator[Case]:
    """The 300 cells of Privacy Games, alone and joint with distortion."""
    for share in (0.0, 0.6, 0.9):
        for epsilon in (0.15, 0.3, 0.6, 0.9):
            for loss in ("euclid", "hamming"):
                for prior in ("uniform", "dirichlet"):
                    yield Case(20, 15, (0.75, 0.533), epsilon, loss, prior, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=("small", "paper"))
    parser.add_argument("--time-limit", type=float, default=200.0)
    parser.add_argument("--only", default="", help="loss, prior or share to keep, as printed")
    arguments = parser.parse_args()
    profile = Profile(name="structured", engine="structured")
    solve(Case(8, 8, (1.0, 1.0), 1.0, "euclid", "uniform").problem(), profile)
    print(f"{'cells':>5} {'eps':>5} {'loss':>8} {'prior':>10} {'share':>5} {'seconds':>8} ", end="")
    print(f"{'loss':>12} {'gap':>8} {'status':>9} {'MiB':>6}")
    times = []
    for case in {"small": small, "paper": paper}[arguments.set]():
        names = (case.loss, case.prior, str(case.share))
        if arguments.only and arguments.only not in names:
            continue
        problem = case.problem()
        begin = time.perf_counter()
        design = solve(problem, profile, time_limit=arguments.time_limit)
        times.append(time.perf_counter() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{case.rows * case.columns:5d} {case.epsilon:5.2f} {case.loss:>8} {case.prior:>10} "
            f"{case.share:5.2f} {times[-1]:8.2f} {design.loss:12.8f} {design.gap:8.1e} "
            f"{design.status:>9} {peak:6.0f}",
            flush=True,
        )
    print(f"median {np.median(times):.2f} s, most {max(times):.2f} s")


if __name__ == "__main__":
    main()
