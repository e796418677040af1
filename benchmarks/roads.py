"""Every point of every road of Rome: large networks, and what others do beside.

    python benchmarks/roads.py rome 5000 --gap 1e-3   # crossings around the middle
    python benchmarks/roads.py beside                 # the table of docs/everywhere.md, and its map

OpenStreetMap's drive network of Rome as PAnDA (CCS 2025) has it; roads both ways; a uniform prior
over crossings; reports drawn from these; loss the distance along the roads. Seconds of the wall
clock and of the processor, over all threads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from everywhere_rome import FILES, memory, read
from given import add_files, settle
from scipy.sparse.csgraph import connected_components

import optmech as om

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "roads.jsonl"
FIGURE = HERE.parent / "docs" / "figures" / "roads-beside.png"
SEED, CENTRE = 5, (12.49, 41.9)
SCALE = np.array([111.32 * math.cos(math.radians(CENTRE[1])), 110.57])


def around(data: Path, count: int) -> Any:
    """The network of the largest connected part of the least square around the middle that has so
    many crossings."""
    nodes, edges = read(data / FILES[0]), read(data / FILES[1])
    a, b, metres = edges[:, 0].astype(int), edges[:, 1].astype(int), edges[:, 2]
    far = np.abs((nodes[:, 1:3] - CENTRE) * SCALE).max(axis=1)

    def part(half: float) -> np.ndarray:
        some = far < half
        kept = some[a] & some[b]
        graph = sp.csr_array((np.ones(kept.sum()), (a[kept], b[kept])), shape=(len(far),) * 2)
        which = connected_components(graph, directed=False)[1]
        return (which == np.bincount(which[some]).argmax()) & some

    low, high = 0.0, float(far.max()) * 1.01
    while high - low > 1e-4 and count < len(far):
        middle = (low + high) / 2
        low, high = (middle, high) if part(middle).sum() < count else (low, middle)
    some = part(high)
    here, kept = np.flatnonzero(some), some[a] & some[b] & (a != b) & (metres > 0)
    places = {"node": here, "longitude": nodes[here, 1], "latitude": nodes[here, 2]}
    between = {"source": a[kept], "target": b[kept], "metres": metres[kept]}
    return om.Mesh.roads((places, between), metres=True, largest=True)


def reports(roads: Any, count: int) -> om.Domain:
    """Crossings drawn at random."""
    crossings = sorted({roads.labels[end] for road in roads.ways for end in (road[0], road[-1])})
    drawn = np.random.default_rng(SEED).choice(len(crossings), count, replace=False)
    return om.Domain([crossings[k] for k in sorted(drawn.tolist())])


def rome(args: argparse.Namespace) -> dict[str, Any]:
    """One network, solved and saved."""
    roads = around(args.data, args.size)
    promise = om.MetricPrivacy(args.epsilon, everywhere=roads)
    prior, some = roads.prior("crossings"), reports(roads, args.reports)
    problem = om.Problem(prior, roads.distance, some, constraints=[promise])
    wall, processor = time.perf_counter(), time.process_time()
    design = om.solve(problem, gap=args.gap, time_limit=args.limit, progress=print)
    found = {
        "vertices": len(roads), "segments": len(roads.segments), "reports": args.reports,
        "epsilon": args.epsilon, "loss": design.loss, "gap": design.gap,
        "lower_bound": design.lower_bound, "wall": round(time.perf_counter() - wall, 1),
        "processor": round(time.process_time() - processor, 1), "mib": memory(),
        "load": os.getloadavg()[0],
    }  # fmt: skip
    if args.out:
        design.save(args.out)
        found["megabytes"] = round(Path(args.out).stat().st_size / 1e6, 1)
    return found


def snapped(points: np.ndarray, epsilon: float, draws: int = 20_000) -> np.ndarray:
    """The planar Laplace law (Andrés et al., CCS 2013) of every crossing, to the nearest crossing:
    shares of draws, (S, S)."""
    from scipy.spatial import cKDTree

    rng, tree = np.random.default_rng(SEED), cKDTree(points)
    radius, angle = rng.gamma(2.0, 1 / epsilon, draws), rng.uniform(0, 2 * math.pi, draws)
    moved = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    out = np.zeros((len(points),) * 2)
    for s, point in enumerate(points):
        out[s] = np.bincount(tree.query(point + moved)[1], minlength=len(points)) / draws
    return out


def beside(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Road loss of four mechanisms, all of which keep ε per km along the roads; the last two keep
    it for straight lines, too, and the exponential one is that of the reports at every point."""
    roads = around(args.data, 435)
    prior, some = roads.prior("crossings"), reports(roads, 40)
    points = (roads.vertices - CENTRE) * SCALE
    ways = roads.distance(roads.domain, roads.domain)
    loss, weights = roads.distance(roads.domain, some), prior.weights
    found, kept = [], {}
    for epsilon in args.epsilons:
        promise = om.MetricPrivacy(epsilon, everywhere=roads)
        own = om.solve(om.Problem(prior, roads.distance, some, constraints=[promise]), gap=1e-3)
        exponential = np.exp(-epsilon / 2 * loss)
        exponential /= exponential.sum(axis=1, keepdims=True)
        straight = om.distances.matrix(np.hypot(*(points[:, None] - points).transpose(2, 0, 1)))
        line = om.solve(
            om.Problem(prior, loss, some, constraints=[om.MetricPrivacy(epsilon, straight)]),
            gap=1e-3,
        )
        laplace = snapped(points, epsilon)
        found.append({
            "epsilon": epsilon, "bound": own.lower_bound, "roads": own.loss,
            "straight": line.loss,
            "exponential": float(weights @ (exponential * loss).sum(axis=1)),
            "laplace": float(weights @ (laplace * ways).sum(axis=1)),
        })  # fmt: skip
        kept[epsilon] = own.matrix, line.matrix, exponential, laplace
        print(json.dumps(found[-1]), flush=True)
    if 2 in kept:
        drawn(roads, points, [int(roads.domain.index(label)) for label in some.labels], kept[2])
    return found


def drawn(roads: Any, points: np.ndarray, places: list[int], matrices: Any) -> None:
    """Where reports of one crossing go at ε = 2 per km, by the four mechanisms."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    centre = int(np.hypot(*(points - points.mean(axis=0)).T).argmin())
    names = "along roads, optimal", "straight lines, optimal", "exponential", "planar Laplace"
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
    for axis, name, matrix in zip(axes, names, matrices, strict=True):
        for a, b in roads.segments:
            axis.plot(*points[[a, b]].T, color="0.8", linewidth=0.6, zorder=1)
        at = points if matrix.shape[1] == len(points) else points[places]
        axis.scatter(*at.T, s=900 * matrix[centre], color="tab:blue", alpha=0.6, zorder=2)
        axis.plot(*points[centre], "r+", markersize=10, zorder=3)
        axis.set(title=name, aspect="equal", xticks=[], yticks=[])
    figure.savefig(FIGURE, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("rome", "beside"))
    parser.add_argument("size", type=int, nargs="?", default=5_000)
    parser.add_argument("--gap", type=float, default=1e-2)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 5.0])
    parser.add_argument("--reports", type=int, default=100)
    parser.add_argument("--limit", type=float, default=1_200.0, help="seconds of the solve")
    parser.add_argument("--out", help="where to save the design")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    settle(args, *FILES)
    if args.what == "beside":
        beside(args)
        return
    found = rome(args)
    print(json.dumps(found))
    args.results.parent.mkdir(exist_ok=True)
    with args.results.open("a") as stream:
        stream.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
