"""What ``guard.py`` measures, one task in a process of its own.

    python benchmarks/guarded.py NAME        # in a folder that ``prepare`` has been run in

Nothing here is newer than the oldest commit that is compared with: what a commit does not have, it
fails at, and the table says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import optmech as om

EUCLIDEAN, HAMMING = om.distances.euclidean(), om.distances.hamming()
PAPER = (15, 20, (0.75, 0.5333))


def cells(
    shape: tuple[int, int, tuple[float, float]],
    epsilon: float,
    loss: object,
    dirichlet: float = 0.0,
    blind: float = 0.0,
) -> om.Problem:
    """A grid with a uniform prior, or one from Dirichlet(``dirichlet``); with a distortion of
    ``blind`` times the error of guessing without a report."""
    grid = om.Grid(*shape)
    weights = np.full(len(grid), 1 / len(grid))
    if dirichlet:
        weights = np.random.default_rng(0).dirichlet(np.full(len(grid), dirichlet))
    constraints: list[object] = [om.MetricPrivacy(epsilon, EUCLIDEAN)]
    if blind:
        points = np.asarray(grid.points)
        distance = np.linalg.norm(points[:, None] - points, axis=2)
        least = float((distance @ weights).min())
        constraints.append(om.DistortionPrivacy(blind * least, EUCLIDEAN))
    return om.Problem(om.Prior(grid, weights), loss, constraints=constraints)


def square(side: int) -> tuple[int, int, tuple[float, float]]:
    return side, side, (1.0, 1.0)


def everywhere() -> om.Problem:
    """Privacy at every point of a square of 25 places."""
    places = np.array([(x, y) for y in range(5) for x in range(5)], dtype=float)
    mesh = om.Mesh.grid((0, 0, 4, 4), 1)
    privacy = om.MetricPrivacy("1/2", EUCLIDEAN, everywhere=mesh)
    prior = om.Prior.uniform(om.Domain(range(25), places))
    return om.Problem(prior, EUCLIDEAN, constraints=[privacy])


ROME = Path("..") / "rome.npz"


def write_rome() -> None:
    """The arrays of Rome, which benchmarks of today read and older packages could not."""
    from city import rome as crossings
    from everywhere_rome import FILES
    from given import folder

    problem = crossings(folder(*FILES), 1_000)
    degrees = np.asarray(problem.prior.domain.points)
    km = (degrees - degrees.mean(axis=0)) * 111.195
    km[:, 0] *= np.cos(np.radians(degrees[:, 1].mean()))
    np.savez(ROME, points=km, loss=problem.loss_matrix)


def rome() -> om.Problem:
    """A thousand crossings, a hundred of them as reports; distances in the plane."""
    arrays = np.load(ROME)
    points, loss = arrays["points"], arrays["loss"]
    secrets = om.Domain(range(len(points)), points)
    reports = om.Domain(range(loss.shape[1]), points[: loss.shape[1]])
    privacy = om.MetricPrivacy(5, EUCLIDEAN)
    return om.Problem(om.Prior.uniform(secrets), loss, reports, constraints=[privacy])


PROBLEMS: dict[str, tuple[Callable[[], om.Problem], float]] = {
    "montreal": (lambda: om.load_problem("montreal"), 1e-6),
    "64 uniform": (lambda: cells(square(8), 1.0, EUCLIDEAN), 1e-6),
    "100 uniform": (lambda: cells(square(10), 1.0, EUCLIDEAN), 1e-6),
    "100 rough": (lambda: cells(square(10), 0.7, HAMMING, 0.3), 1e-6),
    "169 rough": (lambda: cells(square(13), 0.7, HAMMING, 0.3), 1e-6),
    "289 uniform": (lambda: cells(square(17), 1.0, EUCLIDEAN), 1e-6),
    "300 hamming": (lambda: cells(PAPER, 0.6, HAMMING, 0.3), 1e-6),
    "300 euclidean": (lambda: cells(PAPER, 0.3, EUCLIDEAN, 0.3), 1e-6),
    "64 joint": (lambda: cells(square(8), 0.7, HAMMING, 0.3, 0.8), 1e-6),
    "300 joint": (lambda: cells(PAPER, 0.6, HAMMING, 0.3, 0.8), 1e-6),
    "rome 1,000": (rome, 1e-3),
    "mesh": (everywhere, 1e-4),
}


def prepare() -> None:
    """A design, a table of 100,000 points, and compiled code in its place."""
    om.solve(cells(square(10), 0.7, EUCLIDEAN), gap=1e-6).save("design.json")
    points = np.random.default_rng(0).uniform(0, 9, (100_000, 2))
    rows = "\n".join(f"{x:.5f},{y:.5f}" for x, y in points)
    Path("points.csv").write_text(f"x,y\n{rows}\n", encoding="utf-8")
    for name in ("169 rough", "289 uniform"):  # columns that leave, and none that do
        om.solve(PROBLEMS[name][0](), gap=0.05)
    om.solve(cells(square(13), 0.7, HAMMING, 0.3, 0.8), gap=0.05)


PREPARED = {"prepare": prepare, "rome": write_rome}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=[*PREPARED, *PROBLEMS])
    name = parser.parse_args().name
    if name in PREPARED:
        PREPARED[name]()
        return
    problem, gap = PROBLEMS[name]
    design = om.solve(problem(), gap=gap)
    if not design.gap <= gap:
        raise SystemExit(f"{name}: a gap of {design.gap}")


if __name__ == "__main__":
    main()
