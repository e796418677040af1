"""``om.load_task``: whatever a file asks, answered from Python as by the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from optmech_traces.chains.task import ChainTask
from optmech_traces.gaussian.task import GaussianTask

import optmech as om
from optmech.cli.main import main
from optmech.files.load import DesignTask
from optmech.files.transport import TransportTask

PROBLEM = """
format = 1
title = "two answers"
secrets = { kind = "labels", labels = ["no", "yes"] }
prior = { kind = "uniform" }
loss = "hamming"
[[constraints]]
kind = "differential_privacy"
epsilon = "ln 3"
"""
TRACE = """
format = 1
kind = "gaussian"
title = "five points"
times = { count = 5 }
secrets = [1, 3]
radius = 1.0
order = 2.0
epsilon = 1
kernel = { kind = "white", variance = 1.0 }
"""


def test_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PROBLEM, encoding="utf-8")
    task = om.load_task(path)
    assert isinstance(task, DesignTask)
    assert task.title == "two answers"
    design = task.solve(gap=1e-9)
    assert isinstance(design, om.Design)
    # randomised response: the truth with probability e^ε / (e^ε + 1)
    assert design.loss == pytest.approx(1 / 4, abs=1e-9)


def test_noise_for_independent_points(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text(TRACE, encoding="utf-8")
    task = om.load_task(path)
    assert isinstance(task, GaussianTask)
    answer = task.solve()
    assert answer.kept
    # independent points: λ r² / (2 σ²) for each of two secrets makes ε
    secret = np.array([1, 3])
    assert np.diag(answer.noise)[secret] == pytest.approx([2 * 2 / 2] * 2, rel=1e-4)
    answer.save(tmp_path / "noise.json")
    saved = json.loads((tmp_path / "noise.json").read_text(encoding="utf-8"))
    assert saved["kind"] == "noise"
    assert saved["loss"] <= 1


def test_a_family_of_mechanisms() -> None:
    task = om.load_task("home-out-target")
    assert isinstance(task, TransportTask)
    design = task.solve()
    assert design.status == "optimal"
    assert [point.epsilon for point in task.frontier()] == list(task.asked.epsilons or ())


def test_a_chain_as_the_command_answers_it(capsys: pytest.CaptureFixture[str]) -> None:
    task = om.load_task("commuter")
    assert isinstance(task, ChainTask)
    answer = task.solve(seed=1).summary()
    assert main(["trace", "commuter", "--seed", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["sequential"]["filtering"] == answer["sequential"]["filtering"]
    assert math.isfinite(answer["first"]["loss"])


def test_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('format = 1\nproblem = "montreal"\n[axes]\n', encoding="utf-8")
    with pytest.raises(om.ProblemError, match="this is a sweep file"):
        om.load_task(path)
    with pytest.raises(om.ProblemError, match="no such file"):
        om.load_task("nothing-like-it")
