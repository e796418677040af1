"""``optmech measure --everywhere``: what cells promise between their centres."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from optmech.cli.main import main

Run = Callable[..., tuple[int, str, str]]

CELLS = """
format = 1
title = "Two cells"
loss = "hamming"
[secrets]
kind = "grid"
rows = 1
columns = 2
unit = "km"
[prior]
kind = "uniform"
[[constraints]]
kind = "metric_privacy"
epsilon = "ln 3/2"
distance = "euclidean"
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*argv: str) -> tuple[int, str, str]:
        status = main(list(argv))
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return status, out, err

    return call


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two unit squares side by side that tell the truth with probability 0.6."""
    (tmp_path / "p.toml").write_text(CELLS, encoding="utf-8")
    (tmp_path / "m.csv").write_text("0.6,0.4\n0.4,0.6\n", encoding="utf-8")
    return ["measure", str(tmp_path / "m.csv"), "--problem", str(tmp_path / "p.toml")]


def test_two_cells_as_json(two: list[str], run: Run) -> None:
    status, out, _ = run(*two, "--everywhere", "--json")
    found = json.loads(out)["everywhere"]
    assert status == 0
    assert found["epsilon"] == pytest.approx(math.log(1.5), rel=1e-14)
    assert found["step"] == pytest.approx(math.log(1.5), rel=1e-14)
    assert (found["slack"], found["edge"]) == (1.0, [[0, 0], [0, 1]])
    for apart, epsilon in found["epsilon_between"]:
        assert epsilon == pytest.approx(math.log(1.5) / apart, rel=1e-12)
    # fixes in different cells and less than 1 apart: 5/24 of all pairs, by integration
    share = found["violated"]
    assert share["interval"][0] <= 5 / 24 <= share["interval"][1]
    assert share["epsilon"] == found["epsilon"]
    assert share["pairs"] == 100_000


def test_epsilon_and_distance_of_the_pairs(two: list[str], run: Run) -> None:
    """Nearer than ln 1.5 / ε, fixes in different cells always violate, others never."""
    asked = ["--everywhere", "--json", "--epsilon", "0.1", "--within", "0.01"]
    share = json.loads(run(*two, *asked)[1])["everywhere"]["violated"]
    assert share["epsilon"] == 0.1
    # segments of discs of radius r beyond an edge at distance t have ∫ dt / πr² = 2r/3π; two
    # sides, and the first fix is uniform over a length of 2
    wanted = 2 * 0.01 / (3 * math.pi)
    assert share["interval"][0] <= wanted * 1.02
    assert share["interval"][1] >= wanted * 0.98
    none = json.loads(run(*two, *asked[:3], "100")[1])["everywhere"]["violated"]
    assert none["share"] < 0.01


def test_in_words(two: list[str], run: Run) -> None:
    status, out, _ = run(*two, "--everywhere")
    assert status == 0
    assert "Between the centres of cells" in out
    assert "1 km" in out
    assert "0.405465108 (cells 0,0 and 0,1)" in out
    assert "100,000 pairs" in out
    assert "Between the centres" not in run(*two)[1]


def test_unusable(two: list[str], run: Run, tmp_path: Path) -> None:
    status, _, err = run(*two, "--within", "1")
    assert status == 2
    assert "--within: counts with --everywhere only" in err
    status, _, err = run(*two, "--everywhere", "--within", "0")
    assert status == 2
    assert "--within" in err
    line = CELLS.replace('"grid"\nrows = 1\ncolumns = 2', '"line"\nvalues = [0, 2]')
    (tmp_path / "p.toml").write_text(line, encoding="utf-8")
    status, _, err = run(*two, "--everywhere")
    assert status == 2
    assert "has no cells between its points" in err
