"""The check accepts what holds and rejects every violation that is put in."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.problems import KINDS, Make

import optmech as om
from optmech.certificate import check_matrix
from optmech.certificate.infeasible import closed_form_reason, support_reason

E, H = om.distances.euclidean(), om.distances.hamming()


def verdicts(problem: om.Problem, matrix: np.ndarray) -> dict[str, bool]:
    return {check.name: check.passed for check in check_matrix(problem.statement, matrix)}


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_designs_pass_and_their_mutations_fail(make: Make) -> None:
    problem = make(np.random.default_rng(21))
    design = om.solve(problem)
    if design.status == "infeasible":
        return
    matrix = design.mechanism.matrix
    assert all(verdicts(problem, matrix).values())
    negative = matrix.copy()
    negative[0, 0] = -1e-12
    assert not verdicts(problem, negative)["non-negative"]
    heavier = matrix.copy()
    heavier[-1, 0] += 1e-9
    assert not verdicts(problem, heavier)["row sums"]


def test_ratio_violations_of_one_part_in_1e14_are_seen() -> None:
    domain = om.Domain.range(2)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.DifferentialPrivacy("ln 2")])
    exact = np.array([[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    above = exact * (1 + 1e-14 * np.array([[1, -2], [-2, 1]]))
    below = exact * (1 - 1e-14 * np.array([[1, -2], [-2, 1]]))
    assert not verdicts(problem, above)["ratio"]
    assert verdicts(problem, below)["ratio"]


def test_a_zero_against_a_positive_is_never_private() -> None:
    domain = om.Domain.range(2)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(5000.0, E)])
    assert not verdicts(problem, np.eye(2))["ratio"]


def test_delta_distortion_loss_and_support_limits() -> None:
    domain = om.Domain.range(2)
    half = np.full((2, 2), 0.5)
    skewed = np.array([[0.9, 0.1], [0.1, 0.9]])
    prior = om.Prior.uniform(domain)

    def of(constraint: object, matrix: np.ndarray) -> bool:
        return all(verdicts(om.Problem(prior, H, constraints=[constraint]), matrix).values())

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


def test_nan_and_wrong_shapes_fail_without_an_exception() -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain.range(2)), H)
    assert not check_matrix(problem.statement, np.full((2, 2), np.nan))[0].passed
    assert not check_matrix(problem.statement, np.full((2, 3), 1 / 3))[0].passed


def test_closed_form_reasons_carry_both_numbers() -> None:
    domain = om.Domain.range(3)
    prior = om.Prior.uniform(domain)
    far = om.Problem(prior, E, constraints=[om.DistortionPrivacy(0.75, E)])
    assert "0.75" in closed_form_reason(far.statement)
    assert "0.666666667" in closed_form_reason(far.statement)
    costly = om.Problem(prior, np.full((3, 3), 2.0), constraints=[om.LossBound(1.5)])
    assert "1.5" in closed_form_reason(costly.statement)
    assert closed_form_reason(om.Problem(prior, E).statement) == ""
    narrow = om.Problem(prior, E, constraints=[om.Support(np.eye(3)), om.MetricPrivacy(1.0, E)])
    assert "3 secret(s)" in support_reason(narrow.statement)


def test_a_matrix_of_zeros_is_judged_and_not_stumbled_over() -> None:
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(1.0, E)])
    found = verdicts(problem, np.zeros((3, 3)))
    assert not found["row sums"]
    assert found["ratio"]


def test_observables_that_nobody_reports_are_counted_and_named_rightly() -> None:
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(1.0, E)])
    matrix = np.array([[0.0, 0.2, 0.8], [0.0, 0.5, 0.5], [0.0, 0.9, 0.1]])
    (ratio,) = (check for check in check_matrix(problem.statement, matrix) if check.name == "ratio")
    assert ratio.inequalities == 18
    assert not ratio.passed
    assert ratio.worst == pytest.approx(0.5 / 0.1 / np.e)
    assert "s=1, s'=2, o=2" in ratio.detail
