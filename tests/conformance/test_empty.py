"""Constraints without any pair, and supports that leave nothing: solved or refused in words, by
``solve``, ``check`` and the audit alike."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from conformance.mixed import mixed
from optmech_audit import audit

import optmech as om
from optmech.errors import SolverError

E, H = om.distances.euclidean(), om.distances.hamming()
LINE = om.Domain(range(3), [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], "km")
NOTHING = {
    "threshold": om.MetricPrivacy(1.0, E, threshold=0.5, delta=0.1),
    "radius": om.DifferentialPrivacy(1.0, (E, 0.5), delta="1/10"),
    "windows": om.MetricPrivacy(1.0, E, observable_threshold=0.5, threshold=0.5),
}


def passes(design: om.Design, path: Path) -> bool:
    """Whether the saved design passes both checkers."""
    design.save(path)
    audit(str(path))
    return bool(om.check(path).passed)


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("profile", ["auto", "structured", "cvxpy"])
def test_a_constraint_without_pairs_leaves_the_truth_free(
    name: str, profile: str, tmp_path: Path
) -> None:
    prior = om.Prior(LINE, [1, 2, 3])
    design = om.solve(om.Problem(prior, E, constraints=[NOTHING[name]]), profile=profile)
    assert design.loss == 0.0
    assert design.gap == 0.0
    np.testing.assert_array_equal(design.matrix, np.eye(3))
    assert passes(design, tmp_path / "design.json")


def test_a_constraint_without_pairs_beside_others(tmp_path: Path) -> None:
    """Randomised response between three: 2 / (e + 2)."""
    prior = om.Prior.uniform(LINE)
    constraints = [NOTHING["threshold"], om.DifferentialPrivacy(1.0), NOTHING["radius"]]
    design = om.solve(om.Problem(prior, H, constraints=constraints))
    assert design.loss == pytest.approx(2 / (np.e + 2), rel=1e-6)
    assert passes(design, tmp_path / "design.json")


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_one_secret_is_reported_at_the_least_loss(delta: float, tmp_path: Path) -> None:
    prior = om.Prior.uniform(om.Domain(["only"]))
    private = om.DifferentialPrivacy(1.0, delta=delta)
    design = om.solve(om.Problem(prior, [[3.0, 1.5]], om.Domain("ab"), constraints=[private]))
    assert design.loss == 1.5
    assert design.gap <= 1e-14
    assert passes(design, tmp_path / "design.json")


@pytest.mark.parametrize("worst", [False, True])
def test_supports_that_leave_a_secret_nothing_are_infeasible_for_that_reason(
    worst: bool, tmp_path: Path
) -> None:
    left, right = np.ones((3, 3)), np.ones((3, 3))
    left[1, 2] = right[1, 0] = right[1, 1] = 0
    constraints = [om.Support(left), om.Support(right), om.LossBound(0.1, worst_case=worst)]
    design = om.solve(om.Problem(om.Prior.uniform(LINE), E, constraints=constraints))
    assert design.status == "infeasible"
    assert "the support leaves 1 secret(s) without observables" in design.reason
    assert passes(design, tmp_path / "design.json")


@pytest.mark.parametrize("seed", range(0, 400, 4))
def test_tiny_mixed_problems_end_in_a_design_or_in_words(seed: int, tmp_path: Path) -> None:
    """No exception but a SolverError that says that nothing was found."""
    problem = mixed(seed, most=3)
    with suppress(SolverError):
        design = om.solve(problem)
        if seed % 20 == 0:
            assert passes(design, tmp_path / "design.json")
