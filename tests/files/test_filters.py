"""Rows of a CSV file chosen by their text, on made-up and on real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import optmech as om

ROOT = Path(__file__).resolve().parents[2]
FILE = """
format = 1
loss = "euclidean"
[secrets]
kind = "grid"
rows = 1
columns = 2
[prior]
kind = "csv"
file = "rows.csv"
x = "x"
y = "y"
"""
ROWS = "x,y,kind,day\n0.5,0.5,a,mon\n0.5,0.5,b,mon\n1.5,0.5,a,tue\n1.5,0.5,c,tue\n9,9,a,mon\n"


def load(folder: Path, extra: str) -> om.Problem:
    (folder / "rows.csv").write_text(ROWS)
    (folder / "problem.toml").write_text(FILE + extra)
    return om.load_problem(folder / "problem.toml")


@pytest.mark.parametrize(
    ("extra", "weights", "outside"),
    [
        ("", [0.5, 0.5], 1),
        ('only = { kind = ["a"] }', [0.5, 0.5], 1),
        ('only = { kind = ["a", "b"] }', [2 / 3, 1 / 3], 1),
        ('without = { kind = ["a"] }', [0.5, 0.5], 0),
        ('only = { day = ["mon"] }\nwithout = { kind = ["b"] }', [1.0, 0.0], 1),
    ],
)
def test_rows_are_kept_by_their_text(
    tmp_path: Path, extra: str, weights: list[float], outside: float
) -> None:
    prior = load(tmp_path, extra).prior
    assert prior.weights.tolist() == pytest.approx(weights)
    assert prior.binning is not None
    assert prior.binning.outside == outside


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('only = { kind = ["z"] }', "no row is left"),
        ('only = { colour = ["a"] }', "no column 'colour'"),
        ("only = { kind = [] }", "prior"),
        ("only = { kind = 3 }", "prior"),
    ],
)
def test_what_selects_nothing_is_refused(tmp_path: Path, extra: str, message: str) -> None:
    with pytest.raises(om.ProblemError, match=message):
        load(tmp_path, extra)


@pytest.mark.parametrize(("name", "expected"), [("male-female", 0.104), ("home-out", 0.614)])
@pytest.mark.usefixtures("shared_data")
def test_real_attributes_have_the_published_total_variation(name: str, expected: float) -> None:
    """0.104 and 0.614 on 8 x 5 cells, from the description of the data."""
    problem = om.load_problem(ROOT / "benchmarks" / "problems" / f"{name}-nyc.toml")
    stated = next(c for c in problem.constraints if isinstance(c, om.DistributionPrivacy))
    (pair,) = stated.pairs
    assert 0.5 * np.abs(pair[0] - pair[1]).sum() == pytest.approx(expected, abs=5e-4)
