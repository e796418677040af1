"""Matrices of other tools: measured, attacked, certified, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

HAMMING = om.distances.hamming()
Run = Callable[..., tuple[int, str, str]]

PROBLEM = """
format = 1
loss = "hamming"
prior = "uniform"
[secrets]
kind = "labels"
labels = ["a", "b", "c"]
[[constraints]]
kind = "differential_privacy"
epsilon = "ln 3"
"""


def response(keep: float) -> np.ndarray:
    """k-ary randomised response on three labels that keeps the truth with this probability."""
    return np.full((3, 3), (1 - keep) / 2) + np.eye(3) * (keep - (1 - keep) / 2)


@pytest.fixture
def problem() -> om.Problem:
    domain = om.Domain("abc")
    return om.Problem(
        om.Prior.uniform(domain), HAMMING, constraints=[om.DifferentialPrivacy("ln 3")]
    )


def mechanism(matrix: np.ndarray) -> om.Mechanism:
    domain = om.Domain("abc")
    return om.Mechanism(domain, domain, matrix)


def test_a_private_matrix_is_adopted(problem: om.Problem, tmp_path: Path) -> None:
    design = om.exchange.adopt(mechanism(response(0.55)), problem)
    assert design.verified
    assert design.loss == pytest.approx(0.45, rel=1e-12)
    assert design.lower_bound == 0
    design.save(tmp_path / "design.json")
    assert om.check(tmp_path / "design.json").passed
    import optmech_audit as audit

    assert audit.main([str(tmp_path / "design.json")]) == 0


def test_a_matrix_that_breaks_its_promise_is_refused(problem: om.Problem) -> None:
    # ln 3 allows 3/5: 1e-9 more is too much
    for keep in (0.6 + 1e-9, 0.9, 1.0):
        with pytest.raises(om.VerificationError, match="ratio"):
            om.exchange.adopt(mechanism(response(keep)), problem)


def test_repair_keeps_the_promise_at_a_small_price(problem: om.Problem) -> None:
    design = om.exchange.adopt(mechanism(response(0.6 + 1e-7)), problem, repair=True)
    assert design.verified
    assert om.measures.epsilon(design.mechanism) <= np.log(3)
    # the optimum is 2/5
    assert 0.4 <= design.loss < 0.4 + 1e-6


def test_labels_have_to_fit(problem: om.Problem) -> None:
    other = om.Domain("abd")
    with pytest.raises(om.ProblemError, match="secrets are not those"):
        om.exchange.adopt(om.Mechanism(other, om.Domain("abc"), response(0.5)), problem)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    np.save(tmp_path / "matrix.npy", response(0.55))
    (tmp_path / "p.toml").write_text(PROBLEM)
    return tmp_path / "matrix.npy", tmp_path / "p.toml"


def test_commands_take_a_matrix_and_its_problem(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix, stated = map(str, files)

    def run(*words: str) -> tuple[int, dict]:
        status = main([*words, "--json"])
        return status, json.loads(capsys.readouterr().out)

    status, found = run("measure", matrix, "--problem", stated)
    assert status == 0
    assert found["epsilon"] == pytest.approx(np.log(0.55 / 0.225))
    status, found = run("attack", matrix, "--problem", stated, "--distance", "hamming")
    assert found["error"] == pytest.approx(0.45)
    status, found = run("check", matrix, "--problem", stated)
    assert (status, found["passed"], found["status"]) == (0, True, "adopted")
    out = str(tmp_path / "design.json")
    status, found = run("adopt", matrix, "--problem", stated, "-o", out)
    assert (status, found["verified"]) == (0, True)
    back = str(tmp_path / "again.npy")
    assert run("export", out, "--format", "matrix", "-o", back)[0] == 0
    np.testing.assert_allclose(np.load(back), response(0.55), rtol=1e-15)
    np.save(matrix, response(0.7))
    status, found = run("check", matrix, "--problem", stated)
    assert (status, found["passed"]) == (1, False)
    assert run("adopt", matrix, "--problem", stated, "-o", str(tmp_path / "no.json"))[0] == 1
    assert not (tmp_path / "no.json").exists()
    assert run("measure", matrix)[0] == 2
