"""The optimal mechanism under distribution privacy beats every known one at equal privacy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import optmech as om
from optmech import mechanisms

GRID = om.Grid(4, 5)
EUCLIDEAN = om.distances.euclidean()
X, Y = GRID.points.T
LAM0 = np.exp(-np.hypot(X - 1, Y - 1))
LAM1 = np.exp(-np.hypot(X - 3.5, Y - 2.5) / 1.5)
LAM0, LAM1 = LAM0 / LAM0.sum(), LAM1 / LAM1.sum()
PRIOR = om.Prior(GRID, (LAM0 + LAM1) / 2)

KNOWN: dict[str, Callable[[], om.Mechanism]] = {
    "randomized response": lambda: mechanisms.randomized_response(GRID, 3.0),
    "planar Laplace": lambda: mechanisms.planar_laplace(GRID, 1.0),
    "planar Gaussian": lambda: mechanisms.planar_gaussian(GRID, 1.2),
    "exponential": lambda: mechanisms.exponential(GRID, 2.0),
    "restricted Laplace": lambda: mechanisms.restricted_laplace(GRID, 0.5, 2.0),
}


def optimum(constraint: object, *others: object) -> om.Design:
    problem = om.Problem(prior=PRIOR, loss=EUCLIDEAN, constraints=[constraint, *others])
    return om.solve(problem)


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("name", KNOWN)
def test_no_known_mechanism_costs_less(name: str, delta: float) -> None:
    known = KNOWN[name]()
    epsilon = om.measures.distribution_epsilon(known, LAM0, LAM1, delta)
    design = optimum(om.DistributionPrivacy(epsilon, [(LAM0, LAM1)], delta))
    assert design.verified
    assert design.status == "optimal"
    spent = om.measures.distribution_delta(design.mechanism, LAM0, LAM1, epsilon)
    assert spent <= delta + 1e-12
    assert design.loss <= om.measures.expected_loss(known, PRIOR, EUCLIDEAN) + 1e-9


def test_no_loss_is_the_price_of_privacy_already_there() -> None:
    there = om.measures.distribution_epsilon(
        om.Mechanism(GRID, GRID, np.eye(len(GRID))), LAM0, LAM1
    )
    design = optimum(om.DistributionPrivacy(there + 1e-9, [(LAM0, LAM1)]))
    assert design.loss == pytest.approx(0, abs=1e-9)


def test_little_epsilon_costs_half_the_way_between() -> None:
    """λ0P and λ1P nearly agree, so that λ0 and λ1 have moved W_1(λ0, λ1) together, less what
    e^ε - 1 of the mass can save."""
    d = EUCLIDEAN(GRID, GRID)
    apart = om.transport.wasserstein(LAM0, LAM1, d).value
    for epsilon in (0.1, 0.01):
        design = optimum(om.DistributionPrivacy(epsilon, [(LAM0, LAM1)]))
        assert design.loss >= (apart - np.expm1(epsilon) * d.max()) / 2


def test_with_metric_privacy_and_distortion_and_several_attributes() -> None:
    third = np.ones(20) / 20
    pairs = [(LAM0, LAM1), (LAM1, third)]
    alone = optimum(om.DistributionPrivacy(0.4, pairs))
    metric = optimum(om.DistributionPrivacy(0.4, pairs), om.MetricPrivacy(2.0, EUCLIDEAN))
    both = optimum(
        om.DistributionPrivacy(0.4, pairs),
        om.MetricPrivacy(2.0, EUCLIDEAN),
        om.DistortionPrivacy(0.9, EUCLIDEAN),
    )
    assert alone.loss < metric.loss <= both.loss + 1e-9
    for design in (alone, metric, both):
        assert design.verified
        for pair in pairs:
            assert om.measures.distribution_epsilon(design.mechanism, *pair) <= 0.4 + 1e-12
    assert om.measures.epsilon(metric.mechanism, EUCLIDEAN) <= 2.0 + 1e-12
    assert om.measures.distortion(both.mechanism, PRIOR, EUCLIDEAN) >= 0.9 - 1e-12


def test_tupling_at_equal_privacy_shows_both_losses() -> None:
    """Tupling is charged for the nearest of its points only; all of them are farther than the
    optimal single report at the same (ε, δ)."""
    base = mechanisms.restricted_laplace(GRID, 2.0, 2.0)
    made = mechanisms.tupling(base, 5)
    epsilon = made.epsilon(LAM0, LAM1, 0.01).upper
    design = optimum(om.DistributionPrivacy(epsilon, [(LAM0, LAM1)], 0.01))
    nearest, everything = (
        made.expected_loss(PRIOR, EUCLIDEAN), made.all_points_loss(PRIOR, EUCLIDEAN)
    )  # fmt: skip
    assert nearest < everything
    assert design.loss < everything


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("epsilon", [1.1e-8, 1e-7, 1e-6, 1e-5])
def test_a_small_epsilon_is_not_worse_than_none(epsilon: float, delta: float) -> None:
    rng = np.random.default_rng(12)
    for _ in range(3):
        n = int(rng.integers(3, 7))
        loss = rng.uniform(0, 1, (n, n))
        np.fill_diagonal(loss, 0)
        pairs = [tuple(rng.dirichlet(np.full(n, 0.6), 2)) for _ in range(int(rng.integers(1, 3)))]
        prior = om.Prior(om.Domain.range(n), rng.dirichlet(np.ones(n)))

        losses = []
        for ε in (epsilon, 0):
            kept = om.DistributionPrivacy(ε, pairs, delta=delta)
            losses.append(om.solve(om.Problem(prior, loss, constraints=[kept])).loss)
        # what is asked for, and no more
        assert losses[0] <= losses[1] * (1 + 3e-6)
