"""Secrets without prior weight: served as well as the others' rows allow, at no cost to these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.pipeline.session import Session

E, H = om.distances.euclidean(), om.distances.hamming()


def without(problem: om.Problem, monkeypatch: pytest.MonkeyPatch) -> om.Design:
    """The design before rows without weight are looked at."""
    with monkeypatch.context() as patch:
        patch.setattr(Session, "serve_unseen", lambda self: None)
        return om.solve(problem)


def test_who_is_not_constrained_may_tell_the_truth(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two groups that live in three of nine cells; the others are nobody's secret."""
    grid = om.Grid(3, 3)
    first, second = np.zeros(9), np.zeros(9)
    first[[0, 1]] = [0.7, 0.3]
    second[[1, 2]] = [0.4, 0.6]
    private = om.DistributionPrivacy(0.5, [(first, second)])
    problem = om.Problem(om.Prior(grid, first + second), E, constraints=[private])
    before, design = without(problem, monkeypatch), om.solve(problem)
    np.testing.assert_array_equal(design.matrix[3:], np.eye(9)[3:])
    np.testing.assert_array_equal(design.matrix[:3], before.matrix[:3])
    assert (design.loss, design.lower_bound) == (before.loss, before.lower_bound)
    assert "6 of 9 secrets have no prior weight" in design.notes[-1]
    assert "theirs is 0 on average and 0 at worst" in design.notes[-1]
    design.save(tmp_path / "design.json")
    assert om.check(tmp_path / "design.json").passed


def least(problem: om.Problem, matrix: np.ndarray, rows: list[int]) -> float:
    """The least total loss of ``rows`` under metric privacy, the other rows being fixed."""
    (private,) = problem.constraints
    ratio = np.exp(float(private.epsilon) * private.distance(problem.secrets, problem.secrets))
    n, m = matrix.shape
    place = {s: k * m for k, s in enumerate(rows)}
    body, limit = [], []
    for i in range(n):
        for j in range(n):
            for o in range(m):
                if i == j or (i not in place and j not in place):
                    continue
                row, right = np.zeros(len(rows) * m), 0.0
                if i in place:
                    row[place[i] + o] = 1.0
                else:
                    right -= matrix[i, o]
                if j in place:
                    row[place[j] + o] = -ratio[i, j]
                else:
                    right += ratio[i, j] * matrix[j, o]
                body.append(row)
                limit.append(right)
    sums = np.kron(np.eye(len(rows)), np.ones(m))
    cost = problem.loss_matrix[rows].ravel()
    found = linprog(cost, np.array(body), limit, sums, np.ones(len(rows)), method="highs-ds")
    assert found.status == 0
    return float(found.fun)


def few_seen(seed: int, count: int) -> tuple[om.Problem, list[int]]:
    """Seven places, ``count`` of them without weight."""
    rng = np.random.default_rng(seed)
    domain = om.Domain(range(7), rng.uniform(0, 2, (7, 2)))
    weights = rng.dirichlet(np.ones(7))
    rows = sorted(rng.choice(7, count, replace=False).tolist())
    weights[rows] = 0.0
    private = om.MetricPrivacy(rng.uniform(0.5, 2), E)
    return om.Problem(om.Prior(domain, weights), E, constraints=[private]), rows


@pytest.mark.parametrize("seed", range(12))
def test_one_row_is_the_best_that_the_others_leave(seed: int) -> None:
    problem, rows = few_seen(seed, 1)
    design = om.solve(problem)
    (loss,) = (problem.loss_matrix * design.matrix).sum(axis=1)[rows]
    assert loss == pytest.approx(least(problem, design.matrix, rows), rel=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_several_rows_gain_and_cost_the_others_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem, rows = few_seen(seed, 3)
    before, design = without(problem, monkeypatch), om.solve(problem)
    old, new = (
        float((problem.loss_matrix * one.matrix).sum(axis=1)[rows].sum())
        for one in (before, design)
    )
    assert least(problem, design.matrix, rows) * (1 - 1e-7) <= new <= old
    assert (design.loss, design.bound, design.gap) == (before.loss, before.bound, before.gap)
    design.save(tmp_path / "design.json")
    assert om.check(tmp_path / "design.json").passed


def test_rows_that_other_constraints_see_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With δ every pair of rows takes part in a sum; the note says what they lose."""
    prior = om.Prior(om.Domain.range(3), [0.5, 0.5, 0.0])
    private = om.DifferentialPrivacy(1.0, delta=0.1)
    problem = om.Problem(prior, H, constraints=[private])
    before, design = without(problem, monkeypatch), om.solve(problem)
    np.testing.assert_array_equal(design.matrix, before.matrix)
    assert "1 of 3 secrets have no prior weight" in design.notes[-1]


def test_nothing_is_said_where_all_have_weight() -> None:
    prior = om.Prior(om.Domain.range(3), [0.5, 0.3, 0.2])
    assert om.solve(om.Problem(prior, H, constraints=[om.DifferentialPrivacy(1.0)])).notes == ()


@pytest.mark.parametrize("seed", [11, *range(36, 56)])
def test_a_row_moves_beside_entries_that_leave_it_no_room(seed: int) -> None:
    """With distances of 0 inside a window, single entries may not differ by a rounding."""
    rng = np.random.default_rng(seed)
    distance = np.where(rng.random((6, 6)) < 0.3, 0.0, rng.uniform(0, 2, (6, 6)))
    np.fill_diagonal(distance, 0.0)
    places = om.Domain(range(6), rng.integers(0, 3, (6, 2)).astype(float))
    weights = rng.dirichlet(np.ones(6))
    weights[2] = 0.0
    private = om.MetricPrivacy(4, om.distances.matrix(distance), observable_threshold=0.0)
    problem = om.Problem(om.Prior(places, weights), E, constraints=[private])
    matrix, ratio = om.solve(problem).matrix, np.exp(4 * distance)
    # p(o|i) <= e^{4 d(i,2)} p(o|2) where d(i,o) = 0, and p(o|2) <= e^{4 d(2,i)} p(o|i) likewise
    others = [0, 1, 3, 4, 5]
    window = distance == 0
    least = np.where(window, matrix / ratio[:, [2]], 0.0)[others].max(axis=0)
    most = np.where(window[2], (ratio[2][:, None] * matrix)[others].min(axis=0), 1.0)
    cost, rest = E(places, places)[2], 1 - least.sum()
    loss = float(cost @ least)
    for o in np.argsort(cost):
        share = max(min(rest, most[o] - least[o]), 0.0)
        loss, rest = loss + cost[o] * share, rest - share
    assert float(cost @ matrix[2]) == pytest.approx(loss, rel=1e-6, abs=1e-9)
