"""(ε, δ) against Google's dp_accounting: privacy loss distributions bracket the true values."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import optmech as om

DISCRETISATION = 1e-4
CELLS = om.Grid(rows=3, columns=4)
KM = om.distances.euclidean()


def bracket(p: np.ndarray, q: np.ndarray) -> list[pld.PrivacyLossDistribution]:
    """An optimistic and a pessimistic privacy loss distribution of p against q."""
    logs = [{o: float(np.log(v)) for o, v in enumerate(row) if v > 0} for row in (q, p)]
    return [
        pld.from_two_probability_mass_functions(
            *logs,
            pessimistic_estimate=pessimistic,
            value_discretization_interval=DISCRETISATION,
            symmetric=True,
        )
        for pessimistic in (False, True)
    ]


def mechanisms() -> list[om.Mechanism]:
    prior = om.Prior(CELLS, np.arange(1.0, 13.0))
    designed = om.solve(
        om.Problem(prior, KM, constraints=[om.DifferentialPrivacy(1.0, delta=0.05)])
    ).mechanism
    return [
        om.mechanisms.planar_laplace(CELLS, 0.8),
        om.mechanisms.restricted_laplace(CELLS, 1.0, 2.5),
        om.mechanisms.randomized_response(CELLS, 1.0),
        designed,
    ]


@pytest.mark.parametrize("number", range(4))
def test_delta_and_epsilon_lie_in_the_bracket(number: int) -> None:
    m = mechanisms()[number]
    for i, j in ((0, 1), (0, 11), (7, 2), (5, 6)):
        curve = om.measures.hockey_stick_curve(m.matrix[i], m.matrix[j])
        low, high = bracket(m.matrix[i], m.matrix[j])
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            assert low.get_delta_for_epsilon(epsilon) <= curve.delta(epsilon) + 1e-12
            assert curve.delta(epsilon) <= high.get_delta_for_epsilon(epsilon) + 1e-12
        for delta in (0.01, 0.2):
            found = curve.epsilon(delta)
            assert low.get_epsilon_for_delta(delta) <= max(found, 0.0) + DISCRETISATION
            assert found <= high.get_epsilon_for_delta(delta) + DISCRETISATION


def test_composition_of_two_releases_adds_up_in_the_bracket() -> None:
    """The product of two mechanisms, measured directly, against composed loss distributions."""
    m = om.mechanisms.planar_laplace(CELLS, 0.8).matrix
    p, q = np.kron(m[0], m[0]), np.kron(m[5], m[5])
    low, high = (one.compose(one) for one in bracket(m[0], m[5]))
    for epsilon in (0.5, 2.0):
        exact = om.divergences.hockey_stick(p, q, epsilon)
        assert low.get_delta_for_epsilon(epsilon) <= exact + 1e-12
        assert exact <= high.get_delta_for_epsilon(epsilon) + 1e-12
