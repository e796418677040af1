"""Bounds of metric privacy by elements of two places: against HiGHS, and shortest paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path

import optmech as om
from optmech.certificate import Multipliers, lower_bound
from optmech.engines import pairs
from optmech.statement import Statement


def problem(seed: int, count: int, epsilon: float) -> tuple[om.Problem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(count, 2)) * [2.0, 1.0]
    apart = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    # as between cells: both ways may differ, and far pairs are as paths over near ones say
    edges = epsilon * apart * rng.uniform(0.8, 1.25, apart.shape)
    near = np.argsort(apart, axis=1)[:, 8:]
    np.put_along_axis(edges, near, np.inf, axis=1)
    back = np.where(np.isfinite(edges.T), 2 * epsilon * apart, np.inf)
    ratio = shortest_path(np.minimum(edges, back))
    prior = om.Prior(om.Domain(range(count)), rng.dirichlet([0.5] * count))
    found = om.Problem(
        prior,
        apart[:, :4],
        om.Domain(range(4)),
        constraints=[om.MetricPrivacy(1, om.distances.matrix(ratio))],
    )
    return found, ratio, places


def bound_of(statement: Statement, found: pairs.PairMultipliers) -> float:
    return lower_bound(statement, Multipliers((found,))).value


@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.3), (1, 1.0), (2, 3.0)])
def test_bounds_are_near_the_optimum(seed: int, epsilon: float) -> None:
    stated, ratio, places = problem(seed, 60, epsilon)
    best = om.solve(stated, profile="highs")
    found = pairs.solve(ratio, places, stated.statement.cost, 1e-4)
    value = bound_of(stated.statement, found)
    assert (1 - 3e-4) * best.loss <= value <= best.loss
    # a search that is stopped at once bounds it as well, if not as well
    early = pairs.solve(ratio, places, stated.statement.cost, 1e-4, lambda _: True)
    assert bound_of(stated.statement, early) <= value


def test_near_pairs_imply_the_others() -> None:
    _, ratio, _ = problem(3, 80, 1.0)
    kept = pairs.near_pairs(ratio)
    assert len(kept) < 80 * 79 / 4
    assert (kept[:, 0] < kept[:, 1]).all()
    edges = np.full(ratio.shape, np.inf)
    for i, j in kept.tolist():
        edges[i, j], edges[j, i] = ratio[i, j], ratio[j, i]
    paths = shortest_path(edges)
    assert np.abs(paths - ratio).max() < 1e-7
