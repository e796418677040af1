"""Designs for statistics against all extreme columns of small metrics: the optimum over them lies
in the bracket of the file, which the check and the audit both pass."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cvxpy as cp
import networkx as nx
import numpy as np
from optmech_audit.designs import judge_design
from optmech_audit.document import read
from scipy.optimize import linprog

import optmech as om
from optmech.base.arrays import Floats

GAP = 1e-2
FEW = 400
"""Rays that are one program."""
LARGE = 16
"""Secrets of a large instance."""
PEOPLE, SURVEYS, SIGMAS = 1_000, 20_000, 6.0


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


def path_rays(logs: Floats) -> Floats:
    """The same of a path in its order: up or down at every step."""
    n = len(logs)
    signs = np.array(list(itertools.product((True, False), repeat=n - 1)))
    up, down = np.diagonal(logs[1:, :-1]), -np.diagonal(logs[:-1, 1:])
    levels = np.cumsum(np.where(signs, up, down), axis=1)
    return np.asarray(np.exp(np.hstack([np.zeros((len(signs), 1)), levels])))


def level_rays(n: int, epsilon: float) -> Floats:
    """The same where one limit holds for all pairs: two values."""
    bits = list(itertools.product((0, 1), repeat=n))[1:]
    return np.exp(epsilon * np.array(bits, dtype=float))


def weights_of(columns: Floats, gram: Floats, counts: Floats | None, most: float) -> Floats:
    """About the best weights of columns, by a general solver."""
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    n = columns.shape[1]
    squares = (columns[:, :, None] * columns[:, None]).reshape(len(columns), -1)
    x = cp.Variable(len(columns), nonneg=True)
    information = cp.reshape(squares.T @ x, (n, n), order="C")
    limits = [columns.T @ x == 1]
    if counts is not None:
        limits.append(counts @ x <= most)
    goal = cp.matrix_frac(root[:, values > 1e-12 * values.max()], information)
    program = cp.Problem(cp.Minimize(goal), limits)
    program.solve(solver=cp.CLARABEL)
    return np.maximum(x.value, 0.0)


def least(
    rays: Floats, prior: Floats, gram: Floats, counts: Floats | None = None, most: float = 0.0
) -> tuple[float, float] | None:
    """Bounds of the least tr(S X⁻¹) over weights of rays, whose ``counts`` are at most ``most`` in
    all: the value of weights, and what prices prove of every ray. Of many rays those that are worth
    most join a program. None where no weights will do, or hardly any."""
    scale = rays @ prior
    rays = rays / scale[:, None]
    m, n = rays.shape
    limit: dict[str, Floats] = {}
    if counts is not None:
        counts = counts / scale
        limit = {"b_ub": np.array([most])}
        begun = linprog(counts, A_eq=rays.T, b_eq=np.ones(n))
        if begun.x is None or begun.fun > most * (1 - 1e-4):
            return None
    used = np.arange(m)
    if m > FEW and counts is None:
        given = np.vstack([np.random.default_rng(0).normal(size=(20 * n, n)), np.eye(n)])
        used = np.unique((rays @ np.vstack([given, -np.eye(n)]).T).argmax(axis=0))
    low, high = -np.inf, np.inf
    for _ in range(40):
        own = rays[used]
        try:
            x = weights_of(own, gram, None if counts is None else counts[used], most)
        except cp.SolverError:
            return (low, high) if np.isfinite(low) else None
        inverse = np.linalg.inv((own.T * x) @ own)
        curve = inverse @ gram @ inverse
        high = min(high, float(np.sum(inverse * gram)))
        gain = ((rays @ curve) * rays).sum(axis=1)
        if counts is not None:
            limit["A_ub"] = counts[None, used]
        found = linprog(-gain[used], A_eq=own.T, b_eq=np.ones(n), **limit)
        prices = -found.eqlin.marginals
        charge = -float(found.ineqlin.marginals[0]) if counts is not None else 0.0
        worth = gain - rays @ prices - (0.0 if counts is None else charge * counts)
        proved = 2 * float(np.sum(inverse * gram)) - prices.sum() - charge * most
        low = max(low, proved - max(float(worth.max()), 0.0))
        if high - low < 1e-4 * high:
            break
        added = np.argsort(-worth)[: 10 * n]
        used = np.union1d(used[x > 1e-7 * x.max()], added[worth[added] > 0])
    return low, high


def instance(rng: np.random.Generator) -> tuple[om.Problem, Floats]:
    """A path, a tree, a cycle, points of the plane, cells, or all pairs; any prior and statistic;
    sometimes with a bound on the loss. Beside it all extreme rays. Of paths and of all pairs one in
    ten is large."""
    n = int(rng.integers(2, 6))
    most = LARGE if rng.random() < 0.1 else 9
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(2.5))))
    kind = rng.integers(6)
    loss: object = om.distances.hamming()
    if kind == 0:
        n = int(rng.integers(2 if most < LARGE else LARGE - 4, most + 1))
        promise: object = om.DifferentialPrivacy(epsilon)
        rays = level_rays(n, epsilon)
    else:
        if kind == 1:
            tree = nx.random_labeled_tree(n, seed=int(rng.integers(2**31)))
            for edge in tree.edges:
                tree.edges[edge]["weight"] = float(rng.uniform(0.3, 2))
            table = np.asarray(nx.floyd_warshall_numpy(tree))
        elif kind == 2:
            table = np.asarray(nx.floyd_warshall_numpy(nx.cycle_graph(n)))
        elif kind == 3:
            n = int(rng.integers(2 if most < LARGE else LARGE - 4, most + 1))
            places = np.cumsum(rng.uniform(0.2, 2, n))
            table = np.abs(places[:, None] - places)
        elif kind == 4 and rng.random() < 0.3:
            n = 6
            places = np.array(list(itertools.product(range(2), range(3))), dtype=float)
            table = np.linalg.norm(places[:, None] - places, axis=2)
        else:
            places = rng.uniform(0, 2, (n, 2))
            table = np.linalg.norm(places[:, None] - places, axis=2)
        distance = om.distances.matrix(table)
        promise, loss = om.MetricPrivacy(epsilon, distance), distance
        rays = path_rays(epsilon * table) if kind == 3 else rays_of(epsilon * table)
    statistic: object = ["histogram", "cdf", "ranges"][int(rng.integers(3))]
    if rng.random() < 0.4:
        statistic = rng.normal(size=(int(rng.integers(1, 5)), n))
    prior = om.Prior(
        om.Domain.range(n), rng.dirichlet(np.full(n, float(rng.choice([0.5, 3.0])))) + 1e-3
    )
    goal = om.MinimizeVariance(statistic)  # type: ignore[arg-type]
    constraints = [promise]
    if n <= 6 and rng.random() < 0.3:
        single = om.solve(om.Problem(prior, loss, constraints=constraints))  # type: ignore[arg-type]
        blind = (prior.weights @ single.problem.loss_matrix).min()
        share = float(rng.uniform(0.02, 0.6))
        constraints.append(om.LossBound(single.loss + share * (blind - single.loss)))
    return om.Problem(prior, loss, objective=goal, constraints=constraints), rays  # type: ignore[arg-type]


def simulated(design: om.Design, rng: np.random.Generator) -> Iterator[str]:
    """What ``SURVEYS`` surveys of people drawn from the prior say of bias and variance."""
    prior, count = design.problem.prior.weights, len(design.problem.observables)
    # the estimate is linear in the counts
    weights = np.array([design.estimate(np.eye(count)[o]).values for o in range(count)]).T
    counts = rng.multinomial(PEOPLE, prior @ design.mechanism.matrix, size=SURVEYS)
    values = counts / PEOPLE @ weights.T
    survey = design.problem.statement.survey
    assert survey is not None
    off = values - survey.statistic @ prior
    error = off.std(axis=0) / np.sqrt(SURVEYS)
    if (np.abs(off.mean(axis=0)) > SIGMAS * error + 1e-9).any():
        yield "the estimates of simulated surveys are biased"
    squares = PEOPLE * (off**2).sum(axis=1)
    away = abs(float(squares.mean()) - design.variance)
    if away > SIGMAS * float(squares.std()) / np.sqrt(SURVEYS) + 1e-9:
        yield f"simulated surveys vary by {squares.mean()}, and {design.variance} is stated"


def judge(rng: np.random.Generator) -> Iterator[str]:
    problem, rays = instance(rng)
    survey = problem.statement.survey
    assert survey is not None
    prior = problem.prior.weights
    gram = survey.statistic.T @ survey.statistic
    limits = [c for c in problem.constraints if isinstance(c, om.LossBound)]
    counts, most = None, 0.0
    if limits:
        # a column with every label
        n = len(prior)
        rays = np.repeat(rays, n, axis=0)
        losses = (problem.loss_matrix * prior[:, None]).T[np.tile(np.arange(n), len(rays) // n)]
        counts, most = (losses * rays).sum(axis=1), float(limits[0].maximum)
    found = least(rays, prior, gram, counts, most)
    if found is None:
        return
    design = om.solve(problem, gap=GAP)
    low, high = found
    spread = float(prior @ gram @ prior)
    if design.variance_bound > (high - spread) * (1 + 1e-6) + 1e-9:
        yield f"the bound {design.variance_bound} is above the optimum {high - spread}"
    if design.variance < (low - spread) * (1 - 1e-6) - 1e-9:
        yield f"the variance {design.variance} is below the optimum {low - spread}"
    if design.variance_bound <= 0:
        yield "nothing was proved"
    yield from simulated(design, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "design.json"
        design.save(path)
        if not (report := om.check(path)).passed:
            yield f"the check refuses: {report.faults}"
        judge_design(read(str(path)))
