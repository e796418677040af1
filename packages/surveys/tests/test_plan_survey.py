"""Plans of surveys beside closed forms of the literature."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from optmech_surveys import (
    duchi,
    hadamard,
    hybrid,
    piecewise,
    plan_survey,
    unary_encoding,
)
from optmech_surveys.commands.plan_survey import run

import optmech as om

H, E = om.distances.hamming(), om.distances.euclidean()


def test_peers_keep_their_promise_and_have_the_variances_of_their_papers() -> None:
    letters = om.Domain(list("abcdef"))
    epsilon, n = 1.0, 6
    rate = np.exp(epsilon)
    made = {
        "subset": om.mechanisms.subset_selection(letters, epsilon, size=2),
        "unary": unary_encoding(letters, epsilon),
        "symmetric": unary_encoding(letters, epsilon, optimised=False),
        "code": hadamard(letters, epsilon),
    }
    for m in made.values():
        assert om.measures.epsilon(m, H) == pytest.approx(epsilon)
    # Wang et al. 2017, of the support estimator: no less than the best one's
    kept = 1 / (1 + np.exp(-epsilon / 2))
    pairs = {"unary": (0.5, 1 / (rate + 1)), "symmetric": (kept, 1 - kept)}
    for name, (own, other) in pairs.items():
        m = made[name]
        share = (own + (n - 1) * other) / n
        assert om.estimate.variances(m).max() <= share * (1 - share) / (own - other) ** 2 + 1e-9
    k_ary = om.mechanisms.randomized_response(letters, epsilon)
    own, other = rate / (rate + n - 1), 1 / (rate + n - 1)
    exact = (1 / n) * (1 - 1 / n) / (own - other) ** 2
    assert om.estimate.variances(k_ary).max() == pytest.approx(exact)


def test_numbers_are_those_of_the_paper() -> None:
    assert duchi(1.0) == pytest.approx(4.683, abs=1e-3)
    assert piecewise(1.0) == pytest.approx(5.224, abs=1e-3)
    assert hybrid(1.0) == pytest.approx(4.289, abs=1e-3)
    assert duchi(3.0) == pytest.approx(1.221, abs=1e-3)
    assert piecewise(3.0) == pytest.approx(0.4929, abs=1e-3)
    assert hybrid(3.0) == pytest.approx(0.4322, abs=1e-3)


def test_a_plan_of_a_line(tmp_path: Path) -> None:
    line = om.Domain.range(6)
    survey = om.Problem(
        om.Prior.uniform(line), E, objective=om.MinimizeVariance("histogram"),
        constraints=[om.MetricPrivacy(0.3, E)],
    )  # fmt: skip
    found = plan_survey(survey, error=0.05, gap=1e-2)
    rows = {row.name: row for row in found.rows}
    assert rows["truncated geometric"].variance == pytest.approx(311, abs=1)
    assert rows["designed"].variance == pytest.approx(95.33, rel=0.01)
    assert not np.isfinite(rows["least loss"].variance)
    assert np.isfinite(rows["exponential"].variance)
    assert min(rows, key=lambda name: rows[name].people) == "designed"
    again = plan_survey(survey, people=rows["designed"].people, gap=1e-2)
    assert again.rows[0].error == pytest.approx(0.05, rel=1e-3)
    for given in ({}, {"people": 10.0, "error": 0.1}):
        with pytest.raises(om.ProblemError, match="not both"):
            plan_survey(survey, **given)


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "euclidean"\n'
        '[secrets]\nkind = "line"\ncount = 3\n'
        '[objective]\nkind = "minimize_variance"\nstatistic = "mean"\n'
        '[[constraints]]\nkind = "metric_privacy"\nepsilon = 1\ndistance = "euclidean"\n'
    )
    args = Namespace(
        problem=str(path), people=None, error="0.1", level="0.95", gap="0.01",
        output=str(tmp_path / "design.json"), json=False,
    )  # fmt: skip
    answer = run(args)
    assert answer.values["mechanisms"][0]["name"] == "designed"
    assert answer.values["bound"] > 0
    assert om.check(tmp_path / "design.json").passed
