"""Repair: whatever goes in, what comes out passes the check, and little is lost."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.problems import KINDS, Make, blind, prior
from hypothesis import given
from hypothesis import strategies as st

import optmech as om
from optmech.certificate import check_matrix
from optmech.certificate.objective import objective_value
from optmech.repair import Cone, repair

E, H = om.distances.euclidean(), om.distances.hamming()


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3, 1.0])
def test_noise_is_repaired_or_refused(make: Make, noise: float) -> None:
    rng = np.random.default_rng(3)
    problem = make(np.random.default_rng(31))
    design = om.solve(problem)
    if design.status == "infeasible":
        return
    statement = problem.statement
    optimal = design.mechanism.matrix
    disturbed = optimal + noise * rng.normal(size=optimal.shape)
    fixed = repair(statement, Cone.of(statement), disturbed, (optimal,))
    assert fixed is not None
    assert all(check.passed for check in check_matrix(statement, fixed))
    if noise <= 1e-9:
        assert objective_value(statement, fixed) == pytest.approx(
            objective_value(statement, optimal), rel=1e-3, abs=1e-6
        )


@given(st.integers(0, 2**32 - 1), st.floats(0.001, 200))
def test_any_matrix_becomes_private(seed: int, epsilon: float) -> None:
    """Random garbage, zeros included, at ε·diameter from 0.003 to 700."""
    rng = np.random.default_rng(seed)
    p = prior(rng, om.Grid(3, 4))
    problem = om.Problem(p, H, constraints=[om.MetricPrivacy(epsilon, E)])
    garbage = rng.normal(size=(12, 12)) * (rng.random((12, 12)) < 0.5)
    fixed = repair(problem.statement, Cone.of(problem.statement), garbage)
    assert fixed is not None
    assert all(check.passed for check in check_matrix(problem.statement, fixed))
    d = E(p.domain, p.domain)
    np.fill_diagonal(d, np.inf)
    for column in fixed.T[fixed.max(axis=0) > 0]:
        assert column.min() > 0
        tight = (np.log(column)[:, None] - np.log(column)[None, :]) / d
        assert tight.max() <= epsilon * (1 + 1e-12)


def test_closure_is_the_least_majorant() -> None:
    """Against the definition: v_j = max_i e^{-ε d(i,j)} v_i, for a metric."""
    rng = np.random.default_rng(0)
    p = prior(rng, om.Grid(2, 4))
    v = rng.random((8, 3))
    statement = om.Problem(
        p, rng.random((8, 3)), om.Domain("xyz"), constraints=[om.MetricPrivacy(0.9, E)]
    ).statement
    expected = (np.exp(-0.9 * E(p.domain, p.domain))[:, :, None] * v[:, None, :]).max(axis=0)
    assert Cone.of(statement).closure(v) == pytest.approx(expected, rel=1e-12)


def test_mixing_reaches_a_distortion_equal_to_its_maximum() -> None:
    rng = np.random.default_rng(1)
    p = prior(rng, om.Grid(3, 3))
    problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(blind(p), E)])
    fixed = repair(problem.statement, Cone.of(problem.statement), np.eye(9))
    assert fixed is not None
    assert all(check.passed for check in check_matrix(problem.statement, fixed))


def test_components_are_completed_one_by_one() -> None:
    """Two unconnected pairs with disjoint supports: no column serves all four secrets."""
    mask = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], dtype=bool)
    problem = om.Problem(
        om.Prior.uniform(om.Domain.range(4)),
        H,
        constraints=[om.Support(mask), om.DifferentialPrivacy(1.0, [(0, 1), (2, 3)])],
    )
    fixed = repair(problem.statement, Cone.of(problem.statement), np.eye(4))
    assert fixed is not None
    assert fixed[~mask].max() == 0
    assert all(check.passed for check in check_matrix(problem.statement, fixed))
