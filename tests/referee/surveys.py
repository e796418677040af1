"""Designs for statistics against all extreme columns of small metrics: the optimum over them lies
in the bracket of the file, which the check and the audit both pass."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
from optmech_audit.designs import judge_design
from optmech_audit.document import read
from scipy.optimize import linprog

import optmech as om
from optmech.base.arrays import Floats

GAP = 1e-2


def rays_of(logs: Floats) -> Floats:
    """All extreme rays of {v: v_i <= e^{r_ij} v_j}: potentials that are tight along a tree."""
    n = len(logs)
    found: dict[tuple[float, ...], Floats] = {}
    for edges in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        tree = nx.Graph(list(edges))
        if len(tree) < n or not nx.is_connected(tree):
            continue
        order = list(nx.bfs_edges(tree, 0))
        for signs in itertools.product((1, -1), repeat=n - 1):
            level = np.zeros(n)
            for (a, b), sign in zip(order, signs, strict=True):
                level[b] = level[a] + (logs[b, a] if sign > 0 else -logs[a, b])
            if (level[:, None] - level <= logs + 1e-9).all():
                found[tuple(np.round(level - level.min(), 7))] = np.exp(level - level.max())
    return np.array(list(found.values()))


def least(rays: Floats, prior: Floats, gram: Floats) -> tuple[float, float]:
    """Bounds of the least tr(S X⁻¹) over weights of rays: conditional gradients from every column's
    own linear program, whose duality gap is known."""
    rays = rays / (rays @ prior)[:, None]
    m, n = rays.shape
    begun = linprog(
        np.r_[np.zeros(m), -1.0], A_eq=np.c_[rays.T, rays.sum(axis=0)], b_eq=np.ones(n),
        bounds=[(0, None)] * (m + 1),
    )  # fmt: skip
    x = begun.x[:m] + begun.x[-1]
    low = -np.inf
    for _ in range(400):
        inverse = np.linalg.inv((rays.T * x) @ rays)
        curve = inverse @ gram @ inverse
        value = float(np.sum(inverse * gram))
        gain = ((rays @ curve) * rays).sum(axis=1)
        found = linprog(-gain, A_eq=rays.T, b_eq=np.ones(n))
        low = max(low, value - float(gain @ (found.x - x)))
        if value - low < 1e-4 * value:
            break
        steps = np.linspace(0, 1, 33)[1:-1] ** 2
        tried = [x + s * (found.x - x) for s in steps]
        values = [float(np.trace(np.linalg.solve((rays.T * t) @ rays, gram))) for t in tried]
        if min(values) >= value:
            break
        x = tried[int(np.argmin(values))]
    return low, value


def instance(rng: np.random.Generator) -> om.Problem:
    """A path, a tree, a cycle, points of the plane, or all pairs; any prior and statistic."""
    n = int(rng.integers(2, 6))
    domain = om.Domain.range(n)
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(2.5))))
    kind = rng.integers(4)
    if kind == 0:
        promise: object = om.DifferentialPrivacy(epsilon)
    else:
        if kind == 1:
            tree = nx.random_labeled_tree(n, seed=int(rng.integers(2**31)))
            for edge in tree.edges:
                tree.edges[edge]["weight"] = float(rng.uniform(0.3, 2))
            table = np.asarray(nx.floyd_warshall_numpy(tree))
        elif kind == 2:
            table = np.asarray(nx.floyd_warshall_numpy(nx.cycle_graph(n)))
        else:
            places = rng.uniform(0, 2, (n, 2))
            table = np.linalg.norm(places[:, None] - places, axis=2)
        promise = om.MetricPrivacy(epsilon, om.distances.matrix(table))
    statistic: object = ["histogram", "cdf", "ranges"][int(rng.integers(3))]
    if rng.random() < 0.4:
        statistic = rng.normal(size=(int(rng.integers(1, 5)), n))
    prior = om.Prior(domain, rng.dirichlet(np.full(n, float(rng.choice([0.5, 3.0])))) + 1e-3)
    goal = om.MinimizeVariance(statistic)  # type: ignore[arg-type]
    return om.Problem(prior, om.distances.hamming(), objective=goal, constraints=[promise])  # type: ignore[list-item]


def judge(rng: np.random.Generator) -> Iterator[str]:
    problem = instance(rng)
    design = om.solve(problem, gap=GAP)
    survey = problem.statement.survey
    assert survey is not None
    prior = problem.prior.weights
    gram = survey.statistic.T @ survey.statistic
    low, high = least(rays_of(problem.statement.log_ratio), prior, gram)
    spread = float(prior @ gram @ prior)
    if design.variance_bound > (high - spread) * (1 + 1e-9) + 1e-9:
        yield f"the bound {design.variance_bound} is above the optimum {high - spread}"
    if design.variance < (low - spread) * (1 - 1e-6) - 1e-9:
        yield f"the variance {design.variance} is below the optimum {low - spread}"
    if design.variance_bound <= 0:
        yield "nothing was proved"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.json"
        design.save(path)
        if not (report := om.check(path)).passed:
            yield f"the check refuses: {report.faults}"
        judge_design(read(str(path)))
