"""What is said of promises for some pairs alone, and which reports a list names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.designs.promise import promise_of

THREE = om.Prior(om.Domain(range(3)), [0.5, 0.3, 0.2])
APART = 1 - np.eye(3)
FREE = np.where(np.eye(3) > 0, 0.0, np.inf)
ONE = np.array([[0, 1, np.inf], [np.inf, 0, np.inf], [np.inf, np.inf, 0]])


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ([om.MetricPrivacy(1, FREE)], "private between secrets of the pairs stated"),
        ([om.Ratios(ONE)], "private between secrets of the pairs stated"),
        ([om.MetricPrivacy(1, APART)], "ε = 1"),
        ([om.Linear(np.eye(3), upper=1.25), om.DifferentialPrivacy(1)], "private between secrets"),
        ([om.DifferentialPrivacy(1), om.Linear(np.eye(3), upper=1.25)], "private between secrets"),
    ],
)
def test_a_promise_of_some_pairs_is_said_to_be_one(constraints: list[Any], said: str) -> None:
    """Whatever the order of constraints; a pair at an infinite distance is promised nothing."""
    brief = promise_of(om.Problem(THREE, APART, constraints=constraints)).brief
    assert brief.startswith(said)
    assert ("pairs stated" in brief) == ("pairs stated" in said)


def loss(reports: Any, of: om.Domain | None = None) -> float:
    prior = THREE if of is None else om.Prior.uniform(of)
    size = len(prior.domain)
    ratios = om.Ratios(np.full((size, size), 0.5), reports=reports)
    return om.solve(om.Problem(prior, 1 - np.eye(size), constraints=[ratios])).loss


def test_truth_values_are_no_labels() -> None:
    """True equals 1 in Python: a list that is too short was taken for the labels 1 and 0."""
    assert loss([True, False, True]) == pytest.approx(loss([0, 2]))
    assert loss(np.array([True, False, True])) == pytest.approx(loss([0, 2]))
    coin = om.Domain([True, False])
    # both reports: of two secrets at ln odds of 1/2 the least loss is 1 / (1 + e^(1/2))
    assert loss([True, False], coin) == pytest.approx(1 / (1 + np.exp(0.5)), rel=1e-6)
    for wrong in ([True, False], [1, 0, 1], [[0]], np.array([[0, 1]]), 0, "01", []):
        with pytest.raises(om.ProblemError, match="reports"):
            loss(wrong)


def test_what_is_no_list_is_refused() -> None:
    for made in (
        lambda: om.Ratios([0.5], of=THREE, to=THREE),  # type: ignore[arg-type]
        lambda: om.Ratios([0.5], of=5, to=6),  # type: ignore[arg-type]
        lambda: om.DistributionPrivacy(1, among=THREE),  # type: ignore[arg-type]
        lambda: om.Domain.product("ab", 5),  # type: ignore[arg-type]
    ):
        with pytest.raises(om.ProblemError, match="is no list of"):
            made()
