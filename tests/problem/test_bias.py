"""Reports that are right on average: randomised response with debiased values, and refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech import prices
from optmech.reading.sealed import seal

E = om.distances.euclidean()
TWO = om.Prior.uniform(om.Domain.range(2))


def debiased(epsilon: float, *, at: float | None = None) -> om.Problem:
    """The reports of randomised response at ``epsilon``, all but unbiased; private at ``at``."""
    odds = math.exp(epsilon)
    values = np.array([-1 / (odds - 1), odds / (odds - 1)])
    loss = (np.arange(2)[:, None] - values) ** 2
    private = om.DifferentialPrivacy(epsilon + 1e-4 if at is None else at)
    near = om.constraints.Bias(1e-7, [0, 1], values)
    return om.Problem(TWO, loss, om.Domain.range(2), constraints=[private, near])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_debiased_randomised_response(epsilon: float) -> None:
    design = om.solve(debiased(epsilon))
    odds = math.exp(epsilon)
    assert design.loss == pytest.approx(odds / (odds - 1) ** 2, rel=1e-5)
    assert design.mechanism.matrix[0, 0] == pytest.approx(odds / (1 + odds), rel=1e-5)
    less = om.solve(debiased(epsilon, at=epsilon - 0.01))
    assert less.status == "infeasible"
    assert "cannot hold together" in less.reason


def test_more_reports_never_cost() -> None:
    """A denser line of reports contains a coarser one; its means are measured again."""
    prior = om.Prior(om.Domain.range(4), [1, 2, 3, 1])
    losses = []
    for step in (2.0, 1.0):
        points = np.arange(-6, 10, step)
        outputs = om.Domain(points.tolist(), points)
        constraints = [om.DifferentialPrivacy(2), om.constraints.Bias("1/100")]
        design = om.solve(om.Problem(prior, E, outputs, constraints=constraints))
        means = design.mechanism.matrix @ points
        assert np.abs(means - np.arange(4)).max() <= 0.01
        losses.append(design.loss)
        (_, price) = prices.of_constraints(design)
        assert price.parameter == "maximum"
        assert price.rate < 0
    assert losses[1] <= losses[0] + 1e-9


def test_two_coordinates() -> None:
    grid = om.Grid(2, 2)
    outer = om.Grid(4, 4, origin=(-1.0, -1.0))
    constraints = [om.MetricPrivacy(2, E), om.constraints.Bias(0.05)]
    design = om.solve(om.Problem(om.Prior.uniform(grid), E, outer, constraints=constraints))
    assert grid.points is not None
    assert outer.points is not None
    assert np.abs(design.mechanism.matrix @ outer.points - grid.points).max() <= 0.05


def test_a_value_that_no_mean_has() -> None:
    design = om.solve(om.Problem(TWO, E, constraints=[om.constraints.Bias(0.1, [0, 2], [0, 1])]))
    assert design.status == "infeasible"
    assert "has the value 2, and what it may report has values from 0 to 1" in design.reason


def test_a_file_that_promises_a_smaller_bias_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(3), [1, 2, 3])
    design = om.solve(
        om.Problem(prior, E, constraints=[om.DifferentialPrivacy(1), om.constraints.Bias(0.7)])
    )
    body = json.loads(design.document())
    del body["digest"]
    body["problem"]["constraints"][1]["maximum"] = 0.69
    path = tmp_path / "d.json"
    path.write_bytes(seal(json.dumps(body).encode()))
    assert not om.check(path).passed
    with pytest.raises(audit.Fault, match="bias"):
        audit.audit(str(path))


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: om.constraints.Bias(0), "maximum"),
        (lambda: om.constraints.Bias(1, "ab"), "values"),
        (lambda: om.constraints.Bias(1, [[[1.0]]]), "values"),
        (lambda: om.constraints.Bias(1, [math.inf]), "values"),
        (lambda: stated(om.constraints.Bias(1, [1, 2])), "constraints[0].values"),
        (lambda: stated(om.constraints.Bias(1)), "constraints[0].values"),
        (lambda: stated(om.constraints.Bias(1, [1, 2, 3], [1, 2])), "constraints[0].reported"),
        (
            lambda: stated(om.constraints.Bias(1, [1, 2, 3], np.ones((3, 2)))),
            "constraints[0].reported",
        ),
        (
            lambda: stated(om.constraints.Bias(1, [1, 2, 3]), om.Domain("xy")),
            "constraints[0].reported",
        ),
    ],
)
def test_what_cannot_be_meant(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        make()
    assert caught.value.where == where


def stated(constraint: object, outputs: om.Domain | None = None) -> om.Problem:
    names = om.Domain("abc")
    loss = np.zeros((3, len(outputs or names)))
    return om.Problem(om.Prior.uniform(names), loss, outputs, constraints=[constraint])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ('["a"]', "constraints[0].values[0]: a text of 1 character is not a number"),
        ("3", "constraints[0].values: is not an array of numbers"),
        ("[[1, 2], [3]]", "constraints[0].values: not a rectangular array"),
        ("[1, 2]", "constraints[0].values: 2 values for 3 elements"),
    ],
)
def test_values_that_cannot_be_meant_in_problem_files(
    values: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "hamming"\n[secrets]\nkind = "labels"\n'
        'labels = ["a", "b", "c"]\n[[constraints]]\nkind = "bias"\nmaximum = 1\n'
        f"values = {values}\n"
    )
    with pytest.raises(om.ProblemError) as caught:
        om.load_problem(path)
    assert said in str(caught.value)
