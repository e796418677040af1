"""``optmech estimate``: numbers known in closed form."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

PROBLEM = """
format = 1
loss = "hamming"
prior = "uniform"
[secrets]
kind = "labels"
labels = ["a", "b", "c"]
"""


def response(path: Path, rate: float) -> str:
    """Randomised response as a matrix of another tool."""
    rows = [[rate if s == o else 1 for o in range(3)] for s in range(3)]
    text = "".join(",".join(repr(v / (rate + 2)) for v in row) + "\n" for row in rows)
    path.write_text(text)
    return str(path)


@pytest.fixture
def problem(tmp_path: Path) -> str:
    (tmp_path / "p.toml").write_text(PROBLEM)
    return str(tmp_path / "p.toml")


def test_reports_are_estimated(
    tmp_path: Path, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    m, counts = response(tmp_path / "m.csv", 6), tmp_path / "counts.csv"
    counts.write_text("observable,count\na,500\nb,300\nc,200\n")
    argv = ["estimate", m, str(counts), "--problem", problem]
    wanted = [(share - 1 / 8) / (5 / 8) for share in (0.5, 0.3, 0.2)]
    assert main([*argv, "--json", "--bootstrap", "50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reports"] == 1000
    assert 0 <= found["gap"] <= 1e-8
    rows = found["estimates"]
    assert [row["secret"] for row in rows] == ["a", "b", "c"]
    assert [row["unbiased"] for row in rows] == pytest.approx(wanted)
    assert [row["likeliest"] for row in rows] == pytest.approx(wanted, abs=1e-3)
    assert all(row["lower"] < row["likeliest"] < row["upper"] for row in rows)
    assert main([*argv, "-o", str(tmp_path / "out.csv")]) == 0
    assert "no prior is likelier by more than" in capsys.readouterr().out
    with open(tmp_path / "out.csv", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["unbiased"]) for row in written] == pytest.approx(wanted)
    assert main(argv) == 0
    assert "standard error" in capsys.readouterr().out


def test_estimates_of_mechanisms_with_equal_rows(
    tmp_path: Path, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    m, counts = response(tmp_path / "m.csv", 1), tmp_path / "counts.csv"
    counts.write_text("observable\na\na\nc\n")
    assert main(["estimate", m, str(counts), "--problem", problem]) == 0
    assert "no unbiased estimate" in capsys.readouterr().out
    for options, complaint in (
        (["--gap", "0"], "--gap"),
        (["--confidence", "1"], "--confidence: 1 is not below 1"),
        (["--bootstrap", "-1"], "bootstrap: -1 is not a whole number from 0"),
        (["--seed", "-1"], "--seed"),
        (["-o", str(counts)], "is an input file"),
    ):
        assert main(["estimate", m, str(counts), "--problem", problem, *options]) == 2
        assert complaint in capsys.readouterr().err


def test_protected_tables_are_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reports of a survey by label, and of any design by the coordinates of its observables."""
    cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    promise = [om.MetricPrivacy(2.0, km)]
    prior = om.Prior.uniform(cells)
    mean, single, table = tmp_path / "mean.json", tmp_path / "single.json", tmp_path / "reports.csv"
    goal = om.MinimizeVariance("mean")
    survey = om.solve(om.Problem(prior, km, objective=goal, constraints=promise), gap=0.1)
    survey.save(mean)
    om.solve(om.Problem(prior, km, constraints=promise)).save(single)
    counts = np.arange(1, len(survey.problem.observables) + 1)
    labels = survey.problem.observables.labels
    table.write_text(
        "report\n" + "".join(f"{k}\n" * n for k, n in zip(labels, counts, strict=True))
    )
    assert main(["estimate", str(mean), str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = survey.estimate(counts)
    assert [row["unbiased"] for row in found["statistic"]] == pytest.approx(wanted.values.tolist())
    assert [row["standard error"] for row in found["statistic"]] == pytest.approx(
        wanted.errors.tolist()
    )
    shares = np.array([row["unbiased"] for row in found["estimates"]])
    assert wanted.statistic @ shares == pytest.approx(wanted.values)
    assert sum(row["non-negative"] for row in found["estimates"]) == pytest.approx(1.0)
    places = {(0.5, 0.5): 30, (1.5, 0.5): 10, (0.5, 1.5): 5, (1.5, 1.5): 5}
    table.write_text("x,y\n" + "".join(f"{x},{y}\n" * n for (x, y), n in places.items()))
    assert main(["estimate", str(single), str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    design = om.Design.load(single)
    flat = om.estimate.frequencies(design.mechanism, [*places.values()])
    assert [row["unbiased"] for row in found["estimates"]] == pytest.approx(flat.values.tolist())
    for text, complaint in (
        ("x,y\n0.6,0.5\n", "data row 1 is at no observable"),
        ("x,y\n0.5,0.5\n0.5,\n", "data row 2 is at no observable"),
        ("a\n1\n", "observable"),
    ):
        table.write_text(text)
        assert main(["estimate", str(single), str(table)]) == 2
        assert complaint in capsys.readouterr().err
