"""Known mechanisms in the tables of a problem file, against sums and calls of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import optmech as om
from optmech.cli.main import main

HEAD = """
format = 1
prior = "uniform"
loss = "euclidean"
[secrets]
kind = "grid"
rows = 2
columns = 3
unit = "km"
[[constraints]]
kind = "distribution_privacy"
epsilon = 0.5
pairs = [[[4, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 4]]]
"""
TABLES = """
[[mechanisms]]
name = "planar_laplace"
epsilon = "ln 2"
[[mechanisms]]
name = "restricted_laplace"
epsilon = 0.9
radius = 2
dummies = 3
delta = 0.05
"""


def answered(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict]:
    assert main(["mechanism", str(path), *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["mechanisms"]


def test_tables_are_made_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "known.toml"
    path.write_text(HEAD + TABLES)
    best, laplace, tuples = answered(path, capsys, "--optimum")
    grid, km = om.Grid(2, 3, unit="km"), om.distances.euclidean()
    even = np.full(6, 1 / 6)
    a, b = np.array([4, 1, 1, 1, 1, 1]) / 9, np.array([1, 1, 1, 1, 1, 4]) / 9
    matrix = om.mechanisms.planar_laplace(grid, "ln 2").matrix
    assert laplace["loss"] == pytest.approx(even @ (matrix * km(grid, grid)).sum(axis=1))
    found = max(abs(np.log((a @ matrix) / (b @ matrix))))
    assert laplace["constraints[0] epsilon"] == pytest.approx(found)
    base = om.mechanisms.restricted_laplace(grid, 0.9, 2, distance=km)
    own = om.mechanisms.tupling(base, 3)
    assert tuples["loss"] == own.expected_loss(om.Prior.uniform(grid), km)
    assert tuples["constraints[0] epsilon"] == own.epsilon(a, b, 0.05).upper
    assert best["loss"] == om.solve(om.load_problem(path)).loss
    assert best["loss"] < laplace["loss"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "planar_laplac"\nepsilon = 1', "planar_laplace"),
        ('name = "exponential"', "epsilon"),
        ('name = "exponential"\nepsilon = 1\nradius = 2', "radius"),
        ('name = "exponential"\nepsilon = 1\ndelta = 0.1', "dummies"),
        ('name = "exponential"\nepsilon = 1\ndummies = 0', "dummies"),
    ],
)
def test_tables_that_cannot_be_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, words: str
) -> None:
    path = tmp_path / "known.toml"
    path.write_text(f"{HEAD}\n[[mechanisms]]\n{table}\n")
    assert main(["mechanism", str(path)]) == 2
    assert words in capsys.readouterr().err
    assert main(["show", str(path)]) == 0  # other readers of the file leave them alone


def test_a_file_without_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.toml"
    path.write_text(HEAD)
    assert main(["mechanism", str(path)]) == 2
    assert "states no mechanisms" in capsys.readouterr().err
    assert main(["mechanism", str(path), "exponential"]) == 2
    assert "--epsilon" in capsys.readouterr().err
