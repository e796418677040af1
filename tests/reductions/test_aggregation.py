"""Bounds from coarser problems: never above the fine optimum, and as close as was measured with an
independent program (scipy's, one for every pair of cells)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from strategies import distributions, metrics, nonnegative_matrices

import optmech as om
from optmech.reductions.aggregation import Coarse, Members, above, aggregated, partition
from optmech.transport.gains import closed


def prior_of(weights: Sequence[float] | np.ndarray) -> om.Prior:
    return om.Prior(om.Domain(range(len(weights))), np.asarray(weights) / np.sum(weights))


def coarse(
    weights: Sequence[float] | np.ndarray,
    cost: np.ndarray,
    ratio: np.ndarray,
    cells: np.ndarray,
    neighbours: int | None = None,
) -> Coarse:
    """Over cells of places with ratios in a matrix."""
    table = closed(ratio)[1]
    limits = lambda i, j: table[i, j]  # noqa: E731
    return aggregated(Members.of(prior_of(weights), cost, limits, cells), neighbours, boxes=False)


def coarse_places(
    weights: np.ndarray,
    cost: np.ndarray,
    places: np.ndarray,
    epsilon: float,
    cells: np.ndarray,
    neighbours: int,
) -> Coarse:
    """Over cells of places in the plane."""

    def limits(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return above(epsilon, places[i], places[j])

    return aggregated(Members.of(prior_of(weights), cost, limits, cells), neighbours, boxes=False)


def optimum(prior: np.ndarray, cost: np.ndarray, ratio: np.ndarray) -> float:
    """The least loss of all P with P[i,o] <= e^{r_ij} P[j,o], written down from the definition."""
    n, m = cost.shape
    rows = []
    for i in range(n):
        for j in range(n):
            if i != j and np.isfinite(ratio[i, j]):
                for o in range(m):
                    row = np.zeros((n, m))
                    row[i, o], row[j, o] = np.exp(-ratio[i, j]), -1.0
                    rows.append(row.ravel())
    whole = np.kron(np.eye(n), np.ones(m))
    limits = np.zeros(len(rows))
    solved = linprog(
        (prior[:, None] * cost).ravel(),
        np.array(rows) if rows else None,
        limits if rows else None,
        whole,
        np.ones(n),
        method="highs",
    )
    return float(solved.fun)


def coarse_optimum(coarse: Coarse) -> float:
    return optimum(coarse.prior, coarse.cost, coarse.log_ratio)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), epsilon=st.sampled_from([0.05, 0.5, 3.0]))
def test_never_above_the_fine_optimum(data: st.DataObject, epsilon: float) -> None:
    prior = data.draw(distributions(5))
    cost = data.draw(nonnegative_matrices(5, 3))
    ratio = epsilon * data.draw(metrics(5))
    cells = np.array(data.draw(st.lists(st.integers(0, 3), min_size=5, max_size=5)))
    fine = optimum(prior, cost, ratio)
    for neighbours in (None, 1):
        low = coarse_optimum(coarse(prior, cost, ratio, cells, neighbours))
        assert low <= fine + 1e-7
        # the best constant report is private on any cells
        assert low <= (prior @ cost).min() + 1e-7


@settings(max_examples=25, deadline=None)
@given(data=st.data(), epsilon=st.sampled_from([0.1, 0.7, 2.0]))
def test_places_of_the_plane(data: st.DataObject, epsilon: float) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    places, reports = rng.random((6, 2)) * 3, rng.random((3, 2)) * 3
    prior = data.draw(distributions(6))
    cost = np.hypot(*(places[:, None] - reports).T).T
    ratio = epsilon * np.hypot(*(places[:, None] - places).T)
    found = coarse_places(prior, cost, places, epsilon, partition(places, prior, 3), 2)
    assert len(found.prior) <= 3
    assert coarse_optimum(found) <= optimum(prior, cost, ratio) + 1e-7


@settings(max_examples=25)
@given(data=st.data())
def test_columns_of_the_cone_pay_what_is_said(data: st.DataObject) -> None:
    """Ratios and costs of cells against random members of the cone, from their definitions."""
    ratio = data.draw(metrics(6))
    prior = data.draw(distributions(6, zeros=False))
    cost = data.draw(nonnegative_matrices(6, 2))
    cells = np.array([0, 0, 0, 1, 1, 1])
    found = coarse(prior, cost, ratio, cells)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    for _ in range(50):
        v = (np.exp(-ratio) * rng.random(6) ** 4).max(axis=1)
        q = [(prior * v)[cells == c].sum() / prior[cells == c].sum() for c in (0, 1)]
        assert q[0] <= np.exp(found.log_ratio[0, 1]) * q[1] * (1 + 1e-12)
        for c in (0, 1):
            paid = (prior[:, None] * cost * v[:, None])[cells == c].sum(axis=0)
            assert (paid >= found.prior[c] * found.cost[c] * q[c] * (1 - 1e-12)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "alpha", "below"), [(0.2, 0.0, 1.118), (0.4, 1.0, 3.462), (0.4, 0.3, 4.334)]
)
def test_how_far_below(epsilon: float, alpha: float, below: float) -> None:
    """12 x 12 places, 2 x 2 in a cell: percentages of the fine optimum, from a program of its
    own for every pair of cells and every cost."""
    y, x = np.mgrid[0:12, 0:12]
    places = np.column_stack([x.ravel(), y.ravel()]) + 0.5
    cells = (places[:, 1] // 2 * 6 + places[:, 0] // 2).astype(int)
    rng = np.random.default_rng(5)
    prior = rng.dirichlet(np.full(144, alpha)) if alpha else np.full(144, 1 / 144)
    prior = np.maximum(prior, 1e-9)
    prior /= prior.sum()
    apart = np.hypot(*(places[:, None] - places).T)
    found = coarse(prior, apart, epsilon * apart, cells)
    low = om.solve(
        om.Problem(
            prior=om.Prior(om.Domain.range(36), found.prior),
            loss=found.cost,
            observables=om.Domain([f"o{k}" for k in range(144)]),
            constraints=[om.MetricPrivacy(1.0, om.distances.matrix(found.log_ratio))],
        ),
        gap=1e-4,
    )
    domain = om.Domain(list(range(144)), points=places)
    metric = om.distances.euclidean()
    fine = om.solve(
        om.Problem(
            prior=om.Prior(domain, prior),
            loss=metric,
            constraints=[om.MetricPrivacy(epsilon, metric)],
        ),
        gap=1e-4,
    )
    assert low.lower_bound <= fine.loss
    assert 100 * (1 - low.lower_bound / fine.loss) == pytest.approx(below, abs=0.03)


def test_cells_without_mass_are_left_out() -> None:
    ratio = np.full((4, 4), 1.0)
    found = coarse([0.5, 0.0, 0.0, 0.5], np.ones((4, 2)), ratio, np.array([7, 3, 3, 9]))
    assert found.labels.tolist() == [7, 9]
    np.testing.assert_allclose(found.prior, 0.5)
    np.testing.assert_allclose(found.cost, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.log_ratio, [[0, 1], [1, 0]], rtol=1e-12)


def test_a_coarse_problem_is_aggregated_again() -> None:
    rng = np.random.default_rng(3)
    places, prior = rng.random((16, 2)), rng.dirichlet(np.ones(16))
    cost = np.hypot(*(places[:, None] - places[:3]).T).T
    fine = partition(places, prior, 8)
    once = coarse_places(prior, cost, places, 2.0, fine, 7)
    halves = (places[:, 0] > 0.5).astype(int)
    own = np.array([np.bincount(halves[fine == c]).argmax() for c in once.labels])
    twice = coarse(once.prior, once.cost, once.log_ratio, own)
    assert coarse_optimum(twice) <= coarse_optimum(once) + 1e-7


def test_partitions_have_as_many_cells_as_asked_for() -> None:
    places = np.random.default_rng(1).random((300, 2))
    cells = partition(places, np.ones(300), 20)
    assert np.unique(cells).tolist() == list(range(20))
    assert np.bincount(partition(places, np.ones(300), 2, members=10)).max() <= 10
    # places that are one and the same are not divided
    assert len(np.unique(partition(np.zeros((5, 2)), np.ones(5), 3))) == 1


def test_cells_that_do_not_fit_are_named() -> None:
    ratio, cost = np.ones((3, 3)), np.ones((3, 2))
    for cells in ([0, 1], [0.0, 1.0, 1.0]):
        with pytest.raises(om.ProblemError, match=r"^cells"):
            coarse([1, 1, 1], cost, ratio, np.array(cells))
