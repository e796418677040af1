"""Inequalities in floats, as search and repair see them: what holds, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.problems import KINDS, Make

import optmech as om
from optmech.certificate.families import FAMILIES
from optmech.lp.families import PROGRAMS
from optmech.lp.inequalities import Inequalities

E, H = om.distances.euclidean(), om.distances.hamming()


def holds(problem: om.Problem, matrix: np.ndarray) -> bool:
    return Inequalities.of(problem.statement).hold(matrix)


def test_every_family_that_is_decided_is_searched_and_no_other() -> None:
    assert set(PROGRAMS) == set(FAMILIES.values())


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_designs_hold_and_their_mutations_do_not(make: Make) -> None:
    problem = make(np.random.default_rng(21))
    design = om.solve(problem)
    if design.status == "infeasible":
        return
    matrix = design.mechanism.matrix
    assert holds(problem, matrix)
    negative = matrix.copy()
    negative[0, 0] = -1e-12
    assert not holds(problem, negative)
    heavier = matrix.copy()
    heavier[-1, 0] += 1e-9
    assert not holds(problem, heavier)


def test_ratio_violations_of_one_part_in_1e14_are_seen() -> None:
    domain = om.Domain.range(2)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.DifferentialPrivacy("ln 2")])
    (ratios,) = Inequalities.of(problem.statement).parts
    exact = np.array([[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    above = exact * (1 + 1e-14 * np.array([[1, -2], [-2, 1]]))
    below = exact * (1 - 1e-14 * np.array([[1, -2], [-2, 1]]))
    assert ratios.violation(above, 0.0) > 0
    assert ratios.violation(below, 0.0) <= 0


def test_a_zero_against_a_positive_is_never_private() -> None:
    domain = om.Domain.range(2)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(5000.0, E)])
    assert not holds(problem, np.eye(2))


def test_delta_distortion_loss_and_support_limits() -> None:
    domain = om.Domain.range(2)
    half = np.full((2, 2), 0.5)
    skewed = np.array([[0.9, 0.1], [0.1, 0.9]])
    prior = om.Prior.uniform(domain)

    def of(constraint: object, matrix: np.ndarray) -> bool:
        return holds(om.Problem(prior, H, constraints=[constraint]), matrix)

    # δ at ε = ln 2 is 0.9 - 2 · 0.1 = 0.7
    assert of(om.DifferentialPrivacy("ln 2", delta=0.7 + 1e-12), skewed)
    assert not of(om.DifferentialPrivacy("ln 2", delta=0.7 - 1e-12), skewed)
    # the attack errs with probability 0.1
    assert of(om.DistortionPrivacy(0.1 - 1e-12, H), skewed)
    assert not of(om.DistortionPrivacy(0.1 + 1e-12, H), skewed)
    assert of(om.DistortionPrivacy(0.5, H), half)
    assert of(om.LossBound(0.1 + 1e-12), skewed)
    assert not of(om.LossBound(0.1 - 1e-12), skewed)
    assert not of(om.LossBound(0.2, worst_case=True), half)
    assert not of(om.Support([[1, 0], [1, 1]]), half)


def test_nan_and_wrong_shapes_do_not_hold() -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain.range(2)), H)
    assert not holds(problem, np.full((2, 2), np.nan))
    assert not holds(problem, np.full((2, 3), 1 / 3))


def test_a_matrix_of_zeros_is_judged_and_not_stumbled_over() -> None:
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(1.0, E)])
    (ratios,) = Inequalities.of(problem.statement).parts
    assert ratios.violation(np.zeros((3, 3)), 0.0) <= 0
    assert not holds(problem, np.zeros((3, 3)))


def test_the_largest_ratio_is_found_beside_observables_that_nobody_reports() -> None:
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(1.0, E)])
    matrix = np.array([[0.0, 0.2, 0.8], [0.0, 0.5, 0.5], [0.0, 0.9, 0.1]])
    (ratios,) = Inequalities.of(problem.statement).parts
    assert ratios.violation(matrix, 0.0) == pytest.approx(0.5 / 0.1 / np.e - 1)


def test_what_search_changes_leaves_the_statement_alone() -> None:
    domain = om.Domain.range(3)
    constraints = [om.MetricPrivacy(1.0, E), om.LossBound(0.5)]
    statement = om.Problem(om.Prior.uniform(domain), H, constraints=constraints).statement
    given = Inequalities.of(statement)
    given.tightened(0.5).with_ratios(np.zeros((3, 3)))
    assert statement.log_ratio[0, 2] == given.log_ratio[0, 2] == 2.0
    (limit,) = given.tightened(0.5).convex
    assert limit.maximum == 0.25
    assert statement.families[1].maximum == 0.5
