"""Bounds of metric privacy by elements of two places: against HiGHS, and shortest paths."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, shortest_path

import optmech as om
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.statement import Statement
from optmech.engines import pairs


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


def parts(count: int, size: int, seed: int, wide: float) -> np.ndarray:
    """Places in so many parts, ten apart."""
    rng = np.random.default_rng(seed)
    middles = 10.0 * np.column_stack([np.arange(count) % 3, np.arange(count) // 3])
    return np.asarray(middles.repeat(size, axis=0) + wide * rng.normal(size=(count * size, 2)))


@pytest.mark.parametrize("epsilon", [1e-9, 0.05, 1.0, 40.0])
@pytest.mark.parametrize(("count", "size"), [(2, 40), (4, 30), (8, 26)])
def test_parts_far_apart_are_linked(count: int, size: int, epsilon: float) -> None:
    places = parts(count, size, count, 0.3)
    ratio = epsilon * np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    kept = pairs.near_pairs(np.minimum(ratio, 50.0))
    joined = sp.csr_array((np.ones(len(kept)), kept.T), shape=ratio.shape)
    assert connected_components(joined, directed=False)[0] == 1
    stated = om.Problem(
        om.Prior.uniform(om.Domain(range(len(places)))),
        np.hypot(*(places[:, None] - [[3, 3], [12, 0]]).transpose(2, 0, 1)),
        om.Domain(range(2)),
        constraints=[om.MetricPrivacy(1, om.distances.matrix(ratio))],
    )
    best = om.solve(stated, gap=1e-4)
    found = pairs.solve(ratio, places, stated.statement.cost, 1e-4)
    value = bound_of(stated.statement, found)
    assert (1 - 1e-2) * best.loss <= value <= best.loss


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_parts_that_nothing_limits_stay_apart(count: int) -> None:
    costs = np.random.default_rng(count).uniform(1, 2, (2 * count, 3))
    places = np.zeros((2 * count, 2))
    ratio = np.full((2 * count, 2 * count), np.inf)
    # each part's places are the same place, and have one row
    for part in (slice(count), slice(count, None)):
        ratio[part, part] = 0.0
    stated = om.Problem(
        om.Prior.uniform(om.Domain(range(2 * count))),
        costs,
        om.Domain(range(3)),
        constraints=[om.MetricPrivacy(1, om.distances.matrix(np.minimum(ratio, 1e4)))],
    )
    found = pairs.solve(ratio, places, stated.statement.cost, 1e-6)
    best = costs.reshape(2, count, 3).mean(axis=1).min(axis=1).mean()
    assert (1 - 1e-4) * best <= bound_of(stated.statement, found) <= best * (1 + 1e-12)


def test_a_single_place_has_no_pairs() -> None:
    assert not len(pairs.near_pairs(np.zeros((1, 1))))
    assert not len(pairs.solve(np.zeros((1, 1)), np.zeros((1, 2)), np.ones((1, 3)), 1e-6).value)
