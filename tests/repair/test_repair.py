"""Repair: whatever goes in, what comes out passes the check, and little is lost."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from conformance.problems import KINDS, Make, blind, prior
from hypothesis import given, strategies as st

import optmech as om
from optmech.certificate import check_exact
from optmech.certificate.objective import objective_value
from optmech.exact.numerators import Numerators
from optmech.lp.inequalities import Inequalities
from optmech.repair import Cone, repair
from optmech.repair.cone import LiftedRows
from optmech.repair.fixed_rows import HeldRows
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import release

E, H = om.distances.euclidean(), om.distances.hamming()


@functools.cache
def solved(make: Make) -> om.Design:
    return om.solve(make(np.random.default_rng(31)))


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_noise_is_repaired_or_refused(make: Make, noise: float) -> None:
    rng = np.random.default_rng(3)
    design = solved(make)
    problem = design.problem
    if design.status == "infeasible":
        return
    statement, given = problem.statement, Inequalities.of(problem.statement)
    optimal = design.mechanism.matrix
    disturbed = optimal + noise * rng.normal(size=optimal.shape)
    held = HeldRows.of(given)
    if held is not None:
        # in whole numbers from the start
        found = held.near(disturbed, (optimal,))
        assert found is not None or noise > 1e-3
        if found is not None and noise <= 1e-9:
            value = objective_value(statement, found.exact.matrix)
            assert value == pytest.approx(objective_value(statement, optimal), rel=1e-3)
        return
    fixed = repair(given, Cone.of(given), disturbed, (optimal,))
    assert fixed is not None
    assert given.hold(fixed)
    assert release(given, fixed, (optimal, *constant_anchors(statement, fixed))) is not None
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
    given = Inequalities.of(problem.statement)
    fixed = repair(given, Cone.of(given), garbage)
    assert fixed is not None
    assert given.hold(fixed)
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
    assert Cone.of(Inequalities.of(statement)).closure(v) == pytest.approx(expected, rel=1e-12)


def test_mixing_reaches_a_distortion_equal_to_its_maximum() -> None:
    rng = np.random.default_rng(1)
    p = prior(rng, om.Grid(3, 3))
    problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(blind(p), E)])
    given = Inequalities.of(problem.statement)
    fixed = repair(given, Cone.of(given), np.eye(9))
    assert fixed is not None
    assert all(c.passed for c in check_exact(problem.statement, Numerators.rounded(fixed)))


def test_components_are_completed_one_by_one() -> None:
    """Two unconnected pairs with disjoint supports: no column serves all four secrets."""
    mask = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], dtype=bool)
    problem = om.Problem(
        om.Prior.uniform(om.Domain.range(4)),
        H,
        constraints=[om.Support(mask), om.DifferentialPrivacy(1.0, [(0, 1), (2, 3)])],
    )
    given = Inequalities.of(problem.statement)
    fixed = repair(given, Cone.of(given), np.eye(4))
    assert fixed is not None
    assert fixed[~mask].max() == 0
    assert all(c.passed for c in check_exact(problem.statement, Numerators.rounded(fixed)))


@given(st.integers(0, 2**32 - 1))
def test_constants_and_completion_keep_lifted_rows(seed: int) -> None:
    """Random columns, one of them dust, against (λP)(o) <= e^ε (λ'P)(o) both ways."""
    rng = np.random.default_rng(seed)
    n, epsilon = 6, float(rng.uniform(0.05, 2))
    p = prior(rng, om.Domain(range(n), rng.uniform(0, 2, (n, 2))))
    pairs = [tuple(rng.dirichlet(np.full(n, 0.3), 2)) for _ in range(2)]
    constraints = [om.MetricPrivacy(3.0, E), om.DistributionPrivacy(epsilon, pairs)]
    given = Inequalities.of(om.Problem(p, E, constraints=constraints).statement)
    cone = Cone.of(given)
    columns = cone.closure(rng.random((n, n)) * np.append(np.ones(n - 1), 1e-17))
    raised = cone.lifted.raised(columns, np.ones(n, dtype=bool))
    fixed = cone.complete(raised, rng.random((n, n)))
    assert fixed is not None
    assert fixed.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-15)
    for matrix in (raised, fixed):
        for a, b in pairs:
            left, right = a / a.sum() @ matrix, b / b.sum() @ matrix
            assert (left <= np.exp(epsilon) * right).all()
            assert (right <= np.exp(epsilon) * left).all()
    # constants are added to no column that needs none: a constant c moves a row by (e^ε - 1) c, so
    # that rounding of sums of n terms, n units at most, asks for no more than this
    rounding = n * 2.0**-53 * (1 + np.exp(epsilon)) / np.expm1(epsilon)
    kept = (LiftedRows.of(given).raised(fixed, np.ones(n, dtype=bool)) - fixed).max()
    assert kept <= rounding


def test_repair_keeps_off_limits_that_cost_much() -> None:
    """Room below the limits is taken only where it is nearly free."""
    rng = np.random.default_rng(5)
    p = prior(rng, om.Grid(2, 3))
    limit = om.LossBound(0.3 * blind(p))
    problem = om.Problem(p, E, objective=om.MaximizeDistortion(E), constraints=[limit])
    statement, given = problem.statement, Inequalities.of(problem.statement)
    optimal = om.solve(problem).mechanism.matrix
    nearer = repair(given, Cone.of(given), optimal, (), given.tightened(1e-3))
    assert nearer is not None
    assert objective_value(statement, nearer) == pytest.approx(
        objective_value(statement, optimal), rel=1e-8
    )
