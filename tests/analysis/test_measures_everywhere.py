"""What a mechanism on cells promises between its points."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optmech as om
from optmech import measures

TWO = om.Mechanism(om.Grid(1, 2), om.Domain(["a", "b"]), [[0.6, 0.4], [0.4, 0.6]])


def test_two_cells_by_hand():
    found = measures.everywhere(TWO, pairs=200_000, seed=1)
    assert found.epsilon == pytest.approx(math.log(1.5), rel=1e-14)
    assert (found.slack, found.edge) == (1.0, ((0, 0), (0, 1)))
    assert found.step == pytest.approx(math.log(1.5), rel=1e-14)
    # two fixes in different cells and less than 1 apart: half of ∫ t (2√(1−t²) − (1−t²)) dt = 5/12
    assert found.interval[0] <= 5 / 24 <= found.interval[1]
    assert found.violated == pytest.approx(5 / 24, abs=0.004)
    assert found.interval[1] - found.interval[0] < 0.006


def test_the_rate_between_fixes_grows_without_bound():
    found = measures.everywhere(TWO, pairs=10)
    for apart in (1e-6, 0.01, 0.5, 2.0):
        assert found.epsilon_between(apart) == pytest.approx(math.log(1.5) / apart, rel=1e-12)
    # no two fixes are farther apart than √5
    assert found.epsilon_between(2.3) == 0.0


def test_a_larger_epsilon_is_violated_less():
    rates = [measures.everywhere(TWO, epsilon=e, pairs=20_000).violated for e in (0.2, 0.4, 4.0)]
    assert rates[0] > rates[1] > rates[2] > 0


def test_fixes_within_a_distance_are():
    """Within 0.1 of each other, two fixes in different cells always violate."""
    found = measures.everywhere(TWO, pairs=100_000, within=0.1, seed=2)
    rng = np.random.default_rng(9)
    x = rng.random((400_000, 2)) * [2, 1]
    y = x + rng.uniform(-0.1, 0.1, x.shape)
    held = (np.hypot(*(x - y).T) <= 0.1) & (y >= 0).all(axis=1) & (y <= [2, 1]).all(axis=1)
    # the same law, up to how fixes at the border are weighted
    share = ((x[:, 0] < 1) != (y[:, 0] < 1))[held].mean()
    assert found.violated == pytest.approx(share, abs=0.004)
    wide = measures.everywhere(TWO, pairs=20_000, within=50, seed=3)
    assert wide.violated == pytest.approx(5 / 24, abs=0.015)


def test_slack_is_what_the_definition_needs():
    """P(x) <= e^{ε(d + slack)} P(y) for random fixes of a random mechanism, tight somewhere."""
    rng = np.random.default_rng(4)
    grid = om.Grid(3, 4, cell=(1.0, 0.5))
    matrix = rng.dirichlet([3.0] * 5, 12)
    m = om.Mechanism(grid, om.Domain(range(5)), matrix)
    found = measures.everywhere(m, pairs=10)
    assert found.slack == pytest.approx(math.hypot(1.0, 0.5), rel=1e-12)
    x, y = rng.random((2, 50_000, 2)) * [4.0, 1.5]
    i, j = grid.locate(x), grid.locate(y)
    logs = np.abs(np.log(matrix[i] / matrix[j])).max(axis=1)
    assert (logs <= found.epsilon * (np.hypot(*(x - y).T) + found.slack) + 1e-12).all()
    steps = {
        (a, b): np.abs(np.log(matrix[a] / matrix[b])).max()
        for a in range(12) for b in range(12)
        if a != b and abs(a // 4 - b // 4) <= 1 and abs(a % 4 - b % 4) <= 1
    }  # fmt: skip
    assert found.step == pytest.approx(max(steps.values()), rel=1e-12)
    for apart in (0.2, 0.7, 1.6):
        gaps = np.hypot(*(x - y).T)
        held = gaps >= apart
        assert (logs[held] / gaps[held]).max() <= found.epsilon_between(apart)


def test_a_constant_mechanism_violates_nothing():
    m = om.Mechanism(om.Grid(2, 2), om.Domain("ab"), np.full((4, 2), 0.5))
    found = measures.everywhere(m, pairs=1000)
    assert (found.epsilon, found.step, found.violated, found.interval[0]) == (0, 0, 0, 0)
    # Clopper and Pearson with no hits: 1 − (α/2)^{1/n}
    assert found.interval[1] == pytest.approx(1 - 0.005 ** (1 / 1000), rel=1e-9)


def test_a_seed_repeats():
    first, second = (measures.everywhere(TWO, pairs=500, seed=7).violated for _ in range(2))
    assert first == second


def test_points_without_cells_are_refused():
    m = om.Mechanism(om.Domain.range(3), om.Domain("ab"), np.full((3, 2), 0.5))
    with pytest.raises(om.ProblemError, match="no cells"):
        measures.everywhere(m)


def test_a_mechanism_for_every_point_takes_no_fix_to_a_cell():
    """Its ε between any two points is that of its promise, not that of a table with a row a cell:
    the largest ‖∇p_o‖ / p_o over the region, here from points and from the coefficients."""
    km = om.distances.euclidean()
    cells = om.Grid(2, 2, cell=1.0)
    mesh = om.Mesh.grid((0, 0, 2, 2), 1.0)
    promise = om.MetricPrivacy("ln 2", km, everywhere=mesh)
    prior = om.Prior.from_counts(cells, [3, 1, 1, 2])
    design = om.solve(om.Problem(prior, km, constraints=[promise]), gap=1e-3)
    for given in (design, design.mechanism):
        with pytest.raises(om.ProblemError, match="every point of its region"):
            measures.everywhere(given)
    kept = promise.measured(design.mechanism, design.problem.space)
    assert kept is not None
    assert kept.promised == pytest.approx(math.log(2), rel=1e-15)
    assert kept.measured <= kept.promised
    points = np.random.default_rng(5).uniform(0, 2, (200, 2))
    logs = np.log(design.mechanism.at(points))
    apart = np.hypot(*(points[:, None] - points).transpose(2, 0, 1)) + np.eye(200)
    reached = float((np.abs(logs[:, None] - logs).max(axis=2) / apart).max())
    assert 0.9 * kept.measured < reached <= kept.measured * (1 + 1e-9)
    other = om.MetricPrivacy("ln 2", km, everywhere=om.Mesh.grid((0, 0, 2, 2), 2.0))
    assert other.measured(design.mechanism, design.problem.space) is None
    assert promise.measured(om.Mechanism(cells, cells, np.eye(4)), design.problem.space) is None
