"""Closed forms of the certificate, and what its verdicts say."""

from __future__ import annotations

import numpy as np
import pytest

import optmech as om
from optmech.certificate import check_exact
from optmech.certificate.bound import closed_form_reason, support_reason
from optmech.exact.numerators import Numerators

E, H = om.distances.euclidean(), om.distances.hamming()


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


def test_observables_that_nobody_reports_are_counted_and_named_rightly() -> None:
    domain = om.Domain.range(3)
    problem = om.Problem(om.Prior.uniform(domain), H, constraints=[om.MetricPrivacy(1.0, E)])
    matrix = np.array([[0.0, 0.2, 0.8], [0.0, 0.5, 0.5], [0.0, 0.9, 0.1]])
    checks = check_exact(problem.statement, Numerators.rounded(matrix))
    (ratio,) = (check for check in checks if check.name == "ratio")
    assert ratio.inequalities == 18
    assert not ratio.passed
    assert ratio.worst == pytest.approx(0.5 / 0.1 / np.e)
    # the first that is broken: 8 > e^2
    assert "s=0, s'=2, o=2" in ratio.detail


def test_a_support_is_decided_and_one_that_allows_everything_says_so() -> None:
    prior, half = om.Prior.uniform(om.Domain.range(2)), Numerators.rounded(np.full((2, 2), 0.5))
    masks = [[[1, 0], [1, 1]], [[1, 1], [1, 1]]]
    problem = om.Problem(prior, H, constraints=[om.Support(mask) for mask in masks])
    narrow, whole = check_exact(problem.statement, half)[1:]
    assert (narrow.constraint, narrow.passed, narrow.worst) == (0, False, 0.5)
    assert (whole.constraint, whole.passed, whole.inequalities) == (1, True, 0)
